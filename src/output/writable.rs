//! Whether outputs can be written into a folder, tried as a write does it: before anything is bought for them.

use super::temporary::{Temporary, WorkFolder};
use crate::permission_errors::{denied_message, describe_error};
use crate::rooted_path::RootedPath;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// So much has to be free, in bytes …
const LEAST: u64 = 16 << 20;

/// … or, on a small file system, this part of it.
const PART: u64 = 16;

/// Bytes that are written, and thrown away: a user's quota says no only then.
const SAMPLE: usize = 4096;

/// Why outputs cannot be written into a folder.
#[derive(Debug, thiserror::Error)]
pub enum Unwritable {
    /// It is not there, and is none that scribed makes.
    #[error("the output folder {} does not exist, and scribed does not create folders outside the source: create or mount it", folder.display())]
    Missing { folder: PathBuf },
    /// This user may not write there.
    #[error("cannot write outputs: {}", denied_message(folder))]
    NoPermission {
        /// It, or the folder that it would be made in.
        folder: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error("the file system of {} is read-only; remount it read-write, so that outputs can be written", folder.display())]
    ReadOnly {
        /// It, or the folder that it would be made in.
        folder: PathBuf,
    },
    /// The disk, its inodes or the user's quota are used up.
    #[error("no space left for outputs in {}{}; free some space", folder.display(), shown(*left))]
    NoSpace {
        /// It, or the folder that it would be made in.
        folder: PathBuf,
        /// What is free and what has to be, in bytes, where that is known.
        left: Option<(u64, u64)>,
    },
    /// Anything else that the system said.
    #[error("cannot write outputs to {}: {}", folder.display(), describe_error(source, folder))]
    Io {
        /// It, or the folder that it would be made in.
        folder: PathBuf,
        source: io::Error,
    },
}

fn shown(left: Option<(u64, u64)>) -> String {
    let Some((left, least)) = left else { return String::new() };
    format!(" ({} KiB are free, and {} KiB are needed)", left >> 10, least >> 10)
}

/// Tries whether outputs can be written into `folder`; where it is not there yet and `may_be_made`, into the folder
/// that it would be made in. Leaves nothing. Blocks.
///
/// # Errors
/// [`Unwritable`].
pub fn try_folder(folder: &RootedPath, may_be_made: bool) -> Result<(), Unwritable> {
    let mut at = folder.clone();
    let open = loop {
        let is_root = at.below().as_os_str().is_empty();
        match WorkFolder::beneath(&at, None) {
            Ok(open) => break open,
            Err(error) if error.kind() == io::ErrorKind::NotFound && may_be_made && !is_root => at = at.parent(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Unwritable::Missing { folder: folder.full() });
            }
            Err(error) => return Err(of(&at.full(), error)),
        }
    };
    let at = at.full();
    try_write(&open).map_err(|error| of(&at, error))?;
    match room(&open).map_err(|error| of(&at, error))? {
        Some((left, least)) if left < least => Err(Unwritable::NoSpace { folder: at, left: Some((left, least)) }),
        _ => Ok(()),
    }
}

/// Bytes that this user may still write to the disk of a folder, or of the nearest one above it that is there. `None`:
/// the file system does not say. Blocks.
pub fn free(folder: &Path) -> Option<u64> {
    let there = folder.ancestors().find(|above| above.is_dir())?;
    let disk = rustix::fs::statvfs(there).ok()?;
    (disk.f_blocks > 0).then(|| disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn try_write(open: &WorkFolder) -> io::Result<()> {
    Temporary::write(open, &[0; SAMPLE], 0o600).map(drop)
}

/// What is free, and what has to be. `None`: the file system does not say.
fn room(open: &WorkFolder) -> io::Result<Option<(u64, u64)>> {
    let disk = rustix::fs::fstatvfs(open)?;
    let [left, all] = [disk.f_bavail, disk.f_blocks].map(|blocks| blocks.saturating_mul(disk.f_frsize));
    Ok((all > 0).then(|| (left, LEAST.min(all / PART))))
}

fn of(folder: &Path, source: io::Error) -> Unwritable {
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
