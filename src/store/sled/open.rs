//! Opens the store, a copy of it, or an empty one in the place of a damaged one.

use super::committer::Committer;
use super::encoding::{FORMAT, WHOLE, seal, unseal};
use super::failure::{FirstFailure, Flaw, unwritable};
use super::restore;
use super::rows::{META_FORMAT, META_LOST, META_TRUSTED, SledRows};
use crate::domain::names::Timestamp;
use crate::durable_file;
use crate::permission_errors::explain_state_at;
use crate::store::contract::StoreError;
use crate::store::journal::HistoryFiles;
use crate::store::large::{self, LargeValues};
use crate::store::process_lock::ProcessLock;
use crate::store::queue::{QueueStore, Rows as _};
use crate::store::snapshot;
use crate::store::snapshot::SnapshotFolder;
use std::collections::HashSet;
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub(super) const CACHE_BYTES: u64 = 4 << 20;

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
    restore::refuse_unfinished(dir)?;
    let queue = dir.join("queue");
    make_private(&queue).map_err(|error| unwritable(&queue, error))?;
    let process_lock = patiently(|| enter(dir)).map_err(|flaw| flaw.into_store_error(&queue))?;
    open_inside(dir, &process_lock, now)
}

fn enter(dir: &Path) -> Result<Arc<ProcessLock>, Flaw> {
    Ok(Arc::new(ProcessLock::enter(dir)?))
}

pub(super) fn open_inside(
    dir: &Path,
    process_lock: &Arc<ProcessLock>,
    now: Option<Timestamp>,
) -> Result<QueueStore, StoreError> {
    let queue = dir.join("queue");
    match patiently(|| open_guarded(dir, process_lock, Trust::AsItSays, now)) {
        Err(Flaw::Damaged(what)) => {
            if !set_snapshots_aside(&queue) {
                return Err(Flaw::Damaged(what).into_store_error(&queue));
            }
            tracing::warn!(dir = %queue.display(), what, "the snapshot of the queue could not be used; scribed renamed it and opens the queue without it");
            patiently(|| open_guarded(dir, process_lock, Trust::Repaired, now))
                .map_err(|flaw| flaw.into_store_error(&queue))
        }
        opened => opened.map_err(|flaw| flaw.into_store_error(&queue)),
    }
}

/// Copies the store in `dir` and opens the copy: opening a store writes to it, and a reader must change nothing. The
/// copy lies in `dir` as long as the returned folder lives. `None` if there is no store. The history is not copied.
/// Copies that killed processes left are removed.
///
/// # Errors
/// As [`open`].
pub fn open_copy(dir: &Path) -> Result<Option<(QueueStore, SnapshotFolder)>, StoreError> {
    restore::refuse_unfinished(dir)?;
    let queue = dir.join("queue");
    if !queue.join("db").exists() {
        return Ok(None);
    }
    // Held during the copy: half a step would look like damage.
    let held = patiently(|| Ok((ProcessLock::keep_locked(dir)?, lock(&queue)?)))
        .map_err(|flaw| flaw.into_store_error(&queue))?;
    snapshot::sweep(dir);
    let room = SnapshotFolder::within(dir).map_err(|error| unwritable(dir, error))?;
    copy_files(&queue, &room.path().join("queue")).map_err(|error| unwritable(room.path(), error))?;
    drop(held);
    Ok(Some((open(room.path())?, room)))
}

pub(super) fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
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
/// since the numbers of jobs begin again at 1.
///
/// # Errors
/// As [`open`].
pub fn open_rebuilt(dir: &Path, now: Timestamp) -> Result<QueueStore, StoreError> {
    restore::refuse_unfinished(dir)?;
    let queue = dir.join("queue");
    make_private(dir).map_err(|error| unwritable(dir, error))?;
    // Held until the new store is open: a daemon that still runs must not lose its store.
    let (process_lock, _held) =
        patiently(|| Ok((enter(dir)?, lock(&queue)?))).map_err(|flaw| flaw.into_store_error(&queue))?;
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

pub(super) fn panic_words(panic: &(dyn std::any::Any + Send)) -> &str {
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

    let first_failure =
        Arc::new(FirstFailure { dir: queue, failed: OnceLock::new(), _process_lock: Arc::clone(process_lock) });
    let journal = Arc::new(HistoryFiles::open(dir.join("history"))?);
    let large = Arc::new(LargeValues::new(first_failure.dir.join(large::FOLDER)));
    let named = Arc::new(Mutex::new(Some(HashSet::new())));
    let rows = SledRows {
        db: db.clone(),
        first_failure: Arc::clone(&first_failure),
        large: Arc::clone(&large),
        named: Arc::clone(&named),
        copy: Mutex::default(),
    };
    rows.pauses()?;
    let committer = Committer::start(db.clone(), file, first_failure)?;
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
pub(super) fn forget_trust(db: &::sled::Db) -> Result<(), Flaw> {
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

pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Syncs what sled has created: it syncs neither its files nor their folders.
pub(super) fn sync_created(dir: &Path) -> io::Result<()> {
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

pub(super) fn sync(path: &Path) -> io::Result<()> {
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
