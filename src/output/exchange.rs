//! Replaces an older output that scribed wrote, without losing what another program saves at the same time.
//!
//! A rename over the old file would destroy whatever a person has saved there since scribed looked at it. So the two
//! files are exchanged (`RENAME_EXCHANGE`), and the file that came out is checked. If scribed did not write it, it is
//! put back. During the exchange the file has a name that contains the hashes of the old and the new output. After a
//! crash, a sweep tells by its content whether the file is an output of scribed; if not, the sweep puts it back or
//! keeps it under a visible name.
//!
//! Two gaps remain. A program that has the old file open and writes into it after the check writes into a file that has
//! no name any more. Where the file system cannot exchange files, a save between the check and the rename is lost.

use super::temporary::{Temporary, WorkFolder};
use crate::crash_points::{self, Point};
use crate::domain::names::Hash;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

/// The outcome of replacing an older output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    Done,
    /// The file in that place was not written by scribed, and stays. The new file may have lost its name.
    NotOurs,
    /// The old file is gone or was just put back: the caller checks the name again.
    LookAgain,
}

/// The name of a file during an exchange. It identifies the output and both contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SwapName {
    /// The output's name; its beginning if the name is too long.
    name: OsString,
    /// The first digits of the hash of the new content.
    new: String,
    /// The first digits of the hash of the content that is replaced.
    old: String,
}

/// The end of a swap name; before it stand the output's name and both hashes, separated by dots. It ends like
/// [`Temporary`]'s names, so that a scan ignores the file and notices that the folder needs a sweep.
const SUFFIX: &str = ".swap.scribed-tmp";

/// The number of hexadecimal digits of each hash in a swap name.
const HASH_DIGITS: usize = 32;

/// The longest file name of Linux file systems, in bytes.
const NAME_MAX: usize = 255;

/// The number of bytes by which a swap name is longer than the output's name.
const EXTRA_BYTES: usize = 1 + 2 * (1 + HASH_DIGITS) + SUFFIX.len();

/// How many visible names are tried for another program's file whose own name is taken.
const VISIBLE_NAMES: u32 = 20;

impl SwapName {
    pub(super) fn of(name: &OsStr, new: &Hash, old: &Hash) -> Self {
        let kept = name.len().min(NAME_MAX - EXTRA_BYTES);
        let name = OsString::from_vec(name.as_bytes()[..kept].to_vec());
        Self { name, new: hash_prefix(new), old: hash_prefix(old) }
    }

    fn parse(text: &OsStr) -> Option<Self> {
        let rest = text.as_bytes().strip_prefix(b".")?.strip_suffix(SUFFIX.as_bytes())?;
        let (rest, old) = split_hash(rest)?;
        let (name, new) = split_hash(rest)?;
        (!name.is_empty()).then(|| Self { name: OsString::from_vec(name.to_vec()), new, old })
    }

    pub(super) fn text(&self) -> OsString {
        let hashes = format!(".{}.{}{SUFFIX}", self.new, self.old);
        OsString::from_vec([b".", self.name.as_bytes(), hashes.as_bytes()].concat())
    }

    /// Returns the output's whole name; `None` if it may have been cut.
    fn output(&self) -> Option<&OsStr> {
        (self.name.len() < NAME_MAX - EXTRA_BYTES).then_some(&*self.name)
    }

    /// Whether `hash` is that of the new content or of the replaced one.
    fn is_ours(&self, hash: &Hash) -> bool {
        let hash = hash_prefix(hash);
        hash == self.new || hash == self.old
    }
}

fn hash_prefix(hash: &Hash) -> String {
    let mut text = hash.to_string();
    text.truncate(HASH_DIGITS);
    text
}

fn split_hash(text: &[u8]) -> Option<(&[u8], String)> {
    let (rest, hash) = text.split_at_checked(text.len().checked_sub(HASH_DIGITS)?)?;
    let is_digit = |c: &u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    let hash = hash.iter().all(is_digit).then(|| String::from_utf8_lossy(hash).into_owned())?;
    Some((rest.strip_suffix(b".")?, hash))
}

