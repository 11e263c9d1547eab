//! Limits what may be bought: budgets, the recordings of a plan, and bills above what was reserved. The store keeps
//! the sums and checks the limits. `reserve.rs` reserves before the upload and once more right before the create;
//! `release.rs` wakes jobs that fit when a reservation was released; `bills.rs` logs what services bill beyond that;
//! `deferral.rs` remembers the jobs that were refused.

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

/// Measures how much audio a file holds, as far as that can be told without sending it. Takes the file's path, its
/// job's key and its stamp.
pub type Measure = Arc<dyn Fn(RootedPath, JobKey, Stamp) -> BoxFuture<'static, Option<AudioAmount>> + Send + Sync>;

/// The budgets and the jobs that wait for them. One gate for all engines of a process.
pub struct BudgetGate {
    budget: Budget,
    zone: Zone,
    measure: Measure,
    refused: Mutex<BTreeMap<JobId, Refused>>,
    /// The services that nothing is sent to now.
    unserved: Mutex<BTreeSet<ServiceName>>,
    /// Whether jobs wait for others that come before them in the budget order.
    awaited: AtomicBool,
    excess: ExcessLog,
    /// The recordings of a plan, if a person has chosen by a plan what may be bought.
    chosen: OnceLock<PlanAllowlist>,
}

impl BudgetGate {
    /// Creates a gate that has refused no job yet.
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

    /// The bills above their reservations.
    pub fn excess(&self) -> &ExcessLog {
        &self.excess
    }

    /// Sets whether anything is sent to a service now. Jobs do not wait for jobs of a service that is out.
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

    /// Notes that jobs wait for others that come before them in the budget order and may belong to another service.
    pub fn note_waiting(&self, is_waiting: bool) {
        if is_waiting {
            self.awaited.store(true, Ordering::Relaxed);
        }
    }

    /// Whether jobs waited for others since the last call.
    pub fn take_waiting(&self) -> bool {
        self.awaited.swap(false, Ordering::Relaxed)
    }

    /// The time zone of the budgets' days and months.
    pub fn zone(&self) -> Zone {
        self.zone
    }

    /// Restricts purchases to these recordings. Only the first call counts.
    pub fn restrict_to(&self, chosen: PlanAllowlist) {
        drop(self.chosen.set(chosen));
    }

    /// The recordings of a plan, if a person has chosen by one.
    pub fn allowlist(&self) -> Option<&PlanAllowlist> {
        self.chosen.get()
    }

    /// Whether a job may go on: there is no plan, or the plan has it.
    pub fn allows(&self, job: &Job) -> bool {
        self.allowlist().is_none_or(|chosen| chosen.allows(job))
    }

    /// Returns every limit as it is now.
    pub fn limits(&self, now: Timestamp) -> Vec<BudgetLimit> {
        self.budget.limits(self.zone.day(now), self.zone.month(now))
    }

    /// Returns the limits that a purchase for this source has to fit into now.
    pub fn limits_for(&self, source: &SourceName, now: Timestamp) -> Vec<BudgetLimit> {
        self.budget.limits_for_source(source, self.zone.day(now), self.zone.month(now))
    }

    fn refused(&self) -> MutexGuard<'_, BTreeMap<JobId, Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
