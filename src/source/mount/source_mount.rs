//! A source with the folder or bucket that its recordings are in.

use super::availability::Availability;
pub use super::availability::Away;
pub(crate) use super::folder::FolderLook;
use super::folder::{self, MountedFolder};
use super::manifest_hold::ManifestHold;
use super::marker::{self, FolderIdentity, FolderMemory};
use super::nested_mounts::NestedMounts;
pub use super::storage::Storage;
use crate::clock::Clock;
use crate::config::model::{Source, SourceKind};
use crate::domain::job::Job;
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::permission_errors::describe_error;
use crate::rooted_path::{RootedPath, access_of};
use crate::source::bucket::bucket_view::Bucket;
use crate::source::filter::existing_subtitles::ExistingSubtitles;
use crate::source::metadata::bag::Bags;
use crate::source::mount::disk::{Disk, Disks};
use crate::source::ownership::installation::Installation;
use crate::source::recording_place::{Recording, recording};
use crate::source::scan::schedule::ScanSchedule;
use crate::store::contract::Purchases;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A source with the state of its folder or bucket.
pub struct Mount {
    source: Arc<Source>,
    pub(super) storage: Storage,
    pub(super) availability: Availability,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) memory: FolderMemory,
    pub(super) nested_mounts: NestedMounts,
    /// The record of the folder for outputs (`place`), if it is a separate one.
    output_memory: Option<FolderMemory>,
    beside: ExistingSubtitles,
    bags: Bags,
    pub(super) scans: ScanSchedule,
    manifest_hold: ManifestHold,
}

impl Mount {
    /// Makes the mount from the records of the state directory. Does not access the folder or bucket.
    pub fn new(source: Arc<Source>, state: &Path, clock: Arc<dyn Clock>) -> Self {
        Self::with_folder_check(source, state, clock, Arc::new(folder::look))
    }

    /// Like [`Mount::new`], with another check of the folder.
    pub(crate) fn with_folder_check(
        source: Arc<Source>,
        state: &Path,
        clock: Arc<dyn Clock>,
        look: FolderLook,
    ) -> Self {
        let memory = FolderMemory::new(state, &source.name, &source.folder);
        let output_memory = source.output_folder.as_ref().map(|place| {
            // No source has a line break in its name.
            let name = SourceName::new(format!("{}\nplace", source.name));
            FolderMemory::new(state, &name, place)
        });
        let storage = match &source.kind {
            SourceKind::Bucket(bucket) => Storage::Bucket(Arc::new(Bucket::new(bucket))),
            SourceKind::Folder | SourceKind::Manifests(_) => {
                Storage::Folder(Box::new(MountedFolder::new(Arc::clone(&source), state, memory.clone(), look)))
            }
        };
        Self {
            storage,
            availability: Availability::default(),
            beside: ExistingSubtitles::new(Arc::clone(&clock)),
            bags: Bags::default(),
            scans: ScanSchedule::new(Arc::clone(&source), memory.scanned()),
            manifest_hold: ManifestHold::default(),
            nested_mounts: NestedMounts::new(&memory, &source.folder),
            source,
            memory,
            output_memory,
            clock,
        }
    }

    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Whether rows of its manifests may be bought as they are in the queue.
    pub fn manifest_hold(&self) -> &ManifestHold {
        &self.manifest_hold
    }

    /// The folder or bucket.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Starts to work in the folder: the next check claims it. A bucket is not claimed.
    pub fn start_work(&self, installation: &Arc<Installation>, store: &Arc<dyn Purchases>, lag: Duration) {
        if let Some(folder) = self.storage.folder() {
            folder.work(installation, store, lag);
        }
        self.availability.expire();
    }

    /// Gives a sign of life in the folder, if this run works there and one is due.
    pub async fn keep_claim(&self) {
        if self.storage.folder().is_some_and(|folder| folder.claim().is_due(self.clock.uptime())) {
            // The check itself reports errors.
            self.check_now().await.ok();
        }
    }

