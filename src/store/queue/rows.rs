//! What a queue is built on: its rows, its history and its durability.

use crate::domain::job::Job;
use crate::domain::names::{JobId, ServiceName, TranscriptionId};
use crate::domain::pause::Pauses;
use crate::domain::token::PurchaseKey;
use crate::store::contract::{HistoryEntry, KnownPurchase, StoreError};
use crate::store::row_file::RowBytes;
use std::collections::BTreeMap;

/// Where the rows are: memory or sled.
pub trait Rows: Send {
    fn load(&self, id: JobId) -> Result<Option<Job>, StoreError>;
    /// Stores a job. Writes keep their order and are durable after [`Barrier::durable`].
    fn save(&mut self, job: &Job) -> Result<(), StoreError>;
    /// Passes every job to `take`, by number. Used once, when the queue is opened.
    fn each(&self, take: &mut (dyn FnMut(Job) + Send)) -> Result<(), StoreError>;
    /// Jobs with a number above `after`, by number.
    fn scan(&self, after: Option<JobId>) -> Box<dyn Iterator<Item = Result<Job, StoreError>> + '_>;
    /// Returns what is known to have been bought under a key.
    fn bought(&self, purchase_key: &PurchaseKey) -> Result<Option<KnownPurchase>, StoreError>;
    /// Passes every known purchase to `see`.
    fn each_bought(&self, see: &mut dyn FnMut(&PurchaseKey, &KnownPurchase)) -> Result<(), StoreError>;
    /// Records a purchase; with `None`, removes one that was worth nothing.
    fn put_bought(&mut self, purchase_key: &PurchaseKey, bought: Option<&KnownPurchase>) -> Result<(), StoreError>;
    /// Whether any purchase was ever found in a service's list.
    fn has_sightings(&self) -> Result<bool, StoreError>;
    /// Notes that a purchase was found in a service's list.
    fn set_sightings(&mut self) -> Result<(), StoreError>;
    /// Whether nothing may be bought at this service yet.
    fn suspect(&self, service: &ServiceName) -> Result<bool, StoreError>;
    fn has_lost(&self, service: &ServiceName) -> Result<bool, StoreError>;
    /// Sets whether the queue is trusted for this service.
    fn set_trusted(&mut self, service: &ServiceName, trusted: bool) -> Result<(), StoreError>;
    /// Returns the pauses in effect.
    fn pauses(&self) -> Result<Pauses, StoreError>;
    /// Replaces the pauses.
    fn set_pauses(&mut self, pauses: &Pauses) -> Result<(), StoreError>;
    /// Begins a copy of all rows as they are now, and returns their format. Rows without a disk have no copies.
    fn begin_copy(&mut self) -> Result<u8, StoreError> {
        Err(StoreError::Unwritable("this queue is in memory, and has no copies".to_owned()))
    }
    /// Returns the next rows of the copy, at most `most`; none after the last.
    fn next_of_copy(&mut self, _most: usize) -> Result<Vec<RowBytes>, StoreError> {
        Ok(Vec::new())
    }
    /// Ends the copy. From then on changes keep nothing for it.
    fn end_copy(&mut self) {}
}

/// The history. It is not below the lock of the rows: reading a long history holds nobody up.
pub trait Journal: Send + Sync {
    fn note(&self, note: &HistoryEntry) -> Result<(), StoreError>;
    /// Returns a job's lines, oldest first.
    fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError>;
    /// Removes a job's lines for good; durable when it returns. Returns how many there were.
    fn erase(&self, job: JobId) -> Result<u64, StoreError>;
    /// Notes transcriptions that were paid for, and those that have another id now. Stored beside the rows, so that
    /// rows that come back as they were earlier are noticed.
    fn paid(&self, _paid: &[TranscriptionId], _renamed: &[TranscriptionId]) -> Result<(), StoreError> {
        Ok(())
    }
    /// Returns the length of each file of the history.
    fn lengths(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        Ok(BTreeMap::new())
    }
}

/// Makes stored rows durable.
#[async_trait::async_trait]
pub trait Barrier: Send + Sync {
    /// Returns when everything that was stored before the call is safe from power loss.
    async fn durable(&self) -> Result<(), StoreError>;
}
