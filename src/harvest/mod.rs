//! What a service's lists hold, written into a folder.

pub mod folder;
pub mod gather;
mod naming;
pub(crate) mod pages;
