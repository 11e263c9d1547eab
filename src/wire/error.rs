//! The error body of every endpoint. The interface shows none; this is the public service's
//! (service notes, 2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a refusal says.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
#[derive(Default)]
pub struct ErrorBody {
    /// ISO 8601.
    pub timestamp: String,
    /// The request's path.
    pub path: String,
    /// For the service's support. Some answers write `requestId`.
    #[serde(alias = "requestId")]
    pub request_id: String,
    /// The HTTP status once more.
    #[serde(rename = "statusCode")]
    pub status_code: u16,
    /// In words.
    pub message: String,
    /// Every wrong field, only with 400. Texts; some services send objects.
    #[serde(skip_serializing_if = "Vec::is_empty", alias = "validationErrors")]
    pub validation_errors: Vec<Value>,
    /// What the public service's errors do not have; some services put all they say under `error`.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl ErrorBody {
    /// Returns the message and every wrong field in one line.
    pub fn describe(&self) -> String {
        let mut words = self.message.clone();
        for wrong in &self.validation_errors {
            words.push_str("; ");
            words.push_str(&wrong.as_str().map_or_else(|| wrong.to_string(), str::to_owned));
        }
        words
    }
}
