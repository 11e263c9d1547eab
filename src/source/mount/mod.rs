//! The folder or bucket of a source: whether it is available, on what kind of disk it is, and which installation works
//! in it. Start reading at `source_mount`.

mod availability;
pub(crate) mod disk;
mod folder;
mod manifest_hold;
pub(crate) mod marker;
mod nested_mounts;
mod scans;
pub(crate) mod source_mount;
mod storage;
pub(crate) mod table;
