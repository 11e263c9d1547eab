//! Jobs, page by page, and one job whole.

use crate::blocking::within;
use crate::control::explain::facts::facts;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, JobPage, JobSelector, Origin, Selection, Shown};
use crate::domain::job::Job;
use crate::domain::stage::Stage;
use crate::pipeline::media_file::MediaFile;
use crate::source::metadata::file_look::FileLook;
use crate::store::contract::{Filter, JobSubset};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// Jobs of a page at most: memory stays the same for a million, on both sides.
const PAGE: usize = 1_000;

/// A dead server hangs for ever, and a person waits.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// The next page of those that are wanted. It may hold fewer than there are, so that no request lasts.
///
/// # Errors
/// The store's.
pub async fn page(handler: &CommandHandler, selection: &Selection) -> Result<JobPage, CommandRefusal> {
    let filter = Filter { stages: selection.stages.clone(), after: selection.after, limit: PAGE };
    let those = match (selection.forgotten, selection.incomplete) {
        (true, _) => Some(JobSubset::Forgotten),
        (false, true) => Some(JobSubset::Incomplete),
        (false, false) => None,
    };
    let mut jobs = match those {
        Some(those) => handler.store.jobs_in(those, selection.after, PAGE).await?,
        None => handler.store.page(&filter).await?,
    };
    let next = jobs.last().filter(|_| jobs.len() == PAGE).map(|job| job.id);
    jobs.retain(|job| is_wanted(job, selection));
    let mut told = Vec::with_capacity(jobs.len());
    for job in jobs {
        told.push(handler.for_display(job).await?);
    }
    Ok(JobPage { jobs: told, next })
}

fn is_wanted(job: &Job, selection: &Selection) -> bool {
    let fault = match &job.stage {
        Stage::Failed { fault, .. } => Some(fault),
        _ => job.fault.as_ref(),
    };
    (!selection.ordered || job.row.is_some())
        && !(selection.unacknowledged && job.acknowledged.is_some())
        && selection.source.as_ref().is_none_or(|source| *source == job.key.source)
        && selection.kind.as_ref().is_none_or(|kind| fault.is_some_and(|fault| fault.kind.name() == kind))
}

/// One job and its history.
///
/// # Errors
/// [`CommandRefusal::Usage`] where there is none; the store's.
pub async fn show(handler: &CommandHandler, wanted: &JobSelector) -> Result<Shown, CommandRefusal> {
    let job = handler.job(wanted).await?;
    let history = handler.store.history(job.id).await?;
    let paused = handler.store.pauses().await?.for_source(&job.key.source, handler.clock.now());
    let origin = origin(handler, &job).await?;
    let is_gone = is_gone(handler, &job).await;
    let moved_to = if is_gone { moved_to(handler, &job).await? } else { None };
    let service = Some(handler.routing.service_of(&job.route_key()).clone());
    let job = handler.for_display(job).await?;
    let facts = facts(handler, &job).await?;
    Ok(Shown { paused, job, history, is_gone, origin, moved_to, facts, service })
}

/// The job of a file that is there and has the transcription of one that is gone. Every row is looked at: a
/// person waits for that once in a while.
async fn moved_to(handler: &CommandHandler, job: &Job) -> Result<Option<Origin>, CommandRefusal> {
    let (Some(order), Some(transcription)) = (job.stage.purchase_key(), job.stage.transcription()) else {
        return Ok(None);
    };
    let shares = |other: &Job| {
        let has = other.stage.transcription() == Some(transcription) && other.stage.purchase_key() == Some(order);
        has && other.id != job.id
    };
    let mut filter = Filter { stages: Vec::new(), after: None, limit: PAGE };
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

/// The job that its transcription was bought for, where that is another one.
async fn origin(handler: &CommandHandler, job: &Job) -> Result<Option<Origin>, CommandRefusal> {
    let (Some(order), Some(transcription)) = (job.stage.purchase_key(), job.stage.transcription()) else {
        return Ok(None);
    };
    let bought = handler.store.purchase(order).await?.filter(|bought| bought.transcription == *transcription);
    let Some(by) = bought.and_then(|bought| bought.by).filter(|by| *by != job.id) else { return Ok(None) };
    let Some(first) = handler.store.job(by).await? else { return Ok(None) };
    Ok(Some(Origin { job: first.id, is_gone: is_gone(handler, &first).await, key: first.key }))
}

/// Whether a recording is seen not to be there. A folder that is away, or hangs, tells nothing.
async fn is_gone(handler: &CommandHandler, job: &Job) -> bool {
    let Some(mount) = handler.mounts.get(&job.key.source).map(Arc::clone) else { return false };
    let path = match MediaFile::of(&mount, job) {
        MediaFile::File { path, .. } => path,
        MediaFile::Remote(_) => return false,
        medium @ MediaFile::Object { .. } => {
            return tokio::select! {
                biased;
                looked = medium.look() => matches!(looked, Ok(FileLook::Nothing)) && mount.there().await.is_ok(),
                () = handler.clock.sleep(ANSWERS_WITHIN) => false,
            };
        }
    };
    let look = move || {
        path.stat().is_err_and(|error| error.kind() == ErrorKind::NotFound) && mount.check_writable_blocking().is_ok()
    };
    within(&*handler.clock, ANSWERS_WITHIN, look).await.unwrap_or(false)
}
