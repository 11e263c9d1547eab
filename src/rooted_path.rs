//! Paths below a configured root. The root may be a symbolic link, or be reached through one: that is the user's
//! choice. Below it no link is followed, at any position of the path: whoever can write in a watched folder could
//! otherwise direct reads and writes to any other place.
//!
//! The kernel resolves the whole path at once (`openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`). If it does
//! not have that call, or a sandbox denies it, the path is resolved component by component. File systems that are
//! mounted below the root are entered. The root is opened again for each operation, because a share may have been
//! mounted or unmounted.

use crate::crash_points::{self, Point};
use crate::domain::file_permissions::{Access, Acl};
use crate::shortage;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, XattrFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// A path whose first part, the root, is trusted, and whose rest is resolved without following links. Every method that
/// accesses the disk blocks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootedPath {
    root: PathBuf,
    below: PathBuf,
}

/// Why a path cannot be resolved: it contains a symbolic link below its root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is a symbolic link, and scribed does not follow links below {}: replace the link by the folder itself", link.display(), root.display())]
pub struct LinkInPath {
    pub link: PathBuf,
    pub root: PathBuf,
}

impl LinkInPath {
    /// Returns the link, if this is the cause of the error.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl RootedPath {
    /// Makes a path `below` a root; the root itself if `below` is empty.
    pub fn new(root: impl Into<PathBuf>, below: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), below: below.into() }
    }

    /// Makes a path that is trusted except for its last component.
    pub fn whole(path: &Path) -> Self {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Self::new(parent, name),
            _ => Self::new(path, ""),
        }
    }

    /// Makes a path from a name relative to a root. An absolute name outside the root is trusted except for its last
    /// component.
    pub fn named(root: &Path, name: &Path) -> Self {
        match name.strip_prefix(root) {
            Ok(below) => Self::new(root, below),
            Err(_) if name.is_absolute() => Self::whole(name),
            Err(_) => Self::new(root, name),
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn below(&self) -> &Path {
        &self.below
    }

    /// Returns the whole path, for people and as a key. Opening it would follow links.
    pub fn full(&self) -> PathBuf {
        if self.below.as_os_str().is_empty() { self.root.clone() } else { self.root.join(&self.below) }
    }

    /// Returns the path relative to a folder, which may be above or below the root; `None` if it is not in the folder.
    pub fn below_folder(&self, folder: &Path) -> Option<PathBuf> {
        self.full().strip_prefix(folder).ok().map(Path::to_owned)
    }

    /// Returns the last component below the root; empty for the root itself.
    pub fn file_name(&self) -> &OsStr {
        self.below.file_name().unwrap_or_default()
    }

    /// Returns the folder that contains it; for the root, the root itself.
    pub fn parent(&self) -> Self {
        Self::new(&self.root, self.below.parent().unwrap_or(Path::new("")))
    }

    /// Returns the path of an entry of this folder.
    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        Self::new(&self.root, self.below.join(name))
    }

    /// Returns the path with another extension.
    pub fn with_extension(&self, extension: &str) -> Self {
        Self::new(&self.root, self.below.with_extension(extension))
    }

    /// Returns the status of the entry, without following a link in the last component.
    ///
    /// # Errors
    /// An error of the system, or [`LinkInPath`].
    pub fn stat(&self) -> io::Result<Stat> {
        Root::open(&self.root)?.stat(&self.below)
    }

    /// Whether the entry exists.
    pub fn exists(&self) -> bool {
        self.stat().is_ok()
    }

    /// Whether the entry is a regular file.
    pub fn is_file(&self) -> bool {
        self.stat().is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }

    /// Opens the file for reading. Opening a pipe does not block.
    ///
    /// # Errors
    /// An error of the system (`LOOP` if the file itself is a link), or [`LinkInPath`].
    pub fn open(&self) -> io::Result<File> {
        Root::open(&self.root)?.open_file(&self.below)
    }

    /// Opens the folder.
    ///
    /// # Errors
    /// An error of the system, or [`LinkInPath`].
    pub fn open_folder(&self) -> io::Result<File> {
        Root::open(&self.root)?.open_folder(&self.below)
    }

    /// Returns the names in the folder.
    ///
    /// # Errors
    /// An error of the system, or [`LinkInPath`].
    pub fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
        names(self.open_folder()?.as_fd())
    }

    /// Creates this folder and the missing ones above it, but never the root. `like` returns the permissions of a new
    /// folder, whose number counts from the end of the path; if it returns `None`, the umask applies.
    ///
    /// # Errors
    /// An error of the system, or [`LinkInPath`].
    pub fn make_folders(&self, like: &dyn Fn(usize) -> Option<Access>) -> io::Result<()> {
        Root::open(&self.root)?.make_folders(&self.below, like)
    }
}

