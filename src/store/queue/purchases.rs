//! What was bought, and who buys.

use super::{Queue, QueueStore};
use crate::domain::charge::Sighted;
use crate::domain::job::Job;
use crate::domain::names::{JobId, ServiceName, TranscriptionId};
use crate::domain::stage::{Skip, Stage, StageKind};
use crate::domain::token::PurchaseKey;
use crate::store::contract::{DuplicateCheck, KnownPurchase, NewestPurchase, Purchases, StoreError};

#[async_trait::async_trait]
impl Purchases for QueueStore {
    async fn claim_purchase(&self, purchase_key: &PurchaseKey, job: JobId) -> Result<DuplicateCheck, StoreError> {
        let owner = self.queue().index.own(purchase_key, job);
        Ok(if owner == job { DuplicateCheck::Owner } else { DuplicateCheck::Follows(owner) })
    }

    async fn may_have_duplicate(&self, size: u64, job: JobId) -> Result<bool, StoreError> {
        let queue = self.queue();
        let own = queue.rows.load(job)?.is_some_and(|job| job.seen.size == size);
        Ok(queue.index.of_size(size) > u32::from(own) || queue.rows.has_sightings()?)
    }

    async fn purchase(&self, purchase_key: &PurchaseKey) -> Result<Option<KnownPurchase>, StoreError> {
        self.queue().rows.bought(purchase_key)
    }

    async fn has_charge(&self, transcription: &TranscriptionId) -> Result<bool, StoreError> {
        Ok(self.knows_paid(transcription))
    }

    async fn is_shared(&self, transcription: &TranscriptionId) -> Result<bool, StoreError> {
        Ok(self.queue().index.spending.is_shared(transcription))
    }

    async fn record_found(&self, purchase_key: &PurchaseKey, bought: &KnownPurchase) -> Result<(), StoreError> {
        self.queue().record_found(purchase_key, bought)
    }

    async fn forget_purchase(
        &self,
        purchase_key: &PurchaseKey,
        transcription: &TranscriptionId,
    ) -> Result<(), StoreError> {
        self.queue().forget(purchase_key, transcription)?;
        self.barrier.durable().await
    }

    async fn newest_purchase(&self, service: &ServiceName) -> Result<NewestPurchase, StoreError> {
        Ok(self.queue().index.spending.newest(service))
    }

    async fn is_suspect(&self, service: &ServiceName) -> Result<bool, StoreError> {
        self.queue().rows.suspect(service)
    }

    async fn may_have_lost(&self, service: &ServiceName) -> Result<bool, StoreError> {
        self.queue().rows.has_lost(service)
    }

    async fn trust(&self, service: &ServiceName) -> Result<(), StoreError> {
        self.barrier.durable().await?;
        self.queue().rows.set_trusted(service, true)?;
        self.barrier.durable().await
    }

    async fn distrust(&self, service: &ServiceName) -> Result<(), StoreError> {
        self.queue().rows.set_trusted(service, false)?;
        self.barrier.durable().await
    }
}

