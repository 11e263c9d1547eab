//! A file that is not yet an output: under a name of its own until it is whole.

use rustix::fs::{AtFlags, Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A written file under a temporary name; removed when it is dropped unpublished.
///
/// It holds a lock on the file while it lives, which the kernel drops when the process dies: that
/// is how a leftover is told from a file that another process is still writing.
pub struct Temporary<'a> {
    folder: &'a OwnedFd,
    name: String,
    /// Kept open for its lock and its sync.
    file: File,
    published: bool,
}

impl<'a> Temporary<'a> {
    /// Writes `bytes` to a new file in the folder. The umask is applied to `mode`.
    pub fn write(folder: &'a OwnedFd, bytes: &[u8], mode: u32) -> io::Result<Self> {
        let name = format!(".{}{SUFFIX}", uuid::Uuid::new_v4().simple());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let file = File::from(rustix::fs::openat(folder, &name, flags, mode)?);
        // A file system without locks only loses the removal of leftovers.
        let _ = file.try_lock();
        let temporary = Self { folder, name, file, published: false };
        (&temporary.file).write_all(bytes)?;
        Ok(temporary)
    }

    /// Returns when the disk has it.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Its name in the folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// It has another name now: there is nothing left to remove.
    pub fn published(mut self) {
        self.published = true;
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.published {
            // What cannot be removed now is removed by a later sweep.
            let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// Opens a folder to work in; whoever moves it meanwhile does not mislead the writes.
pub fn open_folder(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?)
}

/// Removes the temporary files in `folder` whose writer is dead, and says how many there were.
pub fn remove_leftovers(folder: &Path) -> io::Result<usize> {
    let fd = open_folder(folder)?;
    let mut removed = 0;
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        if is_temporary(&name) && is_abandoned(&fd, &name) {
            removed += usize::from(rustix::fs::unlinkat(&fd, &name, AtFlags::empty()).is_ok());
        }
    }
    Ok(removed)
}

const SUFFIX: &str = ".scribed-tmp";

/// Exactly the form that [`Temporary::write`] gives: a dot, 32 lower-case hexadecimal digits, the
/// suffix.
fn is_temporary(name: &OsStr) -> bool {
    let digit = |c: &u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    let middle = name.as_bytes().strip_prefix(b".").and_then(|n| n.strip_suffix(SUFFIX.as_bytes()));
    middle.is_some_and(|middle| middle.len() == 32 && middle.iter().all(digit))
}

/// Whether it is a regular file that nobody holds locked. Where that cannot be told it is not.
fn is_abandoned(folder: &OwnedFd, name: &OsStr) -> bool {
    // Not blocking: a pipe of that name must not hang the sweep.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(fd) = rustix::fs::openat(folder, name, flags, Mode::empty()) else {
        return false;
    };
    let file = File::from(fd);
    file.metadata().is_ok_and(|meta| meta.is_file()) && file.try_lock().is_ok()
}
