//! What a move says when it has done its work.

use crate::domain::fault::Fault;
use crate::domain::names::Timestamp;
use crate::domain::stage::Event;

/// What a move came to. A fault that it met is its error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It happened; the next move may follow at once.
    Step(Event),
    /// It happened; the next move comes then.
    StepThen(Event, Timestamp),
    /// Nothing happened yet. No failure: it uses no attempt.
    Sleep {
        /// When to look again.
        until: Timestamp,
        /// What is waited for, where that is not plain from the stage.
        reason: Option<Fault>,
    },
}
