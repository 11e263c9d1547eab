//! The requests to the queue and their answers. They are the same whether a daemon carries them out or the command
//! itself.

use crate::control::media_address::MediaAddress;
use crate::domain::budget::{Account, BudgetLimit, Period};
use crate::domain::count::agree;
use crate::domain::health::{LongWaits, QueueFacts};
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{Hash, JobId, ServiceName, SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::pause::{Pause, PauseScope, Pauses};
use crate::domain::remote_url::RemoteUrl;
use crate::domain::scan_slots::MissedSlots;
use crate::domain::scheduling::{Lane, is_bought};
use crate::domain::stage::StageKind;
use crate::domain::token::PurchaseKey;
use crate::domain::turnaround::UsualDuration;
use crate::pipeline::engine::LearnedLimits;
use crate::pipeline::stages::write::rerender::RenderedJob;
use crate::store::contract::{HistoryEntry, JobCounts, RenderingCount, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A request to the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlRequest {
    /// Returns the status of the queue. Answered by [`ControlAnswer::Status`].
    Status,
    /// Returns the health of the queue, for monitoring. Answered by [`ControlAnswer::Health`].
    Health,
    /// Finds the jobs that have made no progress for longer than this, in milliseconds. Answered by
    /// [`ControlAnswer::LongWaits`].
    LongWaits {
        /// The longest time that is not reported.
        longest: u64,
    },
    /// Counts what jobs wait for, in pieces. Answered by [`ControlAnswer::Waiting`].
    Waiting {
        /// Only jobs with a number above this.
        after: Option<JobId>,
    },
    /// Returns jobs in the order of their numbers, page by page. Answered by [`ControlAnswer::Jobs`].
    Jobs(Selection),
    /// Returns one job and its history. Answered by [`ControlAnswer::Shown`].
    Show {
        /// The job.
        job: JobSelector,
    },
    /// Explains a path. Answered by [`ControlAnswer::Explained`].
    Explain {
        /// The path.
        path: MediaAddress,
    },
    /// Returns what the queue knows of these names. Answered by [`ControlAnswer::LookedUp`].
    LookUp {
        /// The names; at most [`MAX_LOOKUP_NAMES`].
        keys: Vec<JobKey>,
        /// The sizes of their files, in the same order. Empty if [`KnownName::alike`] is not needed.
        #[serde(default)]
        sizes: Vec<u64>,
    },
    /// Returns whether each of these was bought already. Answered by [`ControlAnswer::Bought`].
    Bought {
        /// The purchase keys; at most [`MAX_LOOKUP_NAMES`].
        orders: Vec<PurchaseKey>,
    },
    /// Adds a file, whatever the patterns of its source say. Answered by [`ControlAnswer::Added`].
    Add {
        /// The path of the file.
        path: MediaAddress,
    },
    /// Adds an address that the service fetches. Answered by [`ControlAnswer::Added`].
    AddUrl(UrlOrder),
    /// Continues a job now. Answered by [`ControlAnswer::Retried`].
    Retry {
        /// The job.
        job: JobSelector,
        /// The person accepts that the job may be paid for twice.
        pay_again: bool,
        /// Make a new purchase, with the current settings and sidecars.
        #[serde(default)]
        fresh: bool,
    },
    /// Moves a job to the front of the queue. Answered by [`ControlAnswer::Bumped`].
    Bump {
        /// The job.
        job: JobSelector,
    },
    /// Acknowledges a job that failed, is incomplete or is suspect. Answered by [`ControlAnswer::Acknowledged`].
    Acknowledge {
        /// The job.
        job: JobSelector,
    },
    /// Cancels a job. Answered by [`ControlAnswer::Cancelled`].
    Cancel {
        /// The job.
        job: JobSelector,
    },
    /// Cancels a job and deletes its transcription at the service. Answered by [`ControlAnswer::Deleted`].
    Delete {
        /// The job.
        job: JobSelector,
    },
    /// Sums what was spent, in pieces. Answered by [`ControlAnswer::Cost`].
    Cost(CostQuery),
    /// Returns the pauses. Answered by [`ControlAnswer::Paused`].
    Paused,
    /// Pauses new uploads and submissions. Answered by [`ControlAnswer::Paused`].
    Pause {
        /// Everything, or one source.
        whose: PauseScope,
        /// The length of the pause in milliseconds; `None` means until a resume.
        millis: Option<u64>,
    },
    /// Confirms that the queue knows every purchase at a service, so that its list need not be scanned. Answered by
    /// [`ControlAnswer::Trusted`].
    Trust {
        /// The service.
        service: ServiceName,
    },
    /// Forgets jobs that have ended, in pieces. Answered by [`ControlAnswer::Forgotten`].
    Forget(ForgetQuery),
    /// Verifies the outputs of written jobs, in pieces. Answered by [`ControlAnswer::Verified`].
    Verify(VerifyQuery),
    /// Renders the outputs of written jobs again, in pieces. Answered by [`ControlAnswer::Rendered`].
    Render(RenderQuery),
    /// Accepts a file as the text of a recording's job. Answered by [`ControlAnswer::Accepted`].
    Accept(AcceptQuery),
    /// Makes the daemon read its configuration again. Answered by [`ControlAnswer::Reloaded`].
    Reload,
    /// Ends a pause. Answered by [`ControlAnswer::Paused`].
    Resume {
        /// Everything, or one source.
        whose: PauseScope,
    },
}

/// The request to add an address that the service fetches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlOrder {
    /// The address of the recording.
    pub url: RemoteUrl,
    /// The source for the job; `None` means the only one with a folder.
    pub source: Option<SourceName>,
    /// The folder for the outputs. `None` means the one of an earlier request, else the source's output folder.
    pub outputs: Option<MediaAddress>,
    /// The expected billed audio in milliseconds (duration × channels), never 0; `None` if the person did not give it.
    pub billed: Option<u64>,
}

/// The maximum number of names in one [`ControlRequest::LookUp`], so that memory use does not grow with the number of
/// files.
pub const MAX_LOOKUP_NAMES: usize = 256;

/// How a command names a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobSelector {
    /// By its number.
    Number(JobId),
    /// By the path or address of its recording.
    Path(MediaAddress),
    /// By an argument that may be a name or a path.
    Typed {
        /// The argument byte for byte: a name as `scribed jobs` shows it, or a path below the folder of a source.
        typed: RelPath,
        /// The argument as a path from the current folder of the command.
        place: MediaAddress,
    },
}

