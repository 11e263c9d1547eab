//! A job as `--json` shows it (design, section 2).

use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::reason::reason;
use crate::domain::stage::Stage;
use crate::wire::iso;
use base64::Engine;
use serde_json::{Value, json};

/// One row. `path_b64` holds the exact bytes of a path that is not UTF-8.
pub fn row(job: &Job) -> Value {
    let fault = match &job.stage {
        Stage::Failed { fault, .. } => Some(fault),
        _ => job.fault.as_ref(),
    };
    let mut row = json!({
        "id": job.id,
        "source": job.key.source,
        "path": job.key.path.lossy(),
        "stage": job.stage.kind().name(),
        "round": job.round,
        "attempts": job.attempts,
        "service": job.stage.order().map(|order| &order.service),
        "transcription_id": job.stage.transcription(),
        "request_id": fault.and_then(|fault| fault.request_id.as_ref()),
        "outputs": job.outputs.iter().map(|output| output.name.lossy()).collect::<Vec<_>>(),
        "reason": reason(job),
        "fault": fault.map(|fault| json!({
            "kind": fault.kind, "words": fault.words, "request_id": fault.request_id, "at": iso::write(fault.at),
        })),
        "since": iso::write(job.since),
        "due": job.due.map(iso::write),
    });
    if !job.key.path.is_utf8() {
        let exact = base64::engine::general_purpose::STANDARD.encode(job.key.path.as_bytes());
        row["path_b64"] = exact.into();
    }
    row
}

/// A moment for people: UTC, to the second.
pub fn moment(at: Timestamp) -> String {
    let text = iso::write(at);
    text.get(..19).unwrap_or(&text).replace('T', " ")
}
