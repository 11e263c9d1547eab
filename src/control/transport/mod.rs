//! Requests on their way: the protocol, the daemon's socket, its client and its server, and the handler that dispatches.

pub mod client;
pub mod handler;
pub mod protocol;
pub mod server;
pub mod socket;
