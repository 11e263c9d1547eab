//! A source while the daemon runs: one full scan, then what changes, and a full scan now and again.
//! What the system tells of changes is a hint; the scan is the truth.

use crate::clock::Clock;
use crate::config::schedule::Schedule;
use crate::domain::names::Timestamp;
use crate::source::folder::{Scan, Scanned};
use crate::source::mount::Mount;
use crate::source::mount_table::{self, Changes};
use crate::source::reopen;
use crate::source::watch::{Changed, Watch};
use crate::store::contract::{Store, StoreError};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Changes that come within so long of each other are looked at together.
const GATHERED: Duration = Duration::from_millis(100);

/// Where no events come, the folder is looked through after so long, and not before it has rested four
/// times as long as that took.
const POLL: Duration = Duration::from_secs(30);

/// A folder that is away is looked for after so long, and whenever something is mounted.
const AWAY: Duration = Duration::from_secs(30);

/// A moment of the wall clock is not slept up to in one go: the clock may be set meanwhile.
const NAP: Duration = Duration::from_secs(60);

/// One source's intake.
pub struct Intake<'a> {
    /// The source.
    pub mount: Arc<Mount>,
    /// Where its files are admitted.
    pub store: &'a dyn Store,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Told of each file that is new.
    pub admitted: &'a (dyn Fn() + Sync),
    /// Told of the folders in which something of ours was left half-written.
    pub leftovers: &'a (dyn Fn(BTreeSet<PathBuf>) + Sync),
}

/// What happened to a folder that is followed.
enum Woken {
    Changed,
    Mounts,
    Away,
    Time,
}

/// How a folder is followed.
struct Followed {
    /// `None`: by looking through it.
    watch: Option<Arc<Watch>>,
    /// The mounts around it when it was begun.
    mounts: Vec<u8>,
    troubles: Vec<String>,
}