/// Returns the names in an open folder, without `.` and `..`.
pub fn names(folder: BorrowedFd<'_>) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
    let entries = rustix::fs::Dir::read_from(folder)?;
    let name = |entry: rustix::io::Result<rustix::fs::DirEntry>| match entry {
        Ok(entry) => match entry.file_name().to_bytes() {
            b"." | b".." => None,
            name => Some(Ok(OsString::from_vec(name.to_vec()))),
        },
        Err(error) => Some(Err(error.into())),
    };
    Ok(entries.filter_map(name))
}

/// An open root: it stays the same folder even if its path is changed.
pub struct Root {
    path: PathBuf,
    fd: OwnedFd,
    /// Whether paths are resolved by components, without `openat2`.
    by_components: bool,
}

impl Root {
    /// Opens a root; links in its path are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        // A relative path may be empty, which means the current folder.
        let path_or_dot = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let open = || Ok(rustix::fs::open(path_or_dot, PATH_ONLY | OFlags::DIRECTORY, Mode::empty())?);
        let fd = shortage::retry(open)?;
        Ok(Self { path: path.to_owned(), fd, by_components: is_by_components() })
    }

    /// Returns the status of an entry below the root, without following a link in the last component.
    ///
    /// # Errors
    /// An error of the system, or [`LinkInPath`].
    pub fn stat(&self, below: &Path) -> io::Result<Stat> {
        let parts = parts(below)?;
        let Some((name, above)) = parts.split_last() else { return Ok(rustix::fs::fstat(&self.fd)?) };
        let folder = self.folder(above)?;
        Ok(rustix::fs::statat(folder.fd(self), *name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Opens a file below the root for reading. Opening a pipe does not block.
    ///
    /// # Errors
    /// An error of the system (`LOOP` if the file itself is a link), or [`LinkInPath`].
    pub fn open_file(&self, below: &Path) -> io::Result<File> {
        self.resolve(&parts(below)?, OFlags::RDONLY | OFlags::NONBLOCK).map(File::from)
    }

    /// Opens a folder below the root, or the root itself.
    ///
    /// # Errors
    /// An error of the system, or [`LinkInPath`].
    pub fn open_folder(&self, below: &Path) -> io::Result<File> {
        self.resolve(&parts(below)?, OFlags::RDONLY | OFlags::DIRECTORY).map(File::from)
    }

    /// See [`RootedPath::make_folders`].
    ///
    /// # Errors
    /// An error of the system, or [`LinkInPath`].
    pub fn make_folders(&self, below: &Path, like: &dyn Fn(usize) -> Option<Access>) -> io::Result<()> {
        let parts = parts(below)?;
        let mut folder = Step::Root;
        for n in 0..parts.len() {
            folder = Step::Below(match self.enter(&folder, &parts[..=n]) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    make_folder(folder.fd(self), parts[n], like(parts.len() - 1 - n).as_ref())?;
                    self.enter(&folder, &parts[..=n])?
                }
                entered => entered?,
            });
        }
        Ok(())
    }

    /// Opens the entry that these components lead to.
    fn resolve(&self, parts: &[&OsStr], flags: OFlags) -> io::Result<OwnedFd> {
        shortage::retry(|| self.resolve_once(parts, flags))
    }

    fn resolve_once(&self, parts: &[&OsStr], flags: OFlags) -> io::Result<OwnedFd> {
        if parts.is_empty() {
            return Ok(rustix::fs::openat(&self.fd, ".", flags | OFlags::CLOEXEC, Mode::empty())?);
        }
        if !self.by_components {
            let path: PathBuf = parts.iter().collect();
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            match rustix::fs::openat2(&self.fd, &path, flags, Mode::empty(), how) {
                Ok(fd) => return Ok(fd),
                Err(Errno::NOENT) => return Err(Errno::NOENT.into()),
                // The path contains a link, or the call is not available: resolving by components tells which.
                Err(_) => {}
            }
        }
        let Some((name, above)) = parts.split_last() else { return Err(Errno::INVAL.into()) };
        let folder = self.traverse(above)?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(folder.fd(self), *name, flags, Mode::empty())
            .map_err(|error| self.link_or(&folder, parts, error))
    }

    /// Opens the folder that these components lead to, to access its entries.
    fn folder(&self, parts: &[&OsStr]) -> io::Result<Step> {
        if parts.is_empty() {
            Ok(Step::Root)
        } else {
            self.resolve(parts, PATH_ONLY | OFlags::DIRECTORY).map(Step::Below)
        }
    }

    fn traverse(&self, parts: &[&OsStr]) -> io::Result<Step> {
        let mut folder = Step::Root;
        for n in 0..parts.len() {
            folder = Step::Below(self.enter(&folder, &parts[..=n])?);
        }
        Ok(folder)
    }

    /// Opens the entry of `folder` that the last of `parts` names, which must be a folder.
    fn enter(&self, folder: &Step, parts: &[&OsStr]) -> io::Result<OwnedFd> {
        let Some(name) = parts.last() else { return Err(Errno::INVAL.into()) };
        rustix::fs::openat(folder.fd(self), *name, PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|error| self.link_or(folder, parts, error))
    }

    /// Converts an error; if a link is in the place of a folder, into [`LinkInPath`].
    fn link_or(&self, folder: &Step, parts: &[&OsStr], error: Errno) -> io::Error {
        if error != Errno::NOTDIR {
            return error.into();
        }
        let name = parts.last().copied().unwrap_or_default();
        let stat = rustix::fs::statat(folder.fd(self), name, AtFlags::SYMLINK_NOFOLLOW);
        match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Symlink) => {
                let link = self.path.join(parts.iter().collect::<PathBuf>());
                io::Error::other(LinkInPath { link, root: self.path.clone() })
            }
            _ => error.into(),
        }
    }
}

