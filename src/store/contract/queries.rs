//! Reading: for everyone.

use super::{ALL, GroupFilter, StoreError};
use crate::domain::format::Format;
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{Hash, JobId, SourceName, Timestamp, TranscriptionId};
use crate::domain::pause::Pauses;
use crate::domain::stage::StageKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokio::sync::broadcast;

/// Number of jobs by stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobCounts {
    by_kind: [u64; StageKind::ALL.len()],
    /// How many jobs at `submitting` and `submitted` do nothing before a person acts.
    pub parked_in_flight: u64,
    /// How many failed jobs nobody has acknowledged.
    pub unhandled_failures: u64,
    /// How many incomplete jobs nobody has acknowledged.
    pub unhandled_incomplete: u64,
    /// How many written jobs lack something that was requested or could not be read ([`Job::is_incomplete`]).
    pub incomplete: u64,
    /// How many of the incomplete jobs lack nothing that was requested ([`Job::lacks_only_recognition`]).
    pub not_understood: u64,
    /// How many of these nobody has acknowledged.
    pub unhandled_not_understood: u64,
    /// How many jobs have warnings that nobody has acknowledged ([`Job::is_suspect`]).
    pub suspect: u64,
    /// When the job that has waited longest ([`StageKind::is_waiting`]) reached its stage, in whole seconds.
    pub waiting_since: Option<Timestamp>,
}

impl JobCounts {
    /// Counts the jobs at this stage.
    pub fn of(&self, kind: StageKind) -> u64 {
        self.by_kind[kind as usize]
    }

    /// Returns the count of this stage to be changed, for a store that counts.
    pub fn of_mut(&mut self, kind: StageKind) -> &mut u64 {
        &mut self.by_kind[kind as usize]
    }

    /// Counts the jobs towards the service's limit of running transcriptions: a create may have been sent, and no
    /// person is asked.
    pub fn running(&self) -> u64 {
        (self.of(StageKind::Submitting) + self.of(StageKind::Submitted)).saturating_sub(self.parked_in_flight)
    }

    /// Counts the jobs that are at a service or being written, and for which no person is asked.
    pub fn on_their_way(&self) -> u64 {
        self.running() + self.of(StageKind::Fetched)
    }

    pub fn total(&self) -> u64 {
        self.by_kind.iter().sum()
    }

    /// Counts the jobs that have not ended.
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
        self.not_understood += more.not_understood;
        self.unhandled_not_understood += more.unhandled_not_understood;
        self.suspect += more.suspect;
        self.waiting_since = self.waiting_since.into_iter().chain(more.waiting_since).min();
    }
}

/// What [`Queries::page`] returns.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Jobs at these stages; empty means all.
    pub stages: Vec<StageKind>,
    /// Only jobs with a number above this one.
    pub after: Option<JobId>,
    /// At most this many jobs; at least 1.
    pub limit: usize,
}

/// Written jobs of a source that were rendered with the same settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderingCount {
    pub source: SourceName,
    /// The hash of the settings; `None` where it is not stored.
    pub settings: Option<Hash>,
    /// The formats of the outputs, where the hash is not stored; empty if they are not stored either.
    pub formats: Vec<Format>,
    pub jobs: u64,
}

/// Jobs that wait for the same thing, with one of them as an example.
#[derive(Debug, Clone)]
pub struct WaitingGroup {
    pub one: Job,
    /// How many jobs there are.
    pub jobs: u64,
}

/// Small subsets of the jobs ([`Queries::jobs_in`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobSubset {
    /// Jobs that wait for their source's folder.
    Away,
    /// Jobs that cost something, or may have.
    WithCost,
    /// Jobs that are written and lack something that was requested or could not be read.
    Incomplete,
    /// Jobs with warnings of the check of their results that nobody has acknowledged ([`Job::is_suspect`]).
    Suspect,
    /// Jobs that a person had forgotten.
    Forgotten,
}

/// One line of a job's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub at: Timestamp,
    pub job: JobId,
    /// The stage that the job reached.
    pub stage: StageKind,
    #[serde(rename = "round")]
    pub purchase_number: u32,
    /// What went wrong, or what the job waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The transcription, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcription: Option<TranscriptionId>,
}

/// Reads the queue. Reads see what was committed, durable or not.
#[async_trait::async_trait]
pub trait Queries: Send + Sync {
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError>;

    /// Returns the job of a recording.
    async fn find(&self, key: &JobKey) -> Result<Option<Job>, StoreError>;

    /// Whether this is the name of a file that was written for a job.
    async fn is_output(&self, key: &JobKey) -> Result<bool, StoreError>;

    /// Returns the job that wrote outputs of this name, whatever their extensions are.
    async fn output_owner(&self, key: &JobKey) -> Result<Option<Job>, StoreError>;

    /// Returns jobs by number, except those that a person had forgotten.
    async fn page(&self, filter: &Filter) -> Result<Vec<Job>, StoreError>;

    /// Returns the next jobs of a subset after a number, by number and at most `limit`. Other jobs are not read.
    async fn jobs_in(&self, subset: JobSubset, after: Option<JobId>, limit: usize) -> Result<Vec<Job>, StoreError>;

    /// Counts the jobs by stage.
    async fn counts(&self) -> Result<JobCounts, StoreError> {
        self.counts_of(ALL).await
    }

    /// Counts the jobs of these groups by stage.
    async fn counts_of(&self, of: GroupFilter<'_>) -> Result<JobCounts, StoreError>;

    /// Counts the jobs of each source by stage, for sources that have any.
    async fn counts_by_source(&self) -> Result<BTreeMap<SourceName, JobCounts>, StoreError>;

    /// Returns the jobs that have not ended, grouped by group, stage and wait reason
    /// ([`crate::domain::reason::job_wait_reason`]). These are some dozens of groups, whatever the number of jobs.
    async fn waiting_groups(&self) -> Result<Vec<WaitingGroup>, StoreError>;

    /// Counts the written jobs by what they were rendered with. Reads no row.
    async fn renderings(&self) -> Result<Vec<RenderingCount>, StoreError>;

    /// Returns a job's history, oldest entry first.
    async fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError>;

    /// Returns the lines of all histories from now on, as they are written. A receiver that is too slow misses some.
    fn steps(&self) -> broadcast::Receiver<HistoryEntry>;

    /// Returns the pauses that are in effect.
    async fn pauses(&self) -> Result<Pauses, StoreError>;
}
