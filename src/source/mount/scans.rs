//! Scans of a source: when they were, and what goes through its folder or its bucket.

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
    /// When it was scanned last, and is next.
    pub fn scans(&self) -> &ScanSchedule {
        &self.scans
    }

    /// How far its scan has come that begins now.
    pub fn bookmark(&self, clock: &dyn Clock) -> ScanCheckpoint {
        ScanCheckpoint::new(self.memory.bookmark(), &self.source().folder, clock)
    }

    /// Whether something could tell of changes, so that not only `scan` says when it is looked through. A bucket tells of
    /// nothing, and each listing may cost.
    pub(crate) fn can_be_watched(&self) -> bool {
        self.source().is_local()
    }

    /// Goes through what a scan asks for. On a thread or a task of its own: a slow mount must not hold up the rest. A
    /// bucket is always listed whole.
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

    /// Goes through everything, for who only wants to know. On a thread or a task of its own.
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
