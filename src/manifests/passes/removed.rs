//! Ends jobs for which nothing was bought when their row was removed from its manifest, or the manifest was removed. Jobs
//! for which something was or may be bought continue.

use super::keys::candidates;
use super::{PassContext, SourceManifests};
use crate::domain::job::{Job, JobKey};
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::domain::stage::{JobEvent, Skip, StageKind};
use crate::store::contract::{Filter, StoreError};
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The number of jobs that are read at once.
const PORTION: usize = 256;

/// The jobs that a complete pass over a manifest assigned to its rows.
#[derive(Default)]
pub(crate) struct NamedJobs(HashSet<u64>);

impl NamedJobs {
    /// Adds the job of a row.
    pub(crate) fn add(&mut self, key: &JobKey) {
        self.0.insert(short_hash(key));
    }

    /// Adds every job that may belong to a recording that an invalid row names: an earlier order for it continues.
    pub(crate) fn add_recording(&mut self, source: &SourceName, manifest: &RelPath, media: &RowMedia) {
        let row = ManifestRow::minimal(manifest.clone(), 0, media.clone());
        candidates(source, &row).iter().for_each(|key| self.add(key));
    }

    fn has(&self, key: &JobKey) -> bool {
        self.0.contains(&short_hash(key))
    }
}

/// Hashes a key, so that a manifest of a million rows needs a few megabytes. If two keys have the same hash, a job may
/// only wait longer.
fn short_hash(key: &JobKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key.source.as_str(), key.path.as_bytes()).hash(&mut hasher);
    hasher.finish()
}

impl SourceManifests {
    /// Ends the jobs for which nothing was bought and whose row is no longer in this manifest.
    pub(crate) async fn end_removed_rows(
        &self,
        context: PassContext<'_>,
        manifest: &RelPath,
        named: &NamedJobs,
    ) -> Result<(), StoreError> {
        let is_removed =
            |job: &Job| job.row.as_deref().is_some_and(|row| row.manifest == *manifest) && !named.has(&job.key);
        self.end_unbought(context, is_removed).await
    }

    /// Ends the jobs for which nothing was bought and whose manifest no longer exists.
    pub(crate) async fn end_removed_lists(
        &self,
        context: PassContext<'_>,
        there: &BTreeSet<RelPath>,
    ) -> Result<(), StoreError> {
        let is_removed =
            |job: &Job| job.row.as_deref().is_some_and(|row| !row.is_by_command() && !there.contains(&row.manifest));
        self.end_unbought(context, is_removed).await
    }

    async fn end_unbought(
        &self,
        context: PassContext<'_>,
        is_removed: impl Fn(&Job) -> bool,
    ) -> Result<(), StoreError> {
        let source = &self.mount.source().name;
        let stages = vec![StageKind::Found, StageKind::Settled, StageKind::Probed, StageKind::Uploaded];
        let mut filter = Filter { stages, after: None, limit: PORTION };
        loop {
            let jobs = context.store.page(&filter).await?;
            let Some(last) = jobs.last() else { return Ok(()) };
            filter.after = Some(last.id);
            for job in jobs.iter().filter(|job| job.key.source == *source && is_of_current_row(job) && is_removed(job))
            {
                let event = JobEvent::Skipped { why: Skip::Unlisted };
                if context.store.overrule(job, event, context.clock.now()).await?.is_done() {
                    tracing::info!(
                        %source, job = %job.id, path = %job.key.path,
                        "a row was removed from its manifest before anything was bought for it; its job ends"
                    );
                }
            }
        }
    }
}

/// Whether the job has the row of a manifest that is known. Of a row that a lost queue left, only the order is known.
fn is_of_current_row(job: &Job) -> bool {
    job.row.as_deref().is_some_and(|row| !row.is_by_command() && !row.lost)
}
