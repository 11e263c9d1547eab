//! Finds the rows of a source's manifests that name a given recording.

use crate::domain::job::Stamp;
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::path::RelPath;
use crate::manifests::format::columns::{ColumnContext, names, parse_row};
use crate::manifests::format::find::{RECEIPT, find, is_receipt, read};
use crate::manifests::format::record::RowError;
use crate::manifests::passes::keys::{candidates, own_path};
use crate::source::mount::source_mount::Mount;
use crate::source::path_policy::PathPolicy;
use crate::source::recording_place::full_path;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The most rows that are returned for one manifest.
const MAX_ROWS: usize = 20;

/// A row that names a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamingRow {
    /// The manifest, below its source's folder.
    pub manifest: RelPath,
    pub number: u64,
    /// The parsed row, or all its errors.
    pub row: Result<ManifestRow, Vec<RowError>>,
    /// The manifest's latest receipt, if there is one.
    pub receipt: Option<PathBuf>,
}

/// A recording as a user names it.
#[derive(Debug, Clone)]
pub struct NamedRecording {
    /// The absolute path as typed, or an address.
    typed: PathBuf,
    /// The path with the links before its last component resolved.
    real: Option<PathBuf>,
}

impl NamedRecording {
    /// Returns the recording at this absolute path or address. Blocks.
    pub fn from_path(path: &Path) -> Self {
        let real = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
        Self { typed: path.to_owned(), real: real() }
    }

    fn is(&self, folder: &Path, media: &RowMedia) -> bool {
        match media {
            RowMedia::Url(url) => {
                let typed = self.typed.as_os_str().as_bytes();
                typed == url.expose().as_bytes() || typed == url.name().as_bytes()
            }
            RowMedia::File(path) => {
                let whole = full_path(folder, path);
                whole == self.typed || self.real.as_ref().is_some_and(|real| is_at(&whole, real))
            }
        }
    }
}

/// Whether two paths lead to the same file. Links are only resolved if the file names are equal.
fn is_at(whole: &Path, real: &Path) -> bool {
    let resolved = || Some(whole.parent()?.canonicalize().ok()?.join(whole.file_name()?));
    whole == real || whole.file_name() == real.file_name() && resolved().is_some_and(|whole| whole == real)
}

/// Returns the rows of a source's manifests that name the recording. A manifest that cannot be read is skipped. Blocks.
pub fn rows_naming(mount: &Mount, asked: &NamedRecording) -> Vec<NamingRow> {
    let source = mount.source();
    let found = find(source, mount.disk_at(&RelPath::new("")));
    found.manifests.iter().flat_map(|(manifest, stamp)| rows_of_manifest(mount, manifest, *stamp, asked)).collect()
}

/// A row that makes a job, or would if it were correct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    /// The path of the job.
    pub path: RelPath,
    /// The row, for people: `row 7 of may.csv`.
    pub place: String,
    /// `None` if the row has mistakes.
    pub row: Option<ManifestRow>,
}

/// Returns the rows of a source's manifests that may make a job of one of these paths. Rows that name the same
/// recording and make another job are not among them. Blocks.
///
/// # Errors
/// The first manifest that cannot be read, and why: its rows may make any job.
pub fn rows_of_paths(mount: &Mount, paths: &BTreeSet<RelPath>) -> Result<Vec<JobRow>, String> {
    let source = mount.source();
    let (policy, mut job_rows) = (PathPolicy::new(source), Vec::new());
    for (manifest, stamp) in &find(source, mount.disk_at(&RelPath::new(""))).manifests {
        let terms = ColumnContext::new(source, manifest, &policy);
        read(source, manifest, mount.disk_at(manifest), *stamp, &mut |record, wrong| {
            let row = parse_row(&record, &terms).ok().filter(|_| wrong.is_none());
            let made = match &row {
                Some(row) => candidates(&source.name, row).map(|key| key.path).to_vec(),
                None => names(&record, &terms).iter().map(own_path).collect(),
            };
            let place = || format!("row {} of {manifest}", record.number);
            let wanted = made.into_iter().filter(|path| paths.contains(path));
            job_rows.extend(wanted.map(|path| JobRow { path, place: place(), row: row.clone() }));
            ControlFlow::Continue(())
        })
        .map_err(|why| format!("the manifest {manifest} may name its recording: {why}"))?;
    }
    Ok(job_rows)
}

fn rows_of_manifest(mount: &Mount, manifest: &RelPath, stamp: Stamp, asked: &NamedRecording) -> Vec<NamingRow> {
    let source = mount.source();
    let (policy, mut found) = (PathPolicy::new(source), Vec::new());
    let terms = ColumnContext::new(source, manifest, &policy);
    let whole = read(source, manifest, mount.disk_at(manifest), stamp, &mut |record, wrong| {
        if names(&record, &terms).is_some_and(|media| asked.is(&source.folder, &media)) {
            let order = match (parse_row(&record, &terms), wrong) {
                (order, None) => order,
                (order, Some(wrong)) => Err(std::iter::once(wrong).chain(order.err().into_iter().flatten()).collect()),
            };
            found.push(NamingRow { manifest: manifest.clone(), number: record.number, row: order, receipt: None });
        }
        if found.len() < MAX_ROWS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if whole.is_err() || found.is_empty() {
        return Vec::new();
    }
    let receipt = receipt_of(&full_path(&source.folder, manifest));
    found.into_iter().map(|naming| NamingRow { receipt: receipt.clone(), ..naming }).collect()
}

/// Returns the receipt that was written last: its name has a number if another program's file has the first name.
pub fn receipt_of(manifest: &Path) -> Option<PathBuf> {
    let start = [manifest.file_name()?.as_bytes(), RECEIPT.as_bytes()].concat();
    let is_one = |name: &OsStr| name.as_bytes().starts_with(&start) && is_receipt(name);
    let entries = manifest.parent()?.read_dir().ok()?.flatten().filter(|entry| is_one(&entry.file_name()));
    let written = entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())));
    written.max().map(|(_, path)| path)
}