/// A selection of jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Only jobs at these stages; empty means all.
    pub stages: Vec<StageKind>,
    /// Only jobs of this source; `None` means all.
    pub source: Option<SourceName>,
    /// Only jobs with a fault of this kind, by its name; `None` means all.
    pub kind: Option<String>,
    /// Only jobs with a number above this.
    pub after: Option<JobId>,
    /// Only jobs that a row of a manifest, or a command, orders.
    #[serde(default)]
    pub ordered: bool,
    /// Only jobs that nobody has acknowledged.
    #[serde(default)]
    pub unacknowledged: bool,
    /// Only jobs that are incomplete.
    #[serde(default)]
    pub incomplete: bool,
    /// Only jobs whose results a check warns of, and that nobody has acknowledged.
    #[serde(default)]
    pub suspect: bool,
    /// Only forgotten jobs, which are otherwise left out.
    #[serde(default)]
    pub forgotten: bool,
    /// Only jobs with edited outputs. Their files are looked at.
    #[serde(default)]
    pub edited: bool,
    /// Only jobs of the rows of this manifest; `None` means all.
    #[serde(default)]
    pub manifest: Option<RelPath>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlAnswer {
    /// See [`ControlRequest::Status`].
    Status(Box<QueueStatus>),
    /// See [`ControlRequest::Health`].
    Health(Box<QueueFacts>),
    /// See [`ControlRequest::LongWaits`]; `None` if there is no such job.
    LongWaits(Option<LongWaits>),
    /// See [`ControlRequest::Waiting`].
    Waiting(Waiting),
    /// See [`ControlRequest::Jobs`].
    Jobs(JobPage),
    /// See [`ControlRequest::Show`].
    Shown(Box<Shown>),
    /// See [`ControlRequest::Explain`].
    Explained(Box<Explained>),
    /// See [`ControlRequest::LookUp`]; in the order of the names.
    LookedUp(Vec<KnownName>),
    /// See [`ControlRequest::Bought`]; in the same order.
    Bought(Vec<bool>),
    /// See [`ControlRequest::Add`].
    Added(Box<Added>),
    /// See [`ControlRequest::Retry`].
    Retried(Retried),
    /// See [`ControlRequest::Bump`].
    Bumped(Box<Job>),
    /// See [`ControlRequest::Acknowledge`].
    Acknowledged(Box<Job>),
    /// See [`ControlRequest::Cancel`].
    Cancelled(Box<Job>),
    /// See [`ControlRequest::Delete`].
    Deleted(Box<Deleted>),
    /// See [`ControlRequest::Cost`].
    Cost(CostPiece),
    /// What is paused now.
    Paused(Pauses),
    /// See [`ControlRequest::Trust`].
    Trusted,
    /// See [`ControlRequest::Forget`].
    Forgotten(ForgetPiece),
    /// See [`ControlRequest::Verify`].
    Verified(VerifyPiece),
    /// See [`ControlRequest::Render`].
    Rendered(RenderPiece),
    /// See [`ControlRequest::Accept`].
    Accepted(Box<AcceptedAnswer>),
    /// See [`ControlRequest::Reload`]: messages about what was applied.
    Reloaded(Vec<String>),
}

