//! One log line for each job that ends, and for each attempt that failed.

use super::Engine;
use crate::domain::charge::{Charge, State};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::manifest_row::unless_corrected;
use crate::domain::names::Timestamp;
use crate::domain::review::Review;
use crate::domain::stage::Stage;
use crate::domain::time_span::time_span;

/// Log target of the lines about finished jobs. `once` shows them without `-v`.
pub const FINISHED: &str = "scribed::finished";

impl Engine {
    /// Logs a job that a commit has brought to its end or that waits for a person.
    pub(super) fn log_end(&self, job: &Job) {
        match &job.stage {
            Stage::Written { .. } => log_written(job),
            Stage::Failed { fault, .. } => self.log_failed(job, fault),
            Stage::Skipped { why } => {
                let (id, source, path) = (job.id, &job.key.source, &job.key.path);
                tracing::info!(target: FINISHED, job = %id, %source, %path, reason = %why.describe(), "skipped");
            }
            _ => self.log_question(job),
        }
    }

    /// Logs a failed job: the first failures of one kind as warnings, the others at level info.
    fn log_failed(&self, job: &Job, fault: &Fault) {
        let (id, source, path, reason, next) =
            (job.id, &job.key.source, &job.key.path, &fault.words, after_failure(job));
        match self.log_limit.has_line(fault.kind.name(), job.since) {
            true => tracing::warn!(target: FINISHED, job = %id, %source, %path, %reason, %next, "failed"),
            false => tracing::info!(target: FINISHED, job = %id, %source, %path, %reason, %next, "failed"),
        }
    }

    /// Logs a job that waits for a person. Problems of a whole service are logged elsewhere.
    fn log_question(&self, job: &Job) {
        let asks = |fault: &&Fault| matches!(fault.kind, FaultKind::Asks | FaultKind::Mismatch | FaultKind::Sidecar);
        let Some(fault) = job.fault.as_ref().filter(asks) else { return };
        let is_of_service = job.bought_at.is_some() && fault.kind != FaultKind::Mismatch;
        if job.due.is_some() || is_of_service || !self.log_limit.has_line("person", fault.at) {
            return;
        }
        let (id, source, path, reason) = (job.id, &job.key.source, &job.key.path, &fault.words);
        let next = format!("nothing until a person decides; `scribed show {id}` shows what can be done");
        tracing::warn!(target: FINISHED, job = %id, %source, %path, %reason, %next, "a job waits for a person");
    }

    /// Logs a failed attempt that is followed by another one.
    pub(super) fn log_attempt(&self, job: &Job, fault: &Fault, (at, attempts): (Timestamp, u32), now: Timestamp) {
        let (id, source, path, reason) = (job.id, &job.key.source, &job.key.path, &fault.words);
        let wait = time_span(std::time::Duration::from_secs(at.duration_since(now).as_secs()));
        let next =
            format!("scribed tries again in {wait} (attempt {} of {})", attempts + 1, self.parts().retry.attempts);
        tracing::info!(job = %id, %source, %path, %reason, %next, "an attempt failed");
    }
}

fn log_written(job: &Job) {
    let (id, source, path) = (job.id, &job.key.source, &job.key.path);
    let outputs = job.outputs.iter().map(crate::domain::job::Output::display_name).collect::<Vec<_>>().join(", ");
    let audio_seconds = job.stage.audio().map(|audio| seconds(audio.millis));
    let charge = job.result_charge().or_else(|| job.part_charges().next());
    // Without a charge of its own, the result is one that this job or another one bought before.
    let reused = (charge.is_none() && !job.charges.is_empty()).then_some(0);
    let billed_seconds = job.result_amount().or(reused).map(seconds);
    let took_seconds = charge.and_then(|charge| took(charge, job.since));
    let without = job.missing_names().map(tracing::field::display);
    let unread = job.unread();
    let warnings = job.review().map(Review::count).filter(|count| *count > 0);
    tracing::info!(
        target: FINISHED, job = %id, %source, %path, audio_seconds, billed_seconds, took_seconds, without, unread,
        warnings,
        %outputs, "done"
    );
}

/// Returns the seconds from the submission to the outputs; `None` if nothing was bought for this job.
fn took(charge: &Charge, written: Timestamp) -> Option<f64> {
    let is_known = charge.state == State::Spent && charge.at != Charge::UNDATED;
    is_known.then(|| (written.duration_since(charge.at).as_secs_f64() * 10.0).round() / 10.0)
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

/// What happens next to a job that failed.
fn after_failure(job: &Job) -> String {
    let id = job.id;
    let cost = if job.stage.retry_buys() { ", with another purchase" } else { "" };
    let row = unless_corrected(job);
    format!(
        "nothing by itself{row}; `scribed retry {id}` tries again{cost}, `scribed acknowledge {id}` acknowledges the \
         failure"
    )
}
