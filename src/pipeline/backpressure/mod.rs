//! How much a service is asked: its health, what it was found to bear, and when it is polled.

pub(crate) mod aimd;
pub(crate) mod circuit_breaker;
pub mod poll_schedule;
