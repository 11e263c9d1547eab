//! Creates of which nobody knows what became, and stores that do not know what was bought: both ask
//! the service's list (design, section 5).

use super::lanes::{Busy, Work};
use super::{Engine, LEASE, Parts, Walked, earlier, wait_before};
use crate::client::contract::Listed;
use crate::crash::{self, Point};
use crate::domain::fault::{Blame, Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::stage::{Event, StageKind};
use crate::pipeline::line::Gate;
use crate::pipeline::resolve::{Finding, by_order, by_token, judge, oldest, unproven};
use crate::pipeline::walk::{self, WalkFault};
use crate::store::contract::{Claimed, StoreError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;

impl Engine {
    /// Whether creates may be sent as far as the store is concerned; if not, sees to it that they may.
    pub(super) async fn trust(
        self: &Arc<Self>,
        gate: &Gate,
        walks: &mut JoinSet<Walked>,
        busy: &mut Busy,
        wake: &mut Option<Duration>,
    ) -> Result<bool, StoreError> {
        if !self.parts().store.suspect(self.service()).await? {
            return Ok(true);
        }
        let asked = self.memory().distrust.is_some();
        let walking = busy.of(Work::Trust) > 0;
        if *gate != Gate::Open || asked || walking {
            return Ok(false);
        }
        let left = self.until_trust_walk();
        if !left.is_zero() {
            *wake = earlier(*wake, Some(left));
            return Ok(false);
        }
        let engine = Arc::clone(self);
        busy.begin(Work::Trust, walks.spawn(async move { (Work::Trust.into(), engine.walk_for_trust().await) }));
        Ok(false)
    }

    /// A create that our predecessor sent in its last moment may not be listed yet.
    fn until_trust_walk(&self) -> Duration {
        let from = self.memory().trust_from.unwrap_or(self.started.after(self.parts().terms.lag));
        from.since(self.parts().clock.uptime())
    }

    /// That a suspect store waits for the list, and for how long, while nothing else is in the way. In words.
    ///
    /// # Errors
    /// The store's.
    pub async fn list_awaited(&self) -> Result<Option<String>, StoreError> {
        let left = self.until_trust_walk();
        if left.is_zero() || self.trouble().is_some() || !self.parts().store.suspect(self.service()).await? {
            return Ok(None);
        }
        // To the second: shorter ones are over when this is read.
        let left = humantime::format_duration(Duration::from_secs(left.as_secs() + 1));
        let service = self.service();
        Ok(Some(format!(
            "nothing is submitted before the list of {service} is walked, in {left}: the queue is new or was repaired"
        )))
    }

    /// Everything of ours that the service lists is written down; then the store may be believed.
    async fn walk_for_trust(&self) -> Result<(), StoreError> {
        let parts = &*self.parts();
        let store = &parts.store;
        let walked = self.walk_list(parts, None).await;
        if !self.is_way(&parts.client) {
            // What was at another key or address says nothing of the new one, whose list is walked next.
            self.nudge();
            return Ok(());
        }
        match walked {
            Ok(items) => {
                let service = self.service();
                let (found, doubles) = by_token(items);
                self.doubles.fetch_add(doubles, Ordering::Relaxed);
                for (order, bought) in &by_order(&found, parts.client.identity()) {
                    crash::point(Point::Sighting);
                    store.sight(order, bought).await?;
                    crash::point(Point::Sighted);
                }
                crash::point(Point::Trusting);
                store.trust(service).await?;
                crash::point(Point::Trusted);
                self.line().looked_good(self.parts().clock.uptime());
                tracing::info!(found = found.len(), "the service's list was walked; the queue is trusted");
            }
            Err(cut) => {
                self.heard_cut(&parts.client, &cut);
                let fault = unproven(cut, self.parts().clock.now());
                if fault.blame() == Blame::Person {
                    let words = format!("this queue is new or was repaired, and {}", fault.words);
                    tracing::error!(reason = %words, "nothing is submitted");
                    self.memory().distrust = Some(Fault { words, ..fault });
                } else {
                    let mut memory = self.memory();
                    let wait = wait_before(&self.parts().retry, memory.trust_cuts);
                    memory.trust_from = Some(self.parts().clock.uptime().after(wait));
                    memory.trust_cuts += 1;
                }
            }
        }
        Ok(())
    }

    /// Walks the list; not again while the service wants nothing. Whoever judges by it has to judge by these parts
    /// too: a list of another key or address proves nothing.
    pub(super) async fn walk_list(&self, parts: &Parts, oldest: Option<Timestamp>) -> Result<Vec<Listed>, WalkFault> {
        let may = || matches!(self.line().gate(parts.clock.uptime()), Gate::Open | Gate::Asks);
        walk::run(&*parts.client, oldest, parts.terms.walk_limit, &may).await
    }

    /// All unknown creates in one walk.
    pub(super) async fn resolve(self: Arc<Self>, claims: Vec<Claimed>) -> Result<(), StoreError> {
        let (ripe, unripe) = self.ripe(claims);
        for (claim, due) in unripe {
            let fault = claim.job.fault.clone();
            still_ours(self.commit(&claim.lease, &claim.job.resting(Some(due), fault)).await)?;
        }
        if ripe.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Job> = ripe.iter().map(|claim| claim.job.clone()).collect();
        let parts = &*self.parts();
        let walking = self.walk_list(parts, oldest(&jobs));
        let walked = tokio::select! {
            biased;
            walked = walking => walked,
            lost = self.keep_all(&ripe) => return lost,
        };
        match walked {
            Ok(items) => {
                self.line().looked_good(self.parts().clock.uptime());
                let (found, doubles) = by_token(items);
                self.doubles.fetch_add(doubles, Ordering::Relaxed);
                for claim in ripe {
                    let (identity, retention) = (parts.client.identity(), parts.terms.retention);
                    let finding = judge(&claim.job, &found, identity, retention, parts.clock.now());
                    still_ours(self.resolved(claim, finding).await)?;
                }
            }
            Err(cut) => {
                self.heard_cut(&parts.client, &cut);
                let fault = unproven(cut, self.parts().clock.now());
                for claim in ripe {
                    still_ours(self.unresolved(claim, fault.clone()).await)?;
                }
            }
        }
        Ok(())
    }

    /// Which of them ended long enough ago, by a clock that nobody sets: the wall clock only says when
    /// to look.
    fn ripe(&self, claims: Vec<Claimed>) -> (Vec<Claimed>, Vec<(Claimed, Timestamp)>) {
        let (now, wall) = (self.parts().clock.uptime(), self.parts().clock.now());
        let memory = self.memory();
        let mut ripe = Vec::new();
        let mut unripe = Vec::new();
        for claim in claims {
            let lag = self.parts().terms.lag;
            let from = memory.creates.ripe_from(claim.job.id, now, self.started, lag, LEASE);
            if from <= now { ripe.push(claim) } else { unripe.push((claim, wall.after(from.since(now)))) }
        }
        (ripe, unripe)
    }

    pub(super) async fn keep_all(&self, claims: &[Claimed]) -> Result<(), StoreError> {
        loop {
            self.parts().clock.sleep(LEASE / 3).await;
            let until = self.parts().clock.now().after(LEASE);
            for claim in claims {
                still_ours(self.parts().store.renew(&claim.lease, until).await)?;
            }
        }
    }

    async fn resolved(&self, claim: Claimed, finding: Finding) -> Result<(), StoreError> {
        let now = self.parts().clock.now();
        let Claimed { lease, job } = claim;
        let Some(order) = job.stage.order().cloned() else { return Ok(()) };
        match finding {
            Finding::Adopt(item) => {
                tracing::info!(job = %job.id, transcription = %item.id, "the create had been accepted after all");
                let round = job.round;
                let origin = Some(self.parts().client.identity().origin.clone());
                let event = Event::Adopted { order, transcription: item.id, round, origin };
                self.forget_create(job.id);
                let over = self.line().accepted(self.parts().clock.uptime());
                self.say_over(over);
                self.got_through(StageKind::Uploaded);
                self.commit(&lease, &self.stepped(job, event, None, now)).await
            }
            Finding::Absent => {
                self.forget_create(job.id);
                let met = job.fault.as_ref().map(|fault| fault.words.clone()).unwrap_or_default();
                let Ok(back) = self.step(job, Event::NotAccepted, now) else { return Ok(()) };
                let row = self.count(&back, true);
                if row.alone >= self.parts().retry.attempts {
                    let words = format!(
                        "its creates go wrong again and again while those of other files are accepted, and the \
                         service's list has none of them; at last: {met}"
                    );
                    return self.commit_bug(&lease, back, Fault::new(FaultKind::Broken, words, now)).await;
                }
                let words = "the create was not accepted: the service's list does not have it; it is sent again";
                let fault = Fault::new(FaultKind::Broken, words, now);
                let at = now.after(wait_before(&self.parts().retry, row.faults));
                self.commit(&lease, &back.resting(Some(at), Some(fault))).await
            }
            Finding::Ask(fault) => self.commit(&lease, &job.resting(None, Some(fault))).await,
        }
    }

    async fn unresolved(&self, claim: Claimed, fault: Fault) -> Result<(), StoreError> {
        let now = self.parts().clock.now();
        if fault.blame() == Blame::Person {
            return self.commit(&claim.lease, &claim.job.resting(None, Some(fault))).await;
        }
        let row = self.count(&claim.job, false);
        let wait = wait_before(&self.parts().retry, row.faults);
        let words =
            format!("a create may have been accepted, and the service's list cannot be read now: {}", fault.words);
        let fault = Fault { words, ..fault };
        self.commit(&claim.lease, &claim.job.resting(Some(now.after(wait)), Some(fault))).await
    }
}

/// One of many that a person took out of the walk's hands: the others go on.
pub(super) fn still_ours(committed: Result<(), StoreError>) -> Result<(), StoreError> {
    match committed {
        Err(StoreError::LeaseLost(_)) => Ok(()),
        other => other,
    }
}
