//! Scans a source for files and admits them. Files are not opened: the listing and one `stat` for each are enough.

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::crash_points::{self, Point};
use crate::domain::job::{JobKey, Stamp};
use crate::domain::names::Timestamp;
use crate::domain::path::RelPath;
use crate::rooted_path::RootedPath;
use crate::source::mount::source_mount::Mount;
pub use crate::source::recording_place::full_path;
use crate::source::scan::checkpoint::ScanCheckpoint;
use crate::source::scan::traverse::{OnFolder, TraverseTarget, TraversedItem};
use crate::store::contract::{Store, StoreError};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The result of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scanned {
    /// The number of files that the source takes.
    pub files: u64,
    /// The number of these that were new, or had changed after their job's end.
    pub admitted: u64,
    /// What could not be read; at most [`TOLD`] messages.
    pub problems: Vec<String>,
    /// Whether the folder was available from the beginning to the end.
    pub is_folder_present: bool,
    /// Folders that contain a temporary output file.
    pub leftovers: BTreeSet<RootedPath>,
}

/// The most problems that a scan reports.
pub const TOLD: usize = 20;

/// The scan yields to other work of its task after each admission of this many files.
const FILES_BETWEEN_YIELDS: u32 = 32;

/// The capacity of the channel from the traversal, in batches.
const WAITING_BATCHES: usize = 4;

/// What a scan needs.
pub struct FolderScan<'a> {
    pub mount: &'a Arc<Mount>,
    /// The store that admits the files.
    pub store: &'a dyn Store,
    pub clock: &'a dyn Clock,
    /// Called for each new file.
    pub admitted: &'a (dyn Fn() + Sync),
    /// Called for each folder before it is read.
    pub on_folder: Option<OnFolder>,
    /// Which paths are admitted; `None` admits all that the source takes.
    pub only: Option<&'a (dyn Fn(&RelPath) -> bool + Sync)>,
}

impl FolderScan<'_> {
    /// Scans everything. If the folder is away, nothing changes. After an interrupted scan it begins where that one
    /// stopped and wraps around, so that all folders are reached even if a share goes away repeatedly.
    pub async fn scan_all(&self) -> Result<Scanned, StoreError> {
        let (scans, by_slots) = (self.mount.scans(), self.mount.source().scan.line().is_some());
        if by_slots && self.mount.check_now().await.is_err() {
            return Ok(Scanned::default()); // the slot is not used up
        }
        let _scanning = scans.begin_first_scan();
        scans.record_start(self.clock.wall()).await;
        let mut bookmark = self.mount.bookmark(self.clock);
        let target = TraverseTarget::Whole { behind: bookmark.resume_after() };
        let scanned = self.run(target, Some(&mut bookmark)).await?;
        if scanned.is_folder_present {
            bookmark.remove();
            scans.record_end(self.clock.wall()).await;
        }
        Ok(scanned)
    }

    /// Reports all folders, so that later changes are watched, and admits only files that changed at or after this
    /// moment of the wall clock.
    pub async fn folders(&self, since: Timestamp) -> Result<Scanned, StoreError> {
        self.run(TraverseTarget::Folders { since }, None).await
    }

    /// Scans the files and folders at these paths below the source's folder.
    pub async fn scan_paths(&self, paths: Vec<PathBuf>) -> Result<Scanned, StoreError> {
        self.run(TraverseTarget::Below(paths), None).await
    }

    async fn run(
        &self,
        target: TraverseTarget,
        mut bookmark: Option<&mut ScanCheckpoint>,
    ) -> Result<Scanned, StoreError> {
        let mut scanned = Scanned { is_folder_present: self.mount.check_now().await.is_ok(), ..Scanned::default() };
        if !scanned.is_folder_present {
            return Ok(scanned);
        }
        let (sender, mut batches) = mpsc::channel(WAITING_BATCHES);
        drop(self.mount.traverse(target, self.on_folder.clone(), sender));
        let (mut has_files, mut is_marked) = (false, false);
        loop {
            let received = tokio::select! {
                received = batches.recv() => received,
                _ = self.mount.wait_until_away() => None,
            };
            let is_over = received.is_none();
            let mut batch = Batch::of(received.unwrap_or_default());
            if let Some(only) = self.only {
                batch.files.retain(|(path, _)| only(path));
            }
            has_files |= !batch.files.is_empty();
            let count = batch.files.len();
            batch.files = self.store.new_or_changed(&self.mount.source().name, batch.files).await?;
            scanned.files += (count - batch.files.len()) as u64;
            // The entries may have been read from the bare mount point of a share that was just unmounted. Known files
            // change nothing and need no check.
            let draws_conclusions = is_over || !batch.files.is_empty() || (has_files && !is_marked);
            if draws_conclusions && self.mount.may_conclude().await.is_err() {
                return Ok(Scanned {
                    is_folder_present: false,
                    problems: Vec::new(),
                    leftovers: BTreeSet::new(),
                    ..scanned
                });
            }
            if is_over {
                return Ok(scanned);
            }
            if has_files && !is_marked {
                self.mark().await;
                is_marked = true;
            }
            let completed = batch.through.take();
            self.admit_batch(batch, &mut scanned).await?;
            if let (Some(folder), Some(bookmark)) = (completed, &mut bookmark) {
                bookmark.save(&folder, self.clock).await;
            }
            // If the next batch is ready, the task would not yield otherwise.
            tokio::task::yield_now().await;
        }
    }

    async fn mark(&self) {
        let mount = Arc::clone(self.mount);
        // `mark` logs its own errors.
        blocking(move || mount.mark()).await;
    }

    async fn admit_batch(&self, batch: Batch, scanned: &mut Scanned) -> Result<(), StoreError> {
        for (number, (path, stamp)) in (1..).zip(batch.files) {
            self.admit(path, stamp, scanned).await?;
            // The same task also handles changes.
            if number % FILES_BETWEEN_YIELDS == 0 {
                tokio::task::yield_now().await;
            }
        }
        let room = TOLD.saturating_sub(scanned.problems.len());
        scanned.problems.extend(batch.troubles.into_iter().take(room));
        scanned.leftovers.extend(batch.leftovers);
        Ok(())
    }

    /// Admits a file with this stamp.
    pub async fn admit(&self, path: RelPath, stamp: Stamp, scanned: &mut Scanned) -> Result<(), StoreError> {
        let key = JobKey { source: self.mount.source().name.clone(), path };
        if self.store.is_output(&key).await? {
            return Ok(()); // an output of ours, whatever the patterns say
        }
        scanned.files += 1;
        let (moment, settle) = (self.clock.moment(), self.mount.settle_at(&key.path));
        let (now, quiet_at) = (moment.now, self.mount.disk_at(&key.path).quiet_at(&stamp, moment, settle));
        let due = quiet_at.map_or(now.saturating_add(settle), |at| at.max(now));
        crash_points::point(Point::Admitting);
        let admission = self.store.admit(&key, stamp, now, due).await?;
        crash_points::point(Point::Admitted);
        scanned.admitted += u64::from(admission.begins());
        if admission.is_news() {
            (self.admitted)();
        }
        Ok(())
    }
}

