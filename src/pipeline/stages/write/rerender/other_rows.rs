//! Files that a row's job left and that another row's job has by now. All jobs are read for it, and what was read serves
//! the next jobs too: a person may have moved the outputs of a whole manifest.

use super::decide::{FileState, KnownOutput};
use super::files::path_of;
use crate::clock::{Clock, Uptime};
use crate::domain::job::{Job, Output};
use crate::domain::names::JobId;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Filter, Queries, Store, StoreError};
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The jobs that are read at once.
const PAGE: usize = 1_000;

/// How long what was read serves.
const FRESH: Duration = Duration::from_secs(60);

type Outputs = Arc<BTreeSet<(u64, JobId)>>;

/// The outputs of all jobs of rows, by name and content.
#[derive(Debug, Default)]
pub struct OutputsOfRows(Mutex<Option<(Uptime, Outputs)>>);

impl OutputsOfRows {
    async fn read(&self, store: &dyn Queries, clock: &dyn Clock) -> Result<Outputs, StoreError> {
        let mut read = self.0.lock().await;
        if let Some((_, outputs)) = read.as_ref().filter(|(at, _)| clock.uptime().since(*at) < FRESH) {
            return Ok(Arc::clone(outputs));
        }
        let outputs = Arc::new(collect(store).await?);
        *read = Some((clock.uptime(), Arc::clone(&outputs)));
        Ok(outputs)
    }
}

async fn collect(store: &dyn Queries) -> Result<BTreeSet<(u64, JobId)>, StoreError> {
    let mut filter = Filter { stages: Vec::new(), after: None, limit: PAGE };
    let mut all = BTreeSet::new();
    loop {
        let jobs = store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(all) };
        filter.after = Some(last.id);
        let of_rows = jobs.iter().filter(|job| job.row.is_some());
        all.extend(of_rows.flat_map(|job| job.outputs.iter().map(|output| (number(output), job.id))));
    }
}

/// Returns a number for the name and the content of an output; others may have the same number.
fn number(output: &Output) -> u64 {
    let mut hasher = DefaultHasher::new();
    (output.name.as_bytes(), output.hash.0).hash(&mut hasher);
    hasher.finish()
}

/// Returns the unedited files which a row's job left that are outputs of another row's job: of two rows with the same
/// content, one may have got the place that the other one had.
///
/// # Errors
/// Errors of the store.
pub async fn taken_by_other_rows(
    rows: &OutputsOfRows,
    (store, clock): (&dyn Store, &dyn Clock),
    mount: &Mount,
    job: &Job,
    known: &[KnownOutput],
) -> Result<Vec<Output>, StoreError> {
    let is_left = |known: &&KnownOutput| !known.is_current && matches!(known.state, FileState::Ours(_));
    let left: Vec<&Output> = known.iter().filter(is_left).map(|known| &known.output).collect();
    if job.row.is_none() || left.is_empty() {
        return Ok(Vec::new());
    }
    let all = rows.read(store, clock).await?;
    let mut taken = Vec::new();
    for left in left {
        let (path, number) = (path_of(mount, job, left).full(), number(left));
        let alike = all.range((number, JobId(0))..=(number, JobId(u64::MAX))).filter(|(_, id)| *id != job.id);
        for (_, id) in alike {
            let Some(other) = store.job(*id).await? else { continue };
            let is_it = |output: &Output| output.name == left.name && path_of(mount, &other, output).full() == path;
            if other.key.source == job.key.source && other.outputs.iter().any(is_it) {
                taken.push(left.clone());
            }
        }
    }
    Ok(taken)
}
