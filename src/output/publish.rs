//! Writes a job's outputs into a folder: each whole or not at all, and never over a file that scribed did not write.

use super::exchange::{self, Replaced, read_hash};
use super::group_fsync::{SyncBatch, Syncs};
use super::portable_name;
use super::relocated::{KeptOutput, Occupant, Relocation, lengths};
use super::temporary::{self, Temporary, WorkFolder};
use crate::crash_points::{self, Point};
use crate::domain::file_permissions::Access;
use crate::domain::names::Hash;
use crate::permission_errors::{denied_message, describe_error};
use crate::rooted_path::{self, RootedPath};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An output to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingOutput<N> {
    /// The names to try, best first; each a plain file name. The first that is free or has an output of this job is
    /// taken.
    pub candidates: N,
    pub bytes: Vec<u8>,
}

/// The names to try, best first. The iterator can be cloned to start again.
pub trait Names: Iterator<Item = OsString> + Clone + Send + 'static {}

impl<I: Iterator<Item = OsString> + Clone + Send + 'static> Names for I {}

/// The outputs of this job that the folder may already contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnOutputs {
    /// Outputs recorded as published: the name, and the hash of what was written there.
    pub published: Vec<(OsString, Hash)>,
    /// Hashes recorded before publishing, under any name: a process that was killed may have published them, possibly
    /// as an older release rendered them.
    pub pending: Vec<Hash>,
    /// How to recognise outputs that came with the recording; `None`: they are not looked for.
    pub relocation: Option<Relocation>,
    /// Names of other jobs' outputs: never used, not even if the content is the same.
    pub of_others: BTreeSet<OsString>,
}

/// An output that is in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Its name in the folder.
    pub name: OsString,
    /// The hash of its content.
    pub hash: Hash,
}

pub struct Destination<'a> {
    /// The folder, which is there.
    pub folder: &'a RootedPath,
    /// Who may use the outputs, taken from the recording; `None`: the umask decides.
    pub access: Option<Access>,
    /// Whether a name counts as taken by a file whose name differs only in the case of letters. Otherwise the file
    /// system decides.
    pub ignores_case: bool,
}

/// Why an output was not published, by what the user has to do. The result is kept in every case, and a later call
/// finishes the work.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The disk or the user's quota is full.
    #[error("no space left to write {}; free some space: {RESULT_KEPT}", file.display())]
    NoSpace {
        /// The output, or the folder if the error concerns all outputs.
        file: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error("the file system of {} is read-only; remount it read-write: {RESULT_KEPT}", file.display())]
    ReadOnly {
        /// The output, or the folder if the error concerns all outputs.
        file: PathBuf,
    },
    /// The user of this process may not write there.
    #[error("cannot write {}: {}; {RESULT_KEPT}", file.display(), denied_message(file))]
    NoPermission {
        /// The output, or the folder if the error concerns all outputs.
        file: PathBuf,
    },
    /// The folder does not exist, or is not a folder.
    #[error("the folder for {} does not exist any more; mount it or create it again: {RESULT_KEPT}", file.display())]
    FolderGone {
        /// The output, or the folder if the error concerns all outputs.
        file: PathBuf,
    },
    /// The name is too long for the file system.
    #[error("the name of {} is too long for its file system; change `name_as` to make it shorter: {RESULT_KEPT}", file.display())]
    NameTooLong { file: PathBuf },
    /// Files that scribed did not write have every name that was tried.
    #[error("files that scribed did not write have every name for {}; move some of them: {RESULT_KEPT}", file.display())]
    NoFreeName {
        /// The output with its preferred name.
        file: PathBuf,
    },
    /// Any other error of the system.
    #[error("cannot write {}: {}; {RESULT_KEPT}", file.display(), describe_error(source, file))]
    Io {
        /// The output, or the folder if the error concerns all outputs.
        file: PathBuf,
        source: io::Error,
    },
}

/// The end of every message: the user has not lost what the service was paid for.
pub const RESULT_KEPT: &str = "scribed keeps the result and tries again to write it";

