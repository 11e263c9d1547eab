//! Transcribes a file: decodes it, cuts it at silences, recognises the segments, and joins their words.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::channel_dedup::{ChannelGroups, Parting};
use super::recogniser::{LearntVocabulary, RecognisedWord, Recogniser, RecogniserError, Term};
use super::turn::TurnSignal;
use crate::blocking;
use crate::domain::time_span::time_span;
use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::media::decode::{DecodeError, Decoder, INACTIVITY, SAMPLE_RATE};
use crate::media::length;
use crate::media::speech_segments::{Segment, Segmenter};

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
    /// Whether equal channels are recognised separately all the same.
    pub every_channel: bool,
    /// A longer recording is refused: at the start by its declared length, or when this much was decoded.
    pub longest: Duration,
    /// Pauses and resumes the transcription.
    pub turn: TurnSignal,
}

impl Default for TranscribeOptions {
    fn default() -> Self {
        Self { vocabulary: Vec::new(), every_channel: false, longest: LONGEST, turn: TurnSignal::default() }
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
    let (vocabulary, turn) = (options.vocabulary.clone(), options.turn.clone());
    let recognising = blocking::spawn(move || recognise_segments(receiver, &*recogniser, &vocabulary, &turn, &dropped));
    let cut = cut(decoder, &options, sender).await;
    let _guard = cut.is_ok().then_some(guard);
    // If the recogniser failed, nothing received the segments: its error says more.
    let (transcript, unknown) = recognising.await.map_err(|_| TranscribeError::Stopped)??;
    let channels = u32::try_from(cut?).unwrap_or(u32::MAX);
    Ok(RecognisedSpeech { transcript, channels, unknown })
}

/// How many segments are decoded ahead of the recogniser, each at most 1 MB.
const WAITING_SEGMENTS: usize = 2;

/// How many seconds without a word end an utterance.
const PAUSE: f64 = 0.6;

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
    sender: mpsc::Sender<Work>,
) -> Result<usize, TranscribeError> {
    let count = decoder.channels();
    let mut channels =
        if options.every_channel { ChannelGroups::all_distinct(count) } else { ChannelGroups::all_equal(count) };
    let mut segmenters: BTreeMap<usize, Segmenter> =
        channels.leaders().into_iter().map(|channel| (channel, Segmenter::new())).collect();
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

/// What was recognised on one channel so far.
#[derive(Default, Clone)]
struct ChannelSpeech {
    utterances: Vec<Utterance>,
    /// Words since the last pause.
    open: Vec<RecognisedWord>,
}

impl ChannelSpeech {
    fn add(&mut self, heard: Vec<RecognisedWord>, channel: usize, language: &str) {
        for word in heard {
            if self.open.last().is_some_and(|before| word.start - before.end > PAUSE) {
                self.end_utterance(channel, language);
            }
            self.open.push(word);
        }
    }

    fn end_utterance(&mut self, channel: usize, language: &str) {
        let channel = u32::try_from(channel).unwrap_or(u32::MAX);
        let words = std::mem::take(&mut self.open);
        self.utterances.extend((!words.is_empty()).then(|| utterance(&words, channel, language)));
    }

    /// Returns a copy for another channel.
    fn copy_for(&self, channel: usize) -> Self {
        let mut parted = self.clone();
        let channel = u32::try_from(channel).unwrap_or(u32::MAX);
        parted.utterances.iter_mut().for_each(|utterance| utterance.channel = channel);
        parted
    }

    fn size(&self) -> Size {
        let ended = self.utterances.iter().flat_map(|utterance| &utterance.words).map(|word| word.text.len());
        ended.chain(self.open.iter().map(|heard| heard.word.len())).fold(Size::default(), Size::add_word)
    }
}

/// An amount of recognised text.
#[derive(Default, Clone, Copy)]
struct Size {
    words: usize,
    bytes: usize,
}

impl Size {
    fn add_word(self, bytes: usize) -> Self {
        Self { words: self.words + 1, bytes: self.bytes.saturating_add(bytes) }
    }

    fn grow(&mut self, more: Self) -> Result<(), TranscribeError> {
        self.words = self.words.saturating_add(more.words);
        self.bytes = self.bytes.saturating_add(more.bytes);
        if self.words > MOST_WORDS || self.bytes > MOST_TEXT { Err(TranscribeError::TooManyWords) } else { Ok(()) }
    }
}

/// Recognises segments until the work ends or the transcription is dropped. Runs on a thread that may block.
fn recognise_segments(
    mut work: mpsc::Receiver<Work>,
    recogniser: &dyn Recogniser,
    vocabulary: &[Term],
    turn: &TurnSignal,
    dropped: &CancellationToken,
) -> Result<(Transcript, Vec<String>), TranscribeError> {
    let language = recogniser.languages().first().copied().unwrap_or_default();
    let lesson = Arc::new(recogniser.learn(vocabulary)?);
    let (mut spoken, mut size) = (BTreeMap::<usize, ChannelSpeech>::new(), Size::default());
    while let Some(work) = work.blocking_recv() {
        turn.wait_blocking(dropped);
        if dropped.is_cancelled() {
            break;
        }
        match work {
            Work::Recognise(channel, segment) => {
                let heard = recognise(recogniser, &segment, &lesson)?;
                size.grow(heard.iter().map(|heard| heard.word.len()).fold(Size::default(), Size::add_word))?;
                spoken.entry(channel).or_default().add(heard, channel, language);
            }
            Work::Split(Parting { from, to }) => {
                let so_far = spoken.get(&from).map(|from| from.copy_for(to)).unwrap_or_default();
                size.grow(so_far.size())?;
                spoken.insert(to, so_far);
            }
        }
    }
    Ok((transcript(spoken, language), lesson.unknown.clone()))
}

/// Returns the segment's words, with times in seconds from the recording's start.
fn recognise(
    recogniser: &dyn Recogniser,
    segment: &Segment,
    lesson: &Arc<LearntVocabulary>,
) -> Result<Vec<RecognisedWord>, RecogniserError> {
    let begin = segment.start_sample as f64 / f64::from(SAMPLE_RATE);
    let heard = recogniser.recognise_with(&segment.samples, lesson)?.into_iter();
    Ok(heard.map(|heard| RecognisedWord { start: heard.start + begin, end: heard.end + begin, ..heard }).collect())
}

/// Joins all channels in order of time.
fn transcript(spoken: BTreeMap<usize, ChannelSpeech>, language: &str) -> Transcript {
    let mut utterances: Vec<Utterance> = Vec::new();
    for (channel, mut spoken) in spoken {
        spoken.end_utterance(channel, language);
        utterances.append(&mut spoken.utterances);
    }
    utterances.sort_by(|one, other| one.start.total_cmp(&other.start));
    let languages = utterances.first().map(|first| first.language.clone());
    Transcript { languages: languages.into_iter().collect(), utterances }
}

/// Makes an utterance of at least one word.
fn utterance(heard: &[RecognisedWord], channel: u32, language: &str) -> Utterance {
    let words: Vec<Word> = heard.iter().enumerate().map(|(at, heard)| word(at, heard)).collect();
    let text: String = words.iter().map(|word| word.text.as_str()).collect();
    let sum: f64 = words.iter().map(|word| word.confidence).sum();
    Utterance {
        text: text.trim().to_owned(),
        start: words.first().map_or(0.0, |word| word.start),
        end: words.last().map_or(0.0, |word| word.end),
        confidence: rounded(sum / words.len() as f64, 2),
        channel,
        speaker: None,
        language: language.to_owned(),
        words,
    }
}

fn word(at: usize, heard: &RecognisedWord) -> Word {
    Word {
        text: format!(" {}", cased(at == 0, &heard.word)),
        start: rounded(heard.start, 3),
        end: rounded(heard.end, 3),
        confidence: rounded(heard.confidence, 2),
    }
}

/// The recogniser returns lower case: an utterance's first letter and the word "I" (also "I'm" and the like) become
/// upper case. A word of the vocabulary that contains a capital stays as it was given.
fn cased(first: bool, word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(letter) if (first && !word.contains(char::is_uppercase)) || word == "i" || word.starts_with("i'") => {
            letter.to_uppercase().chain(letters).collect()
        }
        _ => word.to_owned(),
    }
}

fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript<const N: usize>(channels: [(usize, Vec<RecognisedWord>); N]) -> Transcript {
        let mut spoken = BTreeMap::<usize, ChannelSpeech>::new();
        for (channel, heard) in channels {
            spoken.entry(channel).or_default().add(heard, channel, "en");
        }
        super::transcript(spoken, "en")
    }

    fn heard(word: &str, start: f64, end: f64, confidence: f64) -> RecognisedWord {
        RecognisedWord { word: word.to_owned(), start, end, confidence }
    }

    #[test]
    fn a_long_pause_ends_an_utterance() {
        let words = vec![
            heard("now", 1.0, 1.23456, 0.911),
            heard("i'm", 1.3, 1.5, 0.5),
            heard("i", 1.6, 1.7, 0.5),
            heard("in", 2.31, 2.5, 1.0),
        ];
        let transcript = transcript([(0, words)]);
        assert_eq!(transcript.text(), "Now I'm I In");
        let [first, second] = &transcript.utterances[..] else { panic!("{transcript:?}") };
        assert_eq!((first.start, first.end, first.confidence), (1.0, 1.7, 0.64));
        assert_eq!((first.words[0].end, first.words[0].confidence), (1.235, 0.91));
        assert_eq!((second.start, second.words[0].text.as_str()), (2.31, " In"));
        assert_eq!(transcript.languages, ["en"]);
    }

    #[test]
    fn only_the_word_i_is_upper_case_inside() {
        let words = ["in", "i", "i'll", "it", "élan"].map(|word| cased(false, word));
        assert_eq!(words, ["in", "I", "I'll", "it", "élan"]);
        assert_eq!(cased(true, "élan"), "Élan");
        assert_eq!(cased(true, ""), "");
        assert_eq!(cased(true, "iPhone"), "iPhone");
    }

    #[test]
    fn channels_are_told_in_order_of_time() {
        let left = vec![heard("one", 0.0, 0.5, 1.0), heard("three", 4.0, 4.5, 1.0)];
        let transcript = transcript([(0, left), (2, vec![heard("two", 2.0, 2.5, 1.0)])]);
        let told: Vec<(&str, u32)> = transcript.utterances.iter().map(|u| (u.text.as_str(), u.channel)).collect();
        assert_eq!(told, [("One", 0), ("Two", 2), ("Three", 0)]);
    }

    #[test]
    fn nothing_heard_is_an_empty_transcript() {
        assert_eq!(transcript([]), Transcript::default());
    }
}
