//! The uploads: each a file and a small JSON beside it. They are kept while a transcription of them has not ended,
//! and for a while after their last use; when the disk is short, those that no transcription waits for go first, the
//! one whose last use is the oldest before the others.

use crate::clock::Clock;
use crate::crash::{self, Point};
use crate::domain::names::{Hash, Timestamp};
use crate::server::fair_share;
use crate::server::recognition::transcribe::LONGEST;
use crate::server::storage::files;
use crate::server::storage::record_meta::nobody;
pub use crate::server::storage::upload_writer::UploadWriter;
use crate::wire::result::File;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// How much may be kept, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadLimits {
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
pub enum UploadStoreError {
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

/// How long an upload is kept after its last use. Its arrival, a create that names it, the end of a transcription of
/// it and a download are uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadRetention {
    /// One that no create has named.
    pub unnamed: Duration,
    /// One that a create has named. Zero: it goes with the end of the last transcription of it.
    pub named: Duration,
}

/// How long uploads are kept unless `[serve] uploads` says otherwise.
pub const A_DAY: Duration = Duration::from_secs(24 * 3600);

impl UploadRetention {
    /// No longer than they are needed: for a client that uploads each recording for one create.
    pub const UNTIL_TRANSCRIBED: Self = Self { unnamed: A_DAY, named: Duration::ZERO };

    /// So long after their last use; no time at all is [`UploadRetention::UNTIL_TRANSCRIBED`].
    pub const fn for_span(span: Duration) -> Self {
        if span.is_zero() { Self::UNTIL_TRANSCRIBED } else { Self { unnamed: span, named: span } }
    }

    /// How often is looked for those that have been kept long enough.
    pub fn looks(self) -> Duration {
        let shortest = if self.named.is_zero() { self.unnamed } else { self.unnamed.min(self.named) };
        (shortest / 4).clamp(Duration::from_secs(1), Duration::from_secs(3600))
    }
}

/// The uploads of one desk.
pub struct UploadStore {
    folder: PathBuf,
    limits: UploadLimits,
    keeping: UploadRetention,
    clock: Arc<dyn Clock>,
    sharing: Mutex<UploadRules>,
    looks: Mutex<HashMap<Hash, Arc<Semaphore>>>,
    state: Mutex<State>,
}

/// Uploads of one key that are looked at by ffprobe at once: fewer than of all keys (`media/sandbox.rs`).
const LOOKS: usize = 3;

/// What holds beside the limits.
#[derive(Debug, Clone, Copy)]
pub struct UploadRules {
    /// Keys that share the disk, at least 1.
    pub keys: usize,
    /// The longest recording that is taken.
    pub length_limit: Duration,
}

impl Default for UploadRules {
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
    /// Those that no open transcription holds, by whose they are and by their last use.
    idle: HashMap<Hash, BTreeSet<(Timestamp, Uuid)>>,
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

    fn insert(&mut self, id: Uuid, kept: Kept) {
        if kept.open == 0 {
            self.idle.entry(kept.owner).or_default().insert((kept.used, id));
        }
        self.uploads.insert(id, kept);
    }

    /// Changes what is known of an upload, and whether it is idle by that.
    fn change<T>(&mut self, id: Uuid, change: impl FnOnce(&mut Kept) -> T) -> Option<T> {
        let kept = self.uploads.get_mut(&id)?;
        let idle = self.idle.entry(kept.owner).or_default();
        idle.remove(&(kept.used, id));
        let changed = change(kept);
        if kept.open == 0 {
            idle.insert((kept.used, id));
        }
        Some(changed)
    }

    /// Takes an upload out that no open transcription holds.
    fn take_idle(&mut self, id: Uuid) -> Option<Kept> {
        let kept = self.uploads.get(&id).filter(|kept| kept.open == 0)?;
        let (owner, used) = (kept.owner, kept.used);
        if let Some(idle) = self.idle.get_mut(&owner) {
            idle.remove(&(used, id));
            if idle.is_empty() {
                self.idle.remove(&owner);
            }
        }
        let kept = self.uploads.remove(&id)?;
        self.bytes = self.bytes.saturating_sub(kept.size);
        self.subtract(&owner, kept.size);
        Some(kept)
    }

    /// Of the idle uploads of these owners that may go the one whose last use is the oldest.
    fn oldest_idle(&self, now: Timestamp, may: impl Fn(&Hash) -> bool) -> Option<Uuid> {
        let owners = self.idle.iter().filter(|(owner, _)| may(owner));
        let of_each = owners.filter_map(|(_, idle)| idle.iter().find(|(_, id)| self.may_go(*id, now)));
        of_each.min().map(|(_, id)| *id)
    }

