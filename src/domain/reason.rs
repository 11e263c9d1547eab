//! Explains to people why a job is in its state, and what happens next.

use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::pause::{Pause, Pauses};
use crate::domain::stage::Stage;
use crate::domain::wait_reason::WaitReason;

/// Returns the reason as text: the fault or what the job waits for, otherwise what its stage means.
pub fn reason(job: &Job) -> String {
    match job.acknowledged.filter(|_| job.may_be_acknowledged()) {
        Some(_) => format!("{} (acknowledged)", words(job)),
        None => words(job),
    }
}

fn words(job: &Job) -> String {
    match (&job.stage, &job.fault) {
        (Stage::Failed { fault, .. }, _) => fault.words.clone(),
        (Stage::Skipped { why }, _) => why.describe().to_owned(),
        (Stage::Cancelled { from }, _) => describe_cancelled(from),
        (_, Some(fault)) => fault.words.clone(),
        (Stage::Written { .. }, None) if job.is_incomplete() => {
            format!("written, {}", job.shortfall().unwrap_or_default())
        }
        (Stage::Found, None) if job.is_remote() => "found; the service will fetch it".to_owned(),
        (stage, None) => format!("{}{}", describe_stage(stage), part(job).unwrap_or_default()),
    }
}

/// Says which part of its recording a job is at: ` (part 2 of 3)`.
fn part(job: &Job) -> Option<String> {
    let split = job.split.as_deref().filter(|_| !job.stage.is_end())?;
    let range = job.stage.purchase_key().and_then(|key| key.part).or(split.next())?;
    Some(format!(" (part {} of {})", split.number_of(range)?, split.count()))
}

fn describe_stage(stage: &Stage) -> &'static str {
    match stage {
        Stage::Found => "found; scribed sends it when it has not changed for the source's `settle`",
        Stage::Settled => "settled; scribed renders its parameters next",
        Stage::Probed { .. } => "waiting for its upload",
        Stage::Uploaded { .. } => "uploaded; waiting to be submitted",
        Stage::Submitting { .. } => "being submitted to the service",
        Stage::Submitted { .. } => "being transcribed by the service",
        Stage::Fetched { .. } => "transcribed; scribed writes the outputs next",
        Stage::Following { .. } => "a duplicate is being transcribed; this job uses its result",
        Stage::Written { .. } => "done",
        Stage::Skipped { .. } | Stage::Failed { .. } | Stage::Cancelled { .. } => "ended",
    }
}

fn describe_cancelled(from: &Stage) -> String {
    match from.transcription() {
        Some(id) => {
            format!(
                "cancelled by a person; its transcription {id} had been bought; duplicates of the recording may use it"
            )
        }
        None => "cancelled by a person before anything was bought".to_owned(),
    }
}

/// Whether a pause would keep the job waiting: its next step is an upload or a create.
pub fn is_pausable(job: &Job) -> bool {
    matches!(job.stage, Stage::Probed { .. } | Stage::Uploaded { .. })
}

/// Returns what a job that has not ended waits for, pauses included.
pub fn wait_reason(job: &Job, pauses: &Pauses, now: Timestamp) -> WaitReason {
    match pauses.for_source(&job.key.source, now).filter(|_| is_pausable(job)) {
        Some(Pause { until: Some(_), .. }) => WaitReason::Pause,
        Some(Pause { until: None, .. }) => WaitReason::PauseWithoutEnd,
        None => job_wait_reason(job),
    }
}

/// Returns what a job that has not ended waits for according to its row. The row does not contain pauses.
pub fn job_wait_reason(job: &Job) -> WaitReason {
    use crate::domain::fault::FaultKind as F;
    let Some(fault) = &job.fault else {
        return match job.stage {
            Stage::Found => WaitReason::Settle,
            Stage::Submitted { .. } => WaitReason::Transcription,
            Stage::Following { .. } => WaitReason::Duplicate,
            _ => WaitReason::Turn,
        };
    };
    match fault.kind {
        F::Asks | F::Mismatch => WaitReason::Person,
        F::Sidecar => WaitReason::Sidecar,
        F::Held => WaitReason::Hold,
        F::Awaited => WaitReason::MissingFile,
        F::NotAllowed => WaitReason::NotAllowed,
        F::Budget if fault.asks => WaitReason::BudgetRaise,
        F::Budget => WaitReason::Budget,
        F::Window if job.due.is_none() => WaitReason::WindowNever,
        F::Window => WaitReason::Window,
        F::Unknown => WaitReason::UnknownCreate,
        F::Stuck => WaitReason::Stuck,
        F::Unwritable => WaitReason::Disk,
        F::NoRoom => WaitReason::Spool,
        F::Shortage => WaitReason::Machine,
        F::FolderAway => WaitReason::Folder,
        F::Unreadable => WaitReason::File,
        F::Refused { .. } | F::Barred { .. } => WaitReason::ServiceRefuses,
        F::Throttled { .. } | F::Unreachable | F::Broken | F::Dead { .. } => WaitReason::Service,
        F::Gone | F::Template | F::Altered | F::NotInIt | F::Bug => WaitReason::Retry,
    }
}
