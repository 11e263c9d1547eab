//! The uploads: each is a file with a small JSON beside it. An upload is kept while a transcription of it has not
//! ended, and for a while after its last use. When the disk is nearly full, uploads that no unfinished transcription
//! holds are removed, those with the oldest last use first. Start reading at [`UploadStore::begin`].

mod index;
mod limits;
mod retention;
mod writer;

pub use limits::{UploadLimits, UploadRules, UploadStoreError};
pub use retention::{A_DAY, UploadRetention};
pub use writer::UploadWriter;

use crate::clock::Clock;
use crate::crash_points::{self, Point};
use crate::domain::names::{Hash, Timestamp};
use crate::server::storage::files;
use crate::wire::result::File;
use index::{Index, Kept, Label, is_incomplete, read_entry};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// The uploads of one store.
pub struct UploadStore {
    folder: PathBuf,
    limits: UploadLimits,
    keeping: UploadRetention,
    clock: Arc<dyn Clock>,
    sharing: Mutex<UploadRules>,
    probe_permits: Mutex<HashMap<Hash, Arc<Semaphore>>>,
    state: Mutex<Index>,
}

/// How many uploads of one key are probed by ffprobe at once: fewer than of all keys (`media/sandbox.rs`).
const MAX_PROBES: usize = 3;

/// How much newer than its label an upload's last use may be before the label is updated: a restart forgets the
/// difference.
const LABEL_LAG: Duration = Duration::from_secs(300);

