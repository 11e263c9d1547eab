//! The folder or bucket of a source, and the differences between them.

use super::folder::MountedFolder;
use super::marker::UnknownFolder;
use crate::clock::Clock;
use crate::source::bucket::bucket_view::Bucket;
use crate::source::mount::disk::Disk;
use std::sync::Arc;
use std::time::Duration;

/// How long a positive check of a folder is reused.
const FRESH: Duration = Duration::from_secs(1);

/// How long a positive check of a bucket is reused: each check is a request and may cost money.
const BUCKET_FRESH: Duration = Duration::from_secs(10);

/// The time-out of a check: a mount whose server is dead hangs for ever.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The folder or bucket of a source.
pub enum Storage {
    /// A folder on a local disk or a mounted share.
    Folder(Box<MountedFolder>),
    /// A bucket. It is identified by its name and not claimed.
    Bucket(Arc<Bucket>),
}

impl Storage {
    /// The folder; `None` for a bucket.
    pub(super) fn folder(&self) -> Option<&MountedFolder> {
        if let Self::Folder(folder) = self { Some(folder) } else { None }
    }

    pub(super) fn noun(&self) -> &'static str {
        match self {
            Self::Folder(_) => "folder",
            Self::Bucket(_) => "bucket",
        }
    }

    /// How long a positive check is reused.
    pub(super) fn fresh_for(&self) -> Duration {
        match self {
            Self::Folder(_) => FRESH,
            Self::Bucket(_) => BUCKET_FRESH,
        }
    }

    /// Returns the default of `settle` on this disk. An object becomes visible only when it is complete.
    pub(super) fn settle(&self, disk: Disk) -> Duration {
        match self {
            Self::Folder(_) => disk.settle(),
            Self::Bucket(_) => Duration::ZERO,
        }
    }

    /// Whether the folder was identified; true for a bucket.
    pub(super) fn is_known(&self) -> bool {
        self.folder().is_none_or(|folder| folder.known().is_some())
    }

    /// Checks that it is available and that this installation may work in it. Returns the kind of its disk. Call once
    /// at a time.
    pub(super) async fn look(&self, clock: &dyn Clock) -> Result<Disk, UnknownFolder> {
        match self {
            Self::Folder(folder) => folder.look(clock).await,
            Self::Bucket(bucket) => tokio::select! {
                biased;
                answer = bucket.check_reachable() => answer.map(|()| Disk::Remote).map_err(UnknownFolder::Away),
                () = clock.sleep(ANSWERS_WITHIN) => Err(no_answer()),
            },
        }
    }
}

pub(super) fn no_answer() -> UnknownFolder {
    UnknownFolder::Away(format!("did not answer within {} s", ANSWERS_WITHIN.as_secs()))
}
