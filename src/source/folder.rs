//! A folder as a source: finding its files.

use crate::clock::Clock;
use crate::config::meant::Source;
use crate::crash::{self, Point};
use crate::domain::job::{JobKey, Stamp};
use crate::domain::path::RelPath;
use crate::source::choice::{Choice, choose_entry};
use crate::source::ignore::is_leftover;
use crate::source::stamp::{ctime_is_honest, quiet_since_ctime, stamp};
use crate::store::contract::{Admission, Store, StoreError};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use walkdir::{DirEntry, WalkDir};

/// The whole path of a file below a source's folder.
pub fn full_path(folder: &Path, path: &RelPath) -> PathBuf {
    folder.join(OsStr::from_bytes(path.as_bytes()))
}

/// What a scan came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Files that the source's patterns take.
    pub files: u64,
    /// Of these, how many were new or had changed after their end.
    pub admitted: u64,
    /// What could not be read, in words; at most [`TOLD`] of them.
    pub troubles: Vec<String>,
    /// Whether the folder itself was there.
    pub there: bool,
    /// Folders in which a killed process left an output half-written.
    pub leftovers: BTreeSet<PathBuf>,
}

/// So many unreadable folders are named; the rest is a number in the last line.
pub const TOLD: usize = 20;

/// Scans a folder once and admits what its patterns take, and says so by `admitted`. A folder that is not there changes nothing.
///
/// # Errors
/// The store's.
pub async fn scan(
    source: &Source,
    store: &dyn Store,
    clock: &dyn Clock,
    admitted: &(dyn Fn() + Sync),
) -> Result<Scanned, StoreError> {
    let mut scanned = Scanned { there: source.folder.is_dir(), ..Scanned::default() };
    if !scanned.there {
        scanned.troubles.push(format!("the folder {} is not there", source.folder.display()));
        return Ok(scanned);
    }
    let honest = ctime_is_honest(&source.folder);
    let (to, mut found) = mpsc::channel(1024);
    let walker = walk(source, to);
    while let Some(seen) = found.recv().await {
        match seen {
            Seen::File(path, stamp) => {
                let key = JobKey { source: source.name.clone(), path };
                scanned.files += 1;
                let now = clock.now();
                let quiet = honest && quiet_since_ctime(&stamp, now, source.settle);
                let due = if quiet { now } else { now.after(source.settle) };
                crash::point(Point::Admitting);
                let admission = store.admit(&key, stamp, now, due).await?;
                crash::point(Point::Admitted);
                if !matches!(admission, Admission::Known(_)) {
                    scanned.admitted += 1;
                    admitted();
                }
            }
            Seen::Trouble(trouble) if scanned.troubles.len() < TOLD => scanned.troubles.push(trouble),
            Seen::Trouble(_) => {}
            Seen::Leftover(folder) => {
                scanned.leftovers.insert(folder);
            }
        }
    }
    walker.await.ok();
    Ok(scanned)
}

enum Seen {
    File(RelPath, Stamp),
    Trouble(String),
    Leftover(PathBuf),
}

/// Walks on a thread of its own: a slow mount must not hold up the rest.
fn walk(source: &Source, to: mpsc::Sender<Seen>) -> tokio::task::JoinHandle<()> {
    let source = source.clone();
    tokio::task::spawn_blocking(move || {
        let entries = WalkDir::new(&source.folder).follow_links(false).into_iter();
        let goes_on = |entry: &DirEntry| entry.depth() == 0 || !entry.file_type().is_dir() || is_taken(&source, entry);
        for entry in entries.filter_entry(goes_on) {
            let seen = match entry {
                Ok(entry) if !entry.file_type().is_file() => None,
                Ok(entry) if is_leftover(entry.file_name()) => entry.path().parent().map(|p| Seen::Leftover(p.into())),
                Ok(entry) if is_taken(&source, &entry) => look_at(&source.folder, &entry),
                Ok(_) => None,
                Err(error) => Some(Seen::Trouble(error.to_string())),
            };
            if let Some(seen) = seen
                && to.blocking_send(seen).is_err()
            {
                return;
            }
        }
    })
}

fn is_taken(source: &Source, entry: &DirEntry) -> bool {
    let path = entry.path().strip_prefix(&source.folder).unwrap_or(Path::new(""));
    choose_entry(source, path, entry.file_type().into()) == Choice::Taken
}

fn look_at(folder: &Path, entry: &DirEntry) -> Option<Seen> {
    let path = entry.path().strip_prefix(folder).ok()?;
    Some(match entry.metadata() {
        Ok(meta) => Seen::File(RelPath::new(path.as_os_str().as_bytes()), stamp(&meta)),
        Err(error) => Seen::Trouble(error.to_string()),
    })
}
