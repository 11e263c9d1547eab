//! What is in a backup. It is a tar file, compressed with gzip if its name ends with `.gz`:
//!
//! ```text
//! scribed-backup.json   what it is: the first member
//! rows                  the queue's rows (`store/row_file.rs`)
//! state/…               the files of the state directory
//! checksums.txt         the SHA-256 of every member before it, as `sha256sum` writes it: the last member
//! ```
//!
//! Standard tools can unpack it and compare the checksums. Without its last member a backup is incomplete.

use crate::control::backup::contents::is_backed_up;
use crate::domain::names::Timestamp;
use crate::store::contract::CopiedRows;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path};

/// What the header names the format.
pub(super) const FORMAT: &str = "scribed-backup";

/// The version that this release writes, and the newest that it reads.
pub(super) const VERSION: u64 = 1;

/// The store whose rows a backup has.
pub(super) const STORE: &str = "sled";

pub(super) const HEADER: &str = "scribed-backup.json";
pub(super) const ROWS: &str = "rows";
pub(super) const CHECKSUMS: &str = "checksums.txt";

/// What the names of the state's files begin with.
const STATE: &str = "state/";

/// The first member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupHeader {
    pub format: String,
    pub version: u64,
    /// The release that wrote it.
    pub program: String,
    pub store: String,
    /// The format of the rows.
    pub rows: u8,
    /// When the rows were copied.
    pub at: Timestamp,
    pub jobs: u64,
    pub purchases: u64,
}

/// Returns the header of a backup of these rows.
pub fn new_header(rows: &CopiedRows, at: Timestamp) -> BackupHeader {
    BackupHeader {
        format: FORMAT.to_owned(),
        version: VERSION,
        program: format!("scribed {}", env!("CARGO_PKG_VERSION")),
        store: STORE.to_owned(),
        rows: rows.format,
        at,
        jobs: rows.jobs,
        purchases: rows.purchases,
    }
}

/// A member by its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MemberKind<'n> {
    Header,
    Rows,
    Checksums,
    /// A file, by its path below the state directory.
    File(&'n Path),
}

/// Returns the name of a file's member; `None` if no member can have its name.
pub(super) fn member_name(below: &Path) -> Option<String> {
    let name = format!("{STATE}{}", below.to_str()?);
    (member_kind(&name) == Some(MemberKind::File(below))).then_some(name)
}

/// Returns what a member is; `None` if no backup has such a member: it would lie outside the state directory, or
/// replace what is not backed up.
pub(super) fn member_kind(name: &str) -> Option<MemberKind<'_>> {
    match name {
        HEADER => return Some(MemberKind::Header),
        ROWS => return Some(MemberKind::Rows),
        CHECKSUMS => return Some(MemberKind::Checksums),
        _ => {}
    }
    let below = Path::new(name.strip_prefix(STATE)?);
    let is_plain = below.file_name().is_some() && below.components().all(|part| matches!(part, Component::Normal(_)));
    // Components leave out what names nothing, as in `a//b` and `a/./b`.
    let is_exact = below.components().collect::<std::path::PathBuf>().as_os_str() == below.as_os_str();
    let is_line = !name.contains(char::is_control) && !name.contains('\\');
    (is_plain && is_exact && is_line && is_backed_up(below)).then_some(MemberKind::File(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_of_the_state_directory_are_none() {
        for good in ["results/default/ab/x.json.gz", "identity", "queue/large/ab/ab.json"] {
            let name = member_name(Path::new(good)).unwrap();
            assert_eq!(member_kind(&name), Some(MemberKind::File(Path::new(good))));
        }
        for bad in [
            "state/../x",
            "/etc/passwd",
            "state//x",
            "state/./x",
            "state/",
            "state",
            "x",
            "state/a/../../x",
            "state/a\n",
            "state/queue/db",
            "state/queue.lock",
            "state/control.sock",
            "state/restore-unfinished",
            "rows/x",
            "state/a/",
        ] {
            assert_eq!(member_kind(bad), None, "{bad}");
        }
    }
}
