//! Gives an output that scribed wrote another name in its folder, without writing it again and without losing what
//! another program saves at the same time: the file is checked under its new name.

use super::exchange::read_hash;
use super::temporary::WorkFolder;
use crate::crash_points::{self, Point};
use crate::domain::names::Hash;
use crate::rooted_path::RootedPath;
use std::ffi::OsStr;
use std::io;

/// An output that is to be renamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename<N> {
    pub from: N,
    /// The name that it should get.
    pub to: N,
    /// The hash of its content.
    pub hash: Hash,
}

/// Renames outputs in `folder`, as far as nothing else has the new names. Returns for each whether it was renamed;
/// where it was not, its file is as before. The caller syncs the folder. Blocks.
///
/// # Errors
/// The folder cannot be opened.
pub fn rename_outputs<N: AsRef<OsStr>>(folder: &RootedPath, renames: &[Rename<N>]) -> io::Result<Vec<bool>> {
    let open = WorkFolder::beneath(folder, None)?;
    Ok(renames.iter().map(|rename| is_renamed(&open, rename)).collect())
}

fn is_renamed<N: AsRef<OsStr>>(folder: &WorkFolder, rename: &Rename<N>) -> bool {
    let (from, to) = (rename.from.as_ref(), rename.to.as_ref());
    if folder.rename_to_new(from, to).is_err() {
        return false;
    }
    crash_points::point(Point::OutputRenamed);
    if matches!(read_hash(folder, to), Ok((hash, _)) if hash == rename.hash) {
        return true;
    }
    // Somebody has edited it in this moment. If its old name is taken again, it keeps the new one: no file is lost.
    let _ = folder.rename_to_new(to, from);
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_a_file_with_the_recorded_content_gets_a_name_and_only_one_that_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
        for (name, text) in [("a", "ours"), ("b", "edited"), ("c", "ours"), ("taken", "another")] {
            write(name, text);
        }
        fs::create_dir(dir.path().join("d")).unwrap();
        let rename = |from, to| Rename { from, to, hash: Hash::of(b"ours") };
        let all =
            [rename("a", "new"), rename("b", "new-b"), rename("c", "taken"), rename("d", "e"), rename("gone", "f")];
        let folder = RootedPath::new(dir.path(), "");
        assert_eq!(rename_outputs(&folder, &all).unwrap(), [true, false, false, false, false]);
        assert_eq!((read("a"), read("new").as_deref()), (None, Some("ours")));
        assert_eq!((read("b").as_deref(), read("new-b")), (Some("edited"), None));
        assert_eq!((read("c").as_deref(), read("taken").as_deref()), (Some("ours"), Some("another")));
        assert!(dir.path().join("d").is_dir() && !dir.path().join("e").exists());
        assert!(rename_outputs(&RootedPath::new(dir.path(), "no"), &all).is_err());
    }
}
