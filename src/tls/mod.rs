//! TLS certificates: those of a listener, and those that are trusted.

pub(crate) mod pair;
pub(crate) mod trust;
mod validity;
