//! What may still be bought: budgets, the recordings of a plan, and bills beyond what was reserved. The sums and the
//! limits are the store's. `reserve.rs` reserves, before the upload and once more right before the create; `release.rs`
//! wakes who fits when a reservation was released; `bills.rs` has what services bill beyond that; `deferral.rs`
//! remembers who was refused.

mod bills;
mod deferral;
mod describe;
pub(crate) mod plan_allowlist;
mod release;
mod reserve;

pub use deferral::{Deferral, ExhaustedBudgets};
pub use describe::hours;

use crate::domain::budget::{Budget, BudgetLimit};
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp};
use crate::domain::stage::AudioAmount;
use crate::domain::zone::Zone;
use crate::pipeline::budget::bills::ExcessLog;
use crate::pipeline::budget::deferral::Refused;
use crate::pipeline::budget::plan_allowlist::PlanAllowlist;
use crate::rooted_path::RootedPath;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How much audio the file at this path holds, which has this name and is in this state, as far as that can be
/// told without sending it.
pub type Measure = Arc<dyn Fn(RootedPath, JobKey, Stamp) -> BoxFuture<'static, Option<AudioAmount>> + Send + Sync>;

/// The budget and who waits for it. One for all engines of a process.
pub struct BudgetGate {
    budget: Budget,
    zone: Zone,
    measure: Measure,
    refused: Mutex<BTreeMap<JobId, Refused>>,
    /// The services that nothing is sent to now.
    unserved: Mutex<BTreeSet<ServiceName>>,
    /// Whether some wait for jobs that come before them in line.
    awaited: AtomicBool,
    excess: ExcessLog,
    /// Where a person has chosen by a plan what may be bought.
    chosen: OnceLock<PlanAllowlist>,
}

impl BudgetGate {
    /// With nobody refused yet.
    pub fn new(budget: Budget, zone: Zone, measure: Measure) -> Self {
        Self {
            budget,
            zone,
            measure,
            refused: Mutex::default(),
            unserved: Mutex::default(),
            awaited: AtomicBool::new(false),
            excess: ExcessLog::default(),
            chosen: OnceLock::new(),
        }
    }

    /// Whether there is any budget.
    pub fn is_set(&self) -> bool {
        !self.limits(Timestamp(0)).is_empty()
    }

    /// What was billed beyond its reservations.
    pub fn excess(&self) -> &ExcessLog {
        &self.excess
    }

    /// Whether anything is sent to a service now: nobody waits for jobs of one that is out.
    pub fn set_served(&self, service: &ServiceName, is_served: bool) {
        let mut unserved = self.unserved.lock().unwrap_or_else(PoisonError::into_inner);
        match is_served {
            true => unserved.remove(service),
            false => unserved.insert(service.clone()),
        };
    }

    pub fn is_served(&self, service: &ServiceName) -> bool {
        !self.unserved.lock().unwrap_or_else(PoisonError::into_inner).contains(service)
    }

    /// Some wait for jobs that come before them in line, which may be another service's.
    pub fn note_waiting(&self, some: bool) {
        if some {
            self.awaited.store(true, Ordering::Relaxed);
        }
    }

    /// Whether some waited for others since this was last asked.
    pub fn take_waiting(&self) -> bool {
        self.awaited.swap(false, Ordering::Relaxed)
    }

    /// The days that it counts in.
    pub fn zone(&self) -> Zone {
        self.zone
    }

    /// From now on nothing is bought but for these. The first word counts.
    pub fn restrict_to(&self, chosen: PlanAllowlist) {
        drop(self.chosen.set(chosen));
    }

    /// What a person has chosen by a plan.
    pub fn allowlist(&self) -> Option<&PlanAllowlist> {
        self.chosen.get()
    }

    /// Whether a job may move on: nothing is chosen, or it is among that.
    pub fn allows(&self, job: &Job) -> bool {
        self.allowlist().is_none_or(|chosen| chosen.allows(job))
    }

    /// Every limit as it is now.
    pub fn limits(&self, now: Timestamp) -> Vec<BudgetLimit> {
        self.budget.limits(self.zone.day(now), self.zone.month(now))
    }

    /// What a purchase for this source has to fit into now.
    pub fn limits_for(&self, source: &SourceName, now: Timestamp) -> Vec<BudgetLimit> {
        self.budget.limits_for_source(source, self.zone.day(now), self.zone.month(now))
    }

    fn refused(&self) -> MutexGuard<'_, BTreeMap<JobId, Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
