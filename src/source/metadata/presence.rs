//! Decides whether a missing file was deleted. If a share that is mounted below a source's folder goes away, all files
//! in it look deleted.

use crate::permission_errors::describe_error;
use crate::rooted_path::RootedPath;
use std::io;
use std::path::Path;

/// Whether a file exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// Something exists at the path.
    There,
    /// Nothing exists at the path, and the nearest existing folder above it is not empty.
    Gone,
    /// Not known, for this reason.
    Unknown(String),
}

/// Returns whether a file exists. `known` is a folder that is known to be present, as a source's folder is by its
/// marker. Blocks.
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

/// Whether the error says that nothing is at the path.
pub fn is_absence(error: &io::Error) -> bool {
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

/// A folder outside the source's folder: no marker shows whether its share is mounted.
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
