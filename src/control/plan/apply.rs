//! Carrying out a plan: its files and rows are admitted if they are as they were planned, and nothing else is.

use super::format::{PlanError, PlanReader, PlanRow};
use crate::blocking::blocking;
use crate::domain::job::{JobKey, Stamp};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::names::SourceName;
use crate::manifests::passes::rows::look_for_file;
use crate::manifests::passes::{PassContext, SourceManifests};
use crate::pipeline::budget::plan_allowlist::RowMark;
use crate::pipeline::media_file::MediaFile;
use crate::source::metadata::file_look::FileLook;
use crate::source::mount::source_mount::Mount;
use crate::source::path_policy::PathPolicy;
use crate::source::scan::folder_scan::{FolderScan, Scanned};
use crate::store::contract::{Queries, StoreError};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The maximum number of left-out files that are named.
pub const NAMED: usize = 1_000;

/// The number of rows that are read together. Before the files of a source among them are admitted, its folder is
/// checked.
const PORTION: usize = 256;

/// What is left out when a plan is carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The left-out files, each with the reason; at most [`NAMED`].
    pub files: Vec<(JobKey, String)>,
    pub count: u64,
    /// The sources whose folders are not available, each with the reason.
    pub away: BTreeMap<SourceName, String>,
}

impl LeftOut {
    fn add(&mut self, key: JobKey, why: String) {
        self.count += 1;
        if self.files.len() < NAMED {
            self.files.push((key, why));
        }
    }
}

/// Why a plan cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The sources with manifests, and the context in which their manifests are read while a plan is carried out.
pub struct PlanManifests<'l> {
    pub lists: &'l [Arc<SourceManifests>],
    /// The context; it has the allowlist of the plan.
    pub context: PassContext<'l>,
}

/// Admits every file and row of a plan that is as it was planned. `scan` creates the scan of a source, which admits its
/// files.
pub async fn admit<'s>(
    file: &Path,
    mounts: &'s BTreeMap<SourceName, Arc<Mount>>,
    scan: &(dyn Fn(&'s Arc<Mount>) -> FolderScan<'s> + Send + Sync),
    listed: PlanManifests<'_>,
) -> Result<LeftOut, RunError> {
    let mut left_out = LeftOut::default();
    let mut portions = Portions::open(file).await?;
    while let Some(rows) = portions.next().await? {
        for (source, rows) in by_source(rows.into_iter().filter(|row| row.row.is_none())) {
            match mounts.get(&source) {
                Some(mount) => admit_files(mount, &scan(mount), rows, &mut left_out).await?,
                None => rows.into_iter().for_each(|row| left_out.add(row.key, GONE.to_owned())),
            }
        }
    }
    let Some(chosen) = listed.context.plan_allowlist else { return Ok(left_out) };
    let wanted = chosen.listing();
    for lists in listed.lists {
        match wanted.contains(&lists.mount().source().name) {
            true => drop(lists.once(listed.context).await?),
            // The plan has none of its rows, so none of them is bought and none needs to be read.
            false => drop(lists.mount().manifest_hold().set(None)),
        }
    }
    if !wanted.is_empty() {
        check_rows(file, &listed, &mut left_out).await?;
    }
    Ok(left_out)
}

const GONE: &str = "jobs.toml has no such source any more";
const AWAY: &str = "the folder of its source is not available";

/// Reads a plan in portions of [`PORTION`] rows.
struct Portions(Option<PlanReader>);

impl Portions {
    async fn open(file: &Path) -> Result<Self, PlanError> {
        let opened = file.to_owned();
        blocking(move || PlanReader::open(&opened)).await.map(|reader| Self(Some(reader)))
    }

    /// Returns the next rows; `None` at the end of the plan.
    async fn next(&mut self) -> Result<Option<Vec<PlanRow>>, PlanError> {
        let Some(mut reader) = self.0.take() else { return Ok(None) };
        let portion = blocking(move || {
            let rows: Result<Vec<PlanRow>, PlanError> = reader.by_ref().take(PORTION).collect();
            rows.map(|rows| (rows, reader))
        });
        let (rows, rest) = portion.await?;
        self.0 = Some(rest);
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }
}

fn by_source(rows: impl Iterator<Item = PlanRow>) -> BTreeMap<SourceName, Vec<PlanRow>> {
    let mut by_source: BTreeMap<SourceName, Vec<PlanRow>> = BTreeMap::new();
    rows.for_each(|row| by_source.entry(row.key.source.clone()).or_default().push(row));
    by_source
}

