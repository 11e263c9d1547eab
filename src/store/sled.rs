//! The store of one machine: rows in sled, history in files beside them.
//!
//! ```text
//! <dir>/queue/     sled: `j` + number -> job, `b` + hash of the order -> purchase, `m/…` -> what is true of the store
//! <dir>/queue/large/  see `store/large.rs`
//! <dir>/history/   see `store/journal.rs`
//! <dir>/queue.lock  see `store/process_lock.rs`
//! ```
//!
//! sled 0.34.7 is safe from a killed process by itself, and from power loss only when used like this
//! (its own `flush` never calls fsync; 639 of 640 simulated power losses lost what it had acknowledged,
//! none of 4,640 with these rules):
//! - a `sync_data` on our own handle of its file follows every `flush`;
//! - what it creates when opened is synced before anything is acknowledged;
//! - a value stays far below the size at which sled puts it into a file of its own, never synced;
//! - one plain insert for each step, in order; no batches, no transactions, no `flush_async`;
//! - its own flusher stays on: it collects garbage, and makes durable what nobody waits for.
//!
//! A page that went bad can come back as rows of an older time, or be missing, without a word from
//! sled. So every value carries a checksum and its own key, and the numbers of jobs have no gaps.

use crate::domain::job::Job;
use crate::domain::names::{Hash, JobId, ServiceName, Timestamp};
use crate::domain::pause::Pauses;
use crate::domain::token::PurchaseKey;
use crate::durable_file;
use crate::permission_errors::{explain_state_at, split_fix};
use crate::store::contract::{KnownPurchase, StoreError};
use crate::store::decode::in_order;
use crate::store::index::job_index::order_hash;
use crate::store::journal::HistoryFiles;
use crate::store::large::{self, LargeValues};
use crate::store::parts::{self, SplitRecord};
use crate::store::process_lock::{LockError, ProcessLock};
use crate::store::queue::{Barrier, QueueStore, Rows};
use crate::store::snapshot;
use crate::store::snapshot::SnapshotFolder;
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Format of the values and of their keys. Every release reads all formats up to its own.
const FORMAT: u8 = DIVIDED;
/// A value that is whole.
const WHOLE: u8 = 1;
/// A value with a part in files (`store/large.rs`). Releases that do not know such values refuse the queue while it
/// has one.
const DIVIDED: u8 = 2;

const CACHE_BYTES: u64 = 4 << 20;
/// With sled's pages of up to 17 values this stays far from the 128 KiB above which sled would write a separate file.
const LARGEST_VALUE: usize = 7 << 10;
/// A longer record (long path, many outputs) is compressed.
const LARGEST_PLAIN: usize = 2 << 10;
/// A longer record is divided, even if compression could make it short enough.
const LARGEST_PACKED: usize = 64 << 10;
/// No value of ours unpacks to more.
const LARGEST_UNPACKED: u64 = 64 << 20;
/// Most callers that wait for a sync. Further callers wait until there is room.
const WAITING: usize = 1024;

const JOB: u8 = b'j';
const BOUGHT: u8 = b'b';
const META_FORMAT: &[u8] = b"m/format";
/// Trust in the queue for the service [`ServiceName::DEFAULT`], once the only one. For other services `/NAME`
/// follows.
const META_TRUSTED: &[u8] = b"m/trusted";
/// Whether the queue has lost something that it knew.
const META_LOST: &[u8] = b"m/lost";
const META_SIGHTINGS: &[u8] = b"m/sightings";
/// Older releases had only one pause, under this key: everything rests.
const META_PAUSED: &[u8] = b"m/paused";
const META_PAUSES: &[u8] = b"m/pauses";

/// Opens the store in this directory, or creates it: readable by its owner only, empty, and suspect.
/// Blocks for as long as it takes to read every row once.
///
/// # Errors
/// [`StoreError::Locked`] while another process has it, [`StoreError::Damaged`] where it cannot be read
/// as it was written (then [`open_rebuilt`] is the way out), [`StoreError::Unwritable`] where the disk
/// or its permissions do not allow it.
pub fn open(dir: &Path) -> Result<QueueStore, StoreError> {
    open_at(dir, None)
}

/// As [`open`]; with the time, waits can be limited without reading every row once more.
///
/// # Errors
/// As [`open`].
pub fn open_at(dir: &Path, now: Option<Timestamp>) -> Result<QueueStore, StoreError> {
    let queue = dir.join("queue");
    make_private(&queue).map_err(|error| unwritable(&queue, error))?;
    let process_lock = patiently(|| enter(dir)).map_err(|flaw| flaw.told(&queue))?;
    open_inside(dir, &process_lock, now)
}

fn enter(dir: &Path) -> Result<Arc<ProcessLock>, Flaw> {
    Ok(Arc::new(ProcessLock::enter(dir)?))
}

fn open_inside(dir: &Path, process_lock: &Arc<ProcessLock>, now: Option<Timestamp>) -> Result<QueueStore, StoreError> {
    let queue = dir.join("queue");
    match patiently(|| open_guarded(dir, process_lock, Trust::AsItSays, now)) {
        Err(Flaw::Damaged(what)) => {
            if !set_snapshots_aside(&queue) {
                return Err(Flaw::Damaged(what).told(&queue));
            }
            tracing::warn!(dir = %queue.display(), what, "the snapshot of the queue could not be used; scribed renamed it and opens the queue without it");
            patiently(|| open_guarded(dir, process_lock, Trust::Repaired, now)).map_err(|flaw| flaw.told(&queue))
        }
        opened => opened.map_err(|flaw| flaw.told(&queue)),
    }
}

