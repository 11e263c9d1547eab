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
pub fn list_all(source: &Source, disks: &Disks, to: &mpsc::Sender<Sighting>) {
    let mut entries = WalkDir::new(&source.folder).min_depth(1).follow_links(false).into_iter();
    let mut ignoring = IgnoreFiles::new(&source.folder);
    while let Some(entry) = entries.next() {
        let sighting = match entry {
            Ok(entry) => {
                let seen = look_at(source, &mut ignoring, disks, &entry);
                if entry.file_type().is_dir() && matches!(seen, Some(Sighting::PassedOver(..))) {
                    entries.skip_current_dir();
                }
                seen
            }
            Err(error) => Some(Sighting::Trouble(words(&error))),
        };
        for trouble in ignoring.take_problems() {
            to.blocking_send(Sighting::Trouble(trouble)).ok();
        }
        if let Some(sighting) = sighting
            && to.blocking_send(sighting).is_err()
        {
            return;
        }
    }
}

fn words(error: &walkdir::Error) -> String {
    match (error.path(), error.io_error()) {
        (Some(path), Some(inner)) => format!("{}: {}", path.display(), describe_error(inner, path)),
        _ => error.to_string(),
    }
}

/// Applies the filter to an entry. Returns `None` for a folder that is traversed.
fn look_at(source: &Source, ignoring: &mut IgnoreFiles, disks: &Disks, entry: &DirEntry) -> Option<Sighting> {
    let path = entry.path().strip_prefix(&source.folder).unwrap_or(Path::new(""));
    let shown = RelPath::new(path.as_os_str().as_bytes());
    match filter_entry_with_ignore_files(source, ignoring, path, EntryKind::from(entry.file_type())) {
        FilterResult::PassedOver(rule) => Some(Sighting::PassedOver(shown, rule)),
        FilterResult::Taken if entry.file_type().is_dir() => None,
        // A folder on the path may have been replaced by a link.
        FilterResult::Taken => Some(match RootedPath::new(&source.folder, path).stat() {
            Ok(stat) => Sighting::Taken(shown, disks.disk_of(path).stamp_of(&stat)),
            Err(error) => Sighting::Trouble(error.to_string()),
        }),
    }
}
