//! The requests, and which jobs they concern.

use super::adopt::AdoptQuery;
use super::browse::{BrowseFilter, BrowseQuery};
use super::cost::CostQuery;
use super::edit::{EditAction, EditQuery};
use super::erase::EraseQuery;
use super::forget::ForgetQuery;
use super::render::{AcceptQuery, RenderQuery};
use super::search::SearchQuery;
use super::verify::VerifyQuery;
use crate::control::media_address::MediaAddress;
use crate::domain::fault::FaultKind;
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::pause::PauseScope;
use crate::domain::remote_url::RemoteUrl;
use crate::domain::stage::StageKind;
use crate::domain::token::PurchaseKey;
use serde::{Deserialize, Serialize};

/// A request to the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlRequest {
    /// Returns the status of the queue. Answered by [`super::ControlAnswer::Status`].
    Status,
    /// Returns the configuration that is in use, for commands on other machines. Answered by
    /// [`super::ControlAnswer::Configuration`].
    Configuration,
    /// Returns the health of the queue, for monitoring. Answered by [`super::ControlAnswer::Health`].
    Health,
    /// Finds the jobs that have made no progress for longer than this, in milliseconds. Answered by
    /// [`super::ControlAnswer::LongWaits`].
    LongWaits {
        /// The longest time that is not reported.
        longest: u64,
    },
    /// Counts what jobs wait for, in pieces. Answered by [`super::ControlAnswer::Waiting`].
    Waiting {
        /// Only jobs with a number above this.
        after: Option<JobId>,
    },
    /// Returns jobs in the order of their numbers, page by page. Answered by [`super::ControlAnswer::Jobs`].
    Jobs(Selection),
    /// Returns a page of jobs in any order, from a table in memory. Answered by [`super::ControlAnswer::Browsed`].
    Browse(BrowseQuery),
    /// Returns the numbers of all jobs that match. Answered by [`super::ControlAnswer::Matching`].
    Matching(BrowseFilter),
    /// Returns figures of the last days. Answered by [`super::ControlAnswer::Activity`].
    Activity {
        /// The name of the time zone whose days are meant.
        timezone: String,
    },
    /// Returns one job and its history. Answered by [`super::ControlAnswer::Shown`].
    Show { job: JobSelector },
    /// Explains a path. Answered by [`super::ControlAnswer::Explained`].
    Explain { path: MediaAddress },
    /// Returns what the queue knows of these names. Answered by [`super::ControlAnswer::LookedUp`].
    LookUp {
        /// The names; at most [`MAX_LOOKUP_NAMES`].
        keys: Vec<JobKey>,
        /// The sizes of their files, in the same order. Empty if [`super::KnownName::alike`] is not needed.
        #[serde(default)]
        sizes: Vec<u64>,
    },
    /// Returns whether each of these was bought already. Answered by [`super::ControlAnswer::Bought`].
    Bought {
        /// The purchase keys; at most [`MAX_LOOKUP_NAMES`].
        #[serde(rename = "orders")]
        purchase_keys: Vec<PurchaseKey>,
    },
    /// Adds a file, whatever the patterns of its source say. Answered by [`super::ControlAnswer::Added`].
    Add {
        /// The path of the file.
        path: MediaAddress,
    },
    /// Adds an address that the service fetches. Answered by [`super::ControlAnswer::Added`].
    AddUrl(AddUrlRequest),
    /// Continues a job now. Answered by [`super::ControlAnswer::Retried`].
    Retry {
        job: JobSelector,
        /// The person accepts that the job may be paid for twice.
        pay_again: bool,
        /// Make a new purchase, with the current settings and sidecars.
        #[serde(default)]
        fresh: bool,
    },
    /// Moves a job to the front of the queue. Answered by [`super::ControlAnswer::Bumped`].
    Bump { job: JobSelector },
    /// Acknowledges a job that failed, is incomplete or is suspect. Answered by [`super::ControlAnswer::Acknowledged`].
    Acknowledge { job: JobSelector },
    /// Cancels a job. Answered by [`super::ControlAnswer::Cancelled`].
    Cancel { job: JobSelector },
    /// Cancels a job and deletes its transcription at the service. Answered by [`super::ControlAnswer::Deleted`].
    Delete { job: JobSelector },
    /// Erases what was made of a recording. Answered by [`super::ControlAnswer::Erased`].
    Erase(EraseQuery),
    /// Sums what was spent, in pieces. Answered by [`super::ControlAnswer::Cost`].
    Cost(CostQuery),
    /// Finds passages of transcripts. Answered by [`super::ControlAnswer::Found`].
    Search(SearchQuery),
    /// Returns the state of the search index. Answered by [`super::ControlAnswer::SearchIndex`].
    SearchIndex {
        /// Build it again.
        rebuild: bool,
    },
    /// Makes the digest of a period. Answered by [`super::ControlAnswer::Digest`].
    Digest { from: Timestamp, to: Timestamp },
    /// Copies the rows of the queue into a folder of the state directory. Answered by
    /// [`super::ControlAnswer::RowsCopied`].
    CopyRows {
        /// The name of the folder, which the command has made.
        folder: String,
    },
    /// Returns the pauses. Answered by [`super::ControlAnswer::Paused`].
    Paused,
    /// Pauses new uploads and submissions. Answered by [`super::ControlAnswer::Paused`].
    Pause {
        /// Everything, or one source.
        whose: PauseScope,
        /// The length of the pause in milliseconds; `None` means until a resume.
        millis: Option<u64>,
    },
    /// Confirms that the queue knows every purchase at a service, so that its list need not be scanned. Answered by
    /// [`super::ControlAnswer::Trusted`].
    Trust { service: ServiceName },
    /// Takes a transcription of the service's list as the purchase of a job, by a person's decision. Answered by
    /// [`super::ControlAnswer::Adopted`].
    Adopt(AdoptQuery),
    /// Forgets jobs that have ended, in pieces. Answered by [`super::ControlAnswer::Forgotten`].
    Forget(ForgetQuery),
    /// Verifies the outputs of written jobs, in pieces. Answered by [`super::ControlAnswer::Verified`].
    Verify(VerifyQuery),
    /// Renders the outputs of written jobs again, in pieces. Answered by [`super::ControlAnswer::Rendered`].
    Render(RenderQuery),
    /// Accepts a file as the text of a recording's job. Answered by [`super::ControlAnswer::Accepted`].
    Accept(AcceptQuery),
    /// Reads or changes the text of a job in the editor of the web page. Answered by [`super::ControlAnswer::Edited`].
    Edit(EditQuery),
    /// Makes the daemon read its configuration again. Answered by [`super::ControlAnswer::Reloaded`].
    Reload,
    /// Ends a pause. Answered by [`super::ControlAnswer::Paused`].
    Resume {
        /// Everything, or one source.
        whose: PauseScope,
    },
}

