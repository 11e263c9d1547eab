//! A folder as a source: finding its files and admitting them. Nothing is opened: the listing and one
//! look at each file are enough.

use crate::clock::Clock;
use crate::crash::{self, Point};
use crate::domain::job::{JobKey, Stamp};
use crate::domain::path::RelPath;
use crate::source::mount::Mount;
use crate::source::objects;
pub use crate::source::place::full_path;
use crate::source::tree::{OnFolder, Seen, walk};
use crate::store::contract::{Admission, Store, StoreError};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What a scan came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Files that the source takes.
    pub files: u64,
    /// Of these, how many were new or had changed after their end.
    pub admitted: u64,
    /// What could not be read, in words; at most [`TOLD`] of them.
    pub troubles: Vec<String>,
    /// Whether the folder itself was there, from the beginning to the end.
    pub there: bool,
    /// Folders in which a killed process left an output half-written.
    pub leftovers: BTreeSet<PathBuf>,
}

/// So many unreadable folders are named; the rest is a number in the last line.
pub const TOLD: usize = 20;

/// What was seen is admitted in portions: after each the folder is asked whether it is still there.
const PORTION: usize = 256;

/// How a folder is looked through.
pub struct Scan<'a> {
    /// The source.
    pub mount: &'a Arc<Mount>,
    /// Where its files are admitted.
    pub store: &'a dyn Store,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Told of each file that is new.
    pub admitted: &'a (dyn Fn() + Sync),
    /// Told of each folder before it is read.
    pub on_folder: Option<OnFolder>,
}

impl Scan<'_> {
    /// Looks through all of it. A folder that is away changes nothing.
    ///
    /// # Errors
    /// The store's.
    pub async fn whole(&self) -> Result<Scanned, StoreError> {
        self.below(vec![PathBuf::new()]).await
    }

    /// Looks at files and through folders given by their paths below the source's folder.
    ///
    /// # Errors
    /// The store's.
    pub async fn below(&self, paths: Vec<PathBuf>) -> Result<Scanned, StoreError> {
        let mut scanned = Scanned { there: self.mount.there_now().await.is_ok(), ..Scanned::default() };
        if !scanned.there {
            return Ok(scanned);
        }
        let (to, mut found) = mpsc::channel(4 * PORTION);
        let (source, disk, on_folder) = (Arc::clone(self.mount.source()), self.mount.disk(), self.on_folder.clone());
        // On a thread or a task of its own: a slow mount must not hold up the rest.
        match self.mount.bucket().cloned() {
            Some(bucket) => drop(tokio::spawn(async move { objects::walk(&bucket, &source, &to).await })),
            None => {
                drop(tokio::task::spawn_blocking(move || walk(&source, disk, &paths, on_folder.as_ref(), &to)));
            }
        }
        let mut is_marked = false;
        loop {
            let mut portion = Vec::new();
            let more = tokio::select! {
                more = found.recv_many(&mut portion, PORTION) => more,
                _ = self.mount.lost() => 0,
            };
            // What was seen may have been seen in the bare mount point of a share that has just gone. A bucket
            // has none.
            let there =
                if self.mount.bucket().is_some() { self.mount.there().await } else { self.mount.there_now().await };
            if there.is_err() {
                return Ok(Scanned { there: false, troubles: Vec::new(), leftovers: BTreeSet::new(), ..scanned });
            }
            if more == 0 {
                return Ok(scanned);
            }
            if !is_marked && portion.iter().any(|seen| matches!(seen, Seen::File(..))) {
                self.mark().await;
                is_marked = true;
            }
            for seen in portion {
                self.take(seen, &mut scanned).await?;
            }
        }
    }

    async fn mark(&self) {
        let mount = Arc::clone(self.mount);
        // What it has to say it says itself.
        tokio::task::spawn_blocking(move || mount.mark()).await.ok();
    }

    async fn take(&self, seen: Seen, scanned: &mut Scanned) -> Result<(), StoreError> {
        match seen {
            Seen::File(path, stamp) => self.admit(path, stamp, scanned).await?,
            Seen::Trouble(trouble) if scanned.troubles.len() < TOLD => scanned.troubles.push(trouble),
            Seen::Trouble(_) => {}
            Seen::Leftover(folder) => {
                scanned.leftovers.insert(folder);
            }
        }
        Ok(())
    }

    /// Admits a file that was seen in this state.
    ///
    /// # Errors
    /// The store's.
    pub async fn admit(&self, path: RelPath, stamp: Stamp, scanned: &mut Scanned) -> Result<(), StoreError> {
        let key = JobKey { source: self.mount.source().name.clone(), path };
        if self.store.wrote(&key).await? {
            return Ok(()); // an output of ours, whatever the patterns say
        }
        scanned.files += 1;
        let (at, settle) = (self.clock.moment(), self.mount.settle());
        let (now, quiet_at) = (at.now, self.mount.disk().quiet_at(&stamp, at, settle));
        let due = quiet_at.map_or(now.after(settle), |at| at.max(now));
        crash::point(Point::Admitting);
        let admission = self.store.admit(&key, stamp, now, due).await?;
        crash::point(Point::Admitted);
        if !matches!(admission, Admission::Known(_)) {
            scanned.admitted += 1;
            (self.admitted)();
        }
        Ok(())
    }
}