/// Copies the store in `dir` and opens the copy: opening a store writes to it, and a reader must change nothing. The
/// copy lies in `dir` as long as the returned folder lives. `None` if there is no store. The history is not copied.
/// Copies that killed processes left are removed.
///
/// # Errors
/// As [`open`].
pub fn open_copy(dir: &Path) -> Result<Option<(QueueStore, SnapshotFolder)>, StoreError> {
    let queue = dir.join("queue");
    if !queue.join("db").exists() {
        return Ok(None);
    }
    // Held during the copy: half a step would look like damage.
    let held = patiently(|| Ok((ProcessLock::keep_shut(dir)?, lock(&queue)?))).map_err(|flaw| flaw.told(&queue))?;
    snapshot::sweep(dir);
    let room = SnapshotFolder::within(dir).map_err(|error| unwritable(dir, error))?;
    copy_files(&queue, &room.path().join("queue")).map_err(|error| unwritable(room.path(), error))?;
    drop(held);
    Ok(Some((open(room.path())?, room)))
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    make_private(to)?;
    for entry in std::fs::read_dir(from).map_err(explain_state_at(from))? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        match entry.file_type()? {
            kind if kind.is_dir() => copy_files(&entry.path(), &place)?,
            kind if kind.is_file() => {
                std::fs::copy(entry.path(), place).map_err(explain_state_at(&entry.path()))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sets a damaged store aside, as `<dir>/damaged-<seconds since 1970>`, and opens an empty, suspect one in its place.
/// Other contents of the directory stay: results that were paid for are still of use. The history is set aside too,
/// since the numbers of jobs begin anew.
///
/// # Errors
/// As [`open`].
pub fn open_rebuilt(dir: &Path, now: Timestamp) -> Result<QueueStore, StoreError> {
    let queue = dir.join("queue");
    make_private(dir).map_err(|error| unwritable(dir, error))?;
    // Held until the new store is open: a daemon that still runs must not lose its store.
    let (process_lock, _held) = patiently(|| Ok((enter(dir)?, lock(&queue)?))).map_err(|flaw| flaw.told(&queue))?;
    let aside = dir.join(format!("damaged-{}", now.0.div_euclid(1000)));
    set_aside(dir, &aside).map_err(|error| unwritable(&aside, error))?;
    make_private(&queue).map_err(|error| unwritable(&queue, error))?;
    open_inside(dir, &process_lock, Some(now))
}

fn set_aside(dir: &Path, aside: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(aside)?;
    for room in ["queue", "history"] {
        if dir.join(room).exists() {
            std::fs::rename(dir.join(room), aside.join(room))?;
        }
    }
    sync(aside)?;
    sync(dir)
}

/// Takes the lock that sled takes itself, which also keeps out releases without `queue.lock`; `None` if there is
/// nothing to lock.
fn lock(queue: &Path) -> Result<Option<File>, Flaw> {
    let file = match File::options().read(true).write(true).open(queue.join("db")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Flaw::Locked(None)),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Repeats an attempt for a second: a process that has just ended, or a store that was just dropped, may take a
/// moment to release its locks.
fn patiently<T>(open: impl Fn() -> Result<T, Flaw>) -> Result<T, Flaw> {
    for _ in 0..20 {
        match open() {
            Err(Flaw::Locked(_)) => std::thread::sleep(Duration::from_millis(50)),
            opened => return opened,
        }
    }
    open()
}

/// Whether a store may be believed when it says that it is trusted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    AsItSays,
    /// Nobody knows what was lost in the repair: the store is suspect until a service's list was scanned.
    Repaired,
}

/// Opens the store; sled reports some kinds of damage by a panic.
fn open_guarded(
    dir: &Path,
    process_lock: &Arc<ProcessLock>,
    trust: Trust,
    now: Option<Timestamp>,
) -> Result<QueueStore, Flaw> {
    catch_unwind(|| open_unguarded(dir, process_lock, trust, now))
        .unwrap_or_else(|panic| Err(Flaw::Damaged(panic_words(panic.as_ref()).to_owned())))
}

fn panic_words(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("sled panicked")
}

fn open_unguarded(
    dir: &Path,
    process_lock: &Arc<ProcessLock>,
    trust: Trust,
    now: Option<Timestamp>,
) -> Result<QueueStore, Flaw> {
    let queue = dir.join("queue");
    let db = ::sled::Config::new().path(&queue).cache_capacity(CACHE_BYTES).flush_every_ms(Some(500)).open()?;
    // Opened before the first write, so that the kernel reports every failed write-back to it.
    let file = File::open(queue.join("db")).map_err(explain_state_at(&queue.join("db")))?;
    check_format(&db)?;
    if trust == Trust::Repaired {
        forget_trust(&db)?;
    }
    db.flush()?;
    file.sync_data()?;
    sync_created(dir)?;

    let health = Arc::new(Health { dir: queue, failed: OnceLock::new(), _process_lock: Arc::clone(process_lock) });
    let journal = Arc::new(HistoryFiles::open(dir.join("history"))?);
    let large = Arc::new(LargeValues::new(health.dir.join(large::FOLDER)));
    let named = Arc::new(Mutex::new(Some(HashSet::new())));
    let rows =
        SledRows { db: db.clone(), health: Arc::clone(&health), large: Arc::clone(&large), named: Arc::clone(&named) };
    rows.pauses()?;
    let committer = Committer::start(db.clone(), file, health)?;
    let store = QueueStore::open_at(now, Box::new(rows), Arc::<HistoryFiles>::clone(&journal), Box::new(committer))?;
    let named = named.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
    if let Err(error) = large.sweep(&named) {
        tracing::warn!(%error, "cannot remove large values that no job needs any more; they occupy disk space until the next start");
    }
    if let Some(why) = store.outdated(&journal.purchases()?, &journal.last_lines(now)?)? {
        tracing::warn!(dir = %dir.display(), why, "the queue is older than its history (it was restored from a backup, or is damaged): scribed buys nothing before it has read the lists of the services");
        forget_trust(&db)?;
        db.flush()?;
        sync(&dir.join("queue").join("db"))?;
        journal.keep_purchases(&|id| store.knows_paid(id))?;
        journal.keep_compared(now)?;
    }
    Ok(store)
}

/// Removes the trust for every service.
fn forget_trust(db: &::sled::Db) -> Result<(), Flaw> {
    for key in db.scan_prefix(META_TRUSTED).keys() {
        db.remove(key?)?;
    }
    db.insert(META_LOST, seal(&true)?)?;
    Ok(())
}

/// Writes the format into a new store; refuses one that a later release has written.
fn check_format(db: &::sled::Db) -> Result<(), Flaw> {
    if let Some(value) = db.get(META_FORMAT)? {
        let format: u8 = unseal(&value)?;
        return if format > FORMAT { Err(Flaw::Newer(format)) } else { Ok(()) };
    }
    if let Some(first) = db.iter().next() {
        let (key, _) = first?;
        return Err(Flaw::Damaged(format!("the queue has rows ({}) but no format version", key.escape_ascii())));
    }
    db.insert(META_FORMAT, seal(&WHOLE)?)?;
    Ok(())
}

fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Syncs what sled has created: it syncs neither its files nor their folders.
fn sync_created(dir: &Path) -> io::Result<()> {
    let queue = dir.join("queue");
    for name in ["conf", "db", "blobs"] {
        sync(&queue.join(name))?;
    }
    sync(&queue)?;
    sync(dir)?;
    match dir.canonicalize()?.parent() {
        // The parent is somebody else's folder: that scribed may not read it is no reason to stop.
        Some(parent) => sync(parent).or_else(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Ok(()),
            _ => Err(error),
        }),
        None => Ok(()),
    }
}

fn sync(path: &Path) -> io::Result<()> {
    match durable_file::sync(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(explain_state_at(path)(error)),
    }
}

/// Renames sled's snapshots: without them sled reads its whole log. Returns `false` if there was none.
fn set_snapshots_aside(queue: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(queue) else { return false };
    let names = entries.flatten().map(|entry| entry.file_name());
    let snapshots: Vec<_> = names.filter(|name| name.as_encoded_bytes().starts_with(b"snap.")).collect();
    let aside = |name: &std::ffi::OsString| {
        let mut new = std::ffi::OsString::from("aside-");
        new.push(name);
        std::fs::rename(queue.join(name), queue.join(new))
    };
    !snapshots.is_empty() && snapshots.iter().map(aside).all(|renamed| renamed.is_ok())
}

/// What is wrong with a store, before it is described to people.
enum Flaw {
    /// Locked by another process; its number, if that is known.
    Locked(Option<u32>),
    Newer(u8),
    Damaged(String),
    Io(io::Error),
    Told(StoreError),
}

impl Flaw {
    fn told(self, queue: &Path) -> StoreError {
        let dir = queue.display();
        match self {
            Self::Locked(pid) => StoreError::Locked(format!(
                "the queue in {dir} is in use by another scribed{}. Stop that one, or set another state directory \
                 for this one ([state] store).",
                pid.map(|pid| format!(", process {pid}")).unwrap_or_default()
            )),
            Self::Newer(format) => StoreError::Damaged(format!(
                "the queue in {dir} was written by a newer scribed (format {format}; this one reads formats up to \
                 {FORMAT}). Nothing was changed. Use that release or a later one."
            )),
            Self::Damaged(what) => StoreError::Damaged(format!(
                "the queue in {dir} is damaged: {what}. Nothing was overwritten. Start once with --rebuild: \
                 scribed renames the queue, scans the folders again, and reads the service's lists before it buys \
                 anything, so that nothing is paid for twice."
            )),
            Self::Io(error) => unwritable(queue, error),
            Self::Told(error) => error,
        }
    }
}

impl From<LockError> for Flaw {
    fn from(shut: LockError) -> Self {
        match shut {
            LockError::Held(pid) => Self::Locked(pid),
            LockError::Io(error) => Self::Io(error),
        }
    }
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<StoreError> for Flaw {
    fn from(error: StoreError) -> Self {
        Self::Told(error)
    }
}

impl From<::sled::Error> for Flaw {
    fn from(error: ::sled::Error) -> Self {
        match error {
            // The version of sled is pinned, so its message is too.
            ::sled::Error::Io(error) if error.to_string().contains("could not acquire lock") => Self::Locked(None),
            ::sled::Error::Io(error) if is_worlds(error.kind()) => Self::Io(error),
            error => Self::Damaged(error.to_string()),
        }
    }
}

/// Whether the disk or its permissions caused the error. Every other error while reading means that the files are not
/// what they should be.
fn is_worlds(kind: io::ErrorKind) -> bool {
    use io::ErrorKind as K;
    matches!(
        kind,
        K::StorageFull
            | K::QuotaExceeded
            | K::FileTooLarge
            | K::PermissionDenied
            | K::ReadOnlyFilesystem
            | K::OutOfMemory
    )
}

fn unwritable(path: &Path, error: io::Error) -> StoreError {
    let error = explain_state_at(path)(error);
    let fix = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "Free space on that disk",
        io::ErrorKind::ReadOnlyFilesystem => "Remount that disk read-write",
        _ => "Check that disk and the system log",
    };
    let is_explained = error.raw_os_error().is_none() && split_fix(&error.to_string()).1.is_some();
    let (dir, fix) = (path.display(), if is_explained { "Fix this" } else { fix });
    StoreError::Unwritable(format!(
        "cannot write the queue in {dir}: {error}. {fix}, then start scribed again. No confirmed change is lost."
    ))
}

/// Remembers the first failure: after a failed sync the kernel marks the lost pages as clean, and a second sync would
/// succeed without having written them.
struct Health {
    dir: PathBuf,
    failed: OnceLock<StoreError>,
    /// Every handle of sled keeps this alive, so the lock is released after the last one.
    _process_lock: Arc<ProcessLock>,
}

impl Health {
    fn check(&self) -> Result<(), StoreError> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn fail(&self, flaw: Flaw) -> StoreError {
        let told = match flaw {
            // This is not damage: sled repeats the first error of its writes for ever, as an error of any kind.
            Flaw::Damaged(what) => unwritable(&self.dir, io::Error::other(what)),
            flaw => flaw.told(&self.dir),
        };
        self.failed.get_or_init(|| told).clone()
    }
}

/// A purchase with its key, so that a row tells what it is about.
#[derive(Serialize, Deserialize)]
struct Purchase {
    order: PurchaseKey,
    #[serde(flatten)]
    bought: KnownPurchase,
}

struct SledRows {
    db: ::sled::Db,
    health: Arc<Health>,
    large: Arc<LargeValues>,
    /// The large values that the records name, collected while all records are read once.
    named: Arc<Mutex<Option<HashSet<Hash>>>>,
}

impl SledRows {
    fn told(&self, flaw: Flaw) -> StoreError {
        flaw.told(&self.health.dir)
    }

    fn read<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        let value = self.db.get(key).map_err(|error| self.told(error.into()))?;
        value.map(|value| unseal(&value).map_err(|flaw| self.told(flaw))).transpose()
    }

    fn write(&self, key: &[u8], value: &impl Serialize) -> Result<(), StoreError> {
        let sealed = seal(value).map_err(|flaw| self.told(flaw))?;
        if !fits(&sealed) {
            let (len, max) = (sealed.len(), LARGEST_VALUE);
            return Err(StoreError::Unwritable(format!(
                "a value has {len} bytes, and the queue accepts at most {max}"
            )));
        }
        self.put(key, sealed)
    }

    fn put(&self, key: &[u8], sealed: Vec<u8>) -> Result<(), StoreError> {
        self.health.check()?;
        // Every insert is a separate entry in sled's log, and the log is read back in order.
        self.db.insert(key, sealed).map(drop).map_err(|error| self.health.fail(error.into()))
    }

    fn remove(&self, key: &[u8]) -> Result<(), StoreError> {
        self.health.check()?;
        self.db.remove(key).map(drop).map_err(|error| self.health.fail(error.into()))
    }

    fn flagged(&self, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.read(key)?.unwrap_or(false))
    }

    /// Returns a value as it is stored in the database: its largest fields become files until the rest fits.
    fn divided(&self, value: &impl Serialize, groups: &[&[&str]]) -> Result<Vec<u8>, Flaw> {
        let payload = serde_json::to_vec(value).map_err(|error| Flaw::Damaged(error.to_string()))?;
        if payload.len() <= LARGEST_PACKED {
            let sealed = sealed(WHOLE, payload)?;
            if fits(&sealed) {
                return Ok(sealed);
            }
        }
        let value = serde_json::to_value(value).map_err(|error| Flaw::Damaged(error.to_string()))?;
        let mut divided = SplitRecord::whole(value);
        while let Some(part) = divided.largest(groups) {
            let hash = self.large.keep(&part.json).map_err(Flaw::Io)?;
            divided.took(part, hash);
            let sealed = seal_as(DIVIDED, &divided)?;
            if fits(&sealed) {
                return Ok(sealed);
            }
        }
        // No field is left that could be long.
        seal_as(DIVIDED, &divided)
    }

    /// Returns the job of a record. If one of its large values is lost, the job waits, and its fault says so.
    fn job(&self, sealed: &[u8]) -> Result<Job, Flaw> {
        if sealed.first() != Some(&DIVIDED) {
            return unseal(sealed);
        }
        let divided: SplitRecord = unseal(sealed)?;
        if let Some(named) = &mut *self.named.lock().unwrap_or_else(PoisonError::into_inner) {
            named.extend(divided.files.values());
        }
        parts::job(divided, &self.large).map_err(Flaw::Damaged)
    }

    fn expected(&self, row: ::sled::Result<(::sled::IVec, ::sled::IVec)>, id: JobId) -> Result<Job, Flaw> {
        let (key, value) = row?;
        if *key != job_key(id) {
            return Err(Flaw::Damaged(format!("the row of job {id} is missing")));
        }
        in_its_place(id, self.job(&value)?)
    }
}

