//! Recognises a source's folder by the marker in it, or on read-only media by its file system. The identity is recorded
//! in the state directory.

use crate::crash_points::{self, Point};
use crate::domain::names::{Hash, SourceName};
use crate::domain::path::RelPath;
use crate::durable_file::{Durability, RenamedFile};
use crate::permission_errors::{chown_file_to_folder_owner, explain_error, explain_state_at};
use crate::shortage::Shortage;
use crate::source::filter::builtin::MARKER;
use crate::source::mount::nested_mounts;
use crate::source::mount::table;
use crate::source::ownership::owner::OwnershipRefusal;
use crate::source::saved_file;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// By what a folder is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderIdentity {
    /// The id in the marker.
    Marker(String),
    /// The file system, because the folder was not writable when it was first seen.
    FileSystem(String),
}

/// The record of a source's folder in the state directory: one small file for each source.
#[derive(Debug, Clone)]
pub struct FolderMemory {
    folder: PathBuf,
    file: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct FolderRecord {
    /// A record of another folder under the same source name does not apply.
    folder: RelPath,
    known: FolderIdentity,
}

impl FolderMemory {
    /// The record for this source.
    pub fn new(state: &Path, source: &SourceName, folder: &Path) -> Self {
        let hash = Hash::of(source.as_str().as_bytes()).to_string();
        Self { folder: folder.to_owned(), file: state.join("folders").join(format!("{hash}.json")) }
    }

    /// The file with the checkpoint of an interrupted scan.
    pub fn bookmark(&self) -> PathBuf {
        self.file.with_extension("scan")
    }

    /// The file with the claim on the folder.
    pub fn claim(&self) -> PathBuf {
        self.file.with_extension("claim")
    }

    /// The file with the mounts that were seen below the folder.
    pub fn nested_mounts(&self) -> PathBuf {
        self.file.with_extension("mounts")
    }

    /// The file with the times of the last scan.
    pub fn scanned(&self) -> PathBuf {
        self.file.with_extension("scanned")
    }

    /// Returns the recorded identity; `None` if nothing was ever seen in the folder, or the record is for another
    /// folder.
    ///
    /// # Errors
    /// The error of the file system, or `InvalidData` for a damaged record.
    pub fn load(&self) -> io::Result<Option<FolderIdentity>> {
        let bytes = match fs::read(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(explain_state_at(&self.file))?,
        };
        let record: FolderRecord = serde_json::from_slice(&bytes)?;
        Ok((record.folder.as_bytes() == self.folder.as_os_str().as_bytes()).then_some(record.known))
    }

    /// Returns the folder that a source of this name had and its identity; `None` if there is no readable record.
    pub fn load_recorded(state: &Path, source: &SourceName) -> Option<(RelPath, FolderIdentity)> {
        let bytes = fs::read(Self::new(state, source, Path::new("")).file).ok()?;
        let record: FolderRecord = serde_json::from_slice(&bytes).ok()?;
        Some((record.folder, record.known))
    }

    /// Copies the records of a renamed source to its new name. Durable when it returns.
    pub fn rename_source(state: &Path, old: &SourceName, (new, folder): (&SourceName, &Path)) -> io::Result<()> {
        let (from, to) = (Self::new(state, old, folder), Self::new(state, new, folder));
        for (from, to) in [(from.claim(), to.claim()), (from.scanned(), to.scanned())] {
            match fs::copy(&from, to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(explain_state_at(&from)(error)),
                _ => {}
            }
        }
        nested_mounts::rename_source(&from, &to, folder)?;
        match Self::load_recorded(state, old) {
            Some((_, known)) => to.save(&known),
            None => Ok(()),
        }
    }

    /// Records the identity. Durable when it returns.
    pub fn save(&self, known: &FolderIdentity) -> io::Result<()> {
        let record = FolderRecord { folder: RelPath::new(self.folder.as_os_str().as_bytes()), known: known.clone() };
        let finished = saved_file::write(&self.file, "tmp", &record, Durability::Synced)?;
        crash_points::point(Point::FolderBegun);
        finished.rename(&self.file).and_then(RenamedFile::sync).map_err(explain_state_at(&self.file))?;
        crash_points::point(Point::FolderKept);
        Ok(())
    }
}

/// Why a folder is not the known one. The text stands after "the folder /srv/media".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownFolder {
    /// The folder cannot be accessed.
    #[error("{0}")]
    Away(String),
    /// The folder is present without its marker.
    #[error(
        "has lost its marker: the file {MARKER} in it is gone, so this may be the mount point of a share that is \
         not mounted; if the folder was emptied on purpose, create an empty file {MARKER} in it"
    )]
    NoMarker,
    /// The folder has another marker.
    #[error(
        "has another marker than before, so another disk or share may be mounted there; if it is the right one, \
         empty the file {MARKER} in it"
    )]
    OtherMarker,
    /// The folder is on another file system.
    #[error(
        "is on another file system ({now}) than before ({before}): mount the right one; if this is the right one, \
         create an empty file {MARKER} in it"
    )]
    OtherFileSystem {
        /// The file system now.
        now: String,
        /// The file system that was recorded.
        before: String,
    },
    /// The folder is present, and this installation may not work in it.
    #[error("{}", .0.why)]
    Refused(OwnershipRefusal),
}

