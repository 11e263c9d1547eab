//! The door to the persistent queue, and what every store behind it promises.
//!
//! **Durability.** [`Store::commit`] returns after the job is safe from power loss when its stage
//! is one that the next effect stands on: the intent, the transcription's id, what is about to be
//! placed, "written". Every
//! other step is kept within half a second; losing it costs work, never money. Steps become durable
//! in the order in which they were committed.
//!
//! **Right to move.** A job is moved by whoever holds its newest lease. A lease ends at its time, or
//! with the process for stores of one process; a commit under an old fence changes nothing.
//!
//! **Suspicion.** A store that was created empty, set aside or repaired is suspect until
//! [`Store::trust`], for each service: it does not know what was bought there before it.

use crate::domain::budget::{Account, BudgetExceeded, BudgetLimit};
use crate::domain::charge::{Charge, Sighted};
use crate::domain::due_limit::LongestWaits;
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::manifest_row::{ManifestRow, RowSight};
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp, TranscriptionId};
use crate::domain::path::RelPath;
use crate::domain::pause::{Pause, PauseScope, Pauses};
use crate::domain::routing::RouteKey;
use crate::domain::scheduling::SchedulingPolicies;
use crate::domain::stage::{JobEvent, StageKind};
use crate::domain::token::PurchaseKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The right to move one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// Outdates every smaller one for this job.
    pub fence: u64,
}

/// A job and the right to move it.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The right.
    pub lease: Lease,
    /// As it stood when it was claimed.
    pub job: Job,
}

/// What [`Store::admit`] made of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// A new job.
    New(JobId),
    /// Nothing new.
    Known(JobId),
    /// Its job waited for this file, or for its folder, and is due now.
    Awaited(JobId),
    /// Its job had ended, and the file has changed since: back to the start.
    Reopened(JobId),
}

impl Admission {
    /// The job, new or known.
    pub fn id(self) -> JobId {
        let (Self::New(id) | Self::Known(id) | Self::Awaited(id) | Self::Reopened(id)) = self;
        id
    }

    /// Whether a job begins, for the first time or again.
    pub fn begins(self) -> bool {
        matches!(self, Self::New(_) | Self::Reopened(_))
    }

    /// Whether a job became due by it: the engine sleeps until the moment that it knew of.
    pub fn is_news(self) -> bool {
        !matches!(self, Self::Known(_))
    }
}

/// What [`Store::duplicate`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateCheck {
    /// The asking job buys.
    Owner,
    /// That one does.
    Follows(JobId),
}

/// Whether the lease outlives a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The same walk goes on.
    Keep,
    /// The job may be claimed again when it is due.
    Release,
}

/// A transcription that is known to have been bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bought {
    /// Its id.
    pub transcription: TranscriptionId,
    /// The round it was bought in.
    pub round: u32,
    /// The job that had it first, where this store knows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<JobId>,
    /// Where it is, as in [`crate::domain::stage::Intent::origin`]; `None`: an older release did not write it
    /// down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What the service's list said of its cost, where it was found again there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sighted: Option<Sighted>,
}

/// What was bought last at a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewestPurchase {
    /// When the newest intent was written: by our clock, and by the service's as last heard before.
    pub intent: Option<(Timestamp, Option<Timestamp>)>,
    /// The newest that is known to be accepted: as above, and its id.
    pub accepted: Option<(Timestamp, Option<Timestamp>, TranscriptionId)>,
}

/// Tells the groups whose jobs are meant.
pub type GroupFilter<'o> = &'o (dyn Fn(&RouteKey) -> bool + Send + Sync);

/// All of them.
pub const ALL: GroupFilter<'static> = &|_| true;

/// What decides whether the first job in line for an upload may reserve from its budgets now, or waits for others
/// that come before it ([`Store::claim_in_line`]).
pub struct BudgetLine<'l> {
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

/// What [`Store::claim_in_line`] came to.
#[derive(Debug, Default)]
pub struct InLine {
    /// Those that may reserve.
    pub claimed: Vec<Claimed>,
    /// Whether others would have been claimed, but for jobs that come before them.
    pub waits_for_others: bool,
}

