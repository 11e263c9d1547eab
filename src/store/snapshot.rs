//! A folder in the state directory for a copy of the queue. It is removed with its owner; what a killed
//! process left is removed by the next one that opens the queue or copies it.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// How its name begins.
const BEGUN: &str = ".plan-";

/// A folder for its owner only, removed when this is dropped.
#[derive(Debug)]
pub struct SnapshotFolder {
    room: TempDir,
    /// Its lock says that its owner lives. After the folder: it is let go last.
    _held: File,
}

impl SnapshotFolder {
    /// An empty one. To be made while the queue is locked, as [`sweep`] is to be called: none is swept
    /// before it is held.
    ///
    /// # Errors
    /// What the file system says.
    pub fn within(state: &Path) -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let room = tempfile::Builder::new().prefix(BEGUN).permissions(private).tempdir_in(state)?;
        let held = File::open(room.path())?;
        held.lock()?;
        Ok(Self { room, _held: held })
    }

    pub fn path(&self) -> &Path {
        self.room.path()
    }
}

/// Removes those whose owner does not live any more. What cannot be removed does no harm. To be called
/// while the queue is locked. Blocks.
pub fn sweep(state: &Path) {
    let entries = std::fs::read_dir(state).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(BEGUN.as_bytes())) {
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
