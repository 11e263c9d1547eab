//! The body that a service sends to a callback or a webhook (interface, "Events"). It is never believed: it only brings
//! a poll forward.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The event of a webhook request that only reports an accepted transcription.
pub const CREATED: &str = "transcription.created";

/// The body of a callback or a webhook request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookEvent {
    pub event: String,
    /// The transcription's id, in a callback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The result in a callback, `{id}` in a webhook request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// `error`, `custom_metadata`, and fields that the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl WebhookEvent {
    /// Returns the id of the transcription, wherever the body has it.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref().or_else(|| self.payload.as_ref()?.get("id")?.as_str())
    }
}
