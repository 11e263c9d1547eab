//! What the recordings of a source lie in, and what differs by that.

use super::folder::MountedFolder;
use super::marker::UnknownFolder;
use crate::clock::Clock;
use crate::source::bucket::bucket_view::Bucket;
use crate::source::mount::disk::Disk;
use std::sync::Arc;
use std::time::Duration;

/// A folder that was there is not asked again for so long.
const FRESH: Duration = Duration::from_secs(1);

/// The same for a bucket: each question is a request, and may cost.
const BUCKET_FRESH: Duration = Duration::from_secs(10);

/// What does not answer for so long is away: a dead server hangs for ever.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// What the recordings of a source lie in.
pub enum Storage {
    /// A folder of this machine, or of a share that is mounted here.
    Folder(Box<MountedFolder>),
    /// A bucket. It belongs to nobody, and is known by its name.
    Bucket(Arc<Bucket>),
}

impl Storage {
    /// The folder, where it is one.
    pub(super) fn folder(&self) -> Option<&MountedFolder> {
        if let Self::Folder(folder) = self { Some(folder) } else { None }
    }

    pub(super) fn noun(&self) -> &'static str {
        match self {
            Self::Folder(_) => "folder",
            Self::Bucket(_) => "bucket",
        }
    }

    /// How long a good answer holds.
    pub(super) fn fresh_for(&self) -> Duration {
        match self {
            Self::Folder(_) => FRESH,
            Self::Bucket(_) => BUCKET_FRESH,
        }
    }

    /// How long a file must be quiet on this disk. An object appears whole.
    pub(super) fn settle(&self, disk: Disk) -> Duration {
        match self {
            Self::Folder(_) => disk.settle(),
            Self::Bucket(_) => Duration::ZERO,
        }
    }

    /// Whether anything of the user's was ever seen in it.
    pub(super) fn is_known(&self) -> bool {
        self.folder().is_none_or(|folder| folder.known().is_some())
    }

    /// Whether it is there and ours to work in, and what it lies on. For one caller at a time.
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
