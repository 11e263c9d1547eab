//! Rows that were taken out of their list, and lists that were taken away: what waits for its file by their word waits
//! no longer. What was or may be bought goes on, and so does what has its file.

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

/// Jobs are read in portions.
const PORTION: usize = 256;

/// The jobs that a whole pass over a list gave to its rows.
#[derive(Default)]
pub(crate) struct NamedJobs(HashSet<u64>);

impl NamedJobs {
    /// A row has this job.
    pub(crate) fn add(&mut self, key: &JobKey) {
        self.0.insert(short(key));
    }

    /// A row that is wrong names this recording: whatever was ordered for it before goes on.
    pub(crate) fn add_recording(&mut self, source: &SourceName, manifest: &RelPath, media: &RowMedia) {
        let row = ManifestRow::minimal(manifest.clone(), 0, media.clone());
        candidates(source, &row).iter().for_each(|key| self.add(key));
    }

    fn has(&self, key: &JobKey) -> bool {
        self.0.contains(&short(key))
    }
}

/// Of a list of a million rows these are a few megabytes. Two keys that share one keep a job waiting, no more.
fn short(key: &JobKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key.source.as_str(), key.path.as_bytes()).hash(&mut hasher);
    hasher.finish()
}

impl SourceManifests {
    /// Ends what waits for a file by a row of this list that is not in it any more.
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

    /// Ends what waits for a file by a list that is not there any more.
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

/// By the word of a row, with nothing bought for it.
fn waits_for_its_file(job: &Job) -> bool {
    let is_awaited = job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Awaited);
    let of_row = job.row.as_deref().is_some_and(|row| matches!(row.media, RowMedia::File(_)) && !row.lost);
    is_awaited && of_row && !job.stage.is_end() && !is_bought(job.stage.kind())
}
