//! Which installation works in a folder: claims, leases and markers. Start reading at `claim.rs`.

pub(crate) mod claim;
pub(crate) mod installation;
mod marker_owner;
pub(crate) mod owner;
pub(crate) mod source_folders;