    fn may_go(&self, id: Uuid, now: Timestamp) -> bool {
        self.uploads.get(&id).is_some_and(|kept| kept.named || now.since(kept.used) > FRESH)
    }
}

struct Kept {
    owner: Hash,
    since: Timestamp,
    size: u64,
    file: File,
    /// Transcriptions that have not ended.
    open: usize,
    /// Transcriptions that have ended and are kept.
    ended: usize,
    /// The last use.
    used: Timestamp,
    /// The last use that its label says.
    noted: Timestamp,
    /// Whether a create has named it.
    named: bool,
}

impl Kept {
    fn of(label: Label, size: u64) -> Self {
        let Label { owner, since, used, named, file, .. } = label;
        let used = used.unwrap_or(since).max(since);
        Self { owner, since, size, file, open: 0, ended: 0, used, noted: used, named }
    }

    fn label(&self) -> Label {
        let used = Some(self.used).filter(|used| *used != self.since);
        Label { v: 1, owner: self.owner, since: self.since, used, named: self.named, file: self.file.clone() }
    }
}

/// The JSON beside an upload.
#[derive(Serialize, Deserialize)]
struct Label {
    v: u32,
    #[serde(default = "nobody")]
    owner: Hash,
    since: Timestamp,
    /// The last use, as far as the transcriptions that are kept do not say it; absent: it was not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used: Option<Timestamp>,
    /// Whether a create has named it, as far as no transcription says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    named: bool,
    file: File,
}

/// An upload that no create has named yet stays so long whatever the disk has left: its create is on its way.
const FRESH: Duration = Duration::from_secs(15 * 60);

/// How much later than its label says an upload's last use may be before that is noted: a restart forgets the rest.
const NOTED: Duration = Duration::from_secs(300);

