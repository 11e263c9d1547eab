//! How much more of each kind of work may begin, and how much of that is kept for the live lane: a clip that
//! somebody waits for begins at once, whatever the backlog is busy with.

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
    /// Tells the store how the sources stand, where that may have changed since it was last told.
    pub(super) async fn arrange(&self, told: &mut Option<Arc<EngineParts>>) -> Result<(), StoreError> {
        let parts = self.parts();
        if told.as_ref().is_some_and(|told| Arc::ptr_eq(told, &parts)) {
            return Ok(());
        }
        let sources = parts.mounts.values().map(|mount| mount.source());
        let policies: SchedulingPolicies = sources.map(|source| (source.name.clone(), source.scheduling)).collect();
        parts.store.set_scheduling(policies).await?;
        *told = Some(parts);
        Ok(())
    }

    pub(super) fn is_of_backlog(&self, source: &SourceName) -> bool {
        self.parts().mounts.get(source).is_some_and(|mount| mount.source().scheduling.lane == Lane::Backlog)
    }

    /// Whether a job is of the backlog, and nobody has put it before the others.
    pub(super) fn is_backlog(&self, job: &Job) -> bool {
        job.bumped.is_none() && self.is_of_backlog(&job.key.source)
    }

    /// Something is kept only where there are both lanes.
    fn has_both_lanes(&self) -> bool {
        let parts = self.parts();
        let mut sources = parts.mounts.keys();
        let first = sources.next().map(|source| self.is_of_backlog(source));
        sources.any(|source| Some(self.is_of_backlog(source)) != first)
    }

    /// How many more of this work may begin now. `goes_on`: the groups whose jobs do not rest.
    pub(super) async fn room(
        &self,
        work: WorkKind,
        busy: &Busy,
        goes_on: GroupFilter<'_>,
    ) -> Result<ClaimLimit, StoreError> {
        let kept = |limit| if self.has_both_lanes() { kept(limit) } else { 0 };
        let AtOnce { uploads, running } = self.gate.at_once();
        // How much at once, and how much of that may be of the backlog.
        let (all, backlog) = match work {
            WorkKind::Settle => more(64, kept(64)),
            WorkKind::Probe => more(self.cores, kept(self.cores).max(usize::from(self.has_both_lanes()))),
            WorkKind::Write => more(32, kept(32)),
            WorkKind::Follow => more(8, kept(8)),
            WorkKind::Resolve | WorkKind::Trust | WorkKind::Trial => (1, 1),
            WorkKind::Wait => (READS, READS),
            WorkKind::Upload => {
                // Audio must not pile up at the service: no further ahead than what may run. What rests there
                // is in nobody's way.
                let (ahead, behind) = self.both(goes_on, |counts| counts.of(StageKind::Uploaded)).await?;
                // While some are sent, the sound tracks of others are taken out.
                let extracts = self.extractor().ahead();
                let at_once = extracts.map_or(0, |extracts| uploads + extracts);
                let of_backlog = at_once.saturating_sub(kept(uploads));
                let left = running.saturating_sub(kept(running)).saturating_sub(behind);
                (at_once.min(running.saturating_sub(ahead)), of_backlog.min(left))
            }
            WorkKind::Submit => {
                let (all, of_backlog) = self.both(&|group| self.owns(group), JobCounts::running).await?;
                // A walk that submits is counted from its intent on, and below all the while.
                let room = running.saturating_sub(all);
                let room =
                    if self.gate.creates_one_by_one() || !self.list_view().has_shown { room.min(1) } else { room };
                (room, running.saturating_sub(kept(running)).saturating_sub(of_backlog))
            }
        };
        let all = all.saturating_sub(busy.of(work));
        Ok(ClaimLimit { all, backlog: backlog.saturating_sub(busy.of_backlog(work)).min(all) })
    }

    /// Of these groups, and of those of the backlog among them.
    async fn both(&self, of: GroupFilter<'_>, count: impl Fn(&JobCounts) -> u64) -> Result<(usize, usize), StoreError> {
        let all = self.parts().store.counts_of(of).await?;
        let behind = |group: &RouteKey| self.is_of_backlog(&group.source) && of(group);
        let behind = self.parts().store.counts_of(&behind).await?;
        Ok([all, behind].map(|counts| usize::try_from(count(&counts)).unwrap_or(usize::MAX)).into())
    }
}

/// Of what the service limits, a quarter is kept, and one at least where there are two.
fn kept(limit: usize) -> usize {
    if limit < 2 { 0 } else { (limit / 4).max(1) }
}

/// What we limit ourselves is more where some of it is kept.
fn more(limit: usize, kept: usize) -> (usize, usize) {
    (limit + kept, limit)
}
