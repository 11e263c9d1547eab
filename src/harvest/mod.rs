//! Writes the records of a service's lists into a folder.

pub mod folder;
pub mod gather;
mod naming;
pub(crate) mod pages;
