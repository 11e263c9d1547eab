//! Up to where the index has the queue. It is stored with each commit, so that a crash leaves both as they belong
//! together.

use crate::domain::names::JobId;
use crate::store::history_reader::HistoryPosition;
use serde::{Deserialize, Serialize};

/// Up to where the index has the queue. It is stored with each commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexMark {
    /// The lines of the history that the index has.
    pub history: HistoryPosition,
    pub comparison: QueueComparison,
    /// Under what the comparison was begun: another text begins it again.
    pub epoch: String,
}

/// What is stored with each commit.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CommitPayload {
    pub mark: IndexMark,
    /// Whether erased text may still be in a file.
    pub expunge: bool,
}

/// How far all jobs were compared with the index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueComparison {
    #[default]
    Begun,
    /// Up to this job.
    After(JobId),
    Ended,
}
