//! Removes the kept results that `[state] keep_results` gives up: once a day while a daemon runs, and at the end of a
//! `once`. Which these are is decided by `domain/result_retention.rs`.
//!
//! A pass that is killed has removed some of them, and the next one goes on. A job that begins to use a result in this
//! moment reads it from the service, like a later copy of the recording.

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::config::model::Config;
use crate::control::transport::handler::KeptOf;
use crate::domain::job::Job;
use crate::domain::names::{JobId, Timestamp};
use crate::domain::result_retention::{RemovableResults, ResultName, retention_date};
use crate::durable_file::Durability;
use crate::source::saved_file;
use crate::store::contract::{Filter, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// The number of jobs that are read at once.
const PAGE_SIZE: usize = 1_000;

/// The number of results that are considered at once: more are considered in several rounds, each of which reads all
/// jobs, so that a queue of millions needs little memory.
const ROUND_SIZE: usize = 100_000;

/// The name of the file in the state directory.
const NAME: &str = "last-retention.json";

/// The last pass that ended.
#[derive(Debug, Serialize, Deserialize)]
struct LastRetention {
    ended: Timestamp,
    /// The date by which results were old.
    date: Timestamp,
    keep: Duration,
}

impl LastRetention {
    fn load(state: &Path) -> Option<Self> {
        saved_file::load(&state.join(NAME))
    }

    /// Whether the next pass need not begin yet.
    fn suffices(&self, keep: Duration, now: Timestamp) -> bool {
        // After a clock was ahead, the last pass counts as one of the future.
        self.keep == keep && (self.ended..self.ended.saturating_add(A_DAY)).contains(&now)
    }
}

/// What a pass works with.
pub(super) struct ResultRetention<'a> {
    pub store: &'a dyn Store,
    pub clock: &'a dyn Clock,
    pub results: KeptOf,
    pub config: &'a Config,
}

impl ResultRetention<'_> {
    /// Removes old results once a day, and never ends.
    pub async fn remove_daily(&self) -> Result<(), StoreError> {
        loop {
            self.remove_if_due().await?;
            self.clock.sleep(A_DAY).await;
        }
    }

    /// Removes old results, unless that was done within a day. What cannot be removed is logged and does no harm.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn remove_if_due(&self) -> Result<(), StoreError> {
        let Some(keep) = self.config.keep_results else { return Ok(()) };
        let (state, now) = (&self.config.state, self.clock.now());
        let last = LastRetention::load(state);
        if last.as_ref().is_some_and(|last| last.suffices(keep, now)) {
            return Ok(());
        }
        let date = match &last {
            Some(last) => retention_date(now, Some(last.date), now),
            None => retention_date(now, None, self.newest_change().await?),
        };
        let Some(removed) = self.remove_before(date.saturating_sub(keep), now).await? else { return Ok(()) };
        if removed > 0 {
            tracing::info!(results = removed, "scribed removed kept results that are older than `keep_results`");
        }
        let ended = LastRetention { ended: now, date, keep };
        if let Err(error) = saved_file::save(&state.join(NAME), "json-tmp", &ended, Durability::Unsynced) {
            tracing::warn!(%error, "cannot save in {} when old results were removed; scribed looks for them again at the next start", state.display());
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

    /// Returns when a job last reached its stage.
    async fn newest_change(&self) -> Result<Timestamp, StoreError> {
        let mut newest = Timestamp(0);
        self.each_page(|jobs| newest = jobs.iter().map(|job| job.since).fold(newest, Timestamp::max)).await?;
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