    /// Records in the folder's marker that this run has ended.
    pub async fn release(&self) {
        if let Some(folder) = self.storage.folder() {
            folder.release(&*self.clock).await;
        }
    }

    /// Returns when work in the folder may begin, or when waiting alone does not help.
    pub async fn claimed(&self) {
        let Some(folder) = self.storage.folder() else { return };
        while self.check_now().await.is_err() {
            let Some(left) = folder.claim().remaining_wait(self.clock.uptime()) else { return };
            self.clock.sleep(left.max(Duration::from_millis(10))).await;
        }
    }

    /// Checks that outputs may be written to the folder of `place`. It is created at the first use and later recognised
    /// by its marker. Blocks.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn check_output_folder(&self) -> Result<(), String> {
        let (Some(memory), Some(place)) = (&self.output_memory, &self.source.output_folder) else { return Ok(()) };
        let shown = place.display();
        let failed = |error: io::Error| format!("cannot write outputs to {shown}: {}", describe_error(&error, place));
        let recognise =
            |known| marker::recognise(place, known).map_err(|stranger| format!("the folder {shown} {stranger}"));
        if let Some(known) = memory.load().map_err(failed)? {
            return recognise(Some(&known));
        }
        // Two jobs, or two sources with one folder, that identify it at once would each give it a marker of their own.
        static IDENTIFYING: Mutex<()> = Mutex::new(());
        let _turn = IDENTIFYING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = memory.load().map_err(failed)? {
            return recognise(Some(&known));
        }
        // Its parents are not created: one of them may be a mount point.
        match place.symlink_metadata() {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The new folder gets the access rights of the source's folder.
                let access = access_of(&RootedPath::new(&self.source.folder, "")).map_err(failed)?;
                RootedPath::whole(place).make_folders(&|_| Some(access.clone())).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        memory.save(&marker::identify(place, None).map_err(failed)?).map_err(failed)
    }

    /// Reads the folder's identity again, if none is known: another process may have recorded it.
    pub fn remember(&self) {
        if let Some(folder) = self.storage.folder() {
            folder.remember();
        }
    }

    /// Identifies the folder and records it, unless that is done. Call it after a file of the user was seen in it: the
    /// bare mount point of an unmounted share is empty. Blocks.
    pub fn mark(&self) {
        if self.storage.folder().is_some_and(MountedFolder::mark) {
            // The next check claims the folder before anything else is done there.
            self.availability.expire();
        }
    }

    /// Whether the folder is recognised by its marker. On media that could not be written when they were first seen
    /// there is none.
    pub fn is_known_by_marker(&self) -> bool {
        let known = self.storage.folder().and_then(MountedFolder::known);
        matches!(known, Some(FolderIdentity::Marker(_)))
    }

    /// Whether the folder was identified, after a file of the user was seen in it.
    pub fn is_known(&self) -> bool {
        self.storage.is_known()
    }

    /// Returns the folder's path with links resolved, as found last; `None` before that. Does not access the disk.
    pub fn real(&self) -> Option<PathBuf> {
        self.storage.folder()?.real()
    }

    /// The cache of the subtitles in the source's folders.
    pub fn beside(&self) -> &ExistingSubtitles {
        &self.beside
    }

    /// The cache of the bags in the source's folders.
    pub fn bags(&self) -> &Bags {
        &self.bags
    }

    /// Returns the disks at and below the folder as found last; before that, the least reliable kind.
    pub fn disks(&self) -> Arc<Disks> {
        self.availability.disks().unwrap_or_else(|| Arc::new(Disk::Remote.into()))
    }

    /// Returns the disk of a job's recording, as [`Mount::disks`].
    pub fn disk_of(&self, job: &Job) -> Disk {
        match recording(&self.source, job) {
            Recording::File(path) => self.disk_of_path(&path),
            Recording::Object(_) | Recording::Remote(_) => Disk::Remote,
        }
    }

    /// Returns the disk of a file, as [`Mount::disks`]; a file outside the folder counts as in the folder.
    pub fn disk_of_path(&self, path: &RootedPath) -> Disk {
        self.disk_of_relative(&path.below_folder(&self.source.folder).unwrap_or_default())
    }

