//! Decides what a fault of a stage is worth if its recording is not there any more. A folder may be renamed, moved or
//! removed at any moment; every stage that works with a path may then fail on that path, in its own words. All these
//! faults come here, before an attempt is counted and before a job fails.

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::domain::fault::{Blame, Fault};
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::stage::{JobEvent, Skip, StageKind};
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::faults::folder_away;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::source_changes::file_missing;
use crate::rooted_path::RootedPath;
use crate::source::metadata::file_look::FileLook;
use crate::source::metadata::presence::is_absence;
use crate::source::mount::source_mount::{Away, Mount};
use crate::source::recording_place::outputs_beside;
use std::sync::Arc;

/// Returns the outcome that replaces this fault of a job; `None` if the recording is there, or if the fault has nothing
/// to do with it. A recording that is gone is no failure, and no attempt:
///
/// * Before its create, the job ends, or a row's waits for the file.
/// * With its result fetched, the job ends if the folder of its outputs is gone too. The result stays kept.
///
/// # Errors
/// The fault that replaces it if the source's folder is away, or a mount below it: the job waits.
pub async fn outcome_of_lost_recording(
    mount: &Arc<Mount>,
    clock: &dyn Clock,
    job: &Job,
    fault: &Fault,
) -> Result<Option<StageOutcome>, Fault> {
    if !fault.kind.may_come_of_missing_file() || job.is_remote() {
        return Ok(None);
    }
    let now = clock.now();
    let away = |away: Away| folder_away(&away, now);
    let deciding = async {
        match job.stage.kind() {
            StageKind::Found | StageKind::Settled | StageKind::Probed | StageKind::Uploaded => {
                before_its_create(mount, job, fault, now).await
            }
            StageKind::Fetched => without_folder(mount, job, now).await,
            _ => Ok(None),
        }
    };
    tokio::select! {
        biased;
        decided = deciding => decided,
        lost = mount.wait_until_away() => Err(away(lost)),
    }
}

async fn before_its_create(
    mount: &Mount,
    job: &Job,
    fault: &Fault,
    now: Timestamp,
) -> Result<Option<StageOutcome>, Fault> {
    match MediaFile::of(mount, job).look().await {
        Ok(FileLook::File(_)) | Err(_) => {
            // What a bare mount point shows is no reason to count an attempt either.
            if fault.blame() != Blame::World {
                check_there(mount, job, now).await?;
            }
            Ok(None)
        }
        gone => file_missing(mount, job, gone, now).await.map(Some),
    }
}

/// Returns the end of a job whose result is kept and whose folder of outputs is gone together with its recording. Only
/// a marker tells that they are not on a share that is away.
async fn without_folder(mount: &Arc<Mount>, job: &Job, now: Timestamp) -> Result<Option<StageOutcome>, Fault> {
    let MediaFile::File { path, .. } = MediaFile::of(mount, job) else { return Ok(None) };
    if !mount.is_known_by_marker() || path.below_folder(&mount.source().folder).is_none() {
        return Ok(None);
    }
    let (shared_mount, owned_job) = (Arc::clone(mount), job.clone());
    let is_gone =
        blocking(move || is_absent(&path) && is_absent(&outputs_beside(shared_mount.source(), &owned_job).parent()));
    if !is_gone.await {
        return Ok(None);
    }
    check_there(mount, job, now).await?;
    Ok(Some(StageOutcome::Step(JobEvent::Skipped { why: Skip::RecordingGone })))
}

/// Checks after a look that what was not found is not there: the folder has its marker, and no mount is missing.
async fn check_there(mount: &Mount, job: &Job, now: Timestamp) -> Result<(), Fault> {
    let away = |away: Away| folder_away(&away, now);
    mount.check_now().await.map_err(away)?;
    mount.check_mounts_above(job).map_err(away)
}

fn is_absent(path: &RootedPath) -> bool {
    path.stat().is_err_and(|error| is_absence(&error))
}
