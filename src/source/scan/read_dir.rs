//! Reads a folder's entries in chunks: neither the folder nor the tree is held in memory. Entries are looked up by name
//! in the open folder, so that no path is resolved twice.

use crate::rooted_path::RootedPath;
use crate::source::filter::rules::EntryKind;
use rustix::fs::{AtFlags, FileType, RawDir, Stat};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;

/// The chunk size in bytes: some hundreds of names.
const CHUNK: usize = 64 * 1024;

pub struct OpenFolder(File);

/// An entry of an open folder.
pub struct FolderEntry<'e> {
    folder: &'e OpenFolder,
    name: &'e CStr,
    /// The kind of entry. Links are not followed.
    pub kind: EntryKind,
}

/// The buffer for chunks, reused for a whole traversal.
#[derive(Default)]
pub struct Buffer(Vec<u8>);

impl OpenFolder {
    /// Opens a folder.
    ///
    /// # Errors
    /// The error of the file system, or [`crate::rooted_path::LinkInPath`].
    pub fn open(path: &RootedPath) -> io::Result<Self> {
        path.open_folder().map(Self)
    }

    /// Calls `show` once for each entry, in the system's order, until it returns `Break`.
    ///
    /// # Errors
    /// The error of the file system. The entries shown before it are valid.
    pub fn for_each_entry(
        &self,
        buffer: &mut Buffer,
        mut show: impl FnMut(&FolderEntry<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        buffer.0.reserve(CHUNK);
        let mut listing = RawDir::new(&self.0, buffer.0.spare_capacity_mut());
        while let Some(entry) = listing.next() {
            let entry = entry?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            let Some(kind) = self.kind(entry.file_type(), entry.file_name())? else { continue };
            if show(&FolderEntry { folder: self, name: entry.file_name(), kind }).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the kind of an entry; some file systems do not give it in the listing. `None` if the entry is gone.
    fn kind(&self, listed: FileType, name: &CStr) -> io::Result<Option<EntryKind>> {
        if listed != FileType::Unknown {
            return Ok(Some(listed.into()));
        }
        Ok(self.stat(name)?.map(|stat| FileType::from_raw_mode(stat.st_mode).into()))
    }

    /// Whether an entry was added, removed or renamed at or after this moment (milliseconds since 1970).
    pub fn has_changed_since(&self, moment: i64) -> bool {
        rustix::fs::fstat(&self.0).is_ok_and(|stat| stat.st_mtime.saturating_add(1).saturating_mul(1000) > moment)
    }

    fn stat(&self, name: &CStr) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl FolderEntry<'_> {
    pub fn name(&self) -> &OsStr {
        OsStr::from_bytes(self.name.to_bytes())
    }

    /// Returns the entry's metadata, links not followed; `None` if it is gone.
    pub fn stat(&self) -> io::Result<Option<Stat>> {
        self.folder.stat(self.name)
    }
}

impl From<FileType> for EntryKind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            _ => Self::Device,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn more_entries_than_a_piece_holds_are_each_shown_once() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..3_000 {
            std::fs::write(dir.path().join(format!("a long name of a file, number {n}.wav")), vec![0; n % 7]).unwrap();
        }
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("folder", dir.path().join("link")).unwrap();
        let folder = OpenFolder::open(&RootedPath::new(dir.path(), "")).unwrap();
        let mut seen = BTreeMap::new();
        let show = |entry: &FolderEntry<'_>| {
            let size = entry.stat().unwrap().unwrap().st_size;
            assert!(seen.insert(entry.name().to_owned(), (entry.kind, size)).is_none());
            ControlFlow::Continue(())
        };
        folder.for_each_entry(&mut Buffer::default(), show).unwrap();
        assert_eq!(seen.len(), 3_002);
        assert_eq!(seen[OsStr::new("a long name of a file, number 13.wav")], (EntryKind::File, 6));
        assert_eq!((seen[OsStr::new("folder")].0, seen[OsStr::new("link")].0), (EntryKind::Folder, EntryKind::Link));
    }

    #[test]
    fn a_link_is_opened_only_as_a_root() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
        assert!(OpenFolder::open(&RootedPath::new(dir.path(), "link")).is_err());
        assert!(OpenFolder::open(&RootedPath::new(dir.path().join("link"), "")).is_ok());
    }
}
