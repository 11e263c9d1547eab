//! The service's durable store: everything that it has accepted, in one data directory.
//!
//! ```text
//! desk.json                  the identity of this store
//! owners.json                the owners of named keys (see `owners`)
//! lock                       held by the one process that works here
//! key                        the embedded service's own key (see `auth`)
//! uploads/ID, uploads/ID.json
//! ledger/N.log               accepted creates that have not ended, with the delivery of their creation (see `log`)
//! transcriptions/ID.json     an ended transcription: how it ended, and its deliveries; earlier releases
//!                            wrote it when the create was accepted, and such files are read
//! results/ID.json            the result, as the interface defines it
//! recognition/ID.log         what was recognised so far of a transcription that has not ended (see `chunk_logs`)
//! started/ID.json            work in progress, and how often the service was killed during it (see `kill_count`)
//! live/                      imported live transcriptions (see `live`)
//! ```
//!
//! The status `processing` is not stored: a transcription that has not ended is queued again at the next start.

use crate::clock::Clock;
use crate::crash_points::{self, Point};
use crate::domain::names::{Hash, Timestamp};
use crate::server::http::auth::ApiKey;
pub use crate::server::storage::accept::{Acceptance, CreateAudio, CreateCommand};
use crate::server::storage::chunk_logs::ChunkLogs;
use crate::server::storage::files;
use crate::server::storage::index::{DeferralCause, IndexEntry, QueueKind, TranscriptionIndex};
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

/// The settings of a store.
#[derive(Debug, Clone, Copy)]
pub struct StoreRules {
    /// The limits of its size.
    pub limits: UploadLimits,
    /// The owner of records without one.
    pub first_owner: Hash,
    /// How many transcriptions of one owner run at once, at least 1.
    pub running: usize,
    /// How many more transcriptions of one owner may wait.
    pub queue: usize,
    /// How long a transcription is kept after its end.
    pub retention: Duration,
    /// How long an upload is kept after its last use.
    pub uploads: UploadRetention,
    /// Whether the webhook is called at each creation and each end.
    pub webhook: bool,
    /// How deliveries are repeated.
    pub patience: DeliveryRetries,
    /// Bytes of a volume of the log, about.
    pub volume: u64,
}

/// A transcription that was taken from a queue to be worked on.
#[derive(Debug, Clone)]
pub struct TakenTranscription {
    pub id: Uuid,
    pub owner: Hash,
    pub upload: Uuid,
    /// Cancelled when its owner deletes it: it then ends at once.
    pub cancelled: CancellationToken,
    pub(crate) created: Timestamp,
}

/// The number of locks that the transcriptions of a store share.
const SETTLE_LOCKS: usize = 64;

/// The store. Its methods block on the disk, except for [`accept`](Self::accept): call them from a thread that may
/// block.
pub struct TranscriptionStore {
    pub(crate) root: PathBuf,
    id: Uuid,
    pub(crate) rules: StoreRules,
    pub(crate) clock: Arc<dyn Clock>,
    index: Mutex<TranscriptionIndex>,
    /// Held while the record of a transcription is changed or removed after its creation; each for the ids that fall to
    /// it, so that the syncs of different transcriptions run beside each other.
    settling: [Mutex<()>; SETTLE_LOCKS],
    /// Notified for each transcription that can be recognised.
    pub bell: Notify,
    /// Notified for each transcription whose audio is to be fetched.
    pub fetching: Notify,
    /// Notified at each end, which may have deliveries.
    pub calling: Notify,
    /// Notified at each end.
    pub ends: Notify,
    /// The tokens that cancel transcriptions in progress.
    in_progress: Mutex<HashMap<Uuid, CancellationToken>>,
    pub upload_store: Arc<UploadStore>,
    pub chunk_logs: Arc<ChunkLogs>,
    pub(crate) ledger: Arc<TranscriptionLog>,
    pub(crate) committer: GroupCommit,
    pub(crate) starts: Arc<Starts>,
    owners: Mutex<Owners>,
    lock: fs::File,
    /// Dropped last: the directory is then free.
    pub(crate) held: Arc<()>,
}

impl TranscriptionStore {
    /// Opens the store in a directory, creates it if it does not exist, and queues the transcriptions that have not
    /// ended.
    ///
    /// # Errors
    /// See [`StoreOpenError`]. A damaged record is not an error: it is renamed, and the log says so.
    pub fn open(root: &Path, rules: StoreRules, clock: Arc<dyn Clock>) -> Result<Self, StoreOpenError> {
        Self::open_with_keys(root, rules, (&[], &BTreeSet::new()), clock).map(|(store, _)| store)
    }

