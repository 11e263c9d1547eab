//! Looking at a file without reading it, and reading it once.

use crate::domain::job::Stamp;
use crate::domain::names::Hash;
use crate::permission_errors::explain_error;
use crate::rooted_path::RootedPath;
use crate::source::mount::disk::Disk;
use rustix::fs::FileType;
use std::fs::File;
use std::io::{self, Read};

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLook {
    File(Stamp),
    /// Something else: a folder, link, pipe, socket or device.
    Other,
    Nothing,
}

/// Looks at a path on this disk. Links are not followed.
///
/// # Errors
/// What the file system says, except that nothing is there; and [`crate::rooted_path::LinkInPath`].
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

/// Opens what was seen as a regular file. Whatever has taken its place since, a link is not followed
/// and a pipe does not hang.
///
/// # Errors
/// The error of the file system.
pub fn open(path: &RootedPath) -> io::Result<File> {
    path.open().map_err(|error| explain_error(error, &path.full()))
}

/// The hash of a whole file, read in pieces.
///
/// # Errors
/// The error of the file system.
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