/// Writes a job's outputs into a folder and returns them in the order of `wanted`. Blocks.
///
/// A file with the same bytes counts as published. A file that is among `ours` is replaced. Anything else under a name
/// (an edited file, a folder, a symlink even if its target is missing) is left alone, and the next candidate is tried.
///
/// # Errors
///
/// Returns a [`PlaceError`]. No partial file is left; outputs that were published before the error stay.
///
/// `is_right` is called when the folder is open; if it returns false, the folder counts as gone.
pub fn publish_outputs<N: Names>(
    to: &Destination<'_>,
    is_right: &dyn Fn() -> bool,
    wanted: Vec<PendingOutput<N>>,
    ours: &OwnOutputs,
    syncs: &Syncs,
) -> Result<Vec<Placed>, PlaceError> {
    let folder = to.folder.full();
    let open = WorkFolder::beneath(to.folder, to.access.clone()).map_err(|error| PlaceError::of(&folder, error))?;
    if !is_right() {
        return Err(PlaceError::FolderGone { file: folder });
    }
    let folded = to.ignores_case.then(|| folded_names(&open)).transpose();
    let folded = folded.map_err(|error| PlaceError::of(&folder, error))?;
    let publisher = Publisher { folder: &folder, open: &open, ours, syncs, folded };
    let kept = publisher.kept(&wanted);
    // All outputs are written before the first is published: if the disk fills up, none appears.
    let prepare = |(wanted, kept): (PendingOutput<N>, Option<KeptOutput>)| match kept {
        Some(kept) => Ok(Planned::Kept(kept)),
        None => publisher.prepare(wanted).map(Planned::Ready),
    };
    let planned = wanted.into_iter().zip(kept).map(prepare).collect::<Result<Vec<_>, _>>()?;
    publisher.sync(planned.iter().filter_map(Planned::file).collect())?;
    crash_points::point(Point::OutputsSynced);
    // No output may take the name of a file that is kept.
    let kept_name = |planned: &Planned<N>| match planned {
        Planned::Kept(KeptOutput { name, .. }) => Some(name.clone()),
        Planned::Ready(_) => None,
    };
    let kept_names: Vec<OsString> = planned.iter().filter_map(kept_name).collect();
    let mut placed: Vec<Placed> = Vec::with_capacity(planned.len());
    // A nameless file changes when it gets its name, and must be synced again; so must the folder.
    let mut to_sync: SyncBatch = vec![open.file()];
    for planned in planned {
        let done = match planned {
            Planned::Kept(kept) => publisher.keep(kept, &mut to_sync),
            Planned::Ready(ready) => {
                let taken: Vec<&OsStr> =
                    placed.iter().map(|placed| &*placed.name).chain(kept_names.iter().map(|name| &**name)).collect();
                publisher.publish(ready, &taken, &mut to_sync)?
            }
        };
        crash_points::point(Point::OutputNamed);
        placed.push(done);
    }
    publisher.sync(to_sync)?;
    crash_points::point(Point::NamesSynced);
    Ok(placed)
}

/// Removes the temporary files that killed processes left in `folder`, and returns how many it removed. Removes only
/// regular files and empty folders with exactly the form of scribed's temporary names that no living process holds
/// locked. A file that another program saved while such a process replaced it is put back, never removed. Blocks.
pub fn remove_leftovers(folder: &RootedPath) -> io::Result<usize> {
    temporary::remove_leftovers(folder)
}

impl PlaceError {
    pub(super) fn of(file: &Path, error: io::Error) -> Self {
        let file = file.to_owned();
        match Errno::from_io_error(&error) {
            Some(Errno::NOSPC | Errno::DQUOT) => Self::NoSpace { file },
            Some(Errno::ROFS) => Self::ReadOnly { file },
            Some(Errno::ACCESS | Errno::PERM) => Self::NoPermission { file },
            Some(Errno::NOENT | Errno::NOTDIR | Errno::STALE) => Self::FolderGone { file },
            Some(Errno::NAMETOOLONG) => Self::NameTooLong { file },
            _ => Self::Io { file, source: error },
        }
    }
}

