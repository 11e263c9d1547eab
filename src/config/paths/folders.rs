//! Resolves the links of folders, with a time-out: a folder may be a mount that is away or hangs.

use super::rules::{ConfiguredPlace, FileId, normalize_lexically};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// The time-out: after it a folder is taken as written.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Returns the folders with links resolved, in the same order. Blocks as long as the slowest takes to answer, and about
/// two seconds if one hangs.
pub fn resolved(folders: &[&Path]) -> Vec<PathBuf> {
    resolved_by(folders, |folder| folder.canonicalize().ok(), ANSWERS_WITHIN)
}

fn resolved_by(folders: &[&Path], resolve: fn(&Path) -> Option<PathBuf>, within: Duration) -> Vec<PathBuf> {
    let (to, answers) = mpsc::channel();
    for (number, folder) in folders.iter().enumerate() {
        let (to, folder) = (to.clone(), folder.to_path_buf());
        // If a thread cannot be started, there is no answer; a thread that hangs ends with the process.
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

/// Whether something that is no folder exists at the path. False if that is not known in time.
pub fn is_file(path: &Path) -> bool {
    metadata(path).is_some_and(|meta| !meta.is_dir())
}

/// Whether a folder exists at the path. False if that is not known in time.
pub fn is_folder(path: &Path) -> bool {
    metadata(path).is_some_and(|meta| meta.is_dir())
}

/// Whether anything exists at the path. False if that is not known in time.
pub fn exists(path: &Path) -> bool {
    metadata(path).is_some()
}

fn metadata(path: &Path) -> Option<std::fs::Metadata> {
    let (to, answer) = mpsc::channel();
    let path = path.to_owned();
    let asked = std::thread::Builder::new().spawn(move || to.send(std::fs::metadata(path).ok()).is_ok());
    asked.ok()?;
    answer.recv_timeout(ANSWERS_WITHIN).ok().flatten()
}

/// Resolves the same folders repeatedly. A folder that hangs is not asked again before it has answered, since each
/// request occupies a thread.
#[derive(Debug, Default)]
pub struct Resolver {
    hang: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Resolver {
    /// Returns where these folders and files are now, by their paths without `.` and `..`. One that does not answer in
    /// time keeps its place in `before`. Blocks.
    pub fn places(
        &self,
        paths: &[PathBuf],
        before: &BTreeMap<PathBuf, ConfiguredPlace>,
    ) -> BTreeMap<PathBuf, ConfiguredPlace> {
        let (to, answers) = mpsc::channel();
        for path in paths {
            let (to, hang, asked) = (to.clone(), Arc::clone(&self.hang), path.clone());
            if !hang.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone()) {
                continue;
            }
            let begun = std::thread::Builder::new().spawn(move || {
                let place = place(&asked);
                hang.lock().unwrap_or_else(PoisonError::into_inner).remove(&asked);
                // The caller may have given up.
                to.send((asked, place)).ok();
            });
            if begun.is_err() {
                // The next call asks again.
                self.hang.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
            }
        }
        drop(to);
        let known = |path: &PathBuf| {
            let flat = normalize_lexically(path);
            let place = before.get(&flat).cloned().unwrap_or_else(|| ConfiguredPlace::as_written(path));
            (flat, place)
        };
        let mut places: BTreeMap<PathBuf, ConfiguredPlace> = paths.iter().map(known).collect();
        while let Ok((path, place)) = answers.recv_timeout(ANSWERS_WITHIN) {
            let id = place.id.or_else(|| places.get(&place.written).and_then(|before| before.id));
            places.insert(normalize_lexically(&path), ConfiguredPlace { id, ..place });
        }
        places
    }
}

/// Returns where a folder or file is; for a missing one, as far as its parents exist. Blocks.
fn place(path: &Path) -> ConfiguredPlace {
    let written = normalize_lexically(path);
    // The path is resolved as written: after a link, `..` is the parent of the link's target.
    let real = real(path);
    let id = |path: &Path| {
        let meta = path.symlink_metadata().ok()?;
        Some(FileId { device: meta.dev(), inode: meta.ino() })
    };
    let chain = real.ancestors().filter_map(id).collect();
    ConfiguredPlace { id: id(&real), written, real_path: real, chain, earlier: BTreeSet::new() }
}

/// Returns a path from which `..` can be removed without a change of its meaning. Only a path with `..` after a link is
/// changed; if the folder does not answer in time, the path is returned as written.
pub fn normalize_parents(path: PathBuf) -> PathBuf {
    let parents = |part: &Component<'_>| matches!(part, Component::ParentDir);
    let all: Vec<Component<'_>> = path.components().collect();
    let Some(last) = all.iter().rposition(parents) else { return path };
    let (up, rest) = (all[..=last].iter().collect::<PathBuf>(), all[last + 1..].iter().collect::<PathBuf>());
    let plain = normalize_lexically(&up);
    let resolve = |folder: &Path| Some(real(folder));
    match &resolved_by(&[&up, &plain], resolve, ANSWERS_WITHIN)[..] {
        [by_kernel, by_name] if by_kernel != by_name => by_kernel.join(rest),
        _ => path,
    }
}

fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = there else { return path.to_owned() };
    match path.strip_prefix(above) {
        Ok(below) if !below.as_os_str().is_empty() => normalize_lexically(&real.join(below)),
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
    fn parents_behind_a_link_are_those_of_where_it_leads() {
        let top = tempfile::TempDir::new().unwrap();
        let top = top.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("real/conf")).unwrap();
        std::os::unix::fs::symlink(top.join("real/conf"), top.join("conf")).unwrap();
        assert_eq!(place(&top.join("conf/../media/new")).real_path, top.join("real/media/new"));
        assert_eq!(normalize_parents(top.join("conf/../media/new")), top.join("real/media/new"));
        for same in ["real/conf/../media", "conf/media", "gone/../media"] {
            assert_eq!(normalize_parents(top.join(same)), top.join(same));
        }
    }

    #[test]
    fn a_place_is_known_by_its_path_without_parents_and_by_its_last_answer() {
        let top = tempfile::TempDir::new().unwrap();
        let top = top.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a")).unwrap();
        let (written, paths) = (top.join("a/../a"), [top.join("a/../a")]);
        assert!(written != top.join("a"));
        let resolver = Resolver::default();
        let first = resolver.places(&paths, &BTreeMap::new());
        let id = first[&top.join("a")].id;
        assert!(id.is_some());
        std::fs::remove_dir(top.join("a")).unwrap();
        let second = resolver.places(&paths, &first);
        assert_eq!(second[&top.join("a")].id, id);
        assert!(resolver.hang.lock().unwrap().is_empty());
    }

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
