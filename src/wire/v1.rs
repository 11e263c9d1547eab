//! The first version's one call, answered from a second-version result (interface, "Versioning" 2 to 4).

use crate::wire::result::{ResultBody, ResultMetadata, WireUtterance, WireWord};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The path for sound.
pub const AUDIO_PATH: &str = "/audio/text/audio-transcription";

/// The path for video; the same call with parts of other names.
pub const VIDEO_PATH: &str = "/video/text/video-transcription";

/// What `prediction` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputFormat {
    /// A list of utterances.
    #[default]
    Json,
    /// Subtitles as one text.
    Srt,
    /// Subtitles as one text.
    Vtt,
    /// The words alone as one text.
    Text,
}

impl OutputFormat {
    /// Every word that [`OutputFormat::parse`] knows.
    pub const WORDS: [&str; 5] = ["json", "srt", "vtt", "plain", "txt"];

    /// From the first version's word.
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

/// The first version's answer.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionAnswer")]
pub struct V1Answer {
    /// What was said.
    prediction: Prediction,
    /// What was said and what is known beside it.
    prediction_raw: Raw,
}

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionPrediction")]
#[serde(untagged)]
enum Prediction {
    Utterances(Vec<Utterance>),
    /// Subtitles, or the words alone.
    Text(String),
}

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionRaw")]
struct Raw {
    metadata: Metadata,
    transcription: Vec<Utterance>,
}

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionMetadata")]
struct Metadata {
    /// Seconds.
    total_transcription_time: Option<f64>,
    provided_file_metadata: FileMetadata,
}

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionFileMetadata")]
struct FileMetadata {
    /// Seconds.
    duration: Option<f64>,
    channels: Option<u32>,
    /// The same under the name that answers had.
    nb_channels: Option<u32>,
}

/// Times in seconds; -1 where nothing is known of the confidence.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionUtterance")]
struct Utterance {
    words: Vec<Word>,
    transcription: String,
    language: String,
    time_begin: f64,
    time_end: f64,
    /// `channel_0` and so on.
    channel: String,
    confidence: f64,
    /// Absent where nobody was told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    speaker: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionWord")]
struct Word {
    word: String,
    time_begin: f64,
    time_end: f64,
    confidence: f64,
}

/// The first version's answer, made from a second-version result.
pub fn to_v1_answer(result: &ResultBody, format: OutputFormat) -> V1Answer {
    let said = result.transcription.clone().unwrap_or_default();
    let utterances: Vec<Utterance> = said.utterances.iter().map(Utterance::of).collect();
    let subtitles = |wanted: &str| {
        let found = said.subtitles.iter().flatten().find(|one| one.format == wanted);
        Prediction::Text(found.map(|one| one.subtitles.clone()).unwrap_or_default())
    };
    let prediction = match format {
        OutputFormat::Json => Prediction::Utterances(utterances.clone()),
        OutputFormat::Srt => subtitles("srt"),
        OutputFormat::Vtt => subtitles("vtt"),
        OutputFormat::Text => Prediction::Text(said.full_transcript),
    };
    V1Answer { prediction, prediction_raw: Raw { metadata: Metadata::of(&result.metadata), transcription: utterances } }
}

impl Metadata {
    fn of(said: &ResultMetadata) -> Self {
        let channels = said.number_of_distinct_channels;
        Self {
            total_transcription_time: said.transcription_time,
            provided_file_metadata: FileMetadata { duration: said.audio_duration, channels, nb_channels: channels },
        }
    }
}

impl Utterance {
    fn of(new: &WireUtterance) -> Self {
        Self {
            words: new.words.iter().map(Word::of).collect(),
            transcription: new.text.clone(),
            language: new.language.clone(),
            time_begin: new.start,
            time_end: new.end,
            channel: format!("channel_{}", new.channel.unwrap_or(0)),
            confidence: new.confidence.unwrap_or(-1.0),
            speaker: new.speaker.clone(),
        }
    }
}

impl Word {
    fn of(new: &WireWord) -> Self {
        let confidence = new.confidence.unwrap_or(-1.0);
        Self { word: new.word.clone(), time_begin: new.start, time_end: new.end, confidence }
    }
}
