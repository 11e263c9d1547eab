//! What a person may ask of the queue, and the answers: the same whether a daemon carries it out or the
//! command itself.

use crate::control::media_address::MediaAddress;
use crate::domain::budget::{Account, BudgetLimit, Period};
use crate::domain::health::QueueFacts;
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::pause::{Pause, PauseScope, Pauses};
use crate::domain::remote_url::RemoteUrl;
use crate::domain::scan_slots::MissedSlots;
use crate::domain::scheduling::{Lane, is_bought};
use crate::domain::stage::StageKind;
use crate::domain::token::PurchaseKey;
use crate::domain::turnaround::UsualDuration;
use crate::pipeline::engine::LearnedLimits;
use crate::store::contract::{HistoryEntry, JobCounts, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlRequest {
    /// How it stands. Answered by [`ControlAnswer::Status`].
    Status,
    /// How the queue fares, for monitoring. Answered by [`ControlAnswer::Health`].
    Health,
    /// What waits for what, piece by piece. Answered by [`ControlAnswer::Waiting`].
    Waiting {
        /// Only jobs with a number above this.
        after: Option<JobId>,
    },
    /// Jobs by number, page by page. Answered by [`ControlAnswer::Jobs`].
    Jobs(Selection),
    /// One job and its history. Answered by [`ControlAnswer::Shown`].
    Show {
        /// Which.
        job: JobSelector,
    },
    /// What there is to say of a path. Answered by [`ControlAnswer::Explained`].
    Explain {
        /// Which.
        path: MediaAddress,
    },
    /// The jobs of these names. Answered by [`ControlAnswer::LookedUp`].
    LookUp {
        /// At most [`MAX_LOOKUP_NAMES`].
        keys: Vec<JobKey>,
        /// The sizes of their files, in the same order; empty where nobody asks for others of a size.
        #[serde(default)]
        sizes: Vec<u64>,
    },
    /// Whether these were bought already. Answered by [`ControlAnswer::Bought`].
    Bought {
        /// At most [`MAX_LOOKUP_NAMES`].
        orders: Vec<PurchaseKey>,
    },
    /// A file is taken, whatever the patterns say. Answered by [`ControlAnswer::Added`].
    Add {
        /// Where it lies.
        path: MediaAddress,
    },
    /// What lies elsewhere is taken. Answered by [`ControlAnswer::Added`].
    AddUrl(UrlOrder),
    /// A job goes on now. Answered by [`ControlAnswer::Retried`].
    Retry {
        /// Which.
        job: JobSelector,
        /// The person's word that it may be paid for a second time.
        pay_again: bool,
        /// With what is said of it now, in a new round.
        #[serde(default)]
        fresh: bool,
    },
    /// A job comes before all others. Answered by [`ControlAnswer::Bumped`].
    Bump {
        /// Which.
        job: JobSelector,
    },
    /// A person takes note of how a job ended. Answered by [`ControlAnswer::Acknowledged`].
    Acknowledge {
        /// Which.
        job: JobSelector,
    },
    /// A job is given up. Answered by [`ControlAnswer::Cancelled`].
    Cancel {
        /// Which.
        job: JobSelector,
    },
    /// A job is given up, and what was bought for it is deleted at the service. Answered by
    /// [`ControlAnswer::Deleted`].
    Delete {
        /// Which.
        job: JobSelector,
    },
    /// What was spent, piece by piece. Answered by [`ControlAnswer::Cost`].
    Cost(CostQuery),
    /// What is paused. Answered by [`ControlAnswer::Paused`].
    Paused,
    /// No new uploads and creates. Answered by [`ControlAnswer::Paused`].
    Pause {
        /// Of everything, or of a source.
        whose: PauseScope,
        /// For so many milliseconds; `None`: until it is taken back.
        millis: Option<u64>,
    },
    /// A person's word that the queue knows all that was bought at a service: its list need not be scanned. Answered
    /// by [`ControlAnswer::Trusted`].
    Trust {
        /// Which.
        service: ServiceName,
    },
    /// Jobs that have ended are forgotten, piece by piece. Answered by [`ControlAnswer::Forgotten`].
    Forget(ForgetQuery),
    /// The outputs of written jobs are looked at, piece by piece. Answered by [`ControlAnswer::Verified`].
    Verify(VerifyQuery),
    /// The daemon reads its configuration anew. Answered by [`ControlAnswer::Reloaded`].
    Reload,
    /// The end of a pause. Answered by [`ControlAnswer::Paused`].
    Resume {
        /// Of everything, or of a source.
        whose: PauseScope,
    },
}

/// What a person orders of audio that the service fetches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlOrder {
    /// Where it lies.
    pub url: RemoteUrl,
    /// Under which source; `None`: the only one there is.
    pub source: Option<SourceName>,
    /// Where its outputs go; `None`: where they went, else to the source's folder, or its `place`.
    pub outputs: Option<MediaAddress>,
    /// Milliseconds that will be billed for it as far as the person knows, never 0: duration × channels.
    pub billed: Option<u64>,
}

