//! Where folders really lie, as far as that can be told in time: one may be a mount that is away, or hangs.

use super::path_rules::{FileId, Place, flat};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
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

/// Resolves the same folders again and again. One that hangs is not asked again before it has answered: each question
/// holds a thread.
#[derive(Debug, Default)]
pub struct Resolver {
    hang: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Resolver {
    /// Where these folders and files lie now; one that does not answer in time as it was known `before`. Blocks.
    pub fn places(&self, paths: &[PathBuf], before: &BTreeMap<PathBuf, Place>) -> BTreeMap<PathBuf, Place> {
        let (to, answers) = mpsc::channel();
        for path in paths {
            let (to, hang, path) = (to.clone(), Arc::clone(&self.hang), path.clone());
            if !hang.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone()) {
                continue;
            }
            let begun = std::thread::Builder::new().spawn(move || {
                let place = place(&path);
                hang.lock().unwrap_or_else(PoisonError::into_inner).remove(&path);
                // Whoever asked may have given up.
                to.send((path, place)).ok();
            });
            drop(begun);
        }
        drop(to);
        let known = |path: &PathBuf| before.get(path).cloned().unwrap_or_else(|| Place::as_written(path));
        let mut places: BTreeMap<PathBuf, Place> = paths.iter().map(|path| (path.clone(), known(path))).collect();
        while let Ok((path, place)) = answers.recv_timeout(ANSWERS_WITHIN) {
            places.insert(path, place);
        }
        places
    }
}

/// Where a folder or file lies. What is not there is known as far as it is there. Blocks.
fn place(path: &Path) -> Place {
    let written = flat(path);
    let real = real(&written);
    let id = |path: &Path| {
        let meta = path.symlink_metadata().ok()?;
        Some(FileId { device: meta.dev(), inode: meta.ino() })
    };
    let chain = real.ancestors().filter_map(id).collect();
    Place { id: id(&real), written, real, chain }
}

fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = there else { return path.to_owned() };
    match path.strip_prefix(above) {
        Ok(below) if !below.as_os_str().is_empty() => real.join(below),
        _ => real,
    }
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