/// The parameters of [`ControlRequest::Forget`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetQuery {
    /// The jobs to forget.
    pub which: Forgettable,
    /// Only report what would be forgotten; change nothing.
    pub dry_run: bool,
}

/// Which jobs are to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forgettable {
    /// This job.
    One(JobSelector),
    /// All ended jobs whose files are gone.
    Vanished {
        /// Only of this source.
        source: Option<SourceName>,
        /// Only jobs that ended at least so many milliseconds ago.
        older_than: u64,
        /// Only jobs with a number above this.
        after: Option<JobId>,
    },
}

/// A piece of the answer to [`ControlRequest::Forget`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ForgetPiece {
    /// The jobs that were forgotten, or would be.
    pub forgotten: Vec<Job>,
    /// Jobs that were not forgotten though their files are not found, each with the reason.
    pub kept: Vec<(Job, String)>,
    /// Sources whose folders could not be looked at, each with the reason.
    pub unseen: BTreeMap<SourceName, String>,
    /// The number of jobs whose files were looked for.
    pub looked: u64,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// The parameters of [`ControlRequest::Verify`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyQuery {
    /// Only this job.
    pub job: Option<JobSelector>,
    /// Only jobs of this source.
    pub source: Option<SourceName>,
    /// Write missing outputs again.
    pub repair: bool,
    /// Only jobs with a number above this.
    pub after: Option<JobId>,
}

/// A piece of the answer to [`ControlRequest::Verify`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VerifyPiece {
    /// The verified jobs, in the order of their numbers.
    pub jobs: Vec<VerifiedJob>,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// The result of verifying a job's outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedJob {
    /// The job.
    pub job: JobId,
    /// Its recording.
    pub key: JobKey,
    /// The outputs; empty if the recording and all outputs are gone, or if the outputs could not be verified.
    pub outputs: Vec<VerifiedOutput>,
    /// Why the outputs could not be verified or restored.
    #[serde(default)]
    pub problem: Option<String>,
    /// Neither the recording nor any of its outputs exists: it was deleted, or moved with them.
    #[serde(default)]
    pub is_gone: bool,
}

/// The result of verifying an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedOutput {
    /// Its whole path.
    pub path: RelPath,
    /// Its state.
    pub state: OutputState,
}

/// The state of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputState {
    /// The output is as it was written.
    Unchanged,
    /// The content has changed since scribed wrote it. scribed does not change it.
    Edited,
    /// The output was missing and was written again.
    Restored,
    /// The output does not exist.
    Missing,
    /// The output cannot be read.
    Unreadable,
}

impl OutputState {
    /// Returns the name in `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Edited => "edited",
            Self::Restored => "restored",
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
        }
    }
}

/// The parameters of [`ControlRequest::Render`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderQuery {
    /// Only this job.
    pub job: Option<JobSelector>,
    /// Only jobs of this source.
    pub source: Option<SourceName>,
    /// Only recordings whose paths below their source's folder match one of these patterns; empty: all.
    pub only: Vec<String>,
    /// Change nothing, and return what would be done.
    pub dry_run: bool,
    /// Remove unedited files that are no outputs any more.
    pub prune: bool,
    /// Write missing outputs again.
    pub restore: bool,
    /// The hash of each source's settings for outputs, as the command has read them.
    pub settings: BTreeMap<SourceName, Hash>,
    /// Only jobs with a number above this.
    pub after: Option<JobId>,
}

