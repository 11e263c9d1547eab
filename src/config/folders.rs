//! Where folders really lie, as far as that can be told in time: one may be a mount that is away, or hangs.

use std::path::{Component, Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// A folder that does not answer for so long is taken as it is written.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Folders with their links resolved, in their order. Blocks for no longer than the slowest of them takes
/// to answer, and hardly two seconds where one hangs.
pub fn resolved(folders: &[&Path]) -> Vec<PathBuf> {
    resolved_by(folders, |folder| folder.canonicalize().ok(), ANSWERS_WITHIN)
}

fn resolved_by(folders: &[&Path], resolve: fn(&Path) -> Option<PathBuf>, within: Duration) -> Vec<PathBuf> {
    let (to, answers) = mpsc::channel();
    for (number, folder) in folders.iter().enumerate() {
        let (to, folder) = (to.clone(), folder.to_path_buf());
        // One that cannot be started does not answer; one that hangs ends with the process.
        drop(std::thread::Builder::new().spawn(move || to.send((number, resolve(&folder)))));
    }
    drop(to);
    let mut places: Vec<PathBuf> = folders.iter().map(|folder| as_written(folder)).collect();
    while let Ok((number, real)) = answers.recv_timeout(within) {
        if let Some(real) = real {
            places[number] = real;
        }
    }
    places
}

fn as_written(folder: &Path) -> PathBuf {
    let mut place = PathBuf::new();
    for component in folder.components() {
        match component {
            Component::ParentDir => drop(place.pop()),
            other => place.push(other),
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_and_a_folder_that_hangs_holds_up_nobody() {
        let top = tempfile::TempDir::new().unwrap();
        let real = top.path().canonicalize().unwrap().join("real");
        let link = top.path().join("link");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let hangs = |folder: &Path| match folder.ends_with("hangs") {
            true => loop {
                std::thread::park();
            },
            false => folder.canonicalize().ok(),
        };
        let folders = [Path::new("/srv/a/../hangs"), link.as_path(), Path::new("/nowhere/b")];
        let places = resolved_by(&folders, hangs, Duration::from_secs(1));
        assert_eq!(places, [PathBuf::from("/srv/hangs"), real, PathBuf::from("/nowhere/b")]);
    }
}
