//! What the engine remembers only while the process lives. Losing it costs time, never money.

use super::Engine;
use super::in_flight::InFlightCreates;
use super::list_view::ListView;
use crate::clock::Uptime;
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName};
use crate::domain::stage::StageKind;
use std::collections::{BTreeSet, HashMap};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// What is remembered only while the process lives. Losing it costs time, never money.
#[derive(Default)]
pub(super) struct VolatileState {
    pub(super) chance: fastrand::Rng,
    /// Faults in a row by job.
    rows: HashMap<JobId, Row>,
    /// How uploads, creates and reads fare, by the stage at which they are asked for.
    fares: HashMap<StageKind, Fare>,
    /// Creates of this process of which it is not written down what became of them.
    pub(super) creates: InFlightCreates,
    /// Sources whose outputs could not be written when it was last tried.
    pub(super) unwritable: BTreeSet<SourceName>,
    /// Where this service was when it was given what it is not asked for any more, as far as that was said.
    pub(super) elsewhere: BTreeSet<String>,
}

impl VolatileState {
    pub(super) fn new(seed: u64) -> Self {
        Self { chance: fastrand::Rng::with_seed(seed), ..Self::default() }
    }
}

/// While this lives, a create may be on its way: whoever comes to hold its job, because the machine
/// slept or its clock was set, must not take the list's word yet.
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

/// How one kind of request fares.
#[derive(Default, Clone, Copy)]
struct Fare {
    /// How many got through.
    through: u64,
    /// Whether a job that was never answered wrongly before has been since the last one got through:
    /// then it is not only the few who always are.
    spreads: bool,
}

#[derive(Default, Clone, Copy)]
struct Row {
    faults: u32,
    /// Of these, wrong answers while others got through with the same request.
    alone: u32,
    through: u64,
    /// When a read first said that its transcription is not there.
    missed: Option<Uptime>,
}

#[derive(Clone, Copy)]
pub(super) struct FaultCounts {
    /// Faults in a row before this one.
    pub(super) faults: u32,
    /// How many wrong answers it met while others got through.
    pub(super) alone: u32,
}

impl Engine {
    pub(super) fn begin_create(&self, job: JobId) -> CreateInFlight<'_> {
        self.memory().creates.begin(job);
        CreateInFlight { engine: self, job }
    }

    pub(super) fn got_through(&self, asked: StageKind) {
        let mut memory = self.memory();
        let fare = memory.fares.entry(asked).or_default();
        fare.through += 1;
        fare.spreads = false;
    }

    /// One more fault in a row for this job; `wrong`: the service answered it wrongly.
    pub(super) fn count_fault(&self, job: &Job, wrong: bool) -> FaultCounts {
        let mut memory = self.memory();
        let VolatileState { fares, rows, .. } = &mut *memory;
        let fare = fares.entry(job.stage.kind()).or_default();
        let row = rows.entry(job.id).or_default();
        if wrong {
            let is_first = row.alone == 0;
            fare.spreads |= is_first;
            // Whether the rest gets on, or has got on and only those that always fail are left.
            if is_first || fare.through > row.through || !fare.spreads {
                row.alone += 1;
                row.through = fare.through;
            }
        }
        row.faults += 1;
        FaultCounts { faults: row.faults - 1, alone: row.alone }
    }

    /// How long ago, by a clock that nobody sets, a read first said that this job's transcription is not
    /// there; no time, if it is now.
    pub(super) fn missing_for(&self, job: JobId) -> Duration {
        let now = self.parts().clock.uptime();
        now.since(*self.memory().rows.entry(job).or_default().missed.get_or_insert(now))
    }

    pub(super) fn forget_faults(&self, job: JobId) {
        self.memory().rows.remove(&job);
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
