//! Files that are written whole or not at all, and a folder that belongs to one process.

use crate::crash_points::{self, Point};
use crate::durable_file::{self, Durability, StagedFile, folder_of};
use crate::permission_errors::explain_state_at;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use uuid::Uuid;

/// Writes a file as [`durable_file::replace`] does, and syncs it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_streamed(path, |to| to.write_all(bytes))
}

/// As [`write_whole`], for content that `write` writes piece by piece.
///
/// # Errors
/// Errors of the file system, and those of `write`.
pub fn write_streamed(path: &Path, write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()> {
    let mut staged = temporary(folder_of(path)?)?;
    let mut to = io::BufWriter::with_capacity(PIECE, &mut staged);
    write(&mut to)?;
    to.flush()?;
    drop(to);
    let finished = staged.finish(Durability::Synced)?;
    crash_points::point(Point::WholeBegun);
    let renamed = finished.rename(path)?;
    crash_points::point(Point::WholeNamed);
    renamed.sync()
}

/// How many bytes are written at once.
const PIECE: usize = 64 << 10;

/// Creates a new file without a lasting name.
pub fn temporary(folder: &Path) -> io::Result<StagedFile> {
    StagedFile::create_in(folder).map_err(explain_state_at(folder))
}

/// Creates a folder that only its owner may enter, and the folders above it. An existing folder is left as it is.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(explain_state_at(path))?;
    match folder_of(path) {
        Ok(above) => durable_file::sync(above).map_err(explain_state_at(above)),
        Err(_) => Ok(()), // the root
    }
}

/// Deletes a file if it exists.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(explain_state_at(path)(error)),
        _ => Ok(()),
    }
}

/// Locks a file for this process for as long as the returned file is open; returns `None` if another process has the
/// lock.
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(explain_state_at(path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes the incomplete files of a dead process in a folder where no process works.
pub fn remove_leftovers(folder: &Path) -> io::Result<()> {
    durable_file::sweep(folder).map(drop).map_err(explain_state_at(folder))
}

/// Returns the ids of the files named `<id>.json` in a folder. Removes the incomplete files of a dead process.
pub fn record_ids(folder: &Path) -> io::Result<Vec<Uuid>> {
    remove_leftovers(folder)?;
    let mut ids = Vec::new();
    for entry in fs::read_dir(folder).map_err(explain_state_at(folder))? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        ids.extend(name.strip_suffix(".json").and_then(parse_id));
    }
    Ok(ids)
}

/// Parses an id in the one spelling that this service gives out; returns `None` for any other text.
pub fn parse_id(text: &str) -> Option<Uuid> {
    // The library also accepts braces, capitals, no hyphens, and a URN.
    Uuid::try_parse(text).ok().filter(|id| id.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text)
}
