//! All rows of a store, to move them into another one.

use super::QueueStore;
use crate::domain::job::Job;
use crate::domain::names::{JobId, ServiceName};
use crate::domain::pause::Pauses;
use crate::domain::token::PurchaseKey;
use crate::store::contract::{KnownPurchase, StoreError};
use std::collections::BTreeSet;

/// What a store keeps in one row.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredRow {
    Job(Box<Job>),
    Purchase(Box<(PurchaseKey, KnownPurchase)>),
    Pauses(Pauses),
}

impl QueueStore {
    /// Passes all rows to `take`: the jobs by their numbers, then the purchases, then the pauses. Blocks.
    ///
    /// # Errors
    /// Errors of the store and of `take`.
    pub fn export_rows<E: From<StoreError>>(&self, take: &mut dyn FnMut(StoredRow) -> Result<(), E>) -> Result<(), E> {
        let queue = self.queue();
        for job in queue.rows.scan(None) {
            take(StoredRow::Job(Box::new(job?)))?;
        }
        let mut taken = Ok(());
        queue.rows.each_bought(&mut |purchase_key, bought| {
            if taken.is_ok() {
                taken = take(StoredRow::Purchase(Box::new((purchase_key.clone(), bought.clone()))));
            }
        })?;
        taken?;
        take(StoredRow::Pauses(queue.rows.pauses()?))
    }

    /// Whether the store has neither jobs nor purchases. Blocks.
    pub fn is_unused(&self) -> Result<bool, StoreError> {
        let queue = self.queue();
        let (mut is_unused, has_jobs) = (true, queue.rows.scan(None).next().transpose()?.is_some());
        queue.rows.each_bought(&mut |_, _| is_unused = false)?;
        Ok(is_unused && !has_jobs)
    }

    /// Stores a row as it is. The lookups in memory do not learn of it: the store has to be opened again. Blocks.
    pub fn import_row(&self, row: &StoredRow) -> Result<(), StoreError> {
        let mut queue = self.queue();
        match row {
            StoredRow::Job(job) => {
                queue.rows.save(job)?;
                let paid: Vec<_> = job.charges.iter().filter_map(|charge| charge.transcription.clone()).collect();
                if paid.is_empty() { Ok(()) } else { self.journal.paid(&paid, &[]) }
            }
            StoredRow::Purchase(purchase) => {
                let (purchase_key, bought) = &**purchase;
                if bought.sighted.is_some() {
                    queue.rows.set_sightings()?;
                }
                queue.rows.put_bought(purchase_key, Some(bought))
            }
            StoredRow::Pauses(pauses) => queue.rows.set_pauses(pauses),
        }
    }

    /// Makes the store suspect for these services, as one that has lost purchases: their lists are scanned before
    /// anything is bought. Blocks.
    pub fn distrust_all(&self, services: &BTreeSet<ServiceName>) -> Result<(), StoreError> {
        let mut queue = self.queue();
        services.iter().try_for_each(|service| queue.rows.set_trusted(service, false))
    }
}

/// Returns the services that a row names.
pub fn services_of(row: &StoredRow) -> Vec<ServiceName> {
    match row {
        StoredRow::Job(job) => {
            let charges = job.charges.iter().map(|charge| charge.service.clone());
            charges.chain(job.stage.purchase_key().map(|purchase_key| purchase_key.service.clone())).collect()
        }
        StoredRow::Purchase(purchase) => vec![purchase.0.service.clone()],
        StoredRow::Pauses(_) => Vec::new(),
    }
}

/// Whether a job has the number that follows this one: jobs are numbered from 1 without gaps.
pub fn follows(job: &Job, last: u64) -> bool {
    job.id == JobId(last + 1)
}
