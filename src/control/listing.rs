//! Jobs, page by page, and one job whole.

use super::facts::facts;
use super::hands::Hands;
use super::request::{Origin, Page, Refusal, Selection, Shown, Wanted};
use crate::domain::job::Job;
use crate::domain::stage::Stage;
use crate::pipeline::blocking::within;
use crate::pipeline::medium::Medium;
use crate::source::stamp::Look;
use crate::store::contract::{Filter, Those};
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
pub async fn page(hands: &Hands, selection: &Selection) -> Result<Page, Refusal> {
    let filter = Filter { stages: selection.stages.clone(), after: selection.after, limit: PAGE };
    let those = match (selection.forgotten, selection.incomplete) {
        (true, _) => Some(Those::Forgotten),
        (false, true) => Some(Those::Incomplete),
        (false, false) => None,
    };
    let mut jobs = match those {
        Some(those) => hands.store.those(those, selection.after, PAGE).await?,
        None => hands.store.page(&filter).await?,
    };
    let next = jobs.last().filter(|_| jobs.len() == PAGE).map(|job| job.id);
    jobs.retain(|job| is_wanted(job, selection));
    let mut told = Vec::with_capacity(jobs.len());
    for job in jobs {
        told.push(hands.told(job).await?);
    }
    Ok(Page { jobs: told, next })
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
/// [`Refusal::Usage`] where there is none; the store's.
pub async fn show(hands: &Hands, wanted: &Wanted) -> Result<Shown, Refusal> {
    let job = hands.job(wanted).await?;
    let history = hands.store.history(job.id).await?;
    let paused = hands.store.pauses().await?.of(&job.key.source, hands.clock.now());
    let origin = origin(hands, &job).await?;
    let is_gone = is_gone(hands, &job).await;
    let moved_to = if is_gone { moved_to(hands, &job).await? } else { None };
    let service = Some(hands.homes.of(&job.group()).clone());
    let job = hands.told(job).await?;
    let facts = facts(hands, &job).await?;
    Ok(Shown { paused, job, history, is_gone, origin, moved_to, facts, service })
}

/// The job of a file that is there and has the transcription of one that is gone. Every row is looked at: a
/// person waits for that once in a while.
async fn moved_to(hands: &Hands, job: &Job) -> Result<Option<Origin>, Refusal> {
    let (Some(order), Some(transcription)) = (job.stage.order(), job.stage.transcription()) else { return Ok(None) };
    let shares = |other: &Job| {
        let has = other.stage.transcription() == Some(transcription) && other.stage.order() == Some(order);
        has && other.id != job.id
    };
    let mut filter = Filter { stages: Vec::new(), after: None, limit: PAGE };
    loop {
        let jobs = hands.store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(None) };
        filter.after = Some(last.id);
        for other in jobs.into_iter().filter(shares) {
            if !is_gone(hands, &other).await {
                return Ok(Some(Origin { job: other.id, key: other.key, is_gone: false }));
            }
        }
    }
}

/// The job that its transcription was bought for, where that is another one.
async fn origin(hands: &Hands, job: &Job) -> Result<Option<Origin>, Refusal> {
    let (Some(order), Some(transcription)) = (job.stage.order(), job.stage.transcription()) else { return Ok(None) };
    let bought = hands.store.bought(order).await?.filter(|bought| bought.transcription == *transcription);
    let Some(by) = bought.and_then(|bought| bought.by).filter(|by| *by != job.id) else { return Ok(None) };
    let Some(first) = hands.store.job(by).await? else { return Ok(None) };
    Ok(Some(Origin { job: first.id, is_gone: is_gone(hands, &first).await, key: first.key }))
}

/// Whether a recording is seen not to be there. A folder that is away, or hangs, tells nothing.
async fn is_gone(hands: &Hands, job: &Job) -> bool {
    let Some(mount) = hands.mounts.get(&job.key.source).map(Arc::clone) else { return false };
    let path = match Medium::of(&mount, job) {
        Medium::File { path, .. } => path,
        Medium::Remote(_) => return false,
        medium @ Medium::Object { .. } => {
            return tokio::select! {
                biased;
                looked = medium.look() => matches!(looked, Ok(Look::Nothing)) && mount.there().await.is_ok(),
                () = hands.clock.sleep(ANSWERS_WITHIN) => false,
            };
        }
    };
    let look =
        move || path.stat().is_err_and(|error| error.kind() == ErrorKind::NotFound) && mount.there_blocking().is_ok();
    within(&*hands.clock, ANSWERS_WITHIN, look).await.unwrap_or(false)
}