impl UploadStore {
    /// Opens the folder, empties it of what was left half-done. `whose`: who owns what was this owner's.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn open(
        folder: PathBuf,
        (limits, keeping): (UploadLimits, UploadRetention),
        clock: Arc<dyn Clock>,
        whose: &impl Fn(Hash) -> Hash,
    ) -> io::Result<Self> {
        files::make_folder(&folder)?;
        let mut state = State::default();
        for id in files::ids(&folder)? {
            match read_kept(&folder, id) {
                Ok(mut kept) => {
                    kept.owner = whose(kept.owner);
                    state.bytes += kept.size;
                    state.add(&kept.owner, kept.size);
                    state.insert(id, kept);
                }
                Err(error) if half_done(&error) => {
                    tracing::warn!(%id, %error, "the service removed an incomplete upload");
                }
                Err(error) => return Err(error),
            }
        }
        remove_strangers(&folder, &state.uploads)?;
        let (sharing, looks) = (Mutex::default(), Mutex::default());
        Ok(Self { folder, limits, keeping, clock, sharing, looks, state: Mutex::new(state) })
    }

    /// Says who shares it from now on, and what is taken; until then one key does.
    pub fn share(&self, sharing: UploadRules) {
        *self.sharing.lock().unwrap_or_else(PoisonError::into_inner) = sharing;
    }

    /// Says how many keys share it from now on.
    pub fn share_among(&self, keys: usize) {
        self.share(UploadRules { keys, ..self.sharing() });
    }

    fn sharing(&self) -> UploadRules {
        *self.sharing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The longest recording that is taken.
    pub fn length_limit(&self) -> Duration {
        self.sharing().length_limit
    }

    /// The right to have an upload of this key looked at: files that take long keep only its others waiting.
    pub(crate) async fn may_look(&self, owner: &Hash) -> Option<OwnedSemaphorePermit> {
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
    pub fn begin(self: &Arc<Self>, owner: Hash, announced: u64) -> Result<UploadWriter, UploadStoreError> {
        self.check_when_idle_go(&owner, announced)?;
        let (file, path) = files::temporary(&self.folder)?.into_parts();
        Ok(UploadWriter::new(tokio::fs::File::from_std(file), path, owner, Arc::clone(self)))
    }

    /// Keeps what has come in. Durable when it returns: an upload that was answered is not lost.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn keep(&self, mut incoming: UploadWriter, since: Timestamp, file: File) -> io::Result<()> {
        let owner = incoming.owner();
        let id = file.id.as_deref().and_then(files::parse_id);
        let (Some(id), Some(path)) = (id, incoming.take_path()) else {
            return Err(io::Error::other("an upload lacks its id or its file"));
        };
        let label = Label { v: 1, owner, since, used: None, named: false, file };
        path.persist(self.media(id))?;
        crash::point(Point::ShelfNamed);
        // The label's own sync of the folder covers the file's name too.
        if let Err(error) = files::write_whole(&self.label(id), &serde_json::to_vec(&label)?) {
            // Without a label it is swept away at the next start.
            let _ = files::remove(&self.media(id));
            return Err(error);
        }
        let size = incoming.hand_over();
        self.state().insert(id, Kept::of(label, size));
        crash::point(Point::ShelfKept);
        Ok(())
    }

    /// Holds an upload of this owner for a transcription; `false` when there is none of that id.
    pub fn hold(&self, id: Uuid, owner: &Hash) -> bool {
        let mut state = self.state();
        if state.uploads.get(&id).is_none_or(|kept| kept.owner != *owner) {
            return false;
        }
        state.change(id, |kept| kept.open += 1).is_some()
    }

    /// A transcription that held the upload has ended.
    pub fn release(&self, id: Uuid) {
        let now = self.clock.now();
        let over = self.state().change(id, |kept| {
            kept.open = kept.open.saturating_sub(1);
            kept.ended += 1;
            kept.named = true;
            kept.used = kept.used.max(now);
            self.is_over(kept, now)
        });
        if over == Some(true) {
            self.remove(id);
        }
    }

    /// A create that held the upload was not accepted: it stays as it was.
    pub fn give_back(&self, id: Uuid) {
        self.state().change(id, |kept| kept.open = kept.open.saturating_sub(1));
    }

    /// An ended transcription of the upload is removed; `held`: it held the upload still. With `all` its audio
    /// goes with it, unless another transcription has it too.
    pub fn forget(&self, id: Uuid, held: bool, all: bool) {
        let gone = self.state().change(id, |kept| {
            if held {
                kept.open = kept.open.saturating_sub(1);
            } else {
                kept.ended = kept.ended.saturating_sub(1);
            }
            kept.named = true;
            (all || held) && kept.open + kept.ended == 0
        });
        match gone {
            Some(true) => _ = self.remove(id),
            // So far the transcription said when the upload was used last.
            Some(false) => self.note(id, Duration::ZERO),
            None => {}
        }
    }

    /// The upload is read by its owner.
    pub fn use_now(&self, id: Uuid) {
        let now = self.clock.now();
        self.state().change(id, |kept| kept.used = kept.used.max(now));
        self.note(id, NOTED);
    }

    /// Writes an upload's last use into its label, where that says one that is earlier by more than this.
    fn note(&self, id: Uuid, behind: Duration) {
        let label = self.state().change(id, |kept| {
            let due = kept.open == 0 && kept.used.since(kept.noted) > behind;
            due.then(|| {
                kept.noted = kept.used;
                kept.label()
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

    /// Removes what no open transcription holds and has been kept for long enough.
    pub fn sweep(&self) {
        let now = self.clock.now();
        let over = |(_, kept): &(&Uuid, &Kept)| self.is_over(kept, now);
        let gone: Vec<Uuid> = self.state().uploads.iter().filter(over).map(|(id, _)| *id).collect();
        gone.into_iter().for_each(|id| _ = self.remove(id));
    }

    fn is_over(&self, kept: &Kept, now: Timestamp) -> bool {
        let (span, since) = (if kept.named { self.keeping.named } else { self.keeping.unnamed }, now.since(kept.used));
        kept.open == 0 && (span.is_zero() || since > span)
    }

    /// Tells the shelf, at start, of a transcription, and when that used its upload last; whether it has the upload.
    pub fn remember(&self, id: Uuid, open: bool, used: Timestamp) -> bool {
        let told = self.state().change(id, |kept| {
            kept.open += usize::from(open);
            kept.ended += usize::from(!open);
            kept.named = true;
            kept.used = kept.used.max(used);
        });
        told.is_some()
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
        fair_share::of_disk(self.limits.disk, self.sharing().keys)
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

    /// Removes idle uploads, that whose last use is the oldest first, until eight tenths of the disk's limit are used;
    /// how many. So there is room for what comes, and for imports. Only those of keys that make room for all.
    pub fn make_room(&self) -> usize {
        let mut removed = 0;
        while let Some(oldest) = self.to_make_room() {
            removed += usize::from(self.remove(oldest));
        }
        removed
    }

    fn to_make_room(&self) -> Option<Uuid> {
        let (state, share) = (self.state(), self.share_of_each());
        if state.all() <= self.limits.disk / 10 * 8 {
            return None;
        }
        let is_over = |owner: &Hash| state.of(owner) > share;
        let any_over = state.owners.keys().any(is_over);
        state.oldest_idle(self.clock.now(), |owner| is_over(owner) || !any_over)
    }

    /// Whether it was removed.
    fn remove(&self, id: Uuid) -> bool {
        // Between the look and now a create may have taken hold of it.
        if self.state().take_idle(id).is_none() {
            return false;
        }
        // The label last: what is left of a removal that was cut short is found by it.
        let removed = files::remove(&self.media(id)).and_then(|()| {
            crash::point(Point::ShelfRemoving);
            files::remove(&self.label(id))
        });
        if let Err(error) = removed {
            tracing::warn!(%id, %error, "cannot remove an upload; the next start tries again");
        }
        true
    }

    /// Counts `more` bytes of one that has `size` already. Idle uploads go where there is no room for them.
    ///
    /// # Errors
    /// They do not fit.
    pub(crate) fn reserve(&self, owner: &Hash, size: u64, more: u64) -> Result<(), UploadStoreError> {
        loop {
            let mut state = self.state();
            let (own, all) = (state.of(owner).saturating_sub(size), state.all().saturating_sub(size));
            let fits = self.check(size + more, own, all);
            let Err(UploadStoreError::Full { .. } | UploadStoreError::OverShare { .. }) = fits else {
                fits?;
                state.bytes += more;
                state.add(owner, more);
                return Ok(());
            };
            let oldest = self.to_give_way(&state, owner, own + size + more);
            drop(state);
            match oldest {
                Some(oldest) => self.remove(oldest),
                None => return fits,
            };
        }
    }

    /// The idle upload that goes next so that `owner` can have `held` bytes. Within its share it keeps its own where
    /// another key holds more than that.
    fn to_give_way(&self, state: &State, owner: &Hash, held: u64) -> Option<Uuid> {
        let (now, share) = (self.clock.now(), self.share_of_each());
        let is_over = |other: &Hash| held <= share && other != owner && state.of(other) > share;
        let of_others = state.oldest_idle(now, is_over);
        of_others.or_else(|| state.oldest_idle(now, |other| self.gives_way(state, other, owner, held)))
    }

    /// Whether idle uploads of `of` go so that `owner` can have `held` bytes: its own do, and those of a key that
    /// holds more than its share. Others' only where nobody does, and `owner` stays within its share.
    fn gives_way(&self, state: &State, of: &Hash, owner: &Hash, held: u64) -> bool {
        let share = self.share_of_each();
        let nobody_over = || state.owners.iter().all(|(other, bytes)| other == owner || *bytes <= share);
        of == owner || state.of(of) > share || (held <= share && nobody_over())
    }

    /// Whether so much fits, when the idle uploads go that would go for it. None does before bytes come.
    fn check_when_idle_go(&self, owner: &Hash, announced: u64) -> Result<(), UploadStoreError> {
        let (state, now) = (self.state(), self.clock.now());
        let (own, all) = (state.of(owner), state.all());
        match self.check(announced, own, all) {
            Err(UploadStoreError::Full { .. } | UploadStoreError::OverShare { .. }) => {}
            // What is announced may be any number here.
            known => return known,
        }
        let idle = |of: &Hash| -> u64 {
            let ids = state.idle.get(of).into_iter().flatten().map(|(_, id)| id).filter(|id| state.may_go(**id, now));
            ids.filter_map(|id| state.uploads.get(id)).map(|kept| kept.size).sum()
        };
        let own_idle = idle(owner);
        let gives_way = |of: &&Hash| *of != owner && self.gives_way(&state, of, owner, own + announced - own_idle);
        let others_idle: u64 = state.idle.keys().filter(gives_way).map(idle).sum();
        self.check(announced, own - own_idle, all.saturating_sub(own_idle + others_idle))
    }

    /// Bytes that were reserved, and are not kept.
    pub(crate) fn free(&self, owner: &Hash, size: u64) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(size);
        state.subtract(owner, size);
    }

    /// The last tenth of the disk is for keys that hold less than their share: whatever one key sends, others can
    /// send something.
    fn check(&self, upload: u64, own_others: u64, all_others: u64) -> Result<(), UploadStoreError> {
        let UploadLimits { upload: one, disk } = self.limits;
        if upload > one.min(disk) {
            return Err(UploadStoreError::TooLarge { limit: one.min(disk) });
        }
        let (all, own, share) =
            (all_others.saturating_add(upload), own_others.saturating_add(upload), self.share_of_each());
        if all > disk / 10 * 9 && self.sharing().keys > 1 && own > share {
            return Err(UploadStoreError::OverShare { share, limit: disk });
        }
        if all <= disk { Ok(()) } else { Err(UploadStoreError::Full { limit: disk }) }
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
        let words = format!("a newer release of scribed stored an upload (version {})", label.v);
        return Err(io::Error::new(io::ErrorKind::Unsupported, words));
    }
    let size = fs::metadata(folder.join(id.to_string()))?.len();
    Ok(Kept::of(label, size))
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
