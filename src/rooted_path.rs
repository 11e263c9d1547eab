//! Paths below a root that somebody configured. The root may be a symbolic link, or lie behind one: that is the
//! user's choice. Below it no link is followed, wherever it stands in the path: whoever may write in a watched folder
//! could otherwise lead reads and writes to any other place.
//!
//! The kernel resolves the whole path at once (`openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`). Where it
//! does not know that call, or a sandbox refuses it, the path is resolved component by component. File systems that
//! are mounted below the root are entered. A root is opened anew for each look: a share may have come or gone.

use crate::crash_points::{self, Point};
use crate::domain::file_permissions::{Access, Acl};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, XattrFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// A path of which the first part is trusted, and the rest is resolved without following links. All that
/// looks at the disk blocks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootedPath {
    root: PathBuf,
    below: PathBuf,
}

/// Why a path cannot be resolved: a symbolic link stands in it, below its root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is a symbolic link, and scribed does not follow links below {}: replace the link by the folder itself", link.display(), root.display())]
pub struct LinkInPath {
    pub link: PathBuf,
    pub root: PathBuf,
}

impl LinkInPath {
    /// The link in a path, where this error tells of one.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl RootedPath {
    /// `below` a root, or the root itself where that is empty.
    pub fn new(root: impl Into<PathBuf>, below: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), below: below.into() }
    }

    /// A path that is trusted but for its last component.
    pub fn whole(path: &Path) -> Self {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Self::new(parent, name),
            _ => Self::new(path, ""),
        }
    }

    /// What is named below a root. An absolute name that leads elsewhere is trusted but for its last component.
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

    /// Both, for people and as a name in memory; whoever opens it follows links.
    pub fn full(&self) -> PathBuf {
        if self.below.as_os_str().is_empty() { self.root.clone() } else { self.root.join(&self.below) }
    }

    /// What is left of it below a folder, whichever of the two is the root of the other.
    pub fn below_folder(&self, folder: &Path) -> Option<PathBuf> {
        self.full().strip_prefix(folder).ok().map(Path::to_owned)
    }

    /// Its last component below the root; empty for the root itself.
    pub fn file_name(&self) -> &OsStr {
        self.below.file_name().unwrap_or_default()
    }

    /// The folder that it lies in; of the root itself the root.
    pub fn parent(&self) -> Self {
        Self::new(&self.root, self.below.parent().unwrap_or(Path::new("")))
    }

    /// What has this name in it.
    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        Self::new(&self.root, self.below.join(name))
    }

    /// Its neighbour of this name.
    pub fn with_file_name(&self, name: impl AsRef<OsStr>) -> Self {
        Self::new(&self.root, self.below.with_file_name(name))
    }

    /// Its neighbour with this extension.
    pub fn with_extension(&self, extension: &str) -> Self {
        Self::new(&self.root, self.below.with_extension(extension))
    }

    /// What stands there, a link in the last place not followed.
    ///
    /// # Errors
    /// The system's, and [`LinkInPath`].
    pub fn stat(&self) -> io::Result<Stat> {
        Root::open(&self.root)?.stat(&self.below)
    }

    /// Whether anything stands there.
    pub fn exists(&self) -> bool {
        self.stat().is_ok()
    }

    /// Whether a regular file stands there.
    pub fn is_file(&self) -> bool {
        self.stat().is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }

    /// Opens it to be read; does not hang on a pipe.
    ///
    /// # Errors
    /// The system's (`LOOP` where it is a link itself), and [`LinkInPath`].
    pub fn open(&self) -> io::Result<File> {
        Root::open(&self.root)?.open_file(&self.below)
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// The system's, and [`LinkInPath`].
    pub fn open_folder(&self) -> io::Result<File> {
        Root::open(&self.root)?.open_folder(&self.below)
    }

    /// The names in a folder.
    ///
    /// # Errors
    /// The system's, and [`LinkInPath`].
    pub fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
        names(self.open_folder()?.as_fd())
    }

    /// Makes this folder and those above it that are missing, but never the root. `like`: whose permissions a new
    /// one takes, by how many components it is from the end; where that says nothing, the umask decides.
    ///
    /// # Errors
    /// The system's, and [`LinkInPath`].
    pub fn make_folders(&self, like: &dyn Fn(usize) -> Option<Access>) -> io::Result<()> {
        Root::open(&self.root)?.make_folders(&self.below, like)
    }
}

