//! What can be wrong with a store, and the first failure of an open one.

use super::encoding::FORMAT;
use crate::permission_errors::{explain_state_at, split_fix};
use crate::store::contract::StoreError;
use crate::store::process_lock::{LockError, ProcessLock};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What is wrong with a store, before it is described to people.
pub(super) enum Flaw {
    /// Locked by another process; its number, if that is known.
    Locked(Option<u32>),
    Newer(u8),
    Damaged(String),
    Io(io::Error),
    Store(StoreError),
}

impl Flaw {
    pub(super) fn into_store_error(self, queue: &Path) -> StoreError {
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
            Self::Store(error) => error,
        }
    }
}

impl From<LockError> for Flaw {
    fn from(lock_error: LockError) -> Self {
        match lock_error {
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
        Self::Store(error)
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

pub(super) fn unwritable(path: &Path, error: io::Error) -> StoreError {
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
pub(super) struct FirstFailure {
    pub(super) dir: PathBuf,
    pub(super) failed: OnceLock<StoreError>,
    /// Every handle of sled keeps this alive, so the lock is released after the last one.
    pub(super) _process_lock: Arc<ProcessLock>,
}

impl FirstFailure {
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    pub(super) fn fail(&self, flaw: Flaw) -> StoreError {
        let error = match flaw {
            // This is not damage: sled repeats the first error of its writes for ever, as an error of any kind.
            Flaw::Damaged(what) => unwritable(&self.dir, io::Error::other(what)),
            flaw => flaw.into_store_error(&self.dir),
        };
        self.failed.get_or_init(|| error).clone()
    }
}