/// One call of [`publish_outputs`]: the open folder and what is known of it.
struct Publisher<'a> {
    folder: &'a Path,
    open: &'a WorkFolder,
    ours: &'a OwnOutputs,
    syncs: &'a Syncs,
    /// The names in the folder by their folded form, if the case of letters does not count.
    folded: Option<HashMap<String, Vec<OsString>>>,
}

/// Returns the names in a folder by their folded form.
fn folded_names(folder: &WorkFolder) -> io::Result<HashMap<String, Vec<OsString>>> {
    let mut folded: HashMap<String, Vec<OsString>> = HashMap::new();
    for name in rooted_path::names(folder.as_fd())? {
        let name = name?;
        folded.entry(portable_name::folded(name.as_bytes())).or_default().push(name);
    }
    Ok(folded)
}

/// An output with its temporary file; without one if the output is already in place.
struct Ready<'a, N> {
    wanted: PendingOutput<N>,
    hash: Hash,
    temporary: Option<Temporary<'a>>,
}

/// How an output is handled.
enum Planned<'a, N> {
    /// A file that came with the recording stands for the output; nothing is written.
    Kept(KeptOutput),
    Ready(Ready<'a, N>),
}

impl<N> Planned<'_, N> {
    fn file(&self) -> Option<Arc<File>> {
        match self {
            Self::Kept(_) => None,
            Self::Ready(ready) => ready.temporary.as_ref().map(Temporary::file),
        }
    }
}

/// What has a name in the folder.
enum NameState {
    Nothing,
    /// A file with the wanted content, open.
    Same(File),
    Ours(Hash),
    Foreign,
}

impl<'a> Publisher<'a> {
    /// Returns for each output the file that came with the recording and is kept.
    fn kept<N: Names>(&self, wanted: &[PendingOutput<N>]) -> Vec<Option<KeptOutput>> {
        match &self.ours.relocation {
            Some(relocation) => {
                relocation.recognised(wanted, &mut |n, name| self.occupant(name, &lengths(&wanted[n].bytes)))
            }
            None => wanted.iter().map(|_| None).collect(),
        }
    }

    fn occupant(&self, name: &OsStr, lengths: &RangeInclusive<u64>) -> Occupant {
        let stat = match rustix::fs::statat(self.open, name, AtFlags::SYMLINK_NOFOLLOW) {
            _ if self.ours.of_others.contains(name) => return Occupant::Neighbours,
            _ if !is_plain(name) => return Occupant::Other,
            Err(Errno::NOENT) => return Occupant::Nothing,
            Err(_) => return Occupant::Other,
            Ok(stat) => stat,
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Occupant::Other;
        }
        let is_placed = self.ours.published.iter().any(|(placed, _)| placed == name);
        match exchange::read_whole(self.open, name, *lengths.end()) {
            // A recorded output of this job: it is rendered again where necessary.
            Ok(bytes) if is_placed && self.hashes_for(name).any(|known| known == Hash::of(&bytes)) => Occupant::Own,
            Ok(bytes) if lengths.contains(&(bytes.len() as u64)) => Occupant::File(bytes),
            _ => Occupant::OtherFile,
        }
    }

    /// Adds the kept file to the sync: it may have been copied a moment ago, and nothing else syncs it.
    fn keep(&self, KeptOutput { name, hash }: KeptOutput, to_sync: &mut SyncBatch) -> Placed {
        if let Ok((_, file)) = read_hash(self.open, &name) {
            to_sync.push(Arc::new(file));
        }
        tracing::debug!(folder = %self.folder.display(), file = %name.display(), "an output came with its recording; scribed keeps it as it is");
        Placed { name, hash }
    }

