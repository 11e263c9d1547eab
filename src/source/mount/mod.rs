//! What a source lies in, a folder or a bucket: whether it is there, on what kind of disk, and who works in it. Start
//! reading at `source_mount`.

mod availability;
pub mod disk;
mod folder;
mod manifest_hold;
pub(crate) mod marker;
mod scans;
pub mod source_mount;
mod storage;
pub(crate) mod table;