/// A piece of the answer to [`ControlRequest::Render`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RenderPiece {
    /// The jobs of which there is something to tell, in the order of their numbers.
    pub jobs: Vec<RenderedJob>,
    /// The number of jobs whose files all stay as they are.
    pub unchanged: u64,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// The parameters of [`ControlRequest::Accept`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptQuery {
    /// The file.
    pub path: MediaAddress,
    /// The job that the file is the text of; `None`: the file's name tells it.
    pub job: Option<JobSelector>,
    /// Take the acceptance back.
    pub undo: bool,
    /// The user who accepts.
    pub by: String,
}

/// The answer to [`ControlRequest::Accept`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AcceptedAnswer {
    /// The job as it is now.
    pub job: Job,
    /// Whether the recording would have been transcribed otherwise.
    pub is_instead_of_purchase: bool,
    /// What the text lacks, as `12 of 80 words have no recognised time`.
    pub note: Option<String>,
}

/// The parameters of [`ControlRequest::Cost`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostQuery {
    /// How the sums are grouped.
    pub by: By,
    /// The time zone of days and months.
    pub timezone: String,
    /// Only purchases at this time or later.
    pub since: Option<Timestamp>,
    /// Only purchases before this time.
    pub before: Option<Timestamp>,
    /// Only jobs with a number above this.
    pub after: Option<JobId>,
}

/// What sums of costs are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Where the recordings come from.
    Source,
    /// The day on which it was bought.
    Day,
    /// The month.
    Month,
    /// Where it was bought.
    Service,
    /// The parameters' name in `jobs.toml`.
    Template,
    /// One recording.
    Job,
}

impl By {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Day => "day",
            Self::Month => "month",
            Self::Service => "service",
            Self::Template => "template",
            Self::Job => "job",
        }
    }
}

/// A piece of the answer to [`ControlRequest::Cost`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostPiece {
    /// Sums over the jobs of this piece. A key may come again in another piece.
    pub lines: Vec<CostLine>,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// What was spent for one key at one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostLine {
    /// The key of the group, as [`By`] says.
    pub key: String,
    /// The service of the purchases.
    pub service: ServiceName,
    /// The recording, for [`By::Job`].
    pub job: Option<JobKey>,
    /// The sum.
    pub sum: CostSum,
}

/// A sum of charges. Amounts are milliseconds of billed audio: duration × channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostSum {
    /// The number of bought transcriptions.
    pub purchases: u64,
    /// Their cost as far as it is known: the billed amount, or until that is known the reserved one.
    pub spent: u64,
    /// Reserved for what is not bought yet.
    pub reserved: u64,
    /// The number of purchases and reservations of unknown cost.
    pub unknown: u64,
    /// The number of jobs that cost nothing, because a duplicate was transcribed.
    pub shared: u64,
    /// The amount that was billed beyond the reservations.
    pub excess: u64,
}

impl CostSum {
    /// Adds another sum to this one.
    pub fn add(&mut self, other: &Self) {
        self.purchases += other.purchases;
        self.spent = self.spent.saturating_add(other.spent);
        self.reserved = self.reserved.saturating_add(other.reserved);
        self.unknown += other.unknown;
        self.shared += other.shared;
        self.excess = self.excess.saturating_add(other.excess);
    }
}

/// The use of a budget. Amounts are milliseconds of billed audio.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetUse {
    /// The source of the budget; `None` for the budget of all sources.
    pub source: Option<SourceName>,
    /// The period of the budget.
    pub period: Period,
    /// The size of the budget.
    pub allowed: u64,
    /// The amount that is spent or reserved.
    pub used: u64,
    /// The part of `used` that is only reserved.
    #[serde(default)]
    pub reserved: u64,
    /// The part of `used` that was found in a service's list and that no job has.
    #[serde(default)]
    pub unclaimed: u64,
    /// The part of `used` by which bills were higher than their reservations.
    #[serde(default)]
    pub excess: u64,
    /// When the next period begins; `None` for a budget that does not reset by itself.
    pub until: Option<Timestamp>,
}

