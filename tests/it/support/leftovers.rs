//! What the end of a test may not leave in its folder: a process, a lock, a file that was never finished.

use super::bed::{eventually, files};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Folders in which a process was killed. What it was writing is left until the next pass removes it.
static KILLED_IN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A process that worked in this folder was killed.
pub fn was_killed_in(folder: &Path) {
    KILLED_IN.lock().unwrap().insert(folder.into());
}

/// Fails where a process works in this folder, a file in it is locked, or one was left unfinished by a process that
/// came to its own end.
pub fn assert_none(folder: &Path) {
    eventually("no process is left in the folder of the test", || !is_worked_in(folder));
    let locked: Vec<PathBuf> = files(folder).into_iter().filter(|path| is_locked(path)).collect();
    assert!(locked.is_empty(), "still locked: {locked:?}");
    if !KILLED_IN.lock().unwrap().remove(folder) {
        let unfinished: Vec<PathBuf> = files(folder).into_iter().filter(|path| is_unfinished(path)).collect();
        assert!(unfinished.is_empty(), "never finished: {unfinished:?}");
    }
}

fn is_worked_in(folder: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok()).any(|cwd| cwd.starts_with(folder))
}

fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Whether scribed gives such a name to what is not whole yet. Files of others may be named `.tmp` among recordings.
pub fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    let is_of_state =
        path.components().any(|part| ["state", "service"].iter().any(|folder| part.as_os_str() == *folder));
    name.ends_with(".scribed-tmp")
        || name.starts_with(".scribed-plan-")
        || is_of_state && (name.ends_with(".tmp") || name.starts_with(".tmp"))
}
