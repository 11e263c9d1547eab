//! A source and what it lies in.

use super::availability::Availability;
pub use super::availability::Away;
pub(crate) use super::folder::FolderLook;
use super::folder::{self, MountedFolder};
use super::manifest_hold::ManifestHold;
use super::marker::{self, FolderMemory};
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
use crate::store::contract::Store;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A source and whether what it lies in is there.
pub struct Mount {
    source: Arc<Source>,
    pub(super) storage: Storage,
    pub(super) availability: Availability,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) memory: FolderMemory,
    /// Of the folder that its outputs go to, where that is another.
    placed: Option<FolderMemory>,
    beside: ExistingSubtitles,
    bags: Bags,
    pub(super) scans: ScanSchedule,
    manifest_hold: ManifestHold,
}

impl Mount {
    /// As the state directory remembers it. Nothing is looked at yet.
    pub fn new(source: Arc<Source>, state: &Path, clock: Arc<dyn Clock>) -> Self {
        Self::with_folder_check(source, state, clock, Arc::new(folder::look))
    }

    /// The same with a look of one's own.
    pub(crate) fn with_folder_check(
        source: Arc<Source>,
        state: &Path,
        clock: Arc<dyn Clock>,
        look: FolderLook,
    ) -> Self {
        let memory = FolderMemory::new(state, &source.name, &source.folder);
        let placed = source.output_folder.as_ref().map(|place| {
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
            source,
            memory,
            placed,
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

    /// What its recordings lie in.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// From now on this is the one who works in the folder: it is claimed at the next look. A bucket is nobody's.
    pub fn start_work(&self, installation: &Arc<Installation>, store: &Arc<dyn Store>, lag: Duration) {
        if let Some(folder) = self.storage.folder() {
            folder.work(installation, store, lag);
        }
        self.availability.expire();
    }

    /// Gives a sign of life in its folder, if this run works there and it is time.
    pub async fn keep_claim(&self) {
        if self.storage.folder().is_some_and(|folder| folder.claim().is_due(self.clock.uptime())) {
            // What is wrong is told by who looks.
            self.check_now().await.ok();
        }
    }

    /// Says in the folder that this run has ended there.
    pub async fn release(&self) {
        if let Some(folder) = self.storage.folder() {
            folder.release(&*self.clock).await;
        }
    }

    /// Returns when it can be worked in the folder, or when time alone will not bring that.
    pub async fn claimed(&self) {
        let Some(folder) = self.storage.folder() else { return };
        while self.check_now().await.is_err() {
            let Some(left) = folder.claim().remaining_wait(self.clock.uptime()) else { return };
            self.clock.sleep(left.max(Duration::from_millis(10))).await;
        }
    }

    /// Whether outputs may go where `place` says: it is made when it is first needed, and known again by its
    /// marker. Blocks.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn check_output_folder(&self) -> Result<(), String> {
        let (Some(memory), Some(place)) = (&self.placed, &self.source.output_folder) else { return Ok(()) };
        let shown = place.display();
        let failed = |error: io::Error| format!("cannot write outputs to {shown}: {}", describe_error(&error, place));
        if let Some(known) = memory.load().map_err(failed)? {
            return marker::recognise(place, Some(&known)).map_err(|stranger| format!("the folder {shown} {stranger}"));
        }
        // Not its parents: one of them may be where a share is to be mounted.
        match place.symlink_metadata() {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Whoever may look into the source's folder may look into this one.
                let access = access_of(&RootedPath::new(&self.source.folder, "")).map_err(failed)?;
                RootedPath::whole(place).make_folders(&|_| Some(access.clone())).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        memory.save(&marker::identify(place, None).map_err(failed)?).map_err(failed)
    }

    /// What the folder is known by may have been written down since: that counts.
    pub fn remember(&self) {
        if let Some(folder) = self.storage.folder() {
            folder.remember();
        }
    }

    /// Learns what the folder is known by, unless that is known. To be called when something of the
    /// user's was seen in it: the bare mount point of a share that is away has nothing in it. Blocks.
    pub fn mark(&self) {
        if self.storage.folder().is_some_and(MountedFolder::mark) {
            // It is claimed before anything else is done there.
            self.availability.expire();
        }
    }

    /// Whether anything of the user's was ever seen in its folder.
    pub fn is_known(&self) -> bool {
        self.storage.is_known()
    }

    /// Where its folder really lies, links resolved, as it was last found; `None` until then. Asks nobody.
    pub fn real(&self) -> Option<PathBuf> {
        self.storage.folder()?.real()
    }

    /// The subtitles in its folder.
    pub fn beside(&self) -> &ExistingSubtitles {
        &self.beside
    }

    /// The bags in its folder.
    pub fn bags(&self) -> &Bags {
        &self.bags
    }

    /// What its folder lies on, and what is mounted below it, as it was last seen. Until then the one that can
    /// be relied on least.
    pub fn disks(&self) -> Arc<Disks> {
        self.availability.disks().unwrap_or_else(|| Arc::new(Disk::Remote.into()))
    }

    /// What a job's recording lies on, as [`Mount::disks`].
    pub fn disk_of(&self, job: &Job) -> Disk {
        match recording(&self.source, job) {
            Recording::File(path) => self.disk_of_path(&path),
            Recording::Object(_) | Recording::Remote(_) => Disk::Remote,
        }
    }

    /// What a file lies on, as [`Mount::disks`]; one elsewhere counts as in the folder itself.
    pub fn disk_of_path(&self, path: &RootedPath) -> Disk {
        self.on(&path.below_folder(&self.source.folder).unwrap_or_default())
    }

    /// What a path below its folder lies on, as [`Mount::disks`].
    pub fn disk_at(&self, path: &RelPath) -> Disk {
        self.on(Path::new(OsStr::from_bytes(path.as_bytes())))
    }

    fn on(&self, path: &Path) -> Disk {
        self.availability.disks().map_or(Disk::Remote, |disks| disks.disk_of(path))
    }

    /// How long a job's recording must be quiet: as set, or as the disk that it lies on needs it.
    pub fn settle_of(&self, job: &Job) -> Duration {
        self.source.settle.unwrap_or_else(|| self.storage.settle(self.disk_of(job)))
    }

    /// The same for a path below its folder.
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