impl From<Account> for BudgetUse {
    fn from(account: Account) -> Self {
        let (used, until) = (account.used(), account.limit.resets_at());
        let Account { limit: BudgetLimit { source, period, allowed, .. }, reserved, unclaimed, excess, .. } = account;
        Self { source, period, allowed, used, reserved, unclaimed, excess, until }
    }
}

impl BudgetUse {
    /// Returns the amount that is spent.
    pub fn spent(&self) -> u64 {
        self.used.saturating_sub(self.reserved)
    }

    /// Returns the amount that is neither spent nor reserved.
    pub fn left(&self) -> u64 {
        self.allowed.saturating_sub(self.used)
    }

    /// Says why more is spent or reserved than the budget allows; `None` if it is not, apart from transcriptions that no
    /// job has.
    pub fn describe_overrun(&self) -> Option<&'static str> {
        let own = self.used.saturating_sub(self.unclaimed);
        if own <= self.allowed {
            return None;
        }
        Some(match (own.saturating_sub(self.excess) > self.allowed, self.excess) {
            (true, 0) => "the budget is lower than what was spent or reserved already",
            (true, _) => {
                "the budget is lower than what was reserved already, and the service billed more than was reserved"
            }
            (false, _) => "the service billed more than was reserved",
        })
    }
}

/// The status of the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// The number of written jobs by what they were rendered with.
    #[serde(default)]
    pub renderings: Vec<RenderingCount>,
    /// The number of jobs by stage.
    pub jobs: BTreeMap<StageKind, u64>,
    /// The number of all jobs.
    pub total: u64,
    /// The number of failed jobs that nobody has acknowledged.
    #[serde(default)]
    pub unhandled_failures: u64,
    /// The number of incomplete jobs that nobody has acknowledged.
    #[serde(default)]
    pub unhandled_incomplete: u64,
    /// The number of jobs that count against the services' limits of running transcriptions.
    pub running: u64,
    /// The number of submitted jobs that are stuck or wait for a person.
    pub waiting_for_a_person: u64,
    /// The number of incomplete jobs.
    #[serde(default)]
    pub incomplete: u64,
    /// The number of incomplete jobs that lack nothing that was requested: speech was not understood.
    #[serde(default)]
    pub not_understood: u64,
    /// The number of these that nobody has acknowledged.
    #[serde(default)]
    pub unhandled_not_understood: u64,
    /// The number of jobs with warnings of the check of their results that nobody has acknowledged.
    #[serde(default)]
    pub with_warnings: u64,
    /// The pauses of uploads and submissions.
    pub pauses: Pauses,
    /// The daemon or pass, if one answers.
    pub daemon: Option<DaemonStatus>,
    /// Sources whose folders are not available: nothing of them changes.
    #[serde(default)]
    pub frozen: Vec<AwaySourceStatus>,
    /// The manifests of the sources, as the daemon knows them.
    #[serde(default)]
    pub manifests: Vec<ManifestStatus>,
    /// The services of the configuration.
    #[serde(default)]
    pub services: Vec<ServiceStatus>,
    /// The use of every budget.
    #[serde(default)]
    pub budget: Vec<BudgetUse>,
    /// The sources with windows.
    #[serde(default)]
    pub windows: Vec<WindowStatus>,
    /// The number of jobs in each lane; empty if no source is in the backlog lane.
    #[serde(default)]
    pub lanes: Vec<LaneCounts>,
    /// The scan times of the sources, without those that only read manifests.
    #[serde(default)]
    pub scans: Vec<ScanStatus>,
    /// Sources that `jobs.toml` does not have and that have jobs that have not ended.
    #[serde(default)]
    pub removed: Vec<RemovedSource>,
}

/// A source that `jobs.toml` does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedSource {
    /// The source.
    pub source: SourceName,
    /// The number of its jobs that have not ended.
    pub open: u64,
    /// How many of these are bought, or may be.
    pub bought: u64,
}

impl RemovedSource {
    /// Returns a removed source with the counts of its jobs; `None` if all its jobs have ended.
    pub fn of(source: SourceName, counts: &JobCounts) -> Option<Self> {
        let open = counts.open();
        let bought = StageKind::ALL.into_iter().filter(|kind| is_bought(*kind) && !kind.is_end());
        let bought = bought.map(|kind| counts.of(kind)).sum();
        (open > 0).then_some(Self { source, open, bought })
    }

