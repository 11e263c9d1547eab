//! Finding files: full scans, what changes in between, and where an interrupted scan goes on.

pub(crate) mod checkpoint;
pub mod folder_scan;
pub(crate) mod inventory;
mod read_dir;
pub(crate) mod reopen;
pub(crate) mod schedule;
pub mod traverse;
mod watch;
pub(crate) mod watch_loop;