    /// Returns the disk of a path below the folder, as [`Mount::disks`].
    pub fn disk_at(&self, path: &RelPath) -> Disk {
        self.disk_of_relative(Path::new(OsStr::from_bytes(path.as_bytes())))
    }

    fn disk_of_relative(&self, path: &Path) -> Disk {
        self.availability.disks().map_or(Disk::Remote, |disks| disks.disk_of(path))
    }

    /// Returns how long a job's recording must be unchanged: the setting, or the default for its disk.
    pub fn settle_of(&self, job: &Job) -> Duration {
        self.source.settle.unwrap_or_else(|| self.storage.settle(self.disk_of(job)))
    }

    /// Like [`Mount::settle_of`], for a path below the folder.
    pub fn settle_at(&self, path: &RelPath) -> Duration {
        self.source.settle.unwrap_or_else(|| self.storage.settle(self.disk_at(path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{SystemClock, Uptime};
    use crate::config::load::read;
    use std::sync::Mutex;
    use tempfile::TempDir;

    fn mount(folder: &Path, state: &Path, look: FolderLook) -> Mount {
        let text = format!("[[source]]\nname = \"s\"\nfolder = {folder:?}\n");
        let source = read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0);
        Mount::with_folder_check(Arc::new(source), state, Arc::new(SystemClock), look)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_folder_that_hangs_is_away_and_is_not_asked_by_a_second_thread() {
        let dirs = [TempDir::new().unwrap(), TempDir::new().unwrap()];
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (wait, asked) = (Mutex::new(wait), Arc::new(Mutex::new(0)));
        let count = Arc::clone(&asked);
        let look: FolderLook = Arc::new(move |_, _| {
            *count.lock().unwrap() += 1;
            let _ = wait.lock().unwrap().recv();
            Ok(Disk::Local)
        });
        let mount = Mount { clock: Arc::new(Hasty), ..mount(dirs[0].path(), dirs[1].path(), look) };
        for _ in 0..5 {
            assert!(mount.there().await.unwrap_err().to_string().contains("did not answer within 10 s"));
        }
        assert_eq!(*asked.lock().unwrap(), 1);
        drop(go); // the server answers again
        while mount.check_now().await.is_err() {
            tokio::task::yield_now().await;
        }
        assert_eq!(mount.away(), None);
    }

    /// Does not wait.
    struct Hasty;

    #[async_trait::async_trait]
    impl Clock for Hasty {
        fn now(&self) -> crate::domain::names::Timestamp {
            SystemClock.now()
        }
        fn uptime(&self) -> Uptime {
            SystemClock.uptime()
        }
        async fn sleep(&self, _: Duration) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[tokio::test]
    async fn what_was_marked_is_missed_and_what_is_only_empty_is_not() {
        let (state, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let mount = mount(folder.path(), state.path(), Arc::new(folder::look));
        assert_eq!(mount.check_now().await, Ok(()), "an empty new folder is no alarm");
        assert!(mount.check_not_bare().await.is_err(), "but nothing is concluded from it");
        assert!(mount.check_writable_blocking().is_err() && mount.away().is_none(), "and nothing is put into it");
        mount.mark();
        assert_eq!(mount.check_not_bare().await, Ok(()), "with its marker it is just empty");
        assert_eq!(mount.check_writable_blocking(), Ok(()));
        assert_eq!(mount.real(), Some(folder.path().canonicalize().unwrap()));
        std::fs::remove_file(folder.path().join(".scribed")).unwrap();
        assert!(mount.check_now().await.unwrap_err().to_string().contains("create an empty file .scribed"));
        assert!(mount.away().is_some());
        std::fs::write(folder.path().join(".scribed"), "").unwrap();
        assert_eq!((mount.check_now().await, mount.away()), (Ok(()), None));
        mount.mark();
        std::fs::write(folder.path().join(".scribed"), "other\n").unwrap();
        assert!(mount.check_now().await.is_err(), "the empty marker got an id");
    }
}
