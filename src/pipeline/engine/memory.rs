//! What the engine remembers only while the process lives. Losing it costs time, never money.

use super::Engine;
use crate::clock::Uptime;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::names::JobId;
use crate::domain::stage::StageKind;
use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

/// What is remembered only while the process lives. Losing it costs time, never money.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) chance: fastrand::Rng,
    /// Faults in a row by job.
    rows: HashMap<JobId, Row>,
    /// How many uploads, creates and reads got through, by the stage at which they are asked for.
    pub(super) through: HashMap<StageKind, u64>,
    /// Creates of this process of which it is not written down what became of them.
    pub(super) creates: HashMap<JobId, Create>,
    /// Not before: a suspect store's walk was cut short.
    pub(super) trust_from: Option<Uptime>,
    /// How often it was.
    pub(super) trust_cuts: u32,
    /// A suspect store that a person must look at.
    pub(super) distrust: Option<Fault>,
}

impl Memory {
    pub(super) fn new(seed: u64) -> Self {
        Self { chance: fastrand::Rng::with_seed(seed), ..Self::default() }
    }
}

/// A create as its sender sees it.
#[derive(Clone, Copy)]
pub(super) enum Create {
    /// It may still leave, or be answered.
    OnItsWay,
    /// It was answered, given up or dropped then.
    Ended(Uptime),
}

/// While this lives, a create may be on its way: whoever comes to hold its job, because the machine
/// slept or its clock was set, must not take the list's word yet.
pub(super) struct OnItsWay<'a> {
    engine: &'a Engine,
    job: JobId,
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        let ended = Create::Ended(self.engine.parts.clock.uptime());
        self.engine.memory().creates.insert(self.job, ended);
    }
}

#[derive(Default, Clone, Copy)]
struct Row {
    pub(super) faults: u32,
    /// Of these, wrong answers between which others got through with the same request.
    pub(super) alone: u32,
    pub(super) through: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Counted {
    /// Faults in a row before this one.
    pub(super) faults: u32,
    /// How many wrong answers it met while others got through.
    pub(super) alone: u32,
}

impl Engine {
    pub(super) fn on_its_way(&self, job: JobId) -> OnItsWay<'_> {
        self.memory().creates.insert(job, Create::OnItsWay);
        OnItsWay { engine: self, job }
    }

    pub(super) fn got_through(&self, asked: StageKind) {
        *self.memory().through.entry(asked).or_default() += 1;
    }

    /// One more fault in a row for this job; `wrong`: the service answered it wrongly.
    pub(super) fn count(&self, job: &Job, wrong: bool) -> Counted {
        let mut memory = self.memory();
        let through = memory.through.get(&job.stage.kind()).copied().unwrap_or(0);
        let row = memory.rows.entry(job.id).or_default();
        if wrong && (row.alone == 0 || through > row.through) {
            row.alone += 1;
            row.through = through;
        }
        row.faults += 1;
        Counted { faults: row.faults - 1, alone: row.alone }
    }

    pub(super) fn forget(&self, job: JobId) {
        self.memory().rows.remove(&job);
    }

    pub(super) fn forget_create(&self, job: JobId) {
        self.memory().creates.remove(&job);
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
