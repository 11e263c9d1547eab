//! What a queue stands on: where its rows, its history and its durability are.

use crate::domain::job::Job;
use crate::domain::names::{JobId, ServiceName, TranscriptionId};
use crate::domain::pause::Pauses;
use crate::domain::token::PurchaseKey;
use crate::store::contract::{HistoryEntry, KnownPurchase, StoreError};

/// Where the rows are: memory or sled.
pub trait Rows: Send {
    fn load(&self, id: JobId) -> Result<Option<Job>, StoreError>;
    /// Puts a job; kept in order, durable after [`Barrier::durable`].
    fn save(&mut self, job: &Job) -> Result<(), StoreError>;
    /// Every job, by number: once, when the queue is opened.
    fn each(&self, take: &mut (dyn FnMut(Job) + Send)) -> Result<(), StoreError>;
    /// Jobs with a number above `after`, by number.
    fn scan(&self, after: Option<JobId>) -> Box<dyn Iterator<Item = Result<Job, StoreError>> + '_>;
    /// What is known to have been bought.
    fn bought(&self, order: &PurchaseKey) -> Result<Option<KnownPurchase>, StoreError>;
    /// Everything that is known to have been bought.
    fn each_bought(&self, see: &mut dyn FnMut(&KnownPurchase)) -> Result<(), StoreError>;
    /// Writes down that it was bought; with `None`, that it was worth nothing.
    fn put_bought(&mut self, order: &PurchaseKey, bought: Option<&KnownPurchase>) -> Result<(), StoreError>;
    /// Whether anything was ever sighted that no job of this store bought.
    fn has_sightings(&self) -> Result<bool, StoreError>;
    /// From now on so.
    fn set_sightings(&mut self) -> Result<(), StoreError>;
    /// Whether nothing may be bought at this service yet.
    fn suspect(&self, service: &ServiceName) -> Result<bool, StoreError>;
    fn has_lost(&self, service: &ServiceName) -> Result<bool, StoreError>;
    /// From now on so, or no longer.
    fn set_trusted(&mut self, service: &ServiceName, trusted: bool) -> Result<(), StoreError>;
    /// The orders that nothing new is uploaded or submitted.
    fn pauses(&self) -> Result<Pauses, StoreError>;
    /// From now on these.
    fn set_pauses(&mut self, pauses: &Pauses) -> Result<(), StoreError>;
}

/// The history. Beside the rows and not below their lock: reading a long one holds nobody up.
pub trait Journal: Send + Sync {
    fn note(&self, note: &HistoryEntry) -> Result<(), StoreError>;
    /// A job's lines, oldest first.
    fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError>;
    /// These transcriptions were paid for; and these have another id now. Beside the rows, so that rows that come back
    /// as they were earlier are found out.
    fn paid(&self, _paid: &[TranscriptionId], _renamed: &[TranscriptionId]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Makes what was put durable.
#[async_trait::async_trait]
pub trait Barrier: Send + Sync {
    /// Returns when everything put before the call is safe from power loss.
    async fn durable(&self) -> Result<(), StoreError>;
}
