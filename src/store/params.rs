//! Rendered parameters, each kept once as a file named by its hash, synced before an intent names it.

use crate::crash_points::{self, Point};
use crate::domain::names::Hash;
use crate::domain::track_selection::TrackSelection;
use crate::durable_file::{self, Durability, StagedFile};
use crate::permission_errors::explain_state_at;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The folder of parameters in the state directory.
pub struct ParamFiles {
    dir: PathBuf,
    known: Mutex<HashMap<Hash, Arc<StoredParams>>>,
}

/// Rendered parameters: as they are sent, but for the [`TrackSelection`] among them.
pub type StoredParams = Map<String, Value>;

/// So many are remembered; a template gives few, however many files it is filled for.
const REMEMBERED: usize = 1_000;

impl ParamFiles {
    /// Parameters kept in `dir`, which is made when needed.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), known: Mutex::default() }
    }

    /// Removes what a killed process left half-written, and says how many files that were. For whoever
    /// has just come to own the state directory: nobody may be keeping any. Blocks.
    ///
    /// # Errors
    /// What the file system says; that there is no such folder yet is none.
    pub fn sweep(&self) -> io::Result<usize> {
        durable_file::sweep(&self.dir)
    }

    /// Keeps canonical parameters; durable when it returns.
    ///
    /// # Errors
    /// What the file system says.
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
        // Also of what was there: who wrote it may have been killed before it was synced.
        durable_file::sync(&path)?;
        durable_file::sync(&self.dir)?;
        crash_points::point(Point::ParamsKept);
        Ok(())
    }

    /// The parameters of a hash.
    ///
    /// # Errors
    /// What the file system says; `InvalidData` when the file is not what its name says.
    pub fn load(&self, hash: &Hash) -> io::Result<Arc<StoredParams>> {
        if let Some(params) = self.known(hash) {
            return Ok(params);
        }
        let path = self.path(hash);
        let params = parse(hash, &fs::read(&path).map_err(explain_state_at(&path))?)?;
        Ok(self.remember(*hash, params))
    }

    /// The parameters of an order as they are sent, and which sound of the recording is.
    ///
    /// # Errors
    /// As [`ParamFiles::load`], and `InvalidData` for a pick that a later build has written.
    pub fn order(&self, hash: &Hash) -> io::Result<(StoredParams, Option<TrackSelection>)> {
        let mut params = (*self.load(hash)?).clone();
        let pick = TrackSelection::take_from(&mut params)?;
        Ok((params, pick))
    }

    fn path(&self, hash: &Hash) -> PathBuf {
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
