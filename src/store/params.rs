//! Rendered parameters, each kept once as a file named by its hash, synced before an intent names it.

use crate::domain::names::Hash;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The folder of parameters in the state directory.
pub struct ParamFiles {
    dir: PathBuf,
    kept: Mutex<HashSet<Hash>>,
}

/// So many hashes are remembered as kept; a template gives few, however many files it is filled for.
const REMEMBERED: usize = 10_000;

impl ParamFiles {
    /// Parameters kept in `dir`, which is made when needed.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), kept: Mutex::new(HashSet::new()) }
    }

    /// Keeps canonical parameters; durable when it returns.
    ///
    /// # Errors
    /// What the file system says.
    pub fn keep(&self, canonical: &[u8]) -> io::Result<Hash> {
        let hash = Hash::of(canonical);
        if self.kept().contains(&hash) {
            return Ok(hash);
        }
        fs::create_dir_all(&self.dir)?;
        let path = self.path(&hash);
        if fs::read(&path).ok().as_deref() != Some(canonical) {
            let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
            file.write_all(canonical)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
        }
        File::open(&path)?.sync_all()?;
        File::open(&self.dir)?.sync_all()?;
        let mut kept = self.kept();
        if kept.len() < REMEMBERED {
            kept.insert(hash);
        }
        Ok(hash)
    }

    /// The parameters of a hash.
    ///
    /// # Errors
    /// What the file system says; `InvalidData` when the file is not what its name says.
    pub fn load(&self, hash: &Hash) -> io::Result<serde_json::Map<String, serde_json::Value>> {
        let bytes = fs::read(self.path(hash))?;
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the kept parameters are damaged");
        if Hash::of(&bytes) != *hash {
            return Err(damaged());
        }
        serde_json::from_slice(&bytes).map_err(|_| damaged())
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        self.dir.join(format!("{hash}.json"))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashSet<Hash>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        assert_eq!(files.load(&hash).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let again = ParamFiles::new(dir.path().join("params"));
        again.keep(br#"{"diarization":true}"#).unwrap();
        assert!(again.load(&hash).is_ok(), "a damaged file is replaced by what belongs there");
    }
}
