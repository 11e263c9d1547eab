//! Leases: for the engine, which claims jobs, handles one stage of each and commits what came of it.

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
    /// Outdates every smaller one for this job.
    pub fence: u64,
    /// The stage at which the holder saw the job last.
    pub stage: StageKind,
    pub round: u32,
}

impl Lease {
    /// The right to change this job as it now is.
    pub fn of(job: &Job, fence: u64) -> Self {
        Self { job: job.id, fence, stage: job.stage.kind(), round: job.round }
    }

    /// The same right, of a holder that has seen the job so: it committed it with [`Hold::Keep`], or read it again.
    pub fn seeing(self, job: &Job) -> Self {
        Self { stage: job.stage.kind(), round: job.round, ..self }
    }

    /// Whether the job is as its holder saw it.
    pub fn has_seen(&self, job: &Job) -> bool {
        (self.job, self.stage, self.round) == (job.id, job.stage.kind(), job.round)
    }
}

/// A job and the right to change it.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub lease: Lease,
    /// As it stood when it was claimed.
    pub job: Job,
}

/// Whether the lease outlives a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Its holder goes on with the job.
    Keep,
    /// The job may be claimed again when it is due.
    Release,
}

/// How many jobs are claimed at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClaimLimit {
    /// Of all lanes together.
    pub all: usize,
    /// Of these, of the backlog. What a person has bumped is not of the backlog.
    pub backlog: usize,
}

impl ClaimLimit {
    /// So many, of whichever lane.
    pub fn of(all: usize) -> Self {
        Self { all, backlog: all }
    }
}

/// What decides whether the first job in line for an upload may reserve from its budgets now, or waits for others
/// that come before it ([`Claims::claim_in_budget_order`]).
pub struct BudgetOrder<'l> {
    /// The limits that a purchase for this source has to fit into; none: its jobs wait for nobody.
    pub limits: &'l (dyn Fn(&SourceName) -> Vec<BudgetLimit> + Send + Sync),
    /// Whether nothing of this source is looked at now, because enough of it did not fit.
    pub is_exhausted: &'l (dyn Fn(&SourceName) -> bool + Send + Sync),
    /// The groups whose jobs may come to their reservation by themselves and soon: no pause, no closed window, no
    /// folder that is away, no service that is out.
    pub is_coming: GroupFilter<'l>,
    /// The sources of which the first scan is not over: jobs of them that nobody knows yet may come first.
    pub being_scanned: &'l [SourceName],
}

/// What [`Claims::claim_in_budget_order`] came to.
#[derive(Debug, Default)]
pub struct OrderedClaims {
    /// Those that may reserve.
    pub claimed: Vec<Claimed>,
    /// Whether others would have been claimed, but for jobs that come before them.
    pub waits_for_others: bool,
}

/// Hands out jobs and takes them back. See "Fencing" and "Durability" in the head of [`super`].
#[async_trait::async_trait]
pub trait Claims: Send + Sync {
    /// Up to `limit` jobs of these groups at these stages that are due and that nobody holds, held until `until`. No
    /// job is in two answers, whoever asks at the same time, unless its lease has ended in between. The longest due
    /// come first, unless [`Claims::set_scheduling`] says otherwise. Fewer than `limit`: no more were free.
    async fn claim(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        limit: ClaimLimit,
    ) -> Result<Vec<Claimed>, StoreError>;

    /// As [`Claims::claim`], for jobs of these groups that are ready for their upload and take from a budget: a job is
    /// passed over while one that comes before it, and takes from the same budgets, has not reserved yet and may do so
    /// soon. It waits for those that were found about when it became ready itself, for some minutes at most; and for
    /// nobody where its budgets hold all of them whatever they turn out to cost.
    async fn claim_in_budget_order(
        &self,
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        limit: ClaimLimit,
        order: &BudgetOrder<'_>,
    ) -> Result<OrderedClaims, StoreError>;

    /// Holds these longer, whatever stage they are at. Answers which of the jobs are no longer held by their lease.
    async fn renew(&self, leases: &[Lease], until: Timestamp) -> Result<Vec<JobId>, StoreError>;

    /// Puts the job as it now is, if the lease counts and the job is as the lease names it. A crash before: the job is
    /// as it was. After: as committed. Its charges are not taken from `job`: they follow from the step
    /// ([`crate::domain::charge::charges_after`]); nor is its place in the line. Whoever keeps the lease commits the next
    /// step with [`Lease::seeing`].
    async fn commit(&self, lease: &Lease, job: &Job, hold: Hold) -> Result<(), StoreError>;

    /// How the sources stand from now on: what a person has bumped comes first, then the live lane, then higher
    /// priorities; sources of one rank take turns; within a source its order counts. From the intent on the
    /// longest due come first within a lane. Not kept: said anew by each process, and whenever it changes.
    async fn set_scheduling(&self, policies: SchedulingPolicies) -> Result<(), StoreError>;

    /// When the next of these is due, leases that run out included.
    async fn next_due(&self, kinds: &[StageKind], of: GroupFilter<'_>) -> Result<Option<Timestamp>, StoreError>;

    /// When the next of these is due that is not due yet, leases that run out included.
    async fn due_after(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError>;

    /// The job that waits for this transcription; one of them, where more do.
    async fn job_awaiting(&self, transcription: &TranscriptionId) -> Result<Option<JobId>, StoreError>;

    /// Somebody says that this transcription has ended: the job that waits for it is due now. A hint that comes while
    /// the job is held counts after the commit of its holder. `false` if no job waits.
    async fn poll_now(&self, transcription: &TranscriptionId, now: Timestamp) -> Result<bool, StoreError>;
}
