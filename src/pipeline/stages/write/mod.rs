//! Fetched ▷ Written: publishes the outputs beside the recording, whole or not at all. Start reading at [`run`].

mod access;
mod bucket_output;
pub(crate) mod completeness;
pub(crate) mod editable;
mod names_of_others;
mod own_outputs;
mod publish_to_folder;
mod relocation;
pub(crate) mod remove_outputs;
mod render;
pub(crate) mod rerender;
pub(crate) mod restore;
mod review;
pub(crate) mod write_guard;

pub(crate) use render::read_speech;

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::crash_points::{self, Point};
use crate::domain::fault::Fault;
use crate::domain::job::{Job, Output};
use crate::domain::missing_enrichment::RequestedPart;
use crate::domain::names::{Hash, Timestamp, TranscriptionId};
use crate::domain::output_text::{AcceptedText, RenderedAs};
use crate::domain::path::RelPath;
use crate::domain::stage::{JobEvent, Skip};
use crate::domain::token::PurchaseKey;
use crate::output::group_fsync::Syncs;
use crate::output::publish::{Names, OwnOutputs, PendingOutput};
use crate::output::render_result::OutputKind;
use crate::output::results::Results;
use crate::pipeline::stages::foreign_subtitles::foreign_subtitles;
use crate::pipeline::stages::outcome::{StageOutcome, StageStop};
use crate::pipeline::stages::outputs_as_written::are_outputs_as_written;
use crate::pipeline::stages::write::names_of_others::names_of_others;
use crate::pipeline::stages::write::own_outputs::{output_folder, own_outputs};
use crate::pipeline::stages::write::publish_to_folder::publish_to_folder;
use crate::pipeline::stages::write::relocation::relocation;
use crate::pipeline::stages::write::render::{Rendered, render_kept_result};
use crate::pipeline::stages::write::rerender::{JobSettings, rendered_now};
use crate::pipeline::stages::write::review::review_result;
use crate::pipeline::stages::write::write_guard::{WriteGuard, Writing};
use crate::source::mount::source_mount::{Mount, Storage};
use crate::source::recording_place::with_folders;
use crate::store::contract::{Claims, Hold, Lease, Purchases, Store, StoreError};
use crate::store::params::ParamFiles;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Duration;

/// What the stage handler works with.
pub struct WriteContext<'a> {
    pub store: &'a dyn Store,
    pub clock: &'a dyn Clock,
    pub results: &'a Arc<Results>,
    pub params: &'a Arc<ParamFiles>,
    /// Syncs the files of all writers together.
    pub syncs: &'a Arc<Syncs>,
    pub writing: &'a Arc<Writing>,
}

/// How soon the job checks whether an earlier write of it has ended.
const RECHECK_WAIT: Duration = Duration::from_secs(1);

