//! Hints that a transcription has ended.

use crate::domain::names::{JobId, TranscriptionId};

/// A request that says a transcription has ended. It is never believed: it only brings a poll forward.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hint {
    /// For the transcription that a job bought in a purchase.
    Callback { job: JobId, round: u32 },
    /// For the transcription with this id.
    Webhook(TranscriptionId),
}
