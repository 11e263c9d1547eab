//! Decides which job may reserve from a budget next. Uploads run side by side, and files become ready in any order.
//! Still, what is left of a budget goes to the first job in line (bumped jobs, the live lane, priority, the source's
//! order).
//!
//! A job J that is ready for its upload waits while a job K comes before it that
//! 1. takes from the same budget, has nothing reserved, and has not asked for its reservation yet;
//! 2. is on its way to its upload, and due by [`SOON`] after J became ready (its window open, its pause over). A job
//!    that was found later has come too late, and a job that rests for longer (a hold, a refusal, a retry) is not
//!    waited for. So J waits for a number of jobs that does not grow;
//! 3. belongs to a group that moves by itself now: no pause, no closed window, no folder that is away, no outage.
//!
//! No job waits for longer than [`LONGEST`], and no job waits if the budget holds J and all of those K, even if each of
//! them costs as much as a file of its size can.
//!
//! A recording of which parts are bought has reserved the rest. It waits for nobody, comes before all others of its group
//! that have the same priority, and is tried even where the budget refused many others: what was spent on it is of use
//! only when it is complete.

use crate::domain::budget::{BudgetLimit, check_limits};
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::routing::RouteKey;
use crate::domain::scheduling::{Lane, QueuePosition};
use crate::domain::stage::StageKind;
use crate::store::contract::{BudgetOrder, GroupFilter};
use crate::store::index::job_index::{GroupHead, JobIndex};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

/// A job that is due within this time after another one became ready may come before it. A file on a share settles
/// within this time.
const SOON: Duration = Duration::from_secs(90);

/// No job waits for others longer than this, counted from when it became ready.
const LONGEST: Duration = Duration::from_secs(600);

/// A longer lease means no work: a plan does not name the job.
const NO_WORK: Duration = Duration::from_secs(3600);

/// Most jobs that are looked at. If there are more, some job certainly comes first.
const LOOKED_AT: usize = 1_000;

/// Most milliseconds of billed audio in a KiB of a file: no recording has less than 4 kbit for each second of a
/// channel.
const MOST_OF_A_KIB: u64 = 2_048;

/// Size in KiB below which a file is not judged by its size. A smaller file may be of any rare kind, or not be here
/// at all.
const JUDGED_FROM: u32 = 64;

/// A job's place in the line.
#[derive(Clone, Copy)]
struct Place<'g> {
    source: &'g SourceName,
    lane: Lane,
    turn: QueuePosition,
    job: JobId,
}

impl Place<'_> {
    /// Whether a job comes before another one. Sources of one rank take turns: their jobs do not wait for each other.
    fn is_before(&self, other: &Self) -> bool {
        let rank = |place: &Self| (place.lane, place.turn.rank());
        let in_source = (self.turn, self.job) < (other.turn, other.job);
        rank(self) < rank(other) || (self.source == other.source && rank(self) == rank(other) && in_source)
    }
}

/// Result of looking for the next job in line.
pub enum NextInLine {
    /// This job may reserve. It is held by this fence.
    Claimed((JobId, u64)),
    /// The jobs that are ready wait for others.
    Waits,
    None,
}

impl JobIndex {
    /// Claims the next job that may reserve, until `until`.
    pub fn claim_in_line(
        &mut self,
        of: GroupFilter<'_>,
        (now, until): (Timestamp, Timestamp),
        backlog: bool,
        line: &BudgetOrder<'_>,
    ) -> NextInLine {
        self.note_moving(now, line);
        let mut heads = self.firsts(&[StageKind::Probed], of, now, backlog);
        heads.sort_by_key(|(place, ..)| *place);
        if !heads.is_empty() {
            self.sort_in(now);
        }
        let mut waits = false;
        for head in heads {
            let ((.., turn, _), kind, group) = &head;
            // A bumped job is looked at even if enough other jobs were refused, and so is one that has its reservation.
            let is_tried = turn.is_bumped() || !(line.is_exhausted)(&group.source);
            waits |= is_tried;
            let next = match is_tried {
                true => self.begun_before(&head).or_else(|| self.may_reserve(&head, now, line)),
                false => self.first_ready(&self.reserved, group, *kind),
            };
            if let Some((turn, job)) = next
                && let Some(held) = self.hold((turn, job), head.1, head.2, until)
            {
                return NextInLine::Claimed(held);
            }
        }
        if waits { NextInLine::Waits } else { NextInLine::None }
    }