    fn prepare<N: Names>(&self, wanted: PendingOutput<N>) -> Result<Ready<'a, N>, PlaceError> {
        let hash = Hash::of(&wanted.bytes);
        let mut ready = Ready { wanted, hash, temporary: None };
        for name in ready.wanted.candidates.clone() {
            match self.find(&name, &ready)? {
                NameState::Foreign => continue,
                NameState::Same(_) => break,
                NameState::Nothing => ready.temporary = Some(self.write(&ready.wanted.bytes, &name, false)?),
                NameState::Ours(_) => ready.temporary = Some(self.write(&ready.wanted.bytes, &name, true)?),
            }
            break;
        }
        Ok(ready)
    }

    fn write(&self, bytes: &[u8], name: &OsStr, to_replace: bool) -> Result<Temporary<'a>, PlaceError> {
        let write = if to_replace { Temporary::write_named } else { Temporary::write };
        // The usual mode for new files; the umask is applied to it.
        let written = write(self.open, bytes, 0o666).map_err(|error| self.error(name, error));
        crash_points::point(Point::OutputBegun);
        written
    }

    fn sync(&self, batch: SyncBatch) -> Result<(), PlaceError> {
        if batch.is_empty() {
            return Ok(());
        }
        self.syncs.sync(batch).map_err(|error| PlaceError::of(self.folder, error))
    }

    /// Publishes the output under the first name that it may have, and adds to `to_sync` what must be synced then.
    fn publish<N: Names>(
        &self,
        mut ready: Ready<'a, N>,
        taken: &[&OsStr],
        to_sync: &mut SyncBatch,
    ) -> Result<Placed, PlaceError> {
        for name in ready.wanted.candidates.clone() {
            // A file system that ignores case would take both names for one.
            let folded = portable_name::folded(name.as_bytes());
            let is_taken = taken.iter().any(|taken| portable_name::folded(taken.as_bytes()) == folded);
            if !is_taken && self.try_name(&mut ready, &name, to_sync)? {
                return Ok(Placed { name, hash: ready.hash });
            }
        }
        let file = self.folder.join(ready.wanted.candidates.next().unwrap_or_default());
        Err(PlaceError::NoFreeName { file })
    }

    /// Returns false if another file has the name; `ready` then keeps its temporary file, or is written again later.
    fn try_name<N>(&self, ready: &mut Ready<'a, N>, name: &OsStr, to_sync: &mut SyncBatch) -> Result<bool, PlaceError> {
        let old = match self.find(name, ready)? {
            NameState::Same(file) => {
                // A killed process may have published the file without syncing it, or may have swapped out another
                // program's file.
                if self.is_recovered(name, ready)? {
                    return self.try_name(ready, name, to_sync);
                }
                to_sync.push(Arc::new(file));
                return Ok(true);
            }
            NameState::Foreign => return Ok(false),
            NameState::Ours(old) => Some(old),
            NameState::Nothing => None,
        };
        let mut temporary = match ready.temporary.take() {
            Some(temporary) if temporary.name().is_some() || old.is_none() => temporary,
            // A file appeared or disappeared under the name since the output was prepared.
            _ => return self.rewrite(ready, name, old.is_some(), to_sync),
        };
        if let Some(old) = old {
            return self.replace(ready, temporary, (name, old), to_sync);
        }
        match temporary.publish_new(name) {
            Ok(()) => {
                to_sync.push(temporary.file());
                Ok(true)
            }
            // Another program, or another job with the same bytes, took the name first.
            Err(Errno::EXIST | Errno::ISDIR | Errno::NOTEMPTY) => {
                ready.temporary = Some(temporary);
                self.is_same_now(ready, name, to_sync)
            }
            // If the system cannot give a nameless file a name, the output is written again with one.
            Err(Errno::NOENT | Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP)
                if temporary.name().is_none() =>
            {
                self.rewrite(ready, name, true, to_sync)
            }
            Err(error) => Err(self.error(name, error.into())),
        }
    }

    /// Replaces an older output of this job.
    fn replace<N>(
        &self,
        ready: &mut Ready<'a, N>,
        mut temporary: Temporary<'a>,
        (name, old): (&OsStr, Hash),
        to_sync: &mut SyncBatch,
    ) -> Result<bool, PlaceError> {
        let is_ours = |hash: &Hash| self.hashes_for(name).any(|known| known == *hash);
        let replaced = exchange::replace(self.open, &mut temporary, name, (&ready.hash, &old), &is_ours);
        match replaced.map_err(|error| self.error(name, error))? {
            Replaced::Done => {
                to_sync.push(temporary.file());
                Ok(true)
            }
            Replaced::NotOurs => {
                // A temporary file without a name cannot be used again: the output is rewritten.
                ready.temporary = Some(temporary).filter(|temporary| temporary.name().is_some());
                Ok(false)
            }
            Replaced::LookAgain => {
                ready.temporary = Some(temporary);
                self.try_name(ready, name, to_sync)
            }
        }
    }

    /// Returns whether a process died while it published this output; if so, recovers the file that was swapped out.
    fn is_recovered<N>(&self, name: &OsStr, ready: &Ready<N>) -> Result<bool, PlaceError> {
        let mut recovered = false;
        for old in self.hashes_for(name) {
            let recovery = exchange::recover_of(self.open, name, &ready.hash, &old);
            recovered |= recovery.map_err(|error| self.error(name, error))?;
        }
        Ok(recovered)
    }

    /// Writes the output again, with a temporary name if it may have to replace a file. Then checks the name again,
    /// because writing took time.
    fn rewrite<N>(
        &self,
        ready: &mut Ready<'a, N>,
        name: &OsStr,
        with_name: bool,
        to_sync: &mut SyncBatch,
    ) -> Result<bool, PlaceError> {
        let temporary = self.write(&ready.wanted.bytes, name, with_name)?;
        self.sync(vec![temporary.file()])?;
        ready.temporary = Some(temporary);
        self.try_name(ready, name, to_sync)
    }

    fn is_same_now<N>(&self, ready: &Ready<'a, N>, name: &OsStr, to_sync: &mut SyncBatch) -> Result<bool, PlaceError> {
        let NameState::Same(file) = self.find(name, ready)? else { return Ok(false) };
        to_sync.push(Arc::new(file));
        Ok(true)
    }

    fn is_taken_in_other_case(&self, name: &OsStr) -> bool {
        let alike = self.folded.as_ref().and_then(|folded| folded.get(&portable_name::folded(name.as_bytes())));
        alike.is_some_and(|alike| alike.iter().any(|other| other != name))
    }

    /// Returns what has the name, without following a symlink.
    fn find<N>(&self, name: &OsStr, ready: &Ready<N>) -> Result<NameState, PlaceError> {
        if self.ours.of_others.contains(name) {
            return Ok(NameState::Foreign);
        }
        if !is_plain(name) {
            return Err(self.error(name, io::ErrorKind::InvalidFilename.into()));
        }
        if self.is_taken_in_other_case(name) {
            return Ok(NameState::Foreign);
        }
        let stat = match rustix::fs::statat(self.open, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(NameState::Nothing),
            Err(error) => return Err(self.error(name, error.into())),
        };
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let same_size = u64::try_from(stat.st_size) == Ok(ready.wanted.bytes.len() as u64);
        let known: Vec<Hash> = self.hashes_for(name).collect();
        if !is_file || (!same_size && known.is_empty()) {
            return Ok(NameState::Foreign);
        }
        // A file that cannot be read cannot be recognised as an output of scribed.
        Ok(match read_hash(self.open, name) {
            Ok((hash, file)) if hash == ready.hash => NameState::Same(file),
            Ok((hash, _)) if known.contains(&hash) => NameState::Ours(hash),
            _ => NameState::Foreign,
        })
    }

    fn hashes_for(&self, name: &OsStr) -> impl Iterator<Item = Hash> {
        let placed = self.ours.published.iter().filter(move |(ours, _)| ours == name).map(|(_, hash)| *hash);
        placed.chain(self.ours.pending.iter().copied())
    }

    fn error(&self, name: &OsStr, error: io::Error) -> PlaceError {
        PlaceError::of(&self.folder.join(name), error)
    }
}