/// The names in an open folder, without `.` and `..`.
///
/// # Errors
/// The system's.
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

/// A root that is open: it stays the same folder, whatever becomes of its path.
pub struct Root {
    path: PathBuf,
    fd: OwnedFd,
    /// Whether the kernel is not asked to resolve whole paths.
    by_components: bool,
}

impl Root {
    /// Opens it; links in its path are followed.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path) -> io::Result<Self> {
        // A relative path may be empty: this folder.
        let at = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let fd = rustix::fs::open(at, WAY | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self { path: path.to_owned(), fd, by_components: is_by_components() })
    }

    /// What stands below it, a link in the last place not followed.
    ///
    /// # Errors
    /// The system's, and [`LinkInPath`].
    pub fn stat(&self, below: &Path) -> io::Result<Stat> {
        let parts = parts(below)?;
        let Some((name, above)) = parts.split_last() else { return Ok(rustix::fs::fstat(&self.fd)?) };
        let folder = self.folder(above)?;
        Ok(rustix::fs::statat(folder.fd(self), *name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Opens what stands below it to be read; does not hang on a pipe.
    ///
    /// # Errors
    /// The system's (`LOOP` where it is a link itself), and [`LinkInPath`].
    pub fn open_file(&self, below: &Path) -> io::Result<File> {
        self.resolve(&parts(below)?, OFlags::RDONLY | OFlags::NONBLOCK).map(File::from)
    }

    /// Opens a folder below it, or itself.
    ///
    /// # Errors
    /// The system's, and [`LinkInPath`].
    pub fn open_folder(&self, below: &Path) -> io::Result<File> {
        self.resolve(&parts(below)?, OFlags::RDONLY | OFlags::DIRECTORY).map(File::from)
    }

    /// As [`RootedPath::make_folders`].
    ///
    /// # Errors
    /// The system's, and [`LinkInPath`].
    pub fn make_folders(&self, below: &Path, like: &dyn Fn(usize) -> Option<Access>) -> io::Result<()> {
        let parts = parts(below)?;
        let mut at = Step::Root;
        for n in 0..parts.len() {
            at = Step::Below(match self.enter(&at, &parts[..=n]) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    make_folder(at.fd(self), parts[n], like(parts.len() - 1 - n).as_ref())?;
                    self.enter(&at, &parts[..=n])?
                }
                entered => entered?,
            });
        }
        Ok(())
    }

    /// Opens what these components lead to.
    fn resolve(&self, parts: &[&OsStr], flags: OFlags) -> io::Result<OwnedFd> {
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
                // A link is in it, or the call is not to be had: the components tell.
                Err(_) => {}
            }
        }
        let Some((name, above)) = parts.split_last() else { return Err(Errno::INVAL.into()) };
        let folder = self.walk(above)?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(folder.fd(self), *name, flags, Mode::empty())
            .map_err(|error| self.link_or(&folder, parts, error))
    }

    /// The folder that these components lead to, to look at what is in it.
    fn folder(&self, parts: &[&OsStr]) -> io::Result<Step> {
        if parts.is_empty() { Ok(Step::Root) } else { self.resolve(parts, WAY | OFlags::DIRECTORY).map(Step::Below) }
    }

    fn walk(&self, parts: &[&OsStr]) -> io::Result<Step> {
        let mut at = Step::Root;
        for n in 0..parts.len() {
            at = Step::Below(self.enter(&at, &parts[..=n])?);
        }
        Ok(at)
    }

    /// Goes from a folder into the one that the last of `parts` names.
    fn enter(&self, at: &Step, parts: &[&OsStr]) -> io::Result<OwnedFd> {
        let Some(name) = parts.last() else { return Err(Errno::INVAL.into()) };
        rustix::fs::openat(at.fd(self), *name, WAY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|error| self.link_or(at, parts, error))
    }

    /// A link in the place of a folder is told as that.
    fn link_or(&self, at: &Step, parts: &[&OsStr], error: Errno) -> io::Error {
        if error != Errno::NOTDIR {
            return error.into();
        }
        let name = parts.last().copied().unwrap_or_default();
        let found = rustix::fs::statat(at.fd(self), name, AtFlags::SYMLINK_NOFOLLOW);
        match found.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Symlink) => {
                let link = self.path.join(parts.iter().collect::<PathBuf>());
                io::Error::other(LinkInPath { link, root: self.path.clone() })
            }
            _ => error.into(),
        }
    }
}

