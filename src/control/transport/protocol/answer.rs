//! The answers, and why a request was not carried out.

use super::browse::{BrowsedJobs, QueueActivity};
use super::changes::{Added, Deleted, Retried};
use super::cost::CostPiece;
use super::digest::DigestReport;
use super::edit::EditAnswer;
use super::erase::Erased;
use super::explain::{Explained, KnownName};
use super::forget::ForgetPiece;
use super::job_view::{JobPage, Shown};
use super::render::{AcceptedAnswer, RenderPiece};
use super::search::{IndexStatus, SearchPage};
use super::status::{QueueStatus, Waiting};
use super::verify::VerifyPiece;
use crate::domain::health::{LongWaits, QueueFacts};
use crate::domain::job::Job;
use crate::domain::names::JobId;
use crate::domain::pause::Pauses;
use crate::store::contract::{CopiedRows, StoreError};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The answer to a request: the variant that [`ControlRequest`](super::ControlRequest) names for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlAnswer {
    Status(Box<QueueStatus>),
    Configuration(SharedConfiguration),
    Health(Box<QueueFacts>),
    /// `None` if there is no such job.
    LongWaits(Option<LongWaits>),
    Waiting(Waiting),
    Jobs(JobPage),
    Browsed(Box<BrowsedJobs>),
    /// `None` while the table of jobs is made.
    Matching(Option<Vec<JobId>>),
    Activity(Box<QueueActivity>),
    Shown(Box<Shown>),
    Explained(Box<Explained>),
    /// In the order of the names.
    LookedUp(Vec<KnownName>),
    /// In the same order.
    Bought(Vec<bool>),
    Added(Box<Added>),
    Retried(Retried),
    Bumped(Box<Job>),
    Acknowledged(Box<Job>),
    Cancelled(Box<Job>),
    Deleted(Box<Deleted>),
    Erased(Box<Erased>),
    Cost(CostPiece),
    Found(Box<SearchPage>),
    SearchIndex(IndexStatus),
    Digest(Box<DigestReport>),
    RowsCopied(CopiedRows),
    /// What is paused now.
    Paused(Pauses),
    Trusted,
    /// The job, which has the transcription now.
    Adopted(Box<Job>),
    Forgotten(ForgetPiece),
    Verified(VerifyPiece),
    Rendered(RenderPiece),
    Accepted(Box<AcceptedAnswer>),
    Edited(EditAnswer),
    /// Messages about what was applied.
    Reloaded(Vec<String>),
}

/// What commands on other machines need of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedConfiguration {
    /// The path of the file.
    pub file: PathBuf,
    /// Its text, without the sections that only concern the machine of the daemon.
    pub text: String,
}

impl ControlAnswer {
    /// Returns the job that a command has changed; `None` if it was none, or more than one.
    pub fn changed_job(&self) -> Option<JobId> {
        match self {
            Self::Added(added) => Some(added.job.id),
            Self::Retried(retried) => Some(retried.job.id),
            Self::Bumped(job) | Self::Acknowledged(job) | Self::Cancelled(job) | Self::Adopted(job) => Some(job.id),
            Self::Deleted(deleted) => Some(deleted.job.id),
            Self::Erased(erased) => Some(erased.job.id),
            Self::Accepted(accepted) => Some(accepted.job.id),
            Self::Edited(EditAnswer::Accepted(accepted)) => Some(accepted.job.id),
            Self::Forgotten(ForgetPiece { forgotten, .. }) => match forgotten.as_slice() {
                [one] => Some(one.id),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Why a request was not carried out, as a message for the person who made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum CommandRefusal {
    /// The request names something that does not exist, or is not valid.
    #[error("{0}")]
    Usage(String),
    /// The request does not make sense in the present state, or would do harm.
    #[error("{0}")]
    Declined(String),
    /// The queue failed.
    #[error("{0}")]
    Store(String),
}

impl From<StoreError> for CommandRefusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}