/// Names in one [`ControlRequest::LookUp`]: memory stays the same for a million.
pub const MAX_LOOKUP_NAMES: usize = 256;

/// A job as a person names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobSelector {
    /// By its number.
    Number(JobId),
    /// By its recording.
    Path(MediaAddress),
    /// By what a person typed.
    Typed {
        /// Byte for byte: as the lists of jobs show it, or below the folder of a source.
        typed: RelPath,
        /// What it is from the folder that the command was started in.
        place: MediaAddress,
    },
}

/// Which jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// At these stages; empty means all.
    pub stages: Vec<StageKind>,
    /// Of this source; `None` means all.
    pub source: Option<SourceName>,
    /// Whose fault is of this kind, by its name; `None` means all.
    pub kind: Option<String>,
    /// Only numbers above this.
    pub after: Option<JobId>,
    /// Only what the row of a manifest, or a command, orders.
    #[serde(default)]
    pub ordered: bool,
    /// Only what nobody has acknowledged.
    #[serde(default)]
    pub unacknowledged: bool,
    /// Only those that are written without a part that was requested.
    #[serde(default)]
    pub incomplete: bool,
    /// Instead of the others, those that a person had forgotten.
    #[serde(default)]
    pub forgotten: bool,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlAnswer {
    /// See [`ControlRequest::Status`].
    Status(Box<QueueStatus>),
    /// See [`ControlRequest::Health`].
    Health(Box<QueueFacts>),
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
    /// What became of the configuration, in words, one thing each.
    Reloaded(Vec<String>),
}

/// What [`ControlRequest::Forget`] asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetQuery {
    /// Which.
    pub which: Forgettable,
    /// What would be forgotten is told, and nothing is changed.
    pub dry_run: bool,
}

/// Which jobs are to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forgettable {
    /// This one.
    One(JobSelector),
    /// Those whose files are gone.
    Vanished {
        /// Only of this source.
        source: Option<SourceName>,
        /// Only those that ended so many milliseconds ago.
        older_than: u64,
        /// Only jobs with a number above this.
        after: Option<JobId>,
    },
}

/// A piece of what was forgotten, or would be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ForgetPiece {
    /// These were, or would be.
    pub forgotten: Vec<Job>,
    /// These were not, though their files are not found; why, in words.
    pub kept: Vec<(Job, String)>,
    /// Sources that could not be looked at; why, in words.
    pub unseen: BTreeMap<SourceName, String>,
    /// How many jobs were looked at.
    pub looked: u64,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// What [`ControlRequest::Verify`] asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyQuery {
    /// Only this job.
    pub job: Option<JobSelector>,
    /// Only jobs of this source.
    pub source: Option<SourceName>,
    /// Outputs that are missing are written again.
    pub repair: bool,
    /// Only jobs with a number above this.
    pub after: Option<JobId>,
}

/// A piece of what was found of outputs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VerifyPiece {
    /// Of each written job, in the order of their numbers.
    pub jobs: Vec<VerifiedJob>,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// What was found of a job's outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedJob {
    /// Which.
    pub job: JobId,
    /// Its recording.
    pub key: JobKey,
    /// Each output; none where the recording went and they went with it, or where nothing could be looked at.
    pub outputs: Vec<VerifiedOutput>,
    /// Why they could not be looked at, or not be restored, in words.
    #[serde(default)]
    pub problem: Option<String>,
    /// Neither the recording nor any of its outputs is there: it was deleted, or moved with them.
    #[serde(default)]
    pub is_gone: bool,
}

