//! Finds the sidecars of a recording: `.scribed.toml` in its folder and those above, and `talk.toml` for `talk.mp4`.

use crate::domain::names::Timestamp;
use crate::domain::path::RelPath;
use crate::rooted_path::RootedPath;
use crate::source::metadata::small_file::{SmallFile, read};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The sidecar of a folder: it applies to everything below the folder.
pub const OF_FOLDER: &str = ".scribed.toml";

/// The ending of a single recording's sidecar.
pub const ENDING: &str = ".toml";

/// A sidecar that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidecar {
    /// The path below the source's folder, for messages.
    pub from: String,
    /// The file's text and time of change.
    pub file: SmallFile,
}

/// Returns the sidecars of the recording at `path` below `root`, the farthest first: a nearer one takes precedence.
/// Blocks.
///
/// # Errors
/// Why a sidecar cannot be read, in words.
pub fn find(root: &Path, path: &RelPath) -> Result<Vec<Sidecar>, String> {
    let mut sidecars = Vec::new();
    for place in places(path) {
        let from = RelPath::new(place.as_os_str().as_bytes()).escaped();
        match read(&RootedPath::new(root, place)) {
            Ok(file) => sidecars.extend(file.map(|file| Sidecar { from, file })),
            Err(why) => return Err(format!("{from} {why}")),
        }
    }
    Ok(sidecars)
}

/// Returns the paths at which sidecars may be.
fn places(path: &RelPath) -> Vec<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path.as_bytes()));
    let mut places: Vec<PathBuf> = path.ancestors().skip(1).map(|folder| folder.join(OF_FOLDER)).collect();
    places.reverse();
    let mut own = path.file_stem().unwrap_or_default().to_owned();
    own.push(ENDING);
    places.push(path.with_file_name(own));
    places
}

/// Returns when a sidecar was changed last, by the wall clock.
pub fn changed(sidecars: &[Sidecar]) -> Option<Timestamp> {
    sidecars.iter().map(|sidecar| sidecar.file.changed).max()
}

/// Whether a file of this name may be a sidecar.
pub fn is_sidecar(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.len() > ENDING.len() && name[name.len() - ENDING.len()..].eq_ignore_ascii_case(ENDING.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_nearest_comes_last() {
        let root = tempfile::TempDir::new().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        for path in [".scribed.toml", "a/b/.scribed.toml", "a/b/talk.toml", "a/talk.toml", "a/b/talk.mp4.toml"] {
            fs::write(root.path().join(path), "language = \"de\"\n").unwrap();
        }
        fs::create_dir(root.path().join("a/.scribed.toml")).unwrap();
        let found = find(root.path(), &RelPath::new("a/b/talk.mp4")).unwrap();
        let from: Vec<&str> = found.iter().map(|sidecar| sidecar.from.as_str()).collect();
        assert_eq!(from, [".scribed.toml", "a/b/.scribed.toml", "a/b/talk.toml"]);
    }

    #[test]
    fn what_cannot_be_read_is_named_and_nothing_hangs() {
        let root = tempfile::TempDir::new().unwrap();
        let at = |name: &str| root.path().join(name);
        let told = |name: &str| find(root.path(), &RelPath::new(name)).unwrap_err();
        std::os::unix::fs::symlink("elsewhere", at("a.toml")).unwrap();
        assert!(told("a.mp4").contains("a.toml is a symbolic link"), "{}", told("a.mp4"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("b.toml"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(told("b.mp4").contains("b.toml is not a regular file"));
        fs::write(at("c.toml"), b"language = \"de\"\n# caf\xe9\n").unwrap();
        assert!(told("c.mp4").contains("not UTF-8 in line 2"));
        fs::write(at("d.toml"), vec![b'#'; 300 * 1024]).unwrap();
        assert!(told("d.mp4").contains("is larger than"));
    }

    #[test]
    fn settings_behind_a_link_are_not_read() {
        let top = tempfile::TempDir::new().unwrap();
        for folder in ["root", "elsewhere"] {
            fs::create_dir(top.path().join(folder)).unwrap();
        }
        fs::write(top.path().join("elsewhere/.scribed.toml"), "language = \"de\"\n").unwrap();
        std::os::unix::fs::symlink("../elsewhere", top.path().join("root/a")).unwrap();
        let told = find(&top.path().join("root"), &RelPath::new("a/talk.wav")).unwrap_err();
        assert!(
            told.starts_with("a/.scribed.toml cannot be read: ") && told.contains("root/a is a symbolic link"),
            "{told}"
        );
    }
}
