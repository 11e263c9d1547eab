//! TLS certificates: those of a listener, and those that are trusted; and the HTTP clients that trust them. Start reading
//! at `pair.rs` for listeners, and at `http_client.rs` for clients.

pub(crate) mod http_client;
pub(crate) mod pair;
pub(crate) mod trust;
mod validity;
