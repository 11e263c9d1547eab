//! The folder of a source: how it is recognised, and the claim on it.

use super::marker::{self, FolderIdentity, FolderMemory, UnknownFolder};
use super::storage::{ANSWERS_WITHIN, no_answer};
use crate::clock::Clock;
use crate::config::model::Source;
use crate::config::sections::schedule::Schedule;
use crate::permission_errors::{describe_error, explain_error};
use crate::shortage::{self, Shortage};
use crate::source::filter::builtin::MARKER;
use crate::source::mount::disk::Disk;
use crate::source::ownership::claim::{Claim, ClaimMoment, ClaimResult, ClaimTerms};
use crate::source::ownership::installation::Installation;
use crate::store::contract::{Purchases, StoreError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};

/// The shortest interval between signs of life in a folder.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15 * 60);

/// The longest interval: a disk that is scanned once a day should sleep in between.
const SIGN_OF_LIFE_AT_REST: Duration = Duration::from_secs(6 * 3600);

/// The check of a folder, replaceable in tests.
pub(crate) type FolderLook = Arc<dyn Fn(&Path, Option<&FolderIdentity>) -> Result<Disk, UnknownFolder> + Send + Sync>;

/// A folder on a local disk or a mounted share.
pub struct MountedFolder {
    source: Arc<Source>,
    memory: FolderMemory,
    look: FolderLook,
    /// Whether a check hangs: then no other one is started.
    hangs: Arc<AtomicBool>,
    known: Mutex<Option<FolderIdentity>>,
    real: Mutex<Option<PathBuf>>,
    /// The claim of a process that only looks.
    observer: Arc<Claim>,
    works: OnceLock<Works>,
}

/// What is needed to work in the folder.
struct Works {
    store: Arc<dyn Purchases>,
    claim: Arc<Claim>,
}

impl MountedFolder {
    /// Reads what the state directory has recorded about the folder. Does not access the folder.
    pub(super) fn new(source: Arc<Source>, state: &Path, memory: FolderMemory, look: FolderLook) -> Self {
        let known = memory.load().unwrap_or_else(|error| {
            let words = "cannot read the record of the folder's marker; scribed creates it again";
            tracing::warn!(source = %source.name, %error, "{words}");
            None
        });
        let installation = Arc::new(Installation::for_observation(state));
        let observer = Arc::new(Claim::new(&source.name, &source.folder, memory.claim(), installation, None));
        Self {
            source,
            memory,
            look,
            hangs: Arc::default(),
            known: Mutex::new(known),
            real: Mutex::default(),
            observer,
            works: OnceLock::new(),
        }
    }

    /// Returns the identity by which the folder is recognised.
    pub(super) fn known(&self) -> Option<FolderIdentity> {
        lock(&self.known).clone()
    }

    /// Returns the folder's path with links resolved, as found last.
    pub(super) fn real(&self) -> Option<PathBuf> {
        lock(&self.real).clone()
    }

    /// Reads the identity again, if none is known: another process may have recorded it.
    pub(super) fn remember(&self) {
        if let Ok(Some(known)) = self.memory.load() {
            lock(&self.known).get_or_insert(known);
        }
    }

    /// Starts to work in the folder: the next check claims it.
    pub(super) fn work(&self, installation: &Arc<Installation>, store: &Arc<dyn Purchases>, lag: Duration) {
        let (source, store) = (&self.source, Arc::clone(store));
        let terms = Some(ClaimTerms { lag, every: self.sign_of_life() });
        let claim = Claim::new(&source.name, &source.folder, self.memory.claim(), Arc::clone(installation), terms);
        // A second time changes nothing.
        let _ = self.works.set(Works { store, claim: Arc::new(claim) });
    }

    /// Whether this process works in the folder, and does not only look.
    pub(super) fn is_working(&self) -> bool {
        self.works.get().is_some()
    }

    /// Returns the interval between signs of life: as often as a scan accesses the folder anyway. In a debug build the
    /// environment variable `SCRIBED_TEST_LEASE` (such as `300ms`) overrides it.
    fn sign_of_life(&self) -> Duration {
        let set_by_test = if cfg!(debug_assertions) { std::env::var("SCRIBED_TEST_LEASE").ok() } else { None };
        if let Some(set_by_test) = set_by_test.and_then(|text| humantime::parse_duration(&text).ok()) {
            return set_by_test;
        }
        match self.source.scan {
            Schedule::Every(every) => every.clamp(SIGN_OF_LIFE, SIGN_OF_LIFE_AT_REST),
            Schedule::At(_) => SIGN_OF_LIFE_AT_REST,
        }
    }

    pub(super) fn claim(&self) -> &Arc<Claim> {
        self.works.get().map_or(&self.observer, |works| &works.claim)
    }

