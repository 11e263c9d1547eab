//! Deliveries of events to callbacks and to the webhook.

pub mod dispatcher;
pub(crate) mod pending;
pub mod policy;
pub(crate) mod queue;
pub mod signature;