fn fits(sealed: &[u8]) -> bool {
    sealed.len() <= LARGEST_VALUE
}

impl Rows for SledRows {
    fn load(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        let value = self.db.get(job_key(id)).map_err(|error| self.told(error.into()))?;
        let job = value.map(|value| self.job(&value).and_then(|job| in_its_place(id, job)));
        job.transpose().map_err(|flaw| self.told(flaw))
    }

    fn save(&mut self, job: &Job) -> Result<(), StoreError> {
        self.health.check()?;
        let sealed = self.divided(job, &parts::OF_A_JOB).map_err(|flaw| self.told(flaw))?;
        self.put(&job_key(job.id), sealed)
    }

    fn each(&self, take: &mut (dyn FnMut(Job) + Send)) -> Result<(), StoreError> {
        let rows = self.db.range([JOB].as_slice()..&[JOB + 1]).zip(1..);
        let jobs = in_order(rows, |(row, id)| self.expected(row, JobId(id)), take);
        jobs.map_err(|flaw| flaw.told(&self.health.dir))
    }

    fn scan(&self, after: Option<JobId>) -> Box<dyn Iterator<Item = Result<Job, StoreError>> + '_> {
        let first = after.map_or(1, |id| id.0.saturating_add(1));
        let rows = self.db.range(job_key(JobId(first)).as_slice()..&[JOB + 1]);
        let jobs = rows.zip(first..).map(|(row, id)| self.expected(row, JobId(id)));
        Box::new(jobs.map(|job| job.map_err(|flaw| flaw.told(&self.health.dir))))
    }

    fn bought(&self, order: &PurchaseKey) -> Result<Option<KnownPurchase>, StoreError> {
        match self.read::<Purchase>(&bought_key(order))? {
            Some(purchase) if purchase.order == *order => Ok(Some(purchase.bought)),
            Some(_) => {
                Err(Flaw::Damaged("a purchase is stored under another key than its own".into()).told(&self.health.dir))
            }
            None => Ok(None),
        }
    }

    fn each_bought(&self, see: &mut dyn FnMut(&PurchaseKey, &KnownPurchase)) -> Result<(), StoreError> {
        let told = |flaw: Flaw| flaw.told(&self.health.dir);
        for row in self.db.range([BOUGHT].as_slice()..&[BOUGHT + 1]) {
            let (_, value) = row.map_err(|error| told(error.into()))?;
            let Purchase { order, bought } = unseal(&value).map_err(told)?;
            see(&order, &bought);
        }
        Ok(())
    }

    fn put_bought(&mut self, order: &PurchaseKey, bought: Option<&KnownPurchase>) -> Result<(), StoreError> {
        let key = bought_key(order);
        match bought {
            Some(bought) => self.write(&key, &Purchase { order: order.clone(), bought: bought.clone() }),
            None => self.remove(&key),
        }
    }

    fn has_sightings(&self) -> Result<bool, StoreError> {
        self.flagged(META_SIGHTINGS)
    }

    fn set_sightings(&mut self) -> Result<(), StoreError> {
        // Called for every item of a list; written once.
        if self.has_sightings()? { Ok(()) } else { self.write(META_SIGHTINGS, &true) }
    }

    fn suspect(&self, service: &ServiceName) -> Result<bool, StoreError> {
        Ok(!self.flagged(&trusted_key(service))?)
    }

    fn has_lost(&self, service: &ServiceName) -> Result<bool, StoreError> {
        let key = trusted_key(service);
        let was_distrusted = self.db.contains_key(&key).map_err(|error| self.told(error.into()))?;
        Ok(!self.flagged(&key)? && (was_distrusted || self.flagged(META_LOST)?))
    }

    fn set_trusted(&mut self, service: &ServiceName, trusted: bool) -> Result<(), StoreError> {
        self.write(&trusted_key(service), &trusted)
    }

    fn pauses(&self) -> Result<Pauses, StoreError> {
        let stored = self.db.get(META_PAUSES).map_err(|error| self.told(error.into()))?;
        match stored {
            Some(sealed) if sealed.first() == Some(&DIVIDED) => {
                let divided: SplitRecord = unseal(&sealed).map_err(|flaw| self.told(flaw))?;
                if let Some(named) = &mut *self.named.lock().unwrap_or_else(PoisonError::into_inner) {
                    named.extend(divided.files.values());
                }
                // If it is not known what is paused, nothing is bought until a person decides.
                Ok(parts::value(divided, &self.large).unwrap_or_else(|| Pauses::everything(Timestamp(0))))
            }
            Some(sealed) => unseal(&sealed).map_err(|flaw| self.told(flaw)),
            None if self.flagged(META_PAUSED)? => Ok(Pauses::everything(Timestamp(0))),
            None => Ok(Pauses::default()),
        }
    }

    fn set_pauses(&mut self, pauses: &Pauses) -> Result<(), StoreError> {
        self.health.check()?;
        let sealed = self.divided(pauses, &[&["sources"]]).map_err(|flaw| self.told(flaw))?;
        self.put(META_PAUSES, sealed)
    }
}

