//! Files that appear whole or not at all: each is written under a temporary name in the same folder, synced and
//! renamed, and then the folder is synced.
//!
//! Why each step is needed:
//! - rename(2): a file that has the new name already is replaced atomically, so that there is no moment at which the
//!   name is missing, and no reader sees a half-written file;
//! - fsync(2) of the file before its rename: a file system may store the new name before the content, and a power loss
//!   would leave an empty file;
//! - fsync(2) of the folder after the rename: "calling fsync() does not necessarily ensure that the entry in the
//!   directory containing the file has also reached disk".
//!
//! Each step is a type, so that a caller can act between two steps (a crash point) and cannot omit one: [`StagedFile`],
//! [`FinishedFile`], [`RenamedFile`]. [`replace`] and [`create_new`] do all steps. Only its owner can read such a file
//! (mode 0600), except for one of [`create_new_by_umask`].
//!
//! Outputs in other people's folders have other requirements; `output/publish` writes them.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The prefix of temporary names, unless the caller chooses another one. Files with it are left over from a process
/// that died.
pub const TEMPORARY: &str = ".tmp";

/// What survives a power loss. If only the process is killed, the file is always either the old or the new one, whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The new file, once the call has returned: content and folder are synced.
    Synced,
    /// The old file or the new one, whole: the content is synced, the folder is not.
    ContentSynced,
    /// Nothing is promised: for what is of no use after a power loss, or is checked when it is read.
    Unsynced,
}

/// Replaces the content of `path` by `bytes`. After an error, the file is the old or the new one, whole.
///
/// # Errors
/// An error of the file system.
pub fn replace(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let mut staged = StagedFile::create_in(folder_of(path)?)?;
    staged.write_all(bytes)?;
    staged.finish(durability)?.rename(path)?.sync()
}

/// Creates `path` with `bytes` and syncs it, unless a file has that name. Returns whether it was created.
///
/// # Errors
/// An error of the file system.
pub fn create_new(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    write_new(StagedFile::create_in(folder_of(path)?)?, path, bytes)
}

/// As [`create_new`], for a file of a person: who may read it is decided by the umask.
///
/// # Errors
/// An error of the file system.
pub fn create_new_by_umask(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let by_umask = Permissions::from_mode(0o666);
    let staged = tempfile::Builder::new().prefix(TEMPORARY).permissions(by_umask).tempfile_in(folder_of(path)?)?;
    write_new(StagedFile(staged), path, bytes)
}

