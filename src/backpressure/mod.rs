//! Everything that limits what is sent to a service. There are two questions: `permit` says whether a request may be sent
//! now, `observe` is told what came of it. [`RateLimiter`](rate_limiter::RateLimiter) answers them for every single
//! request, so that list scans, batch polls and `harvest` are limited too; [`ServiceGate`](service_gate::ServiceGate)
//! answers them for the work of an engine. `Retry-After` is obeyed in `retry_after`, waits grow in `backoff`, and requests
//! are repeated in `retry`. Start reading at `service_gate.rs`.

use crate::clock::Uptime;

pub(crate) mod aimd;
pub(crate) mod backoff;
mod circuit_breaker;
pub(crate) mod failure_counts;
pub mod poll_schedule;
pub(crate) mod rate_limiter;
pub(crate) mod retry;
pub(crate) mod retry_after;
pub(crate) mod service_gate;

/// Whether something may be sent to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    Granted,
    /// Not before then.
    WaitUntil(Uptime),
    /// Not before a trial has succeeded, or a person has acted.
    Withheld,
}
