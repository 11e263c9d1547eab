//! Pages of jobs, and one job with its history.

use crate::blocking::{blocking, within};
use crate::control::explain::facts::facts;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{
    ChangedOutput, CommandRefusal, JobPage, JobSelector, Origin, OutputDifference, Selection, Shown,
};
use crate::domain::job::Job;
use crate::domain::names::{JobId, Timestamp, TranscriptionId};
use crate::domain::stage::{Skip, Stage};
use crate::domain::token::PurchaseKey;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::write::rerender;
use crate::pipeline::stages::write::rerender::FileState;
use crate::source::metadata::file_look::FileLook;
use crate::store::contract::{Filter, JobSubset};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of jobs per page, so that memory use does not grow with the number of jobs on either side.
const PAGE_SIZE: usize = 1_000;

/// The maximum number of jobs per page if their outputs are read.
const PAGE_SIZE_TO_LOOK: usize = 200;

/// How many jobs' outputs are read at a time.
const LOOKS: usize = 8;

/// The time limit for looking at a file: a dead file server never answers, and a person waits.
const TIME_OUT: Duration = Duration::from_secs(2);

/// The time limit for reading the outputs of one job.
const LOOK_TIME_OUT: Duration = Duration::from_secs(30);

/// Returns the next page of the selected jobs. The page may be short or empty though more jobs follow, so that no
/// request takes long.
pub async fn page(handler: &CommandHandler, selection: &Selection) -> Result<JobPage, CommandRefusal> {
    let limit = if selection.edited { PAGE_SIZE_TO_LOOK } else { PAGE_SIZE };
    let filter = Filter { stages: selection.stages.clone(), after: selection.after, limit };
    let subset = match selection {
        Selection { forgotten: true, .. } => Some(JobSubset::Forgotten),
        Selection { incomplete: true, .. } => Some(JobSubset::Incomplete),
        Selection { suspect: true, .. } => Some(JobSubset::Suspect),
        _ => None,
    };
    let mut jobs = match subset {
        Some(subset) => handler.store.jobs_in(subset, selection.after, limit).await?,
        None => handler.store.page(&filter).await?,
    };
    let next = jobs.last().filter(|_| jobs.len() == limit).map(|job| job.id);
    jobs.retain(|job| is_wanted(job, selection));
    let changed = if selection.edited { changed_outputs(handler, &jobs).await } else { BTreeMap::new() };
    jobs.retain(|job| !selection.edited || changed.contains_key(&job.id));
    let mut shown = Vec::with_capacity(jobs.len());
    for job in jobs {
        shown.push(handler.for_display(job).await?);
    }
    Ok(JobPage { jobs: shown, next, changed })
}

/// Returns the changed outputs, for those jobs that have some. A job whose folder is away or does not answer has
/// none.
async fn changed_outputs(handler: &CommandHandler, jobs: &[Job]) -> BTreeMap<JobId, Vec<ChangedOutput>> {
    let each: Vec<_> = jobs.iter().map(|job| changed_of(handler, job)).collect();
    let found: Vec<_> = futures_util::stream::iter(each).buffered(LOOKS).collect().await;
    found.into_iter().flatten().collect()
}

/// Returns the changed outputs of a job; `None` if it has none.
pub(crate) async fn changed_of(handler: &CommandHandler, job: &Job) -> Option<(JobId, Vec<ChangedOutput>)> {
    let mount = handler.mounts.get(&job.key.source)?;
    mount.there().await.ok()?;
    let known = tokio::select! {
        biased;
        known = rerender::look(mount, job) => known,
        () = handler.clock.sleep(LOOK_TIME_OUT) => return None,
    };
    let changed = known.iter().filter_map(|known| {
        let change = match known.state {
            FileState::Edited if rerender::may_be_text(mount, job, &known.output) => OutputDifference::EditedText,
            FileState::Edited => OutputDifference::Edited,
            FileState::NotAFile(obstacle) => OutputDifference::NotAFile(obstacle),
            FileState::Ours(_) | FileState::Missing | FileState::Unreadable => return None,
        };
        Some(ChangedOutput { path: rerender::shown_path(mount, job, &known.output), change })
    });
    let changed: Vec<ChangedOutput> = changed.collect();
    (!changed.is_empty()).then_some((job.id, changed))
}

fn is_wanted(job: &Job, selection: &Selection) -> bool {
    let fault = match &job.stage {
        Stage::Failed { fault, .. } => Some(fault),
        _ => job.fault.as_ref(),
    };
    (!selection.ordered || job.row.is_some())
        && !(selection.unacknowledged && job.acknowledged.is_some())
        && selection.has_time_of(job)
        && selection.manifest.as_ref().is_none_or(|manifest| job.manifest() == Some(manifest))
        && selection.source.as_ref().is_none_or(|source| *source == job.key.source)
        && selection.kind.as_ref().is_none_or(|kind| fault.is_some_and(|fault| fault.kind.name() == kind))
}

