//! The record of a transcription (interface, "Job (transcription record)"), and the answer to a create. A record that
//! is read may lack fields or have unknown ones; a record that is written is complete.

use crate::wire::bounded_value::BoundedValue;
use crate::wire::parameter_check::METADATA;
use crate::wire::params::CallbackConfig;
use crate::wire::result::File;
use crate::wire::tolerant;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The path of creates, of the list and, with an id, of a single record.
pub const PATH: &str = "/v2/pre-recorded";

/// The path of the list of live transcriptions and, with an id, of a single one.
pub const LIVE_PATH: &str = "/v2/live";

/// An older path for all of these; its list contains both kinds.
pub const OLD_PATH: &str = "/v2/transcription";

/// Returns the body of a create: the parameters, and what differs for each request.
pub fn create_body(
    mut params: Map<String, Value>,
    audio_url: String,
    metadata: Map<String, Value>,
    callback: Option<CallbackConfig>,
) -> Vec<u8> {
    if let Some(callback) = callback {
        params.insert("callback".to_owned(), Value::Bool(true));
        // This cannot fail: the value has two fields, a text and an enum.
        params.insert("callback_config".to_owned(), serde_json::to_value(callback).unwrap_or_default());
    }
    params.insert("audio_url".to_owned(), Value::String(audio_url));
    params.insert(METADATA.to_owned(), Value::Object(metadata));
    Value::Object(params).to_string().into_bytes()
}

/// Answer to a create that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Created {
    /// Id of the transcription.
    pub id: String,
    /// URL of the transcription's record.
    // scribed does not follow it: it builds the address from the id.
    #[serde(default)]
    pub result_url: String,
}

/// The state of a transcription (interface, "States and transitions").
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// Accepted, but not begun.
    Queued,
    /// In progress.
    Processing,
    /// Ended with a result.
    Done,
    /// Ended with an error.
    Error,
    /// A state that the interface does not have. It is an end only if the record has a text and the time of its end.
    Other(String),
}

impl Status {
    /// Returns the name in the interface.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Queued => "queued",
            Self::Processing => "processing",
            Self::Done => "done",
            Self::Error => "error",
            Self::Other(word) => word,
        }
    }

    /// Parses the name in the interface.
    pub fn parse(word: &str) -> Self {
        match word {
            "queued" => Self::Queued,
            "processing" => Self::Processing,
            "done" => Self::Done,
            "error" => Self::Error,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl JsonSchema for Status {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Status".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ["queued", "processing", "done", "error"] })
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&String::deserialize(deserializer)?))
    }
}

/// Record of a transcription.
// `R` is the part of the result that is kept: `IgnoredAny` where a list is paged through, `ResultBody` where the result
// is read or written. `M` is the type of the custom metadata: raw text where it is returned byte for byte.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>, M: Deserialize<'de>"))]
pub struct Record<R, M = Value> {
    /// Id of the transcription.
    // Every real answer has it. It has a default because a read by id does not need it.
    #[serde(default, deserialize_with = "text_of_any_shape")]
    pub id: String,
    /// Debug id of the transcription, to be quoted in reports of a problem.
    #[serde(default, deserialize_with = "any_shape")]
    pub request_id: Option<String>,
    /// Version of the interface: 2.
    #[serde(default, deserialize_with = "any_shape")]
    pub version: Option<u32>,
    /// State of the transcription. `done` and `error` are final.
    // The only required field: without it nothing can be decided.
    pub status: Status,
    /// Time of the creation, ISO 8601 in UTC.
    #[serde(default, deserialize_with = "any_shape")]
    pub created_at: Option<String>,
    /// Kind of the transcription: `pre-recorded` or `live`.
    #[serde(default, deserialize_with = "any_shape")]
    pub kind: Option<String>,
    /// Time of the end, ISO 8601 in UTC; null unless `status` is `done` or `error`.
    #[serde(default, deserialize_with = "any_shape")]
    pub completed_at: Option<String>,
    /// `custom_metadata` of the create, unchanged; null if the create had none.
    #[serde(default = "Option::<M>::default")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub custom_metadata: Option<M>,
    /// HTTP status code of the failure, from 400 to 599; null unless `status` is `error`.
    #[serde(default, deserialize_with = "any_shape")]
    pub error_code: Option<u16>,
    /// The audio file; null before the service has the audio, and if it could not get it.
    #[serde(default, deserialize_with = "any_shape")]
    pub file: Option<File>,
    /// Parameters of the create, with the defaults filled in.
    #[serde(default, deserialize_with = "any_shape")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub request_params: Option<Value>,
    /// Data that helps to identify problems. If `status` is `error`, its field `error` says why the transcription
    /// failed.
    // Answers of the public service do not have it.
    #[serde(default, deserialize_with = "any_shape", skip_serializing_if = "Option::is_none")]
    pub post_session_metadata: Option<Map<String, Value>>,
    /// Result of the transcription; null unless `status` is `done`.
    #[serde(default = "Option::<R>::default")]
    pub result: Option<R>,
    /// Why the transcription failed, in records of some other services. This service does not write it.
    // Not in the interface.
    #[serde(default, deserialize_with = "any_shape", skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// Why the transcription failed, in records of some other services. This service does not write it.
    // Not in the interface.
    #[serde(default, deserialize_with = "any_shape", skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

/// Reads a field that may have any shape: an unexpected shape counts as absent. Reading a paid result or a list must
/// not fail because of a field that decides nothing.
fn any_shape<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let BoundedValue(value) = BoundedValue::deserialize(deserializer)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()).flatten())
}

