//! Start, reload and end: for the daemon.

use super::StoreError;
use crate::domain::clock_ahead::LongestWaits;
use crate::domain::names::Timestamp;

/// What a process tells its store.
#[async_trait::async_trait]
pub trait Lifecycle: Send + Sync {
    /// Shortens every stored wait that ends later than its kind of wait allows from now (`domain/clock_ahead.rs`): it
    /// was stored by a clock that was ahead. Returns how many jobs that changed. To be called right after the queue
    /// is opened.
    async fn limit_waits(&self, now: Timestamp, waits: &LongestWaits) -> Result<usize, StoreError>;

    /// Begins a run: reservations from now on count in it. Jobs that wait for a setting (a budget, a key, the address
    /// of their service) are due now.
    async fn begin_run(&self, now: Timestamp) -> Result<(), StoreError>;

    /// Makes jobs that wait for a setting due now, as [`Lifecycle::begin_run`] does: the configuration has changed.
    async fn configuration_changed(&self, now: Timestamp) -> Result<(), StoreError>;

    /// Returns when everything committed is durable.
    async fn flush(&self) -> Result<(), StoreError>;
}
