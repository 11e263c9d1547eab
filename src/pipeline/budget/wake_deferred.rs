//! What follows when a reservation is released. The store releases it in the commit after which it is not needed, or
//! that brings a lower bill (`domain/charge.rs`). Here, refused jobs that fit now become due again.

use crate::domain::budget::{BudgetExceeded, check_accounts};
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::pipeline::budget::BudgetGate;
use crate::store::contract::{Store, StoreError};
use std::collections::BTreeMap;

impl BudgetGate {
    /// Makes refused jobs due again that fit alone now, after something was given back or was billed at less than was
    /// reserved. Each of them reserves when it runs. Jobs that were not tried because enough others had been refused
    /// are tried again. Returns whether anything changed.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn wake_deferred(&self, store: &dyn Store, now: Timestamp) -> Result<bool, StoreError> {
        let waiting: Vec<(JobId, SourceName, u64)> =
            self.refused().iter().map(|(id, one)| (*id, one.source.clone(), one.need)).collect();
        let (mut by_source, mut any) = (BTreeMap::new(), false);
        for (id, source, need) in waiting {
            if !by_source.contains_key(&source) {
                by_source.insert(source.clone(), store.accounts(&self.limits_for(&source, now)).await?);
            }
            match check_accounts(by_source[&source].clone(), need) {
                Ok(()) => {
                    self.refused().remove(&id);
                    store.wake(id, now).await?;
                    any = true;
                }
                Err(over) => any |= self.has_more_left(id, &over),
            }
        }
        Ok(any)
    }

    /// Notes that more is left than when a job was refused, although the job still does not fit: smaller ones may.
    /// Returns whether the job counted as refused until now.
    fn has_more_left(&self, id: JobId, over: &BudgetExceeded) -> bool {
        let mut refused = self.refused();
        let Some(entry) = refused.get_mut(&id) else { return false };
        let is_more = entry.whose == over.limit.source && over.left > entry.left;
        if !is_more {
            return false;
        }
        entry.left = over.left;
        std::mem::replace(&mut entry.counts, false)
    }
}
