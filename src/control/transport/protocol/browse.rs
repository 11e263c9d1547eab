//! Jobs as they are searched among all of the queue, and figures of all of them.

use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::stage::StageKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which jobs are wanted. Every condition must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrowseFilter {
    /// Only jobs at these stages; empty means all.
    pub stages: Vec<StageKind>,
    pub source: Option<SourceName>,
    /// The kind of the fault, by its name: what went wrong last, or what the job waits for.
    pub fault: Option<String>,
    /// Why the job failed or waits, exactly.
    pub reason: Option<String>,
    /// Words that must occur in the name, in any order and case.
    pub text: String,
    pub incomplete: bool,
    pub suspect: bool,
    /// Only jobs that failed, are incomplete or are suspect, and nobody has acknowledged.
    pub unacknowledged: bool,
    /// Only jobs that reached their stage at this time or later.
    pub since: Option<Timestamp>,
    /// Only jobs that reached their stage before this time.
    pub before: Option<Timestamp>,
}

/// By what jobs are ordered. Jobs that are equal in it are in the order of their numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BrowseSort {
    /// The number, which is the order in which the jobs were found.
    #[default]
    Number,
    /// When the job reached its stage.
    Since,
    /// The name, regardless of case.
    Name,
    /// The length of the recording.
    Length,
    /// What the job cost.
    Cost,
}

/// The last job of a page: the next page begins behind it, wherever that is by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowseCursor {
    /// Its number in the order; 0 if the order is by name.
    pub number: i64,
    /// Its name, if the order is by name.
    pub name: String,
    pub job: JobId,
}

/// A request for a page of jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowseQuery {
    pub filter: BrowseFilter,
    pub sort: BrowseSort,
    /// From the largest to the smallest.
    pub descending: bool,
    pub after: Option<BrowseCursor>,
    /// The most jobs of a page.
    pub limit: usize,
}

/// The most jobs of one page.
pub const MOST_BROWSED: usize = 500;

/// A page of jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BrowsedJobs {
    pub jobs: Vec<Job>,
    /// The number of jobs on all pages.
    pub matching: u64,
    /// The number of all jobs of the queue that nobody has forgotten.
    pub total: u64,
    /// How many jobs there would be of each stage, source and kind of fault, if the filter named none.
    pub by_stage: BTreeMap<StageKind, u64>,
    pub by_source: BTreeMap<SourceName, u64>,
    pub by_fault: BTreeMap<String, u64>,
    /// The most frequent reasons of the matching jobs that failed or wait, the most frequent first.
    pub by_reason: Vec<(String, u64)>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<BrowseCursor>,
    /// How many jobs were read so far, while the table of jobs is made: nothing else is known then.
    pub preparing: Option<u64>,
}

/// What happened in the last days, and what waits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueActivity {
    /// What was written in each of the last 48 hours, oldest first; the last one is not over.
    pub hours: Vec<HourActivity>,
    /// What was bought on each of the last 30 days, oldest first; the last one is not over.
    pub days: Vec<DayCost>,
    /// How many jobs that have not ended reached their stage how long ago: less than an hour, a day, a week, 30 days, more.
    pub ages: [u64; 5],
    /// The number of failed jobs by the kind of their fault.
    pub failed: BTreeMap<String, u64>,
    pub night: NightActivity,
    /// As [`BrowsedJobs::preparing`].
    pub preparing: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HourActivity {
    pub begin: Timestamp,
    pub files: u64,
    /// Milliseconds of audio.
    pub audio: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayCost {
    pub begin: Timestamp,
    /// Milliseconds of billed audio.
    pub billed: u64,
}

/// What came of the jobs of a night.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NightActivity {
    pub from: Timestamp,
    pub to: Timestamp,
    pub written: u64,
    /// Milliseconds of audio.
    pub audio: u64,
    pub failed: u64,
    /// The most frequent reason of the failures, and how many jobs have it.
    pub reason: Option<(String, u64)>,
}
