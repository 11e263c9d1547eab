//! Scans of a source: their schedule, and the traversal of its folder or bucket.

use super::source_mount::Mount;
use super::storage::Storage;
use crate::blocking::spawn;
use crate::clock::Clock;
use crate::source::bucket::objects;
use crate::source::scan::checkpoint::ScanCheckpoint;
use crate::source::scan::inventory::{self, Sighting};
use crate::source::scan::schedule::ScanSchedule;
use crate::source::scan::traverse::{self, OnFolder, TraverseTarget, TraversedItem};
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinHandle;

impl Mount {
    /// The times of the last and the next scan.
    pub fn scans(&self) -> &ScanSchedule {
        &self.scans
    }

    /// Makes the checkpoint for a scan that begins now.
    pub fn bookmark(&self, clock: &dyn Clock) -> ScanCheckpoint {
        ScanCheckpoint::new(self.memory.bookmark(), &self.source().folder, clock)
    }

    /// Whether the source can report changes, so that scans need not find all of them. A bucket cannot, and each
    /// listing may cost money: only `scan` says how often it is listed.
    pub(crate) fn can_be_watched(&self) -> bool {
        self.source().is_local()
    }

    /// Traverses the target and sends what the source takes. Runs on a thread or task of its own, since a slow mount
    /// must not delay other work. A bucket is always listed completely.
    pub(crate) fn traverse(
        &self,
        what: TraverseTarget,
        on_folder: Option<OnFolder>,
        to: Sender<Vec<TraversedItem>>,
    ) -> JoinHandle<()> {
        let (source, disks) = (Arc::clone(self.source()), self.disks());
        match &self.storage {
            Storage::Folder(_) => spawn(move || {
                traverse::traverse(&source, &disks, &what, on_folder.as_ref(), &to);
            }),
            Storage::Bucket(bucket) => {
                let bucket = Arc::clone(bucket);
                tokio::spawn(async move { objects::list_taken(&bucket, &source, &to).await })
            }
        }
    }

    /// Lists everything with the filter's results, for commands that only report. Runs on a thread or task of its own.
    pub fn survey(&self, to: Sender<Sighting>) -> JoinHandle<()> {
        let (source, disks) = (Arc::clone(self.source()), self.disks());
        match &self.storage {
            Storage::Folder(_) => spawn(move || inventory::list_all(&source, &disks, &to)),
            Storage::Bucket(bucket) => {
                let bucket = Arc::clone(bucket);
                tokio::spawn(async move { objects::list_all(&bucket, &source, &to).await })
            }
        }
    }
}
