//! How much of what runs at once, and what is started now.

use super::glance::{GLANCED_AT_ONCE, READS, WORTH_A_PAGE};
use super::{Engine, Until, Walked, earlier};
use crate::client::contract::ListFault;
use crate::clock::Uptime;
use crate::domain::home::Group;
use crate::domain::job::Job;
use crate::domain::names::SourceName;
use crate::domain::reason::is_paused;
use crate::domain::stage::StageKind;
use crate::pipeline::line::Gate;
use crate::pipeline::windows::{self, Shut};
use crate::store::contract::{Of, StoreError};
use crate::wire::page::ListQuery;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};

/// Another service's engine may make room in the spool, and tells nobody.
const ROOM_LOOKED_FOR: Duration = Duration::from_secs(1);

/// A moment of the wall clock is not slept up to in one go: the clock may be set meanwhile, and the machine
/// may sleep.
const NAP: Duration = Duration::from_secs(60);

/// Unknown creates that one walk serves; the rest waits for the next one.
const RESOLVED_AT_ONCE: usize = 1_000;

/// Work of one kind and how much of it at once. What is limited by the service's terms is limited there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Lane {
    Settle,
    Probe,
    Upload,
    Submit,
    Resolve,
    Trust,
    Wait,
    Write,
    Follow,
    Look,
}

impl Lane {
    /// Those that are fed by claims, those nearest to the end first, so that what was paid for is
    /// finished before more is begun.
    pub(super) const CLAIMING: [(Self, StageKind); 8] = [
        (Self::Write, StageKind::Fetched),
        (Self::Wait, StageKind::Submitted),
        (Self::Follow, StageKind::Following),
        (Self::Resolve, StageKind::Submitting),
        (Self::Submit, StageKind::Uploaded),
        (Self::Upload, StageKind::Probed),
        (Self::Probe, StageKind::Settled),
        (Self::Settle, StageKind::Found),
    ];

    fn needs_service(self) -> bool {
        matches!(self, Self::Upload | Self::Submit | Self::Resolve | Self::Trust | Self::Wait)
    }

    fn submits(self) -> bool {
        matches!(self, Self::Upload | Self::Submit)
    }

    /// What a pass does not wait for while the queue is paused. Whoever follows another waits for what it
    /// has bought, or for its turn to buy.
    pub(super) fn rests_when_paused(job: &Job) -> bool {
        is_paused(job) || job.stage.kind() == StageKind::Following
    }

    /// Work that may take long and is of no use half-done, and that loses nothing by being dropped: it
    /// reads, or sends what is sent again.
    fn lasts(self) -> bool {
        matches!(self, Self::Probe | Self::Upload | Self::Resolve | Self::Trust | Self::Wait | Self::Look)
    }
}

/// How much of each lane is under way.
#[derive(Default)]
pub(super) struct Busy {
    at_work: BTreeMap<Lane, usize>,
    lasting: Vec<AbortHandle>,
}

impl Busy {
    pub(super) fn of(&self, lane: Lane) -> usize {
        self.at_work.get(&lane).copied().unwrap_or(0)
    }

    pub(super) fn total(&self) -> usize {
        self.at_work.values().sum()
    }

    /// Whether something is under way, and all of it at the service.
    pub(super) fn only_at_service(&self) -> bool {
        let all = || self.at_work.iter().filter(|(_, count)| **count > 0).map(|(lane, _)| *lane);
        self.total() > 0 && all().all(|lane| lane.needs_service() || lane == Lane::Look)
    }

    pub(super) fn begin(&mut self, lane: Lane, work: AbortHandle) {
        *self.at_work.entry(lane).or_default() += 1;
        if lane.lasts() {
            self.lasting.retain(|work| !work.is_finished());
            self.lasting.push(work);
        }
    }

    /// Ends what lasts, in the middle.
    pub(super) fn drop_lasting(&mut self) {
        self.lasting.drain(..).for_each(|work| work.abort());
    }

    pub(super) fn end(&mut self, lane: Lane) {
        if let Some(count) = self.at_work.get_mut(&lane) {
            *count = count.saturating_sub(1);
        }
    }
}

