//! Records on the disk which work is in progress: a small file for each transcription that is being recognised, or
//! whose audio is being fetched, and for each delivery. A file that still exists at the next start names work during
//! which the service was killed. After [`MOST`] such kills, between which it came no further, the work is not started
//! again (see `transcriptions.rs`).
//!
//! The files outlive a killed process. They are not synced, since a power failure says nothing about the work. For the
//! same reason a file from an earlier boot of the machine does not count.

use crate::clock::boot;
use crate::durable_file::{self, Durability};
use crate::permission_errors::explain_state_at;
use crate::server::storage::files;
use crate::server::storage::index::{DeliveryKind, Due};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// After this many kills of the service during the work on one transcription, it is set aside.
pub const MOST: u32 = 3;

/// The folder in the data directory.
const FOLDER: &str = "started";

/// The kind of work on a transcription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptionWork {
    /// Fetching its audio.
    Fetch,
    /// Recognising it and writing its result.
    Recognition,
    /// Delivering its creation or its end to an address.
    Delivery,
}

impl TranscriptionWork {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Fetch => "while it fetched the audio of this transcription",
            Self::Recognition => "while it transcribed this recording",
            Self::Delivery => "while it called the receiver of this transcription",
        }
    }
}

/// How often, and during which work, the service was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kills {
    /// At least 1.
    pub count: u32,
    /// The work during the last kill.
    pub work: TranscriptionWork,
}

#[derive(Serialize, Deserialize)]
struct Marker {
    v: u32,
    #[serde(default)]
    kills: u32,
    work: TranscriptionWork,
    /// The boot of the machine in which the work is in progress; absent if it is not in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    running: Option<String>,
}

/// Returns the id under which the work on one delivery of a transcription is recorded.
pub fn delivery_id(due: Due) -> Uuid {
    let id = due.id.as_u128();
    Uuid::from_u128(match due.delivery {
        DeliveryKind::Creation => id.wrapping_sub(1),
        DeliveryKind::End(number) => id.wrapping_add(1).wrapping_add(number as u128),
    })
}

/// The files of one store.
pub struct Starts {
    folder: PathBuf,
    boot: String,
    counts: Mutex<HashMap<Uuid, Kills>>,
}

impl Starts {
    /// Reads and counts what an earlier process left. The counts are written to the disk before this returns.
    pub fn open(root: &Path) -> io::Result<Self> {
        let folder = root.join(FOLDER);
        files::make_folder(&folder)?;
        let starts = Self { folder, boot: boot(), counts: Mutex::default() };
        for id in files::record_ids(&starts.folder)? {
            match starts.update_marker(id)? {
                Some(kills) => drop(starts.counts().insert(id, kills)),
                None => files::remove(&starts.path(id))?,
            }
        }
        Ok(starts)
    }

    /// Updates a marker for this start; returns `None` if no kill counts against the work.
    fn update_marker(&self, id: Uuid) -> io::Result<Option<Kills>> {
        // An unreadable marker was being written when the power failed.
        let marker = fs::read(self.path(id)).ok().and_then(|bytes| serde_json::from_slice::<Marker>(&bytes).ok());
        let Some(marker) = marker else { return Ok(None) };
        let killed = marker.running.as_ref().is_some_and(|boot| *boot == self.boot);
        let kills = Kills { count: marker.kills.saturating_add(u32::from(killed)), work: marker.work };
        if marker.running.is_some() && kills.count > 0 {
            self.write(id, kills.count, kills.work, None)?;
        }
        Ok((kills.count > 0).then_some(kills))
    }

    /// Returns the work during which the service was killed, by id.
    pub fn kill_counts(&self) -> HashMap<Uuid, Kills> {
        self.counts().clone()
    }

    /// Records that work on a transcription begins. Blocks on the disk.
    ///
    /// # Errors
    /// Errors of the file system: the work must then not begin.
    pub fn start_work(self: &Arc<Self>, id: Uuid, work: TranscriptionWork) -> io::Result<Underway> {
        let count = self.counts().get(&id).map_or(0, |kills| kills.count);
        self.write(id, count, work, Some(self.boot.clone()))?;
        Ok(Underway { starts: Arc::clone(self), id, work, is_complete: false })
    }

