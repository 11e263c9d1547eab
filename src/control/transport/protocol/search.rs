//! What `scribed search` asks and is told.

use crate::domain::job::JobKey;
use crate::domain::names::{JobId, Timestamp};
use crate::search::{ExcerptPart, PassageFilter};
use serde::{Deserialize, Serialize};

/// The most hits of a page.
pub const MOST_HITS: u32 = 1_000;

/// The parameters of [`super::ControlRequest::Search`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchQuery {
    /// As a person types it.
    pub query: String,
    pub filter: PassageFilter,
    /// By the date of the recording, not by relevance.
    pub newest: bool,
    /// How many hits precede the page.
    pub offset: u32,
    /// At most this many hits, from 1 to [`MOST_HITS`].
    pub limit: u32,
}

/// The answer to [`super::ControlRequest::Search`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchPage {
    pub hits: Vec<SearchHit>,
    /// The number of hits; more are not counted if `is_total_exact` is false.
    pub total: u64,
    pub is_total_exact: bool,
    /// The offset of the next page; `None` after the last one.
    pub next: Option<u32>,
    pub index: IndexStatus,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    pub job: JobId,
    pub key: JobKey,
    /// When the first of the words is said, in milliseconds from the start of the recording.
    pub start_ms: u64,
    /// The date of the recording.
    pub at: Timestamp,
    /// The name, or `Speaker 1`; `None` without diarization.
    pub speaker: Option<String>,
    pub language: Option<String>,
    /// What is said there.
    pub excerpt: Vec<ExcerptPart>,
}

/// The state of the search index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexStatus {
    pub bytes: u64,
    /// Passages, and one for each recording.
    pub entries: u64,
    /// Whether all written jobs are in it, but for those of the last seconds.
    pub is_complete: bool,
    /// While it is built: how many jobs were looked at, and how many there are.
    pub checked: u64,
    pub jobs: u64,
}
