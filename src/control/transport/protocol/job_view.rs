//! Jobs as they are listed and shown.

use super::explain::JobFact;
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{JobId, ServiceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::pause::Pause;
use crate::pipeline::stages::write::rerender::Obstacle;
use crate::store::contract::HistoryEntry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of an output that is not the file that scribed wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedOutput {
    pub path: RelPath,
    pub change: OutputDifference,
}

/// What has the name of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputDifference {
    /// An edited file, which `scribed accept` makes the text of the job.
    EditedText,
    /// An edited file that cannot be accepted: another format, or a translation.
    Edited,
    NotAFile(Obstacle),
}

impl ChangedOutput {
    /// Whether it is a file.
    pub fn is_edited(&self) -> bool {
        !matches!(self.change, OutputDifference::NotAFile(_))
    }
}

/// A page of jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobPage {
    /// With [`super::Selection::edited`], the changed outputs of each job.
    #[serde(default)]
    pub changed: BTreeMap<JobId, Vec<ChangedOutput>>,
    /// The jobs in the order of their numbers; may be empty though more follow.
    pub jobs: Vec<Job>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<JobId>,
}

/// A job and its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    #[serde(default)]
    pub changed: Vec<ChangedOutput>,
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
    /// As in [`super::Explained::facts`].
    #[serde(default)]
    pub facts: Vec<JobFact>,
    /// The service that transcribes it.
    #[serde(default)]
    pub service: Option<ServiceName>,
    /// If its recording is gone: a job with the same transcription whose file exists, probably the same file under a
    /// new name.
    #[serde(default)]
    pub moved_to: Option<Origin>,
    /// When its kept result was removed for its age; `None` if it is kept.
    #[serde(default)]
    pub result_removed: Option<Timestamp>,
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