impl Intake<'_> {
    /// Takes in what there is and what comes, for ever.
    ///
    /// # Errors
    /// The store's.
    pub async fn run(&self) -> Result<(), StoreError> {
        let mounts = Changes::open().ok();
        let mut unwatched = None;
        loop {
            self.until_there(mounts.as_ref()).await;
            let mut followed = self.begin(&mut unwatched);
            let took = self.whole(&mut followed).await?;
            if self.mount.away().is_none() {
                reopen::returned(self.mount.source(), self.store, self.clock).await?;
                reopen::subtitled(&self.mount, self.store, self.clock).await?;
                (self.admitted)();
                self.follow(&mut followed, mounts.as_ref(), took, &mut unwatched).await?;
            }
        }
    }

    async fn until_there(&self, mounts: Option<&Changes>) {
        while self.mount.there_now().await.is_err() {
            let mut away = self.mount.follow();
            tokio::select! {
                () = self.clock.sleep(AWAY) => {}
                () = changes(mounts) => {}
                _ = away.wait_for(Option::is_none) => {}
            }
        }
    }

    /// Watches, unless that is of no use here. Why it is not is said once.
    fn begin(&self, unwatched: &mut Option<String>) -> Followed {
        let source = self.mount.source();
        let network = self.mount.disk().is_network();
        let watch = match unwatched {
            Some(_) => None,
            None if network => {
                self.polls("it lies on a network mount, which tells of no changes".to_owned(), unwatched);
                None
            }
            None => Watch::new(source).map_err(|words| self.polls(words, unwatched)).ok(),
        };
        Followed { watch: watch.map(Arc::new), mounts: mount_table::around(&source.folder), troubles: Vec::new() }
    }

    fn polls(&self, reason: String, unwatched: &mut Option<String>) {
        let every = humantime::format_duration(self.poll(Duration::ZERO));
        tracing::info!(source = %self.mount.source().name, %reason, "the folder is looked through every {every}");
        *unwatched = Some(reason);
    }

    fn poll(&self, took: Duration) -> Duration {
        let rest = POLL.max(took * 4);
        match self.mount.source().scan {
            Schedule::Every(every) => rest.min(every),
            Schedule::At(_) => rest,
        }
    }

    /// Returns when it has to be begun anew: the folder went away, or another is mounted there.
    async fn follow(
        &self,
        followed: &mut Followed,
        mounts: Option<&Changes>,
        mut took: Duration,
        unwatched: &mut Option<String>,
    ) -> Result<(), StoreError> {
        loop {
            let next = self.next(followed, took);
            match self.woken(followed, mounts, next).await {
                Woken::Away => return Ok(()),
                Woken::Mounts if mount_table::around(&self.mount.source().folder) != followed.mounts => return Ok(()),
                Woken::Mounts => continue,
                Woken::Time => took = self.whole(followed).await?,
                Woken::Changed => {
                    self.clock.sleep(GATHERED).await;
                    let Some(changed) = followed.watch.as_ref().map(|watch| watch.hints().take()) else { continue };
                    if let Some(words) = changed.broken {
                        self.polls(words, unwatched);
                        return Ok(());
                    }
                    if changed.replaced {
                        return Ok(());
                    }
                    self.changed(changed, followed).await?;
                }
            }
            if self.mount.away().is_some() {
                return Ok(());
            }
        }
    }

    fn next(&self, followed: &Followed, took: Duration) -> Timestamp {
        let now = self.clock.now();
        let scan = self.mount.source().scan.next(now);
        if followed.watch.is_none() { scan.min(now.after(self.poll(took))) } else { scan }
    }

    async fn woken(&self, followed: &Followed, mounts: Option<&Changes>, next: Timestamp) -> Woken {
        let mut away = self.mount.follow();
        let hints = async {
            match &followed.watch {
                Some(watch) => watch.hints().some().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hints => Woken::Changed,
            () = changes(mounts) => Woken::Mounts,
            _ = away.wait_for(Option::is_some) => Woken::Away,
            () = self.until(next) => Woken::Time,
        }
    }

    /// A length of time is slept through; a moment of the wall clock is looked for.
    async fn until(&self, next: Timestamp) {
        loop {
            let left = next.since(self.clock.now());
            if left.is_zero() {
                return;
            }
            let is_wall = matches!(self.mount.source().scan, Schedule::At(_));
            self.clock.sleep(if is_wall { left.min(NAP) } else { left }).await;
        }
    }

    /// Returns how long it took.
    async fn whole(&self, followed: &mut Followed) -> Result<Duration, StoreError> {
        let begun = self.clock.uptime();
        let scanned = self.scan(followed).whole().await?;
        let took = self.clock.uptime().since(begun);
        if scanned.troubles != followed.troubles {
            self.tell(&scanned.troubles);
            followed.troubles.clone_from(&scanned.troubles);
        }
        self.leave(scanned);
        Ok(took)
    }

    async fn changed(&self, changed: Changed, followed: &mut Followed) -> Result<(), StoreError> {
        if changed.overflowed {
            let took = self.whole(followed).await?;
            // While a hundred thousand files come, not one scan right after the other.
            self.clock.sleep(took.min(POLL)).await;
            return Ok(());
        }
        let scanned = self.scan(followed).below(topmost(changed.paths)).await?;
        self.tell(&scanned.troubles);
        self.leave(scanned);
        Ok(())
    }

    fn scan(&self, followed: &Followed) -> Scan<'_> {
        let on_folder = followed.watch.clone().map(|watch| {
            let over: crate::source::tree::OnFolder = Arc::new(move |folder| watch.over(folder));
            over
        });
        Scan { mount: &self.mount, store: self.store, clock: self.clock, admitted: self.admitted, on_folder }
    }

    fn tell(&self, troubles: &[String]) {
        for trouble in troubles {
            tracing::warn!(source = %self.mount.source().name, %trouble, "not everything could be looked at");
        }
    }

    fn leave(&self, scanned: Scanned) {
        if !scanned.leftovers.is_empty() {
            (self.leftovers)(scanned.leftovers);
        }
    }
}

async fn changes(mounts: Option<&Changes>) {
    match mounts {
        Some(mounts) => mounts.next().await,
        None => std::future::pending().await,
    }
}

/// Without what lies below another one of them.
fn topmost(paths: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        if kept.last().is_none_or(|above| !path.starts_with(above)) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_is_looked_at_with_what_lies_above() {
        let paths = ["a", "a/b.wav", "a/c/d", "ab.wav", "e/f"].map(PathBuf::from);
        let top = topmost(paths.into_iter().collect());
        assert_eq!(top, ["a", "ab.wav", "e/f"].map(PathBuf::from));
    }
}