/// What was found of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedOutput {
    /// Its whole path.
    pub path: RelPath,
    /// How it is.
    pub state: OutputState,
}

/// How an output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputState {
    /// As it was written.
    Unchanged,
    /// Somebody has changed it; it is left alone.
    Edited,
    /// It was missing, and is there again.
    Restored,
    /// It is not there.
    Missing,
    /// It cannot be read.
    Unreadable,
}

impl OutputState {
    /// As in `--json`.
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

/// What [`ControlRequest::Cost`] asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostQuery {
    /// What the sums are over.
    pub by: By,
    /// Of the days and months.
    pub timezone: String,
    /// Only what was bought then or later.
    pub since: Option<Timestamp>,
    /// Only what was bought earlier.
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
    /// As on the command line.
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

/// A piece of what was spent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostPiece {
    /// Sums over the jobs of this piece; the same key may come again.
    pub lines: Vec<CostLine>,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// What was spent on one thing at one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostLine {
    /// Which, as [`By`] says.
    pub key: String,
    /// Where it was bought.
    pub service: ServiceName,
    /// The job, where it is one.
    pub job: Option<JobKey>,
    /// How much.
    pub sum: CostSum,
}

/// A sum of charges. Amounts are milliseconds of billed audio: duration × channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostSum {
    /// How many transcriptions were bought.
    pub purchases: u64,
    /// For these, as far as it is known: as billed, and until that is known as reserved.
    pub spent: u64,
    /// Put by for what is not bought yet.
    pub reserved: u64,
    /// How many nobody knows the cost of.
    pub unknown: u64,
    /// How many jobs cost nothing, because a copy was transcribed.
    pub shared: u64,
    /// How much more was billed than reserved.
    pub excess: u64,
}

impl CostSum {
    /// These and those.
    pub fn add(&mut self, more: &Self) {
        self.purchases += more.purchases;
        self.spent = self.spent.saturating_add(more.spent);
        self.reserved = self.reserved.saturating_add(more.reserved);
        self.unknown += more.unknown;
        self.shared += more.shared;
        self.excess = self.excess.saturating_add(more.excess);
    }
}

/// How much of a budget is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetUse {
    /// Of this source; `None`: of everything together.
    pub source: Option<SourceName>,
    /// What it is for.
    pub period: Period,
    /// How much, in milliseconds of billed audio.
    pub allowed: u64,
    /// How much of that is spent or reserved.
    pub used: u64,
    /// How much of what is used is reserved only.
    #[serde(default)]
    pub reserved: u64,
    /// How much of what is spent was found in a service's list, and no job has it.
    #[serde(default)]
    pub unclaimed: u64,
    /// When it begins anew; `None` for what does not by itself.
    pub until: Option<Timestamp>,
}

impl From<Account> for BudgetUse {
    fn from(account: Account) -> Self {
        let (used, until) = (account.used(), account.limit.resets_at());
        let Account { limit: BudgetLimit { source, period, allowed, .. }, reserved, unclaimed, .. } = account;
        Self { source, period, allowed, used, reserved, unclaimed, until }
    }
}

impl BudgetUse {
    /// How much is spent.
    pub fn spent(&self) -> u64 {
        self.used.saturating_sub(self.reserved)
    }

    /// How much is neither spent nor reserved.
    pub fn left(&self) -> u64 {
        self.allowed.saturating_sub(self.used)
    }
}

