//! Names the job of a row. The row's position in its manifest does not matter, because people sort rows.

use super::repeats::{RepeatedRows, order, recording};
use crate::domain::job::{Job, JobKey};
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::store::contract::{Queries, StoreError};
use std::collections::HashMap;

/// The job names that one pass over a manifest has assigned.
#[derive(Default)]
pub struct AssignedNames {
    /// For each recording that several rows name, what the row orders whose job has the recording's own name.
    firsts: HashMap<u64, u64>,
    /// The number of the first row for each recording and order, if several rows name the recording.
    ordered: HashMap<(u64, u64), u64>,
}

/// The name of a row's job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    Key(JobKey),
    /// The row with this number requests the same.
    Repeats(u64),
}

/// Which job has the recording's own name.
#[derive(Debug, Clone, Copy)]
pub enum OwnName<'r> {
    Free,
    /// The job of this row, which belongs to the same manifest.
    Of(&'r ManifestRow),
    Taken,
}

impl<'r> OwnName<'r> {
    /// Returns whether a row of `manifest` can have the recording's own name. `known` is the row of the job that has
    /// that name, if any.
    pub fn of(known: Option<&'r ManifestRow>, manifest: &RelPath) -> Self {
        match known {
            None => Self::Free,
            Some(known) if known.manifest == *manifest => Self::Of(known),
            Some(_) => Self::Taken,
        }
    }
}

impl AssignedNames {
    /// Returns the number of the earlier row that requests the same. Only for rows that [`AssignedNames::name`] does not
    /// name.
    pub fn earlier(&mut self, row: &ManifestRow) -> Option<u64> {
        let first = *self.ordered.entry((recording(row), order(row))).or_insert(row.number);
        (first != row.number).then_some(first)
    }

    /// Assigns a name to the job of a row of this source.
    pub fn name(
        &mut self,
        source: &SourceName,
        row: &ManifestRow,
        own_name: OwnName<'_>,
        repeats: &RepeatedRows,
    ) -> Name {
        let key = |path| JobKey { source: source.clone(), path };
        let base = match own_name {
            OwnName::Free | OwnName::Of(_) => own_key(source, row),
            OwnName::Taken => key(with_manifest_name(row, None)),
        };
        let recording = recording(row);
        let Some(orders) = repeats.orders(recording) else { return Name::Key(base) };
        let order = order(row);
        if let Some(first) = self.ordered.get(&(recording, order)) {
            return Name::Repeats(*first);
        }
        self.ordered.insert((recording, order), row.number);
        let known = match own_name {
            OwnName::Of(known) => Some(super::repeats::order(known)).filter(|known| orders.contains(known)),
            OwnName::Free | OwnName::Taken => None,
        };
        let first = *self.firsts.entry(recording).or_insert_with(|| known.unwrap_or(orders[0]));
        Name::Key(if order == first { base } else { key(with_manifest_name(row, Some(order))) })
    }
}

/// Returns the recording's own path or address as the name of a job.
pub fn own_key(source: &SourceName, row: &ManifestRow) -> JobKey {
    JobKey { source: source.clone(), path: own_path(&row.media) }
}

/// Returns the path of a job that has the recording's own name.
pub fn own_path(media: &RowMedia) -> RelPath {
    match media {
        RowMedia::File(path) => path.clone(),
        RowMedia::Url(url) => RelPath::new(url.name()),
    }
}

/// Returns every name that the job of a row may have.
pub fn candidates(source: &SourceName, row: &ManifestRow) -> [JobKey; 3] {
    let key = |path| JobKey { source: source.clone(), path };
    [own_key(source, row), key(with_manifest_name(row, None)), key(with_manifest_name(row, Some(order(row))))]
}

/// Returns the job of a row as the row is now; `None` if the queue has none.
pub async fn job_of_row(
    store: &(impl Queries + ?Sized),
    source: &SourceName,
    row: &ManifestRow,
) -> Result<Option<Job>, StoreError> {
    for key in candidates(source, row) {
        let job = store.find(&key).await?;
        if let Some(job) = job.filter(|job| is_job_of(job, row)) {
            return Ok(Some(job));
        }
    }
    Ok(None)
}

/// Returns the job of a row that does not have the recording's own name; `None` if the queue has none. The row may have
/// been edited since.
pub async fn job_beside_own_name(
    store: &(impl Queries + ?Sized),
    source: &SourceName,
    row: &ManifestRow,
) -> Result<Option<Job>, StoreError> {
    let is_of_manifest = |job: &Job| job.row.as_ref().is_some_and(|known| known.manifest == row.manifest);
    for key in &candidates(source, row)[1..] {
        if let Some(job) = store.find(key).await?.filter(is_of_manifest) {
            return Ok(Some(job));
        }
    }
    Ok(None)
}

/// Whether a job is the job of a row as the row is now.
pub fn is_job_of(job: &Job, row: &ManifestRow) -> bool {
    job.row.as_ref().is_some_and(|known| known.requests_same_as(row))
}

/// Returns the recording's name followed by the manifest's, and by the hash of the order if that is given.
fn with_manifest_name(row: &ManifestRow, order: Option<u64>) -> RelPath {
    let mut name = match &row.media {
        RowMedia::File(path) => path.as_bytes().to_vec(),
        RowMedia::Url(url) => url.name().into_bytes(),
    };
    name.push(b'#');
    name.extend(row.manifest.as_bytes().iter().map(|byte| if *byte == b'/' { b':' } else { *byte }));
    if let Some(order) = order {
        name.extend(format!("#{:08x}", order >> 32).bytes());
    }
    RelPath::new(name)
}
