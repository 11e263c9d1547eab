//! Removes the kept results that `[state] keep_results` gives up: once a day while a daemon runs, and at the end of a
//! `once`. Which these are is decided by `domain/result_retention.rs`.
//!
//! A pass that is killed has removed some of them, and the next one goes on. A job that begins to use a result in this
//! moment reads it from the service, like a later copy of the recording.

use super::last_retention::{LastRetention, REMOVAL_INTERVAL};
use crate::blocking::blocking;
use crate::clock::Clock;
use crate::config::model::Config;
use crate::control::transport::handler::KeptOf;
use crate::domain::job::Job;
use crate::domain::names::{JobId, Timestamp};
use crate::domain::result_retention::{RemovableResults, ResultName, retention_date};
use crate::store::contract::{Filter, Store, StoreError};
use std::sync::Arc;

/// The number of jobs that are read at once.
const PAGE_SIZE: usize = 1_000;

/// The number of results that are considered at once: more are considered in several rounds, each of which reads all
/// jobs, so that a queue of millions needs little memory.
const ROUND_SIZE: usize = 100_000;

/// The name of the file in the state directory.
const NAME: &str = "last-retention.json";

/// What a pass works with.
pub(super) struct ResultRetention<'a> {
    pub store: &'a dyn Store,
    pub clock: &'a dyn Clock,
    pub results: KeptOf,
    pub config: &'a Config,
    /// When this process began.
    pub begun: Timestamp,
}

impl ResultRetention<'_> {
    /// Removes old results once a day, and never ends.
    pub async fn remove_daily(&self) -> Result<(), StoreError> {
        loop {
            self.remove_if_due().await?;
            self.clock.sleep(REMOVAL_INTERVAL).await;
        }
    }

    /// Removes old results, unless that was done within a day. What cannot be removed is logged and does no harm.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn remove_if_due(&self) -> Result<(), StoreError> {
        let Some(keep) = self.config.keep_results else { return Ok(()) };
        let (file, now) = (self.config.state.join(NAME), self.clock.moment().earlier());
        let last = LastRetention::load(&file);
        if last.is_some_and(|last| last.suffices(keep, now)) {
            return Ok(());
        }
        let date = match last {
            Some(last) => last.next_date(now),
            None => match self.newest_change_before_this_process().await? {
                Some(newest) => retention_date(now, None, newest),
                // All jobs are new.
                None => return Ok(()),
            },
        };
        let Some(removed) = self.remove_before(date.saturating_sub(keep), now).await? else { return Ok(()) };
        if removed > 0 {
            tracing::info!(results = removed, "scribed removed kept results that are older than `keep_results`");
        }
        if let Err(error) = LastRetention::ended(last.as_ref(), date, keep, now).save(&file) {
            tracing::warn!(%error, "cannot save in {} when old results were removed; scribed looks for them again at the next start", file.display());
        }
        Ok(())
    }

    /// Returns how many results were removed; `None` if one could not be removed, which is logged.
    async fn remove_before(&self, limit: Timestamp, now: Timestamp) -> Result<Option<u64>, StoreError> {
        let (mut removed, mut after) = (0, None);
        loop {
            let (mut removable, next) = self.offered(limit, after).await?;
            if removable.count() > 0 {
                self.each_page(|jobs| jobs.iter().for_each(|job| removable.retain_for(job, limit))).await?;
            }
            match self.remove(removable, now).await {
                Ok(number) => removed += number,
                Err(error) => {
                    tracing::warn!(%error, "cannot remove kept results that are older than `keep_results`; scribed tries again later");
                    return Ok(None);
                }
            }
            after = next;
            if after.is_none() {
                return Ok(Some(removed));
            }
        }
    }

    /// Returns the results of the next old jobs, and after which job the round ended; `None` if it was the last one.
    async fn offered(
        &self,
        limit: Timestamp,
        after: Option<JobId>,
    ) -> Result<(RemovableResults, Option<JobId>), StoreError> {
        let (mut removable, mut after) = (RemovableResults::default(), after);
        loop {
            let jobs = self.page(after).await?;
            after = jobs.last().map(|job| job.id);
            if after.is_none() {
                return Ok((removable, None));
            }
            let results = Arc::clone(&self.results);
            removable = blocking(move || {
                let is_kept = |result: &ResultName| results(&result.service).has(&result.transcription);
                jobs.iter().for_each(|job| removable.offer(job, limit, &is_kept));
                removable
            })
            .await;
            if removable.count() >= ROUND_SIZE {
                return Ok((removable, after));
            }
        }
    }

    async fn remove(&self, removable: RemovableResults, now: Timestamp) -> std::io::Result<u64> {
        let results = Arc::clone(&self.results);
        let remove = move || {
            let by_service = removable.by_service().into_iter();
            by_service.map(|(service, ids)| results(&service).remove_for_age(&ids, now)).sum()
        };
        blocking(remove).await
    }

    /// Returns when a job last reached its stage before this process began: the clock may be ahead now, and what this
    /// process did is dated by it.
    async fn newest_change_before_this_process(&self) -> Result<Option<Timestamp>, StoreError> {
        let mut newest = None;
        let is_earlier = |job: &&Job| job.since < self.begun;
        self.each_page(|jobs| newest = newest.max(jobs.iter().filter(is_earlier).map(|job| job.since).max())).await?;
        Ok(newest)
    }

    async fn each_page(&self, mut take: impl FnMut(&[Job]) + Send) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let jobs = self.page(after).await?;
            after = jobs.last().map(|job| job.id);
            take(&jobs);
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn page(&self, after: Option<JobId>) -> Result<Vec<Job>, StoreError> {
        self.store.page(&Filter { stages: Vec::new(), after, limit: PAGE_SIZE }).await
    }
}
