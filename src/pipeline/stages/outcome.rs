//! What a move says when it has done its work.

use crate::domain::fault::Fault;
use crate::domain::names::Timestamp;
use crate::domain::stage::JobEvent;
use crate::store::contract::StoreError;

/// What a move came to. A fault that it met is its error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageOutcome {
    /// It happened; the next move may follow at once.
    Step(JobEvent),
    /// It happened; the next move comes then.
    StepThen(JobEvent, Timestamp),
    /// It happened; the next move waits for this reason; until then, or, without a time, until somebody does something.
    StepThenRest(JobEvent, Option<Timestamp>, Fault),
    /// Nothing happened, for this reason; until then, or, without a time, until somebody does something.
    Rest(Option<Timestamp>, Fault),
    /// Nothing happened yet. No failure: it uses no attempt.
    Sleep {
        /// When to look again.
        until: Timestamp,
        /// What is waited for, where that is not plain from the stage.
        reason: Option<Fault>,
    },
}

/// What stops a move.
pub enum StageStop {
    /// What it met.
    Fault(Fault),
    /// The store's.
    Store(StoreError),
}

impl From<Fault> for StageStop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
