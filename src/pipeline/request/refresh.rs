//! What is said of a recording may change until the first create leaves: then its request is made anew.

use crate::clock::Clock;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::names::Hash;
use crate::domain::stage::JobEvent;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::request::beside::{BesideSettings, look_around};
use crate::pipeline::request::build;
use crate::pipeline::request::stored_params::{keep_params, kept};
use crate::pipeline::stages::outcome::StageOutcome;
use crate::source::mount::source_mount::Mount;
use crate::store::params::ParamFiles;
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
