//! Whether a file is gone, or only out of sight: a share that is mounted below a source's folder and away looks like a
//! deletion of all that lies in it.

use crate::permission_errors::describe_error;
use crate::rooted_path::RootedPath;
use std::io;
use std::path::Path;

/// What can be told of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// Something stands at its path.
    There,
    /// Nothing does, and its folder, or the first one above it that is there, has other things in it.
    Gone,
    /// Nobody can tell; why, in words.
    Unknown(String),
}

/// What can be told of a file. `known`: a folder that is known to be there, as a source's is by its marker. Blocks.
pub fn presence(path: &RootedPath, known: &Path) -> Presence {
    match path.stat() {
        Ok(_) => return Presence::There,
        Err(error) if !is_absence(&error) => return unknown(path, &error),
        Err(_) => {}
    }
    let mut folder = path.parent();
    while folder.full() != known {
        match folder.names() {
            Ok(mut names) => return if names.next().is_some() { Presence::Gone } else { bare(&folder) },
            Err(error) if is_absence(&error) && folder.below().as_os_str().is_empty() => return away(&folder),
            Err(error) if is_absence(&error) => folder = folder.parent(),
            Err(error) => return unknown(&folder, &error),
        }
    }
    Presence::Gone
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn bare(folder: &RootedPath) -> Presence {
    let shown = folder.full();
    Presence::Unknown(format!(
        "the folder {} is empty: it may be the mount point of a share that is not mounted. If it was emptied on \
         purpose, remove it",
        shown.display()
    ))
}

/// A folder outside of the source's own: nobody has marked it.
fn away(folder: &RootedPath) -> Presence {
    Presence::Unknown(format!(
        "the folder {} does not exist: its disk or share may not be mounted",
        folder.full().display()
    ))
}

fn unknown(path: &RootedPath, error: &io::Error) -> Presence {
    let path = path.full();
    Presence::Unknown(format!("cannot access {}: {}", path.display(), describe_error(error, &path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_gone_only_where_its_folder_cannot_be_a_bare_mount_point() {
        let root = tempfile::tempdir().unwrap();
        let of = |path: &str| presence(&RootedPath::new(root.path(), path), root.path());
        fs::create_dir_all(root.path().join("share/deep")).unwrap();
        fs::write(root.path().join("share/deep/a.wav"), "a").unwrap();
        assert_eq!(of("share/deep/a.wav"), Presence::There);
        assert_eq!(of("share/deep/b.wav"), Presence::Gone);
        assert_eq!(of("share/gone/b.wav"), Presence::Gone);
        assert_eq!(of("gone/b.wav"), Presence::Gone);
        assert_eq!(of("b.wav"), Presence::Gone);
        assert_eq!(of("share/deep/a.wav/b.wav"), Presence::Gone);
        fs::remove_dir_all(root.path().join("share/deep")).unwrap();
        assert!(matches!(of("share/deep/a.wav"), Presence::Unknown(_)), "as where a share was mounted");
        assert!(matches!(of("share/a.wav"), Presence::Unknown(_)));
        let elsewhere = |path: &str| presence(&RootedPath::whole(&root.path().join(path)), Path::new("/srv/lists"));
        assert!(matches!(elsewhere("usb/a.wav"), Presence::Unknown(_)), "nobody knows what was there");
        std::os::unix::fs::symlink("share", root.path().join("link")).unwrap();
        assert!(matches!(of("link/a.wav"), Presence::Unknown(_)));
    }
}
