//! Backpressure: everything that limits what is sent to a service. There are two functions: `permit` says whether a
//! request may be sent now, `observe` records how it was answered. [`RateLimiter`](rate_limiter::RateLimiter) has them
//! for every single request, so that list scans, batch polls and `harvest` are limited too;
//! [`ServiceGate`](service_gate::ServiceGate) has them for the work of an engine. `retry_after` reads and applies
//! `Retry-After`, `backoff` makes waits grow, and `retry` repeats requests. Start reading at `service_gate.rs`.

use crate::clock::Uptime;

mod aimd;
pub(crate) mod backoff;
pub(crate) mod circuit_breaker;
pub(crate) mod failure_counts;
pub(crate) mod poll_schedule;
pub(crate) mod rate_limiter;
pub(crate) mod retry;
pub(crate) mod retry_after;
pub(crate) mod service_gate;

/// Whether a request may be sent to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    Granted,
    /// Not before the given moment.
    WaitUntil(Uptime),
    /// Not before a trial has succeeded, or a person has acted.
    Withheld,
}