/// How many jobs are claimed at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClaimLimit {
    /// Of all lanes together.
    pub all: usize,
    /// Of these, of the backlog. What a person has bumped is not of the backlog.
    pub backlog: usize,
}

/// What became of the jobs of a source that has another name now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Renamed {
    /// They have it.
    pub done: u64,
    /// Somebody held them.
    pub held: u64,
    /// The name is another job's.
    pub taken: u64,
}

/// How many jobs are where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobCounts {
    by_kind: [u64; StageKind::ALL.len()],
    /// Of those in flight, how many nothing moves by itself.
    pub parked_in_flight: u64,
    /// Of those that failed, how many nobody has acknowledged.
    pub unhandled_failures: u64,
    /// Of those that are incomplete, how many nobody has acknowledged.
    pub unhandled_incomplete: u64,
    /// Of those written, how many lack something that was requested or could not be read ([`Job::is_incomplete`]).
    pub incomplete: u64,
}

impl JobCounts {
    /// How many rest at this stage.
    pub fn of(&self, kind: StageKind) -> u64 {
        self.by_kind[kind as usize]
    }

    /// For stores.
    pub fn of_mut(&mut self, kind: StageKind) -> &mut u64 {
        &mut self.by_kind[kind as usize]
    }

    /// How many count against the service's limit of running transcriptions: a create may have
    /// left, and no person is asked.
    pub fn running(&self) -> u64 {
        (self.of(StageKind::Submitting) + self.of(StageKind::Submitted)).saturating_sub(self.parked_in_flight)
    }

    /// How many are at a service or being written, and no person is asked.
    pub fn on_their_way(&self) -> u64 {
        self.running() + self.of(StageKind::Fetched)
    }

    /// All jobs.
    pub fn total(&self) -> u64 {
        self.by_kind.iter().sum()
    }

    /// Those that have not ended.
    pub fn open(&self) -> u64 {
        StageKind::ALL.into_iter().filter(|kind| !kind.is_end()).map(|kind| self.of(kind)).sum()
    }

    /// These and those.
    pub fn add(&mut self, more: &Self) {
        self.by_kind.iter_mut().zip(more.by_kind).for_each(|(count, more)| *count += more);
        self.parked_in_flight += more.parked_in_flight;
        self.unhandled_failures += more.unhandled_failures;
        self.unhandled_incomplete += more.unhandled_incomplete;
        self.incomplete += more.incomplete;
    }
}

/// What [`Store::page`] is asked for.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// These stages; empty means all.
    pub stages: Vec<StageKind>,
    /// Only numbers above this.
    pub after: Option<JobId>,
    /// At most so many, at least 1.
    pub limit: usize,
}

/// Jobs that wait for the same.
#[derive(Debug, Clone)]
pub struct WaitingGroup {
    /// One of them.
    pub one: Job,
    /// How many there are.
    pub jobs: u64,
}

/// Jobs that are few among many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobSubset {
    /// They wait for their source's folder.
    Away,
    /// They cost something, or may have.
    WithCost,
    /// They are written and lack something that was requested or could not be read.
    Incomplete,
    /// A person had them forgotten.
    Forgotten,
}

/// One line of a job's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// When.
    pub at: Timestamp,
    /// Whose.
    pub job: JobId,
    /// Where it came to.
    pub stage: StageKind,
    /// In which round.
    pub round: u32,
    /// What went wrong or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The transcription, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcription: Option<TranscriptionId>,
}

/// Why a store could not do it. `Clone`, because one failed sync fails everyone who waited for it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Somebody else holds the job now, or the lease ran out and was given on. Drop the walk.
    #[error("the lease of job {0} was lost")]
    LeaseLost(JobId),
    /// Another process has it.
    #[error("{0}")]
    Locked(String),
    /// It cannot be read as what it should be.
    #[error("{0}")]
    Damaged(String),
    /// The disk is full or does not take writes. Nothing that was acknowledged is lost.
    #[error("{0}")]
    Unwritable(String),
}

