//! A file that is not yet an output: it has no name, or a temporary one, until it is complete.
//!
//! This is not [`durable_file`](crate::durable_file), because the folder belongs to other people. Every call uses the
//! open folder (`*at(2)`), so that no link or renamed folder redirects it; no file of another program is replaced
//! ([`exchange`]); several outputs are synced together ([`group_fsync`](super::group_fsync)); and a lock tells the
//! files of a dead process, because other processes may work in the folder.

use super::exchange;
use super::group_fsync::can_sync_whole;
use crate::domain::file_permissions::Access;
use crate::rooted_path::{self, RootedPath};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A written file that is not published yet; it is deleted when dropped unpublished.
///
/// Where the file system allows it, the file has no name at all, and a killed process leaves nothing. Otherwise it has
/// a temporary name and holds a lock, which the kernel releases when the process dies: so a sweep can tell a leftover
/// from a file that another process is still writing.
pub struct Temporary<'a> {
    folder: &'a WorkFolder,
    /// `None` if it has no name.
    name: Option<OsString>,
    /// Kept open for the lock and the sync.
    file: Arc<File>,
}

impl<'a> Temporary<'a> {
    /// Writes `bytes` to a new file that will get a free name. The umask is applied to `mode`; if the folder was opened
    /// with an [`Access`], the file gets that instead.
    pub fn write(folder: &'a WorkFolder, bytes: &[u8], mode: u32) -> io::Result<Self> {
        if !folder.takes_nameless {
            return Self::write_named(folder, bytes, mode);
        }
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        match rustix::fs::openat(folder, ".", flags, folder.first_mode(mode)) {
            Ok(fd) => Self::fill(folder, None, File::from(fd), bytes),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Self::write_named(folder, bytes, mode),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes `bytes` to a new file with a temporary name, which can replace another file.
    pub fn write_named(folder: &'a WorkFolder, bytes: &[u8], mode: u32) -> io::Result<Self> {
        let name = rooted_path::temporary_name();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(folder, &name, flags, folder.first_mode(mode))?);
        // Without locks in the file system, a sweep may take the file for a leftover; nothing else depends on the lock.
        let _ = file.try_lock();
        Self::fill(folder, Some(name.into()), file, bytes)
    }

    fn fill(folder: &'a WorkFolder, name: Option<OsString>, file: File, bytes: &[u8]) -> io::Result<Self> {
        let temporary = Self { folder, name, file: Arc::new(file) };
        (&*temporary.file).write_all(bytes)?;
        if let Some(access) = &folder.access {
            rooted_path::give(access, &*temporary.file);
        }
        Ok(temporary)
    }

    /// Returns the open file, for syncing.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Returns the temporary name, if it has one. Only a file with a name can replace another.
    pub fn name(&self) -> Option<&OsStr> {
        self.name.as_deref()
    }

    /// Gives the file a name that no other file has. Fails with `EXIST` if the name is taken; the file then stays as it
    /// was.
    pub fn publish_new(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        match &self.name {
            None => link(self.folder, &self.file, name),
            Some(own) => rename_to_new(self.folder, own, name).map(|()| self.name = None),
        }
    }

    /// Gives the file another temporary name. Fails with `EXIST` if the name is taken, and with `INVAL` if the file has
    /// no name.
    pub(super) fn rename_own(&mut self, to: &OsStr) -> rustix::io::Result<()> {
        let own = self.name.as_ref().ok_or(Errno::INVAL)?;
        rename_to_new(self.folder, own, to).map(|()| self.name = Some(to.to_owned()))
    }

    /// Records that another file has its name now.
    pub(super) fn clear_name(&mut self) {
        self.name = None;
    }

    /// Records that the file has this name again.
    pub(super) fn set_name(&mut self, name: OsString) {
        self.name = Some(name);
    }

    /// Replaces whatever has the name `name`. Fails with `INVAL` if the file has no name.
    pub fn publish_over(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        let own = self.name.as_ref().ok_or(Errno::INVAL)?;
        rustix::fs::renameat(self.folder, own, self.folder, name).map(|()| self.name = None)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // A later sweep removes what cannot be removed now.
            let _ = rustix::fs::unlinkat(self.folder, name, AtFlags::empty());
        }
    }
}