/// How it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// Jobs by stage.
    pub jobs: BTreeMap<StageKind, u64>,
    /// All of them.
    pub total: u64,
    /// Of those that failed, how many nobody has acknowledged.
    #[serde(default)]
    pub unhandled_failures: u64,
    /// Of those that are incomplete, how many nobody has acknowledged.
    #[serde(default)]
    pub unhandled_incomplete: u64,
    /// How many count against the service's limit of running transcriptions.
    pub running: u64,
    /// Of those in flight, how many nothing moves by itself.
    pub waiting_for_a_person: u64,
    /// Of those written, how many lack something that was requested.
    #[serde(default)]
    pub incomplete: u64,
    /// A person's orders that nothing new is uploaded or submitted.
    pub pauses: Pauses,
    /// The daemon, where one answers.
    pub daemon: Option<DaemonStatus>,
    /// Sources that are frozen: their folders are away.
    #[serde(default)]
    pub frozen: Vec<AwaySourceStatus>,
    /// The lists of the sources that are made of them, as the daemon knows them.
    #[serde(default)]
    pub manifests: Vec<ManifestStatus>,
    /// The services of the configuration.
    #[serde(default)]
    pub services: Vec<ServiceStatus>,
    /// How much of every budget is used.
    #[serde(default)]
    pub budget: Vec<BudgetUse>,
    /// The sources that may be sent at certain times only.
    #[serde(default)]
    pub windows: Vec<WindowStatus>,
    /// What is in each lane; empty where no source is in the backlog.
    #[serde(default)]
    pub lanes: Vec<LaneCounts>,
    /// When the sources are scanned that are no lists.
    #[serde(default)]
    pub scans: Vec<ScanStatus>,
    /// Sources that `jobs.toml` does not have, and of which jobs have not ended.
    #[serde(default)]
    pub removed: Vec<RemovedSource>,
}

/// A source that `jobs.toml` does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedSource {
    /// Which.
    pub source: SourceName,
    /// Its jobs that have not ended.
    pub open: u64,
    /// Of these, those that are bought, or may be.
    pub bought: u64,
}

impl RemovedSource {
    /// One of which so many jobs are where; `None` where all have ended.
    pub fn of(source: SourceName, counts: &JobCounts) -> Option<Self> {
        let open = counts.open();
        let bought = StageKind::ALL.into_iter().filter(|kind| is_bought(*kind) && !kind.is_end());
        let bought = bought.map(|kind| counts.of(kind)).sum();
        (open > 0).then_some(Self { source, open, bought })
    }

    /// For people: what is wrong, and what to do.
    pub fn describe(&self) -> String {
        let Self { source, open, bought } = self;
        let name = source.as_str();
        let paid = match bought {
            0 => String::new(),
            bought => format!(
                " ({bought} of them are at the service or fetched; they keep their results, and nothing is bought \
                 again)"
            ),
        };
        format!(
            "jobs.toml has no source {name:?} any more, but {open} of its jobs have not ended{paid}. They \
             continue when jobs.toml has a [[source]] with its folder again, under any name, at the next start or \
             `scribed reload`. Otherwise cancel them: `scribed jobs --source {name}` lists them, `scribed cancel \
             JOB` ends each"
        )
    }
}

/// Jobs of a lane that have not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCounts {
    /// Which.
    pub lane: Lane,
    /// How many are not bought yet.
    pub waiting: u64,
    /// How many are: at the service, or about to be written.
    pub in_flight: u64,
}

/// When a source is scanned. Moments are those of the wall clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanStatus {
    /// Which.
    pub source: SourceName,
    /// When, as written.
    pub schedule: String,
    /// What is done about slots that were missed; `None`: it has none.
    pub missed: Option<MissedSlots>,
    /// When the last scan was begun.
    pub begun: Option<Timestamp>,
    /// When it came to its end; `None`: it goes on, or was cut off.
    pub ended: Option<Timestamp>,
    /// When the next one begins, where that is known.
    pub next: Option<Timestamp>,
    /// All of it for people.
    pub words: String,
}

/// A source that may be sent at certain times only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowStatus {
    /// Which.
    pub source: SourceName,
    /// Whether it may be sent now.
    pub open: bool,
    /// When that changes; `None`: no more.
    pub until: Option<Timestamp>,
    /// The same for people.
    pub until_shown: String,
    /// Its windows, as written.
    pub windows: String,
}

/// How it stands with one service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Its name in `jobs.toml`.
    pub service: ServiceName,
    /// Jobs of its own that have not ended.
    pub open: u64,
    /// Of these, how many are at the service or being written, and wait for nobody.
    #[serde(default)]
    pub on_their_way: u64,
    /// How many count against its limit of running transcriptions.
    pub running: u64,
    /// Whether nothing may be bought there before its list was walked.
    pub suspect: bool,
    /// Why nothing, or nothing new, is sent to it; as the daemon knows it.
    pub trouble: Option<String>,
    /// Why purchases wait for its list, and how far the scan of it has come; as the daemon knows it.
    #[serde(default)]
    pub list_awaited: Option<String>,
    /// What should be known of it, though it stops nothing; as the daemon knows it.
    #[serde(default)]
    pub notice: Option<String>,
    /// What the daemon has found it to bear.
    #[serde(rename = "bears")]
    pub learned_limits: Option<LearnedLimits>,
    /// How long it takes, as the daemon has learned.
    #[serde(default)]
    pub usual: Option<UsualDuration>,
}

