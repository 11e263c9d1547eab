//! Configured folders: where they are with links resolved, which of them overlap, and which paths a manifest may name.
//! Start reading at `places.rs`.

pub(crate) mod checks;
pub(crate) mod folders;
pub(crate) mod places;
pub(crate) mod rules;
