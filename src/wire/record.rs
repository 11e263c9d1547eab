//! The record of a transcription (interface, "Job (transcription record)"), and the answer to a create. A record that
//! is read may lack fields or have unknown ones; a record that is written is complete.

use crate::wire::bounded_value::BoundedValue;
use crate::wire::parameter_check::METADATA;
use crate::wire::params::CallbackConfig;
use crate::wire::result::File;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The path of creates, of the list and, with an id, of a single record.
pub const PATH: &str = "/v2/pre-recorded";

/// The path of the list of live transcriptions and, with an id, of a single one.
pub const LIVE_PATH: &str = "/v2/live";

/// An older path for all of these; its list contains both kinds (service notes, 1).
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

/// The answer to an accepted create.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Created {
    /// The transcription's id.
    pub id: String,
    /// Where to read it. Not followed: the read's address is built from the id.
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
    /// A state that the interface does not have. It is never taken for an end.
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

/// A transcription. `R` is what is kept of the result: [`serde::de::IgnoredAny`] where a list is
/// walked, [`crate::wire::result::ResultBody`] where it is read or written. `M` is the custom
/// metadata; raw text where it has to go back to the letter.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>, M: Deserialize<'de>"))]
pub struct Record<R, M = Value> {
    /// Missing in no real answer, but not needed where the id was asked for.
    #[serde(default)]
    pub id: String,
    /// For the service's support.
    #[serde(default, deserialize_with = "any_shape")]
    pub request_id: Option<String>,
    /// 2.
    #[serde(default, deserialize_with = "any_shape")]
    pub version: Option<u32>,
    /// The one field without which nothing can be decided.
    pub status: Status,
    /// ISO 8601.
    #[serde(default, deserialize_with = "any_shape")]
    pub created_at: Option<String>,
    /// `pre-recorded` or `live`.
    #[serde(default, deserialize_with = "any_shape")]
    pub kind: Option<String>,
    /// ISO 8601; set when the status is `done` or `error`.
    #[serde(default, deserialize_with = "any_shape")]
    pub completed_at: Option<String>,
    /// As given at the create; null without.
    #[serde(default = "Option::<M>::default")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub custom_metadata: Option<M>,
    /// 400 to 599, when the status is `error`.
    #[serde(default, deserialize_with = "any_shape")]
    pub error_code: Option<u16>,
    /// Null may stand here when the status is `error`.
    #[serde(default, deserialize_with = "any_shape")]
    pub file: Option<File>,
    /// The create's parameters with the defaults filled in.
    #[serde(default, deserialize_with = "any_shape")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub request_params: Option<Value>,
    /// Data meant to help identify issues. Absent in real answers; the embedded service says here
    /// in words why a transcription failed.
    #[serde(default, deserialize_with = "any_shape", skip_serializing_if = "Option::is_none")]
    pub post_session_metadata: Option<Map<String, Value>>,
    /// Present when the status is `done`.
    #[serde(default = "Option::<R>::default")]
    pub result: Option<R>,
    /// Not the interface's: where some services say why a transcription failed.
    #[serde(default, deserialize_with = "any_shape", skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// Not the interface's, as `error`.
    #[serde(default, deserialize_with = "any_shape", skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

/// Reads a field that may have any shape: an unexpected shape counts as absent. Reading a paid result or a list must
/// not fail because of a field that decides nothing.
fn any_shape<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let BoundedValue(value) = BoundedValue::deserialize(deserializer)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()).flatten())
}

/// A record of a result that is kept: what decided whether it was kept matters no more, and may have any shape.
#[derive(Deserialize)]
#[serde(bound(deserialize = "R: Deserialize<'de>, M: Deserialize<'de>"))]
struct KeptRecord<R, M> {
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
    #[serde(default = "Option::<R>::default")]
    result: Option<R>,
}

impl<'de, R: Deserialize<'de>, M: Deserialize<'de>> Record<R, M> {
    /// Reads the record of a result that is kept, whatever shape its id and its status have.
    ///
    /// # Errors
    /// The text is not a JSON object.
    pub fn of_kept(raw: &'de [u8]) -> serde_json::Result<Self> {
        let KeptRecord { request_id, created_at, completed_at, custom_metadata, file, request_params, result } =
            serde_json::from_slice(raw)?;
        Ok(Self {
            id: String::new(),
            request_id,
            version: None,
            status: Status::Done,
            created_at,
            kind: None,
            completed_at,
            custom_metadata,
            error_code: None,
            file,
            request_params,
            post_session_metadata: None,
            result,
            error: None,
            error_message: None,
        })
    }
}

impl<R, M> Record<R, M> {
    /// Returns why the transcription failed, if the service says so ([`Record::post_session_metadata`]).
    pub fn reason(&self) -> Option<&str> {
        let from_metadata = || self.post_session_metadata.as_ref()?.get("error")?.as_str();
        let from_error = || self.error.as_ref()?.get("message")?.as_str();
        from_metadata().or_else(from_error).or(self.error_message.as_deref())
    }
}

impl<R> Record<R, BoundedValue> {
    /// Returns the text under a key of the custom metadata.
    pub fn bounded_metadata_text(&self, key: &str) -> Option<&str> {
        self.custom_metadata.as_ref()?.get(key)?.as_str()
    }
}

impl<R> Record<R> {
    /// Returns the text under a key of the custom metadata.
    pub fn metadata_text(&self, key: &str) -> Option<&str> {
        self.custom_metadata.as_ref()?.get(key)?.as_str()
    }
}
