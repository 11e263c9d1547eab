//! Values that are too large for the database, each stored once as a file named by its hash.
//!
//! A record of the queue stays below the size at which sled would move it into a file of its own, which it never
//! syncs. Whatever makes a record longer (the vocabulary of a row, its columns, rendered metadata) is a file here,
//! synced before the record that names it. What no record names any more is removed when the queue is opened.

use crate::domain::names::Hash;
use crate::durable_file::{self, Durability};
use crate::permission_errors::explain_state_at;
use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Below the queue's folder, so that it is copied and set aside together with the records.
pub const FOLDER: &str = "large";

/// Longest file that is read. A longer one was not written here.
const LONGEST: u64 = 256 << 20;

/// Most files that are remembered as synced.
const REMEMBERED: usize = 10_000;

/// The large values of one queue.
pub struct LargeValues {
    dir: PathBuf,
    synced: Mutex<HashSet<Hash>>,
}

impl LargeValues {
    /// The values in `dir`, which is created with the first one.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), synced: Mutex::default() }
    }

    /// Stores a value; durable when it returns. Blocks.
    pub fn keep(&self, value: &[u8]) -> io::Result<Hash> {
        let hash = Hash::of(value);
        if self.synced().contains(&hash) {
            return Ok(hash);
        }
        self.write(&hash, value).map_err(explain_state_at(&self.dir))?;
        let mut synced = self.synced();
        if synced.len() >= REMEMBERED {
            synced.clear();
        }
        synced.insert(hash);
        Ok(hash)
    }

    fn write(&self, hash: &Hash, value: &[u8]) -> io::Result<()> {
        let path = self.path(hash);
        let folder = path.parent().unwrap_or(&self.dir);
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        if self.load(hash).ok().as_deref() != Some(value) {
            durable_file::replace(&path, value, Durability::ContentSynced)?;
        }
        // An existing file is synced too: a process that wrote it may have been killed before it was synced.
        let made = [Some(&*path), Some(folder), Some(&*self.dir), self.dir.parent()];
        made.into_iter().flatten().try_for_each(durable_file::sync)
    }

    /// Returns the value of a hash. Blocks.
    ///
    /// # Errors
    /// An error of the file system; `InvalidData` if the file's content does not match its name.
    pub fn load(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        let mut value = Vec::new();
        let path = self.path(hash);
        File::open(&path).map_err(explain_state_at(&path))?.take(LONGEST).read_to_end(&mut value)?;
        if Hash::of(&value) == *hash {
            return Ok(value);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the file's content does not match the checksum in its name"))
    }

    /// Returns the path of a value's file.
    pub fn path(&self, hash: &Hash) -> PathBuf {
        let name = hash.to_string();
        self.dir.join(&name[..2]).join(format!("{name}.json"))
    }

    /// Removes files that are not among `named`, and what a killed process left half-written. Returns how many files
    /// it removed. To be called right after the queue was opened. Blocks.
    ///
    /// # Errors
    /// An error of the file system. A missing folder is no error.
    pub fn sweep(&self, named: &HashSet<Hash>) -> io::Result<usize> {
        let names: HashSet<PathBuf> = named.iter().map(|hash| self.path(hash)).collect();
        let mut removed = 0;
        for folder in entries(&self.dir)? {
            for file in entries(&folder)? {
                if !names.contains(&file) {
                    fs::remove_file(&file)?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    fn synced(&self) -> std::sync::MutexGuard<'_, HashSet<Hash>> {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        entries => entries?.map(|entry| entry.map(|entry| entry.path())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_kept_once_and_damage_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let values = LargeValues::new(dir.path().join(FOLDER));
        let hash = values.keep(b"\"x\"").unwrap();
        assert_eq!(values.load(&hash).unwrap(), b"\"x\"");
        fs::write(values.path(&hash), b"\"y\"").unwrap();
        assert_eq!(values.load(&hash).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let again = LargeValues::new(dir.path().join(FOLDER));
        again.keep(b"\"x\"").unwrap();
        assert!(again.load(&hash).is_ok(), "a damaged file is replaced by what belongs there");
    }

    #[test]
    fn what_no_record_names_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let values = LargeValues::new(dir.path().join(FOLDER));
        assert_eq!(values.sweep(&HashSet::new()).unwrap(), 0, "there is no folder yet");
        let [kept, unnamed] = [b"1", b"2"].map(|value| values.keep(value).unwrap());
        fs::write(values.path(&kept).with_file_name(".tmpHalf"), b"{").unwrap();
        assert_eq!(values.sweep(&HashSet::from([kept])).unwrap(), 2);
        assert!(values.load(&kept).is_ok() && values.load(&unnamed).is_err());
    }
}
