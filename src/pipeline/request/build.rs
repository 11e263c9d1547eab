//! What a job is made with: its source's template, filled in, and over it what is said beside the recording. Asked
//! before the upload, and once more right before the first create: until then every change counts.

use crate::beneath::access_of;
use crate::clock::Clock;
use crate::config::model::Source;
use crate::config::template::text::RenderedTemplate;
use crate::domain::access::Access;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::request_record::RequestRecord;
use crate::domain::track_selection::TrackSelection;
use crate::pipeline::blocking::blocking;
use crate::pipeline::request::beside::BesideSettings;
use crate::pipeline::request::layers::lay;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::source::mount::source_mount::Mount;
use crate::source::place::{Recording, recording};

/// A template filled in for a job.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltRequest {
    /// What is asked of the service.
    pub rendered: RenderedTemplate,
    /// What is kept of it with the job.
    pub making: RequestRecord,
}

/// Makes what a job is made with; or says why that is not to be, now or at all.
///
/// # Errors
/// What stands beside the recording, or its template, cannot be understood.
pub async fn make(
    mount: &Mount,
    clock: &dyn Clock,
    job: &Job,
    around: &BesideSettings,
) -> Result<Result<BuiltRequest, StageOutcome>, Fault> {
    if let Some(outcome) = around.hindrance(mount, clock, job) {
        return Ok(Err(outcome));
    }
    let (source, now) = (mount.source(), clock.now());
    let mut laid = lay(source, job, around, now)?;
    laid.ask(source, job, now).await?;
    let mut made = laid.made(source, now)?;
    made.making.access = access(source, job).await;
    Ok(Ok(made))
}

/// Who may use a recording that lies on this machine, as it was last seen: its outputs take that where it is gone when
/// they are written.
async fn access(source: &Source, job: &Job) -> Option<Access> {
    let now = match recording(source, job) {
        Recording::File(path) => blocking(move || access_of(&path).ok()).await,
        _ => None,
    };
    now.or_else(|| job.making.as_ref().and_then(|making| making.access.clone()))
}

/// What a job would be made with as far as that can be told without asking the recording itself, `None` where it
/// cannot; and which sound of it would be sent, where that is not all. Blocks.
///
/// # Errors
/// Why it would not be made: what is said of it cannot be understood, or does not render.
pub fn foretold(
    source: &Source,
    job: &Job,
    now: Timestamp,
) -> Result<(Option<BuiltRequest>, Option<TrackSelection>), Fault> {
    let laid = lay(source, job, &BesideSettings::look(source, job), now)?;
    let made = if laid.template.uses("media") { None } else { Some(laid.made(source, now)?) };
    Ok((made, laid.pick))
}

/// Whether the file is to be passed over, or what is said of it has changed since this was made of it; `None` where
/// a create left already: then it stays as it is.
///
/// # Errors
/// As [`make`].
pub async fn remade(
    mount: &Mount,
    clock: &dyn Clock,
    job: &Job,
    around: &BesideSettings,
) -> Result<Option<Result<BuiltRequest, StageOutcome>>, Fault> {
    if job.making.as_ref().is_some_and(|making| making.is_sent) {
        return Ok(None);
    }
    make(mount, clock, job, around).await.map(Some)
}
