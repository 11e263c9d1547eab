//! Certificates: a listener's own, and those that are trusted.

pub mod pair;
pub mod trust;
pub mod validity;