impl UnknownFolder {
    /// Returns what this machine lacks, if that is why the folder could not be checked.
    pub fn shortage(&self) -> Option<Shortage> {
        match self {
            Self::Away(words) => Shortage::in_words(words).or_else(Shortage::now),
            Self::Refused(refused) => Shortage::in_words(&refused.why),
            Self::NoMarker | Self::OtherMarker | Self::OtherFileSystem { .. } => None,
        }
    }
}

/// Checks that a folder is the known one. By an empty marker a person confirms that it is.
///
/// # Errors
/// [`UnknownFolder`].
pub fn recognise(folder: &Path, known: Option<&FolderIdentity>) -> Result<(), UnknownFolder> {
    let away = |error: io::Error| UnknownFolder::Away(describe(&explain_error(error, &folder.join(MARKER))));
    let meta = fs::metadata(folder).map_err(away)?;
    if !meta.is_dir() {
        return Err(UnknownFolder::Away("is not a folder".to_owned()));
    }
    let Some(known) = known else { return Ok(()) };
    let marker = read(folder).map_err(away)?;
    match (known, marker.as_deref()) {
        (_, Some("")) => Ok(()),
        (FolderIdentity::Marker(id), Some(found)) if found == id => Ok(()),
        (FolderIdentity::Marker(_), Some(_)) => Err(UnknownFolder::OtherMarker),
        (FolderIdentity::Marker(_), None) => Err(UnknownFolder::NoMarker),
        (FolderIdentity::FileSystem(before), _) => match table::identity(folder) {
            Some(now) if !table::is_same_file_system(&now, before) => {
                Err(UnknownFolder::OtherFileSystem { now, before: before.clone() })
            }
            _ => Ok(()),
        },
    }
}

/// Returns the id in a folder's marker; `None` if it has none or cannot be read. Blocks.
pub fn id(folder: &Path) -> Option<String> {
    read(folder).ok().flatten().filter(|id| !id.is_empty())
}

/// Whether the marker is empty: a person confirms that this is the right folder, and the marker needs an id.
pub fn is_blank(folder: &Path) -> bool {
    read(folder).is_ok_and(|id| id.as_deref() == Some(""))
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ if is_not_regular_file(error) => format!(
            "has no usable marker: {MARKER} in it is a link, a folder or another special file; remove it, and \
             create an empty file {MARKER} there"
        ),
        _ => format!("cannot be read: {error}"),
    }
}

/// Identifies a folder: by its marker, by a new marker, or by its file system if the folder is not writable. An empty
/// marker gets the id of `was`, so that other processes that know the folder by that id still recognise it.
///
/// # Errors
/// The error of the file system; then the folder has no identity yet.
pub fn identify(folder: &Path, was: Option<&FolderIdentity>) -> io::Result<FolderIdentity> {
    match read(folder)? {
        Some(id) if !id.is_empty() => Ok(FolderIdentity::Marker(id)),
        _ => match write_id(folder, was) {
            Ok(id) => Ok(FolderIdentity::Marker(id)),
            Err(error) if is_read_only(&error) => table::identity(folder).map(FolderIdentity::FileSystem).ok_or(error),
            Err(error) => Err(error),
        },
    }
}

/// Whether an error means that something other than a regular file has the marker's name.
pub(crate) fn is_not_regular_file(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::ISDIR | Errno::NXIO))
}

/// Whether an error means that the folder is not writable.
fn is_read_only(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::ROFS | Errno::ACCESS | Errno::PERM | Errno::OPNOTSUPP))
}

/// Returns the id in the marker; `None` if the file does not exist.
pub(crate) fn read(folder: &Path) -> io::Result<Option<String>> {
    match open(folder, OFlags::RDONLY) {
        Err(Errno::NOENT) => Ok(None),
        opened => id_in(&opened?).map(Some),
    }
}

/// Opens the marker. A link, folder or pipe of that name is refused.
pub(crate) fn open(folder: &Path, access: OFlags) -> Result<File, Errno> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder.join(MARKER), flags, Mode::from_raw_mode(0o644))?);
    let is_file = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::RegularFile;
    if is_file { Ok(file) } else { Err(Errno::ISDIR) }
}

/// Reads the id from an open marker.
fn id_in(file: &File) -> io::Result<String> {
    let mut text = Vec::new();
    file.take(MAX_ID_BYTES).read_to_end(&mut text)?;
    Ok(id_of(&text))
}