/// Creates a folder, unless it exists by then.
fn make_folder(parent: BorrowedFd<'_>, name: &OsStr, access: Option<&Access>) -> io::Result<()> {
    let Some(access) = access else { return make_empty(parent, name, 0o777).map(drop) };
    // The folder has a temporary name until it has its permissions: if the process is killed in between, no
    // inaccessible folder remains under the final name.
    let temporary = OsString::from(temporary_name());
    let result = match begin_folder(parent, &temporary, access) {
        Ok(locked) => {
            crash_points::point(Point::FolderMade);
            let renamed = rename_folder(parent, &temporary, name);
            drop(locked);
            renamed
        }
        Err(error) => Err(error),
    };
    if result.is_ok() {
        return Ok(());
    }
    // If this fails, a later sweep removes the folder.
    let _ = rustix::fs::unlinkat(parent, &temporary, AtFlags::REMOVEDIR);
    match result {
        Err(Errno::EXIST) => Ok(()),
        // Some file systems cannot rename folders.
        _ => {
            if make_empty(parent, name, 0o700)? {
                give(access, &open_new(parent, name)?);
            }
            Ok(())
        }
    }
}

/// Creates an empty folder. Returns `false` if something has the name already.
fn make_empty(parent: BorrowedFd<'_>, name: &OsStr, mode: u32) -> io::Result<bool> {
    match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(mode)) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn open_new(parent: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty()).map(File::from)
}

