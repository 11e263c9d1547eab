//! The record of kept results that were removed for their age (`[state] keep_results`): in each folder of results, a file
//! with a line for each of them. The line is synced before its result is removed, so that a result that is not there is
//! either recorded or damage.

use crate::domain::names::Timestamp;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The name of the file. No result is called so.
pub const REMOVED: &str = "removed";

/// Records the removal of these results of a folder. They may still exist: their removal comes next. Blocks.
pub(super) fn record<'n>(folder: &Path, names: impl Iterator<Item = &'n str>, at: Timestamp) -> io::Result<()> {
    // Each line begins with a line break, too: one that a killed process left half-written ends there.
    let lines: String = names.map(|name| format!("\n{name} {}\n", at.0)).collect();
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).mode(0o600).open(folder.join(REMOVED))?;
    file.write_all(lines.as_bytes())?;
    file.sync_data()?;
    crate::durable_file::sync(folder)
}

/// Returns when a result of a folder was removed last; `None` if it is not recorded. Blocks.
pub(super) fn removal_of(folder: &Path, name: &str) -> Option<Timestamp> {
    let content = fs::read(folder.join(REMOVED)).ok()?;
    entries(&String::from_utf8_lossy(&content)).filter(|(of, _)| *of == name).last().map(|(_, at)| at)
}

/// Returns the names of the removed results, and when each was removed. A line that is none is skipped.
pub fn entries(content: &str) -> impl Iterator<Item = (&str, Timestamp)> {
    content.lines().filter_map(|line| {
        let (name, at) = line.split_once(' ')?;
        Some((name, Timestamp(at.parse().ok()?)))
    })
}
