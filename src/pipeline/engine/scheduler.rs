//! Decides how many tasks of each kind run at once, and starts them.

use super::batch_poll::{GLANCED_AT_ONCE, WORTH_A_PAGE};
use super::{Engine, Until, Walked, earlier};
use crate::backpressure::Permit;
use crate::backpressure::service_gate::{Observation, RequestKind};
use crate::client::contract::ListFault;
use crate::clock::Uptime;
use crate::domain::job::Job;
use crate::domain::names::SourceName;
use crate::domain::reason::is_pausable;
use crate::domain::routing::RouteKey;
use crate::domain::stage::StageKind;
use crate::pipeline::manifest_holds;
use crate::pipeline::stages::upload::extract_audio::ROOM_LOOKED_FOR;
use crate::pipeline::windows::{self, ClosedWindows};
use crate::store::contract::{ClaimLimit, GroupFilter, OrderedClaims, StoreError};
use crate::wire::page::ListQuery;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{AbortHandle, JoinSet};

/// Longest sleep towards a moment of the wall clock: the clock may be set meanwhile, and the machine may be
/// suspended.
const NAP: Duration = Duration::from_secs(60);

/// How soon jobs that wait for others in the budget order are tried again. What another engine does with those others
/// does not wake this engine.
const IN_LINE: Duration = Duration::from_millis(500);

/// Most unknown creates that one list scan resolves. The others wait for the next scan.
const RESOLVED_AT_ONCE: usize = 1_000;

/// Kind of a task. Each kind has its own limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum WorkKind {
    Settle,
    Probe,
    Upload,
    Submit,
    Resolve,
    Trust,
    Wait,
    Write,
    Follow,
    Trial,
}

impl WorkKind {
    /// The kinds that claim jobs, and the stage of these jobs. Those nearest to the end come first, so that what was
    /// paid for is finished before more is begun.
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

    /// Whether a pass does not wait for this job while the queue is paused. A job at stage `following` waits for the
    /// purchase of its duplicate, or for its turn to buy.
    pub(super) fn rests_when_paused(job: &Job) -> bool {
        is_pausable(job) || job.stage.kind() == StageKind::Following
    }

    /// Whether a task of this kind may take long and can be dropped without loss: it only reads, or it sends what is
    /// sent again.
    fn lasts(self) -> bool {
        matches!(self, Self::Probe | Self::Upload | Self::Resolve | Self::Trust | Self::Wait | Self::Trial)
    }
}

/// A running task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Task {
    work: WorkKind,
    /// Whether the task handles a job of the backlog.
    backlog: bool,
}

impl From<WorkKind> for Task {
    fn from(work: WorkKind) -> Self {
        Self { work, backlog: false }
    }
}

/// The running tasks, counted by kind.
#[derive(Default)]
pub(super) struct Busy {
    at_work: BTreeMap<Task, usize>,
    lasting: Vec<AbortHandle>,
}

impl Busy {
    pub(super) fn of(&self, work: WorkKind) -> usize {
        let of = |backlog| self.at_work.get(&Task { work, backlog }).copied().unwrap_or(0);
        of(false) + of(true)
    }

    pub(super) fn of_backlog(&self, work: WorkKind) -> usize {
        self.at_work.get(&Task { work, backlog: true }).copied().unwrap_or(0)
    }

    pub(super) fn total(&self) -> usize {
        self.at_work.values().sum()
    }

    /// Whether tasks are running, and all of them at the service.
    pub(super) fn only_at_service(&self) -> bool {
        let kinds = || self.at_work.iter().filter(|(_, count)| **count > 0).map(|(task, _)| task.work);
        self.total() > 0 && kinds().all(|work| work.needs_service() || work == WorkKind::Trial)
    }

    pub(super) fn begin(&mut self, task: impl Into<Task>, handle: AbortHandle) {
        let task = task.into();
        *self.at_work.entry(task).or_default() += 1;
        if task.work.lasts() {
            self.lasting.retain(|handle| !handle.is_finished());
            self.lasting.push(handle);
        }
    }

    /// Aborts the long tasks.
    pub(super) fn drop_lasting(&mut self) {
        self.lasting.drain(..).for_each(|handle| handle.abort());
    }

    pub(super) fn end(&mut self, task: Task) {
        if let Some(count) = self.at_work.get_mut(&task) {
            *count = count.saturating_sub(1);
        }
    }
}

