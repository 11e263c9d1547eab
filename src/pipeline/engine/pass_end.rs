//! Decides when a pass is over.

use super::scheduler::{Busy, WorkKind};
use super::{Engine, EngineEnd, PassPatience, Until};
use crate::domain::fault::{Blame, Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::pass_wait::ServiceWait;
use crate::domain::stage::StageKind;
use crate::domain::time_span::time_span;
use crate::pipeline::manifest_holds;
use crate::pipeline::windows;
use crate::store::contract::{Filter, StoreError};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Shortest silence of a service that counts, however short the patience of a pass is.
const QUIET: Duration = Duration::from_secs(5);

impl Engine {
    /// Returns how a pass has ended; `None` while it goes on.
    pub(super) async fn idle(
        &self,
        patience: PassPatience,
        began: Timestamp,
        next: Option<Duration>,
        busy: usize,
    ) -> Result<Option<EngineEnd>, StoreError> {
        if busy > 0 || self.intake.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let counts = self.parts().store.counts_of(&|group| self.owns(group)).await?;
        if WorkKind::CLAIMING.iter().all(|(_, kind)| counts.of(*kind) == 0) {
            return Ok(Some(EngineEnd::Idle)); // no job needs the service, whatever its state
        }
        let nothing_soon = next.is_none_or(|next| next > patience.wait);
        let (out, closed) = (self.outage(), self.gate.is_out());
        let spent = out.is_some_and(|lasted| lasted >= patience.outage);
        let idle = nothing_soon || (!closed && !self.is_worth_waiting(patience, began).await?);
        // Transcriptions that run at the service are awaited until the pass gives up on it, however rarely they are
        // polled.
        let over = spent || (idle && !(out.is_none() && counts.running() > 0 && self.is_awaited(began).await?));
        // A suspected outage that did not close the circuit breaker is not what the remaining jobs wait for.
        let trouble = if out.is_some() && !closed && !spent { None } else { self.trouble() };
        Ok(over.then(|| trouble.map_or(EngineEnd::Idle, EngineEnd::ServiceOut)))
    }

    /// Whether a transcription runs at the service whose result can be saved here, as far as this pass knows.
    async fn is_awaited(&self, began: Timestamp) -> Result<bool, StoreError> {
        let is_unwritable = |fault: &Fault| fault.kind == FaultKind::Unwritable && fault.at >= began;
        let is_awaited = |job: &Job| {
            self.owns(&job.route_key()) && job.due.is_some() && !job.fault.as_ref().is_some_and(is_unwritable)
        };
        let stages = vec![StageKind::Submitting, StageKind::Submitted];
        let mut filter = Filter { stages, after: None, limit: 1_000 };
        loop {
            let jobs = self.parts().store.page(&filter).await?;
            let Some(last) = jobs.last() else { return Ok(false) };
            filter.after = Some(last.id);
            if jobs.iter().any(is_awaited) {
                return Ok(true);
            }
        }
    }

    /// Whether time alone makes some job go on within the patience. A full disk or a folder that is away, met in this pass,
    /// is left to the next pass: somebody has to act first.
    async fn is_worth_waiting(&self, patience: PassPatience, began: Timestamp) -> Result<bool, StoreError> {
        let now = self.parts().clock.now();
        let until = now.saturating_add(patience.wait);
        let short_since = self.memory().short_since;
        let is_long_short = short_since.is_some_and(|since| now.duration_since(since) >= patience.outage);
        let pauses = self.parts().store.pauses().await?;
        let windows = windows::closed(&self.parts().mounts, self.parts().clock.wall());
        let exhausted = self.parts().budget_gate.exhausted(now);
        let is_exhausted = |job: &Job| {
            // A job that has its reservation is tried all the same.
            job.stage.kind() == StageKind::Probed && exhausted.covers(&job.key.source) && job.reservation().is_none()
        };
        // All manifests that can be read were read before a pass may end.
        let held = manifest_holds::held(&self.parts().mounts, &*self.parts().clock);
        let is_off = |source: &SourceName| {
            pauses.for_source(source, now).is_some() || windows.contains_key(source) || held.contains_key(source)
        };
        // A pass does not wait for the next day of a budget: it would spend the budgets of two.
        let waits_for_budget = |job: &Job| {
            let is_refused = job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Budget);
            is_refused && job.due.is_some_and(|due| due > now)
        };
        let is_asked = self.list_view().question.is_some();
        let rests = |job: &Job| {
            let is_shut = WorkKind::rests_when_paused(job) && is_off(&job.key.source);
            is_shut || is_exhausted(job) || waits_for_budget(job) || (is_asked && waits_for_decision(job, now))
        };
        let kinds = WorkKind::CLAIMING.into_iter().map(|(_, kind)| kind);
        let mut filter = Filter { stages: kinds.collect(), after: None, limit: 1_000 };
        loop {
            let jobs = self.parts().store.page(&filter).await?;
            let Some(last) = jobs.last() else { return Ok(false) };
            filter.after = Some(last.id);
            let soon = |job: &Job| job.due.is_some_and(|due| due <= until);
            let brings = |job: &Job| {
                self.owns(&job.route_key()) && soon(job) && !rests(job) && !waits_for_world(job, began, is_long_short)
            };
            if jobs.iter().any(brings) {
                return Ok(true);
            }
        }
    }

    /// Returns how long nothing has got through to the service; `None` without an outage.
    pub(super) fn outage(&self) -> Option<Duration> {
        self.gate.outage().map(|(_, lasted)| lasted)
    }

    /// Whether a pass has given up on the service.
    pub(super) fn is_patience_over(&self, until: Until) -> bool {
        self.patience_left(until) == Some(Duration::ZERO) || self.silence(until) == Some(Duration::ZERO)
    }

    /// Returns how much longer a pass waits for a service that accepts requests and sends nothing.
    fn silence(&self, until: Until) -> Option<Duration> {
        let Until::Idle(patience) = until else { return None };
        Some(patience.outage.max(QUIET).saturating_sub(self.parts().client.silent_for()?))
    }

    /// Returns how long until [`Engine::left_hanging`] must be checked; `None` if that is now. A running task may
    /// turn to the service late, and nobody is told when it does.
    pub(super) fn silence_left(&self, until: Until) -> Option<Duration> {
        let Until::Idle(_) = until else { return None };
        self.silence(until).or(Some(QUIET)).filter(|left| !left.is_zero())
    }

    /// Says why a pass ends that only waits for a service that has sent nothing for longer than the pass waits. The
    /// time-outs of its requests may be minutes away.
    pub(super) fn left_hanging(&self, until: Until, busy: &Busy) -> Option<String> {
        let over = self.silence(until) == Some(Duration::ZERO);
        if !over || self.intake.load(Ordering::Relaxed) || !busy.only_at_service() {
            return None;
        }
        let silent = self.parts().client.silent_for().unwrap_or_default().as_secs();
        let silent = time_span(Duration::from_secs(silent));
        Some(self.trouble().unwrap_or_else(|| {
            format!("service `{}` accepts requests but has sent nothing for {silent}", self.service())
        }))
    }

    /// Returns until when a pass waits for the service, if it does not answer or answers wrongly. Before there are
    /// enough faults for an outage, the wait counts from the first of them.
    pub fn service_wait(&self, patience: PassPatience) -> Option<ServiceWait> {
        let service = self.service().clone();
        if let Some((fault, lasted)) = self.gate.outage().or_else(|| self.gate.failing()) {
            let left = patience.outage.saturating_sub(lasted);
            return Some(ServiceWait { service, reason: fault.words, lasted, left });
        }
        let lasted = self.parts().client.silent_for()?;
        let reason = format!("service `{service}` accepts requests but sends nothing");
        let left = self.silence(Until::Idle(patience))?;
        Some(ServiceWait { service, reason, lasted, left })
    }

    /// Returns how much longer a pass waits for a service that is out.
    pub(super) fn patience_left(&self, until: Until) -> Option<Duration> {
        let Until::Idle(patience) = until else { return None };
        self.outage().map(|lasted| patience.outage.saturating_sub(lasted))
    }
}

/// Whether a job waits for what a person decides about the service's list: it is ready to be sent, or its probe looks
/// again from time to time whether the list was scanned.
fn waits_for_decision(job: &Job, now: Timestamp) -> bool {
    let looks_again = job.fault.is_none() && job.due.is_some_and(|due| due > now);
    match job.stage.kind() {
        StageKind::Probed | StageKind::Uploaded => true,
        StageKind::Settled => looks_again,
        _ => false,
    }
}

/// `is_long_short`: whether this machine has lacked something for longer than a pass waits.
fn waits_for_world(job: &Job, began: Timestamp, is_long_short: bool) -> bool {
    let waits = |fault: &Fault| match fault.kind {
        // Running tasks free room in the spool, so the job does not wait for somebody to act.
        FaultKind::NoRoom => false,
        // Other jobs and programs free descriptors, memory and processes.
        FaultKind::Shortage => is_long_short,
        _ => fault.blame() == Blame::World,
    };
    job.fault.as_ref().is_some_and(|fault| waits(fault) && fault.at >= began)
}
