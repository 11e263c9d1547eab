//! Writes the records of a service's lists into a folder. Start reading at `gather.rs`.

pub(crate) mod folder;
pub(crate) mod gather;
mod naming;
pub(crate) mod pages;
