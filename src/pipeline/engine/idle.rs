//! When a pass is over.

use super::lanes::Lane;
use super::{Ended, Engine, Patience, Until};
use crate::domain::fault::Blame;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::stage::StageKind;
use crate::store::contract::{Filter, StoreError};
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Engine {
    /// Whether a pass is over.
    pub(super) async fn idle(
        &self,
        patience: Patience,
        began: Timestamp,
        next: Option<Duration>,
        busy: usize,
    ) -> Result<Option<Ended>, StoreError> {
        if busy > 0 || self.intake.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let counts = self.parts.store.counts_of(&|group| self.owns(group)).await?;
        if Lane::CLAIMING.iter().all(|(_, kind)| counts.of(*kind) == 0) {
            return Ok(Some(Ended::Idle)); // whatever the service does: nobody asks anything of it
        }
        let nothing_soon = next.is_none_or(|next| next > patience.wait);
        let (out, closed) = (self.outage(), self.line().is_closed());
        let spent = out.is_some_and(|lasted| lasted >= patience.outage);
        let over = spent || nothing_soon || (!closed && !self.worth_waiting(patience.wait, began).await?);
        // What was only doubted, and is not asked for anything any more, is not what the rest waits for.
        let trouble = if out.is_some() && !closed && !spent { None } else { self.trouble() };
        Ok(over.then(|| trouble.map_or(Ended::Idle, Ended::ServiceOut)))
    }

    /// Whether time alone brings some job on. A full disk or a folder that is away, met in this pass,
    /// is for the next one: somebody has to do something about it first.
    async fn worth_waiting(&self, wait: Duration, began: Timestamp) -> Result<bool, StoreError> {
        let until = self.parts.clock.now().after(wait);
        let paused = self.parts.store.paused().await?;
        let moves = Lane::CLAIMING.into_iter().filter(|(lane, _)| !paused || !lane.rests_when_paused());
        let shut = self.parts.purse.shut(self.parts.clock.now());
        let is_shut = |job: &Job| job.stage.kind() == StageKind::Probed && shut.is_for(&job.key.source);
        let mut filter = Filter { stages: moves.map(|(_, kind)| kind).collect(), after: None, limit: 1_000 };
        loop {
            let jobs = self.parts.store.page(&filter).await?;
            let Some(last) = jobs.last() else { return Ok(false) };
            filter.after = Some(last.id);
            let brings = |job: &Job| {
                let comes = job.due.is_some_and(|due| due <= until) && !waits_for_world(job, began);
                comes && self.owns(&job.group()) && !is_shut(job)
            };
            if jobs.iter().any(brings) {
                return Ok(true);
            }
        }
    }

    /// How long nothing has got through to the service, if so.
    pub(super) fn outage(&self) -> Option<Duration> {
        self.line().trouble(self.parts.clock.uptime()).map(|(_, lasted)| lasted)
    }

    /// Whether a pass has given up on a service that is out.
    pub(super) fn is_patience_over(&self, until: Until) -> bool {
        self.patience_left(until) == Some(Duration::ZERO)
    }

    /// When a pass gives up on a service that is out.
    pub(super) fn patience_left(&self, until: Until) -> Option<Duration> {
        let Until::Idle(patience) = until else { return None };
        self.outage().map(|lasted| patience.outage.saturating_sub(lasted))
    }
}

fn waits_for_world(job: &Job, began: Timestamp) -> bool {
    job.fault.as_ref().is_some_and(|fault| fault.blame() == Blame::World && fault.at >= began)
}
