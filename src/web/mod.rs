//! What others may ask of the daemon over HTTP: the receiver of callbacks.

pub(crate) mod receiver;
