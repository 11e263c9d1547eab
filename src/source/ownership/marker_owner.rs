//! The owner in a folder's marker: read, and written in place. The id on the marker's first line keeps its bytes, so
//! that a crash in the middle does not lose it, and so that nobody who watches the folder sees a file come or go: it is
//! not replaced by a rename.

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

/// Begins the line of the owner. An older release reads the first line only.
const LABEL: &str = "owner: ";

/// No marker of ours is that long.
const LONGEST: u64 = 16 << 10;

/// What the marker says of who works in its folder.
///
/// # Errors
/// What the file system says, and where something else stands in the place of the marker.
pub fn found(folder: &Path) -> io::Result<MarkerOwner> {
    match marker::open(folder, OFlags::RDONLY) {
        Err(Errno::NOENT) => Ok(MarkerOwner::Nothing),
        opened => Ok(parse(&text(&opened?)?)),
    }
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrote {
    /// It is there, and nobody else has written meanwhile.
    Alone,
    /// It is there. This file system has no locks: somebody else may have written at the same moment.
    Unlocked,
    /// Something else stands there meanwhile; nothing was changed.
    Overtaken,
}

/// Writes this owner where `expected` stands. A marker that was emptied gets the id that the folder is known by.
///
/// # Errors
/// What the file system says; `InvalidData` where the file is not as scribed writes it: then it is left alone.
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

/// Behind its first line a marker has nothing, or what we wrote.
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
        assert!(marker::is_no_file(&found(folder.path()).unwrap_err()));
        fs::remove_dir(&marker).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &marker).unwrap();
        assert!(marker::is_no_file(&found(folder.path()).unwrap_err()));
    }
}
