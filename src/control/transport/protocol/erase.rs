//! What `scribed erase` removes.

use super::request::JobSelector;
use crate::domain::job::Job;
use serde::{Deserialize, Serialize};

/// The parameters of [`super::ControlRequest::Erase`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraseQuery {
    pub job: JobSelector,
    /// Only report what would be erased; change nothing.
    pub dry_run: bool,
    /// Ask no service: transcriptions stay there.
    pub here_only: bool,
}

/// The answer to [`super::ControlRequest::Erase`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Erased {
    /// The job as it is now.
    pub job: Job,
    /// What there was of the recording, in the order in which it was erased.
    pub items: Vec<ErasureItem>,
    /// What stopped the command after it had begun; `None` if it reached its end. The job is as before, so that the same
    /// command goes on.
    #[serde(default)]
    pub problem: Option<String>,
}

/// Something that was made of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureItem {
    pub kind: ErasureKind,
    /// Its id, path or name.
    pub name: String,
    pub outcome: ErasureOutcome,
    /// Why it was kept; `None` if it was not.
    pub why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErasureKind {
    /// A transcription at a service.
    Transcription,
    /// The recording, uploaded to a service.
    Upload,
    /// The answer of a service, kept in the state directory.
    Result,
    /// A text that a person accepted, kept in the state directory.
    AcceptedText,
    Draft,
    Output,
    /// What the index of `scribed search` has of the recording.
    SearchIndex,
    /// The voice of a known speaker that was enrolled from the recording.
    Voice,
    History,
    /// What waits for targets of `[notify]`.
    Notification,
    /// The row of the job.
    Record,
}

impl ErasureKind {
    /// Returns the name for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Transcription => "transcription",
            Self::Upload => "upload",
            Self::Result => "kept result",
            Self::AcceptedText => "accepted text",
            Self::Draft => "draft",
            Self::Output => "output",
            Self::SearchIndex => "search index",
            Self::Voice => "voice",
            Self::History => "history",
            Self::Notification => "notification",
            Self::Record => "record",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErasureOutcome {
    /// It was erased; in a dry run, it would be.
    Erased,
    /// It was not there any more.
    Absent,
    Kept,
}