/// Whether `name` is a single path component.
fn is_plain(name: &OsStr) -> bool {
    let mut components = Path::new(name).components();
    let first = components.next();
    matches!(first, Some(std::path::Component::Normal(only)) if only == name) && components.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::Mode;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use tempfile::TempDir;

    type Listed = std::vec::IntoIter<OsString>;

    fn place(
        folder: &Path,
        wanted: Vec<PendingOutput<Listed>>,
        ours: &[(OsString, Hash)],
    ) -> Result<Vec<Placed>, PlaceError> {
        put(folder, &|| true, wanted, &OwnOutputs { published: ours.to_vec(), ..OwnOutputs::default() })
    }

    fn put(
        folder: &Path,
        is_right: &dyn Fn() -> bool,
        wanted: Vec<PendingOutput<Listed>>,
        ours: &OwnOutputs,
    ) -> Result<Vec<Placed>, PlaceError> {
        let to = Destination { folder: &RootedPath::new(folder, ""), access: None, ignores_case: false };
        super::publish_outputs(&to, is_right, wanted, ours, &Syncs::default())
    }

    fn wanted(names: &[&str], bytes: &[u8]) -> PendingOutput<Listed> {
        let names: Vec<OsString> = names.iter().map(OsString::from).collect();
        PendingOutput { candidates: names.into_iter(), bytes: bytes.into() }
    }

    fn talk(bytes: &[u8]) -> Vec<PendingOutput<Listed>> {
        vec![wanted(&["talk.srt", "talk.wav.srt", "talk.wav.2.srt"], bytes)]
    }

    fn names(placed: &[Placed]) -> Vec<&str> {
        placed.iter().map(|placed| placed.name.to_str().unwrap()).collect()
    }

    fn listing(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn outputs_appear_with_the_usual_mode_and_nothing_else_stays() {
        let folder = TempDir::new().unwrap();
        let set = vec![wanted(&["a.srt"], b"1"), wanted(&["a.txt"], b"2")];
        let placed = place(folder.path(), set, &[]).unwrap();
        assert_eq!(names(&placed), ["a.srt", "a.txt"]);
        assert_eq!(placed[0].hash, Hash::of(b"1"));
        assert_eq!(listing(folder.path()), ["a.srt", "a.txt"]);
        fs::write(folder.path().join("plain"), b"").unwrap();
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode("a.srt"), mode("plain"));
    }

    #[test]
    fn an_equal_file_is_taken_as_it_is() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("talk.srt");
        fs::write(&file, b"same").unwrap();
        let before = fs::metadata(&file).unwrap().ino();
        let placed = place(folder.path(), talk(b"same"), &[]).unwrap();
        assert_eq!(names(&placed), ["talk.srt"]);
        assert_eq!(fs::metadata(&file).unwrap().ino(), before);
    }

    #[test]
    fn an_edited_file_is_left_alone_and_our_own_is_replaced() {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("talk.srt"), b"edited").unwrap();
        fs::write(folder.path().join("talk.wav.srt"), b"old").unwrap();
        let ours =
            [(OsString::from("talk.srt"), Hash::of(b"as written")), (OsString::from("talk.wav.srt"), Hash::of(b"old"))];
        let placed = place(folder.path(), talk(b"new"), &ours).unwrap();
        assert_eq!(names(&placed), ["talk.wav.srt"]);
        assert_eq!(fs::read(folder.path().join("talk.srt")).unwrap(), b"edited");
        assert_eq!(fs::read(folder.path().join("talk.wav.srt")).unwrap(), b"new");
        assert_eq!(listing(folder.path()).len(), 2);
    }

    #[test]
    fn a_hash_counts_for_its_own_name_only() {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("talk.srt"), b"old").unwrap();
        let ours = [(OsString::from("talk.txt"), Hash::of(b"old"))];
        assert_eq!(names(&place(folder.path(), talk(b"new"), &ours).unwrap()), ["talk.wav.srt"]);
    }

    #[test]
    fn what_was_being_placed_is_ours_under_any_name() {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("talk.srt"), b"edited").unwrap();
        fs::write(folder.path().join("talk.wav.srt"), b"as an older release rendered it").unwrap();
        let pending_outputs = vec![Hash::of(b"as an older release rendered it"), Hash::of(b"new")];
        let ours = OwnOutputs { pending: pending_outputs, ..OwnOutputs::default() };
        let placed = put(folder.path(), &|| true, talk(b"new"), &ours).unwrap();
        assert_eq!(names(&placed), ["talk.wav.srt"]);
        assert_eq!(fs::read(folder.path().join("talk.wav.srt")).unwrap(), b"new");
        assert_eq!(fs::read(folder.path().join("talk.srt")).unwrap(), b"edited");
    }

    #[test]
    fn folders_symlinks_and_pipes_are_never_written_through() {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("0.srt")).unwrap();
        symlink("nowhere", at("1.srt")).unwrap();
        fs::write(at("target"), b"same").unwrap();
        symlink("target", at("2.srt")).unwrap();
        let fd = WorkFolder::open(folder.path()).unwrap();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(&fd, "3.srt", FileType::Fifo, mode, 0).unwrap();
        let set = vec![wanted(&["0.srt", "1.srt", "2.srt", "3.srt", "4.srt"], b"same")];
        let placed = place(folder.path(), set, &[]).unwrap();
        assert_eq!(names(&placed), ["4.srt"]);
        assert!(!at("nowhere").exists());
    }

    #[test]
    fn two_outputs_never_share_a_name() {
        let folder = TempDir::new().unwrap();
        let set = [talk(b""), talk(b"")].concat();
        assert_eq!(names(&place(folder.path(), set, &[]).unwrap()), ["talk.srt", "talk.wav.srt"]);
    }

    #[test]
    fn a_name_in_another_case_is_taken_where_case_does_not_count() {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("Talk.SRT"), b"somebody's").unwrap();
        let put_with = |ignores_case| {
            let to = Destination { folder: &RootedPath::new(folder.path(), ""), access: None, ignores_case };
            let placed =
                super::publish_outputs(&to, &|| true, talk(b"x"), &OwnOutputs::default(), &Syncs::default()).unwrap();
            placed[0].name.clone().into_string().unwrap()
        };
        assert_eq!(put_with(true), "talk.wav.srt");
        assert_eq!(put_with(true), "talk.wav.srt", "its own file does not take a name from it");
        assert_eq!(put_with(false), "talk.srt");
        let set = vec![wanted(&["New.srt", "new.wav.srt"], b"1"), wanted(&["new.srt", "new.wav.srt"], b"2")];
        assert_eq!(names(&place(folder.path(), set, &[]).unwrap()), ["New.srt", "new.wav.srt"]);
    }

    #[test]
    fn nothing_is_written_into_a_folder_that_is_not_the_right_one() {
        let folder = TempDir::new().unwrap();
        let error = put(folder.path(), &|| false, talk(b"x"), &OwnOutputs::default()).unwrap_err();
        assert!(matches!(error, PlaceError::FolderGone { .. }), "{error}");
        assert_eq!(listing(folder.path()), [""; 0]);
    }

    #[test]
    fn names_that_are_no_text_are_written() {
        let folder = TempDir::new().unwrap();
        let name = OsStr::from_bytes(b"caf\xe9.srt").to_owned();
        let set = vec![PendingOutput { candidates: vec![name.clone()].into_iter(), bytes: b"x".into() }];
        place(folder.path(), set, &[]).unwrap();
        assert!(folder.path().join(name).exists());
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        let folder = TempDir::new().unwrap();
        for name in ["../x", "/tmp/x", "..", "", "a/b"] {
            let error = place(folder.path(), vec![wanted(&[name], b"x")], &[]).unwrap_err();
            assert!(matches!(error, PlaceError::Io { .. }), "{name}: {error}");
        }
    }

    #[test]
    fn each_error_says_what_to_do() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        let gone = place(&file, talk(b"x"), &[]).unwrap_err();
        assert!(matches!(gone, PlaceError::FolderGone { .. }));
        assert!(gone.to_string().contains("keeps the result"));
        let long = vec![wanted(&["x".repeat(300).as_str()], b"x")];
        let long = place(folder.path(), long, &[]).unwrap_err();
        assert!(matches!(long, PlaceError::NameTooLong { .. }));
        let taken = place(folder.path(), vec![wanted(&["file"], b"x")], &[]).unwrap_err();
        assert!(matches!(taken, PlaceError::NoFreeName { .. }));
        assert_eq!(listing(folder.path()), ["file"]);
    }

    /// A small file system, unmounted when dropped. Needs root: the errors of a full or read-only disk cannot be
    /// produced otherwise.
    struct SmallDisk(TempDir);

    impl SmallDisk {
        fn mount(options: &str) -> Self {
            let folder = TempDir::new().unwrap();
            let arguments = ["-t", "tmpfs", "-o", options, "scribed-test"];
            let status = std::process::Command::new("mount").args(arguments).arg(folder.path()).status();
            assert!(
                status.is_ok_and(|status| status.success()),
                "this test mounts a small tmpfs and has to run as root"
            );
            Self(folder)
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg(self.0.path()).status();
        }
    }

    #[test]
    fn a_full_disk_shows_no_output_and_keeps_no_temporary_file() {
        let disk = SmallDisk::mount("size=64k");
        let set = vec![wanted(&["a.txt"], &[7; 20_000]), wanted(&["a.json"], &[7; 90_000])];
        let error = place(disk.0.path(), set, &[]).unwrap_err();
        assert!(matches!(error, PlaceError::NoSpace { .. }), "{error}");
        assert_eq!(listing(disk.0.path()), [""; 0]);
    }

    #[test]
    fn a_read_only_disk_is_named() {
        let disk = SmallDisk::mount("ro,size=64k");
        let error = place(disk.0.path(), talk(b"x"), &[]).unwrap_err();
        assert!(matches!(error, PlaceError::ReadOnly { .. }), "{error}");
    }

    #[test]
    fn a_sweep_takes_leftovers_only() {
        let folder = TempDir::new().unwrap();
        let fd = WorkFolder::open(folder.path()).unwrap();
        let living = Temporary::write_named(&fd, b"still being written", 0o666).unwrap();
        let digits = "0123456789abcdef".repeat(2);
        let leftover = format!(".{digits}.scribed-tmp");
        let spared = [
            format!("{digits}.scribed-tmp"),
            ".talk.scribed-tmp".into(),
            living.name().unwrap().to_str().unwrap().into(),
        ];
        for name in spared.iter().take(2).chain([&leftover]) {
            fs::write(folder.path().join(name), b"half").unwrap();
        }
        let [empty, full] = ["a", "b"].map(|digit| folder.path().join(format!(".{}.scribed-tmp", digit.repeat(32))));
        fs::create_dir(&empty).unwrap();
        fs::create_dir(&full).unwrap();
        fs::write(full.join("talk.srt"), b"somebody's").unwrap();
        assert_eq!(remove_leftovers(&RootedPath::new(folder.path(), "")).unwrap(), 2);
        assert!(!empty.exists() && full.join("talk.srt").is_file());
        assert!(spared.iter().all(|name| folder.path().join(name).exists()));
        assert!(!folder.path().join(leftover).exists());
    }

    #[test]
    fn a_sweep_goes_through_no_link() {
        let top = TempDir::new().unwrap();
        let leftover = format!("elsewhere/a/.{}.scribed-tmp", "0".repeat(32));
        fs::create_dir_all(top.path().join("elsewhere/a")).unwrap();
        fs::create_dir(top.path().join("root")).unwrap();
        fs::write(top.path().join(&leftover), b"half").unwrap();
        symlink("../elsewhere", top.path().join("root/link")).unwrap();
        for below in ["link", "link/a"] {
            assert!(remove_leftovers(&RootedPath::new(top.path().join("root"), below)).is_err(), "{below}");
        }
        assert!(top.path().join(leftover).exists());
    }
}
