//! Requests on their way: the protocol, the daemon's socket, its client and its server, and the handler that dispatches.

pub(crate) mod client;
pub(crate) mod handler;
pub(crate) mod protocol;
pub(crate) mod server;
pub(crate) mod socket;
