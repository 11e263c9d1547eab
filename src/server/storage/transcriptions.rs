//! The service's durable store: what it has accepted, in one data directory.
//!
//! ```text
//! desk.json                  the identity of this store
//! owners.json                whose the records of named keys are (see `owners`)
//! lock                       held by the one process that works here
//! key                        the embedded service's own key (see `auth`)
//! uploads/ID, uploads/ID.json
//! ledger/N.log               accepted creates that have not ended (see `ledger`)
//! transcriptions/ID.json     one that has ended, how, and who is still to be called; earlier releases
//!                            wrote it when the create was accepted, and what they left is read
//! results/ID.json            what was made of it, as the interface writes it
//! started/ID.json            what is in progress, and how often the service was killed during it (see `starts`)
//! live/                      what was imported of live transcriptions (see `live`)
//! ```
//!
//! `processing` is written nowhere: what has not ended is queued again at the next start.

use crate::clock::Clock;
use crate::crash_points::{self, Point};
use crate::domain::names::{Hash, Timestamp};
use crate::server::http::auth::ApiKey;
pub use crate::server::storage::accept::{Acceptance, CreateAudio, CreateOrder};
use crate::server::storage::files;
use crate::server::storage::index::{IndexEntry, QueueKind, TranscriptionIndex};
use crate::server::storage::kill_count::{Kills, MOST, Starts, TranscriptionWork, Underway};
use crate::server::storage::log::group_commit::GroupCommit;
use crate::server::storage::log::ledger::TranscriptionLog;
use crate::server::storage::open;
pub use crate::server::storage::open::StoreOpenError;
use crate::server::storage::owners::{Assigned, Owners};
pub use crate::server::storage::record_meta::{
    Callee, DeliveryState, RecordMeta, TranscriptionEnd, TranscriptionFailure,
};
pub use crate::server::storage::records::TranscriptionState;
pub use crate::server::storage::retention::DeleteResult;
use crate::server::storage::uploads::{UploadLimits, UploadRetention, UploadStore};
use crate::server::webhooks::policy;
use crate::server::webhooks::policy::DeliveryRetries;
pub use crate::server::webhooks::queue::Delivery;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// What holds for a store.
#[derive(Debug, Clone, Copy)]
pub struct StoreRules {
    /// How much may be kept.
    pub limits: UploadLimits,
    /// Whose the records are that say nothing of an owner.
    pub first_owner: Hash,
    /// Transcriptions of one owner that are heard at once, at least 1.
    pub running: usize,
    /// Transcriptions of one owner that may wait beside them.
    pub queue: usize,
    /// How long a transcription is kept after its end.
    pub retention: Duration,
    /// How long an upload is kept after its last use.
    pub uploads: UploadRetention,
    /// Whether the webhook hears of ends.
    pub webhook: bool,
    /// How calls are tried again.
    pub patience: DeliveryRetries,
    /// Bytes of a volume of the ledger, about.
    pub volume: u64,
}

/// A transcription that was taken to be worked on.
#[derive(Debug, Clone)]
pub struct TakenTranscription {
    pub id: Uuid,
    pub owner: Hash,
    pub upload: Uuid,
    /// Whether its owner wants it no more: then it ends at once.
    pub cancelled: CancellationToken,
    pub(crate) created: Timestamp,
}

/// The store. Its methods block on the disk, but for [`accept`](Self::accept): call them from a thread
/// that may.
pub struct TranscriptionStore {
    pub(crate) root: PathBuf,
    id: Uuid,
    pub(crate) rules: StoreRules,
    pub(crate) clock: Arc<dyn Clock>,
    index: Mutex<TranscriptionIndex>,
    /// Held while the head of an ended transcription is changed or removed.
    settling: Mutex<()>,
    /// Rung once for every one that can be heard.
    pub bell: Notify,
    /// Rung once for every one whose audio is to be fetched.
    pub fetching: Notify,
    /// Rung for every end that somebody is to be called about.
    pub calling: Notify,
    /// Rung for every end.
    pub ends: Notify,
    /// How those in progress are cancelled.
    in_progress: Mutex<HashMap<Uuid, CancellationToken>>,
    pub upload_store: Arc<UploadStore>,
    pub(crate) ledger: Arc<TranscriptionLog>,
    pub(crate) committer: GroupCommit,
    pub(crate) starts: Arc<Starts>,
    owners: Mutex<Owners>,
    lock: fs::File,
    /// The last to go: with it the directory is free.
    pub(crate) held: Arc<()>,
}

