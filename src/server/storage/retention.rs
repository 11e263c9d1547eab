//! What leaves a store: by order, after its time, and to make room.

use crate::crash_points::{self, Point};
use crate::domain::names::{Hash, Timestamp};
use crate::durable_file;
use crate::server::recognition::worker::cancelled_failure;
use crate::server::storage::files;
use crate::server::storage::log::ledger::LogLine;
use crate::server::storage::transcriptions::{TakenTranscription, TranscriptionEnd, TranscriptionStore};
use std::io;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// What became of an order to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteResult {
    /// It is gone, with all that was kept of it.
    Removed,
    /// The owner has no such transcription.
    Unknown,
    /// It has not ended.
    Open,
}

/// Results may be removed to make room when they are so old.
const MAY_GO: Duration = Duration::from_secs(24 * 3600);

impl TranscriptionStore {
    /// Deletes an ended transcription of this owner with all that is kept of it; durable when it returns.
    ///
    /// # Errors
    /// Those of the file system; it may be repeated.
    pub fn delete(&self, id: Uuid, owner: &Hash) -> io::Result<DeleteResult> {
        match self.index().get_owned(id, owner).map(|entry| entry.ended) {
            None => return Ok(DeleteResult::Unknown),
            Some(None) => return Ok(DeleteResult::Open),
            Some(Some(_)) => {}
        }
        self.remove(id, true)?;
        Ok(DeleteResult::Removed)
    }

    /// As [`TranscriptionStore::delete`], of one that has not ended too: what waits ends and is deleted at once; what is in
    /// progress is told to stop and is still [`DeleteResult::Open`]: this is to be repeated when it has ended.
    ///
    /// # Errors
    /// Those of the file system; it may be repeated.
    pub fn cancel(&self, id: Uuid, owner: &Hash) -> io::Result<DeleteResult> {
        let mut index = self.index();
        let open =
            index.get_owned(id, owner).filter(|entry| entry.ended.is_none()).and_then(|_| index.find_unfinished(id));
        let Some((created, owner, upload)) = open else {
            drop(index);
            return self.delete(id, owner);
        };
        let Some(place) = index.remove_waiting(created) else {
            self.in_progress().get(&id).iter().for_each(|cancelled| cancelled.cancel());
            return Ok(DeleteResult::Open);
        };
        drop(index);
        let taken = TakenTranscription { id, owner, upload, cancelled: CancellationToken::new(), created };
        let ended = TranscriptionEnd { at: self.end_time(&taken), failure: Some(cancelled_failure()) };
        if let Err(error) = self.end(&taken, ended, None) {
            // It has not ended: it waits where it waited, and may be cancelled again.
            self.index().restore_waiting(created, place);
            self.wake_workers();
            self.ends.notify_waiters();
            return Err(error);
        }
        self.delete(id, &owner)
    }

    /// The head first: a result without one is removed at the next start. But before the head goes, the
    /// ledger says so, where the create would be found again. `by_order`: its audio goes too, unless another
    /// transcription has it; else that stays for as long as `uploads` says.
    fn remove(&self, id: Uuid, by_order: bool) -> io::Result<()> {
        let _settling = self.settle_lock();
        if self.ledger.contains(id) {
            self.committer.write_and_wait(&LogLine::deletion(id))?;
            crash_points::point(Point::Struck);
        }
        files::remove(&self.head_path(id))?;
        durable_file::sync(&self.root.join("transcriptions"))?;
        let gone = self.index().remove(id);
        if let Some(entry) = &gone {
            self.upload_store.subtract_records(&entry.owner, entry.bytes);
        }
        if let Some(entry) = gone {
            self.upload_store.forget(entry.upload, entry.set_aside, by_order);
        }
        files::remove(&self.result_path(id))
    }

    /// Removes what has been kept for as long as it may be, and what nobody holds in the upload store.
    pub fn remove_expired(&self) {
        self.upload_store.remove_expired();
        self.remove_expired_records();
        self.free_space();
        self.committer.request_compaction();
    }

    pub(crate) fn remove_expired_records(&self) {
        let before = self.clock.now().saturating_sub(self.rules.retention);
        let removed = self.remove_ended_before(before, || true, |_| true);
        if removed > 0 {
            tracing::info!(removed, "the service removed transcriptions that are older than `retention`");
        }
    }

    /// Uploads that no transcription waits for make room first, then the oldest results, before the disk's limit stops
    /// the intake; results of the last day stay. Where a key holds more than its share, only such keys make room: none
    /// has to for another one's sake.
    pub(crate) fn free_space(&self) {
        let uploads = self.upload_store.free_space();
        if uploads > 0 {
            tracing::debug!(
                uploads,
                "the space of `disk` is short; the service removed the least recently used uploads"
            );
        }
        if !self.upload_store.is_nearly_full() {
            return;
        }
        let before = self.clock.now().saturating_sub(MAY_GO);
        let may = |owner: &Hash| self.upload_store.must_free_space(owner);
        let removed = self.remove_ended_before(before, || self.upload_store.is_nearly_full(), may);
        tracing::warn!(
            removed,
            "the space of `disk` is nearly used up; the service removed the oldest ended transcriptions"
        );
    }

    fn remove_ended_before(&self, moment: Timestamp, more: impl Fn() -> bool, may: impl Fn(&Hash) -> bool) -> usize {
        let mut removed = 0;
        while more() {
            let oldest = self.index().oldest_ended_before(moment, &may);
            let Some(id) = oldest else { break };
            if let Err(error) = self.remove(id, false) {
                tracing::error!(%id, %error, "cannot remove a transcription; the service tries again in an hour");
                break;
            }
            removed += 1;
        }
        removed
    }
}
