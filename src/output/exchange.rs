//! Replaces an older output of ours so that no save of another program is lost.
//!
//! A rename over the old file would take with it whatever a person has saved there since it was looked at. So both
//! files change places (`RENAME_EXCHANGE`), what came out is looked at, and is put back if it is not ours. Until then
//! it stands under a name that tells what it should be: a later sweep knows by its content whether it is ours, and
//! otherwise puts it back too, or keeps it where people see it.
//!
//! What remains: a program that has the old file open and writes into it after it was looked at writes into a file that
//! has no name any more; and where the file system cannot exchange, a save between the look and the rename is lost.

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

/// What became of a file that was to take the place of an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    Done,
    /// What stands there is not ours, and stays. The new file may be without a name now.
    NotOurs,
    /// What stood there is gone, or was just put back: look again.
    LookAgain,
}

/// The name of a file while it changes places, which tells what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SwapName {
    /// The output's name, from its start.
    name: OsString,
    /// The start of the hash of what is to be shown.
    new: String,
    /// The start of the hash of what it replaces.
    old: String,
}

/// Behind the name of an output, both hashes, and dots between them. It ends as [`Temporary`]'s own names do, so that
/// a scan passes it over and sees that there is something to be swept.
const END: &str = ".swap.scribed-tmp";

/// Hexadecimal digits of a hash in a name.
const DIGITS: usize = 32;

/// What file systems take as a name, in bytes.
const LONGEST: usize = 255;

/// What a name is longer by.
const MORE: usize = 1 + 2 * (1 + DIGITS) + END.len();

/// Names under which a person's file is kept where its own is taken.
const VISIBLE: u32 = 20;

impl SwapName {
    fn of(name: &OsStr, new: &Hash, old: &Hash) -> Self {
        let kept = name.len().min(LONGEST - MORE);
        let name = OsString::from_vec(name.as_bytes()[..kept].to_vec());
        Self { name, new: start(new), old: start(old) }
    }

    fn parse(text: &OsStr) -> Option<Self> {
        let rest = text.as_bytes().strip_prefix(b".")?.strip_suffix(END.as_bytes())?;
        let (rest, old) = split_hash(rest)?;
        let (name, new) = split_hash(rest)?;
        (!name.is_empty()).then(|| Self { name: OsString::from_vec(name.to_vec()), new, old })
    }

    fn text(&self) -> OsString {
        let hashes = format!(".{}.{}{END}", self.new, self.old);
        OsString::from_vec([b".", self.name.as_bytes(), hashes.as_bytes()].concat())
    }

    /// The output's whole name; `None` where it may have been cut.
    fn output(&self) -> Option<&OsStr> {
        (self.name.len() < LONGEST - MORE).then_some(&*self.name)
    }

    /// Whether this is what is to be shown, or what that replaces.
    fn is_ours(&self, hash: &Hash) -> bool {
        let hash = start(hash);
        hash == self.new || hash == self.old
    }
}

fn start(hash: &Hash) -> String {
    let mut text = hash.to_string();
    text.truncate(DIGITS);
    text
}

fn split_hash(text: &[u8]) -> Option<(&[u8], String)> {
    let (rest, hash) = text.split_at_checked(text.len().checked_sub(DIGITS)?)?;
    let is_digit = |c: &u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
    let hash = hash.iter().all(is_digit).then(|| String::from_utf8_lossy(hash).into_owned())?;
    Some((rest.strip_suffix(b".")?, hash))
}

/// Whether a name may be that of a file that was changing places when its process died.
pub fn is_swap_name(name: &OsStr) -> bool {
    SwapName::parse(name).is_some()
}

/// Puts `temporary`, which has a name, in the place of the output `name` of which the content was `old`, if `is_ours`
/// is true of what stands there in the very moment. Its own content is `new`, and is synced.
///
/// # Errors
/// The system's; what stood there stands there, or is put back by a later sweep.
pub fn replace(
    folder: &WorkFolder,
    temporary: &mut Temporary<'_>,
    name: &OsStr,
    (new, old): (&Hash, &Hash),
    is_ours: &dyn Fn(&Hash) -> bool,
) -> io::Result<Replaced> {
    if !folder.supports_exchange() {
        return over(folder, temporary, name, is_ours);
    }
    let lock = Lock::shared(folder)?;
    let swap = SwapName::of(name, new, old);
    match temporary.rename_own(&swap.text()) {
        Ok(()) => {}
        // A process died here before.
        Err(Errno::EXIST) => {
            drop(lock);
            recover(folder, &swap.text())?;
            return Ok(Replaced::LookAgain);
        }
        Err(_) => return over(folder, temporary, name, is_ours),
    }
    crash_points::point(Point::Replacing);
    match exchange(folder, &swap.text(), name) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(Replaced::LookAgain),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => return over(folder, temporary, name, is_ours),
        Err(error) => return Err(error.into()),
    }
    // What has that name now may be anybody's.
    temporary.clear_name();
    crash_points::point(Point::Replaced);
    if matches!(read_hash(folder, &swap.text()), Ok((hash, _)) if is_ours(&hash)) {
        rustix::fs::unlinkat(folder, swap.text(), AtFlags::empty())?;
        return Ok(Replaced::Done);
    }
    if put_back(folder, &swap)? == Back::AndOursIsLeft {
        temporary.set_name(swap.text());
    }
    Ok(Replaced::NotOurs)
}

