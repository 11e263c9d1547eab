//! What to do about a fault: a pure decision.

use std::time::Duration;

/// How often and how soon a job is tried again (`[retry]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Tries in all, at least 1.
    pub attempts: u32,
    /// The wait after the first failure; doubled after each further one.
    pub first: Duration,
    /// No wait is longer.
    pub max: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self { attempts: 5, first: Duration::from_secs(2), max: Duration::from_secs(600) }
    }
}
