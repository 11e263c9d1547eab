//! Why a job is where it is, and what happens next, for people.

use crate::domain::job::Job;
use crate::domain::missing::named;
use crate::domain::row::Row;
use crate::domain::stage::Stage;

/// The reason in words. What went wrong, or is waited for, comes first; else what the stage means.
pub fn reason(job: &Job) -> String {
    match (&job.stage, &job.fault) {
        (Stage::Failed { fault, .. }, _) => fault.words.clone(),
        (Stage::Skipped { why }, _) => why.words().to_owned(),
        (Stage::Cancelled { from }, _) => cancelled(from),
        (_, Some(fault)) => fault.words.clone(),
        (Stage::Written { .. }, None) if job.is_incomplete() => {
            format!("written, without: {}", named(&job.missing))
        }
        (Stage::Found, None) if job.row.as_deref().is_some_and(Row::is_remote) => {
            "found; the service fetches it by itself".to_owned()
        }
        (stage, None) => resting(stage).to_owned(),
    }
}

fn resting(stage: &Stage) -> &'static str {
    match stage {
        Stage::Found => "found; sent when it has been quiet for the source's `settle`",
        Stage::Settled => "quiet; its parameters are rendered next",
        Stage::Probed { .. } => "waits for its upload",
        Stage::Uploaded { .. } => "uploaded; waits for its turn to be submitted",
        Stage::Submitting { .. } => "being submitted",
        Stage::Submitted { .. } => "being transcribed at the service",
        Stage::Fetched { .. } => "transcribed; its outputs are written next",
        Stage::Following { .. } => "another file with the same content is being transcribed; its result is shared",
        Stage::Written { .. } => "done",
        Stage::Skipped { .. } | Stage::Failed { .. } | Stage::Cancelled { .. } => "ended",
    }
}

fn cancelled(from: &Stage) -> String {
    match from.transcription() {
        Some(id) => {
            format!("cancelled by a person; transcription {id} had been bought, and copies of the file share it")
        }
        None => "cancelled by a person; nothing had been bought for it".to_owned(),
    }
}

/// Whether a job rests because the queue is paused, when it is: it would be uploaded or submitted next.
pub fn is_paused(job: &Job) -> bool {
    matches!(job.stage, Stage::Probed { .. } | Stage::Uploaded { .. })
}

/// Why a job that has not ended waits, in one or two words: the groups of `waiting_for`.
pub fn waits_for(job: &Job) -> &'static str {
    use crate::domain::fault::FaultKind as F;
    let Some(fault) = &job.fault else {
        return match job.stage {
            Stage::Found => "settle",
            Stage::Submitted { .. } => "transcription",
            Stage::Following { .. } => "twin",
            _ => "turn",
        };
    };
    match fault.kind {
        F::Asks => "person",
        F::Sidecar => "sidecar",
        F::Held => "hold",
        F::Awaited => "missing file",
        F::NotAllowed => "not allowed",
        F::Budget => "budget",
        F::Window => "window",
        F::Unknown => "unknown create",
        F::Stuck => "stuck",
        F::Unwritable => "disk",
        F::NoRoom => "spool",
        F::FolderAway => "folder",
        F::Unreadable => "file",
        F::Refused { .. } | F::Barred { .. } | F::Throttled { .. } | F::Unreachable | F::Broken | F::Dead { .. } => {
            "service"
        }
        F::Gone | F::Template | F::Altered | F::NotInIt | F::Bug => "retry",
    }
}
