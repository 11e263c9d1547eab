//! Writes a table row by row. It appears whole or not at all, and replaces only a table that scribed wrote before.

use super::exchange::{self, Replaced, read_hash};
use super::publish::PlaceError;
use super::temporary::{Temporary, WorkFolder};
use crate::crash_points::{self, Point};
use crate::domain::file_permissions::Access;
use crate::domain::names::Hash;
use crate::rooted_path::RootedPath;
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

/// The next piece of a table.
pub enum TablePiece {
    /// Bytes to append.
    Bytes(Vec<u8>),
    End,
    /// The writer gives up: no table appears.
    GivenUp,
}

/// The caller's checks and records for a table.
pub struct TableKeeper<'a> {
    /// Whether the folder is the right one; called when it is open.
    pub is_right: &'a dyn Fn() -> bool,
    /// The names to try, best first.
    pub names: &'a [OsString],
    /// Whether scribed wrote the content with this hash, according to its records.
    pub is_ours: &'a dyn Fn(&Hash) -> bool,
    /// Records durably that scribed writes the content with this hash; called before the table is published.
    pub announce: &'a dyn Fn(Hash) -> io::Result<()>,
}

/// Writes a table into `folder`, with the permissions of `access`, and returns its name; `None` if the writer gave up
/// or the same table is already there. Blocks.
///
/// # Errors
/// Fails as [`publish_outputs`](super::publish::publish_outputs) does: no partial file is left.
pub fn write_table(
    folder: &RootedPath,
    access: Option<Access>,
    keeper: &TableKeeper<'_>,
    mut next: impl FnMut() -> TablePiece,
) -> Result<Option<OsString>, PlaceError> {
    let full = folder.full();
    let failed = |error: io::Error| PlaceError::of(&full, error);
    let open = WorkFolder::beneath(folder, access).map_err(failed)?;
    if !(keeper.is_right)() {
        return Err(PlaceError::FolderGone { file: full });
    }
    let mut temporary = Temporary::write_named(&open, b"", 0o666).map_err(failed)?;
    let Some(hash) = fill(&temporary, &mut next).map_err(failed)? else { return Ok(None) };
    crash_points::point(Point::ReceiptBegun);
    temporary.file().sync_all().map_err(failed)?;
    (keeper.announce)(hash).map_err(failed)?;
    for name in keeper.names {
        match try_name(&open, &mut temporary, name, hash, keeper).map_err(failed)? {
            TryResult::Published => {
                crash_points::point(Point::ReceiptNamed);
                open.file().sync_all().map_err(failed)?;
                return Ok(Some(name.clone()));
            }
            TryResult::Unchanged => return Ok(None),
            TryResult::NameTaken => {}
        }
    }
    Err(PlaceError::NoFreeName { file: full.join(keeper.names.first().map_or(OsStr::new(""), |name| name)) })
}

/// The outcome of publishing a table under one name.
enum TryResult {
    Published,
    /// The same table had the name already.
    Unchanged,
    /// Another program's file has the name.
    NameTaken,
}

/// How many times a name is checked if other programs change it meanwhile.
const MAX_LOOKS: usize = 3;

fn try_name(
    open: &WorkFolder,
    temporary: &mut Temporary<'_>,
    name: &OsStr,
    hash: Hash,
    keeper: &TableKeeper<'_>,
) -> io::Result<TryResult> {
    for _ in 0..MAX_LOOKS {
        let replaced = match occupant(open, name)? {
            Some(Occupant::File(there)) if there == hash => return Ok(TryResult::Unchanged),
            Some(Occupant::File(there)) if (keeper.is_ours)(&there) => {
                exchange::replace(open, temporary, name, (&hash, &there), keeper.is_ours)?
            }
            Some(_) => return Ok(TryResult::NameTaken),
            None => match temporary.publish_new(name) {
                Ok(()) => Replaced::Done,
                Err(Errno::EXIST) => Replaced::LookAgain,
                Err(error) => return Err(error.into()),
            },
        };
        match replaced {
            Replaced::Done => return Ok(TryResult::Published),
            Replaced::NotOurs if temporary.name().is_none() => break, // the next pass writes the table again
            Replaced::NotOurs => return Ok(TryResult::NameTaken),
            Replaced::LookAgain => {}
        }
    }
    Err(io::Error::other("another program uses it"))
}

fn fill(temporary: &Temporary<'_>, next: &mut impl FnMut() -> TablePiece) -> io::Result<Option<Hash>> {
    let file: Arc<File> = temporary.file();
    let mut out = BufWriter::with_capacity(1 << 16, &*file);
    let mut hasher = blake3::Hasher::new();
    loop {
        match next() {
            TablePiece::Bytes(bytes) => {
                hasher.update(&bytes);
                out.write_all(&bytes)?;
            }
            TablePiece::End => {
                out.flush()?;
                return Ok(Some(Hash(*hasher.finalize().as_bytes())));
            }
            TablePiece::GivenUp => return Ok(None),
        }
    }
}

enum Occupant {
    File(Hash),
    Other,
}

/// Returns what has the name, without following a symlink.
fn occupant(folder: &WorkFolder, name: &OsStr) -> io::Result<Option<Occupant>> {
    match read_hash(folder, name) {
        Ok((hash, _)) => Ok(Some(Occupant::File(hash))),
        // Not a regular file, or one that is being written: another program's in either case.
        Err(error) if error.raw_os_error().is_none() => Ok(Some(Occupant::Other)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => Ok(None),
            Some(Errno::LOOP | Errno::ACCESS | Errno::PERM | Errno::NXIO | Errno::ISDIR) => Ok(Some(Occupant::Other)),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fs;
    use std::path::Path;

    fn write(folder: &Path, ours: &RefCell<Vec<Hash>>, pieces: Vec<TablePiece>) -> Option<OsString> {
        let names = [OsString::from("a.csv.receipt.csv"), OsString::from("a.csv.receipt.2.csv")];
        let announce = |hash| {
            ours.borrow_mut().push(hash);
            Ok(())
        };
        let is_ours = |hash: &Hash| ours.borrow().contains(hash);
        let keeper = TableKeeper { is_right: &|| true, names: &names, is_ours: &is_ours, announce: &announce };
        let mut pieces = pieces.into_iter();
        write_table(&RootedPath::new(folder, ""), None, &keeper, || pieces.next().unwrap_or(TablePiece::End)).unwrap()
    }

    #[test]
    fn it_replaces_its_own_and_spares_what_a_person_changed() {
        let (folder, ours) = (tempfile::tempdir().unwrap(), RefCell::default());
        let text = |text: &str| vec![TablePiece::Bytes(text.into())];
        let at = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(write(folder.path(), &ours, text("1")).unwrap(), "a.csv.receipt.csv");
        assert_eq!(write(folder.path(), &ours, text("1")), None);
        assert_eq!(write(folder.path(), &ours, text("2")).unwrap(), "a.csv.receipt.csv");
        fs::write(folder.path().join("a.csv.receipt.csv"), "2, seen by me").unwrap();
        assert_eq!(write(folder.path(), &ours, text("3")).unwrap(), "a.csv.receipt.2.csv");
        assert_eq!((at("a.csv.receipt.csv").as_str(), at("a.csv.receipt.2.csv").as_str()), ("2, seen by me", "3"));
        assert_eq!(write(folder.path(), &ours, vec![TablePiece::Bytes(b"half".to_vec()), TablePiece::GivenUp]), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing half-done is left");
    }
}
