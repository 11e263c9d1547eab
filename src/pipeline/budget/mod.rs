//! Limits what may be bought: budgets, the recordings of a plan, the limits of a pass, and bills above what was
//! reserved. The store keeps the sums and checks the limits. `reserve.rs` reserves before the upload and once more right
//! before the create; `in_effect.rs` has the budget as it is now, whatever was reloaded since; `wake_deferred.rs` wakes
//! jobs that fit when a reservation was released; `bills.rs` logs what services bill beyond their reservations;
//! `deferral.rs` remembers the jobs that were refused. Start reading at `reserve.rs`.

mod bills;
mod deferral;
mod describe;
mod in_effect;
pub(crate) mod pass_limits;
pub(crate) mod plan_allowlist;
mod reserve;
mod wake_deferred;

pub use bills::Excess;
pub use deferral::Deferral;
pub(crate) use deferral::ENOUGH;
pub use describe::hours;

use crate::domain::budget::{Budget, BudgetLimit, Period};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp};
use crate::domain::stage::AudioAmount;
use crate::domain::zone::Zone;
use crate::pipeline::budget::bills::ExcessLog;
use crate::pipeline::budget::deferral::Refused;
use crate::pipeline::budget::in_effect::BudgetInEffect;
use crate::pipeline::budget::pass_limits::PassLimits;
use crate::pipeline::budget::plan_allowlist::PlanAllowlist;
use crate::rooted_path::RootedPath;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Measures how much audio a file holds, as far as that can be told without sending it. Takes the file's path, its
/// job's key and its stamp.
pub type Measure = Arc<dyn Fn(RootedPath, JobKey, Stamp) -> BoxFuture<'static, Option<AudioAmount>> + Send + Sync>;

/// The budgets and the jobs that wait for them. One gate for all engines of a process; a reload makes another one.
pub struct BudgetGate {
    budget: Arc<BudgetInEffect>,
    measure: Measure,
    refused: Mutex<BTreeMap<JobId, Refused>>,
    /// The services that nothing is sent to now.
    unserved: Mutex<BTreeSet<ServiceName>>,
    /// Whether jobs wait for others that come before them in the budget order.
    awaited: AtomicBool,
    excess: ExcessLog,
    /// The recordings of a plan, if a person has chosen by a plan what may be bought.
    chosen: OnceLock<PlanAllowlist>,
    /// What a person limits for this pass.
    pass: OnceLock<PassLimits>,
}

impl BudgetGate {
    /// Creates a gate that has refused no job yet.
    pub fn new(budget: Budget, zone: Zone, measure: Measure) -> Self {
        Self::of(Arc::new(BudgetInEffect::new(budget, zone)), measure)
    }

    /// Creates the gate that takes the place of an earlier one. From now on this budget is in effect, also for tasks that
    /// began with the earlier gate.
    pub fn replacing(old: &Self, budget: Budget, zone: Zone, measure: Measure) -> Self {
        old.budget.replace(budget, zone);
        Self::of(Arc::clone(&old.budget), measure)
    }

    fn of(budget: Arc<BudgetInEffect>, measure: Measure) -> Self {
        Self {
            budget,
            measure,
            refused: Mutex::default(),
            unserved: Mutex::default(),
            awaited: AtomicBool::new(false),
            excess: ExcessLog::default(),
            chosen: OnceLock::new(),
            pass: OnceLock::new(),
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

    /// Restricts purchases to these recordings. Only the first call counts.
    pub fn restrict_to(&self, chosen: PlanAllowlist) {
        drop(self.chosen.set(chosen));
    }

    /// The recordings of a plan, if a person has chosen by one.
    pub fn allowlist(&self) -> Option<&PlanAllowlist> {
        self.chosen.get()
    }

    /// Limits what this process buys. Only the first call counts.
    pub fn limit_pass(&self, limits: PassLimits) {
        drop(self.pass.set(limits));
    }

    /// The limits of this pass, if a person has set any.
    pub fn pass_limits(&self) -> Option<&PassLimits> {
        self.pass.get()
    }

    /// Whether a job may go on: there is no plan, or the plan has it, and the limits of the pass select it.
    pub fn allows(&self, job: &Job) -> bool {
        self.allowlist().is_none_or(|chosen| chosen.allows(job))
            && self.pass_limits().is_none_or(|limits| limits.selects(job))
    }

    /// Whether only some recordings are chosen for this process: by a plan, or by their paths.
    pub fn is_selective(&self) -> bool {
        self.allowlist().is_some() || self.pass_limits().is_some_and(|limits| limits.only.is_some())
    }

    /// Whether a job is among the chosen recordings, whatever its state.
    pub fn names(&self, job: &Job) -> bool {
        let only = self.pass_limits().and_then(|limits| limits.only.as_ref());
        self.allowlist().is_none_or(|chosen| chosen.names(&job.key))
            && only.is_none_or(|only| only.has(&job.key, job.row.as_deref()))
    }

    /// Returns every limit as it is now.
    pub fn limits(&self, now: Timestamp) -> Vec<BudgetLimit> {
        let (budget, zone) = self.budget.now();
        budget.limits(zone.day(now), zone.month(now))
    }

    /// Whether a job waits for the budget of the next run: a limit that only another run resets refused it.
    pub fn is_for_next_run(&self, job: &Job, now: Timestamp) -> bool {
        let is_refused = |fault: &Fault| fault.kind == FaultKind::Budget && !fault.asks && fault.need.is_some();
        let has_run = || self.limits_for(&job.key.source, now).iter().any(|limit| limit.period == Period::Run);
        job.due.is_none() && job.fault.as_ref().is_some_and(is_refused) && has_run()
    }

    /// Returns the limits that a purchase for this source has to fit into now.
    pub fn limits_for(&self, source: &SourceName, now: Timestamp) -> Vec<BudgetLimit> {
        let (budget, zone) = self.budget.now();
        budget.limits_for_source(source, zone.day(now), zone.month(now))
    }

    /// Returns a number that changes with the budget: what was reserved under another number has to be reserved again
    /// before anything is sent.
    pub fn edition(&self) -> u64 {
        self.budget.edition()
    }

    fn refused(&self) -> MutexGuard<'_, BTreeMap<JobId, Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
