//! Reading: for everyone.

use super::{ALL, GroupFilter, StoreError};
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{JobId, SourceName, Timestamp, TranscriptionId};
use crate::domain::pause::Pauses;
use crate::domain::stage::StageKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many jobs are where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobCounts {
    by_kind: [u64; StageKind::ALL.len()],
    /// Of those in flight, how many nothing moves by itself.
    pub parked_in_flight: u64,
    /// Of those that failed, how many nobody has acknowledged.
    pub unhandled_failures: u64,
    /// Of those that are incomplete, how many nobody has acknowledged.
    pub unhandled_incomplete: u64,
    /// Of those written, how many lack something that was requested or could not be read ([`Job::is_incomplete`]).
    pub incomplete: u64,
}

impl JobCounts {
    /// How many rest at this stage.
    pub fn of(&self, kind: StageKind) -> u64 {
        self.by_kind[kind as usize]
    }

    /// The same, for a store that counts.
    pub fn of_mut(&mut self, kind: StageKind) -> &mut u64 {
        &mut self.by_kind[kind as usize]
    }

    /// How many count against the service's limit of running transcriptions: a create may have
    /// left, and no person is asked.
    pub fn running(&self) -> u64 {
        (self.of(StageKind::Submitting) + self.of(StageKind::Submitted)).saturating_sub(self.parked_in_flight)
    }

    /// How many are at a service or being written, and no person is asked.
    pub fn on_their_way(&self) -> u64 {
        self.running() + self.of(StageKind::Fetched)
    }

    pub fn total(&self) -> u64 {
        self.by_kind.iter().sum()
    }

    /// Those that have not ended.
    pub fn open(&self) -> u64 {
        StageKind::ALL.into_iter().filter(|kind| !kind.is_end()).map(|kind| self.of(kind)).sum()
    }

    /// Adds the counts of others.
    pub fn add(&mut self, more: &Self) {
        self.by_kind.iter_mut().zip(more.by_kind).for_each(|(count, more)| *count += more);
        self.parked_in_flight += more.parked_in_flight;
        self.unhandled_failures += more.unhandled_failures;
        self.unhandled_incomplete += more.unhandled_incomplete;
        self.incomplete += more.incomplete;
    }
}

/// What [`Queries::page`] is asked for.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// These stages; empty means all.
    pub stages: Vec<StageKind>,
    /// Only numbers above this.
    pub after: Option<JobId>,
    /// At most so many, at least 1.
    pub limit: usize,
}

/// Jobs that wait for the same.
#[derive(Debug, Clone)]
pub struct WaitingGroup {
    pub one: Job,
    /// How many there are.
    pub jobs: u64,
}

/// Jobs that are few among many ([`Queries::jobs_in`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobSubset {
    /// They wait for their source's folder.
    Away,
    /// They cost something, or may have.
    WithCost,
    /// They are written and lack something that was requested or could not be read.
    Incomplete,
    /// A person had them forgotten.
    Forgotten,
}

/// One line of a job's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub at: Timestamp,
    pub job: JobId,
    /// Where it came to.
    pub stage: StageKind,
    pub round: u32,
    /// What went wrong or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The transcription, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcription: Option<TranscriptionId>,
}

/// Reads. What is read is what was committed, durable or not.
#[async_trait::async_trait]
pub trait Queries: Send + Sync {
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError>;

    /// A job by its name.
    async fn find(&self, key: &JobKey) -> Result<Option<Job>, StoreError>;

    /// Whether this is the name of a file that was written for a job.
    async fn is_output(&self, key: &JobKey) -> Result<bool, StoreError>;

    /// The job that wrote outputs of this name, whatever their endings are.
    async fn output_owner(&self, key: &JobKey) -> Result<Option<Job>, StoreError>;

    /// Jobs by number, but for those that a person had forgotten.
    async fn page(&self, filter: &Filter) -> Result<Vec<Job>, StoreError>;

    /// The next of these after a number, by number; at most so many. Others are not read.
    async fn jobs_in(&self, subset: JobSubset, after: Option<JobId>, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// How many jobs are where.
    async fn counts(&self) -> Result<JobCounts, StoreError> {
        self.counts_of(ALL).await
    }

    /// How many jobs of these groups are where.
    async fn counts_of(&self, of: GroupFilter<'_>) -> Result<JobCounts, StoreError>;

    /// How many jobs of each source are where; of those that have any.
    async fn counts_by_source(&self) -> Result<BTreeMap<SourceName, JobCounts>, StoreError>;

    /// Jobs that have not ended, those together that are of one group, at one stage, and have one word for what
    /// they wait for ([`crate::domain::reason::job_wait_reason`]): some dozens, whatever the number of jobs.
    async fn waiting_groups(&self) -> Result<Vec<WaitingGroup>, StoreError>;

    /// A job's history, oldest first.
    async fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError>;

    /// The pauses that were given and not taken back.
    async fn pauses(&self) -> Result<Pauses, StoreError>;
}
