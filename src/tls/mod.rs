//! TLS certificates: those of a listener, and those that are trusted. Start reading at `pair.rs`.

pub(crate) mod pair;
pub(crate) mod trust;
mod validity;
