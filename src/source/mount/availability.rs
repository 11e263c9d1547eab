//! Whether what a source lies in is there: a mount that is away is not a deletion (design, promise 6).

use super::marker::UnknownFolder;
use super::source_mount::Mount;
use super::storage::Storage;
use super::table;
use crate::clock::Uptime;
use crate::source::mount::disk::{Disk, Disks};
use crate::source::ownership::owner::OwnershipRefusal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How often whoever works in the folder asks whether it is still there.
const WHILE_WORKING: Duration = Duration::from_secs(10);

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
    pub fn is_temporary(&self) -> bool {
        self.refused.as_ref().is_some_and(|refused| refused.waits.is_some())
    }

    fn then(&self) -> &str {
        self.refused().unwrap_or("scribed changes nothing until it is back")
    }
}

/// What the last look said.
#[derive(Default)]
pub(super) struct Availability {
    /// One look at a time.
    turn: tokio::sync::Mutex<()>,
    found: Mutex<Found>,
    away: watch::Sender<Option<Away>>,
}

#[derive(Default)]
struct Found {
    disks: Option<Arc<Disks>>,
    at: Option<Uptime>,
}

impl Availability {
    /// What it lies on; `None` before the first look.
    pub(super) fn disks(&self) -> Option<Arc<Disks>> {
        self.found().disks.clone()
    }

    /// The last answer does not hold any more.
    pub(super) fn expire(&self) {
        self.found().at = None;
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mount {
    /// Why it is away, if it was when it was last looked at.
    pub fn away(&self) -> Option<Away> {
        self.availability.away.borrow().clone()
    }

    /// Follows whether it is away.
    pub fn follow(&self) -> watch::Receiver<Option<Away>> {
        self.availability.away.subscribe()
    }

    /// Whether the folder is there. A good answer holds for a second (a bucket's for ten), a bad one is asked again.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn there(&self) -> Result<(), Away> {
        if self.is_fresh() {
            return Ok(());
        }
        let turn = self.availability.turn.lock().await;
        // Whoever had the turn before may have looked for all who waited for it.
        if self.is_fresh() { Ok(()) } else { self.look_in_turn(&turn).await }
    }

    fn is_fresh(&self) -> bool {
        let at = self.availability.found().at;
        at.is_some_and(|at| self.clock.uptime().since(at) < self.storage.fresh_for())
    }

    /// Whether the folder is there now: for whoever is about to conclude something from what is not in it.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn check_now(&self) -> Result<(), Away> {
        let turn = self.availability.turn.lock().await;
        self.look_in_turn(&turn).await
    }

    /// Whether what was just seen may be concluded from. A folder is looked at again: its mount may have gone meanwhile,
    /// and the bare mount point been seen. A bucket has none.
    ///
    /// # Errors
    /// [`Away`].
    pub(crate) async fn may_conclude(&self) -> Result<(), Away> {
        match self.storage {
            Storage::Folder(_) => self.check_now().await,
            Storage::Bucket(_) => self.there().await,
        }
    }

    async fn look_in_turn(&self, _turn: &tokio::sync::MutexGuard<'_, ()>) -> Result<(), Away> {
        let looked = self.storage.look(&*self.clock).await;
        self.note(looked)
    }

    /// Whether something may be put into the folder now: it is there, and no bare mount point as far as can
    /// be told. In place, for whoever blocks already. A bucket is as it was last seen.
    ///
    /// # Errors
    /// [`Away`].
    pub fn check_writable_blocking(&self) -> Result<(), Away> {
        let Storage::Folder(folder) = &self.storage else { return self.away().map_or(Ok(()), Err) };
        if let Some(away) = self.away().filter(|away| away.refused.is_some()) {
            return Err(away); // whoever asks in turn learns when that is over
        }
        // What it lies on does not change by the second: whoever asks in turn learns that.
        self.tell(folder.look_here().map(drop))?;
        if folder.is_bare_here() { Err(self.bare()) } else { Ok(()) }
    }

    /// Whether what is missing in the folder is really gone: the folder is there, and it is either known
    /// or not bare. A folder that was never known and has nothing in it may be a bare mount point.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn check_not_bare(&self) -> Result<(), Away> {
        self.check_now().await?;
        let Storage::Folder(folder) = &self.storage else { return Ok(()) };
        if folder.known().is_some() {
            return Ok(());
        }
        let _turn = self.availability.turn.lock().await;
        match folder.is_bare(&*self.clock).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(self.bare()),
            Err(stranger) => self.note(Err(stranger)),
        }
    }

    fn bare(&self) -> Away {
        let why =
            "is empty, and scribed never saw a file in it: it may be the mount point of a share that is not mounted";
        self.away_because(why.to_owned(), None)
    }

    fn away_because(&self, why: String, refused: Option<OwnershipRefusal>) -> Away {
        let folder = self.source().folder.clone();
        Away { what: self.storage.noun(), folder, why, refused: refused.map(Box::new) }
    }

    /// Returns when the folder is found to be away: what is done in it would hang, or come to nothing.
    pub async fn wait_until_away(&self) -> Away {
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

    fn note(&self, looked: Result<Disk, UnknownFolder>) -> Result<(), Away> {
        if let Ok(disk) = looked {
            let below = self.real().as_deref().map(table::below).unwrap_or_default();
            let mut found = self.availability.found();
            found.disks = Some(Arc::new(Disks::new(disk, &below)));
            found.at = Some(self.clock.uptime());
        }
        self.tell(looked.map(drop))
    }

    /// One alarm when it goes, one word when it is back.
    fn tell(&self, looked: Result<(), UnknownFolder>) -> Result<(), Away> {
        let (name, folder) = (&self.source().name, &self.source().folder);
        match looked {
            Ok(()) => {
                let mut before = None;
                self.availability.away.send_if_modified(|away| {
                    before = away.take();
                    before.is_some()
                });
                // At the level at which it was told to be away.
                let words = "the folder of the source is back; its jobs continue";
                match before {
                    Some(away) if away.is_temporary() => {
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
                self.availability.expire();
                let is_news = self.availability.away.send_if_modified(|known| known.replace(away.clone()).is_none());
                if is_news && waits {
                    tracing::info!(source = %name, reason = %away, "the folder of the source is not available for a moment; its jobs wait");
                } else if is_news {
                    tracing::error!(source = %name, reason = %away, "the folder of the source is not available; its jobs wait until it is back");
                }
                Err(away)
            }
        }
    }
}
