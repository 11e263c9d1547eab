//! What may be bought: reservations from the budgets, the recordings of a plan, and bills beyond what was reserved.

mod excess;
pub mod gate;
pub(crate) mod plan_allowlist;
