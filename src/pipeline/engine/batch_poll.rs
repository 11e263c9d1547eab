//! Reads pages of the service's list instead of polling many transcriptions one by one. The list only hints that a
//! transcription has not ended: a job that the list does not show is polled by itself, and after a few such hints in
//! a row every job is polled by itself.

use super::Engine;
use super::schedule_list_scan::still_ours;
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

/// Number of due polls above which a batch poll is used, and the number of polls that one page should save to be
/// worth its size.
pub(super) const WORTH_A_PAGE: usize = 10;

/// Most due polls that one batch poll covers.
pub(super) const GLANCED_AT_ONCE: usize = 500;

/// Items on a page of the list.
const PAGE: u32 = 100;

/// Most pages that one batch poll reads.
const PAGES: usize = 5;

/// Most concurrent reads of submitted transcriptions, including the reads within a batch poll.
pub(super) const READS: usize = 16;

/// Most concurrent commits of one batch. Concurrent commits share their syncs to disk.
const COMMITS: usize = 64;

/// How many times in a row the list is believed that a transcription has not ended. Some jobs get one or two times
/// more, so that not all jobs are read at the same time.
const BELIEVED: u32 = 3;

/// Most jobs that are remembered. At this number all of them are forgotten.
const MOST_REMEMBERED: usize = 50_000;

#[derive(Default)]
pub(super) struct BatchPolls(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// How many times in a row the list was believed about a job since the job was last polled by itself.
    believed: HashMap<JobId, u32>,
}

type ListedStatuses = HashMap<TranscriptionId, Status>;

impl BatchPolls {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the status of a transcription that the list shows as queued or processing; `None` if the list does not
    /// show that, or was believed often enough.
    fn believe(&self, job: &Job, shown: &ListedStatuses) -> Option<Status> {
        let status = unfinished_status(job, shown).cloned();
        let most = BELIEVED + (job.id.0 % 3) as u32;
        let mut seen = self.seen();
        if seen.believed.len() >= MOST_REMEMBERED {
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

fn unfinished_status<'s>(job: &Job, shown: &'s ListedStatuses) -> Option<&'s Status> {
    let status = job.stage.transcription().and_then(|id| shown.get(id));
    status.filter(|status| matches!(status, Status::Queued | Status::Processing))
}

impl Engine {
    /// Polls many jobs at once and renews their leases meanwhile.
    pub(super) async fn batch_poll(self: Arc<Self>, claims: Vec<Claimed>) -> Result<(), StoreError> {
        let leased = claims.clone();
        tokio::select! {
            biased;
            polled = Arc::clone(&self).poll_by_list(claims) => polled,
            lost = self.keep_all(&leased) => lost,
        }
    }

    async fn poll_by_list(self: Arc<Self>, claims: Vec<Claimed>) -> Result<(), StoreError> {
        let pages = (claims.len() / WORTH_A_PAGE).clamp(1, PAGES);
        let Some(shown) = self.listed_statuses(&claims, pages).await else {
            return self.commit_all(claims).await;
        };
        let parts = self.parts();
        let now = parts.clock.now();
        let (mut to_read, mut pending) = (Vec::new(), Vec::new());
        let useful = claims.iter().filter(|claim| unfinished_status(&claim.job, &shown).is_some()).count();
        for claim in claims {
            let is_here = wait::at_other_address(&claim.job, parts.client.identity()).is_none();
            let Some(status) = self.batch_polls.believe(&claim.job, &shown).filter(|_| is_here) else {
                to_read.push(claim);
                continue;
            };
            let outcome = wait::pending(&self.wait_context(&parts), &claim.job, status.as_str(), false, now);
            if let StageOutcome::Sleep { until, reason } = outcome {
                self.count_wait(&claim.job, reason.as_ref());
                pending.push(Claimed { job: claim.job.deferred(Some(until), reason), ..claim });
            }
        }
        let saved = pending.len();
        self.commit_all(pending).await?;
        let honoured = shown.values().all(|status| matches!(status, Status::Queued | Status::Processing));
        self.batch_polled(honoured && useful >= pages * 2);
        tracing::debug!(saved, asked = to_read.len(), "read the service's list instead of polling each transcription");
        let reads = stream::iter(to_read.into_iter().map(Ok::<_, StoreError>));
        reads.try_for_each_concurrent(READS, |claim| Arc::clone(&self).read_or_release(claim)).await
    }

    async fn read_or_release(self: Arc<Self>, claim: Claimed) -> Result<(), StoreError> {
        match self.gate.permit(RequestKind::Read) {
            Permit::Granted => still_ours(self.run_claim(claim).await),
            Permit::WaitUntil(_) | Permit::Withheld => self.commit_all(vec![claim]).await,
        }
    }

    /// Commits the jobs as they are and releases their leases. Jobs that are still due wait for the end of the
    /// outage.
    async fn commit_all(&self, claims: Vec<Claimed>) -> Result<(), StoreError> {
        let claims = stream::iter(claims.into_iter().map(Ok::<_, StoreError>));
        let commit = async |claim: Claimed| still_ours(self.commit(&claim.lease, &claim.job).await);
        claims.try_for_each_concurrent(COMMITS, commit).await
    }

    /// Reads up to `pages` pages of the list. The query asks only for queued and processing transcriptions: records
    /// of ended ones contain whole results. A record that moves between pages meanwhile costs only one more poll.
    /// Returns `None` if the list cannot be read now.
    async fn listed_statuses(&self, claims: &[Claimed], pages: usize) -> Option<ListedStatuses> {
        let wanted = |id: &TranscriptionId| claims.iter().any(|claim| claim.job.stage.transcription() == Some(id));
        let (mut shown, mut found) = (ListedStatuses::new(), 0);
        let mut query =
            ListQuery { limit: PAGE, status: vec![Status::Queued, Status::Processing], ..ListQuery::default() };
        let client = Arc::clone(&self.parts().client);
        for _ in 0..pages {
            let page = match client.list(&query).await {
                Ok(page) => page,
                Err(ListFault::None(_)) => break,
                Err(ListFault::Now(fault)) => {
                    self.observe_fault(&client, &fault);
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
