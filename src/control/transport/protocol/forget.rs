//! What `scribed forget` removes.

use super::request::JobSelector;
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The parameters of [`super::ControlRequest::Forget`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetQuery {
    /// The jobs to forget.
    pub which: Forgettable,
    /// Only report what would be forgotten; change nothing.
    pub dry_run: bool,
}

/// Which jobs are to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forgettable {
    /// This job.
    One(JobSelector),
    /// All ended jobs whose files are gone.
    Vanished {
        /// Only of this source.
        source: Option<SourceName>,
        /// Only jobs that ended at least so many milliseconds ago.
        older_than: u64,
        /// Only jobs with a number above this.
        after: Option<JobId>,
    },
}

/// A piece of the answer to [`super::ControlRequest::Forget`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ForgetPiece {
    /// The jobs that were forgotten, or would be.
    pub forgotten: Vec<Job>,
    /// Jobs that were not forgotten though their files are not found, each with the reason.
    pub kept: Vec<(Job, String)>,
    /// Sources whose folders could not be looked at, each with the reason.
    pub unseen: BTreeMap<SourceName, String>,
    /// The number of jobs whose files were looked for.
    pub looked: u64,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}
