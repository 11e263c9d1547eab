//! Certificates: a listener's own, and those that are trusted.

pub(crate) mod pair;
pub(crate) mod trust;
mod validity;
