//! What follows when a reservation is released. The store releases it in the commit that ends the need of it, or that
//! brings a lower bill (`domain/charge.rs`); here, those that were refused and fit now are due again.

use crate::domain::budget::{BudgetExceeded, check_accounts};
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::pipeline::budget::BudgetGate;
use crate::store::contract::{Store, StoreError};
use std::collections::BTreeMap;

impl BudgetGate {
    /// Something was given back, or billed at less than was reserved: those that were refused and would fit alone are
    /// due again, and reserve in their turn. Those behind them, which were not looked at since enough of the others
    /// had been refused, are looked at again.
    ///
    /// # Errors
    /// The store's.
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

    /// It still does not fit, but more is left than when it was refused: what is smaller may.
    fn has_more_left(&self, id: JobId, over: &BudgetExceeded) -> bool {
        let mut refused = self.refused();
        let Some(one) = refused.get_mut(&id) else { return false };
        let is_more = one.whose == over.limit.source && over.left > one.left;
        if !is_more {
            return false;
        }
        one.left = over.left;
        std::mem::replace(&mut one.counts, false)
    }
}
