//! Whether a source's folder is there: a mount that is away is not a deletion (design, promise 6).

use crate::beneath::{RootedPath, access_of};
use crate::clock::{Clock, Uptime};
use crate::config::model::Source;
use crate::config::sections::schedule::Schedule;
use crate::domain::job::Job;
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::permission::explained;
use crate::source::bucket::bucket_view::Bucket;
use crate::source::filter::builtin::MARKER;
use crate::source::filter::existing_subtitles::ExistingSubtitles;
use crate::source::metadata::bag::Bags;
use crate::source::mount::disk::{Disk, Disks};
use crate::source::mount::marker;
use crate::source::mount::marker::{FolderIdentity, FolderMemory, UnknownFolder};
use crate::source::mount::table;
use crate::source::ownership::claim::{Claim, ClaimMoment, ClaimResult, ClaimTerms};
use crate::source::ownership::installation::Installation;
use crate::source::ownership::owner::OwnershipRefusal;
use crate::source::place::{Recording, recording};
use crate::source::scan::checkpoint::ScanCheckpoint;
use crate::source::scan::schedule::ScanSchedule;
use crate::store::contract::{Store, StoreError};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::watch;

/// A folder that was there is not asked again for so long.
const FRESH: Duration = Duration::from_secs(1);

/// The same for a bucket: each question is a request, and may cost.
const BUCKET_FRESH: Duration = Duration::from_secs(10);

/// A folder that does not answer for so long is away: a dead server hangs for ever.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// How often whoever works in the folder asks whether it is still there.
const WHILE_WORKING: Duration = Duration::from_secs(10);

/// How often who works in a folder gives a sign of life there, at the least …
const SIGN_OF_LIFE: Duration = Duration::from_secs(15 * 60);

/// … and at the most: a disk that is scanned once a day should sleep in between.
const SIGN_OF_LIFE_AT_REST: Duration = Duration::from_secs(6 * 3600);

/// A source's folder is away, or somebody else's; what is done in it waits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} {} {why}; {}", folder.display(), self.then())]
pub struct Away {
    what: &'static str,
    folder: PathBuf,
    why: String,
    refused: Option<Box<OwnershipRefusal>>,
}

impl Away {
    /// What happens next, where the folder is there and not ours to work in.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_ref().map(|refused| refused.then.as_str())
    }

    /// Whether it ends by itself, whatever the other installation does.
    pub fn is_passing(&self) -> bool {
        self.refused.as_ref().is_some_and(|refused| refused.waits.is_some())
    }

    fn then(&self) -> &str {
        self.refused().unwrap_or("scribed changes nothing until it is back")
    }
}

/// Who works in a source's folder.
struct Works {
    store: Arc<dyn Store>,
    claim: Arc<Claim>,
}

/// How a folder is looked at.
pub(crate) type FolderLook = Arc<dyn Fn(&Path, Option<&FolderIdentity>) -> Result<Disk, UnknownFolder> + Send + Sync>;

/// A source and whether its folder is there.
pub struct Mount {
    source: Arc<Source>,
    bucket: Option<Arc<Bucket>>,
    memory: FolderMemory,
    /// Of the folder that its outputs go to, where that is another.
    placed: Option<FolderMemory>,
    beside: ExistingSubtitles,
    bags: Bags,
    scans: ScanSchedule,
    clock: Arc<dyn Clock>,
    look: FolderLook,
    /// One look at a time; one that hangs is not followed by another.
    turn: tokio::sync::Mutex<()>,
    hangs: Arc<AtomicBool>,
    state: Mutex<State>,
    away: watch::Sender<Option<Away>>,
    /// For who only looks.
    observer: Arc<Claim>,
    works: OnceLock<Works>,
}

struct State {
    known: Option<FolderIdentity>,
    disks: Option<Arc<Disks>>,
    real: Option<PathBuf>,
    there_at: Option<Uptime>,
}

impl Mount {
    /// As the state directory remembers it. Nothing is looked at yet.
    pub fn new(source: Arc<Source>, state: &Path, clock: Arc<dyn Clock>) -> Self {
        Self::with_look(source, state, clock, Arc::new(look))
    }