/// Finds the planned rows of manifests that are not in the queue as planned, after the manifests were read.
async fn check_rows(file: &Path, listed: &PlanManifests<'_>, left_out: &mut LeftOut) -> Result<(), RunError> {
    let mut portions = Portions::open(file).await?;
    while let Some(rows) = portions.next().await? {
        for (row, mark) in rows.into_iter().filter_map(|mut row| row.row.take().map(|mark| (row, mark))) {
            let source = &row.key.source;
            let lists = listed.lists.iter().find(|lists| lists.mount().source().name == *source);
            let Some(lists) = lists else {
                // A row that `scribed add` created for an address is in the queue already.
                if !is_in_the_queue(listed.context.store, &row, &mark).await? {
                    left_out.add(row.key, GONE.to_owned());
                }
                continue;
            };
            if let Some(away) = lists.mount().away() {
                left_out.away.insert(source.clone(), away.to_string());
                left_out.add(row.key, AWAY.to_owned());
            } else if let Some(why) = not_taken(listed.context.store, lists, &row, &mark).await? {
                left_out.add(row.key, why);
            }
        }
    }
    Ok(())
}

async fn is_in_the_queue(store: &dyn Queries, row: &PlanRow, mark: &RowMark) -> Result<bool, StoreError> {
    let ordered = store.find(&row.key).await?.and_then(|job| job.row);
    Ok(ordered.is_some_and(|ordered| RowMark { number: mark.number, ..RowMark::of(&ordered) } == *mark))
}

/// Returns why a row is not in the queue as it was planned; `None` if it is.
async fn not_taken(
    store: &dyn Queries,
    lists: &SourceManifests,
    row: &PlanRow,
    mark: &RowMark,
) -> Result<Option<String>, StoreError> {
    let (number, manifest) = (mark.number, &mark.manifest);
    let is_planned = |ordered: &ManifestRow| RowMark { number, ..RowMark::of(ordered) } == *mark;
    let ordered = store.find(&row.key).await?.and_then(|job| job.row);
    if let Some(ordered) = ordered.as_deref().filter(|ordered| is_planned(ordered)) {
        return Ok(changed(lists.mount(), ordered, row).await);
    }
    let summary = lists.summaries().into_iter().find(|summary| summary.manifest == *manifest);
    Ok(Some(match summary {
        None => format!("its manifest {manifest} does not exist any more"),
        Some(summary) => match (summary.problem, how_changed(lists.mount(), row).await) {
            (Some(problem), _) => format!("scribed cannot use its manifest {manifest}: {problem}"),
            (None, Some(changed)) => changed,
            (None, None) => format!(
                "no row of {manifest} orders the recording any more as row {number} did: the manifest was edited"
            ),
        },
    }))
}

async fn changed(mount: &Arc<Mount>, ordered: &ManifestRow, row: &PlanRow) -> Option<String> {
    let (owned_mount, ordered, planned) = (Arc::clone(mount), ordered.clone(), row.stamp);
    // `look_for_file` returns `None` for a recording that only the service can reach.
    match blocking(move || look_for_file(&owned_mount, &ordered)).await {
        Ok(looked) => not_as_it_was(&looked?, &planned),
        Err(denied) => Some(format!("its row {}", denied.describe(mount.source()))),
    }
}

/// Returns how the file of a row has changed, if the row is not in the queue and only its name is known.
async fn how_changed(mount: &Arc<Mount>, row: &PlanRow) -> Option<String> {
    let is_file = row.stamp != Stamp::default();
    let (owned_mount, path) = (Arc::clone(mount), row.key.path.clone());
    if let Err(denied) = blocking(move || PathPolicy::new(owned_mount.source()).check_media_name(&path)).await {
        return Some(format!("its row {}", denied.describe(mount.source()))).filter(|_| is_file);
    }
    let looked = MediaFile::below(mount, &row.key.path).look().await;
    // A name with `#` may be longer than the path of its file.
    not_as_it_was(&looked, &row.stamp).filter(|_| is_file && !row.key.path.as_bytes().contains(&b'#'))
}

async fn admit_files(
    mount: &Arc<Mount>,
    scan: &FolderScan<'_>,
    rows: Vec<PlanRow>,
    left_out: &mut LeftOut,
) -> Result<(), StoreError> {
    if let Err(away) = mount.check_now().await {
        left_out.away.insert(mount.source().name.clone(), away.to_string());
        rows.into_iter().for_each(|row| left_out.add(row.key, AWAY.to_owned()));
        return Ok(());
    }
    let mut scanned = Scanned::default();
    for row in rows {
        match not_as_it_was(&MediaFile::below(mount, &row.key.path).look().await, &row.stamp) {
            None => scan.admit(row.key.path, row.stamp, &mut scanned).await?,
            Some(why) => left_out.add(row.key, why),
        }
    }
    Ok(())
}

/// Returns how a file differs from the planned one; `None` if it does not.
fn not_as_it_was(looked: &io::Result<FileLook>, planned: &Stamp) -> Option<String> {
    Some(match looked {
        Ok(FileLook::File(stamp)) if stamp == planned => return None,
        Ok(FileLook::File(_)) => "the file changed after the plan was made".to_owned(),
        Ok(FileLook::Other) => "the path is not a regular file any more".to_owned(),
        Ok(FileLook::Nothing) => "the file does not exist any more".to_owned(),
        Err(error) => format!("cannot access the file: {error}"),
    })
}
