//! One page of the service's list instead of many questions: it tells which of many are still on their way.
//! Only a hint: what it does not show is asked for itself, and what it shows is asked for itself too before
//! long.

use super::Engine;
use super::unknown_creates::still_ours;
use crate::backpressure::Permit;
use crate::backpressure::service_gate::{Observation, RequestKind};
use crate::client::contract::ListFault;
use crate::domain::job::Job;
use crate::domain::names::{JobId, TranscriptionId};
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::wait;
use crate::store::contract::{Claimed, StoreError};
use crate::wire::page::ListQuery;
use crate::wire::record::Status;
use futures_util::{TryStreamExt as _, stream};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More looks than this due at once, and one page is asked for first. A page that saves fewer questions
/// than this does not pay for what it weighs.
pub(super) const WORTH_A_PAGE: usize = 10;

/// Due looks that one glance is taken at.
pub(super) const GLANCED_AT_ONCE: usize = 500;

/// Items of a page.
const PAGE: u32 = 100;

/// Pages of one glance.
const PAGES: usize = 5;

/// Reads at once of what has been submitted, those of a glance included: of what the list does not show.
pub(super) const READS: usize = 16;

/// Commits at once: they share their syncs.
const COMMITS: usize = 64;

/// So often in a row the list's word is taken for that a transcription is still on its way; for some of
/// them once or twice more, so that they are not all asked for at once.
const BELIEVED: u32 = 3;

/// Jobs that are remembered at most.
const MOST: usize = 50_000;

#[derive(Default)]
pub(super) struct BatchPolls(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// How often the list was believed about a job since it was last read.
    believed: HashMap<JobId, u32>,
}

type Shown = HashMap<TranscriptionId, Status>;

impl BatchPolls {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the list shows as on its way, unless that was believed often enough.
    fn believe(&self, job: &Job, shown: &Shown) -> Option<Status> {
        let status = on_its_way(job, shown).cloned();
        let most = BELIEVED + (job.id.0 % 3) as u32;
        let mut seen = self.seen();
        if seen.believed.len() >= MOST {
            seen.believed.clear();
        }
        let times = seen.believed.entry(job.id).or_default();
        *times += 1;
        if status.is_none() || *times > most {
            seen.believed.remove(&job.id);
            return None;
        }
        status
    }
}

fn on_its_way<'s>(job: &Job, shown: &'s Shown) -> Option<&'s Status> {
    let status = job.stage.transcription().and_then(|id| shown.get(id));
    status.filter(|status| matches!(status, Status::Queued | Status::Processing))
}

impl Engine {
    /// Looks at many at once.
    pub(super) async fn batch_poll(self: Arc<Self>, claims: Vec<Claimed>) -> Result<(), StoreError> {
        let all = claims.clone();
        tokio::select! {
            biased;
            looked = Arc::clone(&self).glance_at(claims) => looked,
            lost = self.keep_all(&all) => lost,
        }
    }

    async fn glance_at(self: Arc<Self>, claims: Vec<Claimed>) -> Result<(), StoreError> {
        let pages = (claims.len() / WORTH_A_PAGE).clamp(1, PAGES);
        let Some(shown) = self.shown(&claims, pages).await else {
            return self.put(claims).await;
        };
        let parts = self.parts();
        let now = parts.clock.now();
        let (mut rest, mut pending) = (Vec::new(), Vec::new());
        let useful = claims.iter().filter(|claim| on_its_way(&claim.job, &shown).is_some()).count();
        for claim in claims {
            let is_here = wait::at_other_address(&claim.job, parts.client.identity()).is_none();
            let Some(status) = self.batch_polls.believe(&claim.job, &shown).filter(|_| is_here) else {
                rest.push(claim);
                continue;
            };
            let outcome = wait::pending(&self.wait_context(&parts), &claim.job, status.as_str(), false, now);
            if let StageOutcome::Sleep { until, reason } = outcome {
                pending.push(Claimed { job: claim.job.deferred(Some(until), reason), ..claim });
            }
        }
        let saved = pending.len();
        self.put(pending).await?;
        let honoured = shown.values().all(|status| matches!(status, Status::Queued | Status::Processing));
        self.batch_polled(honoured && useful >= pages * 2);
        tracing::debug!(saved, asked = rest.len(), "read the service's list instead of polling each transcription");
        let reads = stream::iter(rest.into_iter().map(Ok::<_, StoreError>));
        reads.try_for_each_concurrent(READS, |claim| Arc::clone(&self).read_or_rest(claim)).await
    }

    async fn read_or_rest(self: Arc<Self>, claim: Claimed) -> Result<(), StoreError> {
        match self.gate.permit(RequestKind::Read) {
            Permit::Granted => still_ours(self.run_claim(claim).await),
            Permit::WaitUntil(_) | Permit::Withheld => self.put(vec![claim]).await,
        }
    }

    /// As they are. What is still due waits for the end of the outage.
    async fn put(&self, claims: Vec<Claimed>) -> Result<(), StoreError> {
        let claims = stream::iter(claims.into_iter().map(Ok::<_, StoreError>));
        let put = async |claim: Claimed| still_ours(self.commit(&claim.lease, &claim.job).await);
        claims.try_for_each_concurrent(COMMITS, put).await
    }

    /// What the list has of these. Only what is on its way is asked for: with what has ended come whole
    /// results. That a page shifts under way only costs a question more. `None` where it cannot be read now.
    async fn shown(&self, claims: &[Claimed], pages: usize) -> Option<Shown> {
        let wanted = |id: &TranscriptionId| claims.iter().any(|claim| claim.job.stage.transcription() == Some(id));
        let (mut shown, mut found) = (Shown::new(), 0);
        let mut query =
            ListQuery { limit: PAGE, status: vec![Status::Queued, Status::Processing], ..ListQuery::default() };
        let way = Arc::clone(&self.parts().client);
        for _ in 0..pages {
            let page = match way.list(&query).await {
                Ok(page) => page,
                Err(ListFault::None(_)) => break,
                Err(ListFault::Now(fault)) => {
                    self.observe_fault(&way, &fault);
                    self.batch_polled(false);
                    return None;
                }
            };
            query.offset += page.items.len() as u64;
            let last = !page.more || page.items.is_empty();
            for item in page.items {
                found += usize::from(wanted(&item.id));
                shown.insert(item.id, item.status);
            }
            if last || found >= claims.len() {
                break;
            }
        }
        Some(shown)
    }

    fn batch_polled(&self, paid: bool) {
        let poll_max = self.parts().terms.poll.max;
        self.observe(Observation::BatchPolled { paid, poll_max });
    }
}
