//! Follows a source while the daemon runs: one full scan, then changes, and regular full scans. Events are hints; a
//! scan is authoritative. A source with a cron line is scanned at its slots only, also at the start.

use crate::clock::{Clock, Uptime};
use crate::config::sections::schedule::Schedule;
use crate::domain::names::Timestamp;
use crate::domain::scan_slots::{Cause, ScanTurn};
use crate::domain::time_span::time_span;
use crate::rooted_path::RootedPath;
use crate::source::mount::source_mount::Mount;
use crate::source::mount::table;
use crate::source::mount::table::Changes;
use crate::source::scan::folder_scan::{FolderScan, Scanned};
use crate::source::scan::wake_jobs;
use crate::source::scan::watch::Watch;
use crate::store::contract::{Store, StoreError};
use crate::wire::timestamps;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Changes within this time are handled together.
const GATHER_TIME: Duration = Duration::from_millis(100);

/// The interval of scans without events; at least four times as long as the last scan took.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The interval at which a folder that is away is checked; also checked after each mount.
const AWAY_CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Changes within this time before the end of a watch may not have been handled.
pub const EVENT_LAG: Duration = Duration::from_secs(2);

/// The longest sleep towards a moment of the wall clock, since the clock may be set meanwhile.
const MAX_SLEEP: Duration = Duration::from_secs(60);

pub struct WatchLoop<'a> {
    pub mount: Arc<Mount>,
    /// Where its files are admitted.
    pub store: &'a dyn Store,
    pub clock: &'a dyn Clock,
    /// Told of each file that is new.
    pub admitted: &'a (dyn Fn() + Sync),
    /// Called with the folders that contain temporary outputs.
    pub leftovers: &'a (dyn Fn(BTreeSet<RootedPath>) + Sync),
    /// Files that changed since this moment of the wall clock are admitted even if no scan is due.
    pub since: Timestamp,
}

/// Why the loop continues.
enum Wake {
    Changed,
    Shares,
    Mounts,
    Away,
    Time,
}

/// The state of following a folder.
struct Followed {
    /// `None`: the folder is scanned regularly instead.
    watch: Option<Arc<Watch>>,
    /// The mounts around the folder when following began.
    mounts: Vec<u8>,
    /// The network mounts below it, and when they are scanned next.
    shares: Shares,
    troubles: Vec<String>,
}

/// Network mounts inside a watched folder.
struct Shares {
    folders: Vec<PathBuf>,
    due: Uptime,
}

