//! Finding files: full scans, what changes in between, and where an interrupted scan goes on.

pub mod checkpoint;
pub mod folder_scan;
pub mod inventory;
pub mod read_dir;
pub mod reopen;
pub mod schedule;
pub mod traverse;
pub mod watch;
pub mod watch_loop;
