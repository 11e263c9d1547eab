//! The uploads that are kept until they are transcribed: the file and a small JSON beside it, a
//! limit for one and for all.

use crate::crash::{self, Point};
use crate::domain::names::{Hash, Timestamp};
use crate::server::files;
use crate::server::head::nobody;
use crate::server::hearing::LONGEST;
pub use crate::server::incoming::Incoming;
use crate::server::shares;
use crate::wire::result::File;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// How much may be kept, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// By one upload.
    pub upload: u64,
    /// By all together, those that are still coming in and the records with their results included.
    pub disk: u64,
}

/// How much is kept, and how much may be, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Uploads, those that are still coming in, and records with their results.
    pub used: u64,
    /// The most that may be.
    pub limit: u64,
}

/// Why an upload is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    /// The one upload is over its limit, and will be again.
    #[error("the file is larger than the {limit} bytes that this service takes")]
    TooLarge {
        /// Bytes.
        limit: u64,
    },
    /// Little is left, and this key holds its share; its own transcriptions that end make room.
    #[error(
        "the service's disk is nearly full, and this key keeps more than its share of it ({share} of {limit} bytes); \
         try again when transcriptions of it have ended, or delete some"
    )]
    OverShare {
        /// Bytes.
        share: u64,
        /// Bytes.
        limit: u64,
    },
    /// All together are over theirs; transcriptions that end make room.
    #[error("the service keeps as much as it may ({limit} bytes); try again later")]
    Full {
        /// Bytes.
        limit: u64,
    },
    /// The file system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An upload that no transcription named is kept this long.
pub const UNUSED: Duration = Duration::from_secs(24 * 3600);

/// The uploads of one desk.
pub struct Shelf {
    folder: PathBuf,
    limits: Limits,
    sharing: Mutex<Sharing>,
    looks: Mutex<HashMap<Hash, Arc<Semaphore>>>,
    state: Mutex<State>,
}

/// Uploads of one key that are looked at by ffprobe at once: fewer than of all keys (`media/sandbox.rs`).
const LOOKS: usize = 3;

/// What holds beside the limits.
#[derive(Debug, Clone, Copy)]
pub struct Sharing {
    /// Keys that share the disk, at least 1.
    pub keys: usize,
    /// The longest recording that is taken.
    pub length_limit: Duration,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { keys: 1, length_limit: LONGEST }
    }
}

#[derive(Default)]
struct State {
    bytes: u64,
    /// Of records and results, which lie elsewhere on the same disk.
    records: u64,
    /// All of that by whose it is.
    owners: HashMap<Hash, u64>,
    uploads: HashMap<Uuid, Kept>,
}

impl State {
    fn all(&self) -> u64 {
        self.bytes.saturating_add(self.records)
    }

    fn of(&self, owner: &Hash) -> u64 {
        self.owners.get(owner).copied().unwrap_or(0)
    }

    fn add(&mut self, owner: &Hash, bytes: u64) {
        let of = self.owners.entry(*owner).or_default();
        *of = of.saturating_add(bytes);
    }

    fn subtract(&mut self, owner: &Hash, bytes: u64) {
        if let Some(of) = self.owners.get_mut(owner) {
            *of = of.saturating_sub(bytes);
        }
    }
}

struct Kept {
    owner: Hash,
    since: Timestamp,
    size: u64,
    file: File,
    /// Transcriptions that have not ended.
    open: usize,
    /// Found at start: a transcription that used it has ended, and its removal was cut short.
    used: bool,
}

/// The JSON beside an upload.
#[derive(Serialize, Deserialize)]
struct Label {
    v: u32,
    #[serde(default = "nobody")]
    owner: Hash,
    since: Timestamp,
    file: File,
}