    /// Returns a message for people: what is wrong, and what to do.
    pub fn describe(&self) -> String {
        let Self { source, open, bought } = self;
        let (name, have) = (source.as_str(), agree(*open, "has", "have"));
        let paid = match bought {
            0 => String::new(),
            bought => {
                let are = agree(
                    *bought,
                    "is at the service or fetched; it keeps its result",
                    "are at the service or fetched; they keep their results",
                );
                format!(" ({bought} of them {are}, and nothing is bought again)")
            }
        };
        format!(
            "jobs.toml has no source {name:?} any more, but {open} of its jobs {have} not ended{paid}. \
             scribed continues when jobs.toml has a [[source]] with its folder again, under any name, at the next \
             start or `scribed reload`. Otherwise cancel what is left: `scribed jobs --source {name}` lists it, \
             `scribed cancel JOB` ends each job"
        )
    }
}

/// Jobs of a lane that have not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCounts {
    /// The lane.
    pub lane: Lane,
    /// The number of jobs that are not bought yet.
    pub waiting: u64,
    /// The number of jobs that are bought or may be: at the service, or about to be written.
    pub in_flight: u64,
}

/// When a source is scanned, by the wall clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanStatus {
    /// The source.
    pub source: SourceName,
    /// The setting `scan`, as written.
    pub schedule: String,
    /// What is done about missed slots; `None` if the source has no slots.
    pub missed: Option<MissedSlots>,
    /// When the last scan began.
    pub begun: Option<Timestamp>,
    /// When the last scan ended; `None` if it still runs or was interrupted.
    pub ended: Option<Timestamp>,
    /// When the next scan begins, if that is known.
    pub next: Option<Timestamp>,
    /// The same for people.
    pub words: String,
}

/// The state of a source's windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowStatus {
    /// The source.
    pub source: SourceName,
    /// Whether its jobs may be uploaded and submitted now.
    pub open: bool,
    /// When that changes; `None` if it never changes.
    pub until: Option<Timestamp>,
    /// The same for people.
    pub until_shown: String,
    /// Its windows, as written.
    pub windows: String,
}

/// The status of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Its name in `jobs.toml`.
    pub service: ServiceName,
    /// The number of its jobs that have not ended.
    pub open: u64,
    /// How many of these are in progress: at the service or being written, and not waiting for a person.
    #[serde(default)]
    pub on_their_way: u64,
    /// The number of jobs that count against its limit of running transcriptions.
    pub running: u64,
    /// Whether nothing may be bought there before its list was scanned.
    pub suspect: bool,
    /// Why nothing, or nothing new, is sent to it, as the daemon knows it.
    pub trouble: Option<String>,
    /// Why purchases wait for its list, and the progress of the list scan, as the daemon knows it.
    #[serde(default)]
    pub list_awaited: Option<String>,
    /// A warning about it that stops nothing, as the daemon knows it.
    #[serde(default)]
    pub notice: Option<String>,
    /// The limits that the daemon has learned.
    #[serde(rename = "bears")]
    pub learned_limits: Option<LearnedLimits>,
    /// The usual duration of a transcription, as the daemon has learned it.
    #[serde(default)]
    pub usual: Option<UsualDuration>,
}

/// A manifest, and counts of its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestStatus {
    /// The source of the manifest.
    pub source: SourceName,
    /// Its path below the source's folder.
    pub manifest: RelPath,
    /// Why the manifest cannot be used.
    pub problem: Option<String>,
    /// The number of rows; `None` before the manifest was first read.
    pub rows: Option<u64>,
    /// The number of wrong rows, which order nothing.
    pub wrong: u64,
    /// The number of rows that order what another row orders.
    pub repeated: u64,
    /// The number of rows whose files do not exist yet.
    pub awaited: u64,
}

/// A source whose folder is not available: nothing of it changes until the folder is back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaySourceStatus {
    /// The source.
    pub source: SourceName,
    /// Why the folder is not available.
    pub reason: String,
}

