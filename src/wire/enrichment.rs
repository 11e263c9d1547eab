//! Enrichments: what a result contains beside the transcript (interface, "Result object", feature envelopes).
//!
//! For some of them the interface and the public service use different shapes ([`Shapes`]). Every shape is read and
//! kept: a paid result must not be lost because an enrichment has an unexpected shape.

use crate::wire::result::WireUtterance;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which shapes the embedded service writes where the interface and the public service differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shapes {
    /// Those of the interface: entities are a string under `entity`.
    #[default]
    Interface,
    /// Those of the public service today: entities are objects under `results`, and absent sentiments or speakers are
    /// an empty text or list, not null.
    Current,
}

/// A value of a known shape, or whatever else came.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Either<T> {
    /// Of a shape that the interface or the public service has.
    Known(T),
    /// Any other shape, kept as received. Never written by scribed.
    #[schemars(skip)]
    Other(Value),
}

/// The wrapper of each enrichment's result.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// Whether it was done.
    pub success: bool,
    /// Whether there is nothing in it.
    #[serde(default)]
    pub is_empty: bool,
    /// Seconds; some answers do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_time: Option<f64>,
    /// Why it was not done; null when it was.
    #[serde(default)]
    pub error: Option<EnvelopeError>,
    /// The payload; null when it was not done.
    #[serde(default = "Option::<T>::default")]
    pub results: Option<T>,
    /// `entity`, and what the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Why an enrichment was not done.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct EnvelopeError {
    /// As an HTTP status.
    pub status_code: u16,
    /// A kind, such as `NotImplemented`.
    pub exception: String,
    /// In words.
    pub message: String,
}

/// Every enrichment of a result, each present when it was asked for.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the names are the interface's own
pub struct Enrichments {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation: Option<Either<Envelope<Vec<Translated>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarization: Option<Either<Envelope<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moderation: Option<Either<Envelope<String>>>,
    /// The interface has its payload under `entity`, a string; the public service under `results`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named_entity_recognition: Option<Either<Envelope<Vec<Entity>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_consistency: Option<Either<Envelope<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker_reidentification: Option<Either<Envelope<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_data_extraction: Option<Either<Envelope<String>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentiment_analysis: Option<Either<Envelope<Sentiments>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_to_llm: Option<Either<Envelope<Vec<Envelope<Answered>>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentences: Option<Either<Envelope<Vec<Sentence>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_mode: Option<Either<Envelope<Vec<String>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chapterization: Option<Either<Envelope<Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diarization: Option<Either<Envelope<Vec<WireUtterance>>>>,
    /// Of live transcriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Value>,
    /// What the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A translation into one language.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Translated {
    /// Why there is none into this language; null when there is.
    pub error: Option<EnvelopeError>,
    /// The utterances' texts joined by one space.
    pub full_transcript: String,
    /// The one that was translated into.
    pub languages: Vec<String>,
    /// In order of time.
    pub utterances: Vec<WireUtterance>,
    /// Present when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Envelope<Vec<Sentence>>>>")]
    pub sentences: Option<Value>,
    /// Present when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitles: Option<Vec<super::result::Subtitles>>,
    /// What the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A named entity, as the public service writes it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Entity {
    /// Such as `NAME`.
    pub entity_type: String,
    /// As it was said.
    pub text: String,
    /// Seconds.
    pub start: f64,
    /// Seconds.
    pub end: f64,
    /// What the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What is felt: on the wire a string (the interface), or a list (the public service).
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sentiments {
    /// Sentence by sentence.
    Each(Vec<Sentiment>),
    /// In words.
    Text(String),
    /// Any other shape, kept as received. Never written by scribed.@1173
    /// Any other shape, kept as received. Never written by scribed.
    #[schemars(skip)]
    Other(Value),
}

/// What is felt in a sentence, as the public service writes it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Sentiment {
    /// The sentence.
    pub text: String,
    /// `positive`, `negative`, `neutral`, `mixed` or `unknown`.
    pub sentiment: String,
    /// What the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A language model's answer to one prompt.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Answered {
    /// As it was asked.
    pub prompt: String,
    /// What was answered.
    pub response: String,
}

/// A sentence: on the wire a string (the interface), or an object (the public service).
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sentence {
    /// The text alone.
    Text(String),
    /// With what is known of it.
    Whole(WholeSentence),
    /// Of another shape; kept as it came. Never written here.
    #[schemars(skip)]
    Other(Value),
}

/// A sentence with what is known of it.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WholeSentence {
    /// As displayed, trimmed.
    pub sentence: String,
    /// Of the sentence, as of an utterance; its `text` is empty and not written.
    #[serde(flatten)]
    pub spoken: Map<String, Value>,
}

impl<T> Envelope<T> {
    /// Wraps the result of an enrichment that took this many seconds.
    pub fn completed(results: T, is_empty: bool, seconds: f64) -> Self {
        let (results, exec_time) = (Some(results), Some(seconds));
        Self { success: true, is_empty, exec_time, error: None, results, other: Map::new() }
    }

    /// Wraps the error of an enrichment that failed.
    pub fn failed(error: EnvelopeError) -> Self {
        let (error, exec_time) = (Some(error), Some(0.0));
        Self { success: false, is_empty: true, exec_time, error, results: None, other: Map::new() }
    }
}
