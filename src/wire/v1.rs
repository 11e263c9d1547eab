//! The single call of the first version, answered from a result of the second version (interface, "Versioning" 2 to 4).

use crate::wire::enrichment::{Either, Envelope};
use crate::wire::result::{ResultBody, ResultMetadata, WireUtterance, WireWord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The path for audio files.
pub const AUDIO_PATH: &str = "/audio/text/audio-transcription";

/// The path for video files: the same call with other part names.
pub const VIDEO_PATH: &str = "/video/text/video-transcription";

/// The content of `prediction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// Response to a call of the first version.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionResponse")]
#[serde(untagged)]
pub enum V1Response {
    /// The result; the connection was held open until it came.
    Answer(V1Answer),
    /// The call names a `webhook_url`, which receives the result.
    Accepted(V1Accepted),
}

/// Response to a call with a `webhook_url`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionAccepted")]
pub struct V1Accepted {
    /// Whether the service could connect to the host of `webhook_url`. If it could not, it still calls it at the end.
    pub is_webhook_reachable: bool,
    /// Debug id; the call of the webhook has the same.
    pub request_id: String,
    /// The address that receives the result.
    pub webhook_url: String,
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
    /// The parameters of the call that had no effect, or less than was requested. Empty if all was done.
    // The public service has no such field.
    not_done: Vec<NotDone>,
}

/// A parameter that had no effect, or less than was requested.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "FirstVersionNotDone")]
struct NotDone {
    /// Name of the parameter.
    parameter: String,
    reason: String,
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
    let metadata = Metadata { not_done: not_done(result), ..Metadata::of(&result.metadata) };
    V1Answer { prediction, prediction_raw: Raw { metadata, transcription: utterances } }
}

fn not_done(result: &ResultBody) -> Vec<NotDone> {
    let enrichments = &result.enrichments;
    let failed = [
        ("diarization", enrichments.diarization.as_ref().and_then(failure)),
        ("translation", enrichments.translation.as_ref().and_then(failure)),
    ];
    let failed = failed.into_iter().filter_map(|(name, reason)| Some((name, reason?)));
    let ineffective = &result.metadata.parameters_without_effect;
    let ineffective = ineffective.iter().map(|one| (one.parameter.as_str(), one.reason.as_str()));
    let mut all: Vec<NotDone> = Vec::new();
    for (name, reason) in failed.chain(ineffective) {
        let parameter = v1_name(name).to_owned();
        if all.iter().all(|known| known.parameter != parameter) {
            let reason = reason.replace("`diarization`", "`toggle_diarization`");
            all.push(NotDone { parameter, reason: reason.replace("`translation`", "`toggle_direct_translate`") });
        }
    }
    all
}

fn failure<T>(envelope: &Either<Envelope<T>>) -> Option<&str> {
    match envelope {
        Either::Known(Envelope { success: false, error, .. }) => {
            Some(error.as_ref().map_or("it failed", |error| error.message.as_str()))
        }
        Either::Known(_) | Either::Other(_) => None,
    }
}

/// Returns the name that a parameter of the second version has in the first.
fn v1_name(parameter: &str) -> &str {
    match parameter {
        "diarization" => "toggle_diarization",
        "diarization_config" => "diarization_num_speakers, diarization_min_speakers, diarization_max_speakers",
        "translation" => "toggle_direct_translate",
        "translation_config" => "target_translation_language",
        "detect_language" | "enable_code_switching" => "language_behaviour",
        "context_prompt" => "transcription_hint",
        "audio_enhancer" => "toggle_noise_reduction",
        "accurate_words_timestamps" => "toggle_accurate_words_timestamps",
        other => other,
    }
}

impl Metadata {
    fn of(metadata: &ResultMetadata) -> Self {
        let channels = metadata.number_of_distinct_channels;
        Self {
            total_transcription_time: metadata.transcription_time,
            provided_file_metadata: FileMetadata { duration: metadata.audio_duration, channels, nb_channels: channels },
            not_done: Vec::new(),
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
