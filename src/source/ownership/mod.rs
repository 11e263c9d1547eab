//! Which installation works in a folder: claims, leases and markers.

pub mod claim;
pub mod installation;
pub mod lease;
pub mod owner;
pub mod source_folders;
