//! Reservations and charges: for the budget gate, and for `status` and `cost`.

use super::{Lease, StoreError};
use crate::domain::budget::{Account, BudgetExceeded, BudgetLimit};
use crate::domain::charge::Charge;
use crate::domain::names::{ServiceName, SourceName, Timestamp};
use std::collections::BTreeMap;

/// Counts charges against limits. Reservations that are made at the same time never exceed a limit together.
#[async_trait::async_trait]
pub trait Budgets: Send + Sync {
    /// Reserves what this charge says, in place of an earlier reservation of this job, if that fits into all of these
    /// limits. Reading and writing are one step, whoever else reserves. If it does not fit, nothing is reserved for
    /// the job any more. A reservation that takes no more than the earlier one is not refused for what others were
    /// billed since, but it is refused where a limit was lowered since and does not hold it. Conditional on the lease, as
    /// [`super::Claims::commit`]. Durable with the job's next durable commit.
    async fn reserve(
        &self,
        lease: &Lease,
        charge: &Charge,
        limits: &[BudgetLimit],
    ) -> Result<Result<(), BudgetExceeded>, StoreError>;

    /// The holder goes on without a reservation, because nobody knows yet what to reserve. Jobs behind it in
    /// [`super::Claims::claim_in_budget_order`] do not wait for it any more.
    async fn skip_reservation(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Returns what is spent and what is reserved of each of these limits, in the same order.
    async fn accounts(&self, limits: &[BudgetLimit]) -> Result<Vec<Account>, StoreError>;

    /// Returns the billed milliseconds of all purchases of the jobs of each source, at each service.
    async fn billed(&self) -> Result<BTreeMap<(SourceName, ServiceName), u64>, StoreError>;

    /// Returns the transcriptions that were found in a service's list and that no job of this queue has: when each
    /// was bought, and what it cost. They count against the budgets of all sources, not of a single one.
    async fn unclaimed_costs(&self) -> Result<Vec<(Timestamp, u64)>, StoreError>;
}
