//! Finds files: full scans, changes between them, and the continuation of interrupted scans. Start reading at
//! `folder_scan.rs`.

pub(crate) mod checkpoint;
pub(crate) mod folder_scan;
pub(crate) mod inventory;
mod read_dir;
pub(crate) mod schedule;
pub(crate) mod traverse;
pub(crate) mod wake_jobs;
mod watch;
pub(crate) mod watch_loop;