    /// The same with a look of one's own.
    pub(crate) fn with_look(source: Arc<Source>, state: &Path, clock: Arc<dyn Clock>, look: FolderLook) -> Self {
        let memory = FolderMemory::new(state, &source.name, &source.folder);
        let known = memory.load().unwrap_or_else(|error| {
            let words = "cannot read the record of the folder's marker; scribed creates it again";
            tracing::warn!(source = %source.name, %error, "{words}");
            None
        });
        let placed = source.place.as_ref().map(|place| {
            // No source has a line break in its name.
            let name = SourceName::new(format!("{}\nplace", source.name));
            FolderMemory::new(state, &name, place)
        });
        let scans = ScanSchedule::new(Arc::clone(&source), memory.scanned());
        let installation = Arc::new(Installation::observing(state));
        let observer = Arc::new(Claim::new(&source.name, &source.folder, memory.claim(), installation, None));
        Self {
            observer,
            works: OnceLock::new(),
            bucket: source.bucket.as_ref().map(|bucket| Arc::new(Bucket::new(bucket))),
            source,
            memory,
            placed,
            beside: ExistingSubtitles::new(Arc::clone(&clock)),
            bags: Bags::default(),
            scans,
            clock,
            look,
            turn: tokio::sync::Mutex::default(),
            hangs: Arc::default(),
            state: Mutex::new(State { known, disks: None, real: None, there_at: None }),
            away: watch::Sender::new(None),
        }
    }

    /// The source.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// From now on this is the one who works in the folder: it is claimed at the next look. A bucket is nobody's.
    pub fn work(&self, installation: &Arc<Installation>, store: &Arc<dyn Store>, lag: Duration) {
        let (source, store) = (&self.source, Arc::clone(store));
        let terms = Some(ClaimTerms { lag, every: self.sign_of_life() });
        let claim = Claim::new(&source.name, &source.folder, self.memory.claim(), Arc::clone(installation), terms);
        // A second time changes nothing.
        let _ = self.works.set(Works { store, claim: Arc::new(claim) });
        self.state().there_at = None;
    }

    /// As often as its scan touches the folder anyway. In a debug build the environment variable `SCRIBED_TEST_LEASE`
    /// (as `300ms`) says another time.
    fn sign_of_life(&self) -> Duration {
        let told = if cfg!(debug_assertions) { std::env::var("SCRIBED_TEST_LEASE").ok() } else { None };
        if let Some(told) = told.and_then(|text| humantime::parse_duration(&text).ok()) {
            return told;
        }
        match self.source.scan {
            Schedule::Every(every) => every.clamp(SIGN_OF_LIFE, SIGN_OF_LIFE_AT_REST),
            Schedule::At(_) => SIGN_OF_LIFE_AT_REST,
        }
    }

    fn claim(&self) -> &Arc<Claim> {
        self.works.get().map_or(&self.observer, |works| &works.claim)
    }

    /// Gives a sign of life in its folder, if this run works there and it is time.
    pub async fn keep_claim(&self) {
        if self.bucket.is_none() && self.claim().is_due(self.clock.uptime()) {
            // What is wrong is told by who looks.
            self.there_now().await.ok();
        }
    }

    /// Says in the folder that this run has ended there.
    pub async fn release(&self) {
        let (claim, wall) = (Arc::clone(self.claim()), self.clock.wall());
        if self.bucket.is_none() && self.works.get().is_some() {
            self.asked(move || claim.release(wall)).await.ok();
        }
    }

    /// Returns when it can be worked in the folder, or when time alone will not bring that.
    pub async fn claimed(&self) {
        while self.bucket.is_none() && self.there_now().await.is_err() {
            let Some(left) = self.claim().left(self.clock.uptime()) else { return };
            self.clock.sleep(left.max(Duration::from_millis(10))).await;
        }
    }

    /// The bucket that stands for its folder, where it has one.
    pub fn bucket(&self) -> Option<&Arc<Bucket>> {
        self.bucket.as_ref()
    }

