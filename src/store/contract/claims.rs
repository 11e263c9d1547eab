//! Leases: for the engine, which claims jobs, handles one stage of each and commits the result.

use super::{GroupFilter, StoreError};
use crate::domain::budget::BudgetLimit;
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName, Timestamp, TranscriptionId};
use crate::domain::scheduling::SchedulingPolicies;
use crate::domain::stage::StageKind;

/// The right to change one job from the stage at which its holder saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub job: JobId,
    /// A larger fence invalidates every smaller one of this job.
    pub fence: u64,
    /// The stage at which the holder saw the job last.
    pub stage: StageKind,
    pub purchase_number: u32,
}

impl Lease {
    /// Returns the right to change this job as it is now.
    pub fn of(job: &Job, fence: u64) -> Self {
        Self { job: job.id, fence, stage: job.stage.kind(), purchase_number: job.purchase_number }
    }

    /// Returns the same right for a holder that has seen the job as it is here: it committed the job with
    /// [`Hold::Keep`], or read it again.
    pub fn seeing(self, job: &Job) -> Self {
        Self { stage: job.stage.kind(), purchase_number: job.purchase_number, ..self }
    }

    /// Whether the job is still as its holder saw it.
    pub fn has_seen(&self, job: &Job) -> bool {
        (self.job, self.stage, self.purchase_number) == (job.id, job.stage.kind(), job.purchase_number)
    }
}

/// A job and the right to change it.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub lease: Lease,
    /// The job as it was when it was claimed.
    pub job: Job,
}

/// Whether the lease outlives a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The holder goes on with the job.
    Keep,
    /// The job may be claimed again when it is due.
    Release,
}

/// How many jobs are claimed at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClaimLimit {
    /// Jobs of all lanes together.
    pub all: usize,
    /// How many of them may be of the backlog. A bumped job is not of the backlog.
    pub backlog: usize,
}

impl ClaimLimit {
    /// Allows this many jobs of any lane.
    pub fn of(all: usize) -> Self {
        Self { all, backlog: all }
    }
}

/// What decides whether a job may reserve from its budgets now, or waits for others that come before it
/// ([`Claims::claim_in_budget_order`]).
pub struct BudgetOrder<'l> {
    /// The limits that a purchase for this source has to fit into. If there are none, its jobs wait for no other.
    pub limits: &'l (dyn Fn(&SourceName) -> Vec<BudgetLimit> + Send + Sync),
    /// Whether jobs of this source are not tried now, because enough of them did not fit.
    pub is_exhausted: &'l (dyn Fn(&SourceName) -> bool + Send + Sync),
    /// The groups whose jobs may reserve soon without anybody's action: no pause, no closed window, no folder that is
    /// away, no service that is out.
    pub is_coming: GroupFilter<'l>,
    /// The sources whose first scan is not over. They may have jobs that are not known yet and come first.
    pub being_scanned: &'l [SourceName],
}

/// Result of [`Claims::claim_in_budget_order`].
#[derive(Debug, Default)]
pub struct OrderedClaims {
    /// The jobs that may reserve.
    pub claimed: Vec<Claimed>,
    /// Whether more jobs would have been claimed if they did not wait for jobs that come before them.
    pub waits_for_others: bool,
}

/// Hands out leases and takes commits. See "Fencing" and "Durability" in the head of [`super`].
#[async_trait::async_trait]
pub trait Claims: Send + Sync {
    /// Claims up to `limit` due jobs of these groups at these stages that nobody holds, and holds them until `until`.
    /// No job is in two answers, whoever asks at the same time, unless its lease has ended in between. The jobs that
    /// have been due longest come first, unless [`Claims::set_scheduling`] says otherwise. Fewer than `limit` jobs
    /// mean that no more were free.
    async fn claim(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        limit: ClaimLimit,
    ) -> Result<Vec<Claimed>, StoreError>;

    /// As [`Claims::claim`], for jobs of these groups that are ready for their upload and take from a budget. A job
    /// is passed over while a job that comes before it, and takes from the same budgets, has not reserved yet and may
    /// do so soon. It waits only for jobs that were found about when it became ready itself, and for some minutes at
    /// most. It waits for no job if its budgets hold all of them, whatever they turn out to cost.
    async fn claim_in_budget_order(
        &self,
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        limit: ClaimLimit,
        order: &BudgetOrder<'_>,
    ) -> Result<OrderedClaims, StoreError>;

    /// Extends these leases until `until`, whatever stage their jobs are at. Returns the jobs whose lease is lost.
    async fn renew(&self, leases: &[Lease], until: Timestamp) -> Result<Vec<JobId>, StoreError>;

    /// Stores the job as it is now, if the lease is valid and the job is as the lease names it. After a crash before
    /// the commit the job is as it was; after the commit it is as committed. The charges and the place in the line
    /// are not taken from `job`: the charges follow from the step ([`crate::domain::charge::charges_after`]). A
    /// holder that keeps the lease commits the next step with [`Lease::seeing`].
    async fn commit(&self, lease: &Lease, job: &Job, hold: Hold) -> Result<(), StoreError>;

    /// Sets the scheduling of the sources. Bumped jobs come first, then the live lane, then higher priorities;
    /// sources of one rank take turns; within a source its own order counts. From the intent on, the jobs of a lane
    /// that have been due longest come first. The policies are not stored: each process sets them, and sets them
    /// again when they change.
    async fn set_scheduling(&self, policies: SchedulingPolicies) -> Result<(), StoreError>;

    /// Returns when the next job of these is due or its lease ends.
    async fn next_due(&self, kinds: &[StageKind], of: GroupFilter<'_>) -> Result<Option<Timestamp>, StoreError>;

    /// Returns when the next job of these becomes due that is not due yet, or its lease ends.
    async fn due_after(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError>;

    /// Returns the job that waits for this transcription; one of them, if there are several.
    async fn job_awaiting(&self, transcription: &TranscriptionId) -> Result<Option<JobId>, StoreError>;

    /// Makes the job that waits for this transcription due now, since somebody says that the transcription has ended.
    /// If the job is held, the hint counts after its holder's commit. Returns `false` if no job waits.
    async fn poll_now(&self, transcription: &TranscriptionId, now: Timestamp) -> Result<bool, StoreError>;
}