/// A list of recordings, and what came of its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestStatus {
    /// Of this source.
    pub source: SourceName,
    /// Below its folder.
    pub manifest: RelPath,
    /// Why nothing of it is taken, in words.
    pub problem: Option<String>,
    /// All rows; `None` before it was first gone through.
    pub rows: Option<u64>,
    /// Those that order nothing, for what is wrong with them.
    pub wrong: u64,
    /// Those that order what another row orders.
    pub repeated: u64,
    /// Those whose files are not there yet.
    pub awaited: u64,
}

/// A source of which nothing changes until its folder is back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaySourceStatus {
    /// Which.
    pub source: SourceName,
    /// Why, in words.
    pub reason: String,
}

/// A daemon or a pass of `scribed once`, and what it has done since it was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Its process.
    pub pid: u32,
    /// Whether it ends by itself, when nothing is left to be done.
    #[serde(default)]
    pub pass: bool,
    /// When it was started.
    pub since: Timestamp,
    /// Milliseconds since then, suspension included.
    pub millis: u64,
    /// Why nothing, or nothing new, is sent to the service.
    pub trouble: Option<String>,
    /// Outputs written.
    pub done: u64,
    /// Of these, how many lack something that was requested.
    #[serde(default)]
    pub incomplete: u64,
    /// Given up.
    pub failed: u64,
    /// Nothing to be done.
    pub skipped: u64,
    /// Milliseconds of audio in what is done.
    pub audio_millis: u64,
    /// Bytes given to the service, repeated ones included.
    pub sent_bytes: u64,
    /// What came in as callbacks, where they are received.
    #[serde(default)]
    pub callbacks: Option<CallbackCounts>,
    /// What should be known of its services, though it stops nothing.
    #[serde(default)]
    pub notices: Vec<String>,
}

impl DaemonStatus {
    /// Which of the two, in words.
    pub fn kind(&self) -> &'static str {
        if self.pass { "a pass of `scribed once`" } else { "the daemon" }
    }

    /// The same, and which process.
    pub fn describe(&self) -> String {
        format!("{}, process {}", self.kind(), self.pid)
    }
}

/// Callbacks and webhook calls since the daemon was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackCounts {
    /// Taken up.
    pub taken: u64,
    /// To addresses that are none of ours.
    pub strange: u64,
    /// To ours, but not taken.
    pub refused: u64,
    /// Whether they are seen to come, so that little is asked.
    pub relied_on: bool,
}

/// A piece of what waits for what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// How many wait for it, by what it is.
    pub waiting_for: BTreeMap<String, u64>,
    /// Why one of them waits, in words, where a setting in jobs.toml is what all of these wait for.
    #[serde(default)]
    pub reasons: BTreeMap<String, String>,
    /// Where the next piece begins; `None` after the last.
    pub next: Option<JobId>,
}

/// A page of jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobPage {
    /// By number; may be empty though more follow.
    pub jobs: Vec<Job>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<JobId>,
}

/// A job and its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The job.
    pub job: Job,
    /// Oldest first.
    pub history: Vec<HistoryEntry>,
    /// By which order nothing new of its source is uploaded or submitted now.
    #[serde(default)]
    pub paused: Option<Pause>,
    /// Whether its recording is not at its place any more, though its folder is there.
    #[serde(default)]
    pub is_gone: bool,
    /// The job whose transcription it shares.
    #[serde(default)]
    pub origin: Option<Origin>,
    /// As in [`Explained::facts`].
    #[serde(default)]
    pub facts: Vec<JobFact>,
    /// The service whose business it is.
    #[serde(default)]
    pub service: Option<ServiceName>,
    /// Where its recording is not at its place any more: the job of a file that is there and shares its
    /// transcription, likely the same file under its new name.
    #[serde(default)]
    pub moved_to: Option<Origin>,
}

