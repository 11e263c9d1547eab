//! Numbers for the status page, and one key's own newest records.

use crate::clock::{Clock, Uptime};
use crate::domain::names::{Hash, Timestamp};
use crate::server::storage::record_meta::RecordMeta;
use crate::server::storage::transcriptions::TranscriptionStore;
use crate::wire::page::ListQuery;
use crate::wire::record::Status;
use serde::Serialize;
use std::io;
use std::ops::Add;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// How many transcriptions have each status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TranscriptionCounts {
    /// Those that wait for their turn or for their audio.
    pub queued: usize,
    pub running: usize,
    pub done: usize,
    pub failed: usize,
}

impl TranscriptionCounts {
    pub fn for_owner(store: &TranscriptionStore, owner: &Hash) -> Self {
        let count = |status| store.list(owner, &only(status), usize::MAX).len();
        Self {
            queued: count(Status::Queued),
            running: count(Status::Processing),
            done: count(Status::Done),
            failed: count(Status::Error),
        }
    }
}

impl Add for TranscriptionCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            queued: self.queued + other.queued,
            running: self.running + other.running,
            done: self.done + other.done,
            failed: self.failed + other.failed,
        }
    }
}

fn only(status: Status) -> ListQuery {
    ListQuery { status: vec![status], ..ListQuery::default() }
}

/// The counts of all owners. They are computed at most every few seconds, because the page needs no key and counting
/// locks the store's index.
#[derive(Debug, Default)]
pub struct Statistics(Mutex<Option<(Uptime, TranscriptionCounts)>>);

impl Statistics {
    /// Returns the counts of these owners together.
    pub fn get(&self, store: &TranscriptionStore, owners: &[Hash], clock: &dyn Clock) -> TranscriptionCounts {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock.uptime();
        match *last {
            Some((counted, counts)) if now.since(counted) < FRESH => counts,
            _ => {
                let counts = owners
                    .iter()
                    .map(|owner| TranscriptionCounts::for_owner(store, owner))
                    .fold(TranscriptionCounts::default(), Add::add);
                *last = Some((now, counts));
                counts
            }
        }
    }
}

/// How long a count is used.
const FRESH: Duration = Duration::from_secs(2);

/// A record of an owner.
#[derive(Debug)]
pub struct RecentRecord {
    pub id: Uuid,
    pub head: RecordMeta,
}

/// Returns an owner's newest records of one status, newest first. Reads them from the disk.
pub fn newest_records(
    store: &TranscriptionStore,
    owner: &Hash,
    status: Status,
    most: usize,
) -> io::Result<Vec<RecentRecord>> {
    let listed: Vec<(Timestamp, Uuid)> = store.list(owner, &only(status), most);
    read(store, listed.into_iter().map(|(_, id)| id))
}

/// Returns at most `most` records of an owner that were set aside. Reads them from the disk.
pub fn set_aside_records(store: &TranscriptionStore, owner: &Hash, most: usize) -> io::Result<Vec<RecentRecord>> {
    let ids: Vec<Uuid> = store.index().set_aside_ids(Some(owner)).take(most).collect();
    read(store, ids)
}

fn read(store: &TranscriptionStore, ids: impl IntoIterator<Item = Uuid>) -> io::Result<Vec<RecentRecord>> {
    let read = |id| match store.record_meta(id) {
        Ok(head) => Some(Ok(RecentRecord { id, head })),
        // The record was deleted meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(error)),
    };
    ids.into_iter().filter_map(read).collect()
}
