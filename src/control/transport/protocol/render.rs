//! Outputs that are written again from kept results, and texts that a person accepts.

use super::request::JobSelector;
use crate::control::media_address::MediaAddress;
use crate::domain::job::Job;
use crate::domain::names::{Hash, JobId, SourceName};
use crate::pipeline::stages::write::rerender::RenderedJob;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The parameters of [`super::ControlRequest::Render`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderQuery {
    /// Only this job.
    pub job: Option<JobSelector>,
    /// Only jobs of this source.
    pub source: Option<SourceName>,
    /// Only recordings whose paths below their source's folder match one of these patterns; empty: all.
    pub only: Vec<String>,
    /// Change nothing, and return what would be done.
    pub dry_run: bool,
    /// Remove unedited files that are no outputs any more.
    pub prune: bool,
    /// Write missing outputs again.
    pub restore: bool,
    /// The hash of each source's settings for outputs, as the command has read them.
    pub settings: BTreeMap<SourceName, Hash>,
    /// Only jobs with a number above this.
    pub after: Option<JobId>,
}

/// A piece of the answer to [`super::ControlRequest::Render`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RenderPiece {
    /// The jobs of which there is something to tell, in the order of their numbers.
    pub jobs: Vec<RenderedJob>,
    /// The number of jobs whose files all stay as they are.
    pub unchanged: u64,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// The parameters of [`super::ControlRequest::Accept`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptQuery {
    /// The file.
    pub path: MediaAddress,
    /// The job that the file is the text of; `None`: the file's name tells it.
    pub job: Option<JobSelector>,
    /// Take the acceptance back.
    pub undo: bool,
    /// The user who accepts.
    pub by: String,
}

/// The answer to [`super::ControlRequest::Accept`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AcceptedAnswer {
    /// The job as it is now.
    pub job: Job,
    /// Whether the recording would have been transcribed otherwise.
    pub is_instead_of_purchase: bool,
    /// What the text lacks, as `12 of 80 words have no recognised time`.
    pub note: Option<String>,
}
