//! The files in which transcriptions in progress keep what was recognised of them: one for each, `recognition/ID.log`.
//! Their bytes count towards the disk quota. `recognition/chunk_log` defines their content.

use crate::domain::names::Hash;
use crate::server::storage::files;
use crate::server::storage::uploads::UploadStore;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The folder in the data directory.
const FOLDER: &str = "recognition";

const ENDING: &str = "log";

/// All these files of one store.
pub struct ChunkLogs {
    folder: PathBuf,
    upload_store: Arc<UploadStore>,
    /// The files that exist or are about to.
    counted: Mutex<HashMap<Uuid, CountedLog>>,
}

/// What the disk quota counts of a file.
#[derive(Debug, Clone, Copy)]
struct CountedLog {
    owner: Hash,
    bytes: u64,
}

impl ChunkLogs {
    /// Opens the folder, and removes every file whose transcription has ended or does not exist. `owner_of` returns the
    /// owner of a transcription that has not ended. A file that cannot be removed keeps no service from starting.
    ///
    /// # Errors
    /// The folder cannot be created or read.
    pub(super) fn open(
        root: &Path,
        upload_store: Arc<UploadStore>,
        owner_of: impl Fn(Uuid) -> Option<Hash>,
    ) -> io::Result<Self> {
        let folder = root.join(FOLDER);
        files::make_folder(&folder)?;
        let logs = Self { folder, upload_store, counted: Mutex::default() };
        for entry in fs::read_dir(&logs.folder)? {
            let path = entry?.path();
            if let Err(error) = logs.adopt(&path, &owner_of) {
                tracing::warn!(path = %path.display(), %error, "a file of saved chunks cannot be used or removed");
            }
        }
        Ok(logs)
    }

    /// Counts a file that an earlier process left, or removes it.
    fn adopt(&self, path: &Path, owner_of: impl Fn(Uuid) -> Option<Hash>) -> io::Result<()> {
        let id = path.file_stem().and_then(|name| files::parse_id(name.to_str()?));
        let id = id.filter(|id| self.path(*id) == path);
        let Some((id, owner)) = id.and_then(|id| Some((id, owner_of(id)?))) else { return files::remove(path) };
        let bytes = fs::metadata(path)?.len();
        self.begin(id, owner);
        self.set_size(id, bytes);
        Ok(())
    }

    /// Returns the path of a transcription's file.
    pub fn path(&self, id: Uuid) -> PathBuf {
        self.folder.join(format!("{id}.{ENDING}"))
    }

    /// Begins to count the file of a transcription, which may exist already.
    pub fn begin(&self, id: Uuid, owner: Hash) {
        self.counted().entry(id).or_insert(CountedLog { owner, bytes: 0 });
    }

    /// Records how large the file is now. Nothing is recorded of a file that was removed.
    pub fn set_size(&self, id: Uuid, bytes: u64) {
        let mut counted = self.counted();
        let Some(log) = counted.get_mut(&id) else { return };
        let before = std::mem::replace(&mut log.bytes, bytes);
        self.upload_store.add_records(&log.owner, bytes.saturating_sub(before));
        self.upload_store.subtract_records(&log.owner, before.saturating_sub(bytes));
    }

    /// Removes the file of a transcription that has ended. If that fails, the next start tries again.
    pub fn remove(&self, id: Uuid) {
        if let Some(CountedLog { owner, bytes }) = self.counted().remove(&id) {
            self.upload_store.subtract_records(&owner, bytes);
        }
        // Even if it is not counted: a transcription may be cancelled while its file is being created.
        if let Err(error) = files::remove(&self.path(id)) {
            tracing::warn!(%id, %error, "cannot remove the saved chunks of a transcription; the next start tries again");
        }
    }

    fn counted(&self) -> MutexGuard<'_, HashMap<Uuid, CountedLog>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
