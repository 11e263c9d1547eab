//! How far a scan has come, kept in the state directory now and again: where one is cut off, the next one
//! begins there. A tree of a million files on a slow share takes an hour, and the share may not last so long.

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

/// It is put so often at most: a scan that takes less is simply begun anew.
const EVERY: Duration = Duration::from_secs(10);

pub struct ScanCheckpoint {
    file: PathBuf,
    folder: PathBuf,
    put_at: Uptime,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    /// Another folder under the same name of a source is another story.
    folder: RelPath,
    behind: RelPath,
}

impl ScanCheckpoint {
    /// Kept in `file`, of a scan of `folder` that begins now.
    pub fn new(file: PathBuf, folder: &Path, clock: &dyn Clock) -> Self {
        Self { file, folder: folder.to_owned(), put_at: clock.uptime() }
    }

    /// The folder, relative to the source's, that a scan was through with which was cut off. What cannot be
    /// read says nothing: a scan from the beginning is never wrong.
    pub fn resume_after(&self) -> Option<PathBuf> {
        let kept: Kept = serde_json::from_slice(&fs::read(&self.file).ok()?).ok()?;
        let is_ours = kept.folder.as_bytes() == self.folder.as_os_str().as_bytes();
        is_ours.then(|| PathBuf::from(OsStr::from_bytes(kept.behind.as_bytes())))
    }

    /// The scan is through with this folder and all before it.
    pub async fn save(&mut self, behind: &Path, clock: &dyn Clock) {
        let now = clock.uptime();
        if now.since(self.put_at) < EVERY {
            return;
        }
        self.put_at = now;
        let of = |path: &Path| RelPath::new(path.as_os_str().as_bytes());
        let (file, kept) = (self.file.clone(), Kept { folder: of(&self.folder), behind: of(behind) });
        let written = blocking(move || write(&file, &kept)).await;
        if let Err(error) = written {
            tracing::debug!(%error, "cannot save the progress of the scan; if it is interrupted, it starts again from the beginning");
        }
    }

    /// The scan has come to its end.
    pub fn remove(&self) {
        // Where it stays, the next scan begins behind it and goes round.
        let _gone = fs::remove_file(&self.file);
    }
}

/// Not synced: what power loss takes costs a scan from the beginning.
fn write(file: &Path, kept: &Kept) -> io::Result<()> {
    saved_file::save(file, "scan-tmp", kept, Durability::Unsynced)
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
