//! Backups of a state directory: one tar file with the rows of the queue as of one moment and every file that cannot be
//! made again, each with its checksum. Start reading at `format.rs`.
//!
//! | file | what it does |
//! |---|---|
//! | `format.rs` | what is in a backup, and its names |
//! | `contents.rs` | which files of a state directory are backed up |
//! | `write.rs` | writes a backup |
//! | `read.rs` | reads one, and compares every checksum |
//! | `check.rs` | whether a state is complete: that of a directory, or of a backup |
//! | `restore.rs` | makes a state directory of a backup |

mod check;
mod contents;
mod format;
mod read;
mod restore;
mod write;

pub use check::{CheckReport, check_backup, check_folder};
pub use format::{BackupHeader, new_header};
pub use read::{BackupError, read_header};
pub use restore::{RestoreError, restore};
pub use write::{BackupCounts, BackupSource, BackupWriteError, write_backup};
