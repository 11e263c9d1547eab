//! What an outcome or a fault means for its job, and for the line.

use super::Engine;
use crate::client::contract::Client;
use crate::crash::{self, Point};
use crate::domain::fault::{Blame, Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::retry::{RetryDecision, decide};
use crate::domain::stage::{AudioAmount, JobEvent, Stage, StageKind};
use crate::pipeline::recovery::list_scan::ScanFault;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::store::contract::{Hold, Lease, StoreError};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// A job whose folder is away is due when a scan sees its file again. By itself it asks rarely: there
/// may be a hundred thousand of them. What is fetched may have no file any more, and asks as usual.
const FOLDER_ASKED: Duration = Duration::from_secs(3600);

impl Engine {
    pub(super) fn step(&self, job: Job, event: JobEvent, now: Timestamp) -> Result<Job, Fault> {
        job.on(event, now).map_err(|error| Fault::new(FaultKind::Bug, error.to_string(), now))
    }

    pub(super) async fn commit_outcome(
        &self,
        lease: &Lease,
        job: Job,
        outcome: StageOutcome,
    ) -> Result<(), StoreError> {
        let now = self.parts().clock.now();
        let job = match outcome {
            StageOutcome::Sleep { until, reason } => {
                if job.stage.kind() == StageKind::Submitted {
                    self.heard_good(&job);
                }
                job.resting(Some(until), reason)
            }
            StageOutcome::Rest(until, fault) => job.resting(until, Some(fault)),
            StageOutcome::Step(event) | StageOutcome::StepThen(event, _)
                if job.clone().on(event.clone(), now).is_err() =>
            {
                let words = format!(
                    "internal error: the event {} does not apply to a job at stage {}",
                    event.name(),
                    job.stage.kind().name()
                );
                return self.commit_bug(lease, job, Fault::new(FaultKind::Bug, words, now)).await;
            }
            StageOutcome::Step(event) => self.stepped(job, event, None, now),
            StageOutcome::StepThen(event, due) => self.stepped(job, event, Some(due), now),
        };
        self.commit(lease, &job).await
    }

    pub(super) fn stepped(&self, job: Job, event: JobEvent, due: Option<Timestamp>, now: Timestamp) -> Job {
        self.bore(&event);
        // Other steps from there asked nobody: a twin was found, or the file has changed.
        let is_heard = match &event {
            JobEvent::Uploaded { upload, .. } => upload.is_upload(),
            event => matches!(event, JobEvent::Fetched { .. }),
        };
        if is_heard {
            self.heard_good(&job);
        }
        match &event {
            JobEvent::Fetched { audio } => self.note_excess(&job, audio, now),
            JobEvent::Written { .. } => self.say_writable(&job),
            _ => {}
        }
        self.forget(job.id);
        let before = job.clone();
        let Ok(job) = job.on(event, now) else { return before };
        match due {
            Some(due) => job.resting(Some(due), None),
            None => job,
        }
    }

    /// What is left of the budgets is less by what is billed beyond its reservation. Without a budget nobody minds.
    fn note_excess(&self, job: &Job, audio: &AudioAmount, now: Timestamp) {
        let budget_gate = &self.parts().budget_gate;
        let bill = audio.billed.or_else(|| audio.to_reserve());
        if let (Some(charge), Some(billed), true) = (job.charges.last(), bill, budget_gate.is_set()) {
            budget_gate.excess().note(job, charge, billed, now);
        }
    }

    /// A move that asked the service got its answer.
    fn heard_good(&self, job: &Job) {
        let over = self.line().heard_good(self.parts().clock.uptime());
        self.say_over(over);
        self.got_through(job.stage.kind());
        self.forget(job.id);
    }

    pub(super) fn say_over(&self, over: bool) {
        if over {
            // At the level at which the outage was logged.
            tracing::warn!(service = %self.service(), "the service answers again");
        }
    }

    pub(super) fn heard_fault(&self, fault: &Fault) {
        let jitter = self.memory().chance.f64();
        let closed = self.line().heard_fault(fault, self.parts().clock.uptime(), jitter);
        if closed {
            tracing::warn!(service = %self.service(), reason = %fault.words, "scribed sends nothing to the service until it answers again");
        }
    }

    /// As [`Engine::heard_fault`], unless it was met on a way to the service that is not gone any more: what a key
    /// or an address met that was changed since says nothing of the new one.
    pub(super) fn heard_fault_on(&self, way: &Arc<dyn Client>, fault: &Fault) {
        if self.is_way(way) {
            self.heard_fault(fault);
        }
    }

    /// Whether the service is still reached by this.
    pub(super) fn is_way(&self, way: &Arc<dyn Client>) -> bool {
        Arc::ptr_eq(way, &self.parts().client)
    }

    /// Once for each source, until it can be written again.
    fn say_unwritable(&self, job: &Job, fault: &Fault) {
        let source = &job.key.source;
        let waits = fault.kind == FaultKind::Unwritable && job.stage.kind() == StageKind::Fetched;
        if waits && self.memory().unwritable.insert(source.clone()) {
            tracing::warn!(%source, path = %job.key.path, reason = %fault.words, "cannot write the outputs of a job; the job waits, and scribed tries again");
        }
    }

    /// Once for each address.
    pub(super) fn say_elsewhere(&self, job: &Job, fault: Option<&Fault>) {
        let (Some(fault), Some(place)) = (fault.filter(|fault| fault.kind == FaultKind::Asks), &job.bought_at) else {
            return;
        };
        if self.memory().elsewhere.insert(place.clone()) {
            tracing::warn!(job = %job.id, path = %job.key.path, reason = %fault.words, "the address of a service changed; jobs that were bought at the old address wait for a person");
        }
    }

    fn say_writable(&self, job: &Job) {
        if self.memory().unwritable.remove(&job.key.source) {
            tracing::warn!(source = %job.key.source, "scribed can write outputs of the source again");
        }
    }

    /// A list that changes while it is read is no fault of the service's.
    pub(super) fn heard_cut(&self, way: &Arc<dyn Client>, cut: &ScanFault) {
        if let ScanFault::CutShort(fault) = cut {
            self.heard_fault_on(way, fault);
        }
    }

    /// What a fault means for its job, and for the line.
    pub(super) async fn commit_fault(
        &self,
        lease: &Lease,
        job: Job,
        (fault, way): (Fault, &Arc<dyn Client>),
    ) -> Result<(), StoreError> {
        let now = self.parts().clock.now();
        if matches!(fault.blame(), Blame::Service | Blame::Key) && !self.is_way(way) {
            return self.commit(lease, &job.resting(Some(now), None)).await;
        }
        self.heard_fault(&fault);
        self.pushed_back(job.stage.kind(), &fault).await?;
        self.say_unwritable(&job, &fault);
        let row = self.count(&job, blames_the_service(&fault));
        let jitter = self.memory().chance.f64();
        let mut verdict = decide(&self.parts().retry, &fault, job.attempts, row.faults, now, jitter);
        if row.alone >= self.parts().retry.attempts && blames_the_service(&fault) {
            verdict = RetryDecision::Fail; // others get through: it is this job's own fault after all
        }
        if let RetryDecision::Again { at, .. } = &mut verdict
            && matches!(fault.kind, FaultKind::FolderAway | FaultKind::Awaited)
            && job.stage.kind() != StageKind::Fetched
        {
            *at = (*at).max(now.after(FOLDER_ASKED));
        }
        let dead = matches!(fault.kind, FaultKind::Dead { .. });
        let job = match verdict {
            RetryDecision::Again { at, attempts } => {
                if fault.blame() == Blame::Passing {
                    self.log_attempt(&job, &fault, (at, attempts), now);
                }
                let job = if dead { self.step(job.clone(), JobEvent::Anew, now).unwrap_or(job) } else { job };
                Job { attempts, ..job }.resting(Some(at), Some(fault))
            }
            RetryDecision::Fail => return self.commit_bug(lease, job, fault).await,
            RetryDecision::Ask => job.resting(None, Some(fault)),
        };
        self.commit(lease, &job).await
    }

    pub(super) async fn commit_bug(&self, lease: &Lease, job: Job, fault: Fault) -> Result<(), StoreError> {
        let now = self.parts().clock.now();
        self.forget(job.id);
        // A job past its intent cannot fail before it is known what was bought.
        let failed = job.clone().on(JobEvent::Failed { fault: fault.clone() }, now);
        let job = failed.unwrap_or_else(|_| {
            let at = now.after(self.parts().retry.max);
            self.log_attempt(&job, &fault, (at, job.attempts), now);
            job.resting(Some(at), Some(fault))
        });
        self.commit(lease, &job).await
    }

    pub(super) async fn commit(&self, lease: &Lease, job: &Job) -> Result<(), StoreError> {
        let kind = job.stage.kind();
        crash::point(Point::Committing(kind));
        self.parts().store.commit(lease, job, Hold::Release).await?;
        crash::point(Point::Committed(kind));
        if !self.owns(&job.group()) {
            self.parts().passing.pass();
        }
        self.count_end(job);
        self.log_end(job);
        if (kind == StageKind::Fetched || kind == StageKind::Following || kind.is_end()) && self.given_back().await? {
            self.nudge();
            // Who waited for it may be another engine's.
            self.parts().passing.pass();
        }
        if kind.is_end() { self.look_at_the_end(job).await } else { Ok(()) }
    }

    /// What these stages leave behind may have been more than was needed.
    async fn given_back(&self) -> Result<bool, StoreError> {
        self.parts().budget_gate.given_back(&*self.parts().store, self.parts().clock.now()).await
    }

    fn count_missing(&self, job: &Job) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        for part in &job.missing {
            let name = part.to_string();
            if missing.len() < MOST_NAMES || missing.contains_key(&name) {
                *missing.entry(name).or_default() += 1;
            }
        }
    }

    fn count_end(&self, job: &Job) {
        if job.is_incomplete() {
            self.count_missing(job);
        }
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        match &job.stage {
            Stage::Written { audio, .. } => {
                tally.done += 1;
                tally.incomplete += u64::from(job.is_incomplete());
                tally.unread += u64::from(job.unread().is_some());
                tally.audio_millis += audio.millis;
            }
            Stage::Skipped { .. } => tally.skipped += 1,
            Stage::Failed { .. } => tally.failed += 1,
            _ => {}
        }
    }
}

/// Names that are counted one by one: some twenty enrichments, and target languages as far as there are.
const MOST_NAMES: usize = 200;

/// The service answered wrongly. That it cannot be reached, or asks us to be slower, says nothing of
/// the job.
fn blames_the_service(fault: &Fault) -> bool {
    fault.kind == FaultKind::Broken
}
