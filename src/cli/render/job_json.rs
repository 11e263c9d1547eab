//! The representation of a job in `--json` and `--csv`.

use crate::control::job_object::{JobObject, fault};
use crate::control::transport::protocol::ChangedOutput;
use crate::domain::job::Job;
use crate::domain::names::TranscriptionId;
use crate::domain::reason::reason;
use crate::domain::review::Review;
use crate::wire::timestamps;
use serde_json::{Value, json};

/// Returns a job as JSON.
pub fn row(job: &Job) -> Value {
    json!(JobObject::of(job))
}

pub const CSV_HEADER: [&str; 16] = [
    "id",
    "source",
    "path",
    "stage",
    "round",
    "attempts",
    "reason",
    "fault",
    "transcription_id",
    "request_id",
    "since",
    "due",
    "service",
    "missing",
    "parts",
    "warnings",
];

/// Adds the changed outputs of a job: the edited files, and what is no file.
pub fn add_changed(row: &mut Value, changed: &[ChangedOutput]) {
    let paths = |is_edited: bool| {
        let outputs = changed.iter().filter(|output| output.is_edited() == is_edited);
        outputs.map(|output| output.path.lossy()).collect::<Value>()
    };
    row["edited"] = paths(true);
    row["not_files"] = paths(false);
}

/// Returns a job as a row of the table. Values that are unknown or do not apply are empty. In a path that is not UTF-8,
/// invalid bytes are replaced.
pub fn csv_row(job: &Job) -> [String; 16] {
    let fault = fault(job);
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    [
        job.id.to_string(),
        job.key.source.to_string(),
        job.key.path.lossy().into_owned(),
        job.stage.kind().name().to_owned(),
        job.purchase_number.to_string(),
        job.attempts.to_string(),
        reason(job),
        text(fault.map(|fault| fault.kind.name())),
        text(job.stage.transcription().map(TranscriptionId::as_str)),
        text(fault.and_then(|fault| fault.request_id.as_deref())),
        timestamps::format(job.since),
        job.due.map(timestamps::format).unwrap_or_default(),
        text(job.stage.purchase_key().map(|purchase_key| purchase_key.service.as_str())),
        job.missing_names().unwrap_or_default(),
        job.outcomes().unwrap_or_default(),
        job.review().map(Review::summary).unwrap_or_default(),
    ]
}
