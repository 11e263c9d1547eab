//! Why a store did not do what it was asked for.

use crate::domain::names::JobId;

/// Why a store did not do it. `Clone`, because one failed sync fails everyone who waited for it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Somebody else holds the job now, or the lease ended and the job was claimed again. Nothing was changed; the
    /// worker drops what it did.
    #[error("the lease of job {0} was lost")]
    LeaseLost(JobId),
    /// The lease is the newest one, and the job is no longer at the stage that it names. Nothing was changed; the
    /// worker drops what it did.
    #[error("job {0} has changed since its worker read it")]
    Superseded(JobId),
    /// Another process has the store open.
    #[error("{0}")]
    Locked(String),
    /// The store cannot be read, since it is not what it should be.
    #[error("{0}")]
    Damaged(String),
    /// The disk is full or accepts no writes. Nothing that was acknowledged is lost.
    #[error("{0}")]
    Unwritable(String),
}

impl StoreError {
    /// Returns the job of which a worker's write was refused, because the worker's view of it is out of date.
    pub fn stale(&self) -> Option<JobId> {
        match self {
            Self::LeaseLost(job) | Self::Superseded(job) => Some(*job),
            Self::Locked(_) | Self::Damaged(_) | Self::Unwritable(_) => None,
        }
    }
}