impl Queue {
    /// Updates the record of purchases for a step. A purchase is recorded for ever, unless it turned out worthless
    /// and another one is to be made. The claim to an order lasts while the job is on its way to buy it.
    ///
    /// Comes before the row. Rows survive in order, so whoever finds the row finds the purchase too; in the other
    /// order, a copy of the content could be bought again. A purchase whose row was lost is still true, and one that
    /// was forgotten too early is forgotten again.
    pub(super) fn settle_purchase(&mut self, old: &Job, new: &Job) -> Result<(), StoreError> {
        match &new.stage {
            Stage::Submitted { purchase_key, transcription } => {
                let known = self.rows.bought(purchase_key)?;
                let first = known.as_ref().filter(|known| known.transcription == *transcription);
                let by = first.and_then(|known| known.by).or(Some(new.id));
                let origin = new.bought_at.clone().or_else(|| first.and_then(|known| known.origin.clone()));
                let sighted = first.and_then(|known| known.sighted);
                let confirmed = first.is_some_and(|known| known.confirmed);
                let bought = KnownPurchase {
                    transcription: transcription.clone(),
                    purchase_number: new.purchase_number,
                    by,
                    origin,
                    sighted,
                    confirmed,
                };
                match known {
                    // A duplicate has bought another transcription since this one was given up. That one is better.
                    Some(known)
                        if known.transcription != bought.transcription
                            && known.purchase_number > bought.purchase_number =>
                    {
                        Ok(())
                    }
                    _ => self.rows.put_bought(purchase_key, Some(&bought)),
                }
            }
            // The same content with the same text: neither is bought when the file's date changes.
            Stage::Written { purchase_key, transcription, .. } if transcription.is_accepted() => {
                self.index.disown(new.id);
                let (transcription, by) = (transcription.clone(), Some(new.id));
                let kept = KnownPurchase {
                    transcription,
                    purchase_number: new.purchase_number,
                    by,
                    origin: None,
                    sighted: None,
                    confirmed: false,
                };
                self.rows.put_bought(purchase_key, Some(&kept))
            }
            Stage::Found if old.is_accepted_only() && old.accepted.is_some() && new.accepted.is_none() => {
                self.forget_worthless(old)
            }
            // A text that a person accepted is erased: nothing was bought under its key.
            Stage::Skipped { why: Skip::Erased } if old.is_accepted_only() => {
                self.index.disown(new.id);
                self.forget_worthless(old)
            }
            // The next part of the recording is bought.
            Stage::Probed { .. } if old.stage.kind() == StageKind::Fetched => {
                self.index.disown(new.id);
                Ok(())
            }
            Stage::Probed { .. } => self.forget_worthless(old),
            // A person ordered this. A good result is still shared, if the new request turns out to be the same.
            Stage::Settled => {
                self.index.disown(new.id);
                match old.stage.kind() {
                    StageKind::Submitted | StageKind::Failed => self.forget_worthless(old),
                    _ => Ok(()),
                }
            }
            Stage::Uploaded { .. } | Stage::Submitting { .. } => Ok(()),
            _ => {
                self.index.disown(new.id);
                Ok(())
            }
        }
    }

    fn forget_worthless(&mut self, old: &Job) -> Result<(), StoreError> {
        let (Some(purchase_key), Some(dead)) = (old.stage.purchase_key(), old.stage.transcription()) else {
            return Ok(());
        };
        self.forget(purchase_key, dead)
    }

    fn forget(&mut self, purchase_key: &PurchaseKey, dead: &TranscriptionId) -> Result<(), StoreError> {
        match self.rows.bought(purchase_key)? {
            Some(bought) if bought.transcription == *dead => self.rows.put_bought(purchase_key, None),
            _ => Ok(()),
        }
    }

    fn record_found(&mut self, purchase_key: &PurchaseKey, bought: &KnownPurchase) -> Result<(), StoreError> {
        self.index.spending.sight(bought);
        match self.rows.bought(purchase_key)? {
            Some(known) if known.purchase_number >= bought.purchase_number => Ok(()),
            _ => {
                // Set first: whoever finds the purchase must know that there are such purchases.
                self.rows.set_sightings()?;
                self.rows.put_bought(purchase_key, Some(bought))
            }
        }
    }

    /// Notes that a person confirmed the answer of a job's transcription. Returns whether the transcription is that of the
    /// purchase.
    pub(super) fn confirm_purchase(&mut self, job: &Job) -> Result<bool, StoreError> {
        let Stage::Submitted { purchase_key, transcription } = &job.stage else { return Ok(false) };
        let known = self.rows.bought(purchase_key)?.filter(|known| known.transcription == *transcription);
        let Some(known) = known else { return Ok(false) };
        self.rows.put_bought(purchase_key, Some(&KnownPurchase { confirmed: true, ..known }))?;
        Ok(true)
    }

    /// Returns what the service's list said of a job's transcription, if it was found there.
    pub(super) fn sighted(&self, job: &Job) -> Result<Option<Sighted>, StoreError> {
        let Stage::Submitted { purchase_key, transcription } = &job.stage else { return Ok(None) };
        let bought = self.rows.bought(purchase_key)?.filter(|bought| bought.transcription == *transcription);
        Ok(bought.and_then(|bought| bought.sighted))
    }
}
