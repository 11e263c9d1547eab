//! Looking at a file without reading it, and reading it once.

use crate::domain::job::Stamp;
use crate::domain::names::{Hash, Timestamp};
use rustix::fs::{Mode, OFlags};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A regular file.
    File(Stamp),
    /// Something else: a folder, link, pipe, socket or device.
    Other,
    /// Nothing.
    Nothing,
}

/// Looks at a path. Links are not followed.
///
/// # Errors
/// What the file system says, except that nothing is there.
pub fn look(path: &Path) -> io::Result<Look> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(Look::File(stamp(&meta))),
        Ok(_) => Ok(Look::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Look::Nothing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(Look::Nothing),
        Err(error) => Err(error),
    }
}

/// The stamp of an open or listed file.
pub fn stamp(meta: &Metadata) -> Stamp {
    let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Stamp {
        size: meta.len(),
        mtime_ns: nanos(meta.mtime(), meta.mtime_nsec()),
        ctime_ns: nanos(meta.ctime(), meta.ctime_nsec()),
        inode: meta.ino(),
    }
}

/// Whether a file's ctime can be trusted to say when it last changed: on local disks nobody can
/// preset it (design, promise 3).
pub fn ctime_is_honest(folder: &Path) -> bool {
    const EXT4: i64 = 0xEF53;
    const XFS: i64 = 0x5846_5342;
    const BTRFS: i64 = 0x9123_683E;
    rustix::fs::statfs(folder).is_ok_and(|fs| matches!(fs.f_type, EXT4 | XFS | BTRFS))
}

/// Whether a file with an honest ctime has been quiet for `settle`, without a second look.
pub fn quiet_since_ctime(stamp: &Stamp, now: Timestamp, settle: std::time::Duration) -> bool {
    let changed = Timestamp(stamp.ctime_ns.div_euclid(1_000_000));
    changed <= now && now.since(changed) > settle
}

/// Opens what was seen as a regular file. Whatever has taken its place since, a link is not followed
/// and a pipe does not hang.
///
/// # Errors
/// What the file system says.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// The hash of a whole file, read in pieces.
///
/// # Errors
/// What the file system says.
pub fn hash(path: &Path) -> io::Result<Hash> {
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
