//! Whether a source's folder is there, and on what kind of disk.

pub mod disk;
pub(crate) mod marker;
pub mod source_mount;
pub(crate) mod table;