fn trusted_key(service: &ServiceName) -> Vec<u8> {
    let mut key = META_TRUSTED.to_vec();
    if service.as_str() != ServiceName::DEFAULT {
        key.push(b'/');
        key.extend_from_slice(service.as_str().as_bytes());
    }
    key
}

/// Checks that a job has its own number. Jobs are numbered from 1 without gaps and never removed, so a job in the
/// wrong place means that one was lost.
fn in_its_place(id: JobId, job: Job) -> Result<Job, Flaw> {
    let other = job.id;
    if other == id {
        Ok(job)
    } else {
        Err(Flaw::Damaged(format!("the row of job {other} is stored under the key of job {id}")))
    }
}

/// Returns the key of a job. The number is big-endian, so that rows are in the order of the numbers.
fn job_key(id: JobId) -> [u8; 9] {
    let mut key = [JOB; 9];
    key[1..].copy_from_slice(&id.0.to_be_bytes());
    key
}

fn bought_key(order: &PurchaseKey) -> [u8; 17] {
    let mut key = [BOUGHT; 17];
    key[1..].copy_from_slice(&order_hash(order));
    key
}

/// Encodes a value: the format, a checksum of what follows, and JSON, compressed if it is long. JSON never begins
/// like a compressed stream.
fn seal(value: &impl Serialize) -> Result<Vec<u8>, Flaw> {
    seal_as(WHOLE, value)
}