    /// Forgets the kills so far, because the work that is in progress came further than before them. If that cannot be
    /// written, they count.
    pub fn forget_kills(&self, id: Uuid) {
        let Some(Kills { work, .. }) = self.counts().remove(&id) else { return };
        if let Err(error) = self.write(id, 0, work, Some(self.boot.clone())) {
            tracing::warn!(%id, %error, "cannot update the note that work is in progress; if the service is killed, the next start counts earlier kills too");
        }
    }

    /// Forgets the kills, because the work was completed or is not needed any more.
    pub fn clear(&self, id: Uuid) {
        self.counts().remove(&id);
        if let Err(error) = files::remove(&self.path(id)) {
            tracing::warn!(%id, %error, "cannot remove the note that work is in progress; if the service is killed, the next start counts it");
        }
    }

    fn write(&self, id: Uuid, kills: u32, work: TranscriptionWork, running: Option<String>) -> io::Result<()> {
        let marker = serde_json::to_vec(&Marker { v: 1, kills, work, running })?;
        durable_file::replace(&self.path(id), &marker, Durability::Unsynced).map_err(explain_state_at(&self.folder))
    }

    fn path(&self, id: Uuid) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Uuid, Kills>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work in progress. When dropped before its end, as at a shutdown, it leaves the count of kills unchanged.
pub struct Underway {
    starts: Arc<Starts>,
    id: Uuid,
    work: TranscriptionWork,
    is_complete: bool,
}

impl Underway {
    /// Records that the work was completed without a kill.
    pub fn complete(mut self) {
        self.is_complete = true;
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let count = self.starts.counts().get(&self.id).map_or(0, |kills| kills.count);
        if self.is_complete || count == 0 {
            return self.starts.clear(self.id);
        }
        if let Err(error) = self.starts.write(self.id, count, self.work, None) {
            tracing::warn!(id = %self.id, %error, "cannot update the note that work is in progress; if the service is killed, the next start counts it");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn open(root: &Path) -> Arc<Starts> {
        Arc::new(Starts::open(root).unwrap())
    }

    /// Starts work as if the process were killed during it.
    fn killed(starts: &Arc<Starts>, id: Uuid, work: TranscriptionWork) {
        std::mem::forget(starts.start_work(id, work).unwrap());
    }

    #[test]
    fn kills_do_not_add_up_while_the_work_comes_further_between_them() {
        let (root, id) = (tempfile::tempdir().unwrap(), Uuid::from_u128(7));
        for _ in 0..2 * MOST {
            let starts = open(root.path());
            killed(&starts, id, TranscriptionWork::Recognition);
            starts.forget_kills(id);
            assert_eq!(open(root.path()).kill_counts()[&id].count, 1);
        }
        let starts = open(root.path());
        let underway = starts.start_work(id, TranscriptionWork::Recognition).unwrap();
        starts.forget_kills(id);
        drop(underway);
        assert!(open(root.path()).kill_counts().is_empty(), "it was stopped, not killed");
    }

    #[test]
    fn a_kill_counts_and_a_clean_end_does_not() {
        let (root, id) = (tempfile::tempdir().unwrap(), Uuid::from_u128(7));
        for count in 1..4 {
            killed(&open(root.path()), id, TranscriptionWork::Recognition);
            let starts = open(root.path());
            assert_eq!(starts.kill_counts()[&id], Kills { count, work: TranscriptionWork::Recognition });
            drop(starts.start_work(id, TranscriptionWork::Recognition).unwrap());
        }
        // A start without any work does not count.
        assert_eq!(open(root.path()).kill_counts()[&id].count, 3);
        let starts = open(root.path());
        starts.start_work(id, TranscriptionWork::Recognition).unwrap().complete();
        assert!(starts.kill_counts().is_empty() && open(root.path()).kill_counts().is_empty());
        drop(open(root.path()).start_work(id, TranscriptionWork::Fetch).unwrap());
        assert!(open(root.path()).kill_counts().is_empty(), "a shutdown is no kill");
    }

    #[test]
    fn a_machine_that_lost_its_power_says_nothing_about_the_work() {
        let (root, id) = (tempfile::tempdir().unwrap(), Uuid::from_u128(7));
        let before = Starts { boot: "another boot".to_owned(), ..Starts::open(root.path()).unwrap() };
        killed(&Arc::new(before), id, TranscriptionWork::Fetch);
        assert!(open(root.path()).kill_counts().is_empty());
        fs::write(root.path().join(FOLDER).join(format!("{id}.json")), b"").unwrap();
        assert!(open(root.path()).kill_counts().is_empty(), "nor does a file that was never written out");
    }
}