/// Where no two files can change places: looked at once more, and renamed over.
fn over(
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

/// Whether a process died while the output `name` with the content `new` took the place of one with the content `old`;
/// then what was swapped out is dealt with.
///
/// # Errors
/// The system's; and that a sweep is under way.
pub fn recover_of(folder: &WorkFolder, name: &OsStr, new: &Hash, old: &Hash) -> io::Result<bool> {
    let swap = SwapName::of(name, new, old).text();
    match rustix::fs::statat(folder, &swap, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT | Errno::NAMETOOLONG) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(_) => recover(folder, &swap).map(|()| true),
    }
}

/// Deals with a file of which the process died while it changed places: what is ours goes, and anything else is put
/// back, or kept under a visible name. Does nothing while a living process may be at it.
///
/// # Errors
/// The system's; then it stays as it is.
pub fn recover(folder: &WorkFolder, swap: &OsStr) -> io::Result<()> {
    let Some(parsed) = SwapName::parse(swap) else { return Ok(()) };
    let _alone = Lock::alone(folder)?;
    match read_hash(folder, swap) {
        Ok((hash, _)) if parsed.is_ours(&hash) => Ok(rustix::fs::unlinkat(folder, swap, AtFlags::empty())?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => {
            if put_back(folder, &parsed)? == Back::AndOursIsLeft {
                // It is written again: its job did not hear that it was.
                rustix::fs::unlinkat(folder, swap, AtFlags::empty())?;
            }
            Ok(())
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Back {
    /// What was swapped out has its place again, and our new file has its name.
    AndOursIsLeft,
    /// What was swapped out has its place again, or a visible name; our new file is there no more, or has the place.
    Only,
}

/// What was swapped out and is not ours gets its place again, if our new file has it still; else a visible name.
fn put_back(folder: &WorkFolder, swap: &SwapName) -> io::Result<Back> {
    let own = swap.text();
    let is_new = |name: &OsStr| matches!(read_hash(folder, name), Ok((hash, _)) if start(&hash) == swap.new);
    if let Some(output) = swap.output() {
        if is_new(output) && exchange(folder, &own, output).is_ok() {
            tracing::warn!(file = %output.display(), "another program saved an output while scribed replaced it; scribed left the saved file in place");
            if is_new(&own) {
                return Ok(Back::AndOursIsLeft);
            }
            // It was saved once more in between: neither is lost.
        } else if folder.rename_to_new(&own, output).is_ok() {
            tracing::warn!(file = %output.display(), "another program saved an output while scribed replaced it; scribed gave the saved file its name again");
            return Ok(Back::Only);
        }
    }
    for number in 1..=VISIBLE {
        let mut visible = swap.name.clone();
        visible.push(if number == 1 { ".recovered".to_owned() } else { format!(".recovered.{number}") });
        match folder.rename_to_new(&own, &visible) {
            Ok(()) => {
                tracing::warn!(file = %swap.name.display(), kept = %visible.display(), "another program saved an output while scribed replaced it, and its name is used since; scribed kept the saved file under another name");
                return Ok(Back::Only);
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

/// A regular file and its hash, read in small parts. A file that changes meanwhile has none.
pub fn read_hash(folder: &WorkFolder, name: &OsStr) -> io::Result<(Hash, File)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
    let before = file.metadata()?;
    if !before.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut hasher = blake3::Hasher::new();
    let mut part = [0; 16 * 1024];
    loop {
        match file.read(&mut part)? {
            0 => break,
            length => hasher.update(&part[..length]),
        };
    }
    let state = |meta: &std::fs::Metadata| (meta.len(), meta.mtime(), meta.mtime_nsec());
    match state(&before) == state(&file.metadata()?) {
        true => Ok((Hash(*hasher.finalize().as_bytes()), file)),
        false => Err(io::Error::other("the file changed while scribed read it")),
    }
}

/// The whole content of a regular file of at most so many bytes.
///
/// # Errors
/// The system's; `InvalidInput` where it is none, or longer.
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

/// While files change places, no sweep takes them for those of a dead process. The kernel drops it when the process
/// dies.
struct Lock(Option<Arc<File>>);

impl Lock {
    fn shared(folder: &WorkFolder) -> io::Result<Self> {
        Self::taken(folder, File::try_lock_shared)
    }

    fn alone(folder: &WorkFolder) -> io::Result<Self> {
        Self::taken(folder, File::try_lock)
    }

    /// A file system without locks cannot exchange either.
    fn taken(folder: &WorkFolder, how: fn(&File) -> Result<(), TryLockError>) -> io::Result<Self> {
        let file = folder.file();
        match how(&file) {
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

    /// Replaces `there`, where "old" was seen, by "new".
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
    fn names_are_read_back_and_long_ones_are_cut() {
        let (new, old) = (Hash::of(b"1"), Hash::of(b"2"));
        for name in ["talk.srt", "a.b.swap.scribed-tmp", ".x"] {
            let swap = SwapName::of(name.as_ref(), &new, &old);
            assert_eq!(SwapName::parse(&swap.text()), Some(swap.clone()));
            assert_eq!(swap.output(), Some(OsStr::new(name)));
        }
        let long = SwapName::of("x".repeat(250).as_ref(), &new, &old);
        assert_eq!((long.text().len(), long.output()), (LONGEST, None));
        for other in [".0123456789abcdef0123456789abcdef.scribed-tmp", "talk.srt", ".talk.swap.scribed-tmp", ""] {
            assert!(!is_swap_name(other.as_ref()), "{other}");
        }
    }
}
