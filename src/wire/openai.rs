//! The bodies of OpenAI's transcription interface, as this service answers.

use schemars::JsonSchema;
use serde::Serialize;

/// The path of transcriptions.
pub const TRANSCRIPTIONS_PATH: &str = "/v1/audio/transcriptions";

/// The path of translations into English.
pub const TRANSLATIONS_PATH: &str = "/v1/audio/translations";

/// The path of the list of models.
pub const MODELS_PATH: &str = "/v1/models";

/// The name of the multipart part with the file.
pub const FILE_PART: &str = "file";

/// The models that a request may name beside the recognisers of a service. All are its default recogniser. The other
/// names are those that OpenAI's clients send where their user cannot set one.
pub const MODELS: [&str; 3] = ["scribed", "whisper-1", "gpt-transcribe"];

/// The values of `response_format` for a transcription; a translation has no `diarized_json`.
pub const FORMATS: [&str; 6] = ["json", "text", "srt", "verbose_json", "vtt", "diarized_json"];

/// Body of an answer with a status from 400 to 599.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct OpenAiErrorBody {
    pub error: OpenAiErrorDetail,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct OpenAiErrorDetail {
    /// What is wrong, in English.
    pub message: String,
    /// Kind of the error, such as `invalid_request_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The field that is wrong; null if it is none, or not one alone.
    pub param: Option<String>,
    /// Name of the error, such as `model_not_found`; null if it has none.
    pub code: Option<String>,
}

/// Amount of audio.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct OpenAiUsage {
    /// `duration`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Duration of the audio in seconds.
    pub seconds: f64,
}

impl OpenAiUsage {
    /// Returns the amount of a recording of so many seconds.
    pub fn of_seconds(seconds: f64) -> Self {
        Self { kind: "duration", seconds }
    }
}

/// A language that was spoken.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct OpenAiLanguage {
    /// Code of the language, such as `en`.
    pub code: String,
}

/// A transcript in the format `json`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct OpenAiText {
    pub text: String,
    /// The languages that were spoken; empty if nothing was said.
    pub languages: Vec<OpenAiLanguage>,
    pub usage: OpenAiUsage,
}

/// A transcript in the format `verbose_json`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct OpenAiVerbose {
    /// `transcribe` or `translate`.
    pub task: &'static str,
    /// Name of the language in English, such as `english`.
    pub language: String,
    /// Duration of the audio in seconds.
    pub duration: f64,
    pub text: String,
    /// Words, in order of time. Present if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<Vec<OpenAiWord>>,
    /// Segments, in order of time. Present unless only words are requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<Vec<OpenAiSegment>>,
    pub usage: OpenAiUsage,
}

/// A word. Times are in seconds from the start of the audio.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct OpenAiWord {
    pub word: String,
    pub start: f64,
    pub end: f64,
}

/// An utterance. Times are in seconds from the start of the audio.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct OpenAiSegment {
    /// Counted from 0.
    pub id: usize,
    /// Always 0: the recogniser does not seek.
    pub seek: u32,
    pub start: f64,
    pub end: f64,
    /// Text of the segment, with the space before it.
    pub text: String,
    /// Always empty: the recogniser has no tokens.
    pub tokens: [u32; 0],
    /// Always 0.
    pub temperature: f64,
    /// Logarithm of the mean confidence of the words.
    pub avg_logprob: f64,
    /// How much shorter zlib makes the text, as a factor.
    pub compression_ratio: f64,
    /// Always 0: a segment has words, and the recogniser gives no probability that it has none.
    pub no_speech_prob: f64,
}

/// A transcript in the format `diarized_json`.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct OpenAiDiarized {
    /// `transcribe`.
    pub task: &'static str,
    /// Duration of the audio in seconds.
    pub duration: f64,
    pub text: String,
    /// Segments, in order of time.
    pub segments: Vec<OpenAiSpeakerSegment>,
    pub usage: OpenAiUsage,
}

/// An utterance with its speaker. Times are in seconds from the start of the audio.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct OpenAiSpeakerSegment {
    /// `transcript.text.segment`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `seg_0`, `seg_1` and so on.
    pub id: String,
    pub start: f64,
    pub end: f64,
    pub text: String,
    /// The channel, as `channel_0`: voices are not told apart.
    pub speaker: String,
}

/// An answer to a transcription or translation, where it is JSON.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum OpenAiTranscript {
    Text(OpenAiText),
    Verbose(OpenAiVerbose),
    Diarized(OpenAiDiarized),
}

/// An event of a streamed answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum OpenAiEvent {
    /// The next part of the text.
    #[serde(rename = "transcript.text.delta")]
    Delta { delta: String },
    /// The whole text.
    #[serde(rename = "transcript.text.done")]
    Done { text: String, languages: Vec<OpenAiLanguage> },
}

/// A model.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct OpenAiModel {
    pub id: String,
    /// `model`.
    pub object: &'static str,
    /// Always 0: it is not known.
    pub created: u64,
    /// `scribed`.
    pub owned_by: &'static str,
}

impl OpenAiModel {
    /// Returns the model of this name, if there is one. `recognisers` are the names of those that requests can name.
    pub fn find(id: &str, recognisers: &[&str]) -> Option<Self> {
        let mut known = MODELS.iter().chain(recognisers.iter());
        let id = (*known.find(|known| **known == id)?).to_owned();
        Some(Self { id, object: "model", created: 0, owned_by: "scribed" })
    }
}

/// All models.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct OpenAiModels {
    /// `list`.
    pub object: &'static str,
    pub data: Vec<OpenAiModel>,
}

impl OpenAiModels {
    /// Returns the list of all models.
    pub fn all(recognisers: &[&str]) -> Self {
        let names = MODELS.iter().chain(recognisers.iter().filter(|name| !MODELS.contains(name)));
        Self { object: "list", data: names.filter_map(|name| OpenAiModel::find(name, recognisers)).collect() }
    }
}
