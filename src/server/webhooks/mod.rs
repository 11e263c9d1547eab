//! Deliveries of events to callbacks and to the webhook.

pub mod dispatcher;
pub mod pending;
pub mod policy;
pub mod queue;
pub mod signature;