impl UploadStore {
    /// Opens the folder and removes incomplete files. `whose` maps the owner in a label to its present owner.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn open(
        folder: PathBuf,
        (limits, keeping): (UploadLimits, UploadRetention),
        clock: Arc<dyn Clock>,
        whose: &impl Fn(Hash) -> Hash,
    ) -> io::Result<Self> {
        files::make_folder(&folder)?;
        let mut state = Index::default();
        for id in files::record_ids(&folder)? {
            match read_entry(&folder, id) {
                Ok(mut kept) => {
                    kept.owner = whose(kept.owner);
                    state.bytes += kept.size;
                    state.add(&kept.owner, kept.size);
                    state.insert(id, kept);
                }
                Err(error) if is_incomplete(&error) => {
                    tracing::warn!(%id, %error, "the service removed an incomplete upload");
                }
                Err(error) => return Err(error),
            }
        }
        remove_orphans(&folder, &state.uploads)?;
        let (sharing, probe_permits) = (Mutex::default(), Mutex::default());
        Ok(Self { folder, limits, keeping, clock, sharing, probe_permits, state: Mutex::new(state) })
    }

    /// Returns the longest recording that is accepted.
    pub fn length_limit(&self) -> Duration {
        self.rules().length_limit
    }

    /// Waits for the permit to probe an upload of this key, so that slow files delay only the same key's others.
    pub(crate) async fn acquire_probe_permit(&self, owner: &Hash) -> Option<OwnedSemaphorePermit> {
        self.permits_of(owner).acquire_owned().await.ok()
    }

    fn permits_of(&self, owner: &Hash) -> Arc<Semaphore> {
        let mut probe_permits = self.probe_permits.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(probe_permits.entry(*owner).or_insert_with(|| Arc::new(Semaphore::new(MAX_PROBES))))
    }

    /// Begins an upload of `announced` bytes, or 0 if the length is not known.
    ///
    /// # Errors
    /// The upload certainly does not fit.
    pub fn begin(self: &Arc<Self>, owner: Hash, announced: u64) -> Result<UploadWriter, UploadStoreError> {
        self.check_without_idle(&owner, announced)?;
        let (file, path) = files::temporary(&self.folder)?.into_parts();
        Ok(UploadWriter::new(tokio::fs::File::from_std(file), path, owner, Arc::clone(self)))
    }

    /// Stores a complete upload. It is durable when this returns, so that an upload that was answered is not lost.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn store(&self, mut incoming: UploadWriter, since: Timestamp, file: File) -> io::Result<()> {
        let owner = incoming.owner();
        let id = file.id.as_deref().and_then(files::parse_id);
        let (Some(id), Some(path)) = (id, incoming.take_path()) else {
            return Err(io::Error::other("an upload lacks its id or its file"));
        };
        let label = Label { v: 1, owner, since, used: None, named: false, file };
        // Not by `durable_file`: the writer has synced the content, and the sync of the folder for the label covers this
        // name too.
        path.persist(self.media_path(id))?;
        crash_points::point(Point::UploadNamed);
        if let Err(error) = files::write_whole(&self.label(id), &serde_json::to_vec(&label)?) {
            // A file without a label is removed at the next start.
            let _ = files::remove(&self.media_path(id));
            return Err(error);
        }
        let size = incoming.take_reservation();
        self.state().insert(id, Kept::from_label(label, size));
        crash_points::point(Point::UploadKept);
        Ok(())
    }

    /// Holds an upload of this owner for a transcription; returns `false` if there is none with that id.
    pub fn hold(&self, id: Uuid, owner: &Hash) -> bool {
        let mut state = self.state();
        if state.uploads.get(&id).is_none_or(|kept| kept.owner != *owner) {
            return false;
        }
        state.change(id, |kept| kept.open += 1).is_some()
    }

    /// Records that a transcription that held the upload has ended.
    pub fn release(&self, id: Uuid) {
        let now = self.clock.now();
        let is_expired = self.state().change(id, |kept| {
            kept.open = kept.open.saturating_sub(1);
            kept.ended += 1;
            kept.named = true;
            kept.used = kept.used.max(now);
            self.is_expired(kept, now)
        });
        if is_expired == Some(true) {
            self.remove(id);
        }
    }

    /// Releases an upload whose create was not accepted.
    pub fn release_unused(&self, id: Uuid) {
        self.state().change(id, |kept| kept.open = kept.open.saturating_sub(1));
    }

    /// Records that an ended transcription of the upload is removed. `held` says that it still held the upload. With
    /// `all` the audio is removed too, unless another transcription uses it.
    pub fn forget(&self, id: Uuid, held: bool, all: bool) {
        let should_remove = self.state().change(id, |kept| {
            if held {
                kept.open = kept.open.saturating_sub(1);
            } else {
                kept.ended = kept.ended.saturating_sub(1);
            }
            kept.named = true;
            (all || held) && kept.open + kept.ended == 0
        });
        match should_remove {
            Some(true) => _ = self.remove(id),
            // Until now the transcription recorded the upload's last use.
            Some(false) => self.update_label(id, Duration::ZERO),
            None => {}
        }
    }

    /// Records that the owner reads the upload.
    pub fn mark_used(&self, id: Uuid) {
        let now = self.clock.now();
        self.state().change(id, |kept| kept.used = kept.used.max(now));
        self.update_label(id, LABEL_LAG);
    }

    /// Writes an upload's last use into its label, if the label is behind by more than `behind`.
    fn update_label(&self, id: Uuid, behind: Duration) {
        let label = self.state().change(id, |kept| {
            let due = kept.open == 0 && kept.used.duration_since(kept.noted) > behind;
            due.then(|| {
                kept.noted = kept.used;
                kept.to_label()
            })
        });
        let Some(label) = label.flatten() else { return };
        let written = serde_json::to_vec(&label)
            .map_err(io::Error::from)
            .and_then(|bytes| files::write_whole(&self.label(id), &bytes));
        match written {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%id, %error, "cannot save the time of the last use of an upload; the service may remove it earlier");
            }
            _ => {}
        }
    }

    /// Registers, at the start, that a transcription uses the upload, and when it used it last. Returns whether the
    /// upload exists.
    pub fn register_use(&self, id: Uuid, open: bool, used: Timestamp) -> bool {
        let registered = self.state().change(id, |kept| {
            kept.open += usize::from(open);
            kept.ended += usize::from(!open);
            kept.named = true;
            kept.used = kept.used.max(used);
        });
        registered.is_some()
    }

    /// Returns the properties and the size in bytes of an upload of this owner.
    pub fn find_owned(&self, id: Uuid, owner: &Hash) -> Option<(File, u64)> {
        let state = self.state();
        let kept = state.uploads.get(&id).filter(|kept| kept.owner == *owner)?;
        Some((kept.file.clone(), kept.size))
    }

    /// Returns the properties of an upload.
    pub fn file_info(&self, id: Uuid) -> Option<File> {
        self.state().uploads.get(&id).map(|kept| kept.file.clone())
    }

    /// Counts bytes of records that were written.
    pub fn add_records(&self, owner: &Hash, bytes: u64) {
        let mut state = self.state();
        state.records += bytes;
        state.add(owner, bytes);
    }

    /// Subtracts bytes of records that were removed.
    pub fn subtract_records(&self, owner: &Hash, bytes: u64) {
        let mut state = self.state();
        state.records = state.records.saturating_sub(bytes);
        state.subtract(owner, bytes);
    }

    /// Returns the path of an upload's file.
    pub fn media_path(&self, id: Uuid) -> PathBuf {
        self.folder.join(id.to_string())
    }

    /// Returns the bytes of all uploads, including incomplete ones.
    pub fn bytes(&self) -> u64 {
        self.state().bytes
    }

    /// Removes an idle upload; returns whether it was removed.
    fn remove(&self, id: Uuid) -> bool {
        // A create may have held it since the caller looked.
        if self.state().remove_idle(id).is_none() {
            return false;
        }
        // The label last: an interrupted removal is found by it.
        let removed = files::remove(&self.media_path(id)).and_then(|()| {
            crash_points::point(Point::UploadRemoving);
            files::remove(&self.label(id))
        });
        if let Err(error) = removed {
            tracing::warn!(%id, %error, "cannot remove an upload; the next start tries again");
        }
        true
    }

    fn label(&self, id: Uuid) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    fn state(&self) -> MutexGuard<'_, Index> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes files without a label and labels without a file: traces of interrupted removals and uploads.
fn remove_orphans(folder: &Path, known: &HashMap<Uuid, Kept>) -> io::Result<()> {
    let known: HashSet<String> = known.keys().flat_map(|id| [id.to_string(), format!("{id}.json")]).collect();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let ours = entry.file_name().to_str().is_some_and(|name| known.contains(name));
        if !ours && entry.file_type()?.is_file() {
            files::remove(&entry.path())?;
        }
    }
    Ok(())
}
