//! How a job's request was rendered, apart from the parameters of its purchase key. It is stored so that a retry uses
//! the same request even if the configuration has changed.

use crate::domain::file_permissions::Access;
use crate::domain::format::Format;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A template as it was rendered for one job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// The template's name; empty for the service's defaults.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// The `custom_metadata` of the create, without the token.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The outputs to write; never empty.
    pub outputs: Vec<Format>,
    /// The `subtitles_config` that captions are laid out with, if it is not the one that was requested: the setting has
    /// changed since, and the outputs were rendered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captions: Option<Map<String, Value>>,
    /// What the file's own metadata says, if it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub described: Option<MediaTags>,
    /// The priority from the sidecar; `None` if the sidecar sets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i16>,
    /// The permissions of the recording, for outputs that are written after the recording was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Whether a create was or may have been sent with it. From then on only a person's command changes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sent: bool,
}

/// What a recording's own metadata says; `None` for what it does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaTags {
    /// Its length in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// The channels of its first audio track.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// The language of its first audio track, as in its container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

impl RequestRecord {
    /// Whether both give the same request and the same outputs.
    pub fn is_alike(&self, other: &Self) -> bool {
        (&self.template, &self.metadata, &self.outputs) == (&other.template, &other.metadata, &other.outputs)
    }
}
