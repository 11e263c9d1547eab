//! Removes an output that scribed wrote, without losing what another program saves at the same time: the file gets a
//! temporary name first, and is checked again under it. After a crash, the sweep of temporary files removes it, or puts
//! back what scribed did not write.

use super::exchange::{Lock, SwapName, in_turn, put_back, read_hash};
use super::temporary::WorkFolder;
use crate::crash_points::{self, Point};
use crate::domain::names::Hash;
use crate::permission_errors::explain_error;
use crate::rooted_path::RootedPath;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;

/// The outcome of removing an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    Done,
    /// There is no such file.
    Missing,
    /// The file has another content by now, and stays.
    Edited,
}

/// Removes the output `name` if its content is `hash`. The caller syncs the folder. Blocks.
///
/// # Errors
/// The file still has its name, or a sweep handles it later.
pub fn remove_output(folder: &RootedPath, name: &OsStr, hash: &Hash) -> io::Result<Removed> {
    remove(folder, name, hash).map_err(|error| explain_error(error, &folder.full().join(name)))
}

fn remove(folder: &RootedPath, name: &OsStr, hash: &Hash) -> io::Result<Removed> {
    let open = match WorkFolder::beneath(folder, None) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Removed::Missing),
        open => open?,
    };
    match read_hash(&open, name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Removed::Missing),
        Ok((read, _)) if read == *hash => {}
        _ => return Ok(Removed::Edited),
    }
    let _lock = in_turn(|| Lock::shared(&open))?;
    let swap = SwapName::of(name, hash, hash);
    crash_points::point(Point::OutputRemoving);
    match open.rename_to_new(name, &swap.text()) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(Removed::Missing),
        Err(error) => return Err(error.into()),
    }
    crash_points::point(Point::OutputRemoved);
    if matches!(read_hash(&open, &swap.text()), Ok((read, _)) if read == *hash) {
        rustix::fs::unlinkat(&open, swap.text(), AtFlags::empty())?;
        return Ok(Removed::Done);
    }
    put_back(&open, &swap)?;
    Ok(Removed::Edited)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn listing(folder: &std::path::Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_a_file_with_the_recorded_content_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RootedPath::new(dir.path(), "");
        let removed = |name: &str| remove_output(&folder, name.as_ref(), &Hash::of(b"ours")).unwrap();
        fs::write(dir.path().join("a.srt"), "ours").unwrap();
        fs::write(dir.path().join("b.srt"), "edited").unwrap();
        fs::create_dir(dir.path().join("c.srt")).unwrap();
        symlink("a.srt", dir.path().join("d.srt")).unwrap();
        assert_eq!(
            (removed("d.srt"), removed("c.srt"), removed("b.srt")),
            (Removed::Edited, Removed::Edited, Removed::Edited)
        );
        assert_eq!((removed("a.srt"), removed("a.srt")), (Removed::Done, Removed::Missing));
        assert_eq!(listing(dir.path()), ["b.srt", "c.srt", "d.srt"]);
        let gone = RootedPath::new(dir.path(), "gone");
        assert_eq!(remove_output(&gone, "a.srt".as_ref(), &Hash::of(b"ours")).unwrap(), Removed::Missing);
    }
}