/// Makes a folder, unless somebody else has just made it.
fn make_folder(at: BorrowedFd<'_>, name: &OsStr, access: Option<&Access>) -> io::Result<()> {
    let Some(access) = access else { return make_empty(at, name, 0o777).map(drop) };
    // Under a temporary name until it has its own permissions: a process that is killed in between leaves nothing that
    // stays closed for good.
    let temporary = OsString::from(temporary_name());
    let made = match begin_folder(at, &temporary, access) {
        Ok(begun) => {
            crash_points::point(Point::FolderMade);
            let renamed = rename_folder(at, &temporary, name);
            drop(begun);
            renamed
        }
        Err(error) => Err(error),
    };
    if made.is_ok() {
        return Ok(());
    }
    // The next sweep removes what cannot be removed now.
    let _ = rustix::fs::unlinkat(at, &temporary, AtFlags::REMOVEDIR);
    match made {
        Err(Errno::EXIST) => Ok(()),
        // Not every file system renames folders.
        _ => {
            if make_empty(at, name, 0o700)? {
                give(access, &open_new(at, name)?);
            }
            Ok(())
        }
    }
}

/// Whether it was made; otherwise something has the name already.
fn make_empty(at: BorrowedFd<'_>, name: &OsStr, mode: u32) -> io::Result<bool> {
    match rustix::fs::mkdirat(at, name, Mode::from_raw_mode(mode)) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn open_new(at: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty()).map(File::from)
}

/// A new folder with its permissions. Its lock, while it is open, spares it from a sweep.
fn begin_folder(at: BorrowedFd<'_>, temporary: &OsStr, access: &Access) -> rustix::io::Result<File> {
    rustix::fs::mkdirat(at, temporary, Mode::from_raw_mode(0o700))?;
    let begun = open_new(at, temporary)?;
    // A file system without locks only loses the removal of leftovers.
    let _ = begun.try_lock();
    give(access, &begun);
    Ok(begun)
}

/// Renames only if nothing has the name; otherwise `EXIST`.
fn rename_folder(at: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(at, from, at, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        done => return done,
    }
    match rustix::fs::statat(at, to, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => rustix::fs::renameat(at, from, at, to),
        Err(error) => Err(error),
        Ok(_) => Err(Errno::EXIST),
    }
}

/// How the name of a file or folder ends that is not finished.
pub const TEMPORARY: &str = ".scribed-tmp";

/// A new name for a file or folder that is not finished: a dot, 32 lower-case hexadecimal digits, [`TEMPORARY`].
pub fn temporary_name() -> String {
    format!(".{}{TEMPORARY}", uuid::Uuid::new_v4().simple())
}

/// To go through a folder it need not be readable.
const WAY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A folder on the way.
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

/// Nothing in a path leads up or begins anew.
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

/// Debug builds can be told to do as under an old kernel.
#[cfg(debug_assertions)]
fn is_by_components() -> bool {
    std::env::var_os("SCRIBED_NO_OPENAT2").is_some()
}

/// The extended attribute that holds an access control list.
const ACL: &str = "system.posix_acl_access";

