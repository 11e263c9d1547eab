//! What commands have changed.

use crate::domain::job::Job;
use serde::{Deserialize, Serialize};

/// The answer to [`super::ControlRequest::Add`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Added {
    pub job: Job,
    /// Whether the job existed already, so that nothing was done.
    pub known: bool,
}

/// The answer to [`super::ControlRequest::Retry`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retried {
    /// The job as it is now.
    pub job: Box<Job>,
    /// What the retry costs.
    pub cost: RetryCost,
}

/// What a retry costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryCost {
    /// The retry pays for nothing again.
    Nothing,
    /// The retry buys another transcription, since the last one ended in an error or the person requests it.
    Another,
    /// The retry buys another transcription, unless the request is the one that was bought already.
    IfChanged,
    /// The retry buys another transcription though the earlier one may still succeed: the job may be paid for twice.
    PerhapsTwice,
}

/// The answer to [`super::ControlRequest::Delete`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    /// The job as it is now: cancelled or failed.
    pub job: Job,
    /// Whether the service has no transcription of the job any more.
    pub is_gone: bool,
    /// What happened to the transcription, and what to do if it still exists.
    pub words: String,
}