fn seal_as(format: u8, value: &impl Serialize) -> Result<Vec<u8>, Flaw> {
    sealed(format, serde_json::to_vec(value).map_err(|error| Flaw::Damaged(error.to_string()))?)
}

fn sealed(format: u8, mut payload: Vec<u8>) -> Result<Vec<u8>, Flaw> {
    if payload.len() > LARGEST_PLAIN {
        let mut packed = Vec::new();
        ZlibEncoder::new(payload.as_slice(), Compression::default()).read_to_end(&mut packed)?;
        payload = packed;
    }
    let mut sealed = vec![format];
    sealed.extend_from_slice(&checksum(&payload));
    sealed.append(&mut payload);
    Ok(sealed)
}

fn unseal<T: DeserializeOwned>(sealed: &[u8]) -> Result<T, Flaw> {
    let damaged = |what: &str| Flaw::Damaged(what.to_owned());
    let (&format, rest) = sealed.split_first().ok_or_else(|| damaged("an empty value"))?;
    if format > FORMAT {
        return Err(Flaw::Newer(format));
    }
    let (sum, payload) = rest.split_first_chunk().ok_or_else(|| damaged("a value is truncated"))?;
    if format == 0 || *sum != checksum(payload) {
        return Err(damaged("the checksum of a value does not match"));
    }
    let parsed = match payload.first() {
        Some(0x78) => serde_json::from_slice(&unpacked(payload)?),
        _ => serde_json::from_slice(payload),
    };
    parsed.map_err(|error| Flaw::Damaged(format!("a value is invalid: {error}")))
}