impl WatchLoop<'_> {
    /// Admits existing files and changes. Returns on an error only.
    pub async fn run(&self) -> Result<(), StoreError> {
        let mounts = Changes::open().ok();
        let (mut unwatched, mut since) = (None, self.since);
        loop {
            self.wait_until_available(mounts.as_ref()).await;
            let mut followed = self.start_following(&mut unwatched);
            let took = self.scan_at_start(&mut followed, since).await?;
            if self.mount.away().is_none() {
                self.while_handling_changes(&followed, self.resume_jobs()).await?;
                self.follow(&mut followed, mounts.as_ref(), took, &mut unwatched).await?;
            }
            since = self.clock.wall().saturating_sub(EVENT_LAG);
        }
    }

    /// Scans at the start, if no scan is known or a slot is still to be run; else reads the folders only. Returns how
    /// long the scan took.
    async fn scan_at_start(&self, followed: &mut Followed, since: Timestamp) -> Result<Duration, StoreError> {
        let scans = self.mount.scans();
        scans.adopt_cron_line(self.clock.wall()).await;
        if let (true, Some(ScanTurn::At { .. })) = (self.mount.is_known(), scans.next_scan(self.clock.wall())) {
            if followed.watch.is_some() {
                let scanned = self.while_handling_changes(followed, self.folder_scan(followed).folders(since)).await?;
                self.report_scan(scanned, followed);
            }
            self.resume_after_fix().await?;
            return Ok(Duration::ZERO);
        }
        self.scan_everything(followed).await
    }

    async fn resume_jobs(&self) -> Result<(), StoreError> {
        wake_jobs::resume_waiting_for_folder(self.mount.source(), self.store, self.clock).await?;
        wake_jobs::readmit_without_subtitle(&self.mount, self.store, self.clock).await?;
        (self.admitted)();
        Ok(())
    }

    async fn wait_until_available(&self, mounts: Option<&Changes>) {
        while self.mount.check_now().await.is_err() {
            let mut away = self.mount.follow();
            tokio::select! {
                () = self.clock.sleep(AWAY_CHECK_INTERVAL) => {}
                () = wait_for_mounts(mounts) => {}
                _ = away.wait_for(Option::is_none) => {}
            }
        }
    }

    /// Begins to follow the folder, with a watch if the disk supports one. Logs once why not.
    fn start_following(&self, unwatched: &mut Option<String>) -> Followed {
        let source = self.mount.source();
        let network = self.mount.disks().root().is_network();
        let watch = match unwatched {
            Some(_) => None,
            // A bucket reports no changes, and each listing may cost money: only `scan` says how often.
            None if !self.mount.can_be_watched() => None,
            None if network => {
                self.log_polling(
                    "the folder is on a network mount, which does not report changes".to_owned(),
                    unwatched,
                );
                None
            }
            None => Watch::new(source).map_err(|words| self.log_polling(words, unwatched)).ok(),
        };
        // With a cron line, network mounts are scanned with everything else.
        let polls = self.mount.source().scan.line().is_none();
        let folders = if polls { self.mount.disks().shares() } else { Vec::new() };
        let shares = Shares { folders, due: self.clock.uptime().after(POLL_INTERVAL) };
        if watch.is_some() {
            self.log_share_polling(&shares.folders);
        }
        Followed { watch: watch.map(Arc::new), mounts: self.mounts_around(), shares, troubles: Vec::new() }
    }

    fn log_share_polling(&self, shares: &[PathBuf]) {
        for share in shares {
            let (folder, every) = (share.display(), time_span(self.poll_interval(Duration::ZERO)));
            let words = "a network mount inside the source does not report changes; scribed scans it every";
            tracing::info!(source = %self.mount.source().name, %folder, "{words} {every}");
        }
    }

    /// Returns the mounts around the folder. The folder was just available, so its real path is known and it need not
    /// be accessed.
    fn mounts_around(&self) -> Vec<u8> {
        if !self.mount.source().is_local() {
            return Vec::new();
        }
        let real = self.mount.real();
        table::around(real.as_deref().unwrap_or(&self.mount.source().folder))
    }

    fn log_polling(&self, reason: String, unwatched: &mut Option<String>) {
        let name = &self.mount.source().name;
        if let Schedule::At(line) = &self.mount.source().scan {
            let words = "scribed does not watch the folder; it scans at the times of the cron line only";
            tracing::info!(source = %name, %reason, scan = %line, "{words}");
        } else {
            let every = time_span(self.poll_interval(Duration::ZERO));
            tracing::info!(source = %name, %reason, "scribed does not watch the folder; it scans every {every}");
        }
        *unwatched = Some(reason);
    }

    fn poll_interval(&self, took: Duration) -> Duration {
        let interval = POLL_INTERVAL.max(took * 4);
        match self.mount.source().scan {
            Schedule::Every(every) => interval.min(every),
            Schedule::At(_) => interval,
        }
    }

    /// Handles changes and regular scans. Returns when following must begin again: the folder went away, or another
    /// mount appeared.
    async fn follow(
        &self,
        followed: &mut Followed,
        mounts: Option<&Changes>,
        took: Duration,
        unwatched: &mut Option<String>,
    ) -> Result<(), StoreError> {
        // Only a full scan moves this moment: changes may never end.
        let mut due = self.next_full_scan(followed, took);
        loop {
            match self.wait_for_wake(followed, mounts, due).await {
                Wake::Away => return Ok(()),
                Wake::Mounts if self.mounts_around() != followed.mounts => return Ok(()),
                Wake::Mounts => continue,
                Wake::Time => due = self.scan_on_schedule(followed).await?,
                Wake::Shares => self.scan_shares(followed).await?,
                Wake::Changed => {
                    self.clock.sleep(GATHER_TIME).await;
                    let Some(changed) = followed.watch.as_ref().map(|watch| watch.hints().take()) else { continue };
                    if let Some(words) = changed.broken {
                        self.log_polling(words, unwatched);
                        return Ok(());
                    }
                    if changed.replaced {
                        return Ok(());
                    }
                    if changed.overflowed {
                        due = self.scan_after_overflow(followed).await?;
                    } else {
                        if changed.settings {
                            self.resume_after_fix().await?;
                        }
                        self.scan_changed_paths(changed.paths, followed).await?;
                    }
                }
            }
            if self.mount.away().is_some() {
                return Ok(());
            }
        }
    }

    async fn scan_shares(&self, followed: &mut Followed) -> Result<(), StoreError> {
        let begun = self.clock.uptime();
        let paths = followed.shares.folders.iter().cloned().collect();
        self.while_handling_changes(followed, self.scan_changed_paths(paths, followed)).await?;
        let now = self.clock.uptime();
        followed.shares.due = now.after(self.poll_interval(now.since(begun)));
        Ok(())
    }

    /// Returns when the next full scan is due, by the monotonic clock, whatever changes are reported. `None` with a
    /// cron line.
    fn next_full_scan(&self, followed: &Followed, took: Duration) -> Option<Uptime> {
        let polls = followed.watch.is_none() && self.mount.can_be_watched();
        let due = match self.mount.source().scan {
            Schedule::At(_) => None,
            Schedule::Every(_) if polls => Some(self.poll_interval(took)),
            Schedule::Every(every) => Some(every),
        };
        let due = due.map(|interval| self.clock.uptime().after(interval));
        self.mount.scans().set_due(due);
        due
    }

    /// Returns how long to wait for the next scan; zero if it is overdue.
    fn time_to_next_scan(&self, due: Option<Uptime>) -> Duration {
        let slot = match self.mount.scans().next_scan(self.clock.wall()) {
            Some(ScanTurn::Now(_)) => Some(Duration::ZERO),
            Some(ScanTurn::At { slot, .. }) => Some(slot.duration_since(self.clock.wall()).min(MAX_SLEEP)),
            None => None,
        };
        let due = due.map(|due| due.since(self.clock.uptime()));
        due.into_iter().chain(slot).min().unwrap_or(MAX_SLEEP)
    }

    async fn wait_for_wake(&self, followed: &Followed, mounts: Option<&Changes>, due: Option<Uptime>) -> Wake {
        let mut away = self.mount.follow();
        let hints = async {
            match &followed.watch {
                Some(watch) => watch.hints().wait_for_change().await,
                None => std::future::pending().await,
            }
        };
        let shares = async {
            match &followed.watch {
                Some(_) if !followed.shares.folders.is_empty() => {
                    self.wait(|| followed.shares.due.since(self.clock.uptime())).await;
                }
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = away.wait_for(Option::is_some) => Wake::Away,
            // Before the changes, since there may always be one.
            () = self.wait(|| self.time_to_next_scan(due)) => Wake::Time,
            () = shares => Wake::Shares,
            () = wait_for_mounts(mounts) => Wake::Mounts,
            () = hints => Wake::Changed,
        }
    }

    /// Sleeps until `left` returns zero, since clocks are set and machines sleep.
    async fn wait(&self, left: impl Fn() -> Duration) {
        loop {
            let left = left();
            if left.is_zero() {
                return;
            }
            self.clock.sleep(left).await;
        }
    }

    async fn scan_on_schedule(&self, followed: &mut Followed) -> Result<Option<Uptime>, StoreError> {
        let took = self.scan_everything(followed).await?;
        Ok(self.next_full_scan(followed, took))
    }

    /// Scans everything after changes were dropped.
    async fn scan_after_overflow(&self, followed: &mut Followed) -> Result<Option<Uptime>, StoreError> {
        let took = self.scan_everything(followed).await?;
        let due = self.next_full_scan(followed, took);
        // Waits between scans while very many files arrive.
        self.clock.sleep(took.min(POLL_INTERVAL)).await;
        Ok(due)
    }

    /// Scans everything. Returns how long it took.
    async fn scan_everything(&self, followed: &mut Followed) -> Result<Duration, StoreError> {
        let begun = self.clock.uptime();
        self.log_cause();
        let scanned = self.while_handling_changes(followed, self.folder_scan(followed).scan_all()).await?;
        let took = self.clock.uptime().since(begun);
        self.report_scan(scanned, followed);
        self.resume_after_fix().await?;
        Ok(took)
    }

    /// Reports the result of a full scan. Problems are logged when they change.
    fn report_scan(&self, scanned: Scanned, followed: &mut Followed) {
        self.note_missed_changes(&scanned, followed);
        if scanned.problems != followed.troubles {
            self.log_problems(&scanned.problems);
            followed.troubles.clone_from(&scanned.problems);
        }
        self.report_leftovers(scanned);
    }

    /// Logs why a scan runs outside its schedule.
    fn log_cause(&self) {
        let source = &self.mount.source().name;
        match self.mount.scans().next_scan(self.clock.wall()) {
            Some(ScanTurn::Now(Cause::Missed(slot))) => {
                tracing::info!(%source, slot = timestamps::format(slot), "scribed missed a scan while it did not run; it scans once now");
            }
            Some(ScanTurn::Now(Cause::CutOff)) => {
                tracing::info!(%source, "the last scan was interrupted; it continues now");
            }
            _ => {}
        }
    }

    /// Wakes jobs that wait for a corrected sidecar.
    async fn resume_after_fix(&self) -> Result<(), StoreError> {
        wake_jobs::resume_waiting_for_fix(self.mount.source(), self.store, self.clock).await?;
        (self.admitted)();
        Ok(())
    }

    /// Runs `work` and handles changes meanwhile: a scan of a million files on a slow disk must not delay a new file.
    async fn while_handling_changes<T>(
        &self,
        followed: &Followed,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let Some(watch) = &followed.watch else { return work.await };
        let done = CancellationToken::new();
        let run_work = async {
            let _ended = done.clone().drop_guard();
            work.await
        };
        let handle_changes = async {
            // Not cancelled halfway: paths taken from the hints are known nowhere else.
            while done.run_until_cancelled(watch.hints().wait_for_paths()).await.is_some() {
                self.clock.sleep(GATHER_TIME).await;
                self.scan_changed_paths(watch.hints().take_paths(), followed).await?;
            }
            Ok(())
        };
        let (result, handled) = tokio::join!(run_work, handle_changes);
        handled.and(result)
    }

    async fn scan_changed_paths(&self, paths: BTreeSet<PathBuf>, followed: &Followed) -> Result<(), StoreError> {
        let scanned = self.folder_scan(followed).scan_paths(topmost(paths)).await?;
        self.note_missed_changes(&scanned, followed);
        self.log_problems(&scanned.problems);
        self.report_leftovers(scanned);
        Ok(())
    }

    /// Notes missed changes if the folder was away: it may be back before another check notices.
    fn note_missed_changes(&self, scanned: &Scanned, followed: &Followed) {
        if let Some(watch) = followed.watch.as_ref().filter(|_| !scanned.is_folder_present) {
            watch.hints().set_missed();
        }
    }

    fn folder_scan(&self, followed: &Followed) -> FolderScan<'_> {
        let on_folder = followed.watch.clone().map(|watch| {
            let over: crate::source::scan::traverse::OnFolder = Arc::new(move |folder| watch.add_folder(folder));
            over
        });
        FolderScan {
            mount: &self.mount,
            store: self.store,
            clock: self.clock,
            admitted: self.admitted,
            on_folder,
            only: None,
        }
    }

    fn log_problems(&self, troubles: &[String]) {
        for trouble in troubles {
            tracing::warn!(source = %self.mount.source().name, %trouble, "the scan could not read everything");
        }
    }

    fn report_leftovers(&self, scanned: Scanned) {
        if !scanned.leftovers.is_empty() {
            (self.leftovers)(scanned.leftovers);
        }
    }
}

