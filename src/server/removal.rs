//! What leaves a desk: by order, after its time, and to make room.

use crate::crash::{self, Point};
use crate::domain::names::{Hash, Timestamp};
use crate::server::desk::Desk;
use crate::server::files;
use crate::server::ledger::Line;
use std::io;
use std::time::Duration;
use uuid::Uuid;

/// What became of an order to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is gone, with all that was kept of it.
    Removed,
    /// The owner has no such transcription.
    Unknown,
    /// It has not ended.
    Open,
}

/// Results may be removed to make room when they are so old.
const MAY_GO: Duration = Duration::from_secs(24 * 3600);

impl Desk {
    /// Deletes an ended transcription of this owner with all that is kept of it; durable when it returns.
    ///
    /// # Errors
    /// Those of the file system; it may be repeated.
    pub fn delete(&self, id: Uuid, owner: &Hash) -> io::Result<Removal> {
        match self.index().of(id, owner).map(|entry| entry.ended) {
            None => return Ok(Removal::Unknown),
            Some(None) => return Ok(Removal::Open),
            Some(Some(_)) => {}
        }
        self.remove(id)?;
        Ok(Removal::Removed)
    }

    /// The head first: a result without one is removed at the next start. But before the head goes, the
    /// ledger says so, where the create would be found again.
    fn remove(&self, id: Uuid) -> io::Result<()> {
        let _settling = self.settling();
        if self.ledger.holds(id) {
            self.committer.write_and_wait(&Line::gone(id))?;
            crash::point(Point::Struck);
        }
        files::remove(&self.head_path(id))?;
        files::sync_folder(&self.root.join("transcriptions"))?;
        let gone = self.index().forget(id);
        self.shelf.subtract_records(gone.as_ref().map_or(0, |entry| entry.bytes));
        if let Some(entry) = gone.filter(|entry| entry.set_aside) {
            self.shelf.release(entry.upload);
        }
        files::remove(&self.result_path(id))
    }

    /// Removes what has been kept for as long as it may be, and what nobody holds on the shelf.
    pub fn sweep(&self) {
        self.shelf.sweep(self.clock.now());
        self.retire();
        self.make_room();
        self.committer.tidy();
    }

    pub(super) fn retire(&self) {
        let before = self.clock.now().before(self.rules.retention);
        let removed = self.remove_ended_before(before, || true);
        if removed > 0 {
            tracing::info!(removed, "transcriptions were removed: they were kept for as long as `retention` says");
        }
    }

    /// The oldest results make room before the disk's limit stops the intake; those of the last day stay.
    pub(super) fn make_room(&self) {
        if !self.shelf.is_crowded() {
            return;
        }
        let before = self.clock.now().before(MAY_GO);
        let removed = self.remove_ended_before(before, || self.shelf.is_crowded());
        tracing::warn!(removed, "`disk` is nearly used up; the oldest ended transcriptions were removed");
    }

    fn remove_ended_before(&self, moment: Timestamp, more: impl Fn() -> bool) -> usize {
        let mut removed = 0;
        while more() {
            let oldest = self.index().ended_before(moment);
            let Some(id) = oldest else { break };
            if let Err(error) = self.remove(id) {
                tracing::error!(%id, %error, "a transcription could not be removed; it is tried again in an hour");
                break;
            }
            removed += 1;
        }
        removed
    }
}
