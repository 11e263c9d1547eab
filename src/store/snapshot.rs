//! A folder in the state directory for a copy of the queue. It is removed with its owner. What a killed process left
//! is removed by the next process that opens or copies the queue.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// Prefix of the folder's name.
const PREFIX: &str = ".plan-";

/// A folder that only its owner can read, removed when this is dropped.
#[derive(Debug)]
pub struct SnapshotFolder {
    room: TempDir,
    /// Its lock shows that the owner lives. Declared after the folder, so that it is released last.
    _held: File,
}

impl SnapshotFolder {
    /// Creates an empty folder.
    pub fn within(state: &Path) -> io::Result<Self> {
        loop {
            let private = Permissions::from_mode(0o700);
            let room = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(state)?;
            // Swept before it was locked.
            let Some(held) = unless_missing(File::open(room.path()))? else { continue };
            held.lock()?;
            if unless_missing(room.path().metadata())?.is_some() {
                return Ok(Self { room, _held: held });
            }
        }
    }

    pub fn name(&self) -> String {
        self.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub fn path(&self) -> &Path {
        self.room.path()
    }
}

fn unless_missing<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Whether this is the name of such a folder.
pub fn is_name(name: &str) -> bool {
    name.starts_with(PREFIX) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

/// Removes folders whose owner does not live any more. A folder that cannot be removed does no harm. Blocks.
pub fn sweep(state: &Path) {
    let entries = std::fs::read_dir(state).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())) {
        if let Ok(held) = File::open(entry.path())
            && held.try_lock().is_ok()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_swept_and_what_is_in_use_is_not() {
        let state = TempDir::new().unwrap();
        let left = state.path().join(".plan-left");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("db"), "rows").unwrap();
        let room = SnapshotFolder::within(state.path()).unwrap();
        std::fs::write(room.path().join("db"), "rows").unwrap();
        assert_eq!(room.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        sweep(state.path());
        assert!(!left.exists() && room.path().join("db").exists());
        drop(room);
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
    }
}
