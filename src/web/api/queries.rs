//! What requests say, and the objects of answers that only the HTTP API has.

use crate::control::job_object::JobObject;
use crate::control::transport::protocol::{By, Explained, JobFact, Shown};
use crate::store::contract::HistoryEntry;
use crate::wire::timestamps;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The most jobs of a page.
pub const MOST_JOBS: u32 = 1_000;

fn default_limit() -> u32 {
    100
}

/// Which jobs are listed.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobsQuery {
    /// Stages, separated by commas.
    #[serde(default)]
    pub stage: Option<String>,
    #[serde(default)]
    pub source: Option<String>,
    /// The kind of their fault.
    #[serde(default)]
    pub fault: Option<String>,
    /// Only incomplete jobs.
    #[serde(default)]
    pub incomplete: bool,
    /// Only jobs whose results a check warns of.
    #[serde(default)]
    pub suspect: bool,
    /// Only jobs that nobody has acknowledged.
    #[serde(default)]
    pub unacknowledged: bool,
    /// Only jobs with a number above this: `next` of the page before.
    #[serde(default)]
    pub after: Option<u64>,
    /// The most jobs of the page.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: u32,
}

/// A page of jobs, in the order of their numbers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobsPage {
    pub jobs: Vec<JobObject>,
    /// The `after` of the next page; null after the last. A page may be short, or empty, though more follow.
    pub next: Option<u64>,
}

/// A job with its history and what holds it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobDetail {
    pub job: JobObject,
    /// Oldest first.
    pub history: Vec<HistoryLine>,
    pub facts: Vec<FactLine>,
    /// Whether its recording is gone, though its folder is available.
    pub is_gone: bool,
    /// When its kept result was removed for its age (`keep_results`); null if it is kept.
    pub result_removed: Option<String>,
}

/// A step of a job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistoryLine {
    pub at: String,
    pub stage: String,
    pub round: u32,
    pub words: Option<String>,
    pub transcription_id: Option<String>,
}

/// What holds a recording, or how it continues.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FactLine {
    pub kind: Value,
    pub words: String,
    /// Whether it keeps the job from continuing.
    pub holds: bool,
    pub until: Option<String>,
    /// What a person can do about it.
    pub fix: Option<String>,
}

/// Which path is explained.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainQuery {
    /// An absolute path on the machine of scribed, or an address.
    #[schemars(length(min = 1))]
    pub path: String,
}

/// What scribed knows of a path.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExplainedPath {
    pub path: String,
    /// `job`, `taken`, `passed_over`, `outside`, `missing` or `listed`.
    pub role: Value,
    pub words: String,
    pub next: String,
    pub source: Option<String>,
    pub job: Option<JobObject>,
    pub facts: Vec<FactLine>,
}

/// What sums of costs are over.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostParams {
    #[serde(default = "by_source")]
    pub by: By,
    /// Only purchases at this time or later, as in RFC 3339.
    #[serde(default)]
    pub since: Option<String>,
    /// Only purchases before this time.
    #[serde(default)]
    pub before: Option<String>,
}

fn by_source() -> By {
    By::Source
}

/// What was spent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CostList {
    pub lines: Vec<CostObject>,
}

/// What was spent for one group at one service. Amounts are seconds of billed audio: duration × channels.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CostObject {
    /// The source, day, month, service, template, or number of the job.
    pub key: String,
    pub service: String,
    pub bought: u64,
    pub spent_seconds: f64,
    pub reserved_seconds: f64,
    /// Billed beyond the reservations.
    pub excess_seconds: f64,
    /// Purchases and reservations of unknown cost.
    pub unknown: u64,
    /// Jobs that cost nothing, because a duplicate was transcribed.
    pub shared: u64,
}

/// A recording to add.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddBody {
    /// An absolute path on the machine of scribed.
    #[serde(default)]
    pub path: Option<String>,
    /// Or an address that the service fetches.
    #[serde(default)]
    pub url: Option<String>,
    /// The source for the job of an address; the only one with a folder if it is not given.
    #[serde(default)]
    pub source: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryBody {
    /// Build the request again from the current settings.
    #[serde(default)]
    pub fresh: bool,
    /// Accept that the recording may be paid for twice.
    #[serde(default)]
    pub pay_again: bool,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelBody {
    /// Also delete its transcription at the service.
    #[serde(default)]
    pub delete: bool,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetBody {
    /// Only report what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EraseBody {
    /// Erase; without it the answer says what would be erased.
    #[serde(default)]
    pub yes: bool,
    /// Ask no service: its transcriptions stay there.
    #[serde(default)]
    pub here_only: bool,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyBody {
    /// Write missing outputs again.
    #[serde(default)]
    pub repair: bool,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenderBody {
    /// Change nothing: the answer says what would be done.
    #[serde(default)]
    pub dry_run: bool,
    /// Remove unedited files that are no outputs any more.
    #[serde(default)]
    pub prune: bool,
    /// Write missing outputs again.
    #[serde(default)]
    pub restore: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptBody {
    /// The file, by its absolute path on the machine of scribed.
    pub path: String,
    /// The job that the file is the text of; without it the name of the file tells it.
    #[serde(default)]
    pub job: Option<u64>,
    /// Take the acceptance back.
    #[serde(default)]
    pub undo: bool,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseBody {
    /// One source; everything if it is not given.
    #[serde(default)]
    pub source: Option<String>,
    /// The length of the pause; until `resume` if it is not given.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub seconds: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeQuery {
    /// One source; everything if it is not given.
    #[serde(default)]
    pub source: Option<String>,
}

/// No parameters.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoBody {}

/// What a command has done.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Done {
    /// The job as it is now.
    pub job: JobObject,
    /// What happened, where the job alone does not say it: what the command costs, what was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// What is paused.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PauseList {
    /// Whether everything is paused.
    pub paused: Value,
    pub pauses: Value,
}

/// What a reload has applied.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReloadList {
    pub applied: Vec<String>,
}

impl JobDetail {
    pub fn of(shown: &Shown) -> Self {
        Self {
            job: JobObject::of(&shown.job),
            history: shown.history.iter().map(HistoryLine::of).collect(),
            facts: shown.facts.iter().map(FactLine::of).collect(),
            is_gone: shown.is_gone,
            result_removed: shown.result_removed.map(timestamps::format),
        }
    }
}

impl HistoryLine {
    pub fn of(entry: &HistoryEntry) -> Self {
        Self {
            at: timestamps::format(entry.at),
            stage: entry.stage.name().to_owned(),
            round: entry.purchase_number,
            words: entry.words.clone(),
            transcription_id: entry.transcription.as_ref().map(ToString::to_string),
        }
    }
}

impl FactLine {
    fn of(fact: &JobFact) -> Self {
        Self {
            kind: json!(fact.kind),
            words: fact.words.clone(),
            holds: fact.holds,
            until: fact.until.map(timestamps::format),
            fix: fact.fix.clone(),
        }
    }
}

impl ExplainedPath {
    pub fn of(explained: &Explained) -> Self {
        Self {
            path: explained.path.to_string(),
            role: json!(explained.role),
            words: explained.words.clone(),
            next: explained.next.clone(),
            source: explained.source.as_ref().map(ToString::to_string),
            job: explained.job.as_deref().map(JobObject::of),
            facts: explained.facts.iter().map(FactLine::of).collect(),
        }
    }
}