/// Returns one job with its history.
///
/// # Errors
/// [`CommandRefusal::Usage`] if there is no such job; errors of the store.
pub async fn show(handler: &CommandHandler, wanted: &JobSelector) -> Result<Shown, CommandRefusal> {
    let job = handler.job(wanted).await?;
    let history = handler.store.history(job.id).await?;
    let paused = handler.store.pauses().await?.for_source(&job.key.source, handler.clock.now());
    let origin = origin(handler, &job).await?;
    let is_gone = is_gone(handler, &job).await;
    // Whoever asks waits little longer.
    let moved_to = match is_gone {
        true => soon(handler, moved_to(handler, &job)).await.transpose()?.flatten(),
        false => None,
    };
    let service = Some(handler.routing.service_of(&job.route_key()).clone());
    let job = handler.for_display(job).await?;
    let facts = facts(handler, &job).await?;
    let changed = soon(handler, changed_of(handler, &job)).await.flatten();
    let changed = changed.map(|(_, changed)| changed).unwrap_or_default();
    let result_removed = result_removed(handler, &job).await;
    Ok(Shown { changed, paused, job, history, is_gone, origin, moved_to, facts, service, result_removed })
}

/// Returns when the result of a written job was removed for its age.
async fn result_removed(handler: &CommandHandler, job: &Job) -> Option<Timestamp> {
    let Stage::Written { purchase_key, transcription, .. } = &job.stage else { return None };
    let (results, id) = ((handler.results)(&purchase_key.service), transcription.clone());
    blocking(move || results.removed_at(&id)).await
}

/// Returns what this work finds within [`TIME_OUT`]: without it the rest is shown.
async fn soon<T>(handler: &CommandHandler, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = handler.clock.sleep(TIME_OUT) => None,
    }
}

/// Returns what was bought for a job and its result. A job that ended because its recording is gone has both only on
/// record.
async fn result_of(
    handler: &CommandHandler,
    job: &Job,
) -> Result<Option<(PurchaseKey, TranscriptionId)>, CommandRefusal> {
    if let (Some(purchase_key), Some(transcription)) = (job.stage.purchase_key(), job.stage.transcription()) {
        return Ok(Some((purchase_key.clone(), transcription.clone())));
    }
    let is_gone = matches!(job.stage, Stage::Skipped { why: Skip::RecordingGone });
    let Some(purchase_key) = job.made_from.as_ref().filter(|_| is_gone) else { return Ok(None) };
    let bought = handler.store.purchase(purchase_key).await?;
    Ok(bought.map(|bought| (purchase_key.clone(), bought.transcription)))
}

/// Finds a job with the same transcription whose file exists, for a job whose file is gone. It reads all jobs, which takes
/// seconds in a large queue, but only if another job has a file of the same size, as that of a moved recording has.
async fn moved_to(handler: &CommandHandler, job: &Job) -> Result<Option<Origin>, CommandRefusal> {
    let Some((purchase_key, transcription)) = result_of(handler, job).await? else { return Ok(None) };
    if !handler.store.may_have_duplicate(job.seen.size, job.id).await? {
        return Ok(None);
    }
    let shares = |other: &Job| {
        let has =
            other.stage.transcription() == Some(&transcription) && other.stage.purchase_key() == Some(&purchase_key);
        has && other.id != job.id
    };
    let mut filter = Filter { stages: Vec::new(), after: None, limit: PAGE_SIZE };
    loop {
        let jobs = handler.store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(None) };
        filter.after = Some(last.id);
        for other in jobs.into_iter().filter(shares) {
            if !is_gone(handler, &other).await {
                return Ok(Some(Origin { job: other.id, key: other.key, is_gone: false }));
            }
        }
    }
}

/// Returns the job for which the transcription was bought, if that is another one.
async fn origin(handler: &CommandHandler, job: &Job) -> Result<Option<Origin>, CommandRefusal> {
    let (Some(purchase_key), Some(transcription)) = (job.stage.purchase_key(), job.stage.transcription()) else {
        return Ok(None);
    };
    let bought = handler.store.purchase(purchase_key).await?.filter(|bought| bought.transcription == *transcription);
    let Some(by) = bought.and_then(|bought| bought.by).filter(|by| *by != job.id) else { return Ok(None) };
    let Some(first) = handler.store.job(by).await? else { return Ok(None) };
    Ok(Some(Origin { job: first.id, is_gone: is_gone(handler, &first).await, key: first.key }))
}

/// Whether a recording is known to be gone. `false` if its folder is not available or does not answer in time.
async fn is_gone(handler: &CommandHandler, job: &Job) -> bool {
    let Some(mount) = handler.mounts.get(&job.key.source).map(Arc::clone) else { return false };
    let path = match MediaFile::of(&mount, job) {
        MediaFile::File { path, .. } => path,
        MediaFile::Remote(_) => return false,
        medium @ MediaFile::Object { .. } => {
            let looked = soon(handler, medium.look()).await;
            return matches!(looked, Some(Ok(FileLook::Nothing))) && mount.there().await.is_ok();
        }
    };
    let look = move || {
        path.stat().is_err_and(|error| error.kind() == ErrorKind::NotFound) && mount.check_writable_blocking().is_ok()
    };
    within(&*handler.clock, TIME_OUT, look).await.unwrap_or(false)
}
