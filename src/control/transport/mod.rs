//! How requests get to the queue: the protocol, the daemon's socket, its client and its server, and the handler. Start
//! reading at `handler.rs`.

pub(crate) mod client;
pub(crate) mod handler;
pub(crate) mod protocol;
mod queue_process;
pub(crate) mod remote_client;
pub(crate) mod server;
pub(crate) mod socket;