/// Gives a nameless file a name: through its descriptor, or, where an older kernel allows that to root only, through
/// its entry in `/proc`.
fn link(folder: &WorkFolder, file: &File, name: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::linkat(file, "", folder, name, AtFlags::EMPTY_PATH) {
        Err(Errno::NOENT) => link_by_proc(folder, file, name),
        done => done,
    }
}

fn link_by_proc(folder: &WorkFolder, file: &File, name: &OsStr) -> rustix::io::Result<()> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(rustix::fs::CWD, &path, folder, name, AtFlags::SYMLINK_FOLLOW)
}

/// An open folder. Because it is open, moving it does not redirect the writes.
pub struct WorkFolder {
    file: Arc<File>,
    takes_nameless: bool,
    exchanges: bool,
    access: Option<Access>,
}

impl WorkFolder {
    /// Opens a folder of scribed's own.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Self::beneath(&RootedPath::new(folder, ""), None)
    }

    /// Opens the folder. Files written into it get `access`; with `None`, the umask decides.
    pub fn beneath(folder: &RootedPath, access: Option<Access>) -> io::Result<Self> {
        let file = folder.open_folder()?;
        // Giving a nameless file its name changes the file, which must then be synced again. That costs nothing where
        // the whole file system can be synced.
        let takes_nameless = can_sync_whole(&file);
        Ok(Self { file: Arc::new(file), takes_nameless, exchanges: true, access })
    }

    /// Returns the mode to create a file with. A file that gets an [`Access`] is private until it has it.
    fn first_mode(&self, mode: u32) -> Mode {
        Mode::from_raw_mode(if self.access.is_some() { 0o600 } else { mode })
    }

    /// Returns the open folder, for syncing.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Whether exchanging two files is tried.
    pub(super) fn supports_exchange(&self) -> bool {
        self.exchanges
    }

    #[cfg(test)]
    pub(super) fn with_exchange(self, exchanges: bool) -> Self {
        Self { exchanges, ..self }
    }

    /// Renames only if nothing has the name; otherwise `EXIST`.
    pub(super) fn rename_to_new(&self, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
        rename_to_new(self, from, to)
    }
}

impl AsFd for WorkFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Removes the temporary files in `folder` whose process is dead, and returns how many it removed. Recovers the files
/// that such a process had swapped out.
pub fn remove_leftovers(folder: &RootedPath) -> io::Result<usize> {
    let fd = WorkFolder::beneath(folder, None)?;
    let mut removed = 0;
    for name in rooted_path::names(fd.as_fd())? {
        let name = name?;
        if exchange::is_swap_name(&name) {
            // If another process works in the folder, or recovery fails, the next sweep tries again.
            let _ = exchange::recover(&fd, &name);
        }
        if is_temporary(&name)
            && let Some(unlink_flags) = abandoned(&fd, &name)
        {
            removed += usize::from(rustix::fs::unlinkat(&fd, &name, unlink_flags).is_ok());
        }
    }
    Ok(removed)
}

/// Whether the name has exactly the form of [`rooted_path::temporary_name`].
fn is_temporary(name: &OsStr) -> bool {
    let digit = |c: &u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    let middle = name.as_bytes().strip_prefix(b".").and_then(|n| n.strip_suffix(rooted_path::TEMPORARY.as_bytes()));
    middle.is_some_and(|middle| middle.len() == 32 && middle.iter().all(digit))
}

