//! Reading.

use super::{Queue, QueueStore, ROWS_AT_A_TIME};
use crate::blocking::blocking;
use crate::domain::format::Format;
use crate::domain::job::{Job, JobKey, Output};
use crate::domain::names::{JobId, SourceName};
use crate::domain::pause::Pauses;
use crate::domain::reason::job_wait_reason;
use crate::domain::stage::StageKind;
use crate::store::contract::{
    Filter, GroupFilter, HistoryEntry, JobCounts, JobSubset, Queries, RenderingCount, StoreError, WaitingGroup,
};
use crate::store::index::job_index::split;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::broadcast;

#[async_trait::async_trait]
impl Queries for QueueStore {
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.queue().rows.load(id)
    }

    async fn find(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let queue = self.queue();
        match queue.index.roll.find(&key.tag()) {
            Some(id) => Ok(queue.rows.load(id)?.filter(|job| !job.stage.is_forgotten())),
            None => Ok(None),
        }
    }

    async fn is_output(&self, key: &JobKey) -> Result<bool, StoreError> {
        self.queue().is_output(key)
    }

    async fn output_owner(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        self.queue().output_owner(key)
    }

    async fn page(&self, filter: &Filter) -> Result<Vec<Job>, StoreError> {
        let read = |after, most| self.queue().rows_after(&filter.stages, after, most);
        in_pieces(filter.after, filter.limit, |job| !job.stage.is_forgotten(), read).await
    }

    async fn jobs_in(&self, subset: JobSubset, after: Option<JobId>, most: usize) -> Result<Vec<Job>, StoreError> {
        in_pieces(after, most, |_| true, |after, most| self.queue().subset_after(subset, after, most)).await
    }

    async fn counts_of(&self, of: GroupFilter<'_>) -> Result<JobCounts, StoreError> {
        Ok(self.queue().index.counts(of))
    }

    async fn counts_by_source(&self) -> Result<BTreeMap<SourceName, JobCounts>, StoreError> {
        Ok(self.queue().index.sources())
    }

    async fn waiting_groups(&self) -> Result<Vec<WaitingGroup>, StoreError> {
        self.queue().waiting_groups()
    }

    async fn renderings(&self) -> Result<Vec<RenderingCount>, StoreError> {
        Ok(self.queue().index.renderings.counts())
    }

    async fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError> {
        let journal = Arc::clone(&self.journal);
        blocking(move || journal.history(job)).await
    }

    fn steps(&self) -> broadcast::Receiver<HistoryEntry> {
        self.queue().steps.subscribe()
    }

    async fn pauses(&self) -> Result<Pauses, StoreError> {
        self.queue().rows.pauses()
    }
}

impl Queue {
    /// Whether a file is an output. The index knows which job may have written it; the row knows for sure. What a job
    /// wrote after an earlier purchase under another language is still ours.
    fn is_output(&self, key: &JobKey) -> Result<bool, StoreError> {
        let Some(job) = self.output_owner(key)? else { return Ok(false) };
        let (_, name) = split(key.path.as_bytes());
        let is_output = |output: &Output| output.name.as_bytes() == name;
        let requested =
            job.request_record.iter().flat_map(|request_record| &request_record.outputs).chain(&Format::DEFAULT);
        let has_format = requested.into_iter().any(|format| name.ends_with(format!(".{}", format.ext()).as_bytes()));
        Ok(has_format || job.outputs.iter().chain(&job.earlier).any(is_output))
    }

    fn output_owner(&self, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let Some(id) = self.index.writer(key) else { return Ok(None) };
        let (folder, _) = split(key.path.as_bytes());
        let beside = |job: &Job| {
            job.key.source == key.source && split(job.key.path.as_bytes()).0 == folder && !job.stage.is_forgotten()
        };
        Ok(self.rows.load(id)?.filter(beside))
    }

    /// Returns the next rows at these stages (at any stage if none is given), at most `most`.
    fn rows_after(&self, stages: &[StageKind], after: Option<JobId>, most: usize) -> Result<Vec<Job>, StoreError> {
        let most = most.min(ROWS_AT_A_TIME);
        if stages.is_empty() {
            return self.rows.scan(after).take(most).collect();
        }
        self.index.roll.at(stages, after, most).into_iter().map(|id| self.load(id)).collect()
    }

    fn waiting_groups(&self) -> Result<Vec<WaitingGroup>, StoreError> {
        let groups = self.index.waiting().map(|(group, kind, what, waiting)| {
            let fits =
                |job: &Job| job.route_key() == *group && job.stage.kind() == kind && job_wait_reason(job) == what;
            let known = waiting.one.map(|id| self.load(id)).transpose()?;
            let one = match known.filter(fits) {
                Some(one) => Some(one),
                None => self.first(kind, &fits)?,
            };
            Ok(one.map(|one| WaitingGroup { one, jobs: waiting.jobs }))
        });
        groups.filter_map(Result::transpose).collect()
    }

    /// Returns the first job at a stage for which `wanted` is true.
    fn first(&self, kind: StageKind, wanted: &dyn Fn(&Job) -> bool) -> Result<Option<Job>, StoreError> {
        let mut jobs = self.index.roll.at(&[kind], None, usize::MAX).into_iter().map(|id| self.load(id));
        jobs.find(|job| job.as_ref().map_or(true, wanted)).transpose()
    }

    fn subset_after(&self, subset: JobSubset, after: Option<JobId>, most: usize) -> Result<Vec<Job>, StoreError> {
        let (roll, most) = (&self.index.roll, most.min(ROWS_AT_A_TIME));
        let ids = match subset {
            JobSubset::Away => roll.away(after, most),
            JobSubset::WithCost => roll.with_cost(after, most),
            JobSubset::Incomplete => roll.incomplete(after, most),
            JobSubset::Suspect => roll.suspect(after, most),
            JobSubset::Forgotten => roll.forgotten(after, most),
        };
        ids.into_iter().map(|id| self.load(id)).collect()
    }
}

/// Reads in pieces, so that other callers get their turn between them.
async fn in_pieces(
    mut after: Option<JobId>,
    limit: usize,
    is_wanted: impl Fn(&Job) -> bool,
    read: impl Fn(Option<JobId>, usize) -> Result<Vec<Job>, StoreError>,
) -> Result<Vec<Job>, StoreError> {
    let mut page = Vec::new();
    loop {
        let rows = read(after, limit - page.len())?;
        let Some(last) = rows.last() else { return Ok(page) };
        after = Some(last.id);
        page.extend(rows.into_iter().filter(&is_wanted));
        if page.len() >= limit {
            return Ok(page);
        }
        tokio::task::yield_now().await;
    }
}
