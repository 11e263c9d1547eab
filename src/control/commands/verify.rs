//! Comparing the outputs of written jobs with what was written. Missing ones can be written again, from the kept result
//! or from the service's. This buys nothing.

use super::read_again::{read_answer, save};
use crate::blocking::{blocking, within};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{
    CommandRefusal, OutputState, VerifiedJob, VerifiedOutput, VerifyPiece, VerifyQuery,
};
use crate::domain::job::{Job, Output};
use crate::domain::names::{Hash, TranscriptionId};
use crate::domain::path::RelPath;
use crate::domain::stage::{Stage, StageKind};
use crate::domain::token::PurchaseKey;
use crate::output::results::describe_removal;
use crate::pipeline::media_file::{MediaFile, presence_in};
use crate::pipeline::stages::join_parts::{JoinContext, join_kept};
use crate::pipeline::stages::write;
use crate::pipeline::stages::write::rerender::path_of;
use crate::pipeline::stages::write::restore::NotRestored;
use crate::source::metadata::file_look::hash;
use crate::source::metadata::presence::Presence;
use crate::source::mount::source_mount::{Mount, Storage};
use crate::store::contract::Filter;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The number of jobs of one piece.
const PAGE_SIZE: usize = 100;

/// The number of jobs of one piece if missing outputs are restored: results may have to be downloaded, and the command
/// waits for the answer.
const PAGE_SIZE_TO_REPAIR: usize = 10;

/// The time limit for reading the outputs of one job: a dead file server never answers.
const TIME_OUT: Duration = Duration::from_secs(30);

/// Verifies the outputs of the next jobs, and with `repair` restores missing ones.
///
/// # Errors
/// [`CommandRefusal`] if the query names a job that does not exist or is not written; errors of the store.
pub async fn verify(handler: &CommandHandler, query: &VerifyQuery) -> Result<VerifyPiece, CommandRefusal> {
    let mut piece = VerifyPiece::default();
    let jobs = match &query.job {
        Some(wanted) => vec![written(handler.job(wanted).await?)?],
        None => {
            let limit = if query.repair { PAGE_SIZE_TO_REPAIR } else { PAGE_SIZE };
            let filter = Filter { stages: vec![StageKind::Written], after: query.after, limit };
            let jobs = handler.store.page(&filter).await?;
            piece.next = jobs.last().filter(|_| jobs.len() == limit).map(|job| job.id);
            jobs
        }
    };
    let is_selected = |job: &Job| query.source.as_ref().is_none_or(|source| *source == job.key.source);
    for job in jobs.into_iter().filter(is_selected) {
        piece.jobs.push(verify_job(handler, job, query.repair).await?);
    }
    Ok(piece)
}

fn written(job: Job) -> Result<Job, CommandRefusal> {
    let (id, stage) = (job.id, job.stage.kind());
    let is_written = stage == StageKind::Written;
    let words = || format!("job {id} is {}: it has no outputs to verify", stage.name());
    is_written.then_some(job).ok_or_else(|| CommandRefusal::Declined(words()))
}

async fn verify_job(handler: &CommandHandler, job: Job, repair: bool) -> Result<VerifiedJob, CommandRefusal> {
    let mut verified =
        VerifiedJob { job: job.id, key: job.key.clone(), outputs: Vec::new(), problem: None, is_gone: false };
    let Some(mount) = handler.mounts.get(&job.key.source) else {
        let words = format!("jobs.toml has no source named {:?} any more", job.key.source.as_str());
        return Ok(VerifiedJob { problem: Some(words), ..verified });
    };
    let states = match look(handler, mount, &job).await {
        Ok(states) => states,
        Err(words) => return Ok(VerifiedJob { problem: Some(words), ..verified }),
    };
    let missing: Vec<Output> = job
        .outputs
        .iter()
        .zip(&states.outputs)
        .filter(|(_, found)| found.state == OutputState::Missing)
        .map(|(output, _)| output.clone())
        .collect();
    match states.recording {
        _ if missing.is_empty() => {}
        Presence::Gone if missing.len() == job.outputs.len() => return Ok(VerifiedJob { is_gone: true, ..verified }),
        Presence::Unknown(words) => return Ok(VerifiedJob { problem: Some(words), ..verified }),
        Presence::There | Presence::Gone if repair => {
            verified.problem = restored(handler, mount, &job, &missing).await.err();
        }
        Presence::There | Presence::Gone => {}
    }
    let is_restored = repair && verified.problem.is_none();
    verified.outputs = states.outputs;
    for output in verified.outputs.iter_mut().filter(|output| is_restored && output.state == OutputState::Missing) {
        output.state = OutputState::Restored;
    }
    Ok(verified)
}

/// The states of a job's outputs, and of its recording. In a folder, the recording is only looked at if an output is
/// missing, and otherwise counts as there.
struct OutputStates {
    outputs: Vec<VerifiedOutput>,
    recording: Presence,
}

/// Returns the states of a job's outputs, in the order of the job.
///
/// # Errors
/// A message if the outputs cannot be verified now.
async fn look(handler: &CommandHandler, mount: &Arc<Mount>, job: &Job) -> Result<OutputStates, String> {
    mount.there().await.map_err(|away| away.to_string())?;
    let states = match mount.storage() {
        Storage::Bucket(_) => states_in_bucket(mount, job).await,
        Storage::Folder(_) => {
            let (owned_mount, owned_job) = (Arc::clone(mount), job.clone());
            let states = within(&*handler.clock, TIME_OUT, move || states_in_folder(&owned_mount, &owned_job)).await;
            states.ok_or_else(|| format!("the folder {} did not answer", mount.source().folder.display()))?
        }
    };
    // If the folder went away meanwhile, outputs that were not found are not missing.
    if states.outputs.iter().any(|output| output.state == OutputState::Missing) {
        mount.check_not_bare().await.map_err(|away| away.to_string())?;
    }
    Ok(states)
}

