//! Lets one process at a time open the queue of a state directory. sled has a lock of its own, but reads and writes
//! its settings before it takes it: of two processes that create a queue at the same moment, one could take the
//! other's half-written queue for damaged.

use crate::permission_errors::explain_state_at;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The lock file lies beside the queue: it stays when the queue is set aside. It is never removed, since whoever
/// removes it may take away another's lock.
pub const NAME: &str = "queue.lock";

/// The lock, held as long as this value lives. The kernel releases the lock of a killed process.
#[derive(Debug)]
pub struct ProcessLock {
    held: File,
}

/// Why the lock cannot be taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process has it; its number, if it has written that down.
    Held(Option<u32>),
    /// An error of the disk or of its permissions.
    Io(io::Error),
}

impl ProcessLock {
    /// Takes the lock, or says at once which process has it.
    pub fn enter(state: &Path) -> Result<Self, LockError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let path = state.join(NAME);
        let mut held = lock(options.open(&path).map_err(explain_state_at(&path)).map_err(LockError::Io)?)?;
        // The number is for people. On a full disk it is missing, and the lock holds all the same.
        let _ = held.set_len(0).and_then(|()| writeln!(held, "{}", std::process::id()));
        Ok(Self { held })
    }

    /// Keeps other processes out as long as the returned file lives, and changes nothing: for a process that only
    /// reads. `None` if only releases without this lock have used the queue yet.
    pub fn keep_locked(state: &Path) -> Result<Option<File>, LockError> {
        let path = state.join(NAME);
        match File::open(&path) {
            Ok(file) => lock(file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LockError::Io(explain_state_at(&path)(error))),
        }
    }
}

/// Returns the number of the process that has a queue, if it has written that down. Only for messages: it takes no lock.
pub fn holder(state: &Path) -> Option<u32> {
    named(File::open(state.join(NAME)).ok()?)
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        // Removed, so that the number is not taken for another process's.
        let _ = self.held.set_len(0);
    }
}

fn lock(file: File) -> Result<File, LockError> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LockError::Held(named(file))),
        Err(TryLockError::Error(error)) => Err(LockError::Io(error)),
    }
}

fn named(file: File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_passes_at_a_time_and_the_others_are_told_who() {
        let state = tempfile::tempdir().unwrap();
        // The number of a killed process, which was longer.
        std::fs::write(state.path().join(NAME), "99999999999\n").unwrap();
        let inside = ProcessLock::enter(state.path()).unwrap();
        let Err(LockError::Held(pid)) = ProcessLock::enter(state.path()) else { panic!("two passed") };
        assert_eq!(pid, Some(std::process::id()));
        assert_eq!(holder(state.path()), pid);
        let Err(LockError::Held(_)) = ProcessLock::keep_locked(state.path()) else { panic!("somebody is inside") };
        drop(inside);
        assert_eq!(holder(state.path()), None);
        assert_eq!(std::fs::read(state.path().join(NAME)).unwrap(), b"");
        let looking = ProcessLock::keep_locked(state.path()).unwrap();
        assert!(matches!(ProcessLock::enter(state.path()), Err(LockError::Held(None))));
        drop(looking);
        ProcessLock::enter(state.path()).unwrap();
        let nowhere = state.path().join("nowhere");
        assert!(
            matches!(ProcessLock::enter(&nowhere), Err(LockError::Io(error)) if error.kind() == io::ErrorKind::NotFound)
        );
    }
}
