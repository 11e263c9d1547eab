//! The error body of every endpoint. The interface shows none; this is the public service's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Body of an answer with a status from 400 to 599.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
#[derive(Default)]
pub struct ErrorBody {
    /// Time of the answer, ISO 8601 in UTC.
    pub timestamp: String,
    /// Path of the request.
    pub path: String,
    /// Debug id of the request, to be quoted in reports of a problem.
    // Some services write `requestId`.
    #[serde(alias = "requestId")]
    pub request_id: String,
    /// HTTP status code of the answer.
    #[serde(rename = "statusCode")]
    pub status_code: u16,
    /// What is wrong, in English.
    pub message: String,
    /// What is wrong with each invalid field, one text for each. Present only with status 400.
    // Some services send objects instead of texts.
    #[serde(skip_serializing_if = "Vec::is_empty", alias = "validationErrors")]
    pub validation_errors: Vec<Value>,
    /// Other fields.
    // Some services put everything under `error`.
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
