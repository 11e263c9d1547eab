//! Configured folders: where they really lie, which of them overlap, and which paths a manifest may name.

pub mod checks;
pub mod folders;
pub mod places;
pub mod rules;
