//! The settings of a recording may change until the first create is sent: then its request is built again.

use crate::clock::Clock;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::names::Hash;
use crate::domain::stage::JobEvent;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::request::{BesideSettings, build_unless_held, look_with_settings, stored_params};
use crate::pipeline::stages::outcome::StageOutcome;
use crate::source::mount::source_mount::Mount;
use crate::store::params::ParamFiles;
use std::time::Duration;

/// A job that has rested this long before its upload is checked again. Later changes are seen before the create.
const RESTED: Duration = Duration::from_secs(5);

/// Returns the outcome for a job whose request would be built differently now; `None` if it is unchanged, or if a
/// create was sent with it.
///
/// # Errors
/// The settings cannot be understood, or the parameters cannot be stored.
pub async fn refresh(
    files: &ParamFiles,
    mount: &Mount,
    clock: &dyn Clock,
    (job, params): (&Job, &Hash),
    beside: &BesideSettings,
) -> Result<Option<StageOutcome>, Fault> {
    if job.request_record.as_ref().is_some_and(|record| record.is_sent) {
        return Ok(None);
    }
    let built = match build_unless_held(mount, clock, job, beside).await? {
        Ok(built) => built,
        Err(outcome) => return Ok(Some(outcome)),
    };
    let now = clock.now();
    let new = stored_params::keep(files, &built.rendered, now)?;
    let is_alike = job.request_record.as_ref().is_some_and(|record| record.is_alike(&built.record));
    if new == *params && is_alike {
        return Ok(None);
    }
    // If nobody knows which sound was sent, it is sent again.
    let is_other_sound = new != *params
        && stored_params::load(files, params, now).map_or(true, |(_, pick)| pick != built.rendered.track_selection);
    Ok(Some(StageOutcome::Step(JobEvent::RequestRebuilt {
        params: new,
        request_record: Box::new(built.record),
        is_other_sound,
    })))
}

/// As [`refresh`], for a job that is about to be uploaded and has rested before, or whose stored parameters cannot be
/// read: these are built again.
///
/// # Errors
/// As [`refresh`].
pub async fn refresh_before_upload(
    files: &ParamFiles,
    mount: &Mount,
    clock: &dyn Clock,
    (job, params): (&Job, &Hash),
) -> Result<Option<StageOutcome>, Fault> {
    let (now, bought) = (clock.now(), job.made_from.is_some());
    if bought || now < job.since.saturating_add(RESTED) && files.order(params).is_ok() {
        return Ok(None);
    }
    let (_, beside) = look_with_settings(mount, MediaFile::of(mount, job), job).await;
    refresh(files, mount, clock, (job, params), &beside).await
}