    /// Whether outputs may go where `place` says: it is made when it is first needed, and known again by its
    /// marker. Blocks.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn place_ready(&self) -> Result<(), String> {
        let (Some(memory), Some(place)) = (&self.placed, &self.source.place) else { return Ok(()) };
        let shown = place.display();
        let failed =
            |error: io::Error| format!("cannot write outputs to {shown}: {}", crate::permission::said(&error, place));
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
        memory.keep(&marker::learn(place, None).map_err(failed)?).map_err(failed)
    }

    /// What the folder is known by may have been written down since: that counts.
    pub fn remember(&self) {
        if let Ok(Some(known)) = self.memory.load() {
            self.state().known.get_or_insert(known);
        }
    }

    /// The subtitles in its folder.
    pub fn beside(&self) -> &ExistingSubtitles {
        &self.beside
    }

    /// Whether anything of the user's was ever seen in its folder.
    pub fn is_known(&self) -> bool {
        self.bucket.is_some() || self.state().known.is_some()
    }

    /// When it was scanned last, and is next.
    pub fn scans(&self) -> &ScanSchedule {
        &self.scans
    }

    /// How far its scan has come that begins now.
    pub fn bookmark(&self, clock: &dyn Clock) -> ScanCheckpoint {
        ScanCheckpoint::new(self.memory.bookmark(), &self.source.folder, clock)
    }

    /// What its folder lies on, and what is mounted below it, as it was last seen. Until then the one that can
    /// be relied on least.
    pub fn disks(&self) -> Arc<Disks> {
        self.state().disks.clone().unwrap_or_else(|| Arc::new(Disk::Remote.into()))
    }

    /// What a job's recording lies on, as [`Mount::disks`].
    pub fn disk_of(&self, job: &Job) -> Disk {
        match recording(&self.source, job) {
            Recording::File(path) => self.disk_of_path(&path),
            Recording::Remote(_) => Disk::Remote,
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
        self.state().disks.as_ref().map_or(Disk::Remote, |disks| disks.of(path))
    }

    /// How long a job's recording must be quiet: as set, or as the disk that it lies on needs it.
    pub fn settle_of(&self, job: &Job) -> Duration {
        self.source.settle.unwrap_or_else(|| self.settle_on(self.disk_of(job)))
    }

    /// The same for a path below its folder.
    pub fn settle_at(&self, path: &RelPath) -> Duration {
        self.source.settle.unwrap_or_else(|| self.settle_on(self.disk_at(path)))
    }

    /// An object appears whole.
    fn settle_on(&self, disk: Disk) -> Duration {
        if self.bucket.is_some() { Duration::ZERO } else { disk.settle() }
    }

    /// The bags in its folder.
    pub fn bags(&self) -> &Bags {
        &self.bags
    }

    /// Where its folder really lies, links resolved, as it was last found; `None` until then. Asks nobody.
    pub fn real(&self) -> Option<PathBuf> {
        self.state().real.clone()
    }

    /// Why it is away, if it was when it was last looked at.
    pub fn away(&self) -> Option<Away> {
        self.away.borrow().clone()
    }

    /// Whether the folder is there. A good answer holds for a second (a bucket's for ten), a bad one is asked again.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn there(&self) -> Result<(), Away> {
        if self.is_fresh() {
            return Ok(());
        }
        let turn = self.turn.lock().await;
        // Whoever had the turn before may have looked for all who waited for it.
        if self.is_fresh() { Ok(()) } else { self.look_in_turn(&turn).await }
    }

    fn is_fresh(&self) -> bool {
        let (now, fresh) = (self.clock.uptime(), if self.bucket.is_some() { BUCKET_FRESH } else { FRESH });
        self.state().there_at.is_some_and(|at| now.since(at) < fresh)
    }

    /// Whether the folder is there now: for whoever is about to conclude something from what is not in it.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn there_now(&self) -> Result<(), Away> {
        let turn = self.turn.lock().await;
        self.look_in_turn(&turn).await
    }

    async fn look_in_turn(&self, _turn: &tokio::sync::MutexGuard<'_, ()>) -> Result<(), Away> {
        let looked = self.looked().await;
        self.note(looked)
    }

    /// Whether something may be put into the folder now: it is there, and no bare mount point as far as can
    /// be told. In place, for whoever blocks already. A bucket is as it was last seen.
    ///
    /// # Errors
    /// [`Away`].
    pub fn there_blocking(&self) -> Result<(), Away> {
        if self.bucket.is_some() {
            return self.away().map_or(Ok(()), Err);
        }
        let known = self.state().known.clone();
        if let Some(away) = self.away().filter(|away| away.refused.is_some()) {
            return Err(away); // whoever asks in turn learns when that is over
        }
        // What it lies on does not change by the second: whoever asks in turn learns that.
        let looked = (self.look)(&self.source.folder, known.as_ref());
        self.tell(looked.map(drop))?;
        if known.is_none() && is_bare(&self.source.folder) { Err(self.bare()) } else { Ok(()) }
    }

    /// Whether what is missing in the folder is really gone: the folder is there, and it is either known
    /// or not bare. A folder that was never known and has nothing in it may be a bare mount point.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn is_gone_from(&self) -> Result<(), Away> {
        self.there_now().await?;
        if self.bucket.is_some() || self.state().known.is_some() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        let folder = self.source.folder.clone();
        match self.asked(move || is_bare(&folder)).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(self.bare()),
            Err(stranger) => self.note(Err(stranger)),
        }
    }

    fn bare(&self) -> Away {
        let why = "is empty, and scribed never saw a file in it: it may be the mount point of a share that is not \
                   mounted";
        self.away_because(why.to_owned(), None)
    }

    fn away_because(&self, why: String, refused: Option<OwnershipRefusal>) -> Away {
        let what = if self.bucket.is_some() { "bucket" } else { "folder" };
        Away { what, folder: self.source.folder.clone(), why, refused: refused.map(Box::new) }
    }

    /// Learns what the folder is known by, unless that is known. To be called when something of the
    /// user's was seen in it: the bare mount point of a share that is away has nothing in it. Blocks.
    pub fn mark(&self) {
        let folder = &self.source.folder;
        let was = self.state().known.clone();
        if self.bucket.is_some() || was.is_some() && !marker::is_blank(folder) {
            return; // a bucket is known by its name
        }
        let was = was.or_else(|| self.claim().seen());
        self.claim().marking();
        let learnt = marker::learn(folder, was.as_ref()).and_then(|known| self.memory.keep(&known).map(|()| known));
        match learnt {
            Ok(known) => {
                let mut state = self.state();
                // It is claimed before anything else is done there.
                (state.known, state.there_at) = (Some(known), None);
            }
            Err(error) => {
                let words = "cannot write a marker into the folder; until there is one, an unmounted share would \
                             look like deleted files";
                let error = explained(error, &folder.join(MARKER));
                tracing::warn!(source = %self.source.name, %error, "{words}");
            }
        }
    }

    /// Returns when the folder is found to be away: what is done in it would hang, or come to nothing.
    pub async fn lost(&self) -> Away {
        let mut away = self.follow();
        loop {
            // Whoever finds it first tells all.
            tokio::select! {
                () = self.clock.sleep(WHILE_WORKING) => {}
                _ = away.wait_for(Option::is_some) => {}
            }
            if let Err(away) = self.there().await {
                return away;
            }
        }
    }

    /// Follows whether it is away.
    pub fn follow(&self) -> watch::Receiver<Option<Away>> {
        self.away.subscribe()
    }

    async fn looked(&self) -> Result<Disk, UnknownFolder> {
        if let Some(bucket) = &self.bucket {
            return tokio::select! {
                biased;
                said = bucket.there() => said.map(|()| Disk::Remote).map_err(UnknownFolder::Away),
                () = self.clock.sleep(ANSWERS_WITHIN) => Err(hangs()),
            };
        }
        let (look, folder, known) = (Arc::clone(&self.look), self.source.folder.clone(), self.state().known.clone());
        let (claim, at) =
            (Arc::clone(self.claim()), ClaimMoment { uptime: self.clock.uptime(), wall: self.clock.wall() });
        let asked = self.asked(move || {
            let looked = look(&folder, known.as_ref());
            let looked = match looked {
                Ok(disk) => claim.look(known.as_ref(), at).map(|answer| (disk, answer)),
                // Emptying the marker would take it away from whoever works there.
                Err(UnknownFolder::OtherMarker) => Err(claim.peek(at).err().unwrap_or(UnknownFolder::OtherMarker)),
                Err(stranger) => Err(stranger),
            };
            (looked, folder.canonicalize().ok())
        });
        let (looked, real) = asked.await?;
        if real.is_some() {
            self.state().real = real;
        }
        let (disk, answer) = looked?;
        if answer == ClaimResult::Distrust {
            self.distrust().await?;
        }
        Ok(disk)
    }

    /// What was bought for this folder by another installation stands in the service's list only.
    async fn distrust(&self) -> Result<(), UnknownFolder> {
        let Some(Works { store, claim }) = self.works.get() else { return Ok(()) };
        let distrusted: Result<(), StoreError> = store.distrust(&self.source.service).await;
        let done = match distrusted {
            Ok(()) => claim.distrusted().map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        done.map_err(|error| UnknownFolder::Away(format!("cannot be taken over: {error}")))
    }

    /// What the file system says, where it may hang. For one at a time: for whoever has the turn.
    async fn asked<T: Send + 'static>(&self, ask: impl FnOnce() -> T + Send + 'static) -> Result<T, UnknownFolder> {
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return Ok(ask()); // so that a simulation is the same every time
        }
        if self.hangs.swap(true, Ordering::AcqRel) {
            return Err(hangs());
        }
        let hangs_flag = Arc::clone(&self.hangs);
        let asking = tokio::task::spawn_blocking(move || {
            let said = ask();
            hangs_flag.store(false, Ordering::Release);
            said
        });
        tokio::select! {
            biased;
            said = asking => said.map_err(|_| hangs()),
            () = self.clock.sleep(ANSWERS_WITHIN) => Err(hangs()),
        }
    }

    fn note(&self, looked: Result<Disk, UnknownFolder>) -> Result<(), Away> {
        if let Ok(disk) = looked {
            let mut state = self.state();
            let below = state.real.as_deref().map(table::below).unwrap_or_default();
            state.disks = Some(Arc::new(Disks::new(disk, &below)));
            state.there_at = Some(self.clock.uptime());
        }
        self.tell(looked.map(drop))
    }

    /// One alarm when it goes, one word when it is back.
    fn tell(&self, looked: Result<(), UnknownFolder>) -> Result<(), Away> {
        let (name, folder) = (&self.source.name, &self.source.folder);
        match looked {
            Ok(()) => {
                let mut before = None;
                self.away.send_if_modified(|away| {
                    before = away.take();
                    before.is_some()
                });
                // At the level at which it was told to be away.
                let words = "the folder of the source is back; its jobs continue";
                match before {
                    Some(away) if away.is_passing() => {
                        tracing::info!(source = %name, folder = %folder.display(), "{words}");
                    }
                    Some(_) => tracing::error!(source = %name, folder = %folder.display(), "{words}"),
                    None => {}
                }
                Ok(())
            }
            Err(stranger) => {
                let why = stranger.to_string();
                let refused = if let UnknownFolder::Refused(refused) = stranger { Some(refused) } else { None };
                let waits = refused.as_ref().is_some_and(|refused| refused.waits.is_some());
                let away = self.away_because(why, refused);
                self.state().there_at = None;
                let is_news = self.away.send_if_modified(|known| known.replace(away.clone()).is_none());
                if is_news && waits {
                    tracing::info!(source = %name, reason = %away, "the folder of the source is not available for a moment; its jobs wait");
                } else if is_news {
                    tracing::error!(source = %name, reason = %away, "the folder of the source is not available; its jobs wait until it is back");
                }
                Err(away)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hangs() -> UnknownFolder {
    UnknownFolder::Away(format!("did not answer within {} s", ANSWERS_WITHIN.as_secs()))
}

fn look(folder: &Path, known: Option<&FolderIdentity>) -> Result<Disk, UnknownFolder> {
    marker::recognise(folder, known)?;
    Disk::of(folder)
        .map_err(|error| UnknownFolder::Away(format!("cannot be read: {}", crate::permission::said(&error, folder))))
}

fn is_bare(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::config::load::read;
    use tempfile::TempDir;

    fn mount(folder: &Path, state: &Path, look: FolderLook) -> Mount {
        let text = format!("[[source]]\nname = \"s\"\nfolder = {folder:?}\n");
        let source = read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0);
        Mount::with_look(Arc::new(source), state, Arc::new(SystemClock), look)
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
        while mount.there_now().await.is_err() {
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
        let mount = mount(folder.path(), state.path(), Arc::new(look));
        assert_eq!(mount.there_now().await, Ok(()), "an empty new folder is no alarm");
        assert!(mount.is_gone_from().await.is_err(), "but nothing is concluded from it");
        assert!(mount.there_blocking().is_err() && mount.away().is_none(), "and nothing is put into it");
        mount.mark();
        assert_eq!(mount.is_gone_from().await, Ok(()), "with its marker it is just empty");
        assert_eq!(mount.there_blocking(), Ok(()));
        assert_eq!(mount.real(), Some(folder.path().canonicalize().unwrap()));
        std::fs::remove_file(folder.path().join(".scribed")).unwrap();
        assert!(mount.there_now().await.unwrap_err().to_string().contains("make an empty file .scribed"));
        assert!(mount.away().is_some());
        std::fs::write(folder.path().join(".scribed"), "").unwrap();
        assert_eq!((mount.there_now().await, mount.away()), (Ok(()), None));
        mount.mark();
        std::fs::write(folder.path().join(".scribed"), "other\n").unwrap();
        assert!(mount.there_now().await.is_err(), "the empty marker got an id");
    }
}
