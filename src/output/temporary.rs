//! A file that is not yet an output: under a name of its own until it is whole.
//!
//! Not [`durable_file`](crate::durable_file), since the folder is other people's: every call goes through the open
//! folder (`*at(2)`), so that no link and no renamed folder leads elsewhere; nothing of another program is replaced
//! ([`exchange`]); several outputs are synced together ([`group_fsync`](super::group_fsync)); and what a dead process
//! left is told by a lock, as others may work in the folder.

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

/// A written file that nobody sees yet; gone when it is dropped unpublished.
///
/// Where the file system allows it, it has no name at all, and a killed process leaves nothing. Else
/// it stands under a temporary name, and holds a lock while it lives, which the kernel drops when the
/// process dies: that is how a leftover is told from a file that another process is still writing.
pub struct Temporary<'a> {
    folder: &'a WorkFolder,
    /// `None` while it has no name at all.
    name: Option<OsString>,
    /// Kept open for its lock and its sync.
    file: Arc<File>,
}

impl<'a> Temporary<'a> {
    /// Writes `bytes` to a new file that is to get a name of its own. The umask is applied to `mode`, unless the folder
    /// was opened for outputs that take somebody's access.
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

    /// Writes `bytes` to a new file that is to take another one's place.
    pub fn write_named(folder: &'a WorkFolder, bytes: &[u8], mode: u32) -> io::Result<Self> {
        let name = rooted_path::temporary_name();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(folder, &name, flags, folder.first_mode(mode))?);
        // A file system without locks only loses the removal of leftovers.
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

    /// The open file, to be synced.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Its name, if it has one: only then can it take another one's place.
    pub fn name(&self) -> Option<&OsStr> {
        self.name.as_deref()
    }

    /// Gives it a name that nothing has; otherwise `EXIST`, and it stays as it was.
    pub fn publish_new(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        match &self.name {
            None => link(self.folder, &self.file, name),
            Some(own) => rename_to_new(self.folder, own, name).map(|()| self.name = None),
        }
    }

    /// Gives it another temporary name that nothing has; otherwise `EXIST`. Only for one that has a name.
    pub(super) fn rename_own(&mut self, to: &OsStr) -> rustix::io::Result<()> {
        let own = self.name.as_ref().ok_or(Errno::INVAL)?;
        rename_to_new(self.folder, own, to).map(|()| self.name = Some(to.to_owned()))
    }

    /// Another file has its name now.
    pub(super) fn clear_name(&mut self) {
        self.name = None;
    }

    /// It has this name again.
    pub(super) fn set_name(&mut self, name: OsString) {
        self.name = Some(name);
    }

    /// Puts it in another one's place, whatever that is. Only for one that has a name.
    pub fn publish_over(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        let own = self.name.as_ref().ok_or(Errno::INVAL)?;
        rustix::fs::renameat(self.folder, own, self.folder, name).map(|()| self.name = None)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // What cannot be removed now is removed by a later sweep.
            let _ = rustix::fs::unlinkat(self.folder, name, AtFlags::empty());
        }
    }
}

/// Gives a nameless file its name: by the file itself, or where an older kernel keeps that for root,
/// by its entry in `/proc`.
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

/// A folder to work in; whoever moves it meanwhile does not mislead the writes.
pub struct WorkFolder {
    file: Arc<File>,
    takes_nameless: bool,
    exchanges: bool,
    access: Option<Access>,
}

impl WorkFolder {
    /// Opens one of scribed's own.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Self::beneath(&RootedPath::new(folder, ""), None)
    }

    /// Opens it. `access`: who may use what is written into it; `None`: as the umask says.
    pub fn beneath(folder: &RootedPath, access: Option<Access>) -> io::Result<Self> {
        let file = folder.open_folder()?;
        // A name given later is a change of the file too, which must be synced once more: where a
        // whole file system can be synced, that costs nothing.
        let takes_nameless = can_sync_whole(&file);
        Ok(Self { file: Arc::new(file), takes_nameless, exchanges: true, access })
    }

    /// Nobody else may read a file before it has its own mode.
    fn first_mode(&self, mode: u32) -> Mode {
        Mode::from_raw_mode(if self.access.is_some() { 0o600 } else { mode })
    }

    /// It, open, to be synced.
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Whether it is tried that two files change places.
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

/// Removes the temporary files in `folder` whose writer is dead, and says how many there were. What such a writer had
/// swapped out is put back, or kept, unless it is ours.
pub fn remove_leftovers(folder: &RootedPath) -> io::Result<usize> {
    let fd = WorkFolder::beneath(folder, None)?;
    let mut removed = 0;
    for name in rooted_path::names(fd.as_fd())? {
        let name = name?;
        if exchange::is_swap_name(&name) {
            // While somebody is at it, or where it cannot be done, it is for the next sweep.
            let _ = exchange::recover(&fd, &name);
        }
        if is_temporary(&name)
            && let Some(how) = abandoned(&fd, &name)
        {
            removed += usize::from(rustix::fs::unlinkat(&fd, &name, how).is_ok());
        }
    }
    Ok(removed)
}

/// Exactly the form of [`rooted_path::temporary_name`].
fn is_temporary(name: &OsStr) -> bool {
    let digit = |c: &u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    let middle = name.as_bytes().strip_prefix(b".").and_then(|n| n.strip_suffix(rooted_path::TEMPORARY.as_bytes()));
    middle.is_some_and(|middle| middle.len() == 32 && middle.iter().all(digit))
}

/// How to remove a file or folder that nobody holds locked. Where that cannot be told it is left; a folder is only
/// removed while it is empty.
fn abandoned(folder: &WorkFolder, name: &OsStr) -> Option<AtFlags> {
    // Not blocking: a pipe of that name must not hang the sweep.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?);
    let meta = file.metadata().ok()?;
    let how = if meta.is_dir() { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    ((meta.is_file() || meta.is_dir()) && file.try_lock().is_ok()).then_some(how)
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

/// Leaves a moment in which another program could take the name; there is no better way there.
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