/// Returns the flags to remove a file or folder that no process holds locked; `None` if it is locked or that cannot be
/// determined. A folder is only removed if it is empty.
fn abandoned(folder: &WorkFolder, name: &OsStr) -> Option<AtFlags> {
    // `NONBLOCK`: a pipe of that name must not block the sweep.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?);
    let meta = file.metadata().ok()?;
    let unlink_flags = if meta.is_dir() { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    ((meta.is_file() || meta.is_dir()) && file.try_lock().is_ok()).then_some(unlink_flags)
}

/// Renames only if nothing has the name; otherwise `EXIST`. By the surest way that the file system
/// knows: local ones know the first, NFS the second, FAT and some network shares only the third.
fn rename_to_new(folder: &WorkFolder, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    match rename_no_replace(folder, from, to) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        done => return done,
    }
    match link_and_unlink(folder, from, to) {
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP | Errno::MLINK | Errno::INVAL) => {
            look_and_rename(folder, from, to)
        }
        done => done,
    }
}

fn rename_no_replace(folder: &WorkFolder, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE)
}

fn link_and_unlink(folder: &WorkFolder, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::linkat(folder, from, folder, to, AtFlags::empty())?;
    rustix::fs::unlinkat(folder, from, AtFlags::empty())
}

/// Checks the name and then renames. Another program can take the name in between; such file systems offer no better
/// way.
fn look_and_rename(folder: &WorkFolder, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::statat(folder, to, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => rustix::fs::renameat(folder, from, folder, to),
        Err(error) => Err(error),
        Ok(_) => Err(Errno::EXIST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn listing(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn every_way_of_renaming_spares_what_is_there() {
        type Way = fn(&WorkFolder, &OsStr, &OsStr) -> rustix::io::Result<()>;
        for way in [rename_no_replace as Way, link_and_unlink, look_and_rename] {
            let folder = TempDir::new().unwrap();
            let open = WorkFolder::open(folder.path()).unwrap();
            fs::write(folder.path().join("new"), b"new").unwrap();
            symlink("nowhere", folder.path().join("taken")).unwrap();
            assert_eq!(way(&open, "new".as_ref(), "taken".as_ref()), Err(Errno::EXIST));
            way(&open, "new".as_ref(), "free".as_ref()).unwrap();
            assert_eq!(listing(&folder), ["free", "taken"]);
        }
    }

    #[test]
    fn with_a_name_or_without_it_spares_what_is_there_and_leaves_nothing() {
        for takes_nameless in [false, true] {
            let folder = TempDir::new().unwrap();
            let open = WorkFolder { takes_nameless, ..WorkFolder::open(folder.path()).unwrap() };
            fs::write(folder.path().join("taken"), b"theirs").unwrap();
            drop(Temporary::write(&open, b"given up", 0o666).unwrap());
            let mut temporary = Temporary::write(&open, b"ours", 0o666).unwrap();
            assert_eq!(temporary.publish_new("taken".as_ref()), Err(Errno::EXIST));
            temporary.publish_new("free".as_ref()).unwrap();
            drop(temporary);
            assert_eq!(listing(&folder), ["free", "taken"]);
            assert_eq!(fs::read(folder.path().join("free")).unwrap(), b"ours");
            assert_eq!(fs::read(folder.path().join("taken")).unwrap(), b"theirs");
        }
    }

    #[test]
    fn a_nameless_file_is_named_by_proc_too() {
        let folder = TempDir::new().unwrap();
        let open = WorkFolder { takes_nameless: true, ..WorkFolder::open(folder.path()).unwrap() };
        let temporary = Temporary::write(&open, b"ours", 0o666).unwrap();
        assert_eq!(temporary.name(), None, "the tests' disk takes nameless files");
        link_by_proc(&open, &temporary.file, "named".as_ref()).unwrap();
        assert_eq!(listing(&folder), ["named"]);
    }

    #[test]
    fn only_a_named_file_takes_anothers_place() {
        let folder = TempDir::new().unwrap();
        let open = WorkFolder::open(folder.path()).unwrap();
        fs::write(folder.path().join("old"), b"old").unwrap();
        let mut temporary = Temporary::write_named(&open, b"new", 0o666).unwrap();
        temporary.publish_over("old".as_ref()).unwrap();
        assert_eq!(fs::read(folder.path().join("old")).unwrap(), b"new");
        assert_eq!(listing(&folder), ["old"]);
    }
}
