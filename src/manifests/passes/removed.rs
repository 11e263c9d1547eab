//! Ends jobs that still wait for their file when their row was removed from its manifest, or the manifest was removed.
//! Jobs that have their file, or for which something was or may be bought, continue.

use super::keys::candidates;
use super::{PassContext, SourceManifests};
use crate::domain::fault::FaultKind;
use crate::domain::job::{Job, JobKey};
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::domain::scheduling::is_bought;
use crate::domain::stage::{JobEvent, Skip};
use crate::store::contract::{JobSubset, StoreError};
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
    /// Ends the jobs that wait for their file and whose row is no longer in this manifest.
    pub(crate) async fn end_removed_rows(
        &self,
        context: PassContext<'_>,
        manifest: &RelPath,
        named: &NamedJobs,
    ) -> Result<(), StoreError> {
        let is_removed =
            |job: &Job| job.row.as_deref().is_some_and(|row| row.manifest == *manifest) && !named.has(&job.key);
        self.end_waiting(context, is_removed).await
    }

    /// Ends the jobs that wait for their file and whose manifest no longer exists.
    pub(crate) async fn end_removed_lists(
        &self,
        context: PassContext<'_>,
        there: &BTreeSet<RelPath>,
    ) -> Result<(), StoreError> {
        let is_removed =
            |job: &Job| job.row.as_deref().is_some_and(|row| !row.is_by_command() && !there.contains(&row.manifest));
        self.end_waiting(context, is_removed).await
    }

    async fn end_waiting(&self, context: PassContext<'_>, is_removed: impl Fn(&Job) -> bool) -> Result<(), StoreError> {
        let source = &self.mount.source().name;
        let mut after = None;
        loop {
            let jobs = context.store.jobs_in(JobSubset::Away, after, PORTION).await?;
            let Some(last) = jobs.last() else { return Ok(()) };
            after = Some(last.id);
            for job in jobs.iter().filter(|job| job.key.source == *source && waits_for_its_file(job) && is_removed(job))
            {
                let event = JobEvent::Skipped { why: Skip::Unlisted };
                if context.store.overrule(job, event, context.clock.now()).await?.is_done() {
                    tracing::info!(
                        %source, job = %job.id, path = %job.key.path,
                        "a row was removed from its manifest before its file appeared; scribed no longer waits \
                         for the file"
                    );
                }
            }
        }
    }
}

/// Whether the job of a row waits for its file and nothing was bought for it.
fn waits_for_its_file(job: &Job) -> bool {
    let is_awaited = job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Awaited);
    let of_row = job.row.as_deref().is_some_and(|row| matches!(row.media, RowMedia::File(_)) && !row.lost);
    is_awaited && of_row && !job.stage.is_end() && !is_bought(job.stage.kind())
}
