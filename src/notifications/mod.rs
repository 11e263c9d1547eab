//! Notifies people and programs, as `[notify]` says. Nothing here delays the work on jobs: each target has a task of
//! its own, which reads the history of the queue from its own position on, so that a crash loses no event.
//!
//! `queue` decides what becomes a message, and when it is sent; `spool` stores that for each target; `conditions` tells
//! what began and ended of outages, budgets and idle times; `message` words what happened, with names from the store;
//! `send/` delivers; `ping` calls the dead man's switch. Start reading at `worker.rs`.

mod conditions;
pub(crate) mod digest;
pub(crate) mod message;
mod observe;
pub(crate) mod ping;
pub(crate) mod queue;
#[cfg(test)]
mod queue_tests;
mod sample;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod spool;
pub(crate) mod worker;
