//! Reservations and accounts.

use super::{Queue, QueueStore};
use crate::domain::budget::{Account, BudgetExceeded, BudgetLimit, check_limits};
use crate::domain::charge::{Charge, LimitAtReservation, State};
use crate::domain::names::{ServiceName, SourceName, Timestamp};
use crate::store::contract::{Budgets, Lease, StoreError};
use std::collections::BTreeMap;

#[async_trait::async_trait]
impl Budgets for QueueStore {
    async fn reserve(
        &self,
        lease: &Lease,
        charge: &Charge,
        limits: &[BudgetLimit],
    ) -> Result<Result<(), BudgetExceeded>, StoreError> {
        self.queue().reserve(lease, charge, limits)
    }

    async fn skip_reservation(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut queue = self.queue();
        if queue.index.holds(lease) {
            queue.index.has_asked(lease.job);
        }
        Ok(())
    }

    async fn accounts(&self, limits: &[BudgetLimit]) -> Result<Vec<Account>, StoreError> {
        let queue = self.queue();
        Ok(limits.iter().map(|limit| queue.index.spending.account(limit)).collect())
    }

    async fn billed(&self) -> Result<BTreeMap<(SourceName, ServiceName), u64>, StoreError> {
        Ok(self.queue().index.spending.billed().clone())
    }

    async fn unclaimed_costs(&self) -> Result<Vec<(Timestamp, u64)>, StoreError> {
        Ok(self.queue().index.spending.unclaimed())
    }
}

impl Queue {
    fn reserve(
        &mut self,
        lease: &Lease,
        charge: &Charge,
        limits: &[BudgetLimit],
    ) -> Result<Result<(), BudgetExceeded>, StoreError> {
        let old = self.guarded(lease)?;
        self.index.has_asked(lease.job);
        let mut new = old.clone();
        new.charges.retain(|charge| charge.state != State::Held);
        let need = charge.amount().unwrap_or_default();
        let before: Vec<u64> = limits.iter().map(|limit| self.index.spending.used(limit)).collect();
        // The reservation of this very job does not count against it.
        self.index.spending.remove(&old);
        self.index.spending.add(&new);
        let used = limits.iter().map(|limit| (limit.clone(), self.index.spending.used(limit)));
        // A job is not refused if it takes no more of a limit than it already has, whatever others were billed
        // meanwhile: that much was reserved. But where a person has lowered the limit since, what was reserved has to
        // fit into it as it is now.
        let held = old.reservation();
        let is_promised = |limit: &BudgetLimit| held.is_some_and(|held| held.was_reserved_under(limit));
        let is_checked = |((limit, without), with): &((BudgetLimit, u64), u64)| {
            without.saturating_add(need) > *with || !is_promised(limit)
        };
        let judged = check_limits(used.zip(before).filter(is_checked).map(|(used, _)| used), need);
        self.index.spending.remove(&new);
        self.index.spending.add(&old);
        if judged.is_ok() {
            let run = self.index.spending.run().unwrap_or(charge.at);
            let limits = limits.iter().map(LimitAtReservation::of).collect();
            new.charges.push(Charge { run, state: State::Held, limits, ..charge.clone() });
        }
        if new.charges != old.charges {
            self.replace(Some(&old), &new)?;
        }
        Ok(judged)
    }
}
