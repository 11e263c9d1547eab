//! The mounts that were seen below a source's folder. Where such a share or disk is not mounted any more, its mount
//! point is an empty folder, and all its recordings look deleted, though the source's own marker is there. So what was
//! mounted there is recorded in the state directory.

use super::marker::FolderMemory;
use super::source_mount::{Away, Mount};
use crate::domain::job::Job;
use crate::domain::path::RelPath;
use crate::durable_file::Durability;
use crate::rooted_path::RootedPath;
use crate::source::mount::table;
use crate::source::recording_place::{Recording, recording};
use crate::source::saved_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most mounts that are recorded. Of further ones nothing is known when they are missing.
const MAX_MOUNTS: usize = 10_000;

/// The mounts below one folder.
pub(super) struct NestedMounts {
    file: PathBuf,
    folder: PathBuf,
    /// `None` until the record was read.
    seen: Mutex<Option<BTreeSet<PathBuf>>>,
}

#[derive(Serialize, Deserialize)]
struct NestedMountsRecord {
    /// A record of another folder under the same source name does not apply.
    folder: RelPath,
    /// The mount points relative to the folder.
    below: Vec<RelPath>,
}

impl NestedMounts {
    pub(super) fn new(memory: &FolderMemory, folder: &Path) -> Self {
        Self { file: memory.nested_mounts(), folder: folder.to_owned(), seen: Mutex::default() }
    }

    /// Adds the mounts that are there now. They are recorded if this process works in the folder.
    pub(super) fn note(&self, below: &[(PathBuf, String)], works: bool) {
        let mut seen = self.seen();
        let seen = seen.get_or_insert_with(|| self.load());
        let before = seen.len();
        for (at, _) in below {
            if seen.len() < MAX_MOUNTS {
                seen.insert(at.clone());
            }
        }
        if works && seen.len() > before {
            let below = seen.iter().map(|at| rel_path(at)).collect();
            let record = NestedMountsRecord { folder: rel_path(&self.folder), below };
            if let Err(error) = saved_file::save(&self.file, "mounts-tmp", &record, Durability::Synced) {
                tracing::warn!(folder = %self.folder.display(), %error, "cannot record what is mounted below a folder; after the next start, a share that is missing there would look like deleted files");
            }
        }
    }

    /// Returns the recorded mount point nearest above a path, or at it, that is not a mount now. The path is relative to
    /// the folder, whose path without links is `real`.
    fn missing_above(&self, path: &Path, real: &Path) -> Option<PathBuf> {
        let mut seen = self.seen();
        let above = seen.get_or_insert_with(|| self.load()).iter().rev().filter(|at| path.starts_with(at));
        let above: Vec<PathBuf> = above.cloned().collect();
        drop(seen);
        if above.is_empty() {
            return None; // the usual case: the table need not be read
        }
        let present = table::below(real);
        above.into_iter().find(|at| present.iter().all(|(there, _)| there != at))
    }

    fn load(&self) -> BTreeSet<PathBuf> {
        let record = saved_file::load::<NestedMountsRecord>(&self.file);
        let record = record.filter(|record| record.folder == rel_path(&self.folder));
        let below = record.into_iter().flat_map(|record| record.below);
        below.map(|at| PathBuf::from(OsStr::from_bytes(at.as_bytes()))).collect()
    }

    fn seen(&self) -> MutexGuard<'_, Option<BTreeSet<PathBuf>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rel_path(path: &Path) -> RelPath {
    RelPath::new(path.as_os_str().as_bytes())
}

/// Copies the record of a renamed source, for the folder that it has now.
pub(super) fn rename_source(from: &FolderMemory, to: &FolderMemory, folder: &Path) -> std::io::Result<()> {
    let Some(record) = saved_file::load::<NestedMountsRecord>(&from.nested_mounts()) else { return Ok(()) };
    let record = NestedMountsRecord { folder: rel_path(folder), ..record };
    saved_file::save(&to.nested_mounts(), "mounts-tmp", &record, Durability::Synced)
}

impl Mount {
    /// Checks that no share or disk is missing that was mounted above a job's recording, below the source's folder:
    /// where one is missing, a recording that is not found is not deleted, and nothing is written.
    ///
    /// # Errors
    /// [`Away`] with the mount point.
    pub fn check_mounts_above(&self, job: &Job) -> Result<(), Away> {
        match recording(self.source(), job) {
            Recording::File(path) => self.check_mounts_above_path(&path),
            Recording::Object(_) | Recording::Remote(_) => Ok(()),
        }
    }

    /// As [`Mount::check_mounts_above`], for a path.
    ///
    /// # Errors
    /// [`Away`] with the mount point.
    pub fn check_mounts_above_path(&self, path: &RootedPath) -> Result<(), Away> {
        let folder = &self.source().folder;
        let (Some(below), Some(real)) = (path.below_folder(folder), self.real()) else { return Ok(()) };
        match self.nested_mounts.missing_above(&below, &real) {
            Some(missing) => Err(Away::of_missing_mount(folder.join(missing))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::SourceName;

    #[test]
    fn a_mount_that_was_seen_is_missed_below_it_and_also_by_the_next_process() {
        let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let memory = FolderMemory::new(state.path(), &SourceName::new("s"), folder.path());
        let missing = |nested: &NestedMounts, path: &str| nested.missing_above(Path::new(path), folder.path());
        let nested = NestedMounts::new(&memory, folder.path());
        assert_eq!(missing(&nested, "share/talk.wav"), None);
        nested.note(&[(PathBuf::from("share"), "nfs4".to_owned())], true);
        let next = NestedMounts::new(&memory, folder.path());
        for nested in [&nested, &next] {
            assert_eq!(missing(nested, "share/a/talk.wav"), Some(PathBuf::from("share")));
            assert_eq!(missing(nested, "share2/talk.wav"), None);
            assert_eq!(missing(nested, "talk.wav"), None);
        }
        let of_another = NestedMounts::new(&memory, Path::new("/srv/other"));
        assert_eq!(missing(&of_another, "share/talk.wav"), None);
    }

    #[test]
    fn a_process_that_only_looks_records_no_mount() {
        let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let memory = FolderMemory::new(state.path(), &SourceName::new("s"), folder.path());
        NestedMounts::new(&memory, folder.path()).note(&[(PathBuf::from("share"), "nfs4".to_owned())], false);
        assert!(!memory.nested_mounts().exists());
    }
}