/// A batch of traversed items by kind.
#[derive(Default)]
struct Batch {
    files: Vec<(RelPath, Stamp)>,
    troubles: Vec<String>,
    leftovers: Vec<RootedPath>,
    /// The last completed folder.
    through: Option<PathBuf>,
}

impl Batch {
    fn of(seen: Vec<TraversedItem>) -> Self {
        let mut batch = Self { files: Vec::with_capacity(seen.len()), ..Self::default() };
        for seen in seen {
            match seen {
                TraversedItem::File(path, stamp) => batch.files.push((path, stamp)),
                TraversedItem::Trouble(trouble) => batch.troubles.push(trouble),
                TraversedItem::Leftover(folder) => batch.leftovers.push(folder),
                TraversedItem::Through(folder) => batch.through = Some(folder),
            }
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{SystemClock, Uptime};
    use crate::config::load::read;
    use crate::store::contract::{Filter, Queries};
    use crate::store::memory;
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    /// A minute goes by with every look at it.
    #[derive(Default)]
    struct Swift(AtomicU64);

    #[async_trait::async_trait]
    impl Clock for Swift {
        fn now(&self) -> Timestamp {
            SystemClock.now()
        }
        fn uptime(&self) -> Uptime {
            Uptime(Duration::from_secs(60 * self.0.fetch_add(1, Ordering::Relaxed)))
        }
        async fn sleep(&self, span: Duration) {
            SystemClock.sleep(span).await;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_scan_that_was_cut_off_goes_on_where_it_was_and_then_goes_round() {
        let (top, state, clock) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Swift::default());
        let (share, away) = (top.path().join("share"), top.path().join("away"));
        for folder in 10..50 {
            fs::create_dir_all(share.join(folder.to_string())).unwrap();
            for n in 0..200 {
                fs::write(share.join(format!("{folder}/{n}.wav")), "x").unwrap();
            }
        }
        let text = format!("[[source]]\nname = \"s\"\nfolder = {share:?}\n");
        let source = Arc::new(read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0));
        let store = memory::empty();
        let (left, count) = (std::sync::Once::new(), AtomicU64::new(0));
        let goes = || {
            if count.fetch_add(1, Ordering::Relaxed) > 4_000 {
                left.call_once(|| fs::rename(&share, &away).unwrap());
            }
        };
        // Another process each time: nothing is left of the first scan but what it has kept.
        let mount = || Arc::new(Mount::new(Arc::clone(&source), state.path(), Arc::new(SystemClock)));
        let scan =
            FolderScan { mount: &mount(), store: &store, clock: &clock, admitted: &goes, on_folder: None, only: None };
        assert!(!scan.scan_all().await.unwrap().is_folder_present);
        let before = store.counts().await.unwrap().total();
        assert!(before > 4_000 && before < 8_000, "{before}");
        let behind = mount().bookmark(&clock).resume_after().expect("a bookmark");

        fs::rename(&away, &share).unwrap();
        fs::write(share.join("10/late.wav"), "x").unwrap();
        let scan =
            FolderScan { mount: &mount(), store: &store, clock: &clock, admitted: &|| {}, on_folder: None, only: None };
        let scanned = scan.scan_all().await.unwrap();
        assert!(
            (scanned.is_folder_present, scanned.files, mount().bookmark(&clock).resume_after()) == (true, 8_001, None),
            "{scanned:?}"
        );
        let jobs = store.page(&Filter { limit: 10_000, ..Filter::default() }).await.unwrap();
        let path = |job: &crate::domain::job::Job| job.key.path.lossy().into_owned();
        let first = path(&jobs[usize::try_from(before).unwrap()]);
        assert!(Path::new(&first) > behind.as_path(), "{first} was found next, behind {behind:?}");
        assert_eq!(path(jobs.last().unwrap()), "10/late.wav", "then it went round");
    }
}