impl Engine {
    /// Starts everything that may move now. Returns how long until something else may.
    pub(super) async fn tick(
        self: &Arc<Self>,
        walks: &mut JoinSet<Walked>,
        busy: &mut Busy,
        until: Until,
    ) -> Result<Option<Duration>, StoreError> {
        self.take_hints().await?;
        let now = self.parts().clock.now();
        let gate = self.line().gate(self.parts().clock.uptime());
        // Whoever has no patience left begins nothing more, so that what is under way can come to its end.
        let gate = if self.is_patience_over(until) { Gate::Closed(Uptime(Duration::MAX)) } else { gate };
        let mut wake = self.look_or_wait(&gate, walks, busy);
        let trusted = self.trust(&gate, walks, busy, &mut wake).await?;
        let pauses = self.parts().store.pauses().await?;
        wake = earlier(wake, pauses.next_end(now).map(|end| end.since(now)));
        let parts = self.parts();
        let windows = windows::shut(&parts.mounts, parts.clock.wall());
        wake = earlier(wake, self.opens(&windows));
        let shut = parts.purse.shut(now);
        wake = earlier(wake, parts.purse.opens(now).map(|at| at.since(now)));
        for (lane, kind) in Lane::CLAIMING {
            let closed = lane.needs_service() && !matches!(gate, Gate::Open | Gate::Asks);
            let asks = lane.submits() && gate == Gate::Asks;
            if closed || asks || (lane == Lane::Submit && !trusted) {
                continue;
            }
            let free = self.free(lane, busy).await?;
            if free > 0 {
                let is_shut = |source: &SourceName| lane == Lane::Upload && shut.is_for(source);
                let rests = |source: &SourceName| {
                    lane.submits() && (pauses.of(source, now).is_some() || windows.contains_key(source))
                };
                let may = |group: &Group| self.owns(group) && !rests(&group.source) && !is_shut(&group.source);
                self.start((lane, kind), &may, free, walks, busy).await?;
                let due = self.parts().store.next_due(&[kind], &may).await?;
                let now = self.parts().clock.now();
                // What is due now and was not claimed waits for room: its end wakes us.
                let later = due.filter(|due| *due > now).map(|due| due.since(now));
                wake = earlier(wake, later);
            }
        }
        let no_room = self.extractor().is_some_and(|extractor| extractor.ahead().is_none());
        Ok(if no_room { earlier(wake, Some(ROOM_LOOKED_FOR)) } else { wake })
    }

    /// How long until the first of these windows may be open.
    fn opens(&self, windows: &Shut) -> Option<Duration> {
        windows.values().min().map(|at| at.since(self.parts().clock.wall()).min(NAP))
    }

    async fn start(
        self: &Arc<Self>,
        (lane, kind): (Lane, StageKind),
        may: Of<'_>,
        free: usize,
        walks: &mut JoinSet<Walked>,
        busy: &mut Busy,
    ) -> Result<(), StoreError> {
        // Many looks at once are first one look at the list. One glance at a time, begun when no look is under
        // way; what is due meanwhile is read beside it, and all of them together are no more than `READS`.
        let glances = lane == Lane::Wait && busy.of(lane) == 0 && self.glances.may(self.parts().clock.uptime());
        let n = match lane {
            Lane::Resolve => RESOLVED_AT_ONCE,
            Lane::Wait if glances => GLANCED_AT_ONCE,
            _ => free,
        };
        let claims = self.claims(kind, may, n).await?;
        if lane == Lane::Resolve && !claims.is_empty() {
            let engine = Arc::clone(self);
            busy.begin(lane, walks.spawn(async move { (lane, engine.resolve(claims).await) }));
            return Ok(());
        }
        if glances && claims.len() > WORTH_A_PAGE {
            let engine = Arc::clone(self);
            busy.begin(lane, walks.spawn(async move { (lane, engine.glance(claims).await) }));
            return Ok(());
        }
        for claim in claims {
            let engine = Arc::clone(self);
            busy.begin(lane, walks.spawn(async move { (lane, engine.walk(claim).await) }));
        }
        Ok(())
    }

    /// How many more of this lane may run now.
    async fn free(&self, lane: Lane, busy: &Busy) -> Result<usize, StoreError> {
        let counts = self.parts().store.counts_of(&|group| self.owns(group)).await?;
        let at_once = match lane {
            Lane::Settle => 64,
            Lane::Probe => self.cores,
            Lane::Upload => {
                // Audio must not pile up at the service: no further ahead than what may run.
                let ahead = usize::try_from(counts.of(StageKind::Uploaded)).unwrap_or(usize::MAX);
                // While some are sent, the sound tracks of others are taken out.
                let extracts = self.extractor().map_or(Some(0), |extractor| extractor.ahead());
                let found = self.found();
                let at_once = extracts.map_or(0, |extracts| found.uploads.now() + extracts);
                at_once.min(found.running.now().saturating_sub(ahead))
            }
            Lane::Submit => {
                let running = usize::try_from(counts.running()).unwrap_or(usize::MAX);
                // A walk that submits is counted from its intent on, and below all the while.
                let room = self.found().running.now().saturating_sub(running);
                if self.line().is_careful() { room.min(1) } else { room }
            }
            Lane::Resolve | Lane::Trust | Lane::Look => 1,
            Lane::Wait => READS,
            Lane::Write => 32,
            Lane::Follow => 8,
        };
        Ok(at_once.saturating_sub(busy.of(lane)))
    }

    /// A closed line is looked at by a list of one, never by a create.
    fn look_or_wait(self: &Arc<Self>, gate: &Gate, walks: &mut JoinSet<Walked>, busy: &mut Busy) -> Option<Duration> {
        match gate {
            Gate::Open | Gate::Asks => None,
            Gate::Closed(until) => Some(until.since(self.parts().clock.uptime())),
            Gate::Look => {
                if busy.of(Lane::Look) == 0 {
                    let engine = Arc::clone(self);
                    busy.begin(Lane::Look, walks.spawn(async move { (Lane::Look, engine.look().await) }));
                }
                None
            }
        }
    }

    pub(super) async fn look(&self) -> Result<(), StoreError> {
        let query = ListQuery { limit: 1, ..ListQuery::default() };
        match self.parts().client.list(&query).await {
            Ok(_) | Err(ListFault::None(_)) => {
                self.line().looked_good(self.parts().clock.uptime());
            }
            Err(ListFault::Now(fault)) => self.heard_fault(&fault),
        }
        Ok(())
    }
}