/// What stands for an owner who has no number here, in a container for one.
const NOBODY: u32 = 65_534;

/// The permissions of a file or folder, for what is made for it.
///
/// # Errors
/// The system's, and [`LinkInPath`].
pub fn access_of(path: &RootedPath) -> io::Result<Access> {
    let root = Root::open(&path.root)?;
    let stat = root.stat(&path.below)?;
    let (mode, group) = (stat.st_mode & 0o777, stat.st_gid);
    let (acl, entry) = match root.open_file(&path.below) {
        Ok(file) => acl_of(&file),
        // Nobody can tell what its group may: not more than all others.
        Err(_) => (None, Some(mode & 0o7)),
    };
    // With an access control list the bits of the group are the list's mask.
    let mode = entry.map_or(mode, |entry| mode & !0o70 | mode & (entry << 3));
    Ok(Access { mode, group, owner: Some(stat.st_uid), acl })
}

/// The access control list of a file, and what its group may do by it; no entry: there is no list.
fn acl_of(file: &File) -> (Option<Acl>, Option<u32>) {
    let mut list = [0; 4096];
    match rustix::fs::fgetxattr(file, ACL, &mut list) {
        Ok(length) => match Acl::parse(&list[..length]) {
            Some(acl) => (Some(acl.clone()), acl.group()),
            None => (None, Some(0)),
        },
        Err(Errno::RANGE) => (None, Some(0)), // longer than any that people write
        Err(_) => (None, None),
    }
}

/// Gives `access` to a new file or folder that only its owner can use so far. What the file system does not keep stays
/// as it is there.
pub fn give(access: &Access, to: &impl AsFd) {
    let Ok(own) = rustix::fs::fstat(to) else { return };
    let is_folder = FileType::from_raw_mode(own.st_mode) == FileType::Directory;
    let group = rustix::fs::Gid::from_raw(access.group);
    let has_group = own.st_gid == access.group || rustix::fs::fchown(to, None, Some(group)).is_ok();
    if !give_list(access, to, is_folder, has_group) {
        // A folder that hands its group down does so still.
        let inherited = if is_folder { own.st_mode & 0o2000 } else { 0 };
        let _ = rustix::fs::fchmod(to, Mode::from_raw_mode(access.mode_of(is_folder, has_group) | inherited));
    }
    // Last: who has given a file away may not change it.
    if let Some(owner) = access.owner.filter(|owner| *owner != own.st_uid && *owner != NOBODY) {
        let _ = rustix::fs::fchown(to, Some(rustix::fs::Uid::from_raw(owner)), None);
    }
}

/// Whether it has the access control list of `access` now.
fn give_list(access: &Access, to: &impl AsFd, is_folder: bool, has_group: bool) -> bool {
    // Its folder may have handed one down that lets in others than the recording does, and of which the group bits of
    // a mode would be the mask.
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

    /// A root with `a/b/talk.wav`, and an elsewhere that has the same.
    fn tree() -> (TempDir, PathBuf) {
        let top = TempDir::new().unwrap();
        for place in ["root", "elsewhere"] {
            fs::create_dir_all(top.path().join(place).join("a/b")).unwrap();
            fs::write(top.path().join(place).join("a/b/talk.wav"), place).unwrap();
        }
        let root = top.path().join("root");
        (top, root)
    }

    /// By the kernel, and by components.
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
            // A folder that is a link itself is none.
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

    /// Of the kernel's form; the numbers of named users and groups are 1000.
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

    /// The list of a file.
    fn got(file: &File) -> Option<Vec<u8>> {
        let mut list = [0; 4096];
        rustix::fs::fgetxattr(file, ACL, &mut list).ok().map(|length| list[..length].to_vec())
    }

    #[test]
    fn an_access_control_list_is_the_recordings_and_not_the_folders() {
        let (_top, root) = tree();
        let talk = RootedPath::new(&root, "a/b/talk.wav");
        // Its group may not read it, and one more user may; the folder hands down that another group may.
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
    }
}
