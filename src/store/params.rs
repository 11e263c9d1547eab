//! Rendered parameters, each stored once as a file named by its hash, and synced before an intent names it.

use crate::crash_points::{self, Point};
use crate::domain::names::Hash;
use crate::domain::track_selection::TrackSelection;
use crate::durable_file::{self, Durability, StagedFile};
use crate::permission_errors::explain_state_at;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The folder of parameters in the state directory.
pub struct ParamFiles {
    dir: PathBuf,
    known: Mutex<HashMap<Hash, Arc<StoredParams>>>,
}

/// Rendered parameters: as they are sent, except for the [`TrackSelection`] among them.
pub type StoredParams = Map<String, Value>;

/// Most parameters that are cached. A template gives few, however many files it is filled in for.
const REMEMBERED: usize = 1_000;

impl ParamFiles {
    /// Parameters in `dir`, which is created when it is needed.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), known: Mutex::default() }
    }

    /// Returns the folder of the parameters, for messages.
    pub fn folder(&self) -> &Path {
        &self.dir
    }

    /// Returns another folder of the same state directory.
    pub fn beside(&self, folder: &str) -> PathBuf {
        self.dir.with_file_name(folder)
    }

    /// Removes what a killed process left half-written, and returns how many files that were. To be called right
    /// after the state directory was locked, when nobody stores parameters. Blocks.
    ///
    /// # Errors
    /// An error of the file system. A missing folder is no error.
    pub fn sweep(&self) -> io::Result<usize> {
        durable_file::sweep(&self.dir)
    }

    /// Stores canonical parameters; durable when it returns.
    pub fn keep(&self, canonical: &[u8]) -> io::Result<Hash> {
        let hash = Hash::of(canonical);
        if self.known(&hash).is_some() {
            return Ok(hash);
        }
        self.write(&hash, canonical).map_err(explain_state_at(&self.dir))?;
        self.remember(hash, parse(&hash, canonical)?);
        Ok(hash)
    }

    fn write(&self, hash: &Hash, canonical: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        let path = self.path(hash);
        if fs::read(&path).ok().as_deref() != Some(canonical) {
            let mut staged = StagedFile::create_in(&self.dir)?;
            staged.write_all(canonical)?;
            let finished = staged.finish(Durability::ContentSynced)?;
            crash_points::point(Point::ParamsBegun);
            finished.rename(&path)?.sync()?;
            crash_points::point(Point::ParamsNamed);
        }
        // An existing file is synced too: a process that wrote it may have been killed before it was synced.
        durable_file::sync(&path)?;
        durable_file::sync(&self.dir)?;
        crash_points::point(Point::ParamsKept);
        Ok(())
    }

    /// Returns the parameters of a hash.
    ///
    /// # Errors
    /// An error of the file system; `InvalidData` if the file's content does not match its name.
    pub fn load(&self, hash: &Hash) -> io::Result<Arc<StoredParams>> {
        if let Some(params) = self.known(hash) {
            return Ok(params);
        }
        let path = self.path(hash);
        let params = parse(hash, &fs::read(&path).map_err(explain_state_at(&path))?)?;
        Ok(self.remember(*hash, params))
    }

    /// Returns the parameters of an order as they are sent, and which part of the recording's sound is.
    ///
    /// # Errors
    /// As [`ParamFiles::load`], and `InvalidData` for a selection that a later build has written.
    pub fn order(&self, hash: &Hash) -> io::Result<(StoredParams, Option<TrackSelection>)> {
        let mut params = (*self.load(hash)?).clone();
        let pick = TrackSelection::take_from(&mut params)?;
        Ok((params, pick))
    }

    /// Returns all parameters that are stored whole, with the text of their files, ordered by name. Blocks.
    ///
    /// # Errors
    /// An error of the file system. A missing folder is no error.
    pub fn all(&self) -> io::Result<Vec<(Hash, String)>> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(explain_state_at(&self.dir))?,
        };
        let mut names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        let mut all = Vec::new();
        for name in names.iter().filter_map(|name| name.to_str()?.strip_suffix(".json")) {
            let path = self.dir.join(format!("{name}.json"));
            let text = fs::read_to_string(&path).map_err(explain_state_at(&path))?;
            let hash = Hash::of(text.as_bytes());
            if hash.to_string() == name {
                all.push((hash, text));
            }
        }
        Ok(all)
    }

    /// Returns the file of parameters.
    pub fn path(&self, hash: &Hash) -> PathBuf {
        self.dir.join(format!("{hash}.json"))
    }

    fn known(&self, hash: &Hash) -> Option<Arc<StoredParams>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned()
    }

    fn remember(&self, hash: Hash, params: StoredParams) -> Arc<StoredParams> {
        let params = Arc::new(params);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < REMEMBERED {
            known.insert(hash, Arc::clone(&params));
        }
        params
    }
}

fn parse(hash: &Hash, bytes: &[u8]) -> io::Result<StoredParams> {
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the stored parameters are damaged");
    if Hash::of(bytes) != *hash {
        return Err(damaged());
    }
    serde_json::from_slice(bytes).map_err(|_| damaged())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_loaded_and_damage_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let files = ParamFiles::new(dir.path().join("params"));
        let hash = files.keep(br#"{"diarization":true}"#).unwrap();
        assert_eq!(files.load(&hash).unwrap()["diarization"], true);
        fs::write(files.path(&hash), b"{}").unwrap();
        let again = ParamFiles::new(dir.path().join("params"));
        assert_eq!(again.load(&hash).unwrap_err().kind(), io::ErrorKind::InvalidData);
        again.keep(br#"{"diarization":true}"#).unwrap();
        assert!(again.load(&hash).is_ok(), "a damaged file is replaced by what belongs there");
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let files = ParamFiles::new(dir.path().join("params"));
        assert_eq!(files.sweep().unwrap(), 0, "there is no folder yet");
        let hash = files.keep(b"{}").unwrap();
        fs::write(files.dir.join(".tmpHalf"), b"{").unwrap();
        assert_eq!(files.sweep().unwrap(), 1);
        assert_eq!(fs::read_dir(&files.dir).unwrap().count(), 1);
        assert!(ParamFiles::new(files.dir.clone()).load(&hash).is_ok());
    }
}
