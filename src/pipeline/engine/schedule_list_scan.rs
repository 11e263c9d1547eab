//! Decides when the list is scanned for unknown creates, and commits what the scan shows. `recovery/unknown_create.rs`
//! decides what a scan says of one create.

use super::list_view::ListView;
use super::{Engine, EngineParts, LEASE};
use crate::backpressure::Permit;
use crate::backpressure::backoff::Growth;
use crate::backpressure::service_gate::{Observation, RequestKind};
use crate::client::contract::{ListFault, RecordState};
use crate::domain::fault::{Blame, Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::stage::JobEvent;
use crate::pipeline::recovery::absence::{Witness, WitnessSight};
use crate::pipeline::recovery::list_scan;
use crate::pipeline::recovery::list_scan::{ListScan, ScanContext, ScanFault, ScanScope};
use crate::pipeline::recovery::unknown_create::{Finding, by_token, judge, oldest, unproven, unproven_for_good};
use crate::store::contract::{Claimed, Lease, StoreError};
use crate::wire::page::ListQuery;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest wait between two scans that prove nothing, in multiples of `lag`.
const MOST_LAGS: u32 = 1 << 16;

impl Engine {
    /// Resolves all unknown creates by one scan.
    pub(super) async fn resolve(self: Arc<Self>, claims: Vec<Claimed>) -> Result<(), StoreError> {
        let (ripe, unripe) = self.ripe(claims);
        for (claim, due) in unripe {
            let fault = claim.job.fault.clone();
            still_ours(self.commit(&claim.lease, &claim.job.deferred(Some(due), fault)).await)?;
        }
        if ripe.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Job> = ripe.iter().map(|claim| claim.job.clone()).collect();
        let parts = &*self.parts();
        let scanning = self.scan_for_proof(parts, oldest(&jobs));
        let scanned = tokio::select! {
            biased;
            scanned = scanning => scanned,
            lost = self.keep_all(&ripe) => return lost,
        };
        match scanned {
            Ok((scan, sight)) => {
                self.observe(Observation::Listed);
                let (found, doubles) = by_token(scan.ours.clone());
                self.doubles.fetch_add(doubles, Ordering::Relaxed);
                for claim in ripe {
                    let (identity, retention) = (parts.client.identity(), parts.terms.retention);
                    let now = parts.clock.now();
                    let finding = judge(&claim.job, &found, (&scan, sight), identity, retention, now);
                    still_ours(self.resolved(claim, finding).await)?;
                }
            }
            Err(cut) => {
                self.observe_scan_fault(&parts.client, &cut);
                let fault = unproven(cut, self.parts().clock.now());
                for claim in ripe {
                    still_ours(self.unresolved(claim, fault.clone()).await)?;
                }
            }
        }
        Ok(())
    }

    /// Makes a complete scan, and returns whether it shows a witness: a transcription that the service is known to
    /// have accepted. If the filter hides the witness, the list is scanned without it. A witness that was deleted
    /// meanwhile is replaced by another one.
    async fn scan_for_proof(
        &self,
        parts: &EngineParts,
        oldest: Option<Timestamp>,
    ) -> Result<(ListScan, WitnessSight), ScanFault> {
        loop {
            self.ask_queue(parts).await?;
            let witness = self.list_view().witness(parts.clock.uptime(), parts.terms.lag);
            // A transcription that the service no longer keeps proves nothing.
            let oldest_kept = parts.clock.now().saturating_sub(parts.terms.retention);
            let witness = witness.filter(|witness| witness.date.is_none_or(|date| date >= oldest_kept));
            let Some(witness) = witness else {
                return Ok((self.scan_list(parts, oldest, false).await?, WitnessSight::NoWitness));
            };
            let since = oldest.zip(witness.date).map(|(oldest, date)| oldest.min(date));
            for filter in [true, false] {
                let scan = self.scan_list(parts, since, filter).await?;
                if witness.is_in(&scan) {
                    self.list_view().shown();
                    return Ok((scan, WitnessSight::Shown));
                }
                if !filter && self.is_there(parts, &witness).await? {
                    return Ok((scan, WitnessSight::Hidden));
                }
            }
            self.list_view().drop_witness(&witness.id);
        }
    }

    /// Reads from the queue which purchase was accepted last, unless the scan at the start did: that scan is made
    /// only before something is bought.
    async fn ask_queue(&self, parts: &EngineParts) -> Result<(), ScanFault> {
        if !self.list_view().has_asked_queue() {
            let newest = parts.store.newest_purchase(self.service()).await;
            let failed = |error: StoreError| Fault::new(FaultKind::Broken, error.to_string(), parts.clock.now());
            let newest = newest.map_err(|error| ScanFault::CutShort(failed(error)))?;
            self.list_view().knew(Witness::of(newest));
        }
        Ok(())
    }

    /// Whether the service still has the transcription. Reads it.
    pub(super) async fn is_there(&self, parts: &EngineParts, witness: &Witness) -> Result<bool, ScanFault> {
        match parts.client.read(&witness.id).await {
            Ok(RecordState::Lost(fault)) => Ok(fault.kind != FaultKind::Gone),
            Ok(_) => Ok(true),
            // It belongs to another account.
            Err(fault) if matches!(fault.kind, FaultKind::Refused { .. } | FaultKind::Barred { status: 403 }) => {
                Ok(false)
            }
            Err(fault) => Err(ScanFault::CutShort(fault)),
        }
    }

    /// Scans the list back to `since`, or as far as the service keeps records. Stops when the gate grants no reads.
    /// Whoever judges the result must use the same `parts`: the list of another key or address proves nothing.
    pub(super) async fn scan_list(
        &self,
        parts: &EngineParts,
        since: Option<Timestamp>,
        filter: bool,
    ) -> Result<ListScan, ScanFault> {
        let may = || self.gate.permit(RequestKind::Read) == Permit::Granted;
        let _progress = ClearProgress(&self.list_view);
        let progress = |progress| self.list_view().progress = Some(progress);
        // The scan goes by the service's own clock, since ours may be ahead.
        if parts.client.last_date().is_none() {
            match parts.client.list(&ListQuery { limit: 1, ..ListQuery::default() }).await {
                // The scan itself finds out about other refusals.
                Err(ListFault::Now(fault)) if !matches!(fault.kind, FaultKind::Refused { .. }) => {
                    return Err(ScanFault::CutShort(fault));
                }
                _ => {}
            }
        }
        let kept = parts.client.last_date().map(|date| date.saturating_sub(parts.terms.retention));
        let since = since.max(kept);
        let scope = ScanScope { since, walk_limit: parts.terms.list_scan_limit, filter };
        list_scan::run(&ScanContext { client: &*parts.client, may: &may, progress: &progress }, scope).await
    }

    /// Separates the creates that ended long enough ago from the others, by a clock that nobody sets. The wall clock
    /// only says when to look again.
    fn ripe(&self, claims: Vec<Claimed>) -> (Vec<Claimed>, Vec<(Claimed, Timestamp)>) {
        let (now, wall) = (self.parts().clock.uptime(), self.parts().clock.now());
        let memory = self.memory();
        let mut ripe = Vec::new();
        let mut unripe = Vec::new();
        for claim in claims {
            let lag = self.parts().terms.lag;
            let from = memory.creates.ripe_from(claim.job.id, now, self.started, lag, LEASE);
            if from <= now { ripe.push(claim) } else { unripe.push((claim, wall.saturating_add(from.since(now)))) }
        }
        (ripe, unripe)
    }

    pub(super) async fn keep_all(&self, claims: &[Claimed]) -> Result<(), StoreError> {
        loop {
            self.parts().clock.sleep(LEASE / 3).await;
            let until = self.parts().clock.now().saturating_add(LEASE);
            let leases: Vec<Lease> = claims.iter().map(|claim| claim.lease).collect();
            // A job that a person took meanwhile is passed over when it is committed.
            self.parts().store.renew(&leases, until).await?;
        }
    }

    async fn resolved(&self, claim: Claimed, finding: Finding) -> Result<(), StoreError> {
        let now = self.parts().clock.now();
        let Claimed { lease, job } = claim;
        let Some(purchase_key) = job.stage.purchase_key().cloned() else { return Ok(()) };
        match finding {
            Finding::Adopt(item) => {
                tracing::info!(job = %job.id, transcription = %item.id, "the service had accepted an unknown create; scribed continues with its transcription");
                let purchase_number = job.purchase_number;
                let origin = Some(self.parts().client.identity().origin.clone());
                let event = JobEvent::Adopted { purchase_key, transcription: item.id, purchase_number, origin };
                self.forget_create(job.id);
                self.list_view().shown();
                self.observe(Observation::Created);
                self.commit(&lease, &self.apply_event(job, event, None, now)).await
            }
            Finding::Absent => {
                self.forget_create(job.id);
                let last_error = job.fault.as_ref().map(|fault| fault.words.clone()).unwrap_or_default();
                let Ok(back) = self.transition(job, JobEvent::NotAccepted, now) else { return Ok(()) };
                let failures = self.count_failure(&back, true);
                if failures.alone >= self.parts().retry.attempts {
                    let words = format!(
                        "the service never accepts the create for this file, but accepts those for other files; \
                         last error: {last_error}"
                    );
                    self.faults.count(&FaultKind::Broken);
                    return self.commit_bug(&lease, back, Fault::new(FaultKind::Broken, words, now)).await;
                }
                let words = "the service did not accept the create: its list does not have it; scribed sends it \
                             again";
                let fault = Fault::new(FaultKind::Broken, words, now);
                let at = now.saturating_add(self.gate.longest_wait(failures.earlier));
                self.faults.count(&fault.kind);
                self.commit(&lease, &back.deferred(Some(at), Some(fault))).await
            }
            Finding::Unproven(why) => self.unproven(&lease, job, why, now).await,
            Finding::Ask(fault) => {
                self.count_wait(&job, Some(&fault));
                self.commit(&lease, &job.deferred(None, Some(fault))).await
            }
        }
    }

    /// Schedules another scan, since the list may show the create later. After some scans, at growing intervals, a
    /// person is asked.
    async fn unproven(&self, lease: &Lease, job: Job, why: &str, now: Timestamp) -> Result<(), StoreError> {
        let before = self.list_view().count_unproven(job.id);
        if before + 1 >= self.parts().retry.attempts {
            let fault = unproven_for_good(why, now);
            self.count_wait(&job, Some(&fault));
            return self.commit(lease, &job.deferred(None, Some(fault))).await;
        }
        let lag = self.parts().terms.lag;
        let growth = Growth::doubling(lag, lag.saturating_mul(MOST_LAGS));
        let wait = growth.wait(before).max(self.gate.longest_wait(before));
        let words =
            format!("it is not known whether the service accepted the create: {why}; scribed reads the list again");
        let fault = Fault::new(FaultKind::Unknown, words, now);
        self.commit(lease, &job.deferred(Some(now.saturating_add(wait)), Some(fault))).await
    }

    async fn unresolved(&self, claim: Claimed, fault: Fault) -> Result<(), StoreError> {
        let now = self.parts().clock.now();
        self.count_wait(&claim.job, Some(&fault));
        if fault.blame() == Blame::Person {
            return self.commit(&claim.lease, &claim.job.deferred(None, Some(fault))).await;
        }
        let wait = self.gate.longest_wait(self.count_failure(&claim.job, false).earlier);
        let words = format!(
            "it is not known whether the service accepted the create, and scribed cannot read the service's list \
             now: {}",
            fault.words
        );
        let fault = Fault { words, ..fault };
        self.commit(&claim.lease, &claim.job.deferred(Some(now.saturating_add(wait)), Some(fault))).await
    }
}

/// Ignores that a person has taken one of many jobs: the others go on.
pub(super) fn still_ours(committed: Result<(), StoreError>) -> Result<(), StoreError> {
    match committed {
        Err(error) if error.stale().is_some() => Ok(()),
        other => other,
    }
}

/// Clears the progress of a scan when the scan ends.
struct ClearProgress<'v>(&'v Mutex<ListView>);

impl Drop for ClearProgress<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).progress = None;
    }
}
