//! What is said of a recording may change until the first create leaves: then its request is made anew.

use crate::clock::Clock;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::stage::JobEvent;
use crate::domain::track_selection::TrackSelection;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::request::build;
use crate::pipeline::request::build::{BesideSettings, look_around};
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::probe::keep_params;
use crate::source::mount::source_mount::Mount;
use crate::store::params::{ParamFiles, StoredParams};
use std::time::Duration;

/// What has rested so long before its upload is looked at again; what changes later is seen before the create.
const RESTED: Duration = Duration::from_secs(5);

/// What becomes of a job whose request is no longer what would be made for it; `None` where it still is, or a create
/// left with it.
///
/// # Errors
/// What is said of it cannot be understood, or its parameters cannot be kept.
pub async fn remade(
    files: &ParamFiles,
    mount: &Mount,
    clock: &dyn Clock,
    (job, params): (&Job, &Hash),
    around: &BesideSettings,
) -> Result<Option<StageOutcome>, Fault> {
    let made = match build::remade(mount, clock, job, around).await? {
        None => return Ok(None),
        Some(Err(outcome)) => return Ok(Some(outcome)),
        Some(Ok(made)) => made,
    };
    let now = clock.now();
    let new = keep_params(files, &made.rendered, now)?;
    let is_alike = job.making.as_ref().is_some_and(|making| making.is_alike(&made.making));
    if new == *params && is_alike {
        return Ok(None);
    }
    // Where nobody knows what was sent, it is sent anew.
    let is_other_sound =
        new != *params && kept(files, params, now).map_or(true, |(_, pick)| pick != made.rendered.pick);
    Ok(Some(StageOutcome::Step(JobEvent::Remade { params: new, making: Box::new(made.making), is_other_sound })))
}

/// As [`remade`], for a job that is about to be uploaded and has rested before that, or whose kept parameters cannot
/// be read: these are made anew.
///
/// # Errors
/// As [`remade`].
pub async fn rested(
    files: &ParamFiles,
    mount: &Mount,
    clock: &dyn Clock,
    (job, params): (&Job, &Hash),
) -> Result<Option<StageOutcome>, Fault> {
    let (now, bought) = (clock.now(), job.made_from.is_some());
    if bought || now < job.since.after(RESTED) && files.order(params).is_ok() {
        return Ok(None);
    }
    let (_, around) = look_around(mount, MediaFile::of(mount, job), job).await;
    remade(files, mount, clock, (job, params), &around).await
}

/// The parameters of an order as they are sent, and what is sent of the recording.
///
/// # Errors
/// They cannot be read.
pub fn kept(files: &ParamFiles, hash: &Hash, now: Timestamp) -> Result<(StoredParams, Option<TrackSelection>), Fault> {
    // Remembered, but for the first time after a start.
    files.order(hash).map_err(|error| {
        let words = format!("cannot read the stored parameters {hash} in the state directory: {error}");
        Fault::new(FaultKind::Unreadable, words, now)
    })
}