async fn wait_for_mounts(mounts: Option<&Changes>) {
    match mounts {
        Some(mounts) => mounts.next().await,
        None => std::future::pending().await,
    }
}

/// Removes paths that are below another one.
fn topmost(paths: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut topmost_paths: Vec<PathBuf> = Vec::new();
    for path in paths {
        if topmost_paths.last().is_none_or(|above| !path.starts_with(above)) {
            topmost_paths.push(path);
        }
    }
    topmost_paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::read;
    use crate::store::contract::Queries;
    use crate::store::memory;
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tempfile::TempDir;

    #[test]
    fn what_lies_below_is_looked_at_with_what_lies_above() {
        let paths = ["a", "a/b.wav", "a/c/d", "ab.wav", "e/f"].map(PathBuf::from);
        let top = topmost(paths.into_iter().collect());
        assert_eq!(top, ["a", "ab.wav", "e/f"].map(PathBuf::from));
    }

    /// Ten minutes go by with each change that is gathered; nothing else makes time pass.
    #[derive(Default)]
    struct Slow(Mutex<(i64, u64)>);

    impl Slow {
        fn pass(&self, wall: i64, up: u64) {
            let mut passed = self.0.lock().unwrap();
            *passed = (passed.0 + wall, passed.1 + up);
        }
    }

    #[async_trait::async_trait]
    impl Clock for Slow {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.lock().unwrap().0 * 1000)
        }

        fn uptime(&self) -> Uptime {
            Uptime(Duration::from_secs(self.0.lock().unwrap().1))
        }

        async fn sleep(&self, span: Duration) {
            let until = self.uptime().after(span);
            if span == GATHER_TIME {
                self.pass(600, 600);
            }
            while self.uptime() < until {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn changes_without_end_do_not_put_off_the_next_full_scan() {
        let (folder, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let text = format!("[[source]]\nname = \"s\"\nfolder = {:?}\nscan = \"15m\"\n", folder.path());
        let source = read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0);
        // Told of at each full scan, and at no other.
        let quiet = folder.path().join("quiet");
        std::fs::create_dir(&quiet).unwrap();
        std::fs::write(quiet.join(".0123456789abcdef0123456789abcdef.scribed-tmp"), "").unwrap();
        let mount = Arc::new(Mount::new(Arc::new(source), state.path(), Arc::new(crate::clock::SystemClock)));
        let (store, clock, scans) = (memory::empty(), Slow::default(), AtomicU32::new(0));
        let leftovers = |_: BTreeSet<RootedPath>| {
            scans.fetch_add(1, Ordering::Relaxed);
        };
        let intake = WatchLoop { leftovers: &leftovers, ..unheard(mount, &store, &clock) };
        let changes = async {
            while scans.load(Ordering::Relaxed) < 3 {
                std::fs::write(folder.path().join("busy.wav"), "").unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            ended = intake.run() => panic!("{ended:?}"),
            ended = tokio::time::timeout(Duration::from_secs(60), changes) => ended.expect("no full scan comes"),
        }
    }

    #[tokio::test]
    async fn a_slot_that_passed_is_due_and_a_wall_set_back_delays_no_length_of_time() {
        let (folder, state, clock) = (TempDir::new().unwrap(), TempDir::new().unwrap(), Slow::default());
        clock.pass(1_000_000_800, 0);
        let store = memory::empty();
        let mount = |lines: &str| {
            let source = Arc::new(source_in(folder.path(), lines));
            Arc::new(Mount::new(source, state.path(), Arc::new(crate::clock::SystemClock)))
        };
        let intake = |lines: &str| unheard(mount(lines), &store, &clock);
        let (every, hourly) = (intake("scan = \"15m\"\n"), intake("scan = \"0 * * * *\"\n"));
        hourly.mount.scans().record_start(clock.wall()).await;
        hourly.mount.scans().record_end(clock.wall()).await;
        let due = Some(clock.uptime().after(Duration::from_secs(900)));
        let left = || (every.time_to_next_scan(due).as_secs(), hourly.time_to_next_scan(None).as_secs());
        assert_eq!(left(), (900, 60));
        clock.pass(-7200, 890);
        assert_eq!(left(), (10, 0), "set back over two slots, the clock was wrong: those of the new one count");
        clock.pass(7200 + 3601, 0);
        assert_eq!(left(), (10, 0));
    }

    /// One that tells nobody.
    fn unheard<'i>(mount: Arc<Mount>, store: &'i dyn Store, clock: &'i dyn Clock) -> WatchLoop<'i> {
        WatchLoop { mount, store, clock, admitted: &|| {}, leftovers: &|_| {}, since: Timestamp(0) }
    }

    /// So many times as fast as the real one. Where all of a machine is in use, what is swift finds a folder away that
    /// answers a little late.
    #[derive(Clone, Copy)]
    struct Swift(u32);

    #[async_trait::async_trait]
    impl Clock for Swift {
        fn now(&self) -> Timestamp {
            crate::clock::SystemClock.now()
        }

        fn uptime(&self) -> Uptime {
            Uptime(crate::clock::SystemClock.uptime().0 * self.0)
        }

        async fn sleep(&self, span: Duration) {
            tokio::time::sleep(span / self.0).await;
        }
    }

    fn source_in(folder: &Path, lines: &str) -> crate::config::model::Source {
        let text = format!("[[source]]\nname = \"s\"\nfolder = {folder:?}\n{lines}");
        read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0)
    }

    /// Runs the intake until this comes true.
    async fn run_until(intake: &WatchLoop<'_>, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let waiting = async {
            while !holds().await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            ended = intake.run() => panic!("{ended:?}"),
            waited = tokio::time::timeout(Duration::from_secs(120), waiting) => waited.unwrap_or_else(|_| panic!("never: {what}")),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_clip_that_comes_during_a_scan_is_not_held_up_by_it() {
        use futures_util::FutureExt;
        let (folder, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        for name in ["archive", "a"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        for n in 0..3_000 {
            std::fs::write(folder.path().join(format!("archive/{n}.wav")), "").unwrap();
        }
        let source = Arc::new(source_in(folder.path(), "scan = \"12h\"\n"));
        let (mount, store) = (Arc::new(Mount::new(source, state.path(), Arc::new(Swift(5)))), memory::empty());
        let clip = crate::domain::job::JobKey {
            source: mount.source().name.clone(),
            path: crate::domain::path::RelPath::new("a/clip.wav"),
        };
        let (dropped, is_found) = (std::sync::Once::new(), std::sync::atomic::AtomicBool::new(false));
        let admitted = || {
            // The folder `a` is watched by now, and its files have been looked at.
            dropped.call_once(|| std::fs::write(folder.path().join("a/clip.wav"), "").unwrap());
            if !is_found.load(Ordering::Relaxed) {
                let found = store.find(&clip).now_or_never().expect("at once").unwrap();
                is_found.store(found.is_some(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5)); // a slow disk, for as long as it takes
            }
        };
        let intake = WatchLoop { admitted: &admitted, ..unheard(mount, &store, &Swift(5)) };
        run_until(&intake, "all are found", async || store.counts().await.unwrap().total() == 3_001).await;
        let job = store.find(&clip).await.unwrap().unwrap();
        assert!(job.id.0 < 3_001, "it came last: job {}", job.id);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_was_told_of_while_the_folder_was_away_for_one_look_is_not_forgotten() {
        use crate::source::mount::marker::UnknownFolder;
        let (folder, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        for n in 0..2_000 {
            std::fs::write(folder.path().join(format!("{n}.wav")), "").unwrap();
        }
        let source = Arc::new(source_in(folder.path(), "scan = \"12h\"\n"));
        let is_away = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let asked = Arc::clone(&is_away);
        let look: crate::source::mount::source_mount::FolderLook =
            Arc::new(move |_, _| match asked.swap(false, Ordering::Relaxed) {
                true => Err(UnknownFolder::Away("is not there".to_owned())),
                false => Ok(crate::source::mount::disk::Disk::Local),
            });
        let mount = Arc::new(Mount::with_folder_check(source, state.path(), Arc::new(crate::clock::SystemClock), look));
        let store = memory::empty();
        let count = std::sync::atomic::AtomicU64::new(0);
        let admitted = || {
            let n = count.fetch_add(1, Ordering::Relaxed);
            if n % 400 == 10 {
                std::fs::write(folder.path().join(format!("clip{n}.wav")), "").unwrap();
                is_away.store(true, Ordering::Relaxed);
            }
        };
        let intake = WatchLoop { admitted: &admitted, ..unheard(mount, &store, &Swift(100)) };
        let on_disk = || std::fs::read_dir(folder.path()).unwrap().count() as u64;
        run_until(&intake, "all are found", async || {
            let found = store.counts().await.unwrap().total();
            found > 2_000 && found + u64::from(folder.path().join(".scribed").exists()) == on_disk()
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_share_in_a_local_folder_is_looked_through_and_settles_as_a_share_does() {
        let (folder, state, server) = (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
        let share = folder.path().join("nas");
        std::fs::create_dir(&share).unwrap();
        let mounted = std::process::Command::new("bindfs").arg(server.path()).arg(&share).status();
        assert!(mounted.expect("the program `bindfs`").success(), "this test mounts a share, and needs root for it");
        let source = Arc::new(source_in(folder.path(), "scan = \"12h\"\n"));
        let (mount, store) = (Arc::new(Mount::new(source, state.path(), Arc::new(Swift(100)))), memory::empty());
        let key = |path: &str| crate::domain::job::JobKey {
            source: mount.source().name.clone(),
            path: crate::domain::path::RelPath::new(path),
        };
        std::fs::write(folder.path().join("first.wav"), "").unwrap();
        let intake = unheard(Arc::clone(&mount), &store, &Swift(100));
        let found = async |path: &str| store.find(&key(path)).await.unwrap().is_some();
        let mut step = 0;
        run_until(&intake, "both are found", async || {
            // Once what was there is taken in: at the server, of which no event tells.
            if step == 0 && found("first.wav").await {
                std::fs::write(server.path().join("far.wav"), "").unwrap();
                std::fs::write(folder.path().join("near.wav"), "").unwrap();
                step = 1;
            }
            found("nas/far.wav").await && found("near.wav").await
        })
        .await;
        std::process::Command::new("umount").arg("--lazy").arg(&share).status().unwrap();
        let seen = |job: crate::domain::job::Job| job.seen;
        let far = seen(store.find(&key("nas/far.wav")).await.unwrap().unwrap());
        let near = seen(store.find(&key("near.wav")).await.unwrap().unwrap());
        assert!(far.inode == 0 && far.ctime_ns == 0 && near.inode != 0, "{far:?} {near:?}");
        let settle = |path: &str| mount.settle_at(&crate::domain::path::RelPath::new(path)).as_secs();
        assert_eq!([settle("near.wav"), settle("nas/far.wav")], [10, 60]);
    }
}
