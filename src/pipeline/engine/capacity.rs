//! How many more tasks of each kind may start, and how many of these are kept for the live lane: a live recording
//! starts at once, whatever the backlog is doing.

use super::batch_poll::READS;
use super::scheduler::{Busy, WorkKind};
use super::{Engine, EngineParts};
use crate::backpressure::service_gate::AtOnce;
use crate::domain::job::Job;
use crate::domain::names::SourceName;
use crate::domain::routing::RouteKey;
use crate::domain::scheduling::{Lane, SchedulingPolicies};
use crate::domain::stage::StageKind;
use crate::store::contract::{ClaimLimit, GroupFilter, JobCounts, StoreError};
use std::sync::Arc;

impl Engine {
    /// Passes the scheduling policies of the sources to the store if the parts have changed since the last call.
    /// `arranged` holds the parts of the last call.
    pub(super) async fn arrange(&self, arranged: &mut Option<Arc<EngineParts>>) -> Result<(), StoreError> {
        let parts = self.parts();
        if arranged.as_ref().is_some_and(|arranged| Arc::ptr_eq(arranged, &parts)) {
            return Ok(());
        }
        let sources = parts.mounts.values().map(|mount| mount.source());
        let policies: SchedulingPolicies = sources.map(|source| (source.name.clone(), source.scheduling)).collect();
        parts.store.set_scheduling(policies).await?;
        *arranged = Some(parts);
        Ok(())
    }

    pub(super) fn is_of_backlog(&self, source: &SourceName) -> bool {
        self.parts().mounts.get(source).is_some_and(|mount| mount.source().scheduling.lane == Lane::Backlog)
    }

    /// Whether a job belongs to the backlog and no person has bumped it.
    pub(super) fn is_backlog(&self, job: &Job) -> bool {
        job.bumped.is_none() && self.is_of_backlog(&job.key.source)
    }

    /// Whether there are live and backlog sources. Capacity is kept for the live lane only then.
    fn has_both_lanes(&self) -> bool {
        let parts = self.parts();
        let mut sources = parts.mounts.keys();
        let first = sources.next().map(|source| self.is_of_backlog(source));
        sources.any(|source| Some(self.is_of_backlog(source)) != first)
    }

    /// Returns how many more tasks of this kind may start now. `goes_on` selects the groups that are neither paused
    /// nor outside their window.
    pub(super) async fn room(
        &self,
        work: WorkKind,
        busy: &Busy,
        goes_on: GroupFilter<'_>,
    ) -> Result<ClaimLimit, StoreError> {
        let kept = |limit| if self.has_both_lanes() { kept(limit) } else { 0 };
        let AtOnce { uploads, running } = self.gate.at_once();
        // The limit for both lanes together, and the limit for the backlog.
        let (all, backlog) = match work {
            WorkKind::Settle => own_limit(64, kept(64)),
            WorkKind::Probe => own_limit(self.cores, kept(self.cores).max(usize::from(self.has_both_lanes()))),
            WorkKind::Write => own_limit(32, kept(32)),
            WorkKind::Follow => own_limit(8, kept(8)),
            WorkKind::Resolve | WorkKind::Trust | WorkKind::Trial => (1, 1),
            WorkKind::Wait => (READS, READS),
            WorkKind::Upload => {
                // Audio must not pile up at the service: no more is uploaded ahead than may run. Uploads of paused
                // sources do not count.
                let (ahead, behind) = self.count_lanes(goes_on, |counts| counts.of(StageKind::Uploaded)).await?;
                // While some recordings are sent, the sound tracks of others are extracted.
                let extracts = self.extractor().ahead();
                let at_once = extracts.map_or(0, |extracts| uploads + extracts);
                let of_backlog = at_once.saturating_sub(kept(uploads));
                let left = running.saturating_sub(kept(running)).saturating_sub(behind);
                (at_once.min(running.saturating_sub(ahead)), of_backlog.min(left))
            }
            WorkKind::Submit => {
                let (all, of_backlog) = self.count_lanes(&|group| self.owns(group), JobCounts::running).await?;
                // A task that submits is counted here from its intent on, and in `busy` as well until it ends.
                let room = running.saturating_sub(all);
                let room =
                    if self.gate.creates_one_by_one() || !self.list_view().has_shown { room.min(1) } else { room };
                (room, running.saturating_sub(kept(running)).saturating_sub(of_backlog))
            }
        };
        let all = all.saturating_sub(busy.of(work));
        Ok(ClaimLimit { all, backlog: backlog.saturating_sub(busy.of_backlog(work)).min(all) })
    }

    /// Counts jobs in these groups, and jobs in those of them that belong to the backlog.
    async fn count_lanes(
        &self,
        of: GroupFilter<'_>,
        count: impl Fn(&JobCounts) -> u64,
    ) -> Result<(usize, usize), StoreError> {
        let all = self.parts().store.counts_of(of).await?;
        let behind = |group: &RouteKey| self.is_of_backlog(&group.source) && of(group);
        let behind = self.parts().store.counts_of(&behind).await?;
        Ok([all, behind].map(|counts| usize::try_from(count(&counts)).unwrap_or(usize::MAX)).into())
    }
}

/// Returns how much of a limit is kept for the live lane: a quarter, and at least one if the limit is two or more.
fn kept(limit: usize) -> usize {
    if limit < 2 { 0 } else { (limit / 4).max(1) }
}

/// Returns the limits for both lanes and for the backlog where scribed sets the limit itself: what is kept for the
/// live lane is added.
fn own_limit(limit: usize, kept: usize) -> (usize, usize) {
    (limit + kept, limit)
}