/// The persistent queue.
#[async_trait::async_trait]
pub trait Store: Send + Sync {
    /// A file was seen. New ones become a job that is due at `due`; one whose job has ended and that
    /// looks different now starts over. One that waits for its folder to be back is due now: it has been
    /// seen. A crash before it is kept costs a rescan.
    async fn admit(&self, key: &JobKey, seen: Stamp, now: Timestamp, due: Timestamp) -> Result<Admission, StoreError>;

    /// Of files of a source that were seen, those of which admitting might make something. Of the others it
    /// would make nothing, and nothing of them is read: it is what a look through a million known files costs.
    async fn news(
        &self,
        _source: &SourceName,
        seen: Vec<(RelPath, Stamp)>,
    ) -> Result<Vec<(RelPath, Stamp)>, StoreError> {
        Ok(seen)
    }
    /// A row of a manifest was read. New ones become a job; one that orders otherwise now makes its job start
    /// over, where nothing is being bought for it, and is passed over until then. For the rest as
    /// [`Store::admit`]. One whose file is not there waits for it.
    async fn admit_row(
        &self,
        key: &JobKey,
        row: &ManifestRow,
        seen: RowSight,
        now: Timestamp,
        due: Timestamp,
    ) -> Result<Admission, StoreError>;

    /// Up to `n` jobs of these groups at these stages that are due and that nobody holds, held until `until`.
    /// The longest due come first, unless [`Store::arrange`] says otherwise.
    async fn claim(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        n: usize,
    ) -> Result<Vec<Claimed>, StoreError> {
        self.claim_within(kinds, of, now, until, ClaimLimit { all: n, backlog: n }).await
    }

    /// As [`Store::claim`], with less room for the backlog than for all.
    async fn claim_within(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        room: ClaimLimit,
    ) -> Result<Vec<Claimed>, StoreError>;

    /// Up to so many jobs of these groups that are ready for their upload, in line: a job is passed over while one
    /// that comes before it, and takes from the same budgets, has not reserved yet and may do so soon. It waits for
    /// those that were found about when it became ready itself, for some minutes at most; and for nobody where its
    /// budgets hold all of them whatever they turn out to cost.
    async fn claim_in_line(
        &self,
        of: GroupFilter<'_>,
        now: Timestamp,
        until: Timestamp,
        room: ClaimLimit,
        line: &BudgetLine<'_>,
    ) -> Result<InLine, StoreError>;

    /// The holder goes on without a reservation, because nobody knows yet what to reserve: those behind it in line
    /// do not wait for it any more.
    async fn goes_without_reserving(&self, lease: &Lease) -> Result<(), StoreError>;

    /// How the sources stand from now on: what a person has bumped comes first, then the live lane, then higher
    /// priorities; sources of one rank take turns; within a source its order counts. From the intent on the
    /// longest due come first within a lane. Not kept: said anew by each process, and whenever it changes.
    async fn arrange(&self, policies: SchedulingPolicies) -> Result<(), StoreError>;

    /// A person's order that a job comes before all others, the later order before the earlier one. `false` if
    /// it has ended, or there is no such job. Durable when it returns.
    async fn bump(&self, job: JobId, now: Timestamp) -> Result<bool, StoreError>;

    /// A person takes note of how a job ended, failed or written without something: it counts as handled until it
    /// changes. The history gets a line. `false` if it did not end so, or there is no such job. Durable when it returns.
    async fn acknowledge(&self, job: JobId, now: Timestamp) -> Result<bool, StoreError>;

    /// Holds longer.
    async fn renew(&self, lease: &Lease, until: Timestamp) -> Result<(), StoreError>;

    /// Puts the job as it now is. See the head of this file for what is durable when this returns.
    /// A crash before: the job is as it was. After: as committed. Its charges are not taken from `job`:
    /// they follow from the step ([`crate::domain::charge::carried`]); nor is its place in the line.
    async fn commit(&self, lease: &Lease, job: &Job, hold: Hold) -> Result<(), StoreError>;

    /// Claims an order for a job, unless another one has it: there is one owner of an order that is
    /// not yet bought. The claim lasts while the job is on its way, and over restarts from its
    /// intent on.
    async fn duplicate(&self, order: &PurchaseKey, job: JobId) -> Result<DuplicateCheck, StoreError>;

