//! Tracks whether a source's folder or bucket is available: a mount that is away is not a deletion (see
//! `docs/explanation/guarantees.md`).

use super::folder::MountedFolder;
use super::marker::UnknownFolder;
use super::source_mount::Mount;
use super::storage::Storage;
use super::table;
use crate::clock::Uptime;
use crate::shortage::{self, SHORTAGE_PATIENCE, SHORTAGE_WAIT, Shortage};
use crate::source::mount::disk::{Disk, Disks};
use crate::source::ownership::owner::OwnershipRefusal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How often [`Mount::wait_until_away`] checks the folder.
const WHILE_WORKING: Duration = Duration::from_secs(10);

/// A source's folder or bucket is not available, or another installation works there. Work in it waits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} {} {why}; {}", folder.display(), self.then())]
pub struct Away {
    what: &'static str,
    folder: PathBuf,
    why: String,
    refused: Option<Box<OwnershipRefusal>>,
    /// Whether the folder could not be checked for want of something of this machine.
    is_shortage: bool,
}

impl Away {
    /// A folder below a source's folder in which a share or disk was mounted, and is not now.
    pub(super) fn of_missing_mount(folder: PathBuf) -> Self {
        let why = "is the mount point of a disk or share that was mounted there before and is not mounted now (if it \
                   will not be mounted again, end the jobs below it with `scribed cancel`)";
        Self { what: "folder", folder, why: why.to_owned(), refused: None, is_shortage: false }
    }

    /// Returns what happens next, if the folder is present and this installation may not work in it.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_ref().map(|refused| refused.then.as_str())
    }

    /// Whether the refusal ends after a known time, whatever the other installation does.
    pub fn is_temporary(&self) -> bool {
        self.refused.as_ref().is_some_and(|refused| refused.waits.is_some())
    }

    /// Whether the folder could not be checked for want of file descriptors, memory or processes. This says nothing
    /// about the folder.
    pub fn is_shortage(&self) -> bool {
        self.is_shortage
    }

    fn then(&self) -> &str {
        let otherwise =
            if self.is_shortage { "scribed tries again" } else { "scribed changes nothing until it is back" };
        self.refused().unwrap_or(otherwise)
    }
}

/// The result of the last check.
#[derive(Default)]
pub(super) struct Availability {
    /// Serialises the checks.
    turn: tokio::sync::Mutex<()>,
    last_check: Mutex<LastCheck>,
    away: watch::Sender<Option<Away>>,
}

#[derive(Default)]
struct LastCheck {
    disks: Option<Arc<Disks>>,
    at: Option<Uptime>,
}

impl Availability {
    /// The disks below the folder; `None` before the first check.
    pub(super) fn disks(&self) -> Option<Arc<Disks>> {
        self.last_check().disks.clone()
    }

    /// Discards the last result: the next caller checks again.
    pub(super) fn expire(&self) {
        self.last_check().at = None;
    }

    fn last_check(&self) -> MutexGuard<'_, LastCheck> {
        self.last_check.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mount {
    /// Returns why the folder is away, if the last check found that.
    pub fn away(&self) -> Option<Away> {
        self.availability.away.borrow().clone()
    }

    /// Subscribes to changes of availability.
    pub fn follow(&self) -> watch::Receiver<Option<Away>> {
        self.availability.away.subscribe()
    }

    /// Checks that the folder is available. A positive result is reused for a second (a bucket's for ten); a negative
    /// one is checked again.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn there(&self) -> Result<(), Away> {
        if self.is_fresh() {
            return Ok(());
        }
        let turn = self.availability.turn.lock().await;
        // The caller before may have checked for all that waited.
        if self.is_fresh() { Ok(()) } else { self.check_in_turn(&turn).await }
    }

    fn is_fresh(&self) -> bool {
        let at = self.availability.last_check().at;
        at.is_some_and(|at| self.clock.uptime().since(at) < self.storage.fresh_for())
    }

