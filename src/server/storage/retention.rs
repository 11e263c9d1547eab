//! Removes transcriptions: by request, after their time, and to free space.

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

/// The result of a request to delete a transcription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteResult {
    /// It was removed with everything that was stored of it.
    Removed,
    /// The owner has no such transcription.
    Unknown,
    /// It has not ended.
    Open,
}

/// Ended transcriptions of at least this age may be removed to free space.
const MIN_AGE: Duration = Duration::from_secs(24 * 3600);

impl TranscriptionStore {
    /// Deletes an ended transcription of this owner with everything that is stored of it; durable when it returns.
    ///
    /// # Errors
    /// Errors of the file system; the call may be repeated.
    pub fn delete(&self, id: Uuid, owner: &Hash) -> io::Result<DeleteResult> {
        match self.index().get_owned(id, owner).map(|entry| entry.ended) {
            None => return Ok(DeleteResult::Unknown),
            Some(None) => return Ok(DeleteResult::Open),
            Some(Some(_)) => {}
        }
        self.remove(id, true)?;
        Ok(DeleteResult::Removed)
    }

    /// As [`TranscriptionStore::delete`], also for a transcription that has not ended. One that waits ends and is
    /// deleted at once. One that is in progress is told to stop, and the result is [`DeleteResult::Open`]: repeat the
    /// call when it has ended.
    ///
    /// # Errors
    /// Errors of the file system; the call may be repeated.
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
            // It has not ended: it waits where it waited before, and may be cancelled again.
            self.index().restore_waiting(created, place);
            self.wake_workers();
            self.ends.notify_waiters();
            return Err(error);
        }
        self.delete(id, &owner)
    }

    /// Removes the record before the result: the next start removes a result without a record. If the next start would
    /// still find the create in the log, a deletion is written there first. With `by_request` the audio is removed too,
    /// unless another transcription uses it; otherwise it stays for as long as `uploads` says.
    fn remove(&self, id: Uuid, by_request: bool) -> io::Result<()> {
        let _settling = self.settle_lock(id);
        if self.ledger.contains(id) {
            self.committer.write_and_wait(&LogLine::deletion(id))?;
            crash_points::point(Point::Struck);
        }
        files::remove(&self.head_path(id))?;
        durable_file::sync(&self.root.join("transcriptions"))?;
        let removed_entry = self.index().remove(id);
        if let Some(entry) = &removed_entry {
            self.upload_store.subtract_records(&entry.owner, entry.bytes);
        }
        if let Some(entry) = removed_entry {
            self.upload_store.forget(entry.upload, entry.set_aside, by_request);
        }
        files::remove(&self.result_path(id))
    }

    /// Removes transcriptions and uploads whose time is over, and frees space.
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

    /// Frees space before the disk quota stops new uploads: first idle uploads, then the oldest ended transcriptions,
    /// except those of the last day. Where a key holds more than its share, only such keys have to give way, so that no
    /// key gives way for another one's excess.
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
        let before = self.clock.now().saturating_sub(MIN_AGE);
        let may = |owner: &Hash| self.upload_store.must_free_space(owner);
        let removed = self.remove_ended_before(before, || self.upload_store.is_nearly_full(), may);
        tracing::warn!(
            removed,
            "the space of `disk` is nearly used up; the service removed the oldest ended transcriptions"
        );
    }

    fn remove_ended_before(
        &self,
        moment: Timestamp,
        should_continue: impl Fn() -> bool,
        may: impl Fn(&Hash) -> bool,
    ) -> usize {
        let mut removed = 0;
        while should_continue() {
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
