//! Looks up a file's state, opens it safely, and hashes it.

use crate::domain::job::Stamp;
use crate::domain::names::Hash;
use crate::permission_errors::explain_error;
use crate::rooted_path::RootedPath;
use crate::source::mount::disk::Disk;
use rustix::fs::FileType;
use std::fs::File;
use std::io::{self, Read};

/// What is found at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLook {
    File(Stamp),
    /// Another kind of entry: a folder, link, pipe, socket or device.
    Other,
    Nothing,
}

/// Looks up what is at a path, with the stamp that this kind of disk supports. Links are not followed.
///
/// # Errors
/// The error of the file system, except for a missing file; [`crate::rooted_path::LinkInPath`] if a link is in the
/// path.
pub fn stat(path: &RootedPath, disk: Disk) -> io::Result<FileLook> {
    match path.stat() {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            Ok(FileLook::File(disk.stamp_of(&stat)))
        }
        Ok(_) => Ok(FileLook::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FileLook::Nothing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(FileLook::Nothing),
        Err(error) => Err(explain_error(error, &path.full())),
    }
}

/// Opens what was a regular file when it was looked up. If something else has replaced it, a link is not followed and a
/// pipe does not block.
pub fn open(path: &RootedPath) -> io::Result<File> {
    path.open().map_err(|error| explain_error(error, &path.full()))
}

/// Computes the hash of the whole file, reading it in chunks.
pub fn hash(path: &RootedPath) -> io::Result<Hash> {
    let mut file = open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; 1 << 18];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(Hash(*hasher.finalize().as_bytes())),
            n => hasher.update(&piece[..n]),
        };
    }
}
