//! Jobs, page by page, and one job whole.

use super::hands::Hands;
use super::request::{Page, Refusal, Selection, Shown, Wanted};
use crate::domain::job::Job;
use crate::domain::stage::Stage;
use crate::store::contract::Filter;

/// Jobs of a page at most: memory stays the same for a million, on both sides.
const PAGE: usize = 1_000;

/// The next page of those that are wanted. It may hold fewer than there are, so that no request lasts.
///
/// # Errors
/// The store's.
pub async fn page(hands: &Hands, selection: &Selection) -> Result<Page, Refusal> {
    let filter = Filter { stages: selection.stages.clone(), after: selection.after, limit: PAGE };
    let mut jobs = hands.store.page(&filter).await?;
    let next = jobs.last().filter(|_| jobs.len() == PAGE).map(|job| job.id);
    jobs.retain(|job| is_wanted(job, selection));
    Ok(Page { jobs: jobs.into_iter().map(|job| hands.told(job)).collect(), next })
}

fn is_wanted(job: &Job, selection: &Selection) -> bool {
    let fault = match &job.stage {
        Stage::Failed { fault, .. } => Some(fault),
        _ => job.fault.as_ref(),
    };
    selection.source.as_ref().is_none_or(|source| *source == job.key.source)
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
    Ok(Shown { paused, job: hands.told(job), history })
}
