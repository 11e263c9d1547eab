//! Commits outcomes and faults of stages, and reports them to the gate of the service.

use super::Engine;
use super::executor::StageRun;
use crate::backpressure::service_gate::Observation;
use crate::client::contract::Client;
use crate::crash_points::{self, Point};
use crate::domain::fault::{Blame, Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::retry::{RetryDecision, decide};
use crate::domain::split::MOST_HALVINGS;
use crate::domain::stage::{JobEvent, Stage, StageKind};
use crate::pipeline::stages::outcome::{StageOutcome, StageStop};
use crate::pipeline::stages::remote_audio;
use crate::pipeline::stages::submit::Submission;
use crate::shortage;
use crate::store::contract::{Hold, Lease, StoreError};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How often a job whose folder is away is tried without a scan. A scan makes the job due when it sees the file
/// again, and there may be a hundred thousand such jobs. A fetched job may have no file any more, so it is tried at
/// the usual intervals.
const FOLDER_AWAY_WAIT: Duration = Duration::from_secs(3600);

/// The longest wait of a job before it is tried again after a shortage of this machine, which may end at any moment.
const MAX_SHORTAGE_WAIT: Duration = Duration::from_secs(30);

impl Engine {
    pub(super) fn transition(&self, job: Job, event: JobEvent, now: Timestamp) -> Result<Job, Fault> {
        job.apply(event, now).map_err(|error| Fault::new(FaultKind::Bug, error.to_string(), now))
    }

    /// Commits the result of running the stage of a job. `None` means that the stage panicked.
    pub(super) async fn commit_run(
        &self,
        lease: &Lease,
        job: Job,
        run: Option<Result<StageRun, StageStop>>,
        client: &Arc<dyn Client>,
    ) -> Result<(), StoreError> {
        match run {
            Some(Ok(StageRun::Outcome(outcome))) => self.commit_outcome(lease, job, *outcome).await,
            Some(Ok(StageRun::Lost(outcome))) => {
                let job = self.as_stored(job).await?;
                self.commit_outcome(&lease.seeing(&job), job, *outcome).await
            }
            Some(Ok(StageRun::Submission(submission, lease))) => {
                self.commit_submission(&lease, job, (submission, client)).await
            }
            Some(Err(StageStop::Fault(fault))) => self.commit_stop(lease, job, (fault, client)).await,
            Some(Err(StageStop::Store(error))) => Err(error),
            None => {
                let words = "scribed failed on this file with an internal error (the log has its location)";
                let fault = Fault::new(FaultKind::Bug, words, self.parts().clock.now());
                let job = self.as_stored(job).await?;
                self.faults.count(&fault.kind);
                self.commit_bug(&lease.seeing(&job), job, fault).await
            }
        }
    }

    /// Returns the job as it is stored. Since the claim the stage may have committed an intent, or the outputs that
    /// it was about to publish.
    async fn as_stored(&self, claimed: Job) -> Result<Job, StoreError> {
        Ok(self.parts().store.job(claimed.id).await?.unwrap_or(claimed))
    }

    async fn commit_stop(
        &self,
        lease: &Lease,
        job: Job,
        (fault, client): (Fault, &Arc<dyn Client>),
    ) -> Result<(), StoreError> {
        let job = self.as_stored(job).await?;
        let (fault, id) = (remote_audio::redact_address(&job, fault), job.id);
        self.commit_fault(&lease.seeing(&job), job, (fault, client)).await?;
        let parts = self.parts();
        if parts.in_progress.is_set_aside(id) {
            // Flushed first: otherwise a crash could lose both the fault and the record that the job is set aside.
            parts.store.flush().await?;
            parts.in_progress.acquit(id);
        }
        Ok(())
    }

    /// Commits the outcome of an attempt to buy, for the job as of its intent. `lease` is the lease as the stage left
    /// it.
    async fn commit_submission(
        &self,
        lease: &Lease,
        job: Job,
        (submission, client): (Submission, &Arc<dyn Client>),
    ) -> Result<(), StoreError> {
        let now = self.parts().clock.now();
        match submission {
            Submission::Unsent(outcome) => self.commit_outcome(lease, job, *outcome).await,
            Submission::Accepted(intended, transcription) => {
                self.commit_accepted(lease, *intended, (transcription, client)).await
            }
            Submission::NotAccepted(intended, fault) => {
                let id = intended.id;
                let job = self.transition((*intended).clone(), JobEvent::NotAccepted, now).unwrap_or(*intended);
                self.commit_fault(lease, job, (fault, client)).await?;
                self.forget_create(id);
                Ok(())
            }
            Submission::Unknown(intended, fault) => {
                // Not a wait: the intent has this kind already.
                self.faults.count(&fault.kind);
                self.observe_fault(client, &fault);
                self.observe_push_back(StageKind::Uploaded, &fault).await?;
                let due = now.saturating_add(self.parts().terms.lag);
                self.commit_outcome(lease, *intended, StageOutcome::Rest(Some(due), fault)).await
            }
        }
    }

    async fn commit_accepted(
        &self,
        lease: &Lease,
        job: Job,
        (transcription, client): (TranscriptionId, &Arc<dyn Client>),
    ) -> Result<(), StoreError> {
        let now = self.parts().clock.now();
        self.observe(Observation::Created);
        self.forget_faults(job.id);
        let (date, at, lag) = (client.last_date(), self.parts().clock.uptime(), self.parts().terms.lag);
        if self.is_current(client) {
            self.list_view().accepted(transcription.clone(), date, at, lag);
        }
        let due = self.first_poll_at(&job, &transcription, now).await?;
        let created = JobEvent::Created { transcription: transcription.clone() };
        self.commit_outcome(lease, job.clone(), StageOutcome::StepThen(created, due)).await?;
        self.observe(Observation::Running(self.running().await?));
        self.forget_create(job.id);
        self.hinted_early(&job, &transcription);
        Ok(())
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
                    self.observe_answer(&job);
                }
                self.count_wait(&job, reason.as_ref());
                job.deferred(Some(until), reason)
            }
            StageOutcome::Rest(until, fault) => {
                self.count_wait(&job, Some(&fault));
                job.deferred(until, Some(fault))
            }
            StageOutcome::Step(event) | StageOutcome::StepThen(event, _) | StageOutcome::StepThenRest(event, ..)
                if job.clone().apply(event.clone(), now).is_err() =>
            {
                let words = format!(
                    "internal error: the event {} does not apply to a job at stage {}",
                    event.name(),
                    job.stage.kind().name()
                );
                self.faults.count(&FaultKind::Bug);
                return self.commit_bug(lease, job, Fault::new(FaultKind::Bug, words, now)).await;
            }
            StageOutcome::Step(event) => self.apply_event(job, event, None, now),
            StageOutcome::StepThen(event, due) => self.apply_event(job, event, Some(due), now),
            StageOutcome::StepThenRest(event, until, fault) => {
                self.count_wait(&job, Some(&fault));
                self.apply_event(job, event, None, now).deferred(until, Some(fault))
            }
        };
        self.commit(lease, &job).await
    }

    /// Counts the reason of a wait as a fault, unless the job waited for the same before.
    pub(super) fn count_wait(&self, job: &Job, reason: Option<&Fault>) {
        let before = job.fault.as_ref().map(|fault| &fault.kind);
        if let Some(fault) = reason.filter(|fault| before.is_none_or(|before| before.name() != fault.kind.name())) {
            self.faults.count(&fault.kind);
        }
    }

    pub(super) fn apply_event(&self, job: Job, event: JobEvent, due: Option<Timestamp>, now: Timestamp) -> Job {
        self.observe_event(&job, &event);
        if let Some(limits) = self.parts().budget_gate.pass_limits() {
            limits.note_event(&job, &event);
        }
        match &event {
            JobEvent::Fetched { audio } => self.parts().budget_gate.record_bill(&job, audio, now),
            JobEvent::Written { .. } => self.log_writable(&job),
            _ => {}
        }
        self.forget_faults(job.id);
        self.memory().short_since = None;
        let before = job.clone();
        let Ok(job) = job.apply(event, now) else { return before };
        match due {
            Some(due) => job.deferred(Some(due), None),
            None => job,
        }
    }

    /// Logs that outputs cannot be written: once for each source, until they can be written again.
    fn log_unwritable(&self, job: &Job, fault: &Fault) {
        let source = &job.key.source;
        let waits = fault.kind == FaultKind::Unwritable && job.stage.kind() == StageKind::Fetched;
        if waits && self.memory().unwritable.insert(source.clone()) {
            tracing::warn!(%source, path = %job.key.path, reason = %fault.words, "cannot write the outputs of a job; the job waits, and scribed tries again");
        }
    }

    /// Logs that the address of a service has changed: once for each old address.
    pub(super) fn log_moved_service(&self, job: &Job, fault: Option<&Fault>) {
        let (Some(fault), Some(place)) = (fault.filter(|fault| fault.kind == FaultKind::Asks), &job.bought_at) else {
            return;
        };
        if self.memory().elsewhere.insert(place.clone()) {
            tracing::warn!(job = %job.id, path = %job.key.path, reason = %fault.words, "the address of a service changed; jobs that were bought at the old address wait for a person");
        }
    }

    fn log_writable(&self, job: &Job) {
        if self.memory().unwritable.remove(&job.key.source) {
            tracing::warn!(source = %job.key.source, "scribed can write outputs of the source again");
        }
    }

    /// Commits a fault: the job is tried again, fails, or waits for a person. Reports the fault to the gate of the
    /// service, unless the client that met it is no longer used: then the job is due again at once.
    pub(super) async fn commit_fault(
        &self,
        lease: &Lease,
        job: Job,
        (fault, client): (Fault, &Arc<dyn Client>),
    ) -> Result<(), StoreError> {
        let now = self.parts().clock.now();
        if matches!(fault.blame(), Blame::Service | Blame::Key) && !self.is_current(client) {
            return self.commit(lease, &job.deferred(Some(now), None)).await;
        }
        self.faults.count(&fault.kind);
        self.observe(Observation::Failed(&fault));
        self.observe_push_back(job.stage.kind(), &fault).await?;
        self.log_unwritable(&job, &fault);
        let failures = self.count_failure(&job, blames_the_service(&fault));
        let mut wait = self.gate.job_wait(&fault, failures.earlier);
        if fault.kind == FaultKind::Shortage {
            wait = wait.min(MAX_SHORTAGE_WAIT);
            self.memory().short_since.get_or_insert(now);
            shortage::report(&fault.words, wait);
        }
        let next = now.saturating_add(wait);
        let mut decision = decide(&self.parts().retry, &fault, job.attempts, next);
        if failures.alone >= self.parts().retry.attempts && blames_the_service(&fault) {
            decision = RetryDecision::Fail; // requests for other jobs succeed, so the fault is this job's own
        }
        if let RetryDecision::Again { at, .. } = &mut decision
            && matches!(fault.kind, FaultKind::FolderAway | FaultKind::Awaited)
            && job.stage.kind() != StageKind::Fetched
        {
            *at = (*at).max(now.saturating_add(FOLDER_AWAY_WAIT));
        }
        if let Some(shorter) = self.send_shorter_parts(&job, &fault, now) {
            return self.commit(lease, &shorter).await;
        }
        let dead = matches!(fault.kind, FaultKind::Dead { .. });
        let job = match decision {
            RetryDecision::Again { at, attempts } => {
                if fault.blame() == Blame::Passing {
                    self.log_attempt(&job, &fault, (at, attempts), now);
                }
                let job =
                    if dead { self.transition(job.clone(), JobEvent::NewPurchase, now).unwrap_or(job) } else { job };
                Job { attempts, ..job }.deferred(Some(at), Some(fault))
            }
            RetryDecision::Fail => return self.commit_bug(lease, job, fault).await,
            RetryDecision::Ask => job.deferred(None, Some(fault)),
        };
        self.commit(lease, &job).await
    }

    /// Returns the job that sends shorter parts, if the service refused its recording as too long or too large. What was
    /// bought of it is never given up.
    fn send_shorter_parts(&self, job: &Job, fault: &Fault, now: Timestamp) -> Option<Job> {
        let has_bought = job.split.as_deref().is_some_and(|split| split.bought().next().is_some());
        if !fault.is_too_long() || job.is_remote() || has_bought || job.halvings() >= MOST_HALVINGS {
            return None;
        }
        let shorter = job.clone().apply(JobEvent::TooLong { words: fault.words.clone() }, now).ok()?;
        let (id, source, path, reason) = (job.id, &job.key.source, &job.key.path, &fault.words);
        tracing::info!(job = %id, %source, %path, %reason, "the service accepts no recording as long as this; scribed sends it in parts");
        Some(shorter)
    }

    pub(super) async fn commit_bug(&self, lease: &Lease, job: Job, fault: Fault) -> Result<(), StoreError> {
        let now = self.parts().clock.now();
        self.forget_faults(job.id);
        // A job past its intent cannot fail before it is known whether the service accepted its create.
        let failed = job.clone().apply(JobEvent::Failed { fault: fault.clone() }, now);
        let job = failed.unwrap_or_else(|_| {
            let at = now.saturating_add(self.parts().retry.max);
            self.log_attempt(&job, &fault, (at, job.attempts), now);
            job.deferred(Some(at), Some(fault))
        });
        self.commit(lease, &job).await
    }

    pub(super) async fn commit(&self, lease: &Lease, job: &Job) -> Result<(), StoreError> {
        let kind = job.stage.kind();
        crash_points::point(Point::Committing(kind));
        self.parts().store.commit(lease, job, Hold::Release).await?;
        crash_points::point(Point::Committed(kind));
        if !self.owns(&job.route_key()) {
            self.parts().passing.pass();
        }
        self.admit_next_held(job).await?;
        self.count_end(job);
        self.log_end(job);
        let may_release =
            kind == StageKind::Fetched || kind == StageKind::Following || kind.is_end() || has_lost_reservation(job);
        if may_release && self.wake_deferred().await? {
            self.wake();
            // The jobs that waited for this one may belong to another engine.
            self.parts().passing.pass();
        }
        if kind.is_end() { self.check_file_at_end(job).await } else { Ok(()) }
    }

    /// Releases a job that the limit of the pass holds back, if this job does not buy now. It may belong to another
    /// engine.
    async fn admit_next_held(&self, job: &Job) -> Result<(), StoreError> {
        let parts = self.parts();
        let Some(limits) = parts.budget_gate.pass_limits() else { return Ok(()) };
        let mut next = limits.note_commit(job);
        while let Some(lease) = next {
            if parts.store.renew(&[lease], parts.clock.now()).await?.is_empty() {
                self.wake();
                parts.passing.pass();
                return Ok(());
            }
            next = limits.next_held(); // a person took the job meanwhile
        }
        Ok(())
    }

    /// Wakes jobs that a budget refused: a job that reaches one of these stages may release a part of its
    /// reservation.
    async fn wake_deferred(&self) -> Result<bool, StoreError> {
        self.parts().budget_gate.wake_deferred(&*self.parts().store, self.parts().clock.now()).await
    }

    fn count_missing(&self, job: &Job) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        for part in job.missing_parts() {
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
                tally.not_understood += u64::from(job.lacks_only_recognition());
                tally.unread += u64::from(job.unread().is_some());
                tally.suspect += u64::from(job.is_suspect());
                // An older release stored any length that a service said.
                tally.audio_millis = tally.audio_millis.saturating_add(audio.millis);
                tally.outputs += job.outputs.len() as u64;
            }
            Stage::Skipped { .. } => tally.skipped += 1,
            Stage::Failed { .. } => tally.failed += 1,
            _ => {}
        }
    }
}

/// Most names of missing parts that are counted separately: some twenty enrichments, and any number of target
/// languages.
const MOST_NAMES: usize = 200;

/// Whether a budget refused a job that had its reservation: others may take that now.
fn has_lost_reservation(job: &Job) -> bool {
    // The charges are those of the time when the job was claimed.
    job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Budget) && job.reservation().is_some()
}

/// Whether the service answered wrongly. A service that cannot be reached, or that asks for fewer requests, says
/// nothing about the job.
fn blames_the_service(fault: &Fault) -> bool {
    fault.kind == FaultKind::Broken
}