    /// Returns the job of a group that has bought a part of its recording and comes before the first of the others.
    fn begun_before(&self, first: &GroupHead) -> Option<(QueuePosition, JobId)> {
        let ((.., turn, _), kind, group) = first;
        self.first_ready(&self.begun, group, *kind).filter(|(begun, _)| begun.rank() <= turn.rank())
    }

    /// Returns the first of these jobs that is ready in a group.
    fn first_ready(&self, jobs: &BTreeSet<JobId>, group: &RouteKey, kind: StageKind) -> Option<(QueuePosition, JobId)> {
        let turns = self.parts.get(group)?.due.get(&kind)?;
        let Some(policy) = self.policies.get(&group.source) else {
            // Without a policy the due time decides, which only the sorted jobs know.
            let found = turns.ready().take(LOOKED_AT).find(|(_, job, _)| jobs.contains(job));
            return found.map(|(turn, job, _)| (turn, job));
        };
        let place = |job: &JobId| (self.roll.mark(*job).turn(Some(policy), kind, Timestamp(0)), *job);
        jobs.iter().map(place).filter(|(turn, job)| turns.due_of(*turn, *job).is_some()).min()
    }

    /// Notes since when each group moves. When a window opens or a pause ends, all jobs behind it become ready at
    /// once, however long they have been due.
    fn note_moving(&mut self, now: Timestamp, line: &BudgetOrder<'_>) {
        let Self { parts, moving, .. } = self;
        moving.retain(|group, _| (line.is_coming)(group));
        for group in parts.keys().filter(|group| (line.is_coming)(group)) {
            if !moving.contains_key(group) {
                moving.insert(group.clone(), now);
            }
        }
    }

    fn sort_in(&mut self, now: Timestamp) {
        let Self { parts, policies, roll, .. } = self;
        for (group, part) in parts {
            let policy = policies.get(&group.source);
            for (kind, turns) in part.due.iter_mut().filter(|(kind, _)| is_before_reserving(**kind)) {
                turns.ripen(now, |id, due| roll.mark(id).turn(policy, *kind, due));
            }
        }
    }

    /// Returns the job of a group that may reserve. A job that has its reservation need not wait.
    fn may_reserve(&self, first: &GroupHead, now: Timestamp, line: &BudgetOrder<'_>) -> Option<(QueuePosition, JobId)> {
        let ((.., turn, job), kind, group) = first;
        let turns = self.parts.get(group)?.due.get(kind)?;
        let place = self.place(*job, group);
        let limits = (line.limits)(&group.source);
        if limits.is_empty() || self.reserved.contains(job) {
            return Some((*turn, *job));
        }
        let due = turns.due_of(*turn, *job)?;
        let ready = self.moving.get(group).map_or(due, |moving| due.max(*moving));
        if !self.waits(&place, ready, limits, now, line) {
            return Some((*turn, *job));
        }
        self.first_ready(&self.reserved, group, *kind)
    }

    fn waits(
        &self,
        own: &Place<'_>,
        ready: Timestamp,
        limits: Vec<BudgetLimit>,
        now: Timestamp,
        line: &BudgetOrder<'_>,
    ) -> bool {
        if now >= ready.saturating_add(LONGEST) {
            return false;
        }
        let is_shared = limits.iter().any(|limit| limit.source.is_none());
        let shares = |source: &SourceName| is_shared || source == own.source;
        let may_find = |source: &&SourceName| shares(source) && !self.is_behind(source, own);
        if line.being_scanned.iter().any(|source| may_find(&source)) {
            return true;
        }
        let is_coming = |group: &RouteKey| shares(&group.source) && (line.is_coming)(group);
        let before = self.before(own, (now, ready.saturating_add(SOON)), &is_coming);
        !before.is_empty() && !self.holds_all(before, own.job, limits)
    }

