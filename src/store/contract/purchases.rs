//! What is known to have been bought: for the stages that decide whether to buy, and for list scans.

use super::StoreError;
use crate::domain::charge::Sighted;
use crate::domain::names::{JobId, ServiceName, Timestamp, TranscriptionId};
use crate::domain::token::PurchaseKey;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateCheck {
    /// The asking job buys.
    Owner,
    Follows(JobId),
}

/// A transcription that is known to have been bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPurchase {
    pub transcription: TranscriptionId,
    /// The number of the purchase.
    #[serde(rename = "round")]
    pub purchase_number: u32,
    /// The job that had it first, if this store knows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<JobId>,
    /// Where the transcription is, as in [`crate::domain::stage::Intent::origin`]; `None` if an older release did not
    /// store that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The cost that the service's list gave, if the transcription was found there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sighted: Option<Sighted>,
    /// Whether a person said that the service's answer is that of this purchase, although it looks otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmed: bool,
}

impl KnownPurchase {
    /// Whether a person confirmed the answer of this transcription.
    pub fn is_confirmed(&self, transcription: &TranscriptionId) -> bool {
        self.confirmed && self.transcription == *transcription
    }

    /// Whether the transcription also stands for a purchase at another address of the service: one that the embedded
    /// service made in a rehearsal is no substitute for that of a hosted service. `is_own`: the address is the embedded
    /// service.
    pub fn may_serve(&self, is_own: bool) -> bool {
        // The origin of a hosted service is an address, that of the embedded service the id of its store.
        is_own || self.origin.as_ref().is_none_or(|origin| origin.contains("://"))
    }
}

/// What was bought last at a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewestPurchase {
    /// When the newest intent was stored: by our clock, and by the service's clock as last seen before.
    pub intent: Option<(Timestamp, Option<Timestamp>)>,
    /// The newest purchase that is known to be accepted: the same times, and its id.
    pub accepted: Option<(Timestamp, Option<Timestamp>, TranscriptionId)>,
}

/// Keeps one purchase per [`PurchaseKey`]. A key that is not yet bought has one owner at a time.
#[async_trait::async_trait]
pub trait Purchases: Send + Sync {
    /// Claims the purchase of this key for a job, unless another job has it. The claim lasts while the job is on its
    /// way; from the job's intent on it survives restarts.
    async fn claim_purchase(&self, key: &PurchaseKey, job: JobId) -> Result<DuplicateCheck, StoreError>;

    /// Whether another job has a file of this size, or purchases are known whose content can be compared only by
    /// hash. Then the content is worth hashing before an upload.
    async fn may_have_duplicate(&self, size: u64, job: JobId) -> Result<bool, StoreError>;

    /// Returns what is known to have been bought under this key.
    async fn purchase(&self, key: &PurchaseKey) -> Result<Option<KnownPurchase>, StoreError>;

    /// Whether a job of this store has a charge for this transcription, whatever became of it.
    async fn has_charge(&self, transcription: &TranscriptionId) -> Result<bool, StoreError>;

    /// Whether jobs of this store have several charges for this transcription: the service gave its id to more than one
    /// purchase.
    async fn is_shared(&self, transcription: &TranscriptionId) -> Result<bool, StoreError>;

    /// Records a purchase that was found in the service's list. The highest purchase number is kept. Its cost counts
    /// against the budgets of all sources from now on, and against those of its source once a job has it.
    async fn record_found(&self, key: &PurchaseKey, found: &KnownPurchase) -> Result<(), StoreError>;

    /// Forgets a transcription that was deleted at the service, so that a copy of the content is bought again. Does
    /// nothing if another transcription is known under the key by now. Durable when it returns.
    async fn forget_purchase(&self, key: &PurchaseKey, transcription: &TranscriptionId) -> Result<(), StoreError>;

    /// Returns what was bought last at this service, as far as this store knows. A store that was restored from an
    /// older copy does not know what was bought since.
    async fn newest_purchase(&self, service: &ServiceName) -> Result<NewestPurchase, StoreError>;

    /// Whether nothing may be bought at this service before its list was scanned.
    async fn is_suspect(&self, service: &ServiceName) -> Result<bool, StoreError>;

    /// Whether this queue may have known more purchases at a suspect service than it does now: it was repaired, is
    /// older than it was, or a folder was taken over. A new queue of new folders has lost nothing.
    async fn may_have_lost(&self, service: &ServiceName) -> Result<bool, StoreError>;

    /// Trusts the store for a service, after everything that can be found there was recorded. Durable when it
    /// returns, with everything that was recorded before.
    async fn trust(&self, service: &ServiceName) -> Result<(), StoreError>;

    /// Distrusts the store for a service where purchases may exist that it does not know: nothing is bought there
    /// before the service's list was scanned. Durable when it returns.
    async fn distrust(&self, service: &ServiceName) -> Result<(), StoreError>;
}
