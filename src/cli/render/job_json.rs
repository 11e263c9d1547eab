//! The representation of a job in `--json` and `--csv`.

use crate::control::transport::protocol::ChangedOutput;
use crate::domain::fault::Fault;
use crate::domain::job::{Job, Output};
use crate::domain::names::TranscriptionId;
use crate::domain::reason::reason;
use crate::domain::review::Review;
use crate::domain::split::Part;
use crate::domain::stage::Stage;
use crate::wire::timestamps;
use base64::Engine;
use serde_json::{Value, json};

/// Returns a job as JSON. `path_b64` holds the exact bytes of a path that is not UTF-8.
pub fn row(job: &Job) -> Value {
    let fault = fault(job);
    let mut row = json!({
        "id": job.id,
        "source": job.key.source,
        "path": job.key.path.lossy(),
        "stage": job.stage.kind().name(),
        "round": job.purchase_number,
        "attempts": job.attempts,
        "service": job.stage.purchase_key().map(|purchase_key| &purchase_key.service),
        "transcription_id": job.stage.transcription(),
        "request_id": fault.and_then(|fault| fault.request_id.as_ref()),
        "outputs": job.outputs.iter().map(output).collect::<Vec<_>>(),
        "reason": reason(job),
        "fault": fault.map(|fault| json!({
            "kind": fault.kind, "words": fault.words, "request_id": fault.request_id, "at": timestamps::format(fault.at),
        })),
        "since": timestamps::format(job.since),
        "due": job.due.map(timestamps::format),
        "missing": job.missing_parts().map(|part| json!({
            "enrichment": part.enrichment, "language": part.language, "words": part.words,
        })).collect::<Vec<_>>(),
        "parts": job.requested_parts().iter().map(|part| json!({
            "enrichment": part.enrichment, "language": part.language, "outcome": part.outcome, "words": part.words,
        })).collect::<Vec<_>>(),
        "unread": job.unread(),
    });
    if job.may_be_acknowledged() {
        row["acknowledged"] = job.acknowledged.map(timestamps::format).into();
    }
    if let Some(review) = job.review() {
        let json = review.as_json();
        row["warnings"] = json["warnings"].clone();
        row["more_warnings"] = json["more"].clone();
        row["without_audio"] = json["without_audio"].clone();
    }
    if !job.earlier.is_empty() {
        row["earlier_outputs"] = job.earlier.iter().map(output).collect();
    }
    if let Some(accepted) = &job.accepted {
        row["accepted"] = json!({
            "output": output(&accepted.output), "format": accepted.format, "at": timestamps::format(accepted.at),
            "by": accepted.by, "in_use": job.accepted_text().is_some(),
        });
    }
    if let Some(split) = &job.split {
        row["split"] = split.parts.iter().map(part_json).collect();
    }
    if let Some(sent) = &job.sent {
        row["sent"] = json!(sent);
    }
    if !job.key.path.is_utf8() {
        let exact = base64::engine::general_purpose::STANDARD.encode(job.key.path.as_bytes());
        row["path_b64"] = exact.into();
    }
    row
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

fn fault(job: &Job) -> Option<&Fault> {
    match &job.stage {
        Stage::Failed { fault, .. } => Some(fault),
        _ => job.fault.as_ref(),
    }
}

/// Returns the name of an output beside its recording, or the whole path of one in another folder.
fn output(output: &Output) -> String {
    match &output.at {
        Some(folder) => format!("{}/{}", folder.lossy(), output.name.lossy()),
        None => output.name.lossy().into_owned(),
    }
}
/// A part in which a recording is sent. Times are seconds from the start of its sound track.
fn part_json(part: &Part) -> Value {
    let seconds = |millis: u64| millis as f64 / 1e3;
    let bought = part.bought.as_ref();
    json!({
        "start": seconds(part.range.from_ms), "end": seconds(part.range.to_ms),
        "transcription_id": bought.map(|bought| &bought.transcription),
    })
}
