//! Lists everything below a source's folder with the filter's result, for commands that report. Admits nothing.

use crate::config::model::Source;
use crate::domain::job::Stamp;
use crate::domain::path::RelPath;
use crate::permission_errors::describe_error;
use crate::rooted_path::RootedPath;
use crate::source::filter::rules::{EntryKind, FilterResult, Rule, filter_entry_with_ignore_files};
use crate::source::filter::scribedignore::IgnoreFiles;
use crate::source::mount::disk::Disks;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tokio::sync::mpsc;
use walkdir::{DirEntry, WalkDir};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// A file that the source takes.
    Taken(RelPath, Stamp),
    /// An entry that the source passes over, with everything below it.
    PassedOver(RelPath, Rule),
    /// An entry that could not be read.
    Trouble(String),
}

/// Lists the whole folder. Blocks; returns early when the receiver is closed.
pub fn list_all(source: &Source, disks: &Disks, sender: &mpsc::Sender<Sighting>) {
    let mut entries = WalkDir::new(&source.folder).min_depth(1).follow_links(false).into_iter();
    let mut ignore_files = IgnoreFiles::new(&source.folder);
    while let Some(entry) = entries.next() {
        let sighting = match entry {
            Ok(entry) => {
                let filtered = apply_filter(source, &mut ignore_files, disks, &entry);
                if entry.file_type().is_dir() && matches!(filtered, Some(Sighting::PassedOver(..))) {
                    entries.skip_current_dir();
                }
                filtered
            }
            Err(error) => Some(Sighting::Trouble(describe(&error))),
        };
        for problem in ignore_files.take_problems() {
            sender.blocking_send(Sighting::Trouble(problem)).ok();
        }
        if let Some(sighting) = sighting
            && sender.blocking_send(sighting).is_err()
        {
            return;
        }
    }
}

fn describe(error: &walkdir::Error) -> String {
    match (error.path(), error.io_error()) {
        (Some(path), Some(inner)) => format!("{}: {}", path.display(), describe_error(inner, path)),
        _ => error.to_string(),
    }
}

/// Applies the filter to an entry. Returns `None` for a folder that is traversed.
fn apply_filter(source: &Source, ignore_files: &mut IgnoreFiles, disks: &Disks, entry: &DirEntry) -> Option<Sighting> {
    let path = entry.path().strip_prefix(&source.folder).unwrap_or(Path::new(""));
    let rel_path = RelPath::new(path.as_os_str().as_bytes());
    match filter_entry_with_ignore_files(source, ignore_files, path, EntryKind::from(entry.file_type())) {
        FilterResult::PassedOver(rule) => Some(Sighting::PassedOver(rel_path, rule)),
        FilterResult::Taken if entry.file_type().is_dir() => None,
        // A folder on the path may have been replaced by a link.
        FilterResult::Taken => Some(match RootedPath::new(&source.folder, path).stat() {
            Ok(stat) => Sighting::Taken(rel_path, disks.disk_of(path).stamp_of(&stat)),
            Err(error) => Sighting::Trouble(error.to_string()),
        }),
    }
}
