//! Rendered parameters, each kept once as a file named by its hash, synced before an intent names it.

use crate::domain::names::Hash;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The folder of parameters in the state directory.
pub struct ParamFiles {
    dir: PathBuf,
    known: Mutex<HashMap<Hash, Arc<Params>>>,
}

/// Rendered parameters as they are sent.
pub type Params = Map<String, Value>;

/// So many are remembered; a template gives few, however many files it is filled for.
const REMEMBERED: usize = 1_000;

impl ParamFiles {
    /// Parameters kept in `dir`, which is made when needed.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), known: Mutex::default() }
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
        self.remember(hash, parse(&hash, canonical)?);
        Ok(hash)
    }

    /// The parameters of a hash.
    ///
    /// # Errors
    /// What the file system says; `InvalidData` when the file is not what its name says.
    pub fn load(&self, hash: &Hash) -> io::Result<Arc<Params>> {
        if let Some(params) = self.known(hash) {
            return Ok(params);
        }
        let params = parse(hash, &fs::read(self.path(hash))?)?;
        Ok(self.remember(*hash, params))
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        self.dir.join(format!("{hash}.json"))
    }

    fn known(&self, hash: &Hash) -> Option<Arc<Params>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned()
    }

    fn remember(&self, hash: Hash, params: Params) -> Arc<Params> {
        let params = Arc::new(params);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < REMEMBERED {
            known.insert(hash, Arc::clone(&params));
        }
        params
    }
}

fn parse(hash: &Hash, bytes: &[u8]) -> io::Result<Params> {
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the kept parameters are damaged");
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
}
