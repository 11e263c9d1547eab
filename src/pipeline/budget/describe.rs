//! Texts about budgets.

use crate::domain::budget::{BudgetExceeded, Period, check_accounts};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::stage::StageKind;
use crate::domain::zone::Zone;
use crate::pipeline::budget::BudgetGate;
use crate::store::contract::{Budgets, StoreError};

impl BudgetGate {
    pub(super) fn describe(&self, job: &Job, over: &BudgetExceeded) -> String {
        let [amount, left, allowed] = [over.need, over.left, over.limit.allowed].map(hours);
        let need = match job.split.as_deref() {
            Some(split) if split.bought().next().is_some() => {
                format!("{amount} of billed audio for the parts that are not bought yet")
            }
            Some(split) => format!("{amount} of billed audio for its {} parts together", split.count()),
            None => format!("{amount} of billed audio"),
        };
        let setting = over.limit.setting();
        if over.exceeds_whole_limit() {
            return format!(
                "it needs {need}, more than {setting} ever allows ({allowed}): raise that setting (a daemon reads it at `scribed reload`), or end the job with `scribed cancel`; other jobs continue"
            );
        }
        let again = match (over.fits_at(), over.limit.period) {
            (Some(at), _) => format!("the job continues at {}", Zone::UTC.format_minute(at)),
            (None, Period::Run) => "the job continues with the next run".to_owned(),
            (None, _) => "the job continues when you raise the budget and `scribed reload`".to_owned(),
        };
        format!("it needs {need}, and {setting} ({allowed}) has {left} left: {again}")
    }

    /// Returns a job as it is shown: its fault has the amount that is left now, not the one at its refusal. A job
    /// that is not tried for now gets a fault that says so, since its row has none.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn with_budget_fault(&self, store: &dyn Budgets, job: Job, now: Timestamp) -> Result<Job, StoreError> {
        if job.stage.kind() != StageKind::Probed {
            return Ok(job);
        }
        if let Some(fault) = job.fault.clone().filter(|fault| fault.kind == FaultKind::Budget) {
            return self.with_current_amounts(store, job, fault, now).await;
        }
        let is_tried = job.bumped.is_some() || job.reservation().is_some();
        if job.fault.is_some() || is_tried || !self.exhausted(now).covers(&job.key.source) {
            return Ok(job);
        }
        let words =
            "the budget is used up by other jobs: `scribed status` shows what is left and when the next period begins";
        let (until, fault) = (self.next_opening(now), Fault::new(FaultKind::Budget, words, now));
        Ok(job.deferred(until, Some(fault)))
    }

    async fn with_current_amounts(
        &self,
        store: &dyn Budgets,
        job: Job,
        fault: Fault,
        now: Timestamp,
    ) -> Result<Job, StoreError> {
        let accounts = store.accounts(&self.limits_for(&job.key.source, now)).await?;
        let over = match fault.need {
            // Without a limit the length need not be known.
            None if accounts.is_empty() => Ok(()),
            None => return Ok(job),
            Some(need) => check_accounts(accounts, need),
        };
        Ok(match over {
            Ok(()) => job.deferred(Some(now), None),
            Err(over) => {
                let fault = Fault { words: self.describe(&job, &over), asks: over.needs_person(), ..fault };
                job.deferred(over.fits_at(), Some(fault))
            }
        })
    }
}

/// Formats an amount of audio in a unit that suits it: a first try is seconds long, an archive hours.
pub fn hours(millis: u64) -> String {
    match millis {
        0..60_000 => format!("{:.1} s", millis as f64 / 1e3),
        60_000..3_600_000 => format!("{:.1} min", millis as f64 / 6e4),
        _ => format!("{:.2} h", millis as f64 / 3.6e6),
    }
}