fn unpacked(packed: &[u8]) -> Result<Vec<u8>, Flaw> {
    let mut payload = Vec::new();
    let read = ZlibDecoder::new(packed).take(LARGEST_UNPACKED).read_to_end(&mut payload);
    read.map_err(|error| Flaw::Damaged(format!("cannot decompress a value: {error}")))?;
    Ok(payload)
}

fn checksum(payload: &[u8]) -> [u8; 8] {
    let hash = blake3::hash(payload);
    let mut sum = [0; 8];
    sum.copy_from_slice(&hash.as_bytes()[..8]);
    sum
}

type Waiter = oneshot::Sender<Result<(), StoreError>>;

/// Makes steps durable, many with one sync: callers that come during a sync share the next one.
struct Committer {
    waiters: Option<mpsc::Sender<Waiter>>,
    thread: Option<JoinHandle<()>>,
    health: Arc<Health>,
}

impl Committer {
    fn start(db: ::sled::Db, file: File, health: Arc<Health>) -> io::Result<Self> {
        let (waiters, inbox) = mpsc::channel(WAITING);
        let disk = Disk { db, file, health: Arc::clone(&health) };
        // A separate thread: a sync can take seconds, and no other work may wait behind it.
        let thread = std::thread::Builder::new().name("store-sync".into()).spawn(move || disk.serve(inbox))?;
        Ok(Self { waiters: Some(waiters), thread: Some(thread), health })
    }
}

#[async_trait::async_trait]
impl Barrier for Committer {
    async fn durable(&self) -> Result<(), StoreError> {
        self.health.check()?;
        let gone = || self.health.fail(Flaw::Io(io::Error::other("the thread that syncs the queue to disk has ended")));
        let (waiter, answer) = oneshot::channel();
        let waiters = self.waiters.as_ref().ok_or_else(gone)?;
        waiters.send(waiter).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        drop(self.waiters.take());
        if let Some(thread) = self.thread.take() {
            // Its panic was reported to everyone who waited.
            let _ = thread.join();
        }
    }
}

struct Disk {
    db: ::sled::Db,
    file: File,
    health: Arc<Health>,
}

