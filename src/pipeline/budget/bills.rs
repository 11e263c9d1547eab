//! Logs what services bill beyond the reservations: one line for many files, not one for each.

use crate::domain::charge::Charge;
use crate::domain::count::count;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::stage::AudioAmount;
use crate::pipeline::budget::{BudgetGate, hours};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bills above their reservation are collected for this long before they are logged …
const GATHERED: Duration = Duration::from_secs(60);

/// … and the next line comes no sooner than this long after the last one.
const SILENT: Duration = Duration::from_secs(3600);

/// How much more was billed than was reserved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excess {
    /// Number of files.
    pub files: u64,
    /// Milliseconds of audio that were reserved for them.
    pub reserved: u64,
    /// Milliseconds of audio that were billed for them.
    pub billed: u64,
    /// The file that exceeds its reservation most, as `source/path`, and by how many milliseconds.
    pub most: Option<(String, u64)>,
}

impl Excess {
    fn add(&mut self, name: &str, reserved: u64, billed: u64) {
        self.files += 1;
        self.reserved = self.reserved.saturating_add(reserved);
        self.billed = self.billed.saturating_add(billed);
        let by = billed.saturating_sub(reserved);
        if self.most.as_ref().is_none_or(|(_, most)| by > *most) {
            self.most = Some((name.to_owned(), by));
        }
    }

    pub fn words(&self) -> String {
        let Self { files, reserved, billed, most } = self;
        let most =
            most.as_ref().map(|(name, by)| format!("; most for {name}: {} more", hours(*by))).unwrap_or_default();
        format!("{} billed for {}, {} reserved{most}", hours(*billed), count(*files, "file"), hours(*reserved))
    }
}

impl BudgetGate {
    /// Notes the bill of a result if it exceeds the reservation. Does nothing without a budget.
    pub fn record_bill(&self, job: &Job, audio: &AudioAmount, now: Timestamp) {
        let bill = audio.billed.or_else(|| audio.reservation_millis());
        if let (Some(charge), Some(billed), true) = (job.result_charge(), bill, self.is_set()) {
            self.excess().note(job, charge, billed, now);
        }
    }
}

/// Collects bills above their reservations and logs them together.
#[derive(Debug, Default)]
pub struct ExcessLog(Mutex<Gathered>);

#[derive(Debug, Default)]
struct Gathered {
    total: Excess,
    unlogged: Excess,
    since: Option<Timestamp>,
    logged_at: Option<Timestamp>,
}

impl ExcessLog {
    /// Notes what was billed for a job's charge if it is more than was reserved.
    pub fn note(&self, job: &Job, charge: &Charge, billed: u64, now: Timestamp) {
        let Some(reserved) = charge.reserved.filter(|reserved| billed > *reserved) else { return };
        tracing::debug!(job = %job.id, path = %job.key.path, billed = %hours(billed), reserved = %hours(reserved), "the service billed more than scribed had reserved");
        let name = job.key.to_string();
        let mut gathered = self.gathered();
        gathered.total.add(&name, reserved, billed);
        gathered.unlogged.add(&name, reserved, billed);
        gathered.since.get_or_insert(now);
    }

    /// Returns how long until something has to be logged; `None` if there is nothing to log.
    pub fn due(&self, now: Timestamp) -> Option<Duration> {
        let gathered = self.gathered();
        let gathers = gathered.since?.saturating_add(GATHERED).duration_since(now);
        let is_silent = gathered
            .logged_at
            .map(|logged_at| logged_at.saturating_add(SILENT).duration_since(now))
            .unwrap_or_default();
        Some(gathers.max(is_silent))
    }

    /// Logs what was not logged yet, if that is due or `is_last`.
    pub fn log_due(&self, now: Timestamp, is_last: bool) {
        if !is_last && self.due(now) != Some(Duration::ZERO) {
            return;
        }
        let mut gathered = self.gathered();
        if gathered.since.take().is_none() {
            return;
        }
        let unlogged = std::mem::take(&mut gathered.unlogged);
        gathered.logged_at = Some(now);
        drop(gathered);
        let words = unlogged.words();
        tracing::warn!(
            files = unlogged.files,
            "the service billed more than scribed had reserved: {words}; the difference counts against the \
             budgets. `scribed cost --by job` shows each file"
        );
    }

    /// Returns the total since the process began or loaded its configuration.
    pub fn all(&self) -> Excess {
        self.gathered().total.clone()
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
