//! What the engine remembers only while the process lives. Losing it costs time, never money.

use super::Engine;
use super::in_flight::InFlightCreates;
use super::list_view::ListView;
use crate::backpressure::failure_counts::FailureCount;
use crate::clock::Uptime;
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName, Timestamp};
use std::collections::{BTreeSet, HashMap};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// What is remembered only while the process lives. Losing it costs time, never money.
#[derive(Default)]
pub(super) struct VolatileState {
    /// When a read first reported that the transcription of a job is missing.
    missed: HashMap<JobId, Uptime>,
    /// Creates of this process whose outcome is not committed yet.
    pub(super) creates: InFlightCreates,
    /// Sources whose outputs could not be written at the last attempt.
    pub(super) unwritable: BTreeSet<SourceName>,
    /// When jobs began to wait for what this machine lacks; `None` if a job has come further since.
    pub(super) short_since: Option<Timestamp>,
    /// Old addresses of this service whose change was logged.
    pub(super) elsewhere: BTreeSet<String>,
}

/// While this value lives, a create may be under way. Whoever else comes to hold its job, because the machine slept
/// or its clock was set, must not believe the list yet.
pub(super) struct CreateInFlight<'a> {
    engine: &'a Engine,
    job: JobId,
}

impl Drop for CreateInFlight<'_> {
    fn drop(&mut self) {
        let parts = self.engine.parts();
        let (now, lag) = (parts.clock.uptime(), parts.terms.lag);
        self.engine.memory().creates.end(self.job, now, lag);
    }
}

impl Engine {
    pub(super) fn begin_create(&self, job: JobId) -> CreateInFlight<'_> {
        self.memory().creates.begin(job);
        CreateInFlight { engine: self, job }
    }

    /// Counts one more failure in a row of this job. `is_wrong_answer`: the service answered the job's request
    /// wrongly.
    pub(super) fn count_failure(&self, job: &Job, is_wrong_answer: bool) -> FailureCount {
        self.gate.count_failure(job.id, job.stage.kind(), is_wrong_answer)
    }

    /// Returns how long ago a read first reported that this job's transcription is missing, by a clock that nobody
    /// sets; zero the first time.
    pub(super) fn missing_for(&self, job: JobId) -> Duration {
        let now = self.parts().clock.uptime();
        now.since(*self.memory().missed.entry(job).or_insert(now))
    }

    pub(super) fn forget_faults(&self, job: JobId) {
        self.gate.forget_failures(job);
        self.memory().missed.remove(&job);
    }

    pub(super) fn forget_create(&self, job: JobId) {
        self.memory().creates.forget(job);
        self.list_view().forget(job);
    }

    pub(super) fn list_view(&self) -> MutexGuard<'_, ListView> {
        self.list_view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, VolatileState> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
