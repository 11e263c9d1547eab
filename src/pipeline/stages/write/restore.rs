//! Writes missing outputs of a written job again (`verify --repair`).

use crate::domain::fault::Fault;
use crate::domain::job::{Job, Output};
use crate::domain::names::Hash;
use crate::domain::stage::{JobEvent, Stage};
use crate::output::group_fsync::Syncs;
use crate::output::publish::{OwnOutputs, PendingOutput};
use crate::pipeline::stages::write::in_flight::Writing;
use crate::pipeline::stages::write::own_outputs::output_folder;
use crate::pipeline::stages::write::render::render_kept_result;
use crate::pipeline::stages::write::rerender::format_of;
use crate::pipeline::stages::write::{WriteContext, publish};
use crate::source::mount::source_mount::Mount;
use crate::store::contract::StoreError;
use crate::store::params::ParamFiles;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

/// What is needed to write outputs outside the engine.
#[derive(Clone)]
pub struct Tools {
    /// The stored parameters.
    pub params: Arc<ParamFiles>,
    /// Syncs the files of all writers together.
    pub syncs: Arc<Syncs>,
    /// The jobs whose outputs are being written.
    pub writing: Arc<Writing>,
}

/// Why missing outputs were not restored.
#[derive(Debug, thiserror::Error)]
pub enum NotRestored {
    /// The result that they are made from is not kept here, or damaged.
    #[error("the kept result is missing or damaged")]
    NoResult,
    /// The job is being handled, or has changed meanwhile.
    #[error("scribed is writing the outputs at this moment; try again")]
    Moving,
    /// The outputs went to another place than outputs of this job go now.
    #[error(
        "the outputs were written to {0}, and jobs.toml now names another place: `scribed retry --fresh` writes them there"
    )]
    Elsewhere(String),
    /// The job has other outputs now.
    #[error("{0} is not among the outputs of the job")]
    NotMade(String),
    /// The outputs cannot be made or written.
    #[error("{}", .0.words)]
    Fault(Fault),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Fault> for NotRestored {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Writes these outputs of a written job again, under the names that they had. Files that are there by now are left
/// alone.
///
/// # Errors
/// [`NotRestored`].
pub async fn restore(
    context: &WriteContext<'_>,
    mount: &Arc<Mount>,
    job: &Job,
    missing: &[Output],
) -> Result<(), NotRestored> {
    let Stage::Written { order, transcription, .. } = &job.stage else { return Err(NotRestored::Moving) };
    let (now, source) = (context.clock.now(), mount.source());
    let at = output_folder(source, job);
    if let Some(output) = missing.iter().find(|output| output.at != at) {
        return Err(NotRestored::Elsewhere(output.display_name()));
    }
    let guard = context.writing.begin(job.id).ok_or(NotRestored::Moving)?;
    let rendered =
        render_kept_result(context, source, job, order, transcription, now).await?.ok_or(NotRestored::NoResult)?;
    let (mut wanted, mut outputs) = (Vec::new(), job.outputs.clone());
    let format = |name: Option<OsString>| name.as_deref().and_then(format_of);
    let mut made: Vec<_> =
        rendered.wanted.into_iter().map(|mut one| (format(one.candidates.next()), Some(one.bytes))).collect();
    for output in missing {
        let name = OsString::from_vec(output.name.as_bytes().to_vec());
        let wanted_format = format_of(&name);
        let bytes = made.iter_mut().find(|(format, bytes)| bytes.is_some() && *format == wanted_format);
        let bytes =
            bytes.and_then(|(_, bytes)| bytes.take()).ok_or_else(|| NotRestored::NotMade(output.display_name()))?;
        let hash = Hash::of(&bytes);
        outputs.iter_mut().filter(|own| **own == *output).for_each(|own| own.hash = hash);
        wanted.push(PendingOutput { candidates: std::iter::once(name), bytes });
    }
    // Another release may render other bytes. They are committed before they are published: whoever finds the files
    // knows them as ours.
    if outputs != job.outputs && !context.store.overrule(job, JobEvent::Restored { outputs }, now).await?.is_done() {
        return Err(NotRestored::Moving);
    }
    publish(context, mount, job, wanted, OwnOutputs::default(), guard).await?;
    Ok(())
}
