//! Reads and writes the owner in a folder's marker. It is written in place and not by a rename: the id in the first
//! line keeps its bytes, so that a crash does not lose it and a watch sees no file come or go.

use crate::crash_points::{self, Point};
use crate::source::mount::marker;
use crate::source::mount::marker::EXPLAINED;
use crate::source::ownership::owner::{MarkerOwner, Owner};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The start of the owner's line. An older release reads the first line only.
const LABEL: &str = "owner: ";

/// The most bytes that are read of a marker.
const LONGEST: u64 = 16 << 10;

/// Returns the owner in the folder's marker.
///
/// # Errors
/// The error of the file system, also if the marker is not a regular file.
pub fn found(folder: &Path) -> io::Result<MarkerOwner> {
    match marker::open(folder, OFlags::RDONLY) {
        Err(Errno::NOENT) => Ok(MarkerOwner::Nothing),
        opened => Ok(parse(&text(&opened?)?)),
    }
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrote {
    /// The owner is written, under a lock.
    Alone,
    /// The owner is written. The file system has no locks, so that another writer may have written at the same moment.
    Unlocked,
    /// The marker was changed meanwhile; nothing was written.
    Overtaken,
}

/// Writes `owner` if the marker still says `expected`. A marker that was emptied gets the id `id`.
///
/// # Errors
/// The error of the file system; `InvalidData` if the file has content that scribed did not write: then it is not
/// changed.
pub fn write(folder: &Path, id: &str, expected: &MarkerOwner, owner: &Owner) -> io::Result<Wrote> {
    let file = marker::open(folder, OFlags::RDWR)?;
    let locked = rustix::fs::flock(&file, FlockOperation::LockExclusive).is_ok();
    let text = text(&file)?;
    if parse(&text) != *expected {
        return Ok(Wrote::Overtaken);
    }
    let own = marker::id_of(&text);
    let id = if own.is_empty() { id } else { own.as_str() };
    if !is_ours(&text) || !id.bytes().all(|byte| byte.is_ascii_graphic()) || id.len() > 100 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let owner = serde_json::to_string(owner)?;
    let new = format!("{id}\n{EXPLAINED}{LABEL}{owner}\n");
    crash_points::point(Point::OwnerWriting);
    file.write_all_at(new.as_bytes(), 0)?;
    file.set_len(new.len() as u64)?;
    file.sync_all()?;
    crash_points::point(Point::OwnerWritten);
    Ok(if locked { Wrote::Alone } else { Wrote::Unlocked })
}

fn text(file: &File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}

/// Whether the text after the first line is empty or was written by scribed.
fn is_ours(text: &[u8]) -> bool {
    let rest = text.iter().position(|byte| *byte == b'\n').map_or(&b""[..], |end| &text[end + 1..]);
    rest.trim_ascii().is_empty() || rest.starts_with(&EXPLAINED.as_bytes()[..EXPLAINED.len().min(30)])
}

fn parse(text: &[u8]) -> MarkerOwner {
    if marker::id_of(text).is_empty() {
        return MarkerOwner::Blank;
    }
    let lines = text.split(|byte| *byte == b'\n').skip(1);
    let Some(owner) = lines.filter_map(|line| line.strip_prefix(LABEL.as_bytes())).next() else {
        return MarkerOwner::Nobody { damaged: false };
    };
    serde_json::from_slice(owner)
        .map_or(MarkerOwner::Nobody { damaged: true }, |owner| MarkerOwner::Owned(Box::new(owner)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::filter::builtin::MARKER;
    use crate::source::mount::marker::{FolderIdentity, identify, recognise};
    use std::fs;
    use tempfile::TempDir;

    fn owner(run: &str) -> Owner {
        Owner { run: run.to_owned(), state: "s".to_owned(), ..Owner::default() }
    }

    #[test]
    fn an_owner_comes_and_goes_and_the_id_stays() {
        let folder = TempDir::new().unwrap();
        let at = folder.path();
        assert_eq!(found(at).unwrap(), MarkerOwner::Nothing);
        let known = identify(at, None).unwrap();
        let FolderIdentity::Marker(id) = &known else { panic!("{known:?}") };
        let nobody = found(at).unwrap();
        assert_eq!(nobody, MarkerOwner::Nobody { damaged: false });
        for run in ["a longer name of a run", "short"] {
            let before = found(at).unwrap();
            assert_eq!(write(at, id, &before, &owner(run)).unwrap(), Wrote::Alone);
            assert_eq!(found(at).unwrap(), MarkerOwner::Owned(Box::new(owner(run))));
            assert_eq!(recognise(at, Some(&known)), Ok(()));
            assert_eq!(identify(at, None).unwrap(), known, "whoever comes, also an older release, knows it by its id");
        }
        assert_eq!(write(at, id, &nobody, &owner("late")).unwrap(), Wrote::Overtaken);
        assert_eq!(found(at).unwrap(), MarkerOwner::Owned(Box::new(owner("short"))));
        fs::write(at.join(MARKER), "").unwrap();
        assert_eq!(found(at).unwrap(), MarkerOwner::Blank);
        assert_eq!(write(at, id, &MarkerOwner::Blank, &owner("by hand")).unwrap(), Wrote::Alone);
        assert_eq!(recognise(at, Some(&known)), Ok(()), "known as before");
    }

    #[test]
    fn only_one_of_all_who_come_at_the_same_moment_has_it() {
        for _ in 0..100 {
            let folder = TempDir::new().unwrap();
            identify(folder.path(), None).unwrap();
            let nobody = MarkerOwner::Nobody { damaged: false };
            let wrote = std::thread::scope(|scope| {
                let all = ["a", "b", "c", "d"].map(|run| {
                    let (at, nobody) = (folder.path(), &nobody);
                    scope.spawn(move || write(at, "id", nobody, &owner(run)).unwrap())
                });
                all.map(|one| one.join().unwrap())
            });
            assert_eq!(wrote.iter().filter(|wrote| **wrote == Wrote::Alone).count(), 1, "{wrote:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_as_we_write_it_is_left_alone() {
        let folder = TempDir::new().unwrap();
        let marker = folder.path().join(MARKER);
        let huge = [b"id\n".as_slice(), &vec![b'x'; 1 << 20]].concat();
        for text in [&b"id\nmy shopping list\n"[..], b"\xff\xfe\n", &[b'y'; 300], &huge] {
            fs::write(&marker, text).unwrap();
            let before = found(folder.path()).unwrap();
            assert_eq!(before, MarkerOwner::Nobody { damaged: false });
            let error = write(folder.path(), "id", &before, &owner("me")).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert_eq!(fs::read(&marker).unwrap(), text);
        }
        fs::write(&marker, format!("id\n{EXPLAINED}{LABEL}{{\"run\":")).unwrap();
        assert_eq!(found(folder.path()).unwrap(), MarkerOwner::Nobody { damaged: true }, "half of it was written");
        fs::remove_file(&marker).unwrap();
        fs::create_dir(&marker).unwrap();
        assert!(marker::is_not_regular_file(&found(folder.path()).unwrap_err()));
        fs::remove_dir(&marker).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &marker).unwrap();
        assert!(marker::is_not_regular_file(&found(folder.path()).unwrap_err()));
    }
}
