//! The sources of media: folders and buckets.
//!
//! `scan/` finds files, `filter/` decides which are taken, `mount/` knows whether a folder is available, `ownership/`
//! claims it for this installation, `bucket/` uses S3, `metadata/` reads what is beside a recording. Start reading at
//! `scan/folder_scan.rs`.

pub(crate) mod bucket;
pub(crate) mod filter;
pub(crate) mod metadata;
pub(crate) mod mount;
pub(crate) mod ownership;
pub(crate) mod path_policy;
pub(crate) mod recording_place;
pub(crate) mod saved_file;
pub(crate) mod scan;
