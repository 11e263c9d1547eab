//! Renders the outputs of sources with `rerender = "auto"` again, after their settings have changed.

use super::{Setup, SharedParts, kept};
use crate::config::model::{Rerender, Source};
use crate::domain::job::Job;
use crate::domain::names::SourceName;
use crate::domain::stage::StageKind;
use crate::pipeline::stages::write::rerender::{RenderParts, RenderRun, may_differ, render_jobs, settings_hash};
use crate::store::contract::{Filter, StoreError};
use std::collections::BTreeMap;

/// The number of jobs that are read at once.
const PAGE_SIZE: usize = 1_000;

impl super::Daemon {
    /// Renders the outputs of sources with `rerender = "auto"` again, where their settings have changed.
    pub async fn rerender(&self) -> Result<(), StoreError> {
        rerender_changed(&self.ground, &self.setup()).await
    }
}

/// Renders the written jobs of all `auto` sources whose settings for outputs have changed since. A job that cannot be
/// rendered is logged, and tried again after the next start or reload.
pub(super) async fn rerender_changed(ground: &SharedParts, setup: &Setup) -> Result<(), StoreError> {
    let sources = changed_sources(ground, setup).await?;
    if sources.is_empty() {
        return Ok(());
    }
    let (results, tools) = (kept(&setup.config), ground.tools());
    let parts = RenderParts {
        store: &*ground.store,
        clock: &*ground.clock,
        mounts: &setup.mounts,
        results: &*results,
        tools: &tools,
    };
    let mut filter = Filter { stages: vec![StageKind::Written], after: None, limit: PAGE_SIZE };
    let mut without_result = 0_u64;
    loop {
        let jobs = ground.store.page(&filter).await?;
        let next = jobs.last().filter(|_| jobs.len() == PAGE_SIZE).map(|job| job.id);
        let jobs: Vec<Job> = jobs.into_iter().filter(|job| sources.contains_key(&job.key.source)).collect();
        for done in render_jobs(&parts, jobs, &RenderRun::default()).await? {
            if done.is_result_removed {
                without_result += 1;
            } else if let Some(problem) = &done.problem {
                tracing::warn!(job = %done.job, path = %done.key.path, reason = %problem, "the outputs of a job were not rendered again");
            } else if done.files.iter().any(|file| file.change.is_made()) {
                tracing::info!(job = %done.job, path = %done.key.path, "scribed rendered the outputs of a job again: its settings have changed");
            }
        }
        filter.after = next;
        if next.is_none() {
            break;
        }
    }
    if without_result > 0 {
        tracing::info!(
            jobs = without_result,
            "the outputs of jobs were not rendered again: `keep_results` has removed their results"
        );
    }
    Ok(())
}

/// Returns the `auto` sources that have jobs with other settings than now.
async fn changed_sources<'s>(
    ground: &SharedParts,
    setup: &'s Setup,
) -> Result<BTreeMap<&'s SourceName, &'s Source>, StoreError> {
    let auto = setup.config.sources.iter().filter(|source| source.rerender == Rerender::Auto);
    let mut sources: BTreeMap<&SourceName, &Source> = auto.map(|source| (&source.name, source)).collect();
    if sources.is_empty() {
        return Ok(sources);
    }
    let counts = ground.store.renderings().await?;
    sources.retain(|name, source| {
        let now = settings_hash(source);
        let of_source = counts.iter().filter(|counted| counted.source == **name);
        of_source.into_iter().any(|counted| may_differ(&counted.formats, counted.settings, source, &now))
    });
    Ok(sources)
}