    /// Whether another job has a file of this size, or bought things are known whose content can
    /// only be compared by hash: then the content is worth hashing before an upload.
    async fn alike(&self, size: u64, job: JobId) -> Result<bool, StoreError>;

    /// Whether a job of this store has a charge for this transcription, whatever became of it.
    async fn has_paid(&self, transcription: &TranscriptionId) -> Result<bool, StoreError>;

    /// What is known to have been bought for this order.
    async fn bought(&self, order: &PurchaseKey) -> Result<Option<Bought>, StoreError>;

    /// Something bought was seen at the service. The highest round is kept. What it cost counts against the budgets
    /// of everything from now on, and against its source's when a job has it.
    async fn sight(&self, order: &PurchaseKey, bought: &Bought) -> Result<(), StoreError>;

    /// What was bought for this order was deleted at the service: a copy of the content would buy anew.
    /// Nothing, if another transcription is known by now. Durable when it returns.
    async fn forget(&self, order: &PurchaseKey, transcription: &TranscriptionId) -> Result<(), StoreError>;

    /// Whether nothing may be bought at this service before its list was walked.
    async fn suspect(&self, service: &ServiceName) -> Result<bool, StoreError>;

    /// Whether this queue may have known more of what was bought at a suspect service than it does now: it was repaired,
    /// is older than it was, or a folder was taken over. A new queue of new folders has lost nothing.
    async fn has_lost(&self, service: &ServiceName) -> Result<bool, StoreError>;

    /// All that can be found again at this service was sighted. Durable when it returns, with every
    /// sighting before.
    async fn trust(&self, service: &ServiceName) -> Result<(), StoreError>;

    /// What was bought last at this service, as far as this store knows. A store that was restored from an older copy
    /// does not know what was bought since.
    async fn newest_purchase(&self, service: &ServiceName) -> Result<NewestPurchase, StoreError>;

    /// Purchases may exist at this service that this store does not know: nothing is bought there before its list
    /// was scanned. Durable when it returns.
    async fn distrust(&self, service: &ServiceName) -> Result<(), StoreError>;

    /// The job that waits for this transcription; one of them, where more do.
    async fn waits_for(&self, transcription: &TranscriptionId) -> Result<Option<JobId>, StoreError>;

    /// Somebody says that this transcription has ended: the job that waits for it is due now.
    /// `false` if none waits.
    async fn hasten(&self, transcription: &TranscriptionId, now: Timestamp) -> Result<bool, StoreError>;

    /// A person's order: the job takes this event, whoever holds it; its holder's lease ends. `seen` is
    /// the job as the person's order was weighed. `false`, and nothing is changed, if it has moved since
    /// or its stage does not know the event. Durable when it returns.
    async fn overrule(&self, seen: &Job, event: JobEvent, now: Timestamp) -> Result<bool, StoreError>;

    /// A source has another name in `jobs.toml`: its jobs have that from now on. One of which the new name is another
    /// job's keeps the old one. One that somebody holds keeps it, too, unless `held` are renamed: then its holder's lease
    /// ends, as in [`Store::overrule`]. Durable when it returns; after a crash some have the new name.
    async fn rename_source(
        &self,
        old: &SourceName,
        new: &SourceName,
        held: bool,
        now: Timestamp,
    ) -> Result<Renamed, StoreError>;

    /// How many jobs of each source are where; of those that have any.
    async fn sources(&self) -> Result<BTreeMap<SourceName, JobCounts>, StoreError>;

    /// A person's order to try a failed or cancelled job again. `false` if it is neither.
    async fn revive(&self, job: JobId, now: Timestamp) -> Result<bool, StoreError> {
        match self.job(job).await? {
            Some(job) => self.overrule(&job, JobEvent::Revived, now).await,
            None => Ok(false),
        }
    }

    /// A person's order to look at a job that waits: it is due now. One that is held goes on as its file
    /// was seen: that is the person's word that it is whole. One that does not know where its transcription is
    /// ([`Job::asks_where`]) asks for it where its service is now. `false` if it has ended, or there is no such
    /// job.
    async fn look_again(&self, job: JobId, now: Timestamp) -> Result<bool, StoreError>;