    /// Checks the folder now, without a cached result: for a caller that is about to draw a conclusion from what is
    /// missing in it.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn check_now(&self) -> Result<(), Away> {
        let turn = self.availability.turn.lock().await;
        self.check_in_turn(&turn).await
    }

    /// Checks whether conclusions may be drawn from what was just read. A folder is checked again: its share may have
    /// been unmounted meanwhile, so that the bare mount point was read. A bucket cannot be unmounted.
    ///
    /// # Errors
    /// [`Away`].
    pub(crate) async fn may_conclude(&self) -> Result<(), Away> {
        match self.storage {
            Storage::Folder(_) => self.check_now().await,
            Storage::Bucket(_) => self.there().await,
        }
    }

    /// While this machine lacks something that the check needs, the check is repeated, and nothing is concluded.
    async fn check_in_turn(&self, _turn: &tokio::sync::MutexGuard<'_, ()>) -> Result<(), Away> {
        let began = self.clock.uptime();
        loop {
            let result = self.storage.look(&*self.clock).await;
            let Some(shortage) = result.as_ref().err().and_then(UnknownFolder::shortage) else {
                return self.record_check(result);
            };
            if self.clock.uptime().since(began) >= SHORTAGE_PATIENCE {
                return Err(self.unchecked(&shortage));
            }
            shortage::report(&shortage.to_string(), SHORTAGE_WAIT);
            self.clock.sleep(SHORTAGE_WAIT).await;
        }
    }

    /// Returns why the folder could not be checked. What the last check found stays.
    fn unchecked(&self, shortage: &Shortage) -> Away {
        self.availability.expire();
        Away { is_shortage: true, ..self.away_because(format!("cannot be checked: {shortage}"), None) }
    }

    /// Checks whether a file may be written into the folder now: it is available and, as far as known, no bare mount
    /// point. Runs on the calling thread, for a caller that blocks anyway. For a bucket the last result is returned.
    ///
    /// # Errors
    /// [`Away`].
    pub fn check_writable_blocking(&self) -> Result<(), Away> {
        let Storage::Folder(folder) = &self.storage else { return self.away().map_or(Ok(()), Err) };
        if let Some(away) = self.away().filter(|away| away.refused.is_some()) {
            return Err(away); // whoever asks in turn learns when that is over
        }
        // The disks are not looked up again: they change rarely, and the next asynchronous check finds a change.
        let looked = folder.look_here().map(drop);
        if let Some(shortage) = looked.as_ref().err().and_then(UnknownFolder::shortage) {
            return Err(self.unchecked(&shortage));
        }
        self.log_change(looked)?;
        if folder.is_bare_here() { Err(self.bare_folder()) } else { Ok(()) }
    }

    /// Checks that a file missing in the folder is really gone: the folder is available, and it is either known or not
    /// empty. An empty folder that was never known may be a bare mount point.
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
            Ok(true) => Err(self.bare_folder()),
            Err(unknown) => self.record_check(Err(unknown)),
        }
    }

    fn bare_folder(&self) -> Away {
        let why =
            "is empty, and scribed never saw a file in it: it may be the mount point of a share that is not mounted";
        self.away_because(why.to_owned(), None)
    }

    fn away_because(&self, why: String, refused: Option<OwnershipRefusal>) -> Away {
        let folder = self.source().folder.clone();
        Away { what: self.storage.noun(), folder, why, refused: refused.map(Box::new), is_shortage: false }
    }

    /// Returns when the folder is found to be away: work in it would hang or be in vain.
    pub async fn wait_until_away(&self) -> Away {
        let mut away = self.follow();
        loop {
            // The first check that fails notifies all.
            tokio::select! {
                () = self.clock.sleep(WHILE_WORKING) => {}
                _ = away.wait_for(Option::is_some) => {}
            }
            match self.there().await {
                Err(away) if !away.is_shortage() => return away,
                _ => {}
            }
        }
    }

    fn record_check(&self, result: Result<Disk, UnknownFolder>) -> Result<(), Away> {
        if let Ok(disk) = result {
            let below = self.real().as_deref().map(table::below).unwrap_or_default();
            self.nested_mounts.note(&below, self.storage.folder().is_some_and(MountedFolder::is_working));
            let mut last_check = self.availability.last_check();
            last_check.disks = Some(Arc::new(Disks::new(disk, &below)));
            last_check.at = Some(self.clock.uptime());
        }
        self.log_change(result.map(drop))
    }

    /// Logs once when the folder goes away and once when it is back.
    fn log_change(&self, result: Result<(), UnknownFolder>) -> Result<(), Away> {
        let (name, folder) = (&self.source().name, &self.source().folder);
        match result {
            Ok(()) => {
                let mut before = None;
                self.availability.away.send_if_modified(|away| {
                    before = away.take();
                    before.is_some()
                });
                // At the level of the message that it was away.
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
            Err(unknown) => {
                let why = unknown.to_string();
                let refused = if let UnknownFolder::Refused(refused) = unknown { Some(refused) } else { None };
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