impl TranscriptionStore {
    /// Opens the store in a directory, made if it is not there, and takes up what had not ended.
    ///
    /// # Errors
    /// See [`StoreOpenError`]. A transcription's file that is damaged is set aside under another name
    /// and told in the log, no error.
    pub fn open(root: &Path, rules: StoreRules, clock: Arc<dyn Clock>) -> Result<Self, StoreOpenError> {
        Self::open_with_keys(root, rules, (&[], &BTreeSet::new()), clock).map(|(store, _)| store)
    }

    /// As [`open`](Self::open), for these keys and all names that are configured; the first key has the records that say nothing of an owner. With
    /// the owner of each.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_keys(
        root: &Path,
        mut rules: StoreRules,
        keys: (&[ApiKey], &BTreeSet<String>),
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Assigned), StoreOpenError> {
        let opened = open::open(root, &mut rules, keys, &clock)?;
        let open::OpenedStore { id, lock, upload_store, index, ledger, committer, starts, owners, assigned } = opened;
        upload_store.remove_expired();
        let store = Self {
            root: root.to_owned(),
            id,
            rules,
            clock,
            index: Mutex::new(index),
            settling: Mutex::new(()),
            bell: Notify::new(),
            fetching: Notify::new(),
            calling: Notify::new(),
            ends: Notify::new(),
            in_progress: Mutex::default(),
            upload_store: Arc::new(upload_store),
            ledger,
            committer,
            starts,
            owners: Mutex::new(owners),
            lock,
            held: Arc::default(),
        };
        store.set_aside_killers();
        store.count_killed_deliveries();
        store.remove_expired_records();
        Ok((store, assigned))
    }

    /// The owner of each of other keys, from now on. What is new is kept before this returns.
    ///
    /// # Errors
    /// Those of the file system; then nothing has changed.
    pub fn assign_owners(&self, keys: &[ApiKey], names: &BTreeSet<String>) -> io::Result<Assigned> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).assign(keys, names)
    }

    /// The identity of this store: the same for ever, wherever it listens.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Takes the next one to be heard; it is `processing` from now on.
    pub fn take_for_recognition(&self) -> Option<TakenTranscription> {
        let mut index = self.index();
        index.pop_recognition(self.rules.running, None).map(|(created, entry)| self.taken(created, entry))
    }

    /// As [`TranscriptionStore::take_for_recognition`], of this owner.
    pub fn take_for_recognition_of(&self, owner: &Hash) -> Option<TakenTranscription> {
        let mut index = self.index();
        index.pop_recognition(self.rules.running, Some(owner)).map(|(created, entry)| self.taken(created, entry))
    }

    /// Takes the next one whose audio is to be fetched; it stays `queued`.
    pub fn take_to_fetch(&self) -> Option<TakenTranscription> {
        let mut index = self.index();
        index.pop_fetch(None).map(|(created, entry)| self.taken(created, entry))
    }

    /// As [`TranscriptionStore::take_to_fetch`], of this owner.
    pub fn take_to_fetch_of(&self, owner: &Hash) -> Option<TakenTranscription> {
        let mut index = self.index();
        index.pop_fetch(Some(owner)).map(|(created, entry)| self.taken(created, entry))
    }

    /// Who has something that waits for this and may be begun.
    pub fn waiting_owners(&self, waits: QueueKind) -> BTreeSet<Hash> {
        self.index().waiting_owners(waits, self.rules.running)
    }

    fn taken(&self, created: Timestamp, entry: &IndexEntry) -> TakenTranscription {
        let cancelled = CancellationToken::new();
        self.in_progress().insert(entry.id, cancelled.clone());
        TakenTranscription { id: entry.id, owner: entry.owner, upload: entry.upload, cancelled, created }
    }

    /// Puts back what was taken, as it was.
    pub fn requeue(&self, taken: &TakenTranscription, waits: QueueKind) {
        let mut index = self.index();
        self.in_progress().remove(&taken.id);
        index.requeue(taken.created, waits);
        drop(index);
        self.notify_workers(waits);
        self.wake_workers();
        // Whoever cancelled it meanwhile takes it out now.
        self.ends.notify_waiters();
    }

    /// As [`TranscriptionStore::requeue`], of what could not be done on this machine: it is not tried again before `span` has
    /// gone by, and holds nothing meanwhile.
    pub fn defer(&self, taken: &TakenTranscription, waits: QueueKind, span: Duration) {
        let until = self.clock.uptime().after(span);
        let mut index = self.index();
        self.in_progress().remove(&taken.id);
        index.defer(taken.created, waits, until);
        drop(index);
        self.wake_workers();
        self.ends.notify_waiters();
    }

    /// Has what rested long enough wait again; how long until the next one has.
    pub fn requeue_deferred(&self, waits: QueueKind) -> Option<Duration> {
        let now = self.clock.uptime();
        self.index().requeue_deferred(waits, now).map(|until| until.since(now))
    }

    /// Notes on the disk that work on what was taken begins; if the service is killed before the answer is
    /// dropped, the next start counts it.
    ///
    /// # Errors
    /// Those of the file system: then the work must not begin.
    pub fn begin(&self, taken: &TakenTranscription, work: TranscriptionWork) -> io::Result<Underway> {
        self.starts.start_work(taken.id, work)
    }

    /// From now on what would be set aside after one more kill is started too. Called when the service has
    /// been up for a while.
    pub fn allow_last_attempts(&self) {
        self.index().allow_last_attempts();
        self.wake_workers();
    }

    /// Whoever waited for a suspect to end, or is to begin with one, looks again.
    pub(crate) fn wake_workers(&self) {
        self.bell.notify_waiters();
        self.fetching.notify_waiters();
    }

    /// Ends what the service was killed by, or at least during, too often.
    fn set_aside_killers(&self) {
        let work = self.starts.kill_counts().into_iter().filter(|(_, kills)| kills.work != TranscriptionWork::Delivery);
        for (id, kills) in work {
            if kills.count < MOST {
                tracing::warn!(
                    %id, kills = kills.count, most = MOST,
                    "the service was killed {}; it starts this work again, with no other work beside it", kills.work.describe()
                );
                continue;
            }
            // Not ended it waits for the next start: it is never taken.
            match self.set_aside(id, kills) {
                Ok(()) => self.starts.clear(id),
                Err(error) => {
                    tracing::error!(%id, %error, "cannot end a transcription that must not start again; the next start tries again");
                }
            }
        }
    }

    fn set_aside(&self, id: Uuid, kills: Kills) -> io::Result<()> {
        let Some((created, owner, upload)) = self.index().find_unfinished(id) else { return Ok(()) };
        let taken = TakenTranscription { id, owner, upload, cancelled: CancellationToken::new(), created };
        let name = self.upload_store.file_info(upload).and_then(|file| file.filename).unwrap_or_default();
        let message = format!(
            "the service was killed {} times {}; it is set aside and not started again. Its audio is kept until this \
             transcription is deleted or `retention` removes it",
            kills.count,
            kills.work.describe()
        );
        tracing::error!(%id, name, audio = %self.upload_store.media_path(upload).display(), "{message}");
        // The client's affair, not a fault that passes: whoever creates it again kills the service again.
        let ended =
            TranscriptionEnd { at: self.end_time(&taken), failure: Some(TranscriptionFailure { code: 422, message }) };
        self.end_as(&taken, ended, true)
    }

    /// The audio has come, under the upload's id: it waits to be heard.
    pub fn mark_fetched(&self, taken: &TakenTranscription) {
        self.upload_store.hold(taken.upload, &taken.owner);
        self.requeue(taken, QueueKind::ToBeHeard);
    }

    /// The moment at which a transcription that ends now has ended: never before its creation,
    /// even if the clock was set back.
    pub fn end_time(&self, taken: &TakenTranscription) -> Timestamp {
        self.clock.now().max(taken.created)
    }

    /// Ends a transcription, durably, and lets go of its upload. May be repeated after an error.
    ///
    /// # Errors
    /// Those of the file system; then it has not ended.
    pub fn end(&self, taken: &TakenTranscription, ended: TranscriptionEnd, result: Option<&str>) -> io::Result<()> {
        // The result first: a head that says `done` must find it.
        if let Some(result) = result {
            self.write_result(taken.id, |to| to.write_all(result.as_bytes()))?;
        }
        self.end_as(taken, ended, false)
    }

    /// Keeps what was made of a transcription that is about to end, durably, as it is written: memory does not
    /// grow with it.
    ///
    /// # Errors
    /// Those of the file system, and of whoever writes; then nothing is kept.
    pub fn write_result(&self, id: Uuid, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        files::write_streamed(&self.result_path(id), write)?;
        crash_points::point(Point::EndResult);
        Ok(())
    }

    fn end_as(&self, taken: &TakenTranscription, ended: TranscriptionEnd, set_aside: bool) -> io::Result<()> {
        let is_done = ended.failure.is_none();
        let head = self.record_meta(taken.id).or_else(|error| self.partial_record(taken, error))?;
        let calls = policy::initial_deliveries(head.callback.clone(), self.rules.webhook, &ended);
        let head = RecordMeta { ended: Some(ended), calls, set_aside, ..head };
        let written = self.write_head(taken.id, &head)?;
        crash_points::point(Point::EndWritten);
        if self.ledger.mark_settled(taken.id) {
            self.committer.request_compaction();
        }
        let kept = || fs::metadata(self.result_path(taken.id)).map_or(0, |found| found.len());
        let result = if is_done { kept() } else { 0 };
        let bytes = written + result;
        self.upload_store.add_records(&taken.owner, bytes);
        let mut index = self.index();
        self.in_progress().remove(&taken.id);
        index.end(taken.created, &head, bytes);
        drop(index);
        // Of what was set aside the audio stays, for whoever looks into it.
        if !set_aside {
            self.upload_store.release(taken.upload);
        }
        self.calling.notify_one();
        self.ends.notify_waiters();
        // Another one of the same owner may be heard now.
        self.bell.notify_one();
        self.wake_workers();
        self.free_space();
        Ok(())
    }

    pub(crate) fn notify_workers(&self, waits: QueueKind) {
        match waits {
            QueueKind::ToBeHeard => self.bell.notify_one(),
            QueueKind::ToBeFetched => self.fetching.notify_one(),
        }
    }

    /// Bytes written.
    pub(crate) fn write_head(&self, id: Uuid, head: &RecordMeta) -> io::Result<u64> {
        let bytes = serde_json::to_vec(head)?;
        files::write_whole(&self.head_path(id), &bytes)?;
        Ok(bytes.len() as u64)
    }

    pub(crate) fn head_path(&self, id: Uuid) -> PathBuf {
        self.root.join("transcriptions").join(format!("{id}.json"))
    }

    pub(crate) fn result_path(&self, id: Uuid) -> PathBuf {
        self.root.join("results").join(format!("{id}.json"))
    }

    pub(crate) fn index(&self) -> MutexGuard<'_, TranscriptionIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locked after the index.
    pub(crate) fn in_progress(&self) -> MutexGuard<'_, HashMap<Uuid, CancellationToken>> {
        self.in_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn settle_lock(&self) -> MutexGuard<'_, ()> {
        self.settling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TranscriptionStore {
    /// Closing the file is not enough: a child process that is just being started has it open too.
    fn drop(&mut self) {
        self.committer.close();
        let _ = self.lock.unlock();
    }
}