impl Shelf {
    /// Opens the folder, empties it of what was left half-done. `whose`: who owns what was this owner's.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(folder: PathBuf, limits: Limits, whose: &impl Fn(Hash) -> Hash) -> io::Result<Self> {
        files::make_folder(&folder)?;
        let mut state = State::default();
        for id in files::ids(&folder)? {
            match read_kept(&folder, id) {
                Ok(mut kept) => {
                    kept.owner = whose(kept.owner);
                    state.bytes += kept.size;
                    state.add(&kept.owner, kept.size);
                    state.uploads.insert(id, kept);
                }
                Err(error) if half_done(&error) => {
                    tracing::warn!(%id, %error, "an upload that is not whole is dropped");
                }
                Err(error) => return Err(error),
            }
        }
        remove_strangers(&folder, &state.uploads)?;
        Ok(Self { folder, limits, sharing: Mutex::default(), looks: Mutex::default(), state: Mutex::new(state) })
    }

    /// Says who shares it from now on, and what is taken; until then one key does.
    pub fn share(&self, sharing: Sharing) {
        *self.sharing.lock().unwrap_or_else(PoisonError::into_inner) = sharing;
    }

    /// Says how many keys share it from now on.
    pub fn share_among(&self, keys: usize) {
        self.share(Sharing { keys, ..self.sharing() });
    }

    fn sharing(&self) -> Sharing {
        *self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The longest recording that is taken.
    pub fn length_limit(&self) -> Duration {
        self.sharing().length_limit
    }

    /// The right to have an upload of this key looked at: files that take long keep only its others waiting.
    pub(super) async fn may_look(&self, owner: &Hash) -> Option<OwnedSemaphorePermit> {
        self.looks_of(owner).acquire_owned().await.ok()
    }

    fn looks_of(&self, owner: &Hash) -> Arc<Semaphore> {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(looks.entry(*owner).or_insert_with(|| Arc::new(Semaphore::new(LOOKS))))
    }

    /// Begins to take an upload of `announced` bytes, as far as that is known.
    ///
    /// # Errors
    /// It is known already that it does not fit.
    pub fn begin(self: &Arc<Self>, owner: Hash, announced: u64) -> Result<Incoming, ShelfError> {
        let state = self.state();
        self.check(announced, state.of(&owner), state.all())?;
        drop(state);
        let (file, path) = files::temporary(&self.folder)?.into_parts();
        Ok(Incoming::new(tokio::fs::File::from_std(file), path, owner, Arc::clone(self)))
    }

    /// Keeps what has come in. Durable when it returns: an upload that was answered is not lost.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn keep(&self, mut incoming: Incoming, since: Timestamp, file: File) -> io::Result<()> {
        let owner = incoming.owner();
        let id = file.id.as_deref().and_then(files::parse_id);
        let (Some(id), Some(path)) = (id, incoming.take_path()) else {
            return Err(io::Error::other("an upload needs an id and a file"));
        };
        let label = Label { v: 1, owner, since, file };
        path.persist(self.media(id))?;
        crash::point(Point::ShelfNamed);
        // The label's own sync of the folder covers the file's name too.
        if let Err(error) = files::write_whole(&self.label(id), &serde_json::to_vec(&label)?) {
            // Without a label it is swept away at the next start.
            let _ = files::remove(&self.media(id));
            return Err(error);
        }
        let size = incoming.hand_over();
        let kept = Kept { owner, since, size, file: label.file, open: 0, used: false };
        self.state().uploads.insert(id, kept);
        crash::point(Point::ShelfKept);
        Ok(())
    }

    /// Holds an upload of this owner for a transcription; `false` when there is none of that id.
    pub fn hold(&self, id: Uuid, owner: &Hash) -> bool {
        let mut state = self.state();
        let kept = state.uploads.get_mut(&id).filter(|kept| kept.owner == *owner);
        kept.map(|kept| kept.open += 1).is_some()
    }

    /// A transcription that held the upload has ended; after the last one it goes.
    pub fn release(&self, id: Uuid) {
        let mut state = self.state();
        let Some(kept) = state.uploads.get_mut(&id) else { return };
        kept.open = kept.open.saturating_sub(1);
        let gone = kept.open == 0;
        drop(state);
        if gone {
            self.remove(id);
        }
    }

    /// A create that held the upload was not accepted: it stays for another one.
    pub fn give_back(&self, id: Uuid) {
        if let Some(kept) = self.state().uploads.get_mut(&id) {
            kept.open = kept.open.saturating_sub(1);
        }
    }

    /// Removes what no transcription holds: at once where one did, after [`UNUSED`] where none did.
    pub fn sweep(&self, now: Timestamp) {
        let over = |kept: &Kept| kept.open == 0 && (kept.used || now.since(kept.since) > UNUSED);
        let gone: Vec<Uuid> = self.state().uploads.iter().filter(|(_, kept)| over(kept)).map(|(id, _)| *id).collect();
        gone.into_iter().for_each(|id| self.remove(id));
    }

    /// Tells the shelf, at start, which transcriptions there are; whether it has the upload.
    pub fn remember(&self, id: Uuid, open: bool) -> bool {
        let mut state = self.state();
        let Some(kept) = state.uploads.get_mut(&id) else { return false };
        kept.used |= !open;
        kept.open += usize::from(open);
        true
    }

    /// What is known of an upload of this owner, and how many bytes it has.
    pub fn owned(&self, id: Uuid, owner: &Hash) -> Option<(File, u64)> {
        let state = self.state();
        let kept = state.uploads.get(&id).filter(|kept| kept.owner == *owner)?;
        Some((kept.file.clone(), kept.size))
    }

    /// What is known of an upload.
    pub fn file(&self, id: Uuid) -> Option<File> {
        self.state().uploads.get(&id).map(|kept| kept.file.clone())
    }

    /// Counts what was written beside the uploads.
    pub fn add_records(&self, owner: &Hash, bytes: u64) {
        let mut state = self.state();
        state.records += bytes;
        state.add(owner, bytes);
    }

    /// Counts what was removed beside the uploads.
    pub fn subtract_records(&self, owner: &Hash, bytes: u64) {
        let mut state = self.state();
        state.records = state.records.saturating_sub(bytes);
        state.subtract(owner, bytes);
    }

    /// Whether this key makes room for all: it holds more than its share, or none does.
    pub fn makes_room(&self, owner: &Hash) -> bool {
        let (state, share) = (self.state(), self.share_of_each());
        state.of(owner) > share || state.owners.values().all(|held| *held <= share)
    }

    fn share_of_each(&self) -> u64 {
        shares::of_disk(self.limits.disk, self.sharing().keys)
    }

    /// Whether nine tenths of the disk's limit are used.
    pub fn is_crowded(&self) -> bool {
        let state = self.state();
        state.all() > self.limits.disk / 10 * 9
    }

    /// How much of the disk's limit is used.
    pub fn usage(&self) -> Usage {
        Usage { used: self.state().all(), limit: self.limits.disk }
    }

    /// Where an upload's file is.
    pub fn media(&self, id: Uuid) -> PathBuf {
        self.folder.join(id.to_string())
    }

    /// Bytes kept, those that are still coming in included.
    pub fn bytes(&self) -> u64 {
        self.state().bytes
    }

    fn remove(&self, id: Uuid) {
        let mut state = self.state();
        // Between the look and now a create may have taken hold of it.
        if state.uploads.get(&id).is_none_or(|kept| kept.open > 0) {
            return;
        }
        if let Some(kept) = state.uploads.remove(&id) {
            state.bytes = state.bytes.saturating_sub(kept.size);
            state.subtract(&kept.owner, kept.size);
        }
        drop(state);
        // The label last: what is left of a removal that was cut short is found by it.
        let removed = files::remove(&self.media(id)).and_then(|()| {
            crash::point(Point::ShelfRemoving);
            files::remove(&self.label(id))
        });
        if let Err(error) = removed {
            tracing::warn!(%id, %error, "an upload could not be removed; the next start tries again");
        }
    }

    /// Counts `more` bytes of one that has `size` already.
    ///
    /// # Errors
    /// They do not fit.
    pub(super) fn reserve(&self, owner: &Hash, size: u64, more: u64) -> Result<(), ShelfError> {
        let mut state = self.state();
        self.check(size + more, state.of(owner).saturating_sub(size), state.all().saturating_sub(size))?;
        state.bytes += more;
        state.add(owner, more);
        Ok(())
    }

    /// Bytes that were reserved, and are not kept.
    pub(super) fn free(&self, owner: &Hash, size: u64) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(size);
        state.subtract(owner, size);
    }

    /// The last tenth of the disk is for keys that hold less than their share: whatever one key sends, others can
    /// send something.
    fn check(&self, upload: u64, own_others: u64, all_others: u64) -> Result<(), ShelfError> {
        let Limits { upload: one, disk } = self.limits;
        if upload > one.min(disk) {
            return Err(ShelfError::TooLarge { limit: one.min(disk) });
        }
        let (all, own, share) =
            (all_others.saturating_add(upload), own_others.saturating_add(upload), self.share_of_each());
        if all > disk / 10 * 9 && self.sharing().keys > 1 && own > share {
            return Err(ShelfError::OverShare { share, limit: disk });
        }
        if all <= disk { Ok(()) } else { Err(ShelfError::Full { limit: disk }) }
    }

    fn label(&self, id: Uuid) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_kept(folder: &Path, id: Uuid) -> io::Result<Kept> {
    let label: Label = serde_json::from_slice(&fs::read(folder.join(format!("{id}.json")))?)?;
    if label.v != 1 {
        let words = format!("an upload was kept by a newer release of scribed (version {})", label.v);
        return Err(io::Error::new(io::ErrorKind::Unsupported, words));
    }
    let size = fs::metadata(folder.join(id.to_string()))?.len();
    Ok(Kept { owner: label.owner, since: label.since, size, file: label.file, open: 0, used: false })
}

/// Without its file, or with a label that is no label: an upload that was never answered, or one
/// whose removal was cut short.
fn half_done(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | InvalidData | UnexpectedEof)
}

/// Removes files without a label and labels without a file: removals and uploads cut short.
fn remove_strangers(folder: &Path, known: &HashMap<Uuid, Kept>) -> io::Result<()> {
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
