//! Walking a source's folder: what is taken, what cannot be looked at, what was left half-written.

use crate::config::meant::Source;
use crate::domain::job::Stamp;
use crate::domain::path::RelPath;
use crate::source::choice::{Choice, MOVE_UP, Rule, choose_anywhere, choose_here};
use crate::source::disk::Disk;
use crate::source::ignore::is_leftover;
use crate::source::ignoring::Ignoring;
use std::cell::RefCell;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use walkdir::{DirEntry, WalkDir};

/// Told of each folder before it is read, so that a watch misses nothing of it.
pub type OnFolder = Arc<dyn Fn(&Path) + Send + Sync>;

/// So much is shown of a path that is too long.
const SHOWN: usize = 100;

/// What a walk comes across.
#[derive(Debug)]
pub enum Seen {
    /// A file that the source takes.
    File(RelPath, Stamp),
    /// What could not be looked at, in words.
    Trouble(String),
    /// A folder with an output of ours that is not whole.
    Leftover(PathBuf),
}

/// Walks files and folders given by their paths below the source's folder, and ends early when nobody
/// listens. Links are not followed. Blocks.
pub fn walk(source: &Source, disk: Disk, paths: &[PathBuf], on_folder: Option<&OnFolder>, to: &Sender<Seen>) {
    let ignoring = RefCell::new(Ignoring::new(&source.folder));
    let walk = Walk { source, disk, on_folder, to, ignoring };
    for path in paths {
        if !walk.below(path) {
            return;
        }
    }
}

struct Walk<'a> {
    source: &'a Source,
    disk: Disk,
    on_folder: Option<&'a OnFolder>,
    to: &'a Sender<Seen>,
    ignoring: RefCell<Ignoring>,
}

impl Walk<'_> {
    /// False when nobody listens any more.
    fn below(&self, start: &Path) -> bool {
        let is_root = start.as_os_str().is_empty();
        let full = if is_root { self.source.folder.clone() } else { self.source.folder.join(start) };
        let entries = WalkDir::new(full).follow_links(false).follow_root_links(is_root).into_iter();
        let goes_on = |entry: &DirEntry| match entry.depth() {
            0 => is_root || self.takes_start(start, entry),
            _ => !entry.file_type().is_dir() || self.takes(entry),
        };
        for entry in entries.filter_entry(goes_on) {
            let seen = match entry {
                Ok(entry) => self.look_at(&entry),
                Err(error) => trouble(&error),
            };
            if let Some(seen) = seen
                && self.to.blocking_send(seen).is_err()
            {
                return false;
            }
        }
        true
    }

    fn look_at(&self, entry: &DirEntry) -> Option<Seen> {
        // The source's folder itself may be reached by a link.
        if entry.file_type().is_dir() || self.path(entry).as_os_str().is_empty() {
            self.on_folder.inspect(|told| told(entry.path()));
            return None;
        }
        if is_leftover(entry.file_name()) {
            return entry.path().parent().map(|folder| Seen::Leftover(folder.to_owned()));
        }
        if !self.takes(entry) {
            return None;
        }
        match entry.metadata() {
            Ok(meta) => Some(Seen::File(RelPath::new(self.path(entry).as_os_str().as_bytes()), self.disk.stamp(&meta))),
            Err(error) => trouble(&error),
        }
    }

    fn takes(&self, entry: &DirEntry) -> bool {
        let mut ignoring = self.ignoring.borrow_mut();
        let choice = choose_here(self.source, &mut ignoring, self.path(entry), entry.file_type().into());
        for trouble in ignoring.troubles() {
            self.to.blocking_send(Seen::Trouble(trouble)).ok();
        }
        match choice {
            Choice::Taken => true,
            Choice::PassedOver(rule) => {
                // Nobody could look at it by its path and ask.
                if rule == Rule::TooLong {
                    let start: String = self.path(entry).to_string_lossy().chars().take(SHOWN).collect();
                    self.to.blocking_send(Seen::Trouble(format!("{start}…: {rule}"))).ok();
                }
                false
            }
        }
    }

    /// Nobody has looked at the folders above.
    fn takes_start(&self, start: &Path, entry: &DirEntry) -> bool {
        is_leftover(entry.file_name()) || choose_anywhere(self.source, start, entry.file_type().into()) == Choice::Taken
    }

    fn path<'e>(&self, entry: &'e DirEntry) -> &'e Path {
        entry.path().strip_prefix(&self.source.folder).unwrap_or(Path::new(""))
    }
}

/// What went away under way is no trouble.
fn trouble(error: &walkdir::Error) -> Option<Seen> {
    let path = error.path().unwrap_or(Path::new("")).display();
    Some(Seen::Trouble(match error.io_error() {
        Some(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Some(error) if error.kind() == io::ErrorKind::InvalidFilename => {
            format!("{path}: nothing below is looked at: the paths there are longer than the system opens; {MOVE_UP}")
        }
        Some(error) => format!("{path}: {error}"),
        None => error.to_string(),
    }))
}
