//! What services bill beyond what was reserved for it: one line for all of it, not one for each file.

use crate::domain::charge::Charge;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::stage::AudioAmount;
use crate::pipeline::budget::{BudgetGate, hours};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What comes within so long after the first is told with it …
const GATHERED: Duration = Duration::from_secs(60);

/// … and the next line comes no sooner than so long after the last.
const SILENT: Duration = Duration::from_secs(3600);

/// How much more was billed than reserved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excess {
    /// For so many files.
    pub files: u64,
    /// Milliseconds of billed audio that were reserved for them.
    pub reserved: u64,
    /// What was billed for them.
    pub billed: u64,
    /// The one that exceeds its reservation most, as `source/path`, and by how much.
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
        format!("{} billed for {files} files, {} reserved{most}", hours(*billed), hours(*reserved))
    }
}

impl BudgetGate {
    /// A result came, and with it its bill: what exceeds the reservation is told. Without a budget nobody minds.
    pub fn record_bill(&self, job: &Job, audio: &AudioAmount, now: Timestamp) {
        let bill = audio.billed.or_else(|| audio.reservation_millis());
        if let (Some(charge), Some(billed), true) = (job.charges.last(), bill, self.is_set()) {
            self.excess().note(job, charge, billed, now);
        }
    }
}

/// Gathers it and tells it.
#[derive(Debug, Default)]
pub struct ExcessLog(Mutex<Gathered>);

#[derive(Debug, Default)]
struct Gathered {
    all: Excess,
    pending_deliveries: Excess,
    since: Option<Timestamp>,
    told: Option<Timestamp>,
}

impl ExcessLog {
    /// What a job's charge came to, by its bill.
    pub fn note(&self, job: &Job, charge: &Charge, billed: u64, now: Timestamp) {
        let Some(reserved) = charge.reserved.filter(|reserved| billed > *reserved) else { return };
        tracing::debug!(job = %job.id, path = %job.key.path, billed = %hours(billed), reserved = %hours(reserved), "the service billed more than scribed had reserved");
        let name = format!("{}/{}", job.key.source, job.key.path);
        let mut gathered = self.gathered();
        gathered.all.add(&name, reserved, billed);
        gathered.pending_deliveries.add(&name, reserved, billed);
        gathered.since.get_or_insert(now);
    }

    /// How long until something has to be told.
    pub fn due(&self, now: Timestamp) -> Option<Duration> {
        let gathered = self.gathered();
        let gathers = gathered.since?.saturating_add(GATHERED).duration_since(now);
        let is_silent = gathered.told.map(|told| told.saturating_add(SILENT).duration_since(now)).unwrap_or_default();
        Some(gathers.max(is_silent))
    }

    /// Tells what was not told yet; `is_last`: whether it is due or not.
    pub fn tell(&self, now: Timestamp, is_last: bool) {
        if !is_last && self.due(now) != Some(Duration::ZERO) {
            return;
        }
        let mut gathered = self.gathered();
        if gathered.since.take().is_none() {
            return;
        }
        let pending_deliveries = std::mem::take(&mut gathered.pending_deliveries);
        gathered.told = Some(now);
        drop(gathered);
        let words = pending_deliveries.words();
        tracing::warn!(
            files = pending_deliveries.files,
            "the service billed more than scribed had reserved: {words}; the difference counts against the \
             budgets. `scribed cost --by job` shows each file"
        );
    }

    /// All of it, since the process began or took up its configuration.
    pub fn all(&self) -> Excess {
        self.gathered().all.clone()
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
