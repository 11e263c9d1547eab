//! Deliveries of the ends of transcriptions to callbacks and to the webhook. Start reading at `dispatcher.rs`.

pub mod dispatcher;
pub(crate) mod pending;
pub mod policy;
pub(crate) mod queue;
pub mod signature;
