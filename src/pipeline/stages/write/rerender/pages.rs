//! Renders many jobs again, several at a time.

use super::{NotRendered, RenderRun, RenderedFile, rerender};
use crate::clock::Clock;
use crate::domain::job::{Job, JobKey, Output};
use crate::domain::names::{JobId, ServiceName, SourceName};
use crate::domain::stage::Stage;
use crate::output::results::Results;
use crate::pipeline::stages::write::WriteContext;
use crate::pipeline::stages::write::restore::Tools;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Store, StoreError};
use futures_util::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many jobs are handled at a time for each processor: some read files, most wait for a sync that they share. With 128,
/// rendering was not faster (`cargo bench --bench render`).
const JOBS_PER_PROCESSOR: usize = 16;

/// What rendering works with.
pub struct RenderParts<'a> {
    pub store: &'a dyn Store,
    pub clock: &'a dyn Clock,
    pub mounts: &'a BTreeMap<SourceName, Arc<Mount>>,
    /// The kept results of a service.
    pub results: &'a (dyn Fn(&ServiceName) -> Results + Send + Sync),
    pub tools: &'a Tools,
}

impl RenderParts<'_> {
    fn context<'c>(&'c self, results: &'c Arc<Results>) -> WriteContext<'c> {
        WriteContext {
            store: self.store,
            clock: self.clock,
            results,
            params: &self.tools.params,
            syncs: &self.tools.syncs,
            writing: &self.tools.writing,
        }
    }
}

/// Whether a file of a written job is a translation of what was said; no file of another job is.
///
/// # Errors
/// The kept result is missing or cannot be read.
pub async fn is_translation(
    parts: &RenderParts<'_>,
    mount: &Arc<Mount>,
    job: &Job,
    output: &Output,
) -> Result<bool, NotRendered> {
    let Stage::Written { purchase_key, .. } = &job.stage else { return Ok(false) };
    let results = Arc::new((parts.results)(&purchase_key.service));
    super::is_translation(&parts.context(&results), mount, job, output).await
}

/// What was done with a job, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderedJob {
    pub job: JobId,
    pub key: JobKey,
    /// All files but those that stay as they are.
    pub files: Vec<RenderedFile>,
    /// Why the job was not rendered again.
    #[serde(default)]
    pub problem: Option<String>,
    /// Neither the recording nor any output exists.
    #[serde(default)]
    pub is_gone: bool,
    /// Whether the problem is that the result was removed for its age.
    #[serde(default)]
    pub is_result_removed: bool,
}

impl RenderedJob {
    /// Whether there is nothing to tell of the job.
    pub fn is_unchanged(&self) -> bool {
        self.files.is_empty() && self.problem.is_none() && !self.is_gone
    }
}

/// Renders jobs again, and returns them in their order.
///
/// # Errors
/// Errors of the store. Any other failure concerns one job, and is in its answer.
pub async fn render_jobs(
    parts: &RenderParts<'_>,
    jobs: Vec<Job>,
    run: &RenderRun,
) -> Result<Vec<RenderedJob>, StoreError> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let order: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let groups = groups(parts, jobs).into_iter().map(async |group| {
        let mut done = Vec::with_capacity(group.len());
        for job in group {
            done.push(render_job(parts, job, run).await?);
        }
        Ok::<_, StoreError>(done)
    });
    let groups: Vec<_> = groups.collect();
    let done: Vec<_> =
        futures_util::stream::iter(groups).buffer_unordered(processors * JOBS_PER_PROCESSOR).try_collect().await?;
    let mut done: BTreeMap<JobId, RenderedJob> = done.into_iter().flatten().map(|job| (job.job, job)).collect();
    Ok(order.into_iter().filter_map(|id| done.remove(&id)).collect())
}

/// Groups jobs whose outputs may have the same name: those whose recordings have the same stem in the same folder, or all
/// of a source whose names do not contain the stem. Those of a group are rendered one after another.
fn groups(parts: &RenderParts<'_>, jobs: Vec<Job>) -> Vec<Vec<Job>> {
    let mut groups: BTreeMap<(SourceName, PathBuf), Vec<Job>> = BTreeMap::new();
    for job in jobs {
        let path = Path::new(OsStr::from_bytes(job.key.path.as_bytes()));
        let names_the_stem = parts.mounts.get(&job.key.source).is_none_or(|it| it.source().name_as.names_the_stem());
        let stem = if names_the_stem { path.with_extension("") } else { PathBuf::new() };
        let key = (job.key.source.clone(), stem);
        groups.entry(key).or_default().push(job);
    }
    groups.into_values().collect()
}

async fn render_job(parts: &RenderParts<'_>, job: Job, run: &RenderRun) -> Result<RenderedJob, StoreError> {
    let (key, files) = (job.key.clone(), Vec::new());
    let told = RenderedJob { job: job.id, key, files, problem: None, is_gone: false, is_result_removed: false };
    let Some(mount) = parts.mounts.get(&job.key.source) else {
        let words = format!("jobs.toml has no source named {:?} any more", job.key.source.as_str());
        return Ok(RenderedJob { problem: Some(words), ..told });
    };
    let Stage::Written { purchase_key, .. } = &job.stage else {
        return Ok(RenderedJob { problem: Some(NotRendered::NotWritten.to_string()), ..told });
    };
    let results = Arc::new((parts.results)(&purchase_key.service));
    match rerender(&parts.context(&results), mount, &job, run).await {
        Ok(done) => Ok(RenderedJob { files: done.files, is_gone: done.is_gone, ..told }),
        Err(NotRendered::Store(error)) => Err(error),
        Err(problem) => {
            let is_result_removed = matches!(problem, NotRendered::RemovedForAge { .. });
            Ok(RenderedJob { problem: Some(problem.to_string()), is_result_removed, ..told })
        }
    }
}