/// Creates a folder with its permissions. It is locked while it is open, so that a sweep spares it.
fn begin_folder(parent: BorrowedFd<'_>, temporary: &OsStr, access: &Access) -> rustix::io::Result<File> {
    rustix::fs::mkdirat(parent, temporary, Mode::from_raw_mode(0o700))?;
    let folder = open_new(parent, temporary)?;
    // On a file system without locks, only the removal of leftovers is lost.
    let _ = folder.try_lock();
    give(access, &folder);
    Ok(folder)
}

/// Renames a folder, unless something has the new name; then the error is `EXIST`.
fn rename_folder(parent: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(parent, from, parent, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        done => return done,
    }
    match rustix::fs::statat(parent, to, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => rustix::fs::renameat(parent, from, parent, to),
        Err(error) => Err(error),
        Ok(_) => Err(Errno::EXIST),
    }
}

/// The suffix of temporary names of files and folders.
pub const TEMPORARY: &str = ".scribed-tmp";

/// Returns a new temporary name: a dot, 32 lower-case hexadecimal digits, [`TEMPORARY`].
pub fn temporary_name() -> String {
    format!(".{}{TEMPORARY}", uuid::Uuid::new_v4().simple())
}

/// Flags for a folder that is only passed through: it need not be readable.
const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A folder that was reached while a path is resolved.
enum Step {
    Root,
    Below(OwnedFd),
}

impl Step {
    fn fd<'a>(&'a self, root: &'a Root) -> BorrowedFd<'a> {
        match self {
            Self::Root => root.fd.as_fd(),
            Self::Below(fd) => fd.as_fd(),
        }
    }
}

/// Splits a path into its components. Errors if one of them leads up or is absolute.
fn parts(below: &Path) -> io::Result<Vec<&OsStr>> {
    let part = |component| match component {
        Component::Normal(name) => Some(Ok(name)),
        Component::CurDir => None,
        _ => Some(Err(io::Error::new(io::ErrorKind::InvalidInput, "the path leads out of its root folder"))),
    };
    below.components().filter_map(part).collect()
}

#[cfg(not(debug_assertions))]
#[inline(always)]
fn is_by_components() -> bool {
    false
}

/// Debug builds can be told to behave as on a kernel without `openat2`.
#[cfg(debug_assertions)]
fn is_by_components() -> bool {
    std::env::var_os("SCRIBED_NO_OPENAT2").is_some()
}

/// The extended attribute that holds an access control list.
const ACL: &str = "system.posix_acl_access";

/// The overflow uid, which stands for owners without a number in a user namespace, such as in a container. A file of it
/// may be anybody's.
pub const NOBODY: u32 = 65_534;

/// Returns the permissions of a file or folder, to be given to what is made for it.
///
/// # Errors
/// An error of the system, or [`LinkInPath`].
pub fn access_of(path: &RootedPath) -> io::Result<Access> {
    let root = Root::open(&path.root)?;
    let stat = root.stat(&path.below)?;
    let (mode, group) = (stat.st_mode & 0o777, stat.st_gid);
    let (acl, entry) = match root.open_file(&path.below) {
        Ok(file) => acl_of(&file),
        // What its group may do is not known, so it gets no more than all others.
        Err(_) => (None, Some(mode & 0o7)),
    };
    // With an access control list, the group bits of the mode are the mask of the list.
    let mode = entry.map_or(mode, |entry| mode & !0o70 | mode & (entry << 3));
    let owner = Some(stat.st_uid).filter(|owner| *owner != NOBODY);
    Ok(Access { mode, group, owner, acl })
}

/// Returns the access control list of a file, and what it allows the group; two `None` if there is no list.
fn acl_of(file: &File) -> (Option<Acl>, Option<u32>) {
    let mut list = [0; 4096];
    match rustix::fs::fgetxattr(file, ACL, &mut list) {
        Ok(length) => match Acl::parse(&list[..length]) {
            Some(acl) => (Some(acl.clone()), acl.group()),
            None => (None, Some(0)),
        },
        Err(Errno::RANGE) => (None, Some(0)), // longer than any real list
        Err(_) => (None, None),
    }
}