    /// As [`open`](Self::open), with these keys and all configured names. Records without an owner belong to the first
    /// key. Also returns the owner of each key.
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
        let upload_store = Arc::new(upload_store);
        let unfinished = |id| index.find_unfinished(id).map(|(_, owner, _)| owner);
        let chunk_logs = ChunkLogs::open(root, Arc::clone(&upload_store), unfinished)
            .map_err(|error| StoreOpenError::Io { path: root.to_owned(), error })?;
        let store = Self {
            root: root.to_owned(),
            id,
            rules,
            clock,
            index: Mutex::new(index),
            settling: std::array::from_fn(|_| Mutex::new(())),
            bell: Notify::new(),
            fetching: Notify::new(),
            calling: Notify::new(),
            ends: Notify::new(),
            in_progress: Mutex::default(),
            upload_store,
            chunk_logs: Arc::new(chunk_logs),
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

    /// Returns the owner of each of these keys, which replace the earlier ones. New owners are stored before this
    /// returns.
    ///
    /// # Errors
    /// Errors of the file system; then nothing has changed.
    pub fn assign_owners(&self, keys: &[ApiKey], names: &BTreeSet<String>) -> io::Result<Assigned> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).assign(keys, names)
    }

    /// Returns the identity of this store, which never changes, wherever the service listens.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Takes the next transcription of this owner to be recognised; its status is `processing` from now on.
    pub fn take_for_recognition_of(&self, owner: &Hash) -> Option<TakenTranscription> {
        let mut index = self.index();
        index.pop_recognition(self.rules.running, owner).map(|(created, entry)| self.taken(created, entry))
    }

    /// Takes the next transcription of this owner whose audio is to be fetched; its status stays `queued`.
    pub fn take_to_fetch_of(&self, owner: &Hash) -> Option<TakenTranscription> {
        let mut index = self.index();
        index.pop_fetch(owner).map(|(created, entry)| self.taken(created, entry))
    }

    /// Returns the owners with work in this queue that may be started.
    pub fn waiting_owners(&self, waits: QueueKind) -> BTreeSet<Hash> {
        self.index().waiting_owners(waits, self.rules.running)
    }

    fn taken(&self, created: Timestamp, entry: &IndexEntry) -> TakenTranscription {
        let cancelled = CancellationToken::new();
        self.in_progress().insert(entry.id, cancelled.clone());
        TakenTranscription { id: entry.id, owner: entry.owner, upload: entry.upload, cancelled, created }
    }

    /// Puts a taken transcription into this queue again.
    pub fn requeue(&self, taken: &TakenTranscription, waits: QueueKind) {
        let mut index = self.index();
        self.in_progress().remove(&taken.id);
        index.requeue(taken.created, waits);
        drop(index);
        self.notify_workers(waits);
        self.wake_workers();
        // A request that cancels it meanwhile can take it out of the queue now.
        self.ends.notify_waiters();
    }

    /// As [`TranscriptionStore::requeue`], for a transcription that this machine could not process: it is not tried
    /// again before `span` has passed, and holds no place until then.
    pub fn defer(&self, taken: &TakenTranscription, waits: QueueKind, span: Duration) {
        self.defer_because(taken, waits, span, (DeferralCause::Machine, None));
    }

    /// As [`TranscriptionStore::defer`], for this cause, and with the reason that people see.
    pub fn defer_because(
        &self,
        taken: &TakenTranscription,
        waits: QueueKind,
        span: Duration,
        (cause, reason): (DeferralCause, Option<String>),
    ) {
        let until = self.clock.uptime().after(span);
        let mut index = self.index();
        self.in_progress().remove(&taken.id);
        index.defer(taken.created, waits, until, cause);
        if let Some(reason) = reason {
            index.note_deferral(taken.created, reason);
        }
        drop(index);
        self.wake_workers();
        self.ends.notify_waiters();
    }

    /// Puts deferred transcriptions that are due back into the queue. Returns how long until the next one is due.
    pub fn requeue_deferred(&self, waits: QueueKind) -> Option<Duration> {
        let now = self.clock.uptime();
        self.index().requeue_deferred(waits, now).map(|until| until.since(now))
    }

    /// Records on the disk that work on a taken transcription begins. If the service is killed before the returned
    /// value is dropped, the next start counts the kill.
    ///
    /// # Errors
    /// Errors of the file system: the work must then not begin.
    pub fn begin(&self, taken: &TakenTranscription, work: TranscriptionWork) -> io::Result<Underway> {
        self.starts.start_work(taken.id, work)
    }

    /// Allows, from now on, starting transcriptions that one more kill would set aside. Called when the service has run
    /// for a while.
    pub fn allow_last_attempts(&self) {
        self.index().allow_last_attempts();
        self.wake_workers();
    }

    /// Wakes all workers: those that wait until a suspect ends, and those that may start one now.
    pub(crate) fn wake_workers(&self) {
        self.bell.notify_waiters();
        self.fetching.notify_waiters();
    }

    /// Ends transcriptions during whose work the service was killed too often.
    fn set_aside_killers(&self) {
        let work = self.starts.kill_counts().into_iter().filter(|(_, kills)| kills.work != TranscriptionWork::Delivery);
        for (id, kills) in work {
            if kills.count < MOST {
                tracing::warn!(
                    %id, kills = kills.count, most = MOST,
                    "the service was killed {}; it continues this work, with no other work beside it", kills.work.describe()
                );
                continue;
            }
            // If it cannot be ended, it waits for the next start; it is never taken.
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
        // A 4xx code, because the fault does not pass: creating it again would kill the service again.
        let ended =
            TranscriptionEnd { at: self.end_time(&taken), failure: Some(TranscriptionFailure { code: 422, message }) };
        self.end_as(&taken, ended, true)
    }

    /// Queues a transcription for recognition, because its audio was stored under the upload's id.
    pub fn mark_fetched(&self, taken: &TakenTranscription) {
        self.upload_store.hold(taken.upload, &taken.owner);
        self.requeue(taken, QueueKind::ToBeHeard);
    }

    /// Returns the end time of a transcription that ends now: never before its creation, even if the clock was set
    /// back.
    pub fn end_time(&self, taken: &TakenTranscription) -> Timestamp {
        self.clock.now().max(taken.created)
    }

    /// Ends a transcription, durably, and releases its upload. May be repeated after an error.
    ///
    /// # Errors
    /// Errors of the file system; the transcription has then not ended.
    pub fn end(&self, taken: &TakenTranscription, ended: TranscriptionEnd, result: Option<&str>) -> io::Result<()> {
        // The result first: a record that says `done` must have one.
        if let Some(result) = result {
            self.write_result(taken.id, |to| to.write_all(result.as_bytes()))?;
        }
        self.end_as(taken, ended, false)
    }

    /// Stores the result of a transcription that is about to end, durably. `write` writes it piece by piece, so that
    /// memory does not grow with it.
    ///
    /// # Errors
    /// Errors of the file system, and those of `write`; then nothing is stored.
    pub fn write_result(&self, id: Uuid, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        files::write_streamed(&self.result_path(id), write)?;
        crash_points::point(Point::EndResult);
        Ok(())
    }

    fn end_as(&self, taken: &TakenTranscription, ended: TranscriptionEnd, set_aside: bool) -> io::Result<()> {
        let is_done = ended.failure.is_none();
        let settling = self.settle_lock(taken.id);
        let head = self.record_meta(taken.id).or_else(|error| self.partial_record(taken, error))?;
        let calls = policy::initial_deliveries(head.callback.clone(), self.rules.webhook, &ended);
        let head = RecordMeta { ended: Some(ended), calls, set_aside, ..head };
        let written = self.write_head(taken.id, &head)?;
        crash_points::point(Point::EndWritten);
        if self.ledger.mark_settled(taken.id) {
            self.committer.request_compaction();
        }
        self.chunk_logs.remove(taken.id);
        let result_bytes = || fs::metadata(self.result_path(taken.id)).map_or(0, |found| found.len());
        let result = if is_done { result_bytes() } else { 0 };
        let bytes = written + result;
        self.upload_store.add_records(&taken.owner, bytes);
        let mut index = self.index();
        self.in_progress().remove(&taken.id);
        index.end(taken.created, &head, bytes);
        drop(index);
        drop(settling);
        // The audio of a transcription that was set aside stays, for a person who investigates.
        if !set_aside {
            self.upload_store.release(taken.upload);
        }
        self.calling.notify_one();
        self.ends.notify_waiters();
        // Another transcription of the same owner may run now.
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

    /// Returns the number of bytes written.
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

    /// Returns the tokens of transcriptions in progress. Lock it after the index, never before.
    pub(crate) fn in_progress(&self) -> MutexGuard<'_, HashMap<Uuid, CancellationToken>> {
        self.in_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn settle_lock(&self, id: Uuid) -> MutexGuard<'_, ()> {
        // Ids are random, also in their last byte.
        let [.., last] = *id.as_bytes();
        self.settling[usize::from(last) % SETTLE_LOCKS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TranscriptionStore {
    /// Unlocks the file explicitly. Closing it is not enough: a child process that is just being started has it open
    /// too.
    fn drop(&mut self) {
        self.committer.close();
        let _ = self.lock.unlock();
    }
}
