//! What a service sends to a callback or a webhook (interface, "Events"). Never trusted: it only says that a
//! look is worth while.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The event of a webhook call that only says that a transcription was accepted.
pub const CREATED: &str = "transcription.created";

/// The body of a callback or of a webhook call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WebhookEvent {
    pub event: String,
    /// The transcription's id, in a callback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The result in a callback, `{id}` in a webhook call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// `error`, `custom_metadata`, and what the interface does not have.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl WebhookEvent {
    /// The transcription that it is about, wherever the body says so.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref().or_else(|| self.payload.as_ref()?.get("id")?.as_str())
    }
}
