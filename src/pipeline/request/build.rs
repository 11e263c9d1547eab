//! Builds the request of a job: its source's template, filled in, and over it the settings beside the recording. This
//! is done before the upload, and once more right before the first create (`refresh.rs`): until then every change
//! counts.

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::config::model::Source;
use crate::config::template::text::RenderedTemplate;
use crate::domain::fault::Fault;
use crate::domain::file_permissions::Access;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::request_record::RequestRecord;
use crate::domain::track_selection::TrackSelection;
use crate::pipeline::request::beside::BesideSettings;
use crate::pipeline::request::layers::RequestLayers;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::rooted_path::access_of;
use crate::source::mount::source_mount::Mount;
use crate::source::recording_place::{Recording, recording};

/// The request of a job.
#[derive(Debug)]
pub struct BuiltRequest {
    /// What is sent to the service.
    pub rendered: RenderedTemplate,
    /// What is stored of it with the job.
    pub record: RequestRecord,
    /// Where each part of it comes from.
    pub layers: RequestLayers,
}

/// Builds the request of a job.
///
/// # Errors
/// The settings beside the recording, or its template, cannot be understood, or the recording lacks a value that its
/// template names.
pub async fn build(source: &Source, job: &Job, beside: &BesideSettings, now: Timestamp) -> Result<BuiltRequest, Fault> {
    let mut layers = RequestLayers::collect(source, job, beside, now)?;
    layers.read_media_tags(source, job, now).await?;
    let mut built = render(layers, source, now)?;
    built.record.access = access(source, job).await;
    Ok(built)
}

/// As [`build`]; or returns the outcome of a job that does not go on, now or at all.
///
/// # Errors
/// As [`build`].
pub async fn build_unless_held(
    mount: &Mount,
    clock: &dyn Clock,
    job: &Job,
    beside: &BesideSettings,
) -> Result<Result<BuiltRequest, StageOutcome>, Fault> {
    match beside.skip_or_wait(mount, clock, job) {
        Some(outcome) => Ok(Err(outcome)),
        None => build(mount.source(), job, beside, clock.now()).await.map(Ok),
    }
}

/// Builds the request of a job without reading the recording itself; `None` if that is not possible. Also returns
/// which part of the sound would be sent, if not all of it. Blocks.
///
/// # Errors
/// Why the request cannot be built: the settings cannot be understood, or the template does not render.
pub fn forecast(
    source: &Source,
    job: &Job,
    now: Timestamp,
) -> Result<(Option<BuiltRequest>, Option<TrackSelection>), Fault> {
    let layers = RequestLayers::collect(source, job, &BesideSettings::read(source, job), now)?;
    let selection = layers.selection.clone();
    let built = if layers.names_media() { None } else { Some(render(layers, source, now)?) };
    Ok((built, selection))
}

fn render(layers: RequestLayers, source: &Source, now: Timestamp) -> Result<BuiltRequest, Fault> {
    let rendered = layers.render(source, now)?;
    let record = layers.record(&rendered);
    Ok(BuiltRequest { rendered, record, layers })
}

/// Returns who may use a recording on this machine, as last seen. Its outputs get these permissions if the recording
/// is gone when they are written.
async fn access(source: &Source, job: &Job) -> Option<Access> {
    let now = match recording(source, job) {
        Recording::File(path) => blocking(move || access_of(&path).ok()).await,
        _ => None,
    };
    now.or_else(|| job.request_record.as_ref().and_then(|request_record| request_record.access.clone()))
}