impl ControlRequest {
    /// Returns the name of a command that changes one job; `None` for other requests.
    pub fn command_on_job(&self) -> Option<&'static str> {
        Some(match self {
            Self::Add { .. } | Self::AddUrl(_) => "add",
            Self::Retry { .. } => "retry",
            Self::Bump { .. } => "bump",
            Self::Acknowledge { .. } => "acknowledge",
            Self::Cancel { .. } => "cancel",
            Self::Delete { .. } => "cancel --delete",
            Self::Erase(query) if !query.dry_run => "erase",
            Self::Forget(query) if !query.dry_run => "forget",
            Self::Adopt(_) => "reconcile --adopt-by",
            Self::Accept(_) => "accept",
            Self::Edit(EditQuery { action: EditAction::Accept { .. }, .. }) => "accept",
            _ => return None,
        })
    }
}

/// The request to add an address that the service fetches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddUrlRequest {
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
    /// Only jobs that reached their stage at this time or later; `None` means all.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// Only jobs that reached their stage before this time; `None` means all.
    #[serde(default)]
    pub before: Option<Timestamp>,
}

impl Selection {
    /// Selects the jobs that wait because their answers may be those of other recordings.
    pub fn of_mismatch(source: Option<SourceName>) -> Self {
        let kind = Some(FaultKind::Mismatch.name().to_owned());
        Self { stages: vec![StageKind::Submitted], source, kind, ..Self::default() }
    }

    /// Whether the job reached its stage within the times of the selection.
    pub fn has_time_of(&self, job: &Job) -> bool {
        self.since.is_none_or(|since| since <= job.since) && self.before.is_none_or(|before| job.since < before)
    }
}