const MAX_ID_BYTES: u64 = 200;

/// Returns the id in a marker's text: its first line.
pub(crate) fn id_of(text: &[u8]) -> String {
    let text = &text[..text.len().min(MAX_ID_BYTES as usize)];
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).trim().to_owned()
}

/// Writes an id into a missing or empty marker and returns it. Processes that do so at the same time all return the id
/// of the first. A crash may leave the marker empty: then the next call fills it.
fn write_id(folder: &Path, was: Option<&FolderIdentity>) -> io::Result<String> {
    let file = open(folder, OFlags::RDWR | OFlags::CREATE)?;
    // Without locks a race cannot be excluded: then a person has to confirm the folder.
    let _ = rustix::fs::flock(&file, FlockOperation::LockExclusive);
    let found = id_in(&file)?;
    if !found.is_empty() {
        return Ok(found);
    }
    chown_file_to_folder_owner(folder, &file);
    crash_points::point(Point::MarkerMade);
    let id = match was {
        Some(FolderIdentity::Marker(id)) => id.clone(),
        _ => uuid::Uuid::new_v4().simple().to_string(),
    };
    file.set_len(0)?;
    file.write_all_at(format!("{id}\n{EXPLAINED}").as_bytes(), 0)?;
    file.sync_all()?;
    crash_points::point(Point::MarkerWritten);
    Ok(id)
}

pub(crate) const EXPLAINED: &str = "scribed recognises this folder by this file. If the file is missing, scribed \
                                    assumes that the share or disk is not mounted and changes nothing. Please \
                                    leave it here.\n";

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_folder_is_known_by_its_marker() {
        let folder = TempDir::new().unwrap();
        assert_eq!(recognise(folder.path(), None), Ok(()));
        let known = identify(folder.path(), None).unwrap();
        assert_eq!(identify(folder.path(), None).unwrap(), known, "another scribed takes the marker as it is");
        assert_eq!(recognise(folder.path(), Some(&known)), Ok(()));
        let marker = folder.path().join(MARKER);
        fs::write(&marker, "somebody else's\n").unwrap();
        assert_eq!(recognise(folder.path(), Some(&known)), Err(UnknownFolder::OtherMarker));
        fs::remove_file(&marker).unwrap();
        assert_eq!(recognise(folder.path(), Some(&known)), Err(UnknownFolder::NoMarker));
        fs::write(&marker, "").unwrap();
        assert_eq!(recognise(folder.path(), Some(&known)), Ok(()), "a person's word");
        assert_eq!(identify(folder.path(), Some(&known)).unwrap(), known, "and it is known as before");
        fs::write(&marker, "").unwrap();
        assert_ne!(identify(folder.path(), None).unwrap(), known, "who knew nothing gives it a new id");
    }

    #[test]
    fn all_who_meet_a_new_folder_know_it_by_the_same() {
        for round in 0..200 {
            let folder = TempDir::new().unwrap();
            if round % 2 == 0 {
                fs::write(folder.path().join(MARKER), "\n").unwrap();
            }
            let known = std::thread::scope(|scope| {
                let all = [(); 4].map(|()| scope.spawn(|| identify(folder.path(), None).unwrap()));
                all.map(|one| one.join().unwrap())
            });
            for one in &known {
                assert_eq!(recognise(folder.path(), Some(one)), Ok(()), "{known:?}");
            }
        }
    }

    #[test]
    fn a_folder_that_cannot_be_marked_is_known_by_its_file_system() {
        let folder = TempDir::new().unwrap();
        let here = FolderIdentity::FileSystem(table::identity(folder.path()).unwrap());
        assert_eq!(recognise(folder.path(), Some(&here)), Ok(()));
        let other = FolderIdentity::FileSystem("nfs4 nas:/export".to_owned());
        assert!(matches!(recognise(folder.path(), Some(&other)), Err(UnknownFolder::OtherFileSystem { .. })));
    }

    #[test]
    fn what_is_no_folder_is_away() {
        let folder = TempDir::new().unwrap();
        let nothing = recognise(&folder.path().join("none"), None).unwrap_err();
        assert_eq!(nothing.to_string(), "does not exist");
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(matches!(recognise(&folder.path().join("file"), None), Err(UnknownFolder::Away(_))));
    }

    #[test]
    fn what_is_known_is_kept_for_this_folder_only() {
        let state = TempDir::new().unwrap();
        let name = SourceName::new("talks");
        let memory = FolderMemory::new(state.path(), &name, Path::new("/srv/a"));
        assert_eq!(memory.load().unwrap(), None);
        let known = FolderIdentity::Marker("id".to_owned());
        memory.save(&known).unwrap();
        assert_eq!(memory.load().unwrap(), Some(known));
        assert_eq!(FolderMemory::new(state.path(), &name, Path::new("/srv/b")).load().unwrap(), None);
    }
}