/// Where a transcription comes from that was not bought for the job that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The job that had it first.
    pub job: JobId,
    /// Its recording.
    pub key: JobKey,
    /// Whether that is not at its place any more: then it is likely the same file under its old name.
    pub is_gone: bool,
}

/// What is known of a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownName {
    /// Its job.
    pub job: Option<Job>,
    /// Whether it is an output that was written for a job.
    pub is_output: bool,
    /// Whether another job has a file of this size, so that its content may have been bought.
    #[serde(default)]
    pub alike: bool,
}

/// What there is to say of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Which.
    pub path: MediaAddress,
    /// What it is to scribed.
    pub verdict: PathRole,
    /// Why, or what is remarkable beside its job; empty where its job says it all.
    pub words: String,
    /// What happens next; empty where its job says it.
    pub next: String,
    /// The source that it lies below.
    pub source: Option<SourceName>,
    /// Its job.
    pub job: Option<Box<Job>>,
    /// By which order nothing new of its source is uploaded or submitted now.
    #[serde(default)]
    pub paused: Option<Pause>,
    /// What is true of it beside that; what keeps it comes first.
    #[serde(default)]
    pub facts: Vec<JobFact>,
    /// When its source is scanned.
    #[serde(default)]
    pub scan: Option<ScanStatus>,
}

/// Something that is true of a file beside its stage: what keeps it, or how it goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFact {
    /// Of which kind.
    pub kind: FactKind,
    /// In words: a clause that stands after "because", or by itself.
    pub words: String,
    /// Whether it keeps the file from going on.
    pub holds: bool,
    /// When it ends by itself; `None`: not, or nobody knows.
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
    /// The folder of its source is away.
    Frozen,
    /// A person's order.
    Pause,
    /// Its source's window is shut.
    Window,
    /// Its place among the others.
    Turn,
    /// It looks unfinished.
    Hold,
    /// What it costs does not fit.
    Budget,
    /// The service does no more at once.
    Limit,
    /// The service is out, or refuses.
    Outage,
    /// The queue does not know what was bought.
    Suspect,
    /// Its service is not in `jobs.toml` any more.
    Removed,
    /// The service says when it is done.
    Callback,
    /// A file beside it says how it is transcribed.
    Sidecar,
    /// A row of a manifest names it.
    Row,
    /// A person is asked.
    Person,
}

/// What a path is to scribed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathRole {
    /// It has a job.
    Job,
    /// The next scan takes it, or looks through it.
    Taken,
    /// A rule passes it over.
    PassedOver,
    /// It lies below no source's folder.
    Outside,
    /// Nothing can be seen there.
    Missing,
    /// Rows of manifests name it, and no pass has taken one of them in as it is.
    Listed,
}

/// What came of [`ControlRequest::Add`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Added {
    /// Its job.
    pub job: Job,
    /// Whether there was nothing to do: it is taken already.
    pub known: bool,
}

/// What came of [`ControlRequest::Retry`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retried {
    /// The job as it is now.
    pub job: Box<Job>,
    /// What that costs.
    pub cost: RetryCost,
}

/// What a retry costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryCost {
    /// Nothing that was paid for is paid for again.
    Nothing,
    /// Another transcription in place of one that ended in error, or by a person's word.
    Another,
    /// Another transcription, unless what is asked for now is what was bought already.
    IfChanged,
    /// Another transcription, though the one before may have been accepted: it may be paid for twice.
    PerhapsTwice,
}

/// What came of [`ControlRequest::Delete`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    /// The job as it is now: given up.
    pub job: Job,
    /// Whether the service has nothing of it any more that was bought for it.
    pub is_gone: bool,
    /// What became of what was bought, and what to do where it is still there.
    pub words: String,
}

/// Why a request was not carried out. In words for the person who made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum CommandRefusal {
    /// It names what is not there.
    #[error("{0}")]
    Usage(String),
    /// It makes no sense as things stand, or would do harm.
    #[error("{0}")]
    Declined(String),
    /// The queue could not do it.
    #[error("{0}")]
    Store(String),
}

impl From<StoreError> for CommandRefusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}
