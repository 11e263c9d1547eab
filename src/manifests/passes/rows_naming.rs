//! Which rows of a source's manifests name a recording that somebody asks about.

use crate::domain::job::Stamp;
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::path::RelPath;
use crate::manifests::format::columns::{ColumnContext, names, parse_row};
use crate::manifests::format::find::{RECEIPT, find, read};
use crate::manifests::format::record::RowError;
use crate::source::mount::source_mount::Mount;
use crate::source::path_policy::PathPolicy;
use crate::source::recording_place::full_path;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// More rows of one manifest are not looked for.
const MOST: usize = 20;

/// A row that names a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamingRow {
    /// The manifest, below its source's folder.
    pub manifest: RelPath,
    pub number: u64,
    /// What it orders, or everything that is wrong with it.
    pub row: Result<ManifestRow, Vec<RowError>>,
    /// What the row came back in last; `None` before that.
    pub receipt: Option<PathBuf>,
}

/// A recording as somebody names it.
#[derive(Debug, Clone)]
pub struct NamedRecording {
    /// As it is written, absolute; or an address.
    typed: PathBuf,
    /// With the links before its last part resolved.
    real: Option<PathBuf>,
}

impl NamedRecording {
    /// About what lies at this absolute path, or this address. Blocks.
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

/// Only what is called the same is resolved.
fn is_at(whole: &Path, real: &Path) -> bool {
    let resolved = || Some(whole.parent()?.canonicalize().ok()?.join(whole.file_name()?));
    whole == real || whole.file_name() == real.file_name() && resolved().is_some_and(|whole| whole == real)
}

/// The rows of a source's manifests that name it. What cannot be read names nothing. Blocks.
pub fn rows_naming(mount: &Mount, asked: &NamedRecording) -> Vec<NamingRow> {
    let source = mount.source();
    let found = find(source, mount.disk_at(&RelPath::new("")));
    found.manifests.iter().flat_map(|(manifest, stamp)| in_one(mount, manifest, *stamp, asked)).collect()
}

fn in_one(mount: &Mount, manifest: &RelPath, stamp: Stamp, asked: &NamedRecording) -> Vec<NamingRow> {
    let source = mount.source();
    let (terms, mut found) = (ColumnContext { source, manifest, policy: &PathPolicy::new(source) }, Vec::new());
    let whole = read(source, manifest, mount.disk_at(manifest), stamp, &mut |record, wrong| {
        if names(&record, &terms).is_some_and(|media| asked.is(&source.folder, &media)) {
            let order = match (parse_row(&record, &terms), wrong) {
                (order, None) => order,
                (order, Some(wrong)) => Err(std::iter::once(wrong).chain(order.err().into_iter().flatten()).collect()),
            };
            found.push(NamingRow { manifest: manifest.clone(), number: record.number, row: order, receipt: None });
        }
        if found.len() < MOST { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if whole.is_err() || found.is_empty() {
        return Vec::new();
    }
    let receipt = receipt(&full_path(&source.folder, manifest));
    found.into_iter().map(|naming| NamingRow { receipt: receipt.clone(), ..naming }).collect()
}

/// The one that was written last: where somebody else's file has its name, it has a number.
fn receipt(manifest: &Path) -> Option<PathBuf> {
    let start = [manifest.file_name()?.as_bytes(), RECEIPT.as_bytes()].concat();
    let is_one = |name: &OsStr| name.as_bytes().starts_with(&start) && name.as_bytes().ends_with(b"csv");
    let entries = manifest.parent()?.read_dir().ok()?.flatten().filter(|entry| is_one(&entry.file_name()));
    let written = entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())));
    written.max().map(|(_, path)| path)
}
