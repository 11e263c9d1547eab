//! Leases and commits.

use super::{Paid, Queue, QueueStore, is_durable_at};
use crate::domain::job::Job;
use crate::domain::names::{JobId, Timestamp, TranscriptionId};
use crate::domain::scheduling::SchedulingPolicies;
use crate::domain::stage::StageKind;
use crate::store::contract::{
    BudgetOrder, ClaimLimit, Claimed, Claims, GroupFilter, Hold, Lease, OrderedClaims, StoreError,
};
use crate::store::index::budget_queue::NextInLine;

#[async_trait::async_trait]
impl Claims for QueueStore {
    async fn claim(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        limit: ClaimLimit,
    ) -> Result<Vec<Claimed>, StoreError> {
        self.queue().claim(kinds, of, now, until, limit)
    }

    async fn claim_in_budget_order(
        &self,
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        limit: ClaimLimit,
        order: &BudgetOrder<'_>,
    ) -> Result<OrderedClaims, StoreError> {
        self.queue().claim_in_budget_order(of, (now, until), limit, order)
    }

    async fn renew(&self, leases: &[Lease], until: Timestamp) -> Result<Vec<JobId>, StoreError> {
        let mut queue = self.queue();
        let lost = leases.iter().filter(|lease| !queue.index.renew(lease, until));
        Ok(lost.map(|lease| lease.job).collect())
    }

    async fn commit(&self, lease: &Lease, job: &Job, hold: Hold) -> Result<(), StoreError> {
        let paid = self.queue().commit(lease, job, hold)?;
        // Rows come first: the log of purchases must not know what the rows may forget.
        if must_be_durable(job) || !paid.is_none() {
            self.barrier.durable().await?;
        }
        if !paid.is_none()
            && let Err(error) = self.journal.paid(&paid.new, &paid.renamed)
        {
            tracing::warn!(job = job.id.0, %error, "a line of the log of purchases is missing");
        }
        Ok(())
    }

    async fn set_scheduling(&self, policies: SchedulingPolicies) -> Result<(), StoreError> {
        self.queue().index.set_scheduling(policies);
        Ok(())
    }

    async fn next_due(&self, kinds: &[StageKind], of: GroupFilter<'_>) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.queue().index.next_due(kinds, of))
    }

    async fn due_after(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.queue().index.due_after(kinds, of, now))
    }

    async fn job_awaiting(&self, transcription: &TranscriptionId) -> Result<Option<JobId>, StoreError> {
        Ok(self.queue().index.waits_for(transcription))
    }

    async fn poll_now(&self, transcription: &TranscriptionId, now: Timestamp) -> Result<bool, StoreError> {
        self.queue().poll_now(transcription, now)
    }
}

impl Queue {
    fn claim(
        &mut self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        mut limit: ClaimLimit,
    ) -> Result<Vec<Claimed>, StoreError> {
        let mut claimed = Vec::new();
        while claimed.len() < limit.all {
            let Some(held) = self.index.claim(kinds, of, now, until, limit.backlog > 0) else { break };
            claimed.push(self.claimed(held, &mut limit)?);
        }
        Ok(claimed)
    }

    fn claim_in_budget_order(
        &mut self,
        of: GroupFilter<'_>,
        (now, until): (Timestamp, Timestamp),
        mut limit: ClaimLimit,
        order: &BudgetOrder<'_>,
    ) -> Result<OrderedClaims, StoreError> {
        let mut ordered = OrderedClaims::default();
        while ordered.claimed.len() < limit.all {
            let held = match self.index.claim_in_line(of, (now, until), limit.backlog > 0, order) {
                NextInLine::Claimed(held) => held,
                NextInLine::Waits => {
                    ordered.waits_for_others = true;
                    break;
                }
                NextInLine::None => break,
            };
            ordered.claimed.push(self.claimed(held, &mut limit)?);
        }
        Ok(ordered)
    }

    /// Returns the job that is held by this fence, and counts it against the limit of the backlog.
    fn claimed(&self, (id, fence): (JobId, u64), limit: &mut ClaimLimit) -> Result<Claimed, StoreError> {
        let job = self.load(id)?;
        limit.backlog = limit.backlog.saturating_sub(usize::from(self.index.is_backlog(&job)));
        Ok(Claimed { lease: Lease::of(&job, fence), job })
    }

    /// Returns the job as it is, if this lease may change it.
    pub(super) fn guarded(&self, lease: &Lease) -> Result<Job, StoreError> {
        if !self.index.holds(lease) {
            return Err(StoreError::LeaseLost(lease.job));
        }
        let job = self.load(lease.job)?;
        if lease.has_seen(&job) { Ok(job) } else { Err(StoreError::Superseded(lease.job)) }
    }

    fn commit(&mut self, lease: &Lease, job: &Job, hold: Hold) -> Result<Paid, StoreError> {
        if lease.job != job.id {
            return Err(StoreError::LeaseLost(lease.job));
        }
        let old = self.guarded(lease)?;
        let job = &self.hinted(&old, job);
        self.settle_purchase(&old, job)?;
        let paid = self.put(Some(&old), job)?;
        if hold == Hold::Release {
            self.index.release(job.id);
        }
        self.wake_followers(job)?;
        Ok(paid)
    }

    /// Keeps a hint that came while the job was being polled: the commit of that poll does not undo it.
    fn hinted(&mut self, old: &Job, new: &Job) -> Job {
        let mut job = Job { bumped: old.bumped, ..new.clone() };
        let hint = self.index.take_hint(job.id);
        if let (Some(hint), Some(due)) = (hint, job.due)
            && old.stage == job.stage
        {
            job.due = Some(due.min(hint));
        }
        job
    }

    fn poll_now(&mut self, transcription: &TranscriptionId, now: Timestamp) -> Result<bool, StoreError> {
        match self.index.waits_for(transcription) {
            Some(id) => self.bring_forward(id, now).map(|()| true),
            None => Ok(false),
        }
    }
}

/// Whether the next effect depends on this commit ("Durability" in the head of the contract).
fn must_be_durable(job: &Job) -> bool {
    match job.stage.kind() {
        StageKind::Fetched => !job.pending_outputs.is_empty(),
        kind => is_durable_at(kind),
    }
}
