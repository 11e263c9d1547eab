//! The answers, and why a request was not carried out.

use super::changes::{Added, Deleted, Retried};
use super::cost::CostPiece;
use super::explain::{Explained, KnownName};
use super::forget::ForgetPiece;
use super::job_view::{JobPage, Shown};
use super::render::{AcceptedAnswer, RenderPiece};
use super::status::{QueueStatus, Waiting};
use super::verify::VerifyPiece;
use crate::domain::health::{LongWaits, QueueFacts};
use crate::domain::job::Job;
use crate::domain::pause::Pauses;
use crate::store::contract::StoreError;
use serde::{Deserialize, Serialize};

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlAnswer {
    /// See [`super::ControlRequest::Status`].
    Status(Box<QueueStatus>),
    /// See [`super::ControlRequest::Health`].
    Health(Box<QueueFacts>),
    /// See [`super::ControlRequest::LongWaits`]; `None` if there is no such job.
    LongWaits(Option<LongWaits>),
    /// See [`super::ControlRequest::Waiting`].
    Waiting(Waiting),
    /// See [`super::ControlRequest::Jobs`].
    Jobs(JobPage),
    /// See [`super::ControlRequest::Show`].
    Shown(Box<Shown>),
    /// See [`super::ControlRequest::Explain`].
    Explained(Box<Explained>),
    /// See [`super::ControlRequest::LookUp`]; in the order of the names.
    LookedUp(Vec<KnownName>),
    /// See [`super::ControlRequest::Bought`]; in the same order.
    Bought(Vec<bool>),
    /// See [`super::ControlRequest::Add`].
    Added(Box<Added>),
    /// See [`super::ControlRequest::Retry`].
    Retried(Retried),
    /// See [`super::ControlRequest::Bump`].
    Bumped(Box<Job>),
    /// See [`super::ControlRequest::Acknowledge`].
    Acknowledged(Box<Job>),
    /// See [`super::ControlRequest::Cancel`].
    Cancelled(Box<Job>),
    /// See [`super::ControlRequest::Delete`].
    Deleted(Box<Deleted>),
    /// See [`super::ControlRequest::Cost`].
    Cost(CostPiece),
    /// What is paused now.
    Paused(Pauses),
    /// See [`super::ControlRequest::Trust`].
    Trusted,
    /// See [`super::ControlRequest::Forget`].
    Forgotten(ForgetPiece),
    /// See [`super::ControlRequest::Verify`].
    Verified(VerifyPiece),
    /// See [`super::ControlRequest::Render`].
    Rendered(RenderPiece),
    /// See [`super::ControlRequest::Accept`].
    Accepted(Box<AcceptedAnswer>),
    /// See [`super::ControlRequest::Reload`]: messages about what was applied.
    Reloaded(Vec<String>),
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
