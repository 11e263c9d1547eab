//! Transcribes a file: decodes it, cuts it at silences, recognises the segments, and joins their words.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::channel_dedup::{ChannelGroups, Parting};
use super::chunk_review::{self, SpeechDoubt};
use super::recogniser::{LearntVocabulary, RecognisedChunk, Recogniser, RecogniserError, SpeechChunk, Term};
use super::turn::TurnSignal;
use super::utterances::{self, ChannelSpeech, TextSize};
use crate::blocking;
use crate::domain::time_span::time_span;
use crate::domain::transcript::Transcript;
use crate::media::decode::{DecodeError, Decoder, INACTIVITY, SAMPLE_RATE};
use crate::media::length;
use crate::media::speech_segments::{CutRule, Segment, Segmenter};

/// Why a file could not be transcribed.
#[derive(Debug, thiserror::Error)]
pub enum TranscribeError {
    /// The file has no usable sound.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The recogniser is not available, or failed.
    #[error(transparent)]
    Recogniser(#[from] RecogniserError),
    /// The recogniser's thread ended early, which is a fault of this program.
    #[error("the recogniser's thread ended before the file did; this is a fault in scribed")]
    Stopped,
    /// The recording is longer than this service accepts.
    #[error("{}", too_long_message(*.0))]
    TooLong(Duration),
    /// More words were recognised than a result can hold.
    #[error("more than {MOST_WORDS} words or {MOST_TEXT} bytes of text were recognised; split the recording before")]
    TooManyWords,
}

/// The default limit of decoded sound of one file: a file of a megabyte may hold years of silence.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Returns the message for a recording that is longer than `limit`.
pub fn too_long_message(limit: Duration) -> String {
    let limit = time_span(limit);
    format!("the recording is longer than {limit}, the most that this service takes (`length_limit`); split it before")
}

/// The most words of one recording, in all channels: they are held in memory, some 100 bytes each.
const MOST_WORDS: usize = 3_000_000;

/// The most bytes of text of one recording: a word of a vocabulary may be long.
const MOST_TEXT: usize = 64 << 20;

/// The options of a transcription.
#[derive(Debug, Clone)]
pub struct TranscribeOptions {
    pub vocabulary: Vec<Term>,
    /// The code of the language, if the client has named exactly one.
    pub language: Option<String>,
    /// What the client says about the recording, for recognisers that take such a text; may be empty.
    pub prompt: String,
    /// Whether equal channels are recognised separately all the same.
    pub every_channel: bool,
    /// A longer recording is refused: at the start by its declared length, or when this much was decoded.
    pub longest: Duration,
    /// Pauses and resumes the transcription.
    pub turn: TurnSignal,
    /// What was recognised of long chunks when the transcription was tried before; they are not recognised again.
    pub kept: KeptChunks,
}

/// Recognised chunks by their channel, first sample and length. A recording is always cut at the same places.
pub type KeptChunks = Arc<Mutex<HashMap<(usize, u64, usize), RecognisedChunk>>>;

impl Default for TranscribeOptions {
    fn default() -> Self {
        Self {
            vocabulary: Vec::new(),
            language: None,
            prompt: String::new(),
            every_channel: false,
            longest: LONGEST,
            turn: TurnSignal::default(),
            kept: KeptChunks::default(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecognisedSpeech {
    /// The transcript of all channels, in order of time; empty for silence.
    pub transcript: Transcript,
    /// The number of distinct channels, at least 1.
    pub channels: u32,
    /// The vocabulary's words that the recogniser could not learn.
    pub unknown: Vec<String>,
    /// Passages that were probably not recognised as they were said, in no order.
    pub doubts: Vec<SpeechDoubt>,
    /// Whether times of words are estimated.
    pub has_estimated_times: bool,
    /// Whether the recogniser wrote case and punctuation. Its confidences are then its own.
    pub is_written: bool,
}

/// Transcribes the first audio track of `path`: each channel separately, equal ones once.
///
/// Memory grows with the number of words, not with the file. One thread recognises the segments of a file in order;
/// several files at once use as many threads as the recogniser allows. When this future is dropped, ffmpeg ends at once
/// and the thread ends after its current segment. While it is paused, ffmpeg and the thread keep what they have and
/// compute nothing.
///
/// # Errors
/// See [`TranscribeError`].
pub async fn transcribe(
    path: &Path,
    recogniser: Arc<dyn Recogniser>,
    options: TranscribeOptions,
) -> Result<RecognisedSpeech, TranscribeError> {
    let decoder = Decoder::open(path, INACTIVITY).await?;
    if length::is_longer(path, decoder.media().duration, options.longest) {
        return Err(TranscribeError::TooLong(options.longest));
    }
    let (sender, receiver) = mpsc::channel(WAITING_SEGMENTS);
    let dropped = CancellationToken::new();
    let guard = dropped.clone().drop_guard();
    let (own, rule) = (options.clone(), recogniser.cut_rule());
    let recognising = blocking::spawn(move || recognise_segments(receiver, recogniser, own, dropped));
    let cut = cut(decoder, &options, rule, sender).await;
    let _guard = cut.is_ok().then_some(guard);
    // If the recogniser failed, nothing received the segments: its error says more.
    let recognised = recognising.await.map_err(|_| TranscribeError::Stopped)??;
    let channels = u32::try_from(cut?).unwrap_or(u32::MAX);
    Ok(RecognisedSpeech { channels, ..recognised })
}

/// How many segments are decoded ahead of the recogniser, each at most 1 MB, or 2 MB for each minute of a chunk.
const WAITING_SEGMENTS: usize = 2;

/// What the decoding sends to the recognition.
enum Work {
    Recognise(usize, Segment),
    /// Up to here two channels were equal: the words so far belong to both.
    Split(Parting),
}

/// Decodes the file and sends its segments. Returns the number of distinct channels.
async fn cut(
    mut decoder: Decoder,
    options: &TranscribeOptions,
    rule: CutRule,
    sender: mpsc::Sender<Work>,
) -> Result<usize, TranscribeError> {
    let count = decoder.channels();
    let mut channels =
        if options.every_channel { ChannelGroups::all_distinct(count) } else { ChannelGroups::all_equal(count) };
    let mut segmenters: BTreeMap<usize, Segmenter> =
        channels.leaders().into_iter().map(|channel| (channel, Segmenter::new(rule))).collect();
    let send = async |work| sender.send(work).await.map_err(|_| TranscribeError::Stopped);
    let mut left = options.longest.as_secs().saturating_mul(u64::from(SAMPLE_RATE));
    while let Some(planes) = decoder.next().await? {
        let length = planes.first().map_or(0, Vec::len) as u64;
        left = left.checked_sub(length).ok_or(TranscribeError::TooLong(options.longest))?;
        // Hours of silence are decoded without a wait: this lets other tasks run in between.
        tokio::task::yield_now().await;
        options.turn.wait().await;
        for parting in channels.update(&planes) {
            let so_far = segmenters.get(&parting.from).cloned().unwrap_or_default();
            segmenters.insert(parting.to, so_far);
            send(Work::Split(parting)).await?;
        }
        for (channel, segmenter) in &mut segmenters {
            for segment in segmenter.push(&planes[*channel]) {
                send(Work::Recognise(*channel, segment)).await?;
            }
        }
    }
    let distinct = segmenters.len();
    for (channel, segmenter) in segmenters {
        if let Some(segment) = segmenter.finish() {
            send(Work::Recognise(channel, segment)).await?;
        }
    }
    Ok(distinct)
}

/// What the recognition of a recording gets beside the segments.
struct ChunkWork {
    recogniser: Arc<dyn Recogniser>,
    options: TranscribeOptions,
    lesson: Arc<LearntVocabulary>,
    dropped: CancellationToken,
}

/// What was recognised of a recording so far.
#[derive(Default)]
struct Recognised {
    spoken: BTreeMap<usize, ChannelSpeech>,
    size: TextSize,
    doubts: Vec<SpeechDoubt>,
    has_estimated_times: bool,
    is_written: bool,
}

impl Recognised {
    fn grow(&mut self, more: TextSize) -> Result<(), TranscribeError> {
        self.size = self.size.add(more);
        let is_too_much = self.size.words > MOST_WORDS || self.size.bytes > MOST_TEXT;
        if is_too_much { Err(TranscribeError::TooManyWords) } else { Ok(()) }
    }

    fn add(
        &mut self,
        channel: usize,
        segment: &Segment,
        chunk: RecognisedChunk,
        work: &ChunkWork,
    ) -> Result<(), TranscribeError> {
        self.grow(TextSize::of_chunk(&chunk))?;
        let begin = segment.start_sample as f64 / f64::from(SAMPLE_RATE);
        let language = work.language_of(&chunk);
        if chunk.is_written {
            let found = chunk_review::doubts(&chunk, &segment.samples, begin, channel);
            self.doubts.extend(found.into_iter().take(MOST_DOUBTS.saturating_sub(self.doubts.len())));
        }
        self.is_written |= chunk.is_written;
        self.has_estimated_times |= chunk.has_estimated_times;
        self.spoken.entry(channel).or_default().add(chunk, begin, channel, &language);
        Ok(())
    }

    fn split(&mut self, Parting { from, to }: Parting) -> Result<(), TranscribeError> {
        let so_far = self.spoken.get(&from).map(|from| from.copy_for(to)).unwrap_or_default();
        self.grow(so_far.size())?;
        self.spoken.insert(to, so_far);
        Ok(())
    }
}

impl ChunkWork {
    /// Recognises a segment, unless that was done before the transcription had to wait.
    fn recognise(&self, channel: usize, segment: &Segment) -> Result<RecognisedChunk, RecogniserError> {
        let kept = || self.options.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (channel, segment.start_sample, segment.samples.len());
        if let Some(chunk) = kept().get(&place) {
            return Ok(chunk.clone());
        }
        let chunk = self.ask(segment)?;
        if chunk.is_written {
            kept().insert(place, chunk.clone());
        }
        Ok(chunk)
    }

    fn ask(&self, segment: &Segment) -> Result<RecognisedChunk, RecogniserError> {
        self.recogniser.recognise_chunk(&SpeechChunk {
            samples: &segment.samples,
            language: self.options.language.as_deref(),
            vocabulary: &self.lesson,
            prompt: &self.options.prompt,
            cancelled: &self.dropped,
        })
    }

    /// Returns the language of a chunk: that which was found, or requested, or the only one that it can be. Empty if it
    /// is not known.
    fn language_of(&self, chunk: &RecognisedChunk) -> String {
        let known = self.recogniser.languages();
        let only = || known.first().filter(|_| !chunk.is_written || known.len() == 1).map(|code| (*code).to_owned());
        chunk
            .language
            .clone()
            .or_else(|| self.options.language.clone().filter(|_| chunk.is_written))
            .or_else(only)
            .unwrap_or_default()
    }
}

/// The most doubts about one recording that are kept.
const MOST_DOUBTS: usize = 10_000;

/// Recognises segments until the work ends or the transcription is dropped. Runs on a thread that may block.
fn recognise_segments(
    mut segments: mpsc::Receiver<Work>,
    recogniser: Arc<dyn Recogniser>,
    options: TranscribeOptions,
    dropped: CancellationToken,
) -> Result<RecognisedSpeech, TranscribeError> {
    let lesson = Arc::new(recogniser.learn(&options.vocabulary)?);
    let work = ChunkWork { recogniser, options, lesson, dropped };
    let mut recognised = Recognised::default();
    while let Some(next) = segments.blocking_recv() {
        work.options.turn.wait_blocking(&work.dropped);
        if work.dropped.is_cancelled() {
            break;
        }
        match next {
            Work::Recognise(channel, segment) => {
                let chunk = work.recognise(channel, &segment)?;
                recognised.add(channel, &segment, chunk, &work)?;
            }
            Work::Split(parting) => recognised.split(parting)?,
        }
    }
    let Recognised { spoken, doubts, has_estimated_times, is_written, .. } = recognised;
    let unknown = work.lesson.unknown.clone();
    Ok(RecognisedSpeech {
        transcript: utterances::transcript(spoken),
        channels: 0,
        unknown,
        doubts,
        has_estimated_times,
        is_written,
    })
}
