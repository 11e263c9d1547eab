//! What may be bought: reservations from the budgets, the recordings of a plan, and bills beyond what was reserved.

pub mod excess;
pub mod gate;
pub mod plan_allowlist;