    /// A person's orders that nothing new is uploaded or submitted.
    async fn pauses(&self) -> Result<Pauses, StoreError>;

    /// Gives an order, or with `None` takes it back. Durable when it returns what holds now.
    async fn set_pause(&self, whose: &PauseScope, pause: Option<Pause>) -> Result<Pauses, StoreError>;

    /// When the next of these is due, leases that run out included.
    async fn next_due(&self, kinds: &[StageKind], of: GroupFilter<'_>) -> Result<Option<Timestamp>, StoreError>;

    /// When the next of these is due that is not due yet, leases that run out included.
    async fn due_after(
        &self,
        kinds: &[StageKind],
        of: GroupFilter<'_>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError>;

    /// A job.
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError>;

    /// A job by its name.
    async fn find(&self, key: &JobKey) -> Result<Option<Job>, StoreError>;

    /// Whether this is the name of a file that was written for a job.
    async fn wrote(&self, key: &JobKey) -> Result<bool, StoreError>;

    /// The job that wrote outputs of this name, whatever their endings are.
    async fn writer(&self, key: &JobKey) -> Result<Option<Job>, StoreError>;

    /// Jobs by number, but for those that a person had forgotten.
    async fn page(&self, filter: &Filter) -> Result<Vec<Job>, StoreError>;

    /// The next of these after a number, by number; at most so many. Others are not read.
    async fn those(&self, those: JobSubset, after: Option<JobId>, most: usize) -> Result<Vec<Job>, StoreError>;

    /// How many jobs are where.
    async fn counts(&self) -> Result<JobCounts, StoreError> {
        self.counts_of(ALL).await
    }

    /// Jobs that have not ended, those together that are of one group, at one stage, and have one word for what
    /// they wait for ([`crate::domain::reason::waits_for`]): some dozens, whatever the number of jobs.
    async fn waiting(&self) -> Result<Vec<WaitingGroup>, StoreError>;

    /// How many jobs of these groups are where.
    async fn counts_of(&self, of: GroupFilter<'_>) -> Result<JobCounts, StoreError>;

    /// A job's history, oldest first.
    async fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError>;

    /// A run begins: what is reserved from now on counts in it, and what rests on what is configured (a budget,
    /// a key, the address of its service) is due now.
    async fn begin_run(&self, now: Timestamp) -> Result<(), StoreError>;

    /// Limits every stored moment that lies ahead to what its kind of wait allows from now (`domain/due_limit.rs`):
    /// it was written by a clock that was ahead. How many jobs that were. For whoever has just opened the queue.
    async fn limit_waits(&self, now: Timestamp, waits: &LongestWaits) -> Result<usize, StoreError>;

    /// The configuration is another one: what rests on it (as after [`Store::begin_run`]) is due now.
    async fn configured_anew(&self, now: Timestamp) -> Result<(), StoreError>;

    /// Puts by what this charge says, in place of what was put by for this job before, if that fits into all
    /// of these limits: looked at and written in one step, whoever else asks. If not, nothing is put by for
    /// the job any more. Durable with the job's next durable commit.
    async fn reserve(
        &self,
        lease: &Lease,
        charge: &Charge,
        wall: &[BudgetLimit],
    ) -> Result<Result<(), BudgetExceeded>, StoreError>;

    /// What is spent and what is reserved of each of these limits; in the same order.
    async fn accounts(&self, limits: &[BudgetLimit]) -> Result<Vec<Account>, StoreError>;

    /// How much of each of these limits is spent or reserved; in the same order.
    async fn used(&self, limits: &[BudgetLimit]) -> Result<Vec<u64>, StoreError> {
        Ok(self.accounts(limits).await?.iter().map(Account::used).collect())
    }

    /// What was found again at a service and no job of this queue has: when it was bought, and what it cost. It
    /// counts against the budgets of everything.
    async fn unclaimed(&self) -> Result<Vec<(Timestamp, u64)>, StoreError>;

    /// Returns when everything committed is durable.
    async fn settle(&self) -> Result<(), StoreError>;
}
