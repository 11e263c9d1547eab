//! What a stage handler returns.

use crate::domain::fault::Fault;
use crate::domain::names::Timestamp;
use crate::domain::stage::JobEvent;
use crate::store::contract::StoreError;

/// Outcome of a stage. A fault is the handler's error instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageOutcome {
    /// The event happened. The next stage may follow at once.
    Step(JobEvent),
    /// The event happened. The next stage is due at this time.
    StepThen(JobEvent, Timestamp),
    /// The event happened. The next stage waits, for this reason, until this time; without a time, until somebody
    /// acts.
    StepThenRest(JobEvent, Option<Timestamp>, Fault),
    /// Nothing happened. The job waits, for this reason, until this time; without a time, until somebody acts.
    Rest(Option<Timestamp>, Fault),
    /// Nothing happened yet. This is no failure and uses no attempt.
    Sleep {
        /// When the stage runs again.
        until: Timestamp,
        /// What the job waits for, if that is not plain from the stage.
        reason: Option<Fault>,
    },
}

/// What stops a stage.
pub enum StageStop {
    Fault(Fault),
    Store(StoreError),
}

impl From<Fault> for StageStop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