fn states_in_folder(mount: &Mount, job: &Job) -> OutputStates {
    let found = |output: &Output| {
        let path = path_of(mount, job, output);
        let state = state(output, hash(&path));
        VerifiedOutput { path: RelPath::new(path.full().as_os_str().as_bytes()), state }
    };
    let edited = |output: &VerifiedOutput| output.state == OutputState::Edited;
    // Files that earlier outputs left are told only if a person edited them.
    let earlier = job.earlier.iter().map(found).filter(edited);
    let outputs: Vec<VerifiedOutput> = job.outputs.iter().map(found).chain(earlier).collect();
    let is_missing = outputs.iter().any(|output| output.state == OutputState::Missing);
    let recording = match MediaFile::of(mount, job) {
        MediaFile::File { path, .. } if is_missing => presence_in(mount, &path),
        _ => Presence::There,
    };
    OutputStates { outputs, recording }
}

async fn states_in_bucket(mount: &Arc<Mount>, job: &Job) -> OutputStates {
    let folder = Path::new(OsStr::from_bytes(job.key.path.as_bytes())).parent().unwrap_or(Path::new(""));
    let mut outputs = Vec::new();
    for output in &job.outputs {
        let path = RelPath::new(folder.join(OsStr::from_bytes(output.name.as_bytes())).as_os_str().as_bytes());
        let state = state(output, MediaFile::below(mount, &path).hash().await);
        outputs.push(VerifiedOutput { path, state });
    }
    let recording = MediaFile::of(mount, job).presence(mount).await;
    OutputStates { outputs, recording }
}

fn state(output: &Output, read: io::Result<Hash>) -> OutputState {
    match read {
        Ok(hash) if hash == output.hash => OutputState::Unchanged,
        Ok(_) => OutputState::Edited,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            OutputState::Missing
        }
        Err(_) => OutputState::Unreadable,
    }
}

/// Writes the missing outputs of a job again. Existing files are not changed.
///
/// # Errors
/// A message with the reason.
async fn restored(handler: &CommandHandler, mount: &Arc<Mount>, job: &Job, missing: &[Output]) -> Result<(), String> {
    let Stage::Written { purchase_key, transcription, .. } = &job.stage else { return Ok(()) };
    let results = Arc::new((handler.results)(&purchase_key.service));
    let tools = &handler.writing;
    let context = write::WriteContext {
        store: &*handler.store,
        clock: &*handler.clock,
        results: &results,
        params: &tools.params,
        syncs: &tools.syncs,
        writing: &tools.writing,
    };
    match write::restore::restore(&context, mount, job, missing).await {
        Err(NotRestored::NoResult) => {
            download_again(handler, mount, job, (purchase_key, transcription)).await?;
            write::restore::restore(&context, mount, job, missing).await.map_err(|error| error.to_string())
        }
        restored => restored.map_err(|error| error.to_string()),
    }
}

/// Downloads the result from the service again, which costs nothing, and keeps it. A result that was joined from those
/// of parts is joined again; the parts that are missing are downloaded.
///
/// # Errors
/// A message with the reason.
async fn download_again(
    handler: &CommandHandler,
    mount: &Mount,
    job: &Job,
    (purchase_key, transcription): (&PurchaseKey, &TranscriptionId),
) -> Result<(), String> {
    let service = &purchase_key.service;
    let Some(split) = job.split.as_deref().filter(|_| transcription.is_joined()) else {
        return download(handler, job, purchase_key, transcription).await;
    };
    // Each turn downloads one part, or ends.
    let results = Arc::new((handler.results)(service));
    let (clock, params) = (&*handler.clock, &handler.writing.params);
    let context = JoinContext { clock, results: &results, params, mount: Some(mount) };
    for _ in 0..=split.count() {
        let lost = join_kept(&context, job, split, purchase_key, transcription).await;
        let Some(lost) = lost.map_err(|fault| fault.words)? else { return Ok(()) };
        let part = job.split.iter().flat_map(|split| split.bought()).find(|(range, _)| *range == lost);
        let Some((range, part)) = part else { break };
        let of_part = PurchaseKey { part: Some(range), ..purchase_key.clone() };
        download(handler, job, &of_part, &part.transcription).await?;
    }
    Err("its kept results are missing and cannot be kept: check the state directory".to_owned())
}

async fn download(
    handler: &CommandHandler,
    job: &Job,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
) -> Result<(), String> {
    let (results, id) = ((handler.results)(&purchase_key.service), transcription.clone());
    let lost = match blocking(move || results.removed_at(&id)).await {
        Some(at) => format!("was {}", describe_removal(at)),
        None => "is missing".to_owned(),
    };
    let raw = read_answer(handler, job, purchase_key, transcription).await.map_err(|why| {
        format!(
            "its kept result {lost}, and {why}; scribed buys nothing by itself: `scribed retry --fresh --pay-again {}` \
             buys it again",
            job.id
        )
    })?;
    let (results, id) = ((handler.results)(&purchase_key.service), transcription.clone());
    blocking(move || save(&results, &id, &raw)).await
}
