//! What a service's lists hold, written into a folder.

pub mod folder;
pub mod gather;
pub mod naming;
pub mod pages;