/// Renders the kept result and publishes the outputs.
pub async fn run(
    context: &WriteContext<'_>,
    mount: &Arc<Mount>,
    lease: &Lease,
    job: &Job,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
) -> Result<StageOutcome, StageStop> {
    let now = context.clock.now();
    let Some(guard) = context.writing.begin(job.id) else {
        return Ok(StageOutcome::Sleep { until: now.saturating_add(RECHECK_WAIT), reason: None });
    };
    let (stored, job) = (job, &with_folders_of(mount, job).await);
    let text = job.accepted.as_deref().filter(|accepted| accepted.transcription == *transcription);
    // The same result with a text that a person accepted: the files stay as they are, unless they go elsewhere now.
    if text.is_some_and(|text| stored.placed_by.is_none() && !goes_elsewhere(mount, job, text)) {
        return Ok(StageOutcome::Step(written_as_before(job)));
    }
    let mut placed = own_outputs(context.store, mount, job, now).await?;
    // No result is written over what a person accepted.
    placed.retain(|(_, hash)| job.accepted.as_ref().is_none_or(|accepted| accepted.hash != *hash));
    let review = review_result(context, mount, job, purchase_key, transcription).await;
    let reviewed = Job { review: review.clone(), ..job.clone() };
    let Some(Rendered { mut wanted, kinds, language, parts, unread }) =
        render_kept_result(context, mount.source(), &reviewed, purchase_key, transcription, now).await?
    else {
        // Otherwise the result can be read at the service once more.
        let is_complete = are_outputs_as_written(context.results, mount, job, purchase_key).await;
        return Ok(StageOutcome::Step(if is_complete { written_as_before(job) } else { JobEvent::ResultLost }));
    };
    let is_anothers = was_bought_by_another(context.store, job, purchase_key).await.map_err(StageStop::Store)?;
    if let Some(at) = text.and_then(|text| place_of_text(text, &kinds, &wanted)) {
        wanted.remove(at);
    }
    // A job that has just bought its result has no outputs elsewhere.
    let relocation = match is_anothers || !job.outputs.is_empty() {
        true => Some(relocation(context.store, mount, job, purchase_key).await.map_err(StageStop::Store)?),
        false => None,
    };
    if is_anothers && let Some(others) = foreign_subtitles(context.store, mount, job, now).await? {
        let known = relocation.iter().flat_map(|relocation| &relocation.known).map(|(_, hash)| *hash);
        let hashes =
            wanted.iter().map(|wanted| Hash::of(&wanted.bytes)).chain(job.pending_outputs.iter().copied()).chain(known);
        if !others.all_are(mount, &hashes.collect()).await {
            return Ok(StageOutcome::Step(JobEvent::Skipped { why: Skip::Subtitled }));
        }
    }
    let names = names_of_others(context.store, mount, job, &wanted).await.map_err(StageStop::Store)?;
    let pending_outputs = record_hashes(context.store, lease, stored, &wanted, names.former_hashes()).await?;
    // After a crash here the files are known by their hashes.
    if !names.take_over(context).await.map_err(StageStop::Store)? {
        return Ok(StageOutcome::Sleep { until: now.saturating_add(RECHECK_WAIT), reason: None });
    }
    let of_others = names.taken;
    let ours = OwnOutputs { published: placed, pending: pending_outputs, relocation, of_others };
    let own = ours.published.clone();
    let mut outputs = publish(context, mount, job, wanted, ours, guard).await?;
    outputs.extend(text.and_then(|text| text.output.clone()));
    let accepted =
        job.accepted.iter().filter_map(|accepted| Some((accepted.output.as_ref()?.file_name(), accepted.hash)));
    let own: Vec<_> = own.into_iter().chain(accepted).collect();
    let earlier = earlier_outputs(job, &outputs, &own, output_folder(mount.source(), job).as_ref());
    let rendered_as = rendered_as(context, mount, job, now).await;
    let missing = parts.iter().filter_map(RequestedPart::as_missing).collect();
    Ok(StageOutcome::Step(JobEvent::Written {
        outputs,
        earlier,
        rendered_as,
        language,
        missing,
        parts,
        unread,
        review,
    }))
}

/// Returns the end of a job whose outputs stay as they are.
fn written_as_before(job: &Job) -> JobEvent {
    JobEvent::Written {
        outputs: job.outputs.clone(),
        earlier: job.earlier.clone(),
        rendered_as: job.rendered_as.clone(),
        language: job.language.clone(),
        missing: job.missing.clone(),
        parts: job.parts.clone(),
        unread: job.unread.clone(),
        review: job.review.clone(),
    }
}

/// Whether no other folder is stored with an output.
fn is_here(output: &Output) -> bool {
    output.at.is_none()
}

/// Returns the job with the folder of each output that an earlier row of its manifest placed.
async fn with_folders_of(mount: &Arc<Mount>, job: &Job) -> Job {
    if job.placed_by.is_none() && (job.row.is_none() || job.outputs.iter().chain(&job.earlier).all(is_here)) {
        return job.clone();
    }
    let (mount, job) = (Arc::clone(mount), job.clone());
    blocking(move || with_folders(mount.source(), &job)).await
}

/// Whether outputs of the job lie in another folder than its outputs go to now, apart from the accepted file, which
/// stays where the person has it.
fn goes_elsewhere(mount: &Mount, job: &Job, text: &AcceptedText) -> bool {
    let at = output_folder(mount.source(), job);
    job.outputs.iter().any(|output| output.at != at && !text.is_of(output))
}

/// Returns which of the outputs the accepted file stands for: the one of its name, else the first of its format; `None` if
/// the text has no file.
fn place_of_text<N: Names>(text: &AcceptedText, kinds: &[OutputKind], wanted: &[PendingOutput<N>]) -> Option<usize> {
    let file = text.output.as_ref()?;
    let has_format = |at: &usize| kinds[*at].format == text.format && !kinds[*at].is_translation;
    let has_name = |at: &usize| wanted[*at].candidates.clone().next() == Some(file.file_name());
    let mut alike = (0..wanted.len().min(kinds.len())).filter(has_format);
    alike.clone().find(has_name).or_else(|| alike.next())
}

