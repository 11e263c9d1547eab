//! Start, reload and end: for the daemon.

use super::StoreError;
use crate::domain::clock_ahead::LongestWaits;
use crate::domain::names::Timestamp;

/// What a process says of itself.
#[async_trait::async_trait]
pub trait Lifecycle: Send + Sync {
    /// Limits every stored moment that lies ahead to what its kind of wait allows from now (`domain/clock_ahead.rs`):
    /// it was written by a clock that was ahead. How many jobs that were. For whoever has just opened the queue.
    async fn limit_waits(&self, now: Timestamp, waits: &LongestWaits) -> Result<usize, StoreError>;

    /// A run begins: what is reserved from now on counts in it, and what rests on what is configured (a budget,
    /// a key, the address of its service) is due now.
    async fn begin_run(&self, now: Timestamp) -> Result<(), StoreError>;

    /// The configuration has changed: what rests on it (as after [`Lifecycle::begin_run`]) is due now.
    async fn configuration_changed(&self, now: Timestamp) -> Result<(), StoreError>;

    /// Returns when everything committed is durable.
    async fn flush(&self) -> Result<(), StoreError>;
}
