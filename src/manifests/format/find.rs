//! Which files are a source's manifests, and reading one of them.

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
use crate::source::filter::own_outputs::is_own_json;
use crate::source::metadata::file_look::open;
use crate::source::mount::disk::Disk;
use crate::source::recording_place::resolve_below;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// What stands before the number and the ending of a receipt: `2024.csv.receipt.csv`, `2024.csv.receipt.2.csv`.
pub const RECEIPT: &str = ".receipt.";

/// What a look at a source's lists came to.
#[derive(Debug, Default)]
pub struct FoundManifests {
    /// The manifests, by their paths below the source's folder.
    pub manifests: Vec<(RelPath, Stamp)>,
    /// Those that a source before this one has already, and which that is.
    pub owned_by_others: Vec<(RelPath, Stamp, SourceName)>,
    /// What could not be looked at, in words.
    pub problems: Vec<String>,
    /// Folders in which a killed process left a receipt half-written.
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

/// Why nothing of a manifest is taken that a source before it has, in words.
pub fn owned_by_other_message(earlier: &SourceName) -> String {
    format!(
        "the source {earlier}, which comes first in jobs.toml, uses this manifest already, and a manifest has one \
         receipt: change the `manifest` of one of the two sources so that only one matches"
    )
}

/// Looks for the manifests of a source; another kind of source has none. Links are not followed. Blocks.
pub fn find(source: &Source, disk: Disk) -> FoundManifests {
    let mut lists = FoundManifests::default();
    let Some(manifests) = source.manifests() else { return lists };
    let walk = WalkDir::new(&source.folder).min_depth(1).max_depth(manifests.depth).sort_by_file_name();
    let goes_on = |entry: &DirEntry| !entry.file_type().is_dir() || ignored(entry.file_name(), true).is_none();
    for entry in walk.into_iter().filter_entry(goes_on) {
        match entry {
            Ok(entry) if is_leftover(entry.file_name()) => {
                lists.leftovers.insert(rooted(source, entry.path()).parent());
            }
            Ok(entry) => {
                let path = rooted(source, entry.path());
                if entry.file_type().is_file() && is_manifest(manifests, path.below()) && !is_output(&path) {
                    // What was a folder on the way may be a link by now.
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

/// Whether this is an output of ours, of a recording beside the lists: an object, where lists are lists.
fn is_output(path: &RootedPath) -> bool {
    kind(path.below()) == Some(ManifestFormat::Json) && is_own_json(path)
}

/// Whether this is the name of a receipt, which orders nothing.
pub fn is_receipt(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    let Some((_, rest)) = name.rsplit_once(RECEIPT) else { return false };
    let number = rest.strip_suffix("csv").map(|number| number.trim_end_matches('.'));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads a manifest that looks like `expected` before and after. Blocks.
///
/// # Errors
/// In words, why nothing of it can be believed.
pub fn read(
    source: &Source,
    manifest: &RelPath,
    disk: Disk,
    expected: Stamp,
    on_row: OnRow<'_>,
) -> Result<Form, String> {
    let path = resolve_below(&source.folder, manifest);
    let same = || "the manifest changed while scribed read it; scribed reads it again when it has settled".to_owned();
    let broken = |error: std::io::Error| format!("cannot read the manifest: {}", describe_error(&error, &path.full()));
    let file = open(&path).map_err(broken)?;
    if disk.stamp(&file.metadata().map_err(broken)?) != expected {
        return Err(same());
    }
    let again = file.try_clone().map_err(broken)?;
    let form = match kind(path.below()) {
        Some(ManifestFormat::Csv) | None => table::read(file, false, on_row),
        Some(ManifestFormat::Tsv) => table::read(file, true, on_row),
        Some(ManifestFormat::Json) => read_list(file, on_row),
        Some(ManifestFormat::Jsonl) => read_lines(file, on_row),
    }?;
    match disk.stamp(&again.metadata().map_err(broken)?) == expected {
        true => Ok(form),
        false => Err(same()),
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
