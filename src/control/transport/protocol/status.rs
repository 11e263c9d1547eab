//! The status of the queue and of the daemon.

use super::cost::BudgetUse;
use crate::domain::count::agree;
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::pause::Pauses;
use crate::domain::scan_slots::MissedSlots;
use crate::domain::scheduling::{Lane, is_bought};
use crate::domain::stage::StageKind;
use crate::domain::turnaround::UsualDuration;
use crate::pipeline::engine::LearnedLimits;
use crate::store::contract::{JobCounts, RenderingCount};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    pub lane: Lane,
    /// The number of jobs that are not bought yet.
    pub waiting: u64,
    /// The number of jobs that are bought or may be: at the service, or about to be written.
    pub in_flight: u64,
}

/// When a source is scanned, by the wall clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanStatus {
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
    /// The number of wrong rows, which request nothing.
    pub wrong: u64,
    /// The number of rows that order what another row orders.
    pub repeated: u64,
    /// The number of rows whose files do not exist yet.
    pub awaited: u64,
}

/// A source whose folder is not available: nothing of it changes until the folder is back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaySourceStatus {
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

/// A piece of the answer to [`super::ControlRequest::Waiting`].
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