/// A daemon or a pass of `scribed once`, and what it has done since it was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// The process id.
    pub pid: u32,
    /// Whether it is a pass, which ends by itself.
    #[serde(default)]
    pub pass: bool,
    /// When it was started.
    pub since: Timestamp,
    /// Milliseconds since then, including suspension of the machine.
    pub millis: u64,
    /// Why nothing, or nothing new, is sent to the service.
    pub trouble: Option<String>,
    /// The number of jobs whose outputs were written.
    pub done: u64,
    /// How many of these are incomplete.
    #[serde(default)]
    pub incomplete: u64,
    /// The number of jobs that failed.
    pub failed: u64,
    /// The number of skipped jobs.
    pub skipped: u64,
    /// Milliseconds of audio in written jobs.
    pub audio_millis: u64,
    /// Bytes sent to the services, including repeated ones.
    pub sent_bytes: u64,
    /// Counts of callbacks, if callbacks are received.
    #[serde(default)]
    pub callbacks: Option<CallbackCounts>,
    /// Warnings about its services that stop nothing.
    #[serde(default)]
    pub notices: Vec<String>,
}

impl DaemonStatus {
    /// Returns "the daemon" or "a pass of `scribed once`".
    pub fn kind(&self) -> &'static str {
        if self.pass { "a pass of `scribed once`" } else { "the daemon" }
    }

    /// As [`DaemonStatus::kind`], with the process id.
    pub fn describe(&self) -> String {
        format!("{}, process {}", self.kind(), self.pid)
    }
}

/// Counts of callbacks and webhook calls since the daemon was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackCounts {
    /// Calls that were accepted.
    pub taken: u64,
    /// Calls to unknown addresses.
    pub strange: u64,
    /// Calls to known addresses that were refused.
    pub refused: u64,
    /// Whether callbacks are seen to arrive, so that the daemon polls less often.
    pub relied_on: bool,
}

/// A piece of the answer to [`ControlRequest::Waiting`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The number of jobs by what they wait for.
    pub waiting_for: BTreeMap<String, u64>,
    /// The reason of one example job, for groups of jobs that wait for a setting in jobs.toml.
    #[serde(default)]
    pub reasons: BTreeMap<String, String>,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// A page of jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobPage {
    /// With [`Selection::edited`], the paths of the edited outputs of each job.
    #[serde(default)]
    pub edited: BTreeMap<JobId, Vec<RelPath>>,
    /// The jobs in the order of their numbers; may be empty though more follow.
    pub jobs: Vec<Job>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<JobId>,
}

/// A job and its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The paths of edited outputs.
    #[serde(default)]
    pub edited: Vec<RelPath>,
    /// The job.
    pub job: Job,
    /// The history, oldest first.
    pub history: Vec<HistoryEntry>,
    /// The pause of its source, if it is paused now.
    #[serde(default)]
    pub paused: Option<Pause>,
    /// Whether its recording is gone, though its folder is available.
    #[serde(default)]
    pub is_gone: bool,
    /// The job for which its transcription was bought, if that is another one.
    #[serde(default)]
    pub origin: Option<Origin>,
    /// As in [`Explained::facts`].
    #[serde(default)]
    pub facts: Vec<JobFact>,
    /// The service that transcribes it.
    #[serde(default)]
    pub service: Option<ServiceName>,
    /// If its recording is gone: a job with the same transcription whose file exists, probably the same file under a
    /// new name.
    #[serde(default)]
    pub moved_to: Option<Origin>,
}

/// Another job with the same transcription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The number of the other job.
    pub job: JobId,
    /// Its recording.
    pub key: JobKey,
    /// Whether that recording is gone: then it is probably the same file under its old name.
    pub is_gone: bool,
}

/// What the queue knows of a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownName {
    /// Its job.
    pub job: Option<Job>,
    /// Whether the file is an output that scribed wrote for a job.
    pub is_output: bool,
    /// Whether another job has a file of this size, so that its content may have been bought.
    #[serde(default)]
    pub alike: bool,
}

/// The explanation of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// The path.
    pub path: MediaAddress,
    /// The role of the path.
    pub verdict: PathRole,
    /// The reason for the role, or a remark in addition to the job; empty if the job says everything.
    pub words: String,
    /// What happens next; empty if the job says it.
    pub next: String,
    /// The source whose folder the path is below.
    pub source: Option<SourceName>,
    /// Its job.
    pub job: Option<Box<Job>>,
    /// The pause of its source, if it is paused now.
    #[serde(default)]
    pub paused: Option<Pause>,
    /// Further facts; those that hold the file come first.
    #[serde(default)]
    pub facts: Vec<JobFact>,
    /// When its source is scanned.
    #[serde(default)]
    pub scan: Option<ScanStatus>,
}

