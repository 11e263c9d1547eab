//! The progress of a scan, saved in the state directory from time to time: the scan after an interrupted one continues
//! there. A scan of a million files on a slow share takes an hour, and the share may go away before that.

use crate::blocking::blocking;
use crate::clock::{Clock, Uptime};
use crate::domain::path::RelPath;
use crate::durable_file::Durability;
use crate::source::saved_file;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The shortest interval between saves: a shorter scan starts from the beginning again.
const SAVE_INTERVAL: Duration = Duration::from_secs(10);

pub struct ScanCheckpoint {
    file: PathBuf,
    folder: PathBuf,
    saved_at: Uptime,
}

#[derive(Serialize, Deserialize)]
struct SavedCheckpoint {
    /// A checkpoint of another folder under the same source name does not apply.
    folder: RelPath,
    behind: RelPath,
}

impl ScanCheckpoint {
    /// Makes the checkpoint in `file` for a scan of `folder` that begins now.
    pub fn new(file: PathBuf, folder: &Path, clock: &dyn Clock) -> Self {
        Self { file, folder: folder.to_owned(), saved_at: clock.uptime() }
    }

    /// Returns the last folder, relative to the source's, that an interrupted scan completed. An unreadable file counts
    /// as none: a scan from the beginning is always correct.
    pub fn resume_after(&self) -> Option<PathBuf> {
        let saved: SavedCheckpoint = serde_json::from_slice(&fs::read(&self.file).ok()?).ok()?;
        let is_ours = saved.folder.as_bytes() == self.folder.as_os_str().as_bytes();
        is_ours.then(|| PathBuf::from(OsStr::from_bytes(saved.behind.as_bytes())))
    }

    /// Saves that the scan has completed this folder and all before it.
    pub async fn save(&mut self, behind: &Path, clock: &dyn Clock) {
        let now = clock.uptime();
        if now.since(self.saved_at) < SAVE_INTERVAL {
            return;
        }
        self.saved_at = now;
        let rel_path = |path: &Path| RelPath::new(path.as_os_str().as_bytes());
        let (file, saved) =
            (self.file.clone(), SavedCheckpoint { folder: rel_path(&self.folder), behind: rel_path(behind) });
        let written = blocking(move || write(&file, &saved)).await;
        if let Err(error) = written {
            tracing::debug!(%error, "cannot save the progress of the scan; if it is interrupted, it starts again from the beginning");
        }
    }

    /// Removes the checkpoint of a completed scan.
    pub fn remove(&self) {
        // If the file remains, the next scan begins after that folder and wraps around.
        let _gone = fs::remove_file(&self.file);
    }
}

/// Not synced: a loss costs only a scan from the beginning.
fn write(file: &Path, saved: &SavedCheckpoint) -> io::Result<()> {
    saved_file::save(file, "scan-tmp", saved, Durability::Unsynced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::Timestamp;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Set(AtomicU64);

    #[async_trait::async_trait]
    impl Clock for Set {
        fn now(&self) -> Timestamp {
            Timestamp(0)
        }
        fn uptime(&self) -> Uptime {
            Uptime(Duration::from_secs(self.0.load(Ordering::Relaxed)))
        }
        async fn sleep(&self, _: Duration) {}
    }

    #[tokio::test]
    async fn it_is_put_now_and_again_and_counts_for_the_same_folder_only() {
        let (dir, clock) = (tempfile::tempdir().unwrap(), Set(AtomicU64::new(100)));
        let file = dir.path().join("folders/s.scan");
        let of = |folder: &str| ScanCheckpoint::new(file.clone(), Path::new(folder), &clock);
        let mut bookmark = of("/srv");
        bookmark.save(Path::new("a"), &clock).await;
        assert_eq!(bookmark.resume_after(), None, "a short scan writes nothing");
        clock.0.store(110, Ordering::Relaxed);
        let odd = Path::new(OsStr::from_bytes(b"b/\xff"));
        bookmark.save(odd, &clock).await;
        bookmark.save(Path::new("c"), &clock).await;
        assert_eq!(of("/srv").resume_after().as_deref(), Some(odd));
        assert_eq!(of("/srv2").resume_after(), None);
        bookmark.remove();
        assert_eq!(of("/srv").resume_after(), None);
    }
}
