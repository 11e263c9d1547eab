//! Finds the manifests that are gone and whose jobs a person has not dealt with.

use super::transport::handler::CommandHandler;
use crate::blocking::blocking;
use crate::domain::job::{Job, JobKey};
use crate::manifests::passes::gone::{dismiss, gone};
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Filter, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The number of jobs that are read at once.
const PAGE: usize = 1_000;

/// Returns the manifests that were read before and are gone, as long as the queue has a job of their rows that was
/// neither forgotten nor acknowledged. Jobs are read only if a manifest is gone.
pub(super) async fn gone_manifests(handler: &CommandHandler) -> Result<Vec<JobKey>, StoreError> {
    let mut available: Vec<Arc<Mount>> = Vec::new();
    for mount in handler.mounts.values().filter(|mount| mount.source().reads_manifests()) {
        let is_away = if handler.running.is_some() { mount.away().is_some() } else { mount.check_now().await.is_err() };
        if !is_away {
            available.push(Arc::clone(mount));
        }
    }
    if available.is_empty() {
        return Ok(Vec::new());
    }
    let state = handler.state.clone();
    let gone = blocking(move || {
        let sources: Vec<_> = available.iter().map(|mount| &**mount.source()).collect();
        gone(&state, &sources)
    })
    .await;
    let (counting, dealt_with) = split_by_jobs(handler, gone).await?;
    let state = handler.state.clone();
    blocking(move || dealt_with.iter().for_each(|manifest| dismiss(&state, manifest))).await;
    Ok(counting)
}

/// Splits manifests into those with a job that counts, and the others.
async fn split_by_jobs(handler: &CommandHandler, gone: Vec<JobKey>) -> Result<(Vec<JobKey>, Vec<JobKey>), StoreError> {
    let mut open: BTreeSet<JobKey> = gone.iter().cloned().collect();
    let mut filter = Filter { stages: Vec::new(), after: None, limit: PAGE };
    while !open.is_empty() {
        let jobs = handler.store.page(&filter).await?;
        let Some(last) = jobs.last() else { break };
        filter.after = Some(last.id);
        jobs.iter().filter(|job| job.acknowledged.is_none()).filter_map(manifest_of).for_each(|manifest| {
            open.remove(&manifest);
        });
    }
    Ok(gone.into_iter().partition(|manifest| !open.contains(manifest)))
}

/// Returns the manifest whose row requests the job.
fn manifest_of(job: &Job) -> Option<JobKey> {
    job.manifest().map(|manifest| JobKey { source: job.key.source.clone(), path: manifest.clone() })
}