impl Disk {
    fn serve(self, mut inbox: mpsc::Receiver<Waiter>) {
        let mut waiting = Vec::new();
        while let Some(first) = inbox.blocking_recv() {
            waiting.push(first);
            while let Ok(another) = inbox.try_recv() {
                waiting.push(another);
            }
            let outcome = self.sync();
            tracing::trace!(target: "scribed::store::sync", steps = waiting.len(), ok = outcome.is_ok());
            for waiter in waiting.drain(..) {
                let _ = waiter.send(outcome.clone()); // a caller that no longer waits needs no answer
            }
        }
        if let Err(error) = self.sync() {
            tracing::warn!(%error, "cannot sync the queue before the end; the last changes may be lost");
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.health.check()?;
        let flushed = catch_unwind(AssertUnwindSafe(|| self.db.flush()));
        let flushed =
            flushed.unwrap_or_else(|panic| Err(::sled::Error::ReportableBug(panic_words(panic.as_ref()).into())));
        let synced = flushed.map_err(Flaw::from).and_then(|_| Ok(self.file.sync_data()?));
        synced.map_err(|flaw| self.health.fail(flaw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::names::{Hash, SourceName, TranscriptionId};
    use crate::domain::path::RelPath;
    use crate::domain::stage::{AudioAmount, AudioAt, Intent, JobEvent, StageKind};
    use crate::domain::token::Token;
    use crate::store::contract::{
        ALL, Budgets, ClaimLimit, Claimed, Claims, HistoryEntry, Hold, Jobs, Lifecycle, Purchases, Queries,
    };
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;
    use tokio::runtime::Runtime;

    const NOW: Timestamp = Timestamp(1_795_000_000_000);

    fn service() -> ServiceName {
        ServiceName::new(ServiceName::DEFAULT)
    }

    fn key(path: &[u8]) -> JobKey {
        JobKey { source: SourceName::new("s"), path: RelPath::new(path) }
    }

    fn stamp(size: u64) -> Stamp {
        Stamp { size, mtime_ns: 1, ctime_ns: 2, inode: 3 }
    }

    fn with_jobs(dir: &Path, n: u64) {
        let store = open(dir).unwrap();
        let runtime = Runtime::new().unwrap();
        for i in 0..n {
            runtime.block_on(store.admit(&key(&i.to_be_bytes()), stamp(i), NOW, NOW)).unwrap();
        }
    }

    fn raw(dir: &Path) -> ::sled::Db {
        let config = ::sled::Config::new().path(dir.join("queue"));
        for _ in 0..100 {
            match config.open() {
                Ok(db) => return db,
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        config.open().unwrap()
    }

    fn complaint(dir: &Path) -> String {
        match open(dir) {
            Err(StoreError::Damaged(words)) => words.replace(&dir.display().to_string(), "<dir>"),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("opened"),
        }
    }

    #[test]
    fn the_bytes_of_a_value_stay_as_they_are() {
        let sealed = seal(&"value").ok().unwrap();
        assert_eq!(sealed, b"\x01\xb3\x4c\x30\x03\x5d\xbd\x08\x35\"value\"".as_slice(), "{sealed:02x?}");
    }

    #[test]
    fn long_values_are_packed_and_come_back() {
        let path = "shelf/".repeat(680);
        let sealed = seal(&path).ok().unwrap();
        assert!(sealed.len() < 200 && sealed[9] == 0x78);
        assert_eq!(unseal::<String>(&sealed).ok().unwrap(), path);
    }

    #[test]
    fn a_path_of_the_greatest_length_in_bytes_that_are_no_text_fits() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).unwrap();
        let bytes: Vec<u8> = (0u32..128).flat_map(|i| *blake3::hash(&i.to_be_bytes()).as_bytes()).collect();
        let admitted = Runtime::new().unwrap().block_on(store.admit(&key(&bytes), stamp(1), NOW, NOW));
        admitted.unwrap();
    }

    #[test]
    fn a_second_opener_is_told_who_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let _first = open(dir.path()).unwrap();
        let Err(StoreError::Locked(words)) = open(dir.path()) else { panic!("not locked") };
        assert!(words.contains(&format!("in use by another scribed, process {}", std::process::id())), "{words}");
        assert!(matches!(open_rebuilt(dir.path(), NOW), Err(StoreError::Locked(_))));
    }

    #[test]
    fn what_another_has_just_begun_to_make_is_neither_opened_nor_copied_nor_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let _inside = ProcessLock::enter(dir.path()).unwrap();
        let queue = dir.path().join("queue");
        make_private(&queue).unwrap();
        // As sled leaves them for a moment: before its own lock is taken.
        std::fs::write(queue.join("conf"), "half of its sett").unwrap();
        std::fs::write(queue.join("db"), "").unwrap();
        assert!(matches!(open(dir.path()), Err(StoreError::Locked(_))));
        assert!(matches!(open_copy(dir.path()), Err(StoreError::Locked(_))));
        assert!(matches!(open_rebuilt(dir.path(), NOW), Err(StoreError::Locked(_))));
        assert_eq!(std::fs::read(queue.join("conf")).unwrap(), b"half of its sett");
    }

    #[test]
    fn many_who_make_a_queue_at_once_all_come_to_it_one_after_the_other() {
        for _ in 0..5 {
            let dir = tempfile::tempdir().unwrap();
            let open_and_leave = || match open(dir.path()) {
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            };
            std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(open_and_leave))));
        }
    }

    #[test]
    fn only_its_owner_may_look_into_it() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        drop(open(&state).unwrap());
        for dir in [state.clone(), state.join("queue"), state.join("history")] {
            assert_eq!(std::fs::metadata(dir).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn a_flipped_bit_is_found_when_opening() {
        let dir = tempfile::tempdir().unwrap();
        with_jobs(dir.path(), 3);
        let db = raw(dir.path());
        let mut value = db.get(job_key(JobId(2))).unwrap().unwrap().to_vec();
        value[40] ^= 4;
        db.insert(job_key(JobId(2)), value).unwrap();
        drop(db);
        let words = complaint(dir.path());
        assert!(
            words.contains("checksum") && words.contains("--rebuild") && words.contains("paid for twice"),
            "{words}"
        );
    }

    #[test]
    fn a_lost_row_is_found_when_opening() {
        let dir = tempfile::tempdir().unwrap();
        with_jobs(dir.path(), 3);
        raw(dir.path()).remove(job_key(JobId(1))).unwrap();
        assert!(complaint(dir.path()).contains("the row of job 1 is missing"));
    }

    #[test]
    fn a_newer_format_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        with_jobs(dir.path(), 1);
        let db = raw(dir.path());
        let mut value = db.get(job_key(JobId(1))).unwrap().unwrap().to_vec();
        value[0] = 3;
        db.insert(job_key(JobId(1)), value.clone()).unwrap();
        drop(db);
        let words = complaint(dir.path());
        assert!(words.contains("newer scribed") && !words.contains("--rebuild"), "{words}");
        assert_eq!(*raw(dir.path()).get(job_key(JobId(1))).unwrap().unwrap(), *value);
    }

    #[test]
    fn a_broken_snapshot_is_set_aside_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        with_jobs(dir.path(), 50);
        let runtime = Runtime::new().unwrap();
        // sled writes its snapshot when it opens what is not empty.
        runtime.block_on(open(dir.path()).unwrap().trust(&service())).unwrap();
        let queue = dir.path().join("queue");
        let snapshot = std::fs::read_dir(&queue).unwrap().map(|entry| entry.unwrap().path());
        let snapshot = snapshot.filter(|path| path.to_str().unwrap().contains("/snap.")).max().unwrap();
        std::fs::write(&snapshot, b"garbage that is no snapshot at all").unwrap();
        let store = open(dir.path()).unwrap();
        assert_eq!(runtime.block_on(store.counts()).unwrap().total(), 50);
        assert!(runtime.block_on(store.is_suspect(&service())).unwrap(), "what was repaired is not believed");
        assert!(runtime.block_on(store.may_have_lost(&service())).unwrap());
    }

    /// A purchase, as the engine commits it.
    async fn buy(store: &QueueStore, name: &[u8], id: &str) {
        let JobId(number) = store.admit(&key(name), stamp(1), NOW, NOW).await.unwrap().id();
        let order = PurchaseKey { service: service(), content: Hash::of(name), params: Hash::of(b"p") };
        let until = NOW.saturating_add(Duration::from_secs(60));
        let claimed = store.claim(&[StageKind::Found], ALL, NOW, until, ClaimLimit::of(9)).await.unwrap();
        let Claimed { lease, mut job } = claimed.into_iter().find(|claimed| claimed.job.id.0 == number).unwrap();
        let charge = crate::domain::charge::Charge {
            at: NOW,
            service_date: None,
            fetched: false,
            run: NOW,
            round: 0,
            service: service(),
            template: None,
            state: crate::domain::charge::State::Held,
            reserved: Some(1),
            billed: None,
            transcription: None,
        };
        store.reserve(&lease, &charge, &[]).await.unwrap().unwrap();
        let (audio, transcription) = (AudioAmount { millis: 1, channels: 1, billed: None }, TranscriptionId::new(id));
        let upload = AudioAt::Remote { remote_since: NOW };
        let token = Token::new(&order, job.key.tag(), 0);
        let intent = Intent { token, origin: "o".into(), key: "k".into(), service_date: None, sent_at: NOW };
        job = job.apply(JobEvent::Settled, NOW).unwrap();
        job = job.apply(JobEvent::Probed { params: order.params, content: None, making: None }, NOW).unwrap();
        job = job.apply(JobEvent::Uploaded { order, audio, upload, sent: None }, NOW).unwrap();
        job = job.apply(JobEvent::Intended { intent }, NOW).unwrap();
        store.commit(&lease, &job, Hold::Keep).await.unwrap();
        let intended = job.clone();
        job = job.apply(JobEvent::Created { transcription }, NOW).unwrap();
        store.commit(&lease.seeing(&intended), &job, Hold::Release).await.unwrap();
    }

    /// A closed queue that is trusted, with one job.
    fn trusted_with_one_job() -> (TempDir, Runtime) {
        let (dir, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
        let store = open(dir.path()).unwrap();
        runtime.block_on(async {
            store.trust(&service()).await.unwrap();
            store.admit(&key(b"a"), stamp(1), NOW, NOW).await.unwrap();
            store.flush().await.unwrap();
        });
        (dir, runtime)
    }

    /// sled may return an earlier version of a row without an error.
    #[test]
    fn a_row_that_comes_back_as_it_was_before_its_purchase_makes_the_queue_suspect() {
        let (dir, runtime) = trusted_with_one_job();
        let before = raw(dir.path()).get(job_key(JobId(1))).unwrap().unwrap();
        let store = open(dir.path()).unwrap();
        runtime.block_on(async {
            buy(&store, b"a", "t-1").await;
            buy(&store, b"b", "t-2").await;
            assert!(!store.is_suspect(&service()).await.unwrap());
        });
        drop(store);
        let store = open(dir.path()).unwrap();
        assert!(!runtime.block_on(store.is_suspect(&service())).unwrap(), "nothing is wrong with it");
        drop(store);
        raw(dir.path()).insert(job_key(JobId(1)), before).unwrap();
        let store = open(dir.path()).unwrap();
        assert!(runtime.block_on(store.is_suspect(&service())).unwrap(), "it does not know a purchase");
        runtime.block_on(store.trust(&service())).unwrap();
        drop(store);
        let log = std::fs::read_to_string(dir.path().join("history/purchases.log")).unwrap();
        assert_eq!(log, "+ t-2\n", "it is compared with what it knows");
        let store = open(dir.path()).unwrap();
        assert!(!runtime.block_on(store.is_suspect(&service())).unwrap(), "said once");
    }

    #[test]
    fn a_history_that_is_newer_than_the_rows_makes_the_queue_suspect() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = Runtime::new().unwrap();
        let store = open(dir.path()).unwrap();
        runtime.block_on(store.trust(&service())).unwrap();
        drop(store);
        let aside = tempfile::tempdir().unwrap();
        copy_files(&dir.path().join("queue"), &aside.path().join("queue")).unwrap();
        runtime.block_on(async {
            let store = open(dir.path()).unwrap();
            buy(&store, b"a", "t-1").await;
            let later = NOW.saturating_add(Duration::from_secs(61));
            store.admit(&key(b"later"), stamp(1), later, later).await.unwrap();
        });
        std::fs::remove_dir_all(dir.path().join("queue")).unwrap();
        copy_files(&aside.path().join("queue"), &dir.path().join("queue")).unwrap();
        std::fs::remove_file(dir.path().join("history/purchases.log")).unwrap();
        let store = open(dir.path()).unwrap();
        assert!(runtime.block_on(store.is_suspect(&service())).unwrap());
        runtime.block_on(store.trust(&service())).unwrap();
        drop(store);
        assert!(!runtime.block_on(open(dir.path()).unwrap().is_suspect(&service())).unwrap(), "it is told once");
    }

    /// A process that is killed leaves the line of a step whose row was not durable yet.
    #[test]
    fn the_last_line_of_a_killed_process_makes_nothing_suspect() {
        let (dir, runtime) = trusted_with_one_job();
        let at = NOW.saturating_add(Duration::from_secs(600));
        let note = HistoryEntry {
            at,
            job: JobId(1),
            stage: StageKind::Submitting,
            round: 0,
            words: None,
            transcription: None,
        };
        crate::store::queue::Journal::note(&HistoryFiles::open(dir.path().join("history")).unwrap(), &note).unwrap();
        assert!(!runtime.block_on(open(dir.path()).unwrap().is_suspect(&service())).unwrap());
    }

    #[test]
    fn rebuilt_is_empty_and_suspect_and_the_old_one_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        with_jobs(dir.path(), 3);
        let runtime = Runtime::new().unwrap();
        runtime.block_on(async {
            let store = open(dir.path()).unwrap();
            store.trust(&service()).await.unwrap();
            drop(store);
            let store = open_rebuilt(dir.path(), NOW).unwrap();
            assert!(store.is_suspect(&service()).await.unwrap());
            assert_eq!(store.counts().await.unwrap().total(), 0);
            assert_eq!(store.history(JobId(1)).await.unwrap(), []);
        });
        assert!(dir.path().join("damaged-1795000000/queue/db").is_file());
        assert!(dir.path().join("damaged-1795000000/history/2026-11.jsonl").is_file());
    }

    #[test]
    fn after_a_failed_sync_nothing_is_acknowledged_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let process_lock = Arc::new(ProcessLock::enter(dir.path()).ok().unwrap());
        let health = Health { dir: dir.path().into(), failed: OnceLock::new(), _process_lock: process_lock };
        health.check().unwrap();
        let told = health.fail(Flaw::Io(io::ErrorKind::StorageFull.into()));
        assert!(told.to_string().contains("Free space"), "{told}");
        assert_eq!(health.check().unwrap_err().to_string(), told.to_string());
        let again = health.fail(Flaw::Io(io::Error::other("later")));
        assert_eq!(again.to_string(), told.to_string());
    }
}
