//! Whether a source's folder is there, and on what kind of disk.

pub mod disk;
pub mod marker;
pub mod source_mount;
pub mod table;