/// Returns the files that earlier outputs of the job left beside the new ones: edited ones, and those of formats and
/// places that are not written any more. `own` are the outputs in the folder of now, `at`, that no other job has.
fn earlier_outputs(job: &Job, new: &[Output], own: &[(OsString, Hash)], at: Option<&RelPath>) -> Vec<Output> {
    let is_own = |output: &Output| {
        output.at.as_ref() != at || own.iter().any(|(name, _)| name.as_bytes() == output.name.as_bytes())
    };
    let left = job.outputs.iter().filter(|output| is_own(output)).chain(&job.earlier);
    let is_new = |output: &Output| !new.iter().any(|new| new.is_same_file(output));
    left.filter(|output| is_new(output)).cloned().collect()
}

/// Returns what the outputs were rendered with, if that is what the settings say now: a job that was sent keeps the
/// formats that were configured then.
async fn rendered_as(context: &WriteContext<'_>, mount: &Arc<Mount>, job: &Job, now: Timestamp) -> Option<RenderedAs> {
    let (params, mount, job) = (Arc::clone(context.params), Arc::clone(mount), job.clone());
    blocking(move || {
        let settings = JobSettings::of(mount.source(), &params, &job, now).ok()?;
        settings.are_those_of(&job).then(|| rendered_now(mount.source()))
    })
    .await
}

/// Publishes outputs beside the recording, or where they go instead. Returns them in the order of `wanted`.
///
/// # Errors
/// A fault. What was published before stays.
async fn publish(
    context: &WriteContext<'_>,
    mount: &Arc<Mount>,
    job: &Job,
    wanted: Vec<PendingOutput<impl Names + 'static>>,
    ours: OwnOutputs,
    guard: WriteGuard,
) -> Result<Vec<Output>, Fault> {
    let now = context.clock.now();
    match mount.storage() {
        Storage::Bucket(bucket) => {
            let _guard = guard;
            bucket_output::run(bucket, mount, job, wanted, &ours, now).await
        }
        Storage::Folder(_) => {
            let (syncs, mount, job) = (Arc::clone(context.syncs), Arc::clone(mount), job.clone());
            // The write goes on in its thread even if nobody awaits it any more, and holds the guard to its end.
            let work = move || {
                let _guard = guard;
                publish_to_folder(&mount, &job, wanted, &ours, &syncs, now)
            };
            blocking(work).await
        }
    }
}

/// Most hashes that are remembered. Few are needed, since each release renders in one way.
const MAX_PENDING_OUTPUTS: usize = 64;

/// Commits the hashes of the outputs before they are published: whoever finds the files after a crash knows them as
/// ours.
async fn record_hashes<N>(
    store: &dyn Claims,
    lease: &Lease,
    job: &Job,
    wanted: &[PendingOutput<N>],
    taken_over: impl Iterator<Item = Hash>,
) -> Result<Vec<Hash>, StageStop> {
    let mut pending_outputs = job.pending_outputs.clone();
    let hashes = wanted.iter().map(|wanted| Hash::of(&wanted.bytes)).chain(taken_over);
    pending_outputs.extend(hashes.filter(|hash| !job.pending_outputs.contains(hash)));
    if pending_outputs.len() > job.pending_outputs.len() {
        pending_outputs.drain(..pending_outputs.len().saturating_sub(MAX_PENDING_OUTPUTS));
        let job = Job { pending_outputs: pending_outputs.clone(), ..job.clone() };
        crash_points::point(Point::Announcing);
        store.commit(lease, &job, Hold::Keep).await.map_err(StageStop::Store)?;
        crash_points::point(Point::Announced);
    }
    Ok(pending_outputs)
}

/// Whether another job, or an earlier queue, has bought the result. Then it costs nothing now, and `existing` decides
/// whether it is written. What a job has paid for itself is written in every case.
async fn was_bought_by_another(
    store: &dyn Purchases,
    job: &Job,
    purchase_key: &PurchaseKey,
) -> Result<bool, StoreError> {
    let Some(bought) = store.purchase(purchase_key).await? else { return Ok(false) };
    Ok(bought.sighted.is_some() || bought.by.is_some_and(|by| by != job.id))
}