/// Whether a file of this name may have been in an exchange when its process died.
pub fn is_swap_name(name: &OsStr) -> bool {
    SwapName::parse(name).is_some()
}

/// Replaces the output `name`, whose content was `old`, by `temporary`, which has a name and whose content `new` is
/// synced. Replaces it only if `is_ours` holds for the content that has the name at the moment of the exchange.
///
/// # Errors
/// Returns the system's error. The old file still has its name, or a later sweep puts it back.
pub fn replace(
    folder: &WorkFolder,
    temporary: &mut Temporary<'_>,
    name: &OsStr,
    (new, old): (&Hash, &Hash),
    is_ours: &dyn Fn(&Hash) -> bool,
) -> io::Result<Replaced> {
    if !folder.supports_exchange() {
        return rename_over(folder, temporary, name, is_ours);
    }
    let lock = in_turn(|| Lock::shared(folder))?;
    let swap = SwapName::of(name, new, old);
    match temporary.rename_own(&swap.text()) {
        Ok(()) => {}
        // An earlier process died at this point and left its swap file.
        Err(Errno::EXIST) => {
            drop(lock);
            recover_in_turn(folder, &swap.text())?;
            return Ok(Replaced::LookAgain);
        }
        Err(_) => return rename_over(folder, temporary, name, is_ours),
    }
    crash_points::point(Point::Replacing);
    match exchange(folder, &swap.text(), name) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(Replaced::LookAgain),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => return rename_over(folder, temporary, name, is_ours),
        Err(error) => return Err(error.into()),
    }
    // The temporary name may now belong to another program's file.
    temporary.clear_name();
    crash_points::point(Point::Replaced);
    if matches!(read_hash(folder, &swap.text()), Ok((hash, _)) if is_ours(&hash)) {
        rustix::fs::unlinkat(folder, swap.text(), AtFlags::empty())?;
        return Ok(Replaced::Done);
    }
    if put_back(folder, &swap)? == PutBack::NewFileLeft {
        temporary.set_name(swap.text());
    }
    Ok(Replaced::NotOurs)
}

/// Replaces the output where the file system cannot exchange files: checks it once more and renames over it.
fn rename_over(
    folder: &WorkFolder,
    temporary: &mut Temporary<'_>,
    name: &OsStr,
    is_ours: &dyn Fn(&Hash) -> bool,
) -> io::Result<Replaced> {
    match read_hash(folder, name) {
        Ok((hash, _)) if is_ours(&hash) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Replaced::LookAgain),
        _ => return Ok(Replaced::NotOurs),
    }
    temporary.publish_over(name)?;
    Ok(Replaced::Done)
}

/// Returns whether a process died while it replaced the content `old` of the output `name` by `new`. If so, recovers
/// the swapped file first.
///
/// # Errors
/// Returns the system's error, and `WouldBlock` while another process works in the folder.
pub fn recover_of(folder: &WorkFolder, name: &OsStr, new: &Hash, old: &Hash) -> io::Result<bool> {
    let swap = SwapName::of(name, new, old).text();
    match rustix::fs::statat(folder, &swap, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT | Errno::NAMETOOLONG) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(_) => recover_in_turn(folder, &swap).map(|()| true),
    }
}

/// Recovers as [`recover`] does, in its turn.
fn recover_in_turn(folder: &WorkFolder, swap: &OsStr) -> io::Result<()> {
    in_turn(|| recover(folder, swap))
}

/// Waits up to a second for others that work in the folder: a sweep of this process may recover a file there, and an
/// exchange takes milliseconds.
pub(super) fn in_turn<T>(work: impl Fn() -> io::Result<T>) -> io::Result<T> {
    const ATTEMPTS: u32 = 100;
    for _ in 1..ATTEMPTS {
        match work() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(10)),
            done => return done,
        }
    }
    work()
}

