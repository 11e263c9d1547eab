//! What is reserved and spent: for the budget gate, and for `status` and `cost`.

use super::{Lease, StoreError};
use crate::domain::budget::{Account, BudgetExceeded, BudgetLimit};
use crate::domain::charge::Charge;
use crate::domain::names::Timestamp;

/// Counts charges against limits. Reservations that are made at the same time never exceed a limit together.
#[async_trait::async_trait]
pub trait Budgets: Send + Sync {
    /// Reserves what this charge says, in place of what was reserved for this job before, if that fits into all
    /// of these limits: read and written in one step, whoever else asks. If not, nothing is reserved for
    /// the job any more. Conditional on the lease, as [`super::Claims::commit`]. Durable with the job's next durable
    /// commit.
    async fn reserve(
        &self,
        lease: &Lease,
        charge: &Charge,
        limits: &[BudgetLimit],
    ) -> Result<Result<(), BudgetExceeded>, StoreError>;

    /// The holder goes on without a reservation, because nobody knows yet what to reserve: those behind it in
    /// [`super::Claims::claim_in_budget_order`] do not wait for it any more.
    async fn skip_reservation(&self, lease: &Lease) -> Result<(), StoreError>;

    /// What is spent and what is reserved of each of these limits; in the same order.
    async fn accounts(&self, limits: &[BudgetLimit]) -> Result<Vec<Account>, StoreError>;

    /// How much of each of these limits is spent or reserved; in the same order.
    async fn used(&self, limits: &[BudgetLimit]) -> Result<Vec<u64>, StoreError> {
        Ok(self.accounts(limits).await?.iter().map(Account::used).collect())
    }

    /// What was found in a service's list and no job of this queue has: when it was bought, and what it cost. It
    /// counts against the budgets of everything.
    async fn unclaimed_costs(&self) -> Result<Vec<(Timestamp, u64)>, StoreError>;
}