/// A fact about a file beside its stage: what holds it, or how it continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFact {
    /// The kind of the fact.
    pub kind: FactKind,
    /// The fact as a clause that can stand after "because" or by itself.
    pub words: String,
    /// Whether it keeps the job from continuing.
    pub holds: bool,
    /// When it ends by itself; `None` if it does not, or if that is unknown.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// What a person can do about it.
    #[serde(default, rename = "mend")]
    pub fix: Option<String>,
}

/// Kinds of facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// No daemon runs.
    NoDaemon,
    /// The folder of its source is not available.
    Frozen,
    /// Its source, or everything, is paused.
    Pause,
    /// The window of its source is closed.
    Window,
    /// It waits for its turn.
    Turn,
    /// The file looks unfinished.
    Hold,
    /// Its cost does not fit into a budget.
    Budget,
    /// The service's limit of concurrent jobs is reached.
    Limit,
    /// The service does not answer, or refuses requests.
    Outage,
    /// The queue may not know every purchase at the service.
    Suspect,
    /// `jobs.toml` no longer has its service.
    Removed,
    /// The service sends a callback when the transcription ends.
    Callback,
    /// A sidecar has settings for it.
    Sidecar,
    /// A row of a manifest names it.
    Row,
    /// It waits for a person.
    Person,
    /// One of its outputs is edited.
    Edited,
}

/// What a path is to scribed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathRole {
    /// The path has a job.
    Job,
    /// The next scan adds the file, or traverses the folder.
    Taken,
    /// A rule ignores it.
    PassedOver,
    /// The path is below no source's folder.
    Outside,
    /// There is no file at the path.
    Missing,
    /// Rows of manifests name it, but scribed has not admitted one of them as it is now.
    Listed,
}

/// The answer to [`ControlRequest::Add`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Added {
    /// Its job.
    pub job: Job,
    /// Whether the job existed already, so that nothing was done.
    pub known: bool,
}

/// The answer to [`ControlRequest::Retry`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retried {
    /// The job as it is now.
    pub job: Box<Job>,
    /// What the retry costs.
    pub cost: RetryCost,
}

/// What a retry costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryCost {
    /// The retry pays for nothing again.
    Nothing,
    /// The retry buys another transcription, since the last one ended in an error or the person requests it.
    Another,
    /// The retry buys another transcription, unless the request is the one that was bought already.
    IfChanged,
    /// The retry buys another transcription though the earlier one may still succeed: the job may be paid for twice.
    PerhapsTwice,
}

/// The answer to [`ControlRequest::Delete`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    /// The job as it is now: cancelled or failed.
    pub job: Job,
    /// Whether the service has no transcription of the job any more.
    pub is_gone: bool,
    /// What happened to the transcription, and what to do if it still exists.
    pub words: String,
}

/// Why a request was not carried out, as a message for the person who made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum CommandRefusal {
    /// The request names something that does not exist, or is not valid.
    #[error("{0}")]
    Usage(String),
    /// The request does not make sense in the present state, or would do harm.
    #[error("{0}")]
    Declined(String),
    /// The queue failed.
    #[error("{0}")]
    Store(String),
}

impl From<StoreError> for CommandRefusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overrun_budget_names_its_cause() {
        let of = |allowed, used, unclaimed, excess| {
            let (source, period, until) = (None, Period::Day, None);
            BudgetUse { source, period, allowed, used, reserved: 0, unclaimed, excess, until }.describe_overrun()
        };
        let billed = "the service billed more than was reserved";
        assert_eq!(of(12, 12, 0, 5), None);
        assert_eq!(of(12, 20, 8, 0), None, "what was found in a list was never reserved");
        assert_eq!(of(12, 20, 0, 8), Some(billed));
        let lowered = of(12, 20, 0, 0).unwrap();
        assert!(lowered.contains("lower than") && !lowered.contains("billed"), "{lowered}");
        let both = of(12, 20, 0, 7).unwrap();
        assert!(both.contains("lower than") && both.contains(billed), "{both}");
    }
}
