//! The single call of the first version, answered from a result of the second version (interface, "Versioning" 2 to 4).

use crate::wire::result::{ResultBody, ResultMetadata, WireUtterance, WireWord};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The path for audio files.
pub const AUDIO_PATH: &str = "/audio/text/audio-transcription";

/// The path for video files: the same call with other part names.
pub const VIDEO_PATH: &str = "/video/text/video-transcription";

/// The content of `prediction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputFormat {
    /// A list of utterances.
    #[default]
    Json,
    /// Subtitles as one text.
    Srt,
    /// Subtitles as one text.
    Vtt,
    /// The text alone.
    Text,
}

impl OutputFormat {
    /// All names that [`OutputFormat::parse`] accepts.
    pub const WORDS: [&str; 5] = ["json", "srt", "vtt", "plain", "txt"];

    /// Parses the name in the first version.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "json" => Self::Json,
            "srt" => Self::Srt,
            "vtt" => Self::Vtt,
            "txt" | "plain" => Self::Text,
            _ => return None,
        })
    }
}

/// Answer of the first version.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionAnswer")]
pub struct V1Answer {
    /// A list of utterances, or one text if `output_format` is not `json`.
    prediction: Prediction,
    /// The utterances in any case, with their metadata.
    prediction_raw: Raw,
}

/// A transcript in the requested `output_format`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionPrediction")]
#[serde(untagged)]
enum Prediction {
    /// Utterances, in order of time: `json`.
    Utterances(Vec<Utterance>),
    /// Subtitles (`srt`, `vtt`) or the text alone (`txt`, `plain`).
    Text(String),
}

/// A transcript with its metadata.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionRaw")]
struct Raw {
    metadata: Metadata,
    /// Utterances, in order of time.
    transcription: Vec<Utterance>,
}

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionMetadata")]
struct Metadata {
    /// Seconds from the creation to the end of the transcription; null if unknown.
    total_transcription_time: Option<f64>,
    /// Properties of the audio.
    provided_file_metadata: FileMetadata,
}

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionFileMetadata")]
struct FileMetadata {
    /// Duration of the audio in seconds; null if unknown.
    duration: Option<f64>,
    /// Number of different channels; null if unknown.
    channels: Option<u32>,
    /// The same number as `channels`, under an older name.
    nb_channels: Option<u32>,
}

/// An utterance. Times are in seconds from the start of the audio.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionUtterance")]
struct Utterance {
    words: Vec<Word>,
    /// Text of the utterance.
    transcription: String,
    /// Code of the language; empty if unknown.
    language: String,
    time_begin: f64,
    time_end: f64,
    /// Name of the channel: `channel_0`, `channel_1` and so on.
    channel: String,
    /// Confidence from 0 to 1; -1 if unknown.
    confidence: f64,
    /// Index of the speaker, in order of appearance. Absent without diarization.
    #[serde(skip_serializing_if = "Option::is_none")]
    speaker: Option<Value>,
}

/// A word. Times are in seconds from the start of the audio.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionWord")]
struct Word {
    /// The word, with the space before it.
    word: String,
    time_begin: f64,
    time_end: f64,
    /// Confidence from 0 to 1; -1 if unknown.
    confidence: f64,
}

/// Converts a result of the second version into the answer of the first version.
pub fn to_v1_answer(result: &ResultBody, format: OutputFormat) -> V1Answer {
    let transcription = result.transcription.clone().unwrap_or_default();
    let utterances: Vec<Utterance> = transcription.utterances.iter().map(Utterance::of).collect();
    let subtitles = |wanted: &str| {
        let file = transcription.subtitles.iter().flatten().find(|file| file.format == wanted);
        Prediction::Text(file.map(|file| file.subtitles.clone()).unwrap_or_default())
    };
    let prediction = match format {
        OutputFormat::Json => Prediction::Utterances(utterances.clone()),
        OutputFormat::Srt => subtitles("srt"),
        OutputFormat::Vtt => subtitles("vtt"),
        OutputFormat::Text => Prediction::Text(transcription.full_transcript),
    };
    V1Answer { prediction, prediction_raw: Raw { metadata: Metadata::of(&result.metadata), transcription: utterances } }
}

impl Metadata {
    fn of(metadata: &ResultMetadata) -> Self {
        let channels = metadata.number_of_distinct_channels;
        Self {
            total_transcription_time: metadata.transcription_time,
            provided_file_metadata: FileMetadata { duration: metadata.audio_duration, channels, nb_channels: channels },
        }
    }
}

impl Utterance {
    fn of(utterance: &WireUtterance) -> Self {
        Self {
            words: utterance.words.iter().map(Word::of).collect(),
            transcription: utterance.text.clone(),
            language: utterance.language.clone(),
            time_begin: utterance.start,
            time_end: utterance.end,
            channel: format!("channel_{}", utterance.channel.unwrap_or(0)),
            confidence: utterance.confidence.unwrap_or(-1.0),
            speaker: utterance.speaker.clone(),
        }
    }
}

impl Word {
    fn of(word: &WireWord) -> Self {
        let confidence = word.confidence.unwrap_or(-1.0);
        Self { word: word.word.clone(), time_begin: word.start, time_end: word.end, confidence }
    }
}