impl Engine {
    /// Starts everything that may run now. Returns how long until something else may.
    pub(super) async fn tick(
        self: &Arc<Self>,
        running: &mut JoinSet<Walked>,
        busy: &mut Busy,
        until: Until,
    ) -> Result<Option<Duration>, StoreError> {
        self.take_hints().await?;
        let now = self.parts().clock.now();
        // A pass whose patience is over begins nothing more, so that running tasks can end.
        let is_over = self.is_patience_over(until);
        let [trial, read, submit] = [RequestKind::Trial, RequestKind::Read, RequestKind::Submit]
            .map(|kind| if is_over { Permit::WaitUntil(Uptime(Duration::MAX)) } else { self.gate.permit(kind) });
        let may_submit = submit == Permit::Granted;
        self.parts().budget_gate.set_served(self.service(), may_submit);
        let mut wake = self.try_or_wait(trial, running, busy);
        let trusted = self.may_buy(may_submit, running, busy, &mut wake).await?;
        let pauses = self.parts().store.pauses().await?;
        wake = earlier(wake, pauses.next_end(now).map(|end| end.duration_since(now)));
        let parts = self.parts();
        let windows = windows::closed(&parts.mounts, parts.clock.wall());
        wake = earlier(wake, self.opens(&windows));
        let held = manifest_holds::held(&parts.mounts, &*parts.clock);
        wake = earlier(wake, held.values().min().copied());
        wake = earlier(wake, parts.budget_gate.next_opening(now).map(|at| at.duration_since(now)));
        parts.budget_gate.excess().log_due(now, false);
        self.log_limit.log_due(now, false);
        if until == Until::Stopped {
            wake = earlier(wake, parts.budget_gate.excess().due(now));
        }
        let is_off = |source: &SourceName| {
            pauses.for_source(source, now).is_some() || windows.contains_key(source) || held.contains_key(source)
        };
        for (work, kind) in WorkKind::CLAIMING {
            let is_out = work.needs_service() && read != Permit::Granted;
            let may_not_submit = work.submits() && !may_submit;
            if is_out || may_not_submit || (work == WorkKind::Submit && !trusted) {
                continue;
            }
            let room = self.room(work, busy, &|group| self.owns(group) && !is_off(&group.source)).await?;
            if room.all > 0 {
                let rests = |source: &SourceName| work.submits() && is_off(source);
                let may = |group: &RouteKey| self.owns(group) && !rests(&group.source);
                let looked = self.parts().clock.now();
                let (begun, waits_for_others) = self.start((work, kind), &may, room, running, busy).await?;
                if waits_for_others {
                    wake = earlier(wake, Some(IN_LINE));
                }
                // Due jobs that were not claimed wait for room. The end of a running task wakes the loop.
                let (full, behind_full) = (begun.all >= room.all, begun.backlog >= room.backlog);
                let waits = |group: &RouteKey| {
                    let is_full = behind_full && self.is_of_backlog(&group.source);
                    may(group) && !is_full
                };
                if !full {
                    let due = self.parts().store.due_after(&[kind], &waits, looked).await?;
                    wake = earlier(wake, due.map(|due| due.duration_since(self.parts().clock.now())));
                }
            }
        }
        let no_room = self.extractor().ahead().is_none();
        // The engine of another service may free room in the spool, and does not report it.
        Ok(if no_room { earlier(wake, Some(ROOM_LOOKED_FOR)) } else { wake })
    }

    /// Returns how long until the first of these windows may be open.
    fn opens(&self, windows: &ClosedWindows) -> Option<Duration> {
        windows.values().min().map(|at| at.duration_since(self.parts().clock.wall()).min(NAP))
    }

    async fn start(
        self: &Arc<Self>,
        (work, kind): (WorkKind, StageKind),
        may: GroupFilter<'_>,
        room: ClaimLimit,
        running: &mut JoinSet<Walked>,
        busy: &mut Busy,
    ) -> Result<(ClaimLimit, bool), StoreError> {
        // Many due polls begin with a batch poll. One batch poll runs at a time, and it begins when no poll is
        // running. Polls that become due meanwhile run beside it, and all reads together are at most `READS`.
        let batch_polls =
            work == WorkKind::Wait && busy.of(work) == 0 && self.gate.permit(RequestKind::BatchPoll) == Permit::Granted;
        let room = match work {
            WorkKind::Resolve => ClaimLimit::of(RESOLVED_AT_ONCE),
            WorkKind::Wait if batch_polls => ClaimLimit::of(GLANCED_AT_ONCE),
            _ => room,
        };
        let OrderedClaims { claimed: claims, waits_for_others } = self.claim(kind, may, room).await?;
        let begun = (self.room_taken(&claims), waits_for_others);
        if work == WorkKind::Resolve && !claims.is_empty() {
            let engine = Arc::clone(self);
            busy.begin(work, running.spawn(async move { (work.into(), engine.resolve(claims).await) }));
            return Ok(begun);
        }
        if batch_polls && claims.len() > WORTH_A_PAGE {
            let engine = Arc::clone(self);
            busy.begin(work, running.spawn(async move { (work.into(), engine.batch_poll(claims).await) }));
            return Ok(begun);
        }
        for claim in claims {
            let engine = Arc::clone(self);
            let task = Task { work, backlog: self.is_backlog(&claim.job) };
            busy.begin(task, running.spawn(async move { (task, engine.run_claim(claim).await) }));
        }
        Ok(begun)
    }

    /// Starts a trial or returns how long to wait for it. A list of one record shows whether an outage is over, never
    /// a create.
    fn try_or_wait(
        self: &Arc<Self>,
        permit: Permit,
        running: &mut JoinSet<Walked>,
        busy: &mut Busy,
    ) -> Option<Duration> {
        match permit {
            Permit::Withheld => None,
            Permit::WaitUntil(until) => Some(until.since(self.parts().clock.uptime())),
            Permit::Granted => {
                if busy.of(WorkKind::Trial) == 0 {
                    let engine = Arc::clone(self);
                    let trial = async move { (WorkKind::Trial.into(), engine.trial().await) };
                    busy.begin(WorkKind::Trial, running.spawn(trial));
                }
                None
            }
        }
    }

    async fn trial(&self) -> Result<(), StoreError> {
        let query = ListQuery { limit: 1, ..ListQuery::default() };
        let client = Arc::clone(&self.parts().client);
        match client.list(&query).await {
            Ok(_) | Err(ListFault::None(_)) => self.observe(Observation::Listed),
            Err(ListFault::Now(fault)) => self.observe_fault(&client, &fault),
        }
        Ok(())
    }
}
