//! Claims the jobs that may be handled now.

use super::{Engine, EngineParts, LEASE};
use crate::domain::names::SourceName;
use crate::domain::routing::RouteKey;
use crate::domain::stage::StageKind;
use crate::pipeline::manifest_holds;
use crate::pipeline::windows;
use crate::source::mount::source_mount::Mount;
use crate::source::scan::schedule::FirstScan;
use crate::store::contract::{BudgetOrder, ClaimLimit, Claimed, GroupFilter, Lease, OrderedClaims, StoreError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time after the start of a daemon by which its first scans have begun.
const STARTING: Duration = Duration::from_secs(2);

/// Longer than any process lives. Leases end with the process.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

impl Engine {
    /// Returns the room that these claims leave.
    fn room_left(&self, room: ClaimLimit, claims: &[Claimed]) -> ClaimLimit {
        let ClaimLimit { backlog, .. } = self.room_taken(claims);
        ClaimLimit { all: room.all.saturating_sub(claims.len()), backlog: room.backlog.saturating_sub(backlog) }
    }

    pub(super) fn room_taken(&self, claims: &[Claimed]) -> ClaimLimit {
        let backlog = claims.iter().filter(|claim| self.is_backlog(&claim.job)).count();
        ClaimLimit { all: claims.len(), backlog }
    }

    /// Claims as many jobs of a stage as there is room for, and returns whether jobs wait for others that come before
    /// them in the budget order. Jobs that a plan does not name, or that a limit of the pass holds back, stay leased until this process ends: their rows do
    /// not change, and the next process finds them as they were.
    pub(super) async fn claim(
        &self,
        kind: StageKind,
        may: GroupFilter<'_>,
        room: ClaimLimit,
    ) -> Result<OrderedClaims, StoreError> {
        let parts = self.parts();
        let (store, budget_gate) = (&parts.store, &parts.budget_gate);
        let mut claims = Vec::new();
        loop {
            let (now, wanted) = (parts.clock.now(), self.room_left(room, &claims));
            let batch = match kind == StageKind::Probed && budget_gate.is_set() {
                true => self.claim_in_line(may, wanted).await?,
                false => {
                    let claimed = store.claim(&[kind], may, now, now.saturating_add(LEASE), wanted).await?;
                    OrderedClaims { claimed, waits_for_others: false }
                }
            };
            let (allowed, passed_over): (Vec<_>, Vec<_>) =
                batch.claimed.into_iter().partition(|claim| budget_gate.allows(&claim.job));
            let admits = |claim: &Claimed| budget_gate.pass_limits().is_none_or(|limits| limits.admits(&claim.job));
            let (admitted, beyond): (Vec<_>, Vec<_>) = allowed.into_iter().partition(admits);
            claims.extend(admitted);
            if passed_over.is_empty() && beyond.is_empty() {
                return Ok(OrderedClaims { claimed: claims, waits_for_others: batch.waits_for_others });
            }
            // A job whose lease cannot be renewed, because a person took the job meanwhile or for another reason, is
            // claimed again.
            let leases: Vec<Lease> = passed_over.iter().chain(&beyond).map(|claim| claim.lease).collect();
            let _ = store.renew(&leases, now.saturating_add(FOR_EVER)).await;
            if let Some(limits) = budget_gate.pass_limits() {
                let admissible = limits.hold_back(beyond.iter().map(|claim| claim.lease));
                // They are claimed again at once.
                let _ = store.renew(&admissible, now).await;
            }
        }
    }

    /// Claims jobs that may reserve from the budgets, in budget order.
    async fn claim_in_line(&self, may: GroupFilter<'_>, room: ClaimLimit) -> Result<OrderedClaims, StoreError> {
        let parts = self.parts();
        let EngineParts { store, budget_gate, mounts, routing, clock, .. } = &*parts;
        let now = clock.now();
        let (pauses, exhausted) = (store.pauses().await?, budget_gate.exhausted(now));
        let (windows, held) = (windows::closed(mounts, clock.wall()), manifest_holds::held(mounts, &**clock));
        let is_coming = |group: &RouteKey| {
            let (source, service) = (&group.source, routing.service_of(group));
            let is_off = pauses.for_source(source, now).is_some() || windows.contains_key(source);
            let goes_on = !is_off && !held.contains_key(source) && !exhausted.covers(source);
            let is_there = mounts.get(source).is_some_and(|mount| mount.away().is_none());
            goes_on && is_there && routing.services().contains(service) && budget_gate.is_served(service)
        };
        let is_scanned_first = |mount: &Arc<Mount>| {
            let may_begin = || self.intake.load(Ordering::Relaxed) || clock.uptime().since(self.started) < STARTING;
            match mount.scans().first() {
                FirstScan::Running => true,
                FirstScan::Ahead => may_begin(),
                FirstScan::Over => false,
            }
        };
        let being_scanned = mounts.iter().filter(|(_, mount)| mount.away().is_none() && is_scanned_first(mount));
        let being_scanned: Vec<SourceName> = being_scanned.map(|(source, _)| source.clone()).collect();
        let order = BudgetOrder {
            limits: &|source| budget_gate.limits_for(source, now),
            is_exhausted: &|source| exhausted.covers(source),
            is_coming: &is_coming,
            being_scanned: &being_scanned,
        };
        let claims = store.claim_in_budget_order(may, now, now.saturating_add(LEASE), room, &order).await?;
        budget_gate.note_waiting(claims.waits_for_others);
        Ok(claims)
    }

    /// Wakes the next job in the budget order after a job has reserved or was refused. That job may belong to another
    /// engine.
    pub(super) fn wake_next_in_line(&self) {
        let parts = self.parts();
        if parts.budget_gate.is_set() {
            self.wake();
            if parts.budget_gate.take_waiting() {
                parts.passing.pass();
            }
        }
    }
}
