//! Finds a source's manifests and reads one of them.

use super::kind::{ManifestFormat, kind};
use super::objects::{read_lines, read_list};
use super::record::Form;
use super::table::{self, OnRow};
use crate::config::model::{Manifests, Source};
use crate::domain::job::Stamp;
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::permission_errors::describe_error;
use crate::rooted_path::RootedPath;
use crate::source::filter::builtin::{ignored, is_leftover};
use crate::source::filter::output_provenance::{is_own_json, is_own_table};
use crate::source::metadata::file_look::open;
use crate::source::mount::disk::Disk;
use crate::source::recording_place::resolve_below;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// The part of a receipt's name before its number and extension: `2024.csv.receipt.csv`, `2024.csv.receipt.2.csv`.
pub const RECEIPT: &str = ".receipt.";

/// The result of looking for a source's manifests.
#[derive(Debug, Default)]
pub struct FoundManifests {
    /// The manifests, by their paths below the source's folder.
    pub manifests: Vec<(RelPath, Stamp)>,
    /// Manifests that an earlier source in `jobs.toml` uses already, with that source.
    pub owned_by_others: Vec<(RelPath, Stamp, SourceName)>,
    /// The errors of files and folders that could not be read.
    pub problems: Vec<String>,
    /// Folders that contain temporary files of a process that was killed.
    pub leftovers: BTreeSet<RootedPath>,
}

impl FoundManifests {
    fn add(&mut self, manifests: &Manifests, below: &Path, stamp: Stamp) {
        let (whole, manifest) = (manifests.place.join(below), RelPath::new(below.as_os_str().as_bytes()));
        match manifests.earlier.iter().find(|earlier| earlier.takes(&whole)) {
            Some(earlier) => self.owned_by_others.push((manifest, stamp, earlier.source.clone())),
            None => self.manifests.push((manifest, stamp)),
        }
    }
}

/// Returns the message for a manifest that an earlier source uses already.
pub fn owned_by_other_message(earlier: &SourceName) -> String {
    format!(
        "the source {earlier}, which comes first in jobs.toml, uses this manifest already, and a manifest has one \
         receipt: change the `manifest` of one of the two sources so that only one matches"
    )
}

/// Finds the manifests of a source; other kinds of sources have none. Does not follow links. Blocks.
pub fn find(source: &Source, disk: Disk) -> FoundManifests {
    let mut lists = FoundManifests::default();
    let Some(manifests) = source.manifests() else { return lists };
    let walk = WalkDir::new(&source.folder).min_depth(1).max_depth(manifests.depth).sort_by_file_name();
    let is_entered = |entry: &DirEntry| !entry.file_type().is_dir() || ignored(entry.file_name(), true).is_none();
    for entry in walk.into_iter().filter_entry(is_entered) {
        match entry {
            Ok(entry) if is_leftover(entry.file_name()) => {
                lists.leftovers.insert(rooted(source, entry.path()).parent());
            }
            Ok(entry) => {
                let path = rooted(source, entry.path());
                if entry.file_type().is_file() && is_manifest(manifests, path.below()) && !is_output(&path) {
                    // A folder in the path may have become a link since it was listed.
                    match path.stat() {
                        Ok(stat) => lists.add(manifests, path.below(), disk.stamp_of(&stat)),
                        Err(error) => lists.problems.push(error.to_string()),
                    }
                }
            }
            Err(error) => lists.problems.push(error.to_string()),
        }
    }
    lists
}

fn rooted(source: &Source, path: &Path) -> RootedPath {
    RootedPath::named(&source.folder, path)
}

/// Whether a path below a source's folder is one of its manifests.
pub fn is_manifest(manifests: &Manifests, below: &Path) -> bool {
    let name = below.file_name().unwrap_or_default();
    manifests.pattern.is_match(below) && !is_receipt(name) && ignored(name, false).is_none() && kind(below).is_some()
}

/// Whether the file is an output of a recording in the same folder: a `.json` with scribed's provenance, or a table of
/// words or the like.
fn is_output(path: &RootedPath) -> bool {
    match kind(path.below()) {
        Some(ManifestFormat::Json) => is_own_json(path),
        Some(ManifestFormat::Csv | ManifestFormat::Tsv | ManifestFormat::Jsonl) => is_own_table(path),
        None => false,
    }
}

/// Whether `name` is that of a receipt, which is never read as a manifest.
pub fn is_receipt(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    let Some((_, rest)) = name.rsplit_once(RECEIPT) else { return false };
    let number = rest.strip_suffix("csv").map(|number| number.trim_end_matches('.'));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads a manifest whose stamp is `expected` before and after reading. Blocks.
///
/// # Errors
/// Returns the reason why nothing of the manifest is used.
pub fn read(
    source: &Source,
    manifest: &RelPath,
    disk: Disk,
    expected: Stamp,
    on_row: OnRow<'_>,
) -> Result<Form, String> {
    let path = resolve_below(&source.folder, manifest);
    let changed_message =
        || "the manifest changed while scribed read it; scribed reads it again when it has settled".to_owned();
    let read_error =
        |error: std::io::Error| format!("cannot read the manifest: {}", describe_error(&error, &path.full()));
    let file = open(&path).map_err(read_error)?;
    if disk.stamp(&file.metadata().map_err(read_error)?) != expected {
        return Err(changed_message());
    }
    let second_handle = file.try_clone().map_err(read_error)?;
    let form = match kind(path.below()) {
        Some(ManifestFormat::Csv) | None => table::read(file, false, on_row),
        Some(ManifestFormat::Tsv) => table::read(file, true, on_row),
        Some(ManifestFormat::Json) => read_list(file, on_row),
        Some(ManifestFormat::Jsonl) => read_lines(file, on_row),
    }?;
    match disk.stamp(&second_handle.metadata().map_err(read_error)?) == expected {
        true => Ok(form),
        false => Err(changed_message()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_no_manifests() {
        let is = |name: &str| is_receipt(OsStr::new(name));
        assert!(is("a.csv.receipt.csv") && is("a.jsonl.receipt.2.csv") && is("A.CSV.RECEIPT.CSV"));
        assert!(!is("receipt.csv") && !is("a.receipt.csv.bak") && !is("a.receipts.csv") && !is("a.receipt.old.csv"));
    }
}