/// Returns the message of an error: a text, or an object with a `message`.
pub(super) fn error_text(error: &Value) -> Option<&str> {
    error.as_str().or_else(|| error.get("message")?.as_str())
}

/// Reads a text that may have any shape: an unexpected shape counts as empty.
fn text_of_any_shape<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    any_shape(deserializer).map(Option::unwrap_or_default)
}

/// A record of a result that is kept: what decided whether it was kept matters no more, and may have any shape.
#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>, M: Deserialize<'de>"))]
struct KeptRecord<R, M> {
    #[serde(default, deserialize_with = "text_of_any_shape")]
    id: String,
    #[serde(default, deserialize_with = "text_of_any_shape")]
    status: String,
    #[serde(default, deserialize_with = "any_shape")]
    request_id: Option<String>,
    #[serde(default, deserialize_with = "any_shape")]
    created_at: Option<String>,
    #[serde(default, deserialize_with = "any_shape")]
    completed_at: Option<String>,
    #[serde(default = "Option::<M>::default")]
    custom_metadata: Option<M>,
    #[serde(default, deserialize_with = "any_shape")]
    file: Option<File>,
    #[serde(default, deserialize_with = "any_shape")]
    request_params: Option<Value>,
    #[serde(default, deserialize_with = "any_shape")]
    post_session_metadata: Option<Map<String, Value>>,
    #[serde(default = "Option::<R>::default")]
    result: Option<R>,
    #[serde(default, deserialize_with = "any_shape")]
    error: Option<Value>,
    #[serde(default, deserialize_with = "any_shape")]
    error_message: Option<String>,
}

impl<R: DeserializeOwned, M: DeserializeOwned> Record<R, M> {
    /// Reads the record of a result that is kept, whatever shape its status has ([`tolerant::read`]).
    ///
    /// # Errors
    /// The text is not a JSON object.
    pub fn of_kept(raw: &[u8]) -> serde_json::Result<Self> {
        let kept: KeptRecord<R, M> = tolerant::read(raw)?;
        Ok(Self {
            id: kept.id,
            request_id: kept.request_id,
            version: None,
            status: if Status::parse(&kept.status) == Status::Error { Status::Error } else { Status::Done },
            created_at: kept.created_at,
            kind: None,
            completed_at: kept.completed_at,
            custom_metadata: kept.custom_metadata,
            error_code: None,
            file: kept.file,
            request_params: kept.request_params,
            post_session_metadata: kept.post_session_metadata,
            result: kept.result,
            error: kept.error,
            error_message: kept.error_message,
        })
    }
}

impl<R, M> Record<R, M> {
    /// Returns why the transcription failed, if the service says so ([`Record::post_session_metadata`]).
    pub fn reason(&self) -> Option<&str> {
        let from_metadata = || error_text(self.post_session_metadata.as_ref()?.get("error")?);
        let from_error = || error_text(self.error.as_ref()?);
        from_metadata().or_else(from_error).or(self.error_message.as_deref()).filter(|why| !why.trim().is_empty())
    }
}

impl<R> Record<R, BoundedValue> {
    /// Returns the text under a key of the custom metadata.
    pub fn metadata_text(&self, key: &str) -> Option<&str> {
        self.custom_metadata.as_ref()?.get(key)?.as_str()
    }
}
