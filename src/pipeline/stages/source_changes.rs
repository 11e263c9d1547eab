//! Outcomes for a job before its create whose file is not as it was found: it changed, it is gone, or its folder is
//! away.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, Stamp};
use crate::domain::names::Timestamp;
use crate::domain::stage::{JobEvent, Skip};
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::faults::{folder_away, unread};
use crate::pipeline::stages::outcome::StageOutcome;
use crate::rooted_path::LinkInPath;
use crate::source::metadata::file_look::FileLook;
use crate::source::mount::source_mount::Mount;

/// Returns the outcome for a file that has changed. Fails if the source's folder is away: the bare mount point of a
/// share may show another file.
///
/// # Errors
/// A fault if the source's folder is away.
pub async fn file_changed(mount: &Mount, stamp: Stamp, due: Timestamp, now: Timestamp) -> Result<StageOutcome, Fault> {
    mount.check_now().await.map_err(|away| folder_away(&away, now))?;
    Ok(StageOutcome::StepThen(JobEvent::Grew { stamp }, due))
}

/// Returns the outcome for a job before its create whose file is not there as a file.
///
/// # Errors
/// A fault if the source's folder or a mount below it is away, if the file of a row is not there yet, or if the file
/// cannot be accessed.
pub async fn file_missing(
    mount: &Mount,
    job: &Job,
    seen: std::io::Result<FileLook>,
    now: Timestamp,
) -> Result<StageOutcome, Fault> {
    if !matches!(seen, Ok(FileLook::File(_))) {
        mount.check_not_bare().await.map_err(|away| folder_away(&away, now))?;
        mount.check_mounts_above(job).map_err(|away| folder_away(&away, now))?;
    }
    match seen {
        Ok(FileLook::File(_)) => Ok(StageOutcome::Sleep { until: now, reason: None }),
        Ok(FileLook::Other) => Ok(StageOutcome::Step(JobEvent::Skipped { why: Skip::NotAFile })),
        Ok(FileLook::Nothing) => match &job.row {
            Some(row) => Err(row.awaiting_file_fault(now)),
            None if job.has_unwritten_purchase() => {
                Ok(StageOutcome::Step(JobEvent::Skipped { why: Skip::RecordingGone }))
            }
            None => Ok(StageOutcome::Step(JobEvent::Skipped { why: Skip::Vanished })),
        },
        Err(error) if LinkInPath::of(&error).is_some() => {
            let words = format!("scribed does not read the file: {error}; then the job continues");
            Err(Fault::new(FaultKind::FolderAway, words, now))
        }
        Err(error) => Err(unread(&MediaFile::of(mount, job), &error, now)),
    }
}
