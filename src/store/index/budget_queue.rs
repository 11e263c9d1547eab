//! Who may reserve from a budget next. Uploads go out side by side, and files become ready in any order; what is left
//! of a budget goes to the first in line all the same (bumped jobs, the live lane, priority, the source's order).
//!
//! A job J that is ready for its upload waits while a job K comes before it that
//! 1. takes from the same budget, has nothing reserved, and has not asked for its reservation yet;
//! 2. is on its way to its upload and due by [`SOON`] after J became ready (its window open, its pause over). What was found later has come too late,
//!    and what rests for longer (a hold, a refusal, a retry) is not waited for. So J waits for a number of jobs that
//!    does not grow;
//! 3. belongs to a group that moves by itself now: no pause, no closed window, no folder that is away, no outage.
//!
//! Nobody waits for longer than [`LONGEST`], and nobody waits where the budget holds J and all of those K, even if
//! each of them costs as much as a file of its size can.

use crate::domain::budget::{BudgetLimit, check_limits};
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::routing::RouteKey;
use crate::domain::scheduling::{Lane, QueuePosition};
use crate::domain::stage::StageKind;
use crate::store::contract::{BudgetOrder, GroupFilter};
use crate::store::index::job_index::{GroupHead, JobIndex};
use std::cmp::Reverse;
use std::time::Duration;

/// What is due so long after a job became ready may come before it: a file on a share is settled in it.
const SOON: Duration = Duration::from_secs(90);

/// No job waits for others for longer than this, from when it became ready.
const LONGEST: Duration = Duration::from_secs(600);

/// A lease that lasts for longer is no work: a plan did not choose the job.
const NO_WORK: Duration = Duration::from_secs(3600);

/// So many jobs are looked at. Where there are more, somebody comes first.
const LOOKED_AT: usize = 1_000;

/// Nothing that is recorded takes less than 4 kbit for each second of a channel: a KiB is no more than this, in
/// milliseconds of billed audio.
const MOST_OF_A_KIB: u64 = 2_048;

/// In KiB: smaller files are not judged by their size. They may be of any rare kind, or not be here at all.
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
    /// Sources of one rank take turns: their jobs do not wait for each other.
    fn is_before(&self, other: &Self) -> bool {
        let rank = |place: &Self| (place.lane, place.turn.rank());
        let in_source = (self.turn, self.job) < (other.turn, other.job);
        rank(self) < rank(other) || (self.source == other.source && rank(self) == rank(other) && in_source)
    }
}

/// Who comes first.
pub enum NextInLine {
    /// This one may reserve, held by this fence.
    Claimed((JobId, u64)),
    /// Those that are ready wait for others.
    Waits,
    None,
}

impl JobIndex {
    /// The next that may reserve, held until `until`.
    pub fn claim_in_line(
        &mut self,
        of: GroupFilter<'_>,
        (now, until): (Timestamp, Timestamp),
        backlog: bool,
        line: &BudgetOrder<'_>,
    ) -> NextInLine {
        self.note_moving(now, line);
        let mut firsts = self.firsts(&[StageKind::Probed], of, now, backlog);
        // What a person has put before all others is looked at even where enough of the others were refused.
        firsts.retain(|((.., turn, _), _, group)| turn.is_bumped() || !(line.is_exhausted)(&group.source));
        firsts.sort_by_key(|(place, ..)| *place);
        if firsts.is_empty() {
            return NextInLine::None;
        }
        self.sort_in(now);
        for first in firsts {
            if let Some((turn, job)) = self.may_reserve(&first, now, line)
                && let Some(held) = self.hold((turn, job), first.1, first.2, until)
            {
                return NextInLine::Claimed(held);
            }
        }
        NextInLine::Waits
    }

    /// When a window opens or a pause ends, everything behind it becomes ready at once, however long it has been due.
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
            let standing = policies.get(&group.source);
            for (kind, turns) in part.due.iter_mut().filter(|(kind, _)| is_before_reserving(**kind)) {
                turns.ripen(now, |id, due| roll.mark(id).turn(standing, *kind, due));
            }
        }
    }

    /// The one of a group that may; one that has its reservation needs no turn.
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
        let mut behind = turns.ready().take(LOOKED_AT);
        behind.find(|(_, job, _)| self.reserved.contains(job)).map(|(turn, job, _)| (turn, job))
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

    /// Whether nothing that a scan of this source finds comes before that job, as far as the source itself says.
    fn is_behind(&self, source: &SourceName, own: &Place<'_>) -> bool {
        let standing = self.policies.get(source).copied().unwrap_or_default();
        own.source != source && (own.lane, own.turn.rank()) < (standing.lane, Reverse((0, standing.priority)))
    }

    /// The jobs that come before one and may soon reserve; more than [`LOOKED_AT`] where they are not counted.
    fn before(&self, own: &Place<'_>, (now, soon): (Timestamp, Timestamp), is_coming: GroupFilter<'_>) -> Vec<JobId> {
        let mut before = Vec::new();
        for (group, part) in self.parts.iter().filter(|(group, _)| is_coming(group)) {
            for turns in part.due.iter().filter(|(kind, _)| is_before_reserving(**kind)).map(|(_, turns)| turns) {
                let ready = turns.ready().map(|(_, job, due)| (job, due));
                // Of those that are sorted in, the first that comes later ends the search.
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
        let standing = self.policies.get(&group.source);
        // What is due decides only where nobody has said how the sources stand: there nobody is before anybody.
        let turn = self.roll.mark(job).turn(standing, StageKind::Probed, Timestamp(0));
        let lane = if turn.is_bumped() { Lane::Live } else { standing.copied().unwrap_or_default().lane };
        Place { source: &group.source, lane, turn, job }
    }

    /// Whether all of them fit into these limits, however long the recordings in their files are.
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

/// A job at this stage may come to its reservation.
fn is_before_reserving(kind: StageKind) -> bool {
    matches!(kind, StageKind::Found | StageKind::Settled | StageKind::Probed)
}
