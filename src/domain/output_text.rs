//! What is stored with a job about its outputs beyond their names: the settings that they were rendered with, and the
//! text that a person accepted.

use crate::domain::format::Format;
use crate::domain::job::Output;
use crate::domain::names::{Hash, Timestamp, TranscriptionId};
use crate::domain::request_record::RequestRecord;
use crate::domain::token::PurchaseKey;
use serde::{Deserialize, Serialize};

/// What the outputs of a job were rendered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderedAs {
    /// The hash of the source's settings for outputs: formats, names, place, captions.
    pub settings: Hash,
    /// The release of scribed that rendered them.
    pub release: String,
}

impl RenderedAs {
    /// Returns what is stored when the text of a job has changed since its outputs were rendered. No settings have this
    /// hash: the job counts as one that `scribed render` may change.
    pub fn with_another_text() -> Self {
        Self { settings: Hash([0; 32]), release: String::new() }
    }
}

/// An output that a person accepted as the text of its job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedText {
    pub format: Format,
    /// The hash of the accepted content, which is kept in the state directory.
    pub hash: Hash,
    /// The accepted file.
    pub output: Output,
    /// The result that the text belongs to. A later result of the job is rendered without it.
    pub transcription: TranscriptionId,
    pub at: Timestamp,
    /// The user who accepted it.
    pub by: String,
    /// The hash of what scribed had written there; `None` if scribed did not write the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Hash>,
}

/// A change of a job's outputs that leaves its purchase as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChange {
    pub outputs: Vec<Output>,
    pub earlier: Vec<Output>,
    /// The hashes of outputs that are about to be published.
    pub placing: Vec<Hash>,
    /// `None` keeps what is stored.
    pub making: Option<Box<RequestRecord>>,
    pub rendered_as: Option<RenderedAs>,
    pub accepted: Option<Box<AcceptedText>>,
}

/// A text that a person accepted for a recording that was not transcribed: it stands for a purchase, and cost nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedResult {
    pub order: PurchaseKey,
    /// [`TranscriptionId::accepted`].
    pub transcription: TranscriptionId,
}