    /// Whether no file that a scan of this source finds can come before that job, as far as the source itself
    /// decides.
    fn is_behind(&self, source: &SourceName, own: &Place<'_>) -> bool {
        let policy = self.policies.get(source).copied().unwrap_or_default();
        own.source != source && (own.lane, own.turn.rank()) < (policy.lane, Reverse((0, policy.priority)))
    }

    /// Returns the jobs that come before one and may reserve soon. If there are more than [`LOOKED_AT`], not all are
    /// returned.
    fn before(&self, own: &Place<'_>, (now, soon): (Timestamp, Timestamp), is_coming: GroupFilter<'_>) -> Vec<JobId> {
        let mut before = Vec::new();
        for (group, part) in self.parts.iter().filter(|(group, _)| is_coming(group)) {
            for turns in part.due.iter().filter(|(kind, _)| is_before_reserving(**kind)).map(|(_, turns)| turns) {
                let ready = turns.ready().map(|(_, job, due)| (job, due));
                // The sorted jobs are in order, so the first that comes later ends the search.
                let ready = ready.take_while(|(job, _)| self.place(*job, group).is_before(own)).take(10 * LOOKED_AT);
                let coming = turns.coming(soon).take(10 * LOOKED_AT);
                let all = ready.chain(coming).filter(|(_, due)| *due <= soon).map(|(job, _)| job);
                let counts = |job: &JobId| !self.reserved.contains(job) && self.place(*job, group).is_before(own);
                before.extend(all.filter(counts).take(LOOKED_AT + 1));
            }
        }
        let at_work = self.leases.iter().filter(|(job, held)| {
            let is_work = is_before_reserving(held.kind) && !held.has_asked && held.until < now.saturating_add(NO_WORK);
            is_work && held.due.is_none_or(|due| due <= soon) && !self.reserved.contains(job) && is_coming(&held.group)
        });
        before.extend(at_work.filter(|(job, held)| self.place(**job, &held.group).is_before(own)).map(|(job, _)| *job));
        before
    }

    fn place<'g>(&self, job: JobId, group: &'g RouteKey) -> Place<'g> {
        let policy = self.policies.get(&group.source);
        // The due time decides only if no policies are set. Then no job comes before another.
        let turn = self.roll.mark(job).turn(policy, StageKind::Probed, Timestamp(0));
        let lane = if turn.is_bumped() { Lane::Live } else { policy.copied().unwrap_or_default().lane };
        Place { source: &group.source, lane, turn, job }
    }

    /// Whether all of these jobs fit into these limits, however long their recordings are.
    fn holds_all(&self, before: Vec<JobId>, own: JobId, limits: Vec<BudgetLimit>) -> bool {
        if before.len() > LOOKED_AT {
            return false;
        }
        let most = |job: JobId| match self.roll.mark(job).file.kib() {
            0..JUDGED_FROM => None,
            kib => Some((u64::from(kib) + 1) * MOST_OF_A_KIB),
        };
        let all = before.into_iter().chain([own]).map(most).try_fold(0, |sum: u64, most| sum.checked_add(most?));
        let used = |limit: BudgetLimit| {
            let used = self.spending.used(&limit);
            (limit, used)
        };
        all.is_some_and(|need| check_limits(limits.into_iter().map(used), need).is_ok())
    }
}

/// Whether a job at this stage may still come to its reservation.
fn is_before_reserving(kind: StageKind) -> bool {
    matches!(kind, StageKind::Found | StageKind::Settled | StageKind::Probed)
}
