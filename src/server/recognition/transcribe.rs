//! Transcribes a file: decodes it, cuts it at silences, recognises the segments, and joins their words.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::channel_dedup::ChannelGroups;
use super::chunk_log::ChunkLog;
use super::chunk_review::SpeechDoubt;
use super::progress::Progress;
use super::recognise::{self, SegmentWork};
use super::recognised::{MOST_TEXT, MOST_WORDS};
use super::recogniser::{Recogniser, RecogniserError, Term};
use super::spare_places::SparePlaces;
use super::turn::TurnSignal;
use crate::domain::time_span::time_span;
use crate::domain::transcript::Transcript;
use crate::media::decode::{DecodeError, Decoder, INACTIVITY, SAMPLE_RATE};
use crate::media::length;
use crate::media::speech_segments::{CutRule, Segmenter};
use crate::review::UnreadSound;
use crate::server::diarization::speakers::SpeakerHints;
use crate::voice::speaker_voices::SpeakerVoice;

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

/// The options of a transcription.
#[derive(Clone)]
pub struct TranscribeOptions {
    pub vocabulary: Vec<Term>,
    /// The code of the language, if the client has named exactly one.
    pub language: Option<String>,
    /// What the client says about the recording, for recognisers that take such a text; may be empty.
    pub prompt: String,
    /// Tells the speakers apart, if given.
    pub speakers: Option<SpeakerHints>,
    /// Whether the voices of the speakers are kept, so that they can be compared with known ones.
    pub names_speakers: bool,
    /// Whether equal channels are recognised separately all the same.
    pub every_channel: bool,
    /// A longer recording is refused: at the start by its declared length, or when this much was decoded.
    pub longest: Duration,
    /// Pauses and resumes the transcription.
    pub turn: TurnSignal,
    /// Keeps what is recognised, and has what was recognised before the transcription was interrupted.
    pub log: Option<Arc<ChunkLog>>,
    /// Places in which more chunks may be recognised at once.
    pub spare: SparePlaces,
    /// Says how far the recognition is.
    pub progress: Progress,
}

impl Default for TranscribeOptions {
    fn default() -> Self {
        Self {
            vocabulary: Vec::new(),
            language: None,
            prompt: String::new(),
            speakers: None,
            names_speakers: false,
            every_channel: false,
            longest: LONGEST,
            turn: TurnSignal::default(),
            log: None,
            spare: SparePlaces::default(),
            progress: Progress::default(),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecognisedSpeech {
    /// The transcript of all channels, in order of time; empty for silence.
    pub transcript: Transcript,
    /// The number of distinct channels, at least 1.
    pub channels: u32,
    /// The length of the decoded sound in seconds.
    pub seconds: f64,
    /// What could not be decoded.
    pub unread: UnreadSound,
    /// The vocabulary's words that the recogniser could not learn.
    pub unknown: Vec<String>,
    /// Passages that were probably not recognised as they were said, in no order.
    pub doubts: Vec<SpeechDoubt>,
    /// Whether times of words are estimated.
    pub has_estimated_times: bool,
    /// Whether the recogniser wrote case and punctuation. Its confidences are then its own.
    pub is_written: bool,
    /// How long telling the speakers apart took; `None` if they were not told apart. They are not in more than eight
    /// hours of speech.
    pub speakers_took: Option<Duration>,
    /// The voices of the speakers, if they are compared with known ones.
    pub voices: Vec<SpeakerVoice>,
}

/// Transcribes the first audio track of `path`: each channel separately, equal ones once.
///
/// Memory grows with the number of words, and with the speech whose speakers are told apart (230 MB for eight hours), not
/// with the file. The segments of a file are recognised in order, several at
/// once while places are spare. When this future is dropped, ffmpeg ends at once, and each thread ends its current
/// segment as soon as its recogniser can, and nobody waits for it. While it is paused, ffmpeg keeps what it has, and no further segment is begun.
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
    let _guard = dropped.clone().drop_guard();
    let rule = recogniser.cut_rule();
    let cutting = async {
        let cut = cut(decoder, &options, rule, sender).await;
        cut.inspect_err(|_| dropped.cancel())
    };
    let recognising = recognise::recognise_all(receiver, recogniser, options.clone(), dropped.clone());
    let (cut, recognised) = tokio::join!(cutting, recognising);
    let decoded = match (cut, recognised.as_ref().err()) {
        (Err(error), None | Some(TranscribeError::Recogniser(RecogniserError::Cancelled))) => return Err(error),
        (cut, _) => cut.unwrap_or_default(),
    };
    // If the recogniser failed, nothing received the segments: its error says more.
    let DecodedAudio { channels, samples, unread } = decoded;
    let seconds = samples as f64 / f64::from(SAMPLE_RATE);
    Ok(RecognisedSpeech { channels: u32::try_from(channels).unwrap_or(u32::MAX), seconds, unread, ..recognised? })
}

/// How many segments are decoded ahead of the recogniser, each at most 1 MB, or 2 MB for each minute of a chunk.
const WAITING_SEGMENTS: usize = 2;

/// What of a file was decoded.
#[derive(Default)]
struct DecodedAudio {
    /// The number of distinct channels.
    channels: usize,
    /// Of each channel.
    samples: u64,
    unread: UnreadSound,
}

/// Decodes the file and sends its segments.
async fn cut(
    mut decoder: Decoder,
    options: &TranscribeOptions,
    rule: CutRule,
    sender: mpsc::Sender<SegmentWork>,
) -> Result<DecodedAudio, TranscribeError> {
    let count = decoder.channels();
    let mut channels =
        if options.every_channel { ChannelGroups::all_distinct(count) } else { ChannelGroups::all_equal(count) };
    let mut segmenters: BTreeMap<usize, Segmenter> =
        channels.leaders().into_iter().map(|channel| (channel, Segmenter::with_overlap(rule))).collect();
    let send = async |work| sender.send(work).await.map_err(|_| TranscribeError::Stopped);
    let most = options.longest.as_secs().saturating_mul(u64::from(SAMPLE_RATE));
    let mut samples = 0;
    while let Some(planes) = decoder.next().await? {
        samples += planes.first().map_or(0, Vec::len) as u64;
        if samples > most {
            return Err(TranscribeError::TooLong(options.longest));
        }
        // Hours of silence are decoded without a wait: this lets other tasks run in between.
        tokio::task::yield_now().await;
        options.turn.wait().await;
        for parting in channels.update(&planes) {
            let so_far = segmenters.get(&parting.from).cloned().unwrap_or_default();
            segmenters.insert(parting.to, so_far);
            send(SegmentWork::Split(parting)).await?;
        }
        for (channel, segmenter) in &mut segmenters {
            for segment in segmenter.push(&planes[*channel]) {
                send(SegmentWork::Recognise(*channel, segment)).await?;
            }
        }
    }
    let channels = segmenters.len();
    for (channel, segmenter) in segmenters {
        if let Some(segment) = segmenter.finish() {
            send(SegmentWork::Recognise(channel, segment)).await?;
        }
    }
    Ok(DecodedAudio { channels, samples, unread: decoder.unread().clone() })
}