fn write_new(mut staged: StagedFile, path: &Path, bytes: &[u8]) -> io::Result<bool> {
    staged.write_all(bytes)?;
    match staged.finish(Durability::Synced)?.rename_new(path) {
        Ok(renamed) => renamed.sync().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Syncs a file's content, or the names in a folder.
///
/// # Errors
/// An error of the file system.
pub fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Returns the folder of a file: `.` for a name alone.
///
/// # Errors
/// The path has no folder: it is empty, or the root.
pub fn folder_of(path: &Path) -> io::Result<&Path> {
    let folder = path.parent().ok_or_else(|| io::Error::other("internal error: a file without a folder"))?;
    Ok(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

/// Removes temporary files of processes that died, and returns how many there were. No process may be working in the
/// folder. A missing folder contains none.
///
/// # Errors
/// An error of the file system.
pub fn sweep(folder: &Path) -> io::Result<usize> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// A file that is being written under a temporary name. Dropping it removes the file.
#[derive(Debug)]
pub struct StagedFile(NamedTempFile);

impl StagedFile {
    /// Creates a file under a random name that begins with [`TEMPORARY`].
    ///
    /// # Errors
    /// An error of the file system.
    pub fn create_in(folder: &Path) -> io::Result<Self> {
        Self::with_prefix(folder, TEMPORARY)
    }

    /// Creates a file under a random name that begins with `prefix`.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn with_prefix(folder: &Path, prefix: &str) -> io::Result<Self> {
        tempfile::Builder::new().prefix(prefix).tempfile_in(folder).map(Self)
    }

    /// Creates a file under a fixed temporary name, and overwrites what a dead process left there. For folders that are
    /// never swept. Only one process at a time may use the name.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn create_as(temporary: &Path) -> io::Result<Self> {
        let name = temporary.file_name().unwrap_or_default();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let open = |path: &Path| options.open(path);
        let staged = tempfile::Builder::new().prefix(name).rand_bytes(0).make_in(folder_of(temporary)?, open)?;
        Ok(Self(staged))
    }

    /// Returns the file, for callers that write at an offset or asynchronously.
    pub fn file(&self) -> &File {
        self.0.as_file()
    }

    /// Returns the file and its path, for callers that write and rename it themselves. Dropping the path removes the
    /// file.
    pub fn into_parts(self) -> (File, tempfile::TempPath) {
        self.0.into_parts()
    }

    /// Ends writing, and syncs the content if the durability requires it.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn finish(self, durability: Durability) -> io::Result<FinishedFile> {
        if durability != Durability::Unsynced {
            self.0.as_file().sync_all()?;
        }
        Ok(FinishedFile { file: self.0, durability })
    }
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A file with all its content, still under a temporary name. Dropping it removes the file.
#[derive(Debug)]
#[must_use]
pub struct FinishedFile {
    file: NamedTempFile,
    durability: Durability,
}

impl FinishedFile {
    /// Renames the file to `path`, which must be in the same folder. An existing file is replaced.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn rename(self, path: &Path) -> io::Result<RenamedFile> {
        self.file.persist(path)?;
        Ok(RenamedFile { path: path.to_owned(), durability: self.durability })
    }

    /// Renames the file to `path`, unless a file has that name.
    ///
    /// # Errors
    /// An error of the file system; `AlreadyExists` if a file has that name.
    pub fn rename_new(self, path: &Path) -> io::Result<RenamedFile> {
        self.file.persist_noclobber(path)?;
        Ok(RenamedFile { path: path.to_owned(), durability: self.durability })
    }
}

/// A file that has its name, in a folder that is not synced yet.
#[derive(Debug)]
#[must_use]
pub struct RenamedFile {
    path: PathBuf,
    durability: Durability,
}

impl RenamedFile {
    /// Syncs the folder, if the durability requires it.
    ///
    /// # Errors
    /// An error of the file system: the file has its name, but a power loss may undo the renaming.
    pub fn sync(self) -> io::Result<()> {
        if self.durability == Durability::Synced { sync(folder_of(&self.path)?) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use tempfile::TempDir;

    fn names(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_whole_and_is_its_owners_only() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a");
        for (bytes, durability) in
            [("old", Durability::Unsynced), ("longer", Durability::ContentSynced), ("new", Durability::Synced)]
        {
            let before = File::open(&path).ok();
            replace(&path, bytes.as_bytes(), durability).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), bytes);
            assert_eq!(mode(&path), 0o600);
            // A reader that has the old file open keeps all of it.
            let is_replaced = before.is_none_or(|before| before.metadata().unwrap().nlink() == 0);
            assert!(is_replaced, "{durability:?}");
        }
        assert_eq!(names(&folder), ["a"]);
    }

    #[test]
    fn what_is_there_is_not_written_over_as_new() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("key");
        assert!(create_new(&path, b"first").unwrap());
        assert!(!create_new(&path, b"second").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!((mode(&path), names(&folder)), (0o600, vec!["key".to_owned()]));
        let (persons, usual) = (folder.path().join("persons"), folder.path().join("usual"));
        File::create(&usual).unwrap();
        assert!(create_new_by_umask(&persons, b"first").unwrap());
        assert!(!create_new_by_umask(&persons, b"second").unwrap());
        assert_eq!((fs::read(&persons).unwrap(), mode(&persons)), (b"first".to_vec(), mode(&usual)));
    }

    #[test]
    fn what_is_not_finished_leaves_the_old_file_and_nothing_else() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        let mut staged = StagedFile::create_in(folder.path()).unwrap();
        staged.write_all(b"half").unwrap();
        assert!(names(&folder)[0].starts_with(TEMPORARY));
        drop(staged);
        drop(StagedFile::create_in(folder.path()).unwrap().finish(Durability::Synced).unwrap());
        assert_eq!((fs::read_to_string(&path).unwrap(), names(&folder)), ("old".to_owned(), vec!["a".to_owned()]));
        assert!(replace(&folder.path().join("none/a"), b"", Durability::Synced).is_err());
    }

    #[test]
    fn a_fixed_temporary_name_is_taken_over_from_a_dead_process() {
        let folder = TempDir::new().unwrap();
        let (path, temporary) = (folder.path().join("a"), folder.path().join("a.half"));
        fs::write(&temporary, "a longer rest of before").unwrap();
        let mut staged = StagedFile::create_as(&temporary).unwrap();
        staged.write_all(b"new").unwrap();
        assert_eq!(names(&folder), ["a.half"]);
        staged.finish(Durability::Synced).unwrap().rename(&path).unwrap().sync().unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), names(&folder)), ("new".to_owned(), vec!["a".to_owned()]));
    }

    #[test]
    fn only_temporary_names_are_swept() {
        let folder = TempDir::new().unwrap();
        for name in [".tmpAbC", ".tmp", "kept", "kept.tmp"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(sweep(folder.path()).unwrap(), 2);
        assert_eq!(names(&folder), ["kept", "kept.tmp"]);
        assert_eq!(sweep(&folder.path().join("none")).unwrap(), 0);
    }
}