/// Gives `access` to a new file or folder that only its owner can use so far. Permissions that the file system cannot
/// store are skipped.
pub fn give(access: &Access, to: &impl AsFd) {
    let Ok(current) = rustix::fs::fstat(to) else { return };
    let is_folder = FileType::from_raw_mode(current.st_mode) == FileType::Directory;
    let group = rustix::fs::Gid::from_raw(access.group);
    let has_group = current.st_gid == access.group || rustix::fs::fchown(to, None, Some(group)).is_ok();
    if !give_list(access, to, is_folder, has_group) {
        // A folder that passes its group on keeps doing so.
        let inherited = if is_folder { current.st_mode & 0o2000 } else { 0 };
        let _ = rustix::fs::fchmod(to, Mode::from_raw_mode(access.mode_of(is_folder, has_group) | inherited));
    }
    // The owner comes last: after giving a file away, this process may not change it.
    if let Some(owner) = access.owner.filter(|owner| *owner != current.st_uid) {
        let _ = rustix::fs::fchown(to, Some(rustix::fs::Uid::from_raw(owner)), None);
    }
}

/// Sets the access control list of `access`; returns whether that succeeded.
fn give_list(access: &Access, to: &impl AsFd, is_folder: bool, has_group: bool) -> bool {
    // The folder may have passed on a default list. It could allow more than the recording's permissions, and would
    // make the group bits of the mode a mask.
    let _ = rustix::fs::fremovexattr(to, ACL);
    let Some(acl) = &access.acl else { return false };
    rustix::fs::fsetxattr(to, ACL, &acl.for_new_entry(is_folder, has_group).bytes(), XattrFlags::empty()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use tempfile::TempDir;

    /// A root with `a/b/talk.wav`, and a folder beside it with the same content.
    fn tree() -> (TempDir, PathBuf) {
        let top = TempDir::new().unwrap();
        for place in ["root", "elsewhere"] {
            fs::create_dir_all(top.path().join(place).join("a/b")).unwrap();
            fs::write(top.path().join(place).join("a/b/talk.wav"), place).unwrap();
        }
        let root = top.path().join("root");
        (top, root)
    }

    /// A root that resolves with `openat2`, and one that resolves by components.
    fn both(root: &Path) -> [Root; 2] {
        [false, true].map(|by_components| Root { by_components, ..Root::open(root).unwrap() })
    }

    fn link<T>(result: io::Result<T>) -> PathBuf {
        let error = result.map(drop).unwrap_err();
        LinkInPath::of(&error).unwrap_or_else(|| panic!("{error}")).link.clone()
    }

    fn errno<T>(result: io::Result<T>) -> Option<Errno> {
        result.map(drop).map_err(|error| Errno::from_io_error(&error)).unwrap_err()
    }

    #[test]
    fn what_lies_below_is_found_both_ways() {
        let (_top, root) = tree();
        for root in both(&root) {
            let mut text = String::new();
            root.open_file(Path::new("a/./b/talk.wav")).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!((text.as_str(), root.stat(Path::new("a/b/talk.wav")).unwrap().st_size), ("root", 4));
            for folder in ["", "a", "a/b"] {
                assert_eq!(names(root.open_folder(Path::new(folder)).unwrap().as_fd()).unwrap().count(), 1);
                assert!(FileType::from_raw_mode(root.stat(Path::new(folder)).unwrap().st_mode) == FileType::Directory);
            }
            for missing in ["x", "a/x", "x/talk.wav", "a/x/talk.wav"] {
                assert_eq!(errno(root.stat(Path::new(missing))), Some(Errno::NOENT));
                assert_eq!(errno(root.open_file(Path::new(missing))), Some(Errno::NOENT));
                assert_eq!(errno(root.open_folder(Path::new(missing))), Some(Errno::NOENT));
            }
            assert_eq!(errno(root.stat(Path::new("a/b/talk.wav/x"))), Some(Errno::NOTDIR));
            assert_eq!(errno(root.open_folder(Path::new("a/b/talk.wav"))), Some(Errno::NOTDIR));
        }
    }

    #[test]
    fn a_link_above_the_last_component_is_never_followed_and_is_named() {
        let (top, root) = tree();
        let links = [("up", top.path().join("elsewhere")), ("inside", PathBuf::from("a")), ("gone", "nowhere".into())];
        for (name, target) in links {
            symlink(target, root.join(name)).unwrap();
        }
        symlink(top.path().join("elsewhere/a/b"), root.join("a/deep")).unwrap();
        for opened in both(&root) {
            for (path, at) in [
                ("up/a/b/talk.wav", "up"),
                ("inside/b/talk.wav", "inside"),
                ("gone/talk.wav", "gone"),
                ("a/deep/talk.wav", "a/deep"),
            ] {
                let path = Path::new(path);
                assert_eq!(link(opened.stat(path)), root.join(at));
                assert_eq!(link(opened.open_file(path)), root.join(at));
                assert_eq!(link(opened.open_folder(path)), root.join(at));
                assert_eq!(link(opened.make_folders(path, &|_| None)), root.join(at));
            }
            // A link to a folder does not count as a folder.
            assert_eq!(link(opened.open_folder(Path::new("a/deep"))), root.join("a/deep"));
            assert_eq!(link(opened.make_folders(Path::new("a/deep"), &|_| None)), root.join("a/deep"));
        }
        assert_eq!(fs::read_dir(top.path().join("elsewhere")).unwrap().count(), 1, "nothing was made there");
    }

    #[test]
    fn a_link_in_the_last_place_is_seen_and_not_opened() {
        let (top, root) = tree();
        symlink(top.path().join("elsewhere/a/b/talk.wav"), root.join("a/link.wav")).unwrap();
        for root in both(&root) {
            let stat = root.stat(Path::new("a/link.wav")).unwrap();
            assert!(FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
            assert_eq!(errno(root.open_file(Path::new("a/link.wav"))), Some(Errno::LOOP));
        }
    }

    #[test]
    fn a_root_may_be_a_link_and_stays_what_it_was() {
        let (top, root) = tree();
        symlink(&root, top.path().join("way")).unwrap();
        let path = RootedPath::new(top.path().join("way"), "a/b/talk.wav");
        assert!(path.is_file());
        let open = Root::open(path.root()).unwrap();
        fs::remove_file(top.path().join("way")).unwrap();
        assert!(open.stat(path.below()).is_ok());
        assert_eq!(path.stat().unwrap_err().kind(), io::ErrorKind::NotFound, "it is looked for anew each time");
    }

    #[test]
    fn no_path_leads_out() {
        let (top, root) = tree();
        for root in both(&root) {
            for path in ["../elsewhere/a/b/talk.wav", "a/../../elsewhere", "/etc/passwd"] {
                assert_eq!(root.stat(Path::new(path)).unwrap_err().kind(), io::ErrorKind::InvalidInput);
                assert!(root.open_file(Path::new(path)).is_err() && root.open_folder(Path::new(path)).is_err());
                assert!(root.make_folders(Path::new(path), &|_| None).is_err());
            }
        }
        let named = |name: &str| RootedPath::named(&root, Path::new(name));
        assert_eq!(named("a/b"), RootedPath::new(&root, "a/b"));
        assert_eq!(named(root.join("a/b").to_str().unwrap()), RootedPath::new(&root, "a/b"));
        assert_eq!(named("/srv/x/y"), RootedPath::new("/srv/x", "y"));
        assert_eq!((named("").full(), named("a").parent().full()), (root.clone(), root.clone()));
        drop(top);
    }

    #[test]
    fn folders_are_made_with_the_mode_that_they_are_given() {
        let (_top, root) = tree();
        let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777;
        let gid = fs::metadata(&root).unwrap().gid();
        let like = |n: usize| Some(Access { mode: [0o4750, 0o711][n] & 0o777, ..Access::private(gid) });
        for (n, opened) in both(&root).iter().enumerate() {
            let path = format!("new{n}/x");
            opened.make_folders(Path::new(&path), &like).unwrap();
            opened.make_folders(Path::new(&path), &|_| panic!("it is there")).unwrap();
            assert_eq!((mode(&format!("new{n}")), mode(&path)), (0o711, 0o750));
        }
    }

    #[test]
    fn a_file_for_another_one_may_be_read_by_the_same_people() {
        let (_top, root) = tree();
        let talk = RootedPath::new(&root, "a/b/talk.wav");
        let made = |mode: u32| {
            fs::set_permissions(talk.full(), fs::Permissions::from_mode(mode)).unwrap();
            let file = tempfile::tempfile_in(&root).unwrap();
            give(&access_of(&talk).unwrap(), &file);
            file.metadata().unwrap().permissions().mode() & 0o7777
        };
        for (mode, expected) in [(0o600, 0o600), (0o644, 0o644), (0o664, 0o664), (0o4755, 0o644), (0o444, 0o644)] {
            assert_eq!(made(mode), expected, "{mode:o}");
        }
    }

    /// A list in the kernel's form; named users and groups have the number 1000.
    fn list(entries: &[(u16, u16)]) -> Vec<u8> {
        let id = |tag: u16| if matches!(tag, 2 | 8) { 1000_u32 } else { u32::MAX };
        let entry = |(tag, rights): &(u16, u16)| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id(*tag).to_le_bytes()].concat()
        };
        [2_u32.to_le_bytes().to_vec(), entries.iter().flat_map(entry).collect()].concat()
    }

    fn set(path: &Path, attribute: &str, list: &[u8]) -> bool {
        rustix::fs::setxattr(path, attribute, list, XattrFlags::empty()).is_ok()
    }

    /// Returns the list of a file.
    fn got(file: &File) -> Option<Vec<u8>> {
        let mut list = [0; 4096];
        rustix::fs::fgetxattr(file, ACL, &mut list).ok().map(|length| list[..length].to_vec())
    }

    #[test]
    fn an_access_control_list_is_the_recordings_and_not_the_folders() {
        let (_top, root) = tree();
        let talk = RootedPath::new(&root, "a/b/talk.wav");
        // The group may not read the file, but one named user may; the folder passes on a list that allows another
        // group.
        let own = list(&[(1, 6), (2, 4), (4, 0), (0x10, 4), (0x20, 0)]);
        if !set(&talk.full(), ACL, &own) {
            return; // this file system keeps no lists
        }
        assert!(set(&root, "system.posix_acl_default", &list(&[(1, 7), (4, 0), (8, 5), (0x10, 5), (0x20, 0)])));
        let made = |name: &str, access: &Access| {
            let file = File::create(root.join(name)).unwrap();
            give(access, &file);
            (file.metadata().unwrap().permissions().mode() & 0o777, got(&file))
        };
        let access = access_of(&talk).unwrap();
        assert_eq!(access.mode, 0o600, "the mask is not taken for the group");
        assert_eq!(made("listed", &access), (0o640, Some(own)));
        let plain = Access { mode: 0o640, acl: None, ..access };
        assert_eq!(made("plain", &plain), (0o640, None));
    }

    #[test]
    fn the_owner_is_given_where_that_may_be() {
        let (_top, root) = tree();
        let talk = RootedPath::new(&root, "a/b/talk.wav");
        if !rustix::process::geteuid().is_root() {
            return; // only root gives files away
        }
        for (owner, expected) in [(4_000, 4_000), (NOBODY, 0)] {
            std::os::unix::fs::chown(talk.full(), Some(owner), Some(4_001)).unwrap();
            let access = access_of(&talk).unwrap();
            let file = tempfile::tempfile_in(&root).unwrap();
            give(&access, &file);
            let meta = file.metadata().unwrap();
            assert_eq!((meta.uid(), meta.gid()), (expected, 4_001));
            let folder = format!("for-{owner}");
            Root::open(&root).unwrap().make_folders(Path::new(&folder), &|_| Some(access.clone())).unwrap();
            assert_eq!(fs::metadata(root.join(folder)).unwrap().uid(), expected);
        }
        let file = tempfile::tempfile_in(&root).unwrap();
        give(&Access { owner: Some(NOBODY), ..access_of(&talk).unwrap() }, &file);
        assert_eq!(file.metadata().unwrap().uid(), NOBODY, "a person set this owner");
    }
}
