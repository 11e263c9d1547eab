//! Deliveries to callbacks and to the webhook. Start reading at `dispatcher.rs`.

pub(crate) mod dispatcher;
pub(crate) mod pending;
pub(crate) mod policy;
pub(crate) mod queue;
pub(crate) mod signature;
