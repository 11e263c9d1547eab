//! What a job is made with, beside the parameters of its order: as its template was filled in, kept so that a
//! retry is made with the same, whatever the configuration says by then.

use crate::domain::file_permissions::Access;
use crate::domain::format::Format;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// As a template was filled in for one job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// The template's name; empty for the service's defaults.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// What becomes `custom_metadata` together with our token.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What is written; never empty.
    pub outputs: Vec<Format>,
    /// What the file said of itself, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub described: Option<MediaTags>,
    /// How urgent it is by what stands beside it; `None` where nothing there says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i16>,
    /// The mode and the group of the recording, for the outputs of one that is gone when they are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Whether a create left with it, or may have: from then on nothing but a person's order changes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sent: bool,
}

/// What a recording says of itself; what it does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaTags {
    /// Its length in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// Of its first audio track.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Of its first audio track, as its container has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

impl RequestRecord {
    /// Whether both come to the same request and the same outputs.
    pub fn is_alike(&self, other: &Self) -> bool {
        (&self.template, &self.metadata, &self.outputs) == (&other.template, &other.metadata, &other.outputs)
    }
}