/// Recovers a file whose process died during an exchange: removes it if scribed wrote it; otherwise puts it back or
/// keeps it under a visible name.
///
/// # Errors
/// Returns the system's error, and `WouldBlock` while a living process may be using the file. The file then stays as it
/// is.
pub fn recover(folder: &WorkFolder, swap: &OsStr) -> io::Result<()> {
    let Some(parsed) = SwapName::parse(swap) else { return Ok(()) };
    let _lock = Lock::exclusive(folder)?;
    match read_hash(folder, swap) {
        Ok((hash, _)) if parsed.is_ours(&hash) => Ok(rustix::fs::unlinkat(folder, swap, AtFlags::empty())?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => {
            if put_back(folder, &parsed)? == PutBack::NewFileLeft {
                // Its job was not told that the file was written, and writes it again.
                rustix::fs::unlinkat(folder, swap, AtFlags::empty())?;
            }
            Ok(())
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PutBack {
    /// The swapped-out file has its name again, and the new file has the temporary name.
    NewFileLeft,
    /// The swapped-out file has its name again or a visible one. The new file is gone or has the output's name.
    NothingLeft,
}

/// Puts back a swapped-out file that scribed did not write: under the output's name if that is free or the new file
/// still has it, otherwise under a visible name.
pub(super) fn put_back(folder: &WorkFolder, swap: &SwapName) -> io::Result<PutBack> {
    let own = swap.text();
    let is_new = |name: &OsStr| matches!(read_hash(folder, name), Ok((hash, _)) if hash_prefix(&hash) == swap.new);
    if let Some(output) = swap.output() {
        if is_new(output) && exchange(folder, &own, output).is_ok() {
            tracing::warn!(file = %output.display(), "another program saved an output while scribed replaced it; scribed left the saved file in place");
            if is_new(&own) {
                return Ok(PutBack::NewFileLeft);
            }
            // The file was saved again between the two exchanges: neither version may be lost.
        } else if folder.rename_to_new(&own, output).is_ok() {
            tracing::warn!(file = %output.display(), "another program saved an output while scribed replaced it; scribed gave the saved file its name again");
            return Ok(PutBack::NothingLeft);
        }
    }
    for number in 1..=VISIBLE_NAMES {
        let mut visible = swap.name.clone();
        visible.push(if number == 1 { ".recovered".to_owned() } else { format!(".recovered.{number}") });
        match folder.rename_to_new(&own, &visible) {
            Ok(()) => {
                tracing::warn!(file = %swap.name.display(), kept = %visible.display(), "another program saved an output while scribed replaced it, and its name is used since; scribed kept the saved file under another name");
                return Ok(PutBack::NothingLeft);
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn exchange(folder: &WorkFolder, one: &OsStr, other: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE)
}

/// Opens a regular file and returns it with its hash, without reading it into memory as a whole. Fails if the file
/// changes meanwhile.
pub fn read_hash(folder: &WorkFolder, name: &OsStr) -> io::Result<(Hash, File)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
    let before = file.metadata()?;
    if !before.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut hasher = blake3::Hasher::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            length => hasher.update(&buffer[..length]),
        };
    }
    let state = |meta: &std::fs::Metadata| (meta.len(), meta.mtime(), meta.mtime_nsec());
    match state(&before) == state(&file.metadata()?) {
        true => Ok((Hash(*hasher.finalize().as_bytes()), file)),
        false => Err(io::Error::other("the file changed while scribed read it")),
    }
}

/// Returns the content of a regular file of at most `longest` bytes.
///
/// # Errors
/// Returns the system's error, and `InvalidInput` if the file is not a regular one, is longer, or changes its length
/// meanwhile.
pub fn read_whole(folder: &WorkFolder, name: &OsStr, longest: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
    let meta = file.metadata()?;
    let mut bytes = Vec::new();
    if meta.is_file() && meta.len() <= longest {
        file.take(longest + 1).read_to_end(&mut bytes)?;
    }
    let is_whole = meta.is_file() && bytes.len() as u64 == meta.len();
    if is_whole { Ok(bytes) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// A lock on the folder: while it is held, no sweep mistakes the files of an exchange for those of a dead process. The
/// kernel releases it when the process dies.
pub(super) struct Lock(Option<Arc<File>>);

impl Lock {
    pub(super) fn shared(folder: &WorkFolder) -> io::Result<Self> {
        Self::acquire(folder, File::try_lock_shared)
    }

    fn exclusive(folder: &WorkFolder) -> io::Result<Self> {
        Self::acquire(folder, File::try_lock)
    }

    /// Without locks in the file system, the lock counts as acquired: such a file system cannot exchange files either.
    fn acquire(folder: &WorkFolder, try_lock: fn(&File) -> Result<(), TryLockError>) -> io::Result<Self> {
        let file = folder.file();
        match try_lock(&file) {
            Ok(()) => Ok(Self(Some(file))),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(_)) => Ok(Self(None)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            let _ = file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn listing(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn read(folder: &TempDir, name: &str) -> String {
        fs::read_to_string(folder.path().join(name)).unwrap()
    }

    const NAME: &str = "talk.srt";

    /// Replaces a file with the content `there` by "new", expecting "old".
    fn replaced(folder: &TempDir, open: &WorkFolder, there: &str) -> Replaced {
        fs::write(folder.path().join(NAME), there).unwrap();
        let mut temporary = Temporary::write_named(open, b"new", 0o666).unwrap();
        let (new, old) = (Hash::of(b"new"), Hash::of(b"old"));
        replace(open, &mut temporary, NAME.as_ref(), (&new, &old), &|hash| *hash == old).unwrap()
    }

    #[test]
    fn only_what_is_ours_in_the_very_moment_is_replaced() {
        for exchanges in [true, false] {
            let folder = TempDir::new().unwrap();
            let open = WorkFolder::open(folder.path()).unwrap().with_exchange(exchanges);
            assert_eq!(replaced(&folder, &open, "old"), Replaced::Done);
            assert_eq!(read(&folder, NAME), "new");
            assert_eq!(replaced(&folder, &open, "saved by a person"), Replaced::NotOurs);
            assert_eq!(read(&folder, NAME), "saved by a person");
            assert_eq!(listing(&folder), [NAME], "exchanges: {exchanges}");
        }
    }

    #[test]
    fn links_folders_and_what_cannot_be_read_are_put_back() {
        let folder = TempDir::new().unwrap();
        let open = WorkFolder::open(folder.path()).unwrap();
        let (new, old) = (Hash::of(b"new"), Hash::of(b"old"));
        let at = folder.path().join(NAME);
        let replace = || {
            let mut temporary = Temporary::write_named(&open, b"new", 0o666).unwrap();
            super::replace(&open, &mut temporary, NAME.as_ref(), (&new, &old), &|hash| *hash == old).unwrap()
        };
        symlink("nowhere", &at).unwrap();
        assert_eq!(replace(), Replaced::NotOurs);
        assert!(fs::symlink_metadata(&at).unwrap().is_symlink());
        fs::remove_file(&at).unwrap();
        assert_eq!(replace(), Replaced::LookAgain, "nothing stands there");
        fs::create_dir(&at).unwrap();
        assert_eq!(replace(), Replaced::NotOurs);
        assert!(at.is_dir());
        assert_eq!(listing(&folder), [NAME]);
    }

    #[test]
    fn a_second_save_between_both_exchanges_is_kept_too() {
        let folder = TempDir::new().unwrap();
        let open = WorkFolder::open(folder.path()).unwrap();
        fs::write(folder.path().join(NAME), "first save").unwrap();
        let mut temporary = Temporary::write_named(&open, b"new", 0o666).unwrap();
        let (new, old) = (Hash::of(b"new"), Hash::of(b"old"));
        let looked = Cell::new(false);
        let saves = |_: &Hash| {
            fs::write(folder.path().join("editor"), "second save").unwrap();
            fs::rename(folder.path().join("editor"), folder.path().join(NAME)).unwrap();
            looked.set(true);
            false
        };
        let replaced = replace(&open, &mut temporary, NAME.as_ref(), (&new, &old), &saves).unwrap();
        drop(temporary);
        assert_eq!((replaced, looked.get()), (Replaced::NotOurs, true));
        assert_eq!(listing(&folder), [NAME, "talk.srt.recovered"]);
        assert_eq!(
            (read(&folder, NAME), read(&folder, "talk.srt.recovered")),
            ("second save".into(), "first save".into())
        );
    }

    #[test]
    fn what_a_dead_process_left_is_told_by_its_content() {
        let cases = [
            ("new", "old", vec![NAME], "old"),
            ("old", "new", vec![NAME], "new"),
            ("saved", "new", vec![NAME], "saved"),
            ("saved", "saved later", vec![NAME, "talk.srt.recovered"], "saved later"),
        ];
        for (swapped, there, names, wanted) in cases {
            let folder = TempDir::new().unwrap();
            let open = WorkFolder::open(folder.path()).unwrap();
            let swap = SwapName::of(NAME.as_ref(), &Hash::of(b"new"), &Hash::of(b"old")).text();
            fs::write(folder.path().join(&swap), swapped).unwrap();
            fs::write(folder.path().join(NAME), there).unwrap();
            assert!(is_swap_name(&swap));
            {
                let living = WorkFolder::open(folder.path()).unwrap();
                let _lock = Lock::shared(&living).unwrap();
                assert!(recover(&open, &swap).is_err(), "a living process may be at it");
            }
            recover(&open, &swap).unwrap();
            assert_eq!(listing(&folder), names, "{swapped}");
            assert_eq!(read(&folder, NAME), wanted);
        }
    }

    #[test]
    fn a_recovery_waits_for_a_sweep_that_is_at_the_same_file() {
        let folder = TempDir::new().unwrap();
        let open = WorkFolder::open(folder.path()).unwrap();
        let (new, old) = (Hash::of(b"new"), Hash::of(b"old"));
        fs::write(folder.path().join(SwapName::of(NAME.as_ref(), &new, &old).text()), "old").unwrap();
        let sweep = WorkFolder::open(folder.path()).unwrap();
        let lock = Lock::exclusive(&sweep).unwrap();
        std::thread::scope(|scope| {
            let recovered = scope.spawn(|| recover_of(&open, NAME.as_ref(), &new, &old));
            std::thread::sleep(Duration::from_millis(30));
            drop(lock);
            assert!(recovered.join().unwrap().unwrap());
        });
        assert_eq!(listing(&folder), [""; 0]);
    }

    #[test]
    fn a_replacement_waits_for_a_sweep_of_the_folder() {
        let folder = TempDir::new().unwrap();
        let open = WorkFolder::open(folder.path()).unwrap();
        let sweep = WorkFolder::open(folder.path()).unwrap();
        let lock = Lock::exclusive(&sweep).unwrap();
        std::thread::scope(|scope| {
            let outcome = scope.spawn(|| replaced(&folder, &open, "old"));
            std::thread::sleep(Duration::from_millis(30));
            drop(lock);
            assert_eq!(outcome.join().unwrap(), Replaced::Done);
        });
        assert_eq!((read(&folder, NAME), listing(&folder)), ("new".to_owned(), vec![NAME.to_owned()]));
    }

    #[test]
    fn names_are_read_back_and_long_ones_are_cut() {
        let (new, old) = (Hash::of(b"1"), Hash::of(b"2"));
        for name in ["talk.srt", "a.b.swap.scribed-tmp", ".x"] {
            let swap = SwapName::of(name.as_ref(), &new, &old);
            assert_eq!(SwapName::parse(&swap.text()), Some(swap.clone()));
            assert_eq!(swap.output(), Some(OsStr::new(name)));
        }
        let long = SwapName::of("x".repeat(250).as_ref(), &new, &old);
        assert_eq!((long.text().len(), long.output()), (NAME_MAX, None));
        for other in [".0123456789abcdef0123456789abcdef.scribed-tmp", "talk.srt", ".talk.swap.scribed-tmp", ""] {
            assert!(!is_swap_name(other.as_ref()), "{other}");
        }
    }
}
