//! What scribed knows of a path.

use super::status::ScanStatus;
use crate::control::media_address::MediaAddress;
use crate::domain::job::Job;
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::pause::Pause;
use serde::{Deserialize, Serialize};

/// What the queue knows of a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownName {
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
    pub path: MediaAddress,
    #[serde(rename = "verdict")]
    pub role: PathRole,
    /// The reason for the role, or a remark in addition to the job; empty if the job says everything.
    pub words: String,
    /// What happens next; empty if the job says it.
    pub next: String,
    /// The source whose folder the path is below.
    pub source: Option<SourceName>,
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
