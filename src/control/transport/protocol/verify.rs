//! Outputs that are not as they were written.

use super::request::JobSelector;
use crate::domain::job::JobKey;
use crate::domain::names::{JobId, SourceName};
use crate::domain::path::RelPath;
use serde::{Deserialize, Serialize};

/// The parameters of [`super::ControlRequest::Verify`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyQuery {
    pub job: Option<JobSelector>,
    /// Only jobs of this source.
    pub source: Option<SourceName>,
    /// Write missing outputs again.
    pub repair: bool,
    /// Only jobs with a number above this.
    pub after: Option<JobId>,
}

/// A piece of the answer to [`super::ControlRequest::Verify`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VerifyPiece {
    /// The verified jobs, in the order of their numbers.
    pub jobs: Vec<VerifiedJob>,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// The result of verifying a job's outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedJob {
    pub job: JobId,
    pub key: JobKey,
    /// The outputs; empty if the recording and all outputs are gone, or if the outputs could not be verified.
    pub outputs: Vec<VerifiedOutput>,
    /// Why the outputs could not be verified or restored.
    #[serde(default)]
    pub problem: Option<String>,
    /// Neither the recording nor any of its outputs exists: it was deleted, or moved with them.
    #[serde(default)]
    pub is_gone: bool,
}

/// The result of verifying an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedOutput {
    /// Its whole path.
    pub path: RelPath,
    pub state: OutputState,
}

/// The state of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputState {
    /// The output is as it was written.
    Unchanged,
    /// The content has changed since scribed wrote it. scribed does not change it.
    Edited,
    /// The output was missing and was written again.
    Restored,
    /// The output does not exist.
    Missing,
    /// The output cannot be read.
    Unreadable,
}

impl OutputState {
    /// Returns the name in `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Edited => "edited",
            Self::Restored => "restored",
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
        }
    }
}