    /// Records in the marker that this run has ended, if it worked in the folder.
    pub(super) async fn release(&self, clock: &dyn Clock) {
        let (claim, wall) = (Arc::clone(self.claim()), clock.wall());
        if self.works.get().is_some() {
            self.run_with_timeout(clock, move || claim.release(wall)).await.ok();
        }
    }

    /// Checks that the folder is available and that this installation may work in it. Returns the kind of its file
    /// system. Call once at a time.
    pub(super) async fn look(&self, clock: &dyn Clock) -> Result<Disk, UnknownFolder> {
        let (look, folder, known) = (Arc::clone(&self.look), self.source.folder.clone(), self.known());
        let (claim, at) = (Arc::clone(self.claim()), ClaimMoment { uptime: clock.uptime(), wall: clock.wall() });
        let asked = self.run_with_timeout(clock, move || {
            let looked = look(&folder, known.as_ref());
            let looked = match looked {
                Ok(disk) => claim.check_or_acquire(known.as_ref(), at).map(|answer| (disk, answer)),
                // The advice to empty the marker would take the folder from an installation that works there.
                Err(UnknownFolder::OtherMarker) => Err(claim.peek(at).err().unwrap_or(UnknownFolder::OtherMarker)),
                Err(stranger) => Err(stranger),
            };
            (looked, folder.canonicalize().ok())
        });
        let (looked, real) = asked.await?;
        if real.is_some() {
            *lock(&self.real) = real;
        }
        let (disk, answer) = looked?;
        if answer == ClaimResult::Distrust {
            self.distrust().await?;
        }
        Ok(disk)
    }

    /// Like [`MountedFolder::look`] on the calling thread, without the claim. Blocks.
    pub(super) fn look_here(&self) -> Result<Disk, UnknownFolder> {
        (self.look)(&self.source.folder, self.known().as_ref())
    }

    /// Whether the folder is unknown and empty. Blocks.
    pub(super) fn is_bare_here(&self) -> bool {
        self.known().is_none() && is_bare(&self.source.folder)
    }

    /// Whether the folder is empty. Call once at a time.
    pub(super) async fn is_bare(&self, clock: &dyn Clock) -> Result<bool, UnknownFolder> {
        let folder = self.source.folder.clone();
        self.run_with_timeout(clock, move || is_bare(&folder)).await
    }

    /// Distrusts the service: what another installation bought for this folder is found in the service's list only.
    async fn distrust(&self) -> Result<(), UnknownFolder> {
        let Some(Works { store, claim }) = self.works.get() else { return Ok(()) };
        let distrusted: Result<(), StoreError> = store.distrust(&self.source.service).await;
        let done = match distrusted {
            Ok(()) => claim.record_distrust().map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        done.map_err(|error| UnknownFolder::Away(format!("cannot be taken over: {error}")))
    }

    /// Runs a file system access that may hang, with a time-out. Call once at a time.
    async fn run_with_timeout<T: Send + 'static>(
        &self,
        clock: &dyn Clock,
        access: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, UnknownFolder> {
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return Ok(access()); // so that a simulation is the same every time
        }
        if self.hangs.swap(true, Ordering::AcqRel) {
            return Err(no_answer());
        }
        let hangs = Arc::clone(&self.hangs);
        let task = crate::blocking::spawn(move || {
            let answer = access();
            hangs.store(false, Ordering::Release);
            answer
        });
        tokio::select! {
            biased;
            answer = task => answer.map_err(|_| no_answer()),
            () = clock.sleep(ANSWERS_WITHIN) => Err(no_answer()),
        }
    }

    /// Identifies the folder by its marker and records it, unless that is done. Returns false if nothing changed.
    /// Blocks.
    pub(super) fn mark(&self) -> bool {
        let (folder, previous) = (&self.source.folder, self.known());
        if previous.is_some() && !marker::is_blank(folder) {
            return false;
        }
        let previous = previous.or_else(|| self.claim().foreign_marker_id());
        self.claim().note_marker_creation();
        let identified =
            marker::identify(folder, previous.as_ref()).and_then(|known| self.memory.save(&known).map(|()| known));
        match identified {
            Ok(known) => {
                *lock(&self.known) = Some(known);
                true
            }
            Err(error) => {
                let words = "cannot write a marker into the folder; until there is one, an unmounted share would look like deleted files";
                let error = explain_error(error, &folder.join(MARKER));
                tracing::warn!(source = %self.source.name, %error, "{words}");
                false
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn look(folder: &Path, known: Option<&FolderIdentity>) -> Result<Disk, UnknownFolder> {
    marker::recognise(folder, known)?;
    Disk::detect(folder)
        .map_err(|error| UnknownFolder::Away(format!("cannot be read: {}", describe_error(&error, folder))))
}

fn is_bare(folder: &Path) -> bool {
    match shortage::retry(|| std::fs::read_dir(folder)) {
        Ok(mut entries) => entries.next().is_none(),
        // It is not known what is in it, so nothing is concluded from it.
        Err(error) => Shortage::of(&error).is_some(),
    }
}
