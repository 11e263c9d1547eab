//! Files that are there whole or not at all, and a folder that belongs to one process.

use crate::crash::{self, Point};
use crate::permission::at_state;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use tempfile::NamedTempFile;
use uuid::Uuid;

/// The beginning of every temporary name. What begins so when nobody works in the folder was left
/// by a process that died.
pub const TEMPORARY: &str = ".tmp";

/// Makes `path` hold `bytes`: under a temporary name, synced, renamed, the folder synced. After
/// `Ok` it survives power loss; after an error the file is as it was before, or new and whole.
///
/// # Errors
/// Those of the file system.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path)?;
    let mut file = temporary(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    crash::point(Point::WholeBegun);
    file.persist(path)?;
    crash::point(Point::WholeNamed);
    sync_folder(folder)
}

/// As [`write_whole`], of what is written piece by piece.
///
/// # Errors
/// Those of the file system, and those of `write`.
pub fn write_streamed(path: &Path, write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()> {
    let folder = folder_of(path)?;
    let mut file = temporary(folder)?;
    let mut to = io::BufWriter::with_capacity(PIECE, &mut file);
    write(&mut to)?;
    to.flush()?;
    drop(to);
    file.as_file().sync_all()?;
    crash::point(Point::WholeBegun);
    file.persist(path)?;
    crash::point(Point::WholeNamed);
    sync_folder(folder)
}

/// Bytes that are written at once.
const PIECE: usize = 64 << 10;

/// As [`write_whole`], but only where no such file is; whether it was written.
///
/// # Errors
/// Those of the file system.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let folder = folder_of(path)?;
    let mut file = temporary(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => sync_folder(folder).map(|()| true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error),
    }
}

/// A new file without a lasting name, readable by its owner only. It goes when it is dropped.
///
/// # Errors
/// Those of the file system.
pub fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(folder).map_err(at_state(folder))
}

/// Makes the names in a folder survive power loss.
///
/// # Errors
/// Those of the file system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder).map_err(at_state(folder))?.sync_all()
}

/// Makes a folder, and those above it, that only its owner may enter.
///
/// # Errors
/// Those of the file system. That it is there already is none.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at_state(path))?;
    path.parent().map_or(Ok(()), |parent| {
        // A relative path of one name has the empty path above it.
        let above = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        sync_folder(above)
    })
}

/// Deletes a file; that it is not there is no error.
///
/// # Errors
/// Those of the file system.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at_state(path)(error)),
        _ => Ok(()),
    }
}

/// Locks a file for this process, for as long as the answer lives; `None` when another has it.
///
/// # Errors
/// Those of the file system.
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(at_state(path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::Error::other("internal error: a file without a folder"))
}

/// Removes what a dead process left half-done in a folder where nobody works.
///
/// # Errors
/// Those of the file system.
pub fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder).map_err(at_state(folder))? {
        let name = entry?.file_name();
        if name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            remove(&folder.join(name))?;
        }
    }
    Ok(())
}

/// The ids of the files named `<id>.json` in a folder. Removes what a dead process left half-done.
///
/// # Errors
/// Those of the file system.
pub fn ids(folder: &Path) -> io::Result<Vec<Uuid>> {
    sweep(folder)?;
    let mut ids = Vec::new();
    for entry in fs::read_dir(folder).map_err(at_state(folder))? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        ids.extend(name.strip_suffix(".json").and_then(parse_id));
    }
    Ok(ids)
}

/// An id in the one spelling that this service gives out; `None` for any other text.
pub fn parse_id(text: &str) -> Option<Uuid> {
    // The library also takes braces, capitals, no hyphens, and a URN.
    Uuid::try_parse(text).ok().filter(|id| id.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text)
}
