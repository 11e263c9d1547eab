//! Tests whether outputs can be written into a folder, by writing: before a transcription is bought for them.

use super::temporary::{Temporary, WorkFolder};
use crate::permission_errors::{denied_message, describe_error};
use crate::rooted_path::RootedPath;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// The free space that is required, in bytes, …
const MIN_FREE: u64 = 16 << 20;

/// … or on a small file system the total divided by this.
const MIN_FREE_DIVISOR: u64 = 16;

/// The number of bytes that the test writes and discards: only then does a user's quota refuse.
const SAMPLE: usize = 4096;

/// Why outputs cannot be written into a folder.
#[derive(Debug, thiserror::Error)]
pub enum Unwritable {
    /// The folder does not exist, and scribed does not create it.
    #[error("the output folder {} does not exist, and scribed does not create folders outside the source: create or mount it", folder.display())]
    Missing { folder: PathBuf },
    /// The user of this process may not write there.
    #[error("cannot write outputs: {}", denied_message(folder))]
    NoPermission {
        /// The folder, or the one in which it would be created.
        folder: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error("the file system of {} is read-only; remount it read-write, so that outputs can be written", folder.display())]
    ReadOnly {
        /// The folder, or the one in which it would be created.
        folder: PathBuf,
    },
    /// The disk, its inodes or the user's quota are used up.
    #[error("no space left in {}{}; free some space", folder.display(), describe_space(*left))]
    NoSpace {
        /// The folder, or the one in which it would be created.
        folder: PathBuf,
        /// The free and the required bytes, if known.
        left: Option<(u64, u64)>,
    },
    /// Any other error of the system.
    #[error("cannot write outputs to {}: {}", folder.display(), describe_error(source, folder))]
    Io {
        /// The folder, or the one in which it would be created.
        folder: PathBuf,
        source: io::Error,
    },
}

fn describe_space(left: Option<(u64, u64)>) -> String {
    let Some((left, least)) = left else { return String::new() };
    format!(" ({} KiB are free, and {} KiB are needed)", left >> 10, least >> 10)
}

/// Tests whether outputs can be written into `folder`. If it does not exist and `may_be_made`, tests the nearest
/// existing folder above it, up to the root. Leaves nothing behind. Blocks.
///
/// # Errors
/// Returns why the folder is [`Unwritable`].
pub fn try_folder(folder: &RootedPath, may_be_made: bool) -> Result<(), Unwritable> {
    let mut nearest = folder.clone();
    let open = loop {
        let is_root = nearest.below().as_os_str().is_empty();
        match WorkFolder::beneath(&nearest, None) {
            Ok(open) => break open,
            Err(error) if error.kind() == io::ErrorKind::NotFound && may_be_made && !is_root => {
                nearest = nearest.parent();
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Unwritable::Missing { folder: folder.full() });
            }
            Err(error) => return Err(unwritable(&nearest.full(), error)),
        }
    };
    let nearest = nearest.full();
    try_write(&open).map_err(|error| unwritable(&nearest, error))?;
    match free_and_required(&open).map_err(|error| unwritable(&nearest, error))? {
        Some((left, least)) if left < least => Err(Unwritable::NoSpace { folder: nearest, left: Some((left, least)) }),
        _ => Ok(()),
    }
}

/// Returns the bytes that this user may still write to the disk of `folder`, or of the nearest existing folder above
/// it. `None` if the file system does not say. Blocks.
pub fn free(folder: &Path) -> Option<u64> {
    disk_space(folder).map(|disk| disk.free)
}

/// The size of a disk, and what this user may still write to it, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    pub free: u64,
    pub size: u64,
}

/// As [`free`], with the size.
pub fn disk_space(folder: &Path) -> Option<DiskSpace> {
    let there = folder.ancestors().find(|above| above.is_dir())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    let [free, size] = [disk.f_bavail, disk.f_blocks].map(|blocks| blocks.saturating_mul(disk.f_frsize));
    (size > 0).then_some(DiskSpace { free, size })
}

fn try_write(open: &WorkFolder) -> io::Result<()> {
    Temporary::write(open, &[0; SAMPLE], 0o600).map(drop)
}

/// Returns the free and the required bytes; `None` if the file system does not say.
fn free_and_required(open: &WorkFolder) -> io::Result<Option<(u64, u64)>> {
    let disk = rustix::fs::fstatvfs(open)?;
    let [left, total] = [disk.f_bavail, disk.f_blocks].map(|blocks| blocks.saturating_mul(disk.f_frsize));
    Ok((total > 0).then(|| (left, MIN_FREE.min(total / MIN_FREE_DIVISOR))))
}

fn unwritable(folder: &Path, source: io::Error) -> Unwritable {
    let folder = folder.to_owned();
    match Errno::from_io_error(&source) {
        Some(Errno::NOSPC | Errno::DQUOT) => Unwritable::NoSpace { folder, left: None },
        Some(Errno::ROFS) => Unwritable::ReadOnly { folder },
        Some(Errno::ACCESS | Errno::PERM) => Unwritable::NoPermission { folder },
        _ => Unwritable::Io { folder, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_folder_is_tried_and_nothing_is_left_in_it() {
        let top = tempfile::tempdir().unwrap();
        try_folder(&RootedPath::new(top.path(), ""), false).unwrap();
        let deep = RootedPath::new(top.path(), "a/b/c");
        try_folder(&deep, true).unwrap();
        assert!(matches!(try_folder(&deep, false), Err(Unwritable::Missing { folder }) if folder == deep.full()));
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
        fs::write(top.path().join("a"), "a file").unwrap();
        assert!(matches!(try_folder(&deep, true), Err(Unwritable::Io { .. })));
    }
}
