//! Enrichments: what a result contains beside the transcript (interface, "Result object", feature envelopes).
//!
//! For some of them the interface and the public service use different shapes ([`Shapes`]). Every shape is read and
//! kept: a paid result must not be lost because an enrichment has an unexpected shape.

use crate::wire::result::WireUtterance;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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

impl Shapes {
    /// Wraps entities. In the interface they are a text under `entity` (interface, "Result object"): here it is the list as
    /// JSON.
    pub fn entities(self, list: Vec<Entity>, seconds: f64) -> Envelope<Vec<Entity>> {
        let is_empty = list.is_empty();
        match self {
            Self::Current => Envelope::completed(list, is_empty, seconds),
            Self::Interface => {
                let text = Value::String(json!(list).to_string());
                let other = Map::from_iter([("entity".to_owned(), text)]);
                Envelope { results: None, other, ..Envelope::completed(Vec::new(), is_empty, seconds) }
            }
        }
    }

    /// Wraps chapters. In the interface they are an object, which has the list under `chapters`.
    pub fn chapters<C: Serialize>(self, list: Vec<C>, seconds: f64) -> Envelope<Value> {
        let is_empty = list.is_empty();
        let results = match self {
            Self::Interface => json!({ "chapters": list }),
            Self::Current => json!(list),
        };
        Envelope::completed(results, is_empty, seconds)
    }

    /// Wraps sentiments. In the interface they are a text: here it is the list as JSON.
    pub fn sentiments(self, list: Vec<Sentiment>, seconds: f64) -> Envelope<Sentiments> {
        let is_empty = list.is_empty();
        let results = match self {
            Self::Interface => Sentiments::Text(json!(list).to_string()),
            Self::Current => Sentiments::Each(list),
        };
        Envelope::completed(results, is_empty, seconds)
    }
}

/// Result of an enrichment.
// A shape that neither the interface nor the public service has is kept as received.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Either<T> {
    /// A shape of the interface or of the public service.
    Known(T),
    /// Any other shape, kept as received. Never written by scribed.
    #[schemars(skip)]
    Other(Value),
}

/// Common wrapper of the result of an enrichment.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// Whether the enrichment succeeded.
    pub success: bool,
    /// Whether the enrichment has no content.
    #[serde(default)]
    pub is_empty: bool,
    /// Processing time in seconds; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec_time: Option<f64>,
    /// Why the enrichment failed; null if it succeeded.
    #[serde(default)]
    pub error: Option<EnvelopeError>,
    /// Payload of the enrichment. If the enrichment failed: null, or an empty text or list.
    #[serde(default = "Option::<T>::default")]
    pub results: Option<T>,
    /// `entity`, and fields that the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Error of an enrichment.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct EnvelopeError {
    /// Kind of the error as an HTTP status code: 501 if the service does not support the enrichment.
    pub status_code: u16,
    /// Name of the error, such as `NotImplemented`.
    pub exception: String,
    /// Explanation of the error, in English.
    pub message: String,
}

/// Enrichments of a result. Each is present if it was requested.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the names are the interface's own
pub struct Enrichments {
    /// Translations, one for each target language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation: Option<Either<Envelope<Vec<Translated>>>>,
    /// Summary of the transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarization: Option<Either<Envelope<String>>>,
    /// Result of the parameter `moderation`: a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moderation: Option<Either<Envelope<String>>>,
    /// Named entities: a text under `entity`, or a list under `results`. The operator of the service chooses the form.
    // The interface has `entity`, the public service `results`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named_entity_recognition: Option<Either<Envelope<Vec<Entity>>>>,
    /// Result of the parameter `name_consistency`: a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_consistency: Option<Either<Envelope<String>>>,
    /// Result of the parameter `speaker_reidentification`: a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker_reidentification: Option<Either<Envelope<String>>>,
    /// Result of the parameter `structured_data_extraction`: a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_data_extraction: Option<Either<Envelope<String>>>,
    /// Sentiments of the sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentiment_analysis: Option<Either<Envelope<Sentiments>>>,
    /// Answers of a language model, one envelope for each prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_to_llm: Option<Either<Envelope<Vec<Envelope<Answered>>>>>,
    /// Sentences of the transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentences: Option<Either<Envelope<Vec<Sentence>>>>,
    /// Result of the parameter `display_mode`: a list of texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_mode: Option<Either<Envelope<Vec<String>>>>,
    /// Chapters of the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chapterization: Option<Either<Envelope<Value>>>,
    /// Utterances with their speakers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diarization: Option<Either<Envelope<Vec<WireUtterance>>>>,
    /// Messages of the session, in live transcriptions only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Value>,
    /// Fields that the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A translation into one language.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Translated {
    /// Why the translation into this language failed; null if it succeeded.
    pub error: Option<EnvelopeError>,
    /// Texts of all utterances, joined by one space.
    pub full_transcript: String,
    /// Code of the target language, as the only item.
    pub languages: Vec<String>,
    /// Translated utterances, in order of time.
    pub utterances: Vec<WireUtterance>,
    /// Translated sentences: a list with one envelope. Present if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Envelope<Vec<Sentence>>>>")]
    pub sentences: Option<Value>,
    /// Translated subtitles, one item for each requested format. Present if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitles: Option<Vec<super::result::Subtitles>>,
    /// How the translation was made, if no language model has made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translator: Option<Either<TranslatorNote>>,
    /// Fields that the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// How a translation was made without a language model.
// Not in the interface.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
pub struct TranslatorNote {
    /// Name of the program, such as `apertium`.
    pub name: String,
    /// What it was run with, such as `eng-spa`.
    pub modes: Vec<String>,
    /// Languages that the text went through, if there is no direct translation: it then has the errors of two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<String>,
}

/// A named entity.
// The form of the public service.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Entity {
    /// Type of the entity, such as `NAME`.
    pub entity_type: String,
    /// Text of the entity as it was spoken.
    pub text: String,
    /// Start in seconds from the start of the audio.
    pub start: f64,
    /// End in seconds from the start of the audio.
    pub end: f64,
    /// Fields that the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Sentiments: a text, or a list with one item for each sentence.
// The interface has the text, the public service the list.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sentiments {
    /// One item for each sentence.
    Each(Vec<Sentiment>),
    /// A text.
    Text(String),
    /// Any other shape, kept as received. Never written by scribed.
    #[schemars(skip)]
    Other(Value),
}

/// Sentiment of one sentence.
// The form of the public service.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Sentiment {
    /// Text of the sentence.
    pub text: String,
    /// Sentiment: `positive`, `negative`, `neutral`, `mixed` or `unknown`.
    pub sentiment: String,
    /// Fields that the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Answer of a language model to one prompt.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Answered {
    /// The prompt, as requested.
    pub prompt: String,
    /// Answer of the model.
    pub response: String,
}

/// A sentence: a text, or an object that also has its times.
// The interface has the text, the public service the object.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sentence {
    /// Text of the sentence.
    Text(String),
    /// Sentence with its times, words and speaker.
    Whole(WholeSentence),
    /// Any other shape, kept as received. Never written by scribed.
    #[schemars(skip)]
    Other(Value),
}

/// A sentence with its times, words and speaker.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WholeSentence {
    /// Text of the sentence, without blanks at both ends.
    pub sentence: String,
    /// The fields of an utterance, without `text`.
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
