//! A table that is written row by row and appears whole or not at all, in the place of what we wrote there
//! before; never in that of anybody else's.

use super::placing::PlaceError;
use super::temporary::{Folder, Temporary};
use crate::crash::{self, Point};
use crate::domain::names::Hash;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// What comes next of a table.
pub enum Piece {
    /// Bytes behind those before.
    Bytes(Vec<u8>),
    /// It is whole.
    End,
    /// It is given up: nothing appears.
    GivenUp,
}

/// What a table stands for in its folder.
pub struct Keeper<'a> {
    /// Whether the folder is the right one: asked with it open.
    pub is_right: &'a dyn Fn() -> bool,
    /// Names to be tried, best first.
    pub names: &'a [OsString],
    /// Whether these bytes are ours, by what was kept of them.
    pub is_ours: &'a dyn Fn(&Hash) -> bool,
    /// Keeps, durably, that these bytes are ours: before they are shown.
    pub announce: &'a dyn Fn(Hash) -> io::Result<()>,
}

/// Writes a table into `folder`; `None` where it was given up, or is there already. Blocks.
///
/// # Errors
/// As [`place`](super::placing::place): nothing half-done is left.
pub fn write_table(
    folder: &Path,
    keeper: &Keeper<'_>,
    mut next: impl FnMut() -> Piece,
) -> Result<Option<OsString>, PlaceError> {
    let failed = |error: io::Error| PlaceError::of(folder, error);
    let open = Folder::open(folder).map_err(failed)?;
    if !(keeper.is_right)() {
        return Err(PlaceError::FolderGone { file: folder.to_owned() });
    }
    let mut temporary = Temporary::write_named(&open, b"", 0o666).map_err(failed)?;
    let Some(hash) = fill(&temporary, &mut next).map_err(failed)? else { return Ok(None) };
    crash::point(Point::ReceiptBegun);
    temporary.file().sync_all().map_err(failed)?;
    (keeper.announce)(hash).map_err(failed)?;
    for name in keeper.names {
        let shown = match found(&open, name).map_err(failed)? {
            Some(Found::File(there)) if there == hash => return Ok(None),
            Some(Found::File(there)) if (keeper.is_ours)(&there) => temporary.publish_over(name),
            Some(_) => continue,
            None => temporary.publish_new(name),
        };
        match shown {
            Ok(()) => {
                crash::point(Point::ReceiptNamed);
                open.file().sync_all().map_err(failed)?;
                return Ok(Some(name.clone()));
            }
            Err(Errno::EXIST) => continue,
            Err(error) => return Err(failed(error.into())),
        }
    }
    Err(PlaceError::NoFreeName { file: folder.join(keeper.names.first().map_or(OsStr::new(""), |name| name)) })
}

fn fill(temporary: &Temporary<'_>, next: &mut impl FnMut() -> Piece) -> io::Result<Option<Hash>> {
    let file: Arc<File> = temporary.file();
    let mut out = BufWriter::with_capacity(1 << 16, &*file);
    let mut hasher = blake3::Hasher::new();
    loop {
        match next() {
            Piece::Bytes(bytes) => {
                hasher.update(&bytes);
                out.write_all(&bytes)?;
            }
            Piece::End => {
                out.flush()?;
                return Ok(Some(Hash(*hasher.finalize().as_bytes())));
            }
            Piece::GivenUp => return Ok(None),
        }
    }
}

enum Found {
    File(Hash),
    Other,
}

/// What stands under a name, without following a symlink.
fn found(folder: &Folder, name: &OsStr) -> io::Result<Option<Found>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        // It is somebody's, whatever it is.
        Err(Errno::LOOP | Errno::ACCESS | Errno::PERM | Errno::NXIO | Errno::ISDIR) => return Ok(Some(Found::Other)),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Ok(Some(Found::Other));
    }
    let (mut hasher, mut piece, mut file) = (blake3::Hasher::new(), vec![0; 1 << 16], file);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(Some(Found::File(Hash(*hasher.finalize().as_bytes())))),
            n => hasher.update(&piece[..n]),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fs;

    fn write(folder: &Path, ours: &RefCell<Vec<Hash>>, pieces: Vec<Piece>) -> Option<OsString> {
        let names = [OsString::from("a.csv.receipt.csv"), OsString::from("a.csv.receipt.2.csv")];
        let announce = |hash| {
            ours.borrow_mut().push(hash);
            Ok(())
        };
        let is_ours = |hash: &Hash| ours.borrow().contains(hash);
        let keeper = Keeper { is_right: &|| true, names: &names, is_ours: &is_ours, announce: &announce };
        let mut pieces = pieces.into_iter();
        write_table(folder, &keeper, || pieces.next().unwrap_or(Piece::End)).unwrap()
    }

    #[test]
    fn it_replaces_its_own_and_spares_what_a_person_changed() {
        let (folder, ours) = (tempfile::tempdir().unwrap(), RefCell::default());
        let text = |text: &str| vec![Piece::Bytes(text.into())];
        let at = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(write(folder.path(), &ours, text("1")).unwrap(), "a.csv.receipt.csv");
        assert_eq!(write(folder.path(), &ours, text("1")), None);
        assert_eq!(write(folder.path(), &ours, text("2")).unwrap(), "a.csv.receipt.csv");
        fs::write(folder.path().join("a.csv.receipt.csv"), "2, seen by me").unwrap();
        assert_eq!(write(folder.path(), &ours, text("3")).unwrap(), "a.csv.receipt.2.csv");
        assert_eq!((at("a.csv.receipt.csv").as_str(), at("a.csv.receipt.2.csv").as_str()), ("2, seen by me", "3"));
        assert_eq!(write(folder.path(), &ours, vec![Piece::Bytes(b"half".to_vec()), Piece::GivenUp]), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing half-done is left");
    }
}
