//! Where media comes from: folders and buckets.
//!
//! `scan/` finds files, `filter/` decides which are taken, `mount/` knows whether a folder is there, `ownership/` claims it for
//! this installation, `bucket/` speaks S3, `metadata/` reads what lies beside a recording. Start reading at
//! `scan/folder_scan.rs`.

pub mod bucket;
pub mod filter;
pub mod metadata;
pub mod mount;
pub mod ownership;
pub mod path_policy;
pub mod place;
pub mod saved_file;
pub mod scan;
