//! The locations of all sources' folders and of scribed's own files, by which it is decided whether a row of a manifest
//! or a command may name a path.

use super::folders::Resolver;
use super::rules::{ConfiguredPlace, FileId, innermost_root, normalize_lexically};
use crate::clock::{Clock, SystemClock, Uptime};
use crate::config::sections::patterns::MEDIA_EXTENSIONS;
use crate::domain::names::{ServiceName, SourceName};
use globset::GlobSet;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long resolved locations are reused.
const FRESH: Duration = Duration::from_secs(5);

/// The folder of a source.
#[derive(Debug, Clone)]
pub struct SourceFolder {
    pub source: SourceName,
    /// Absolute.
    pub folder: PathBuf,
    /// The folder for outputs, if it is another one.
    pub place: Option<PathBuf>,
    /// Whether its recordings must not leave this machine.
    pub local_only: bool,
    /// The patterns of its recordings.
    pub include: GlobSet,
}

/// The configured folders of all sources.
#[derive(Debug, Default)]
pub struct ConfiguredPlaces {
    own: Vec<PathBuf>,
    folders: Vec<SourceFolder>,
    /// The hosted services.
    hosted: BTreeSet<ServiceName>,
    all_paths: Vec<PathBuf>,
    resolver: Resolver,
    known: Mutex<Option<(Uptime, Arc<KnownPlaces>)>>,
    /// The last locations, for callers that must not wait.
    last: Mutex<Arc<KnownPlaces>>,
}

/// The current locations of the configured folders.
#[derive(Debug, Default)]
pub struct KnownPlaces {
    by_path: BTreeMap<PathBuf, ConfiguredPlace>,
    /// Folders and files of scribed itself.
    pub own: Vec<ConfiguredPlace>,
    /// The folders of sources that are `local_only`.
    pub local: Vec<(SourceName, ConfiguredPlace)>,
}

impl KnownPlaces {
    /// Returns the current location of each path.
    pub fn places_of(&self, paths: &[PathBuf]) -> Vec<ConfiguredPlace> {
        paths.iter().map(|path| self.place_of(path).into_owned()).collect()
    }

    fn place_of(&self, path: &Path) -> Cow<'_, ConfiguredPlace> {
        let known = self.by_path.get(path).or_else(|| self.by_path.get(&normalize_lexically(path)));
        known.map_or_else(|| Cow::Owned(ConfiguredPlace::as_written(path)), Cow::Borrowed)
    }
}

impl ConfiguredPlaces {
    /// `own`: folders and files of scribed itself. `roots`: the roots that sources name.
    pub fn new(
        own: Vec<PathBuf>,
        folders: Vec<SourceFolder>,
        hosted: BTreeSet<ServiceName>,
        roots: &[PathBuf],
    ) -> Self {
        let of_sources = folders.iter().flat_map(|folder| [Some(&folder.folder), folder.place.as_ref()]).flatten();
        let all_paths: BTreeSet<PathBuf> = own.iter().chain(of_sources).chain(roots).cloned().collect();
        let all_paths = all_paths.into_iter().collect();
        Self { own, folders, hosted, all_paths, ..Self::default() }
    }

    /// Returns the roots of a source that names none: the folder of its manifests, the folders of all sources, and
    /// their output folders, without those inside another one.
    pub fn default_roots(&self, folder: &Path) -> Vec<PathBuf> {
        let others = self.folders.iter().flat_map(|other| [Some(&other.folder), other.place.as_ref()]).flatten();
        let all: Vec<PathBuf> =
            std::iter::once(folder).chain(others.map(PathBuf::as_path)).map(normalize_lexically).collect();
        let mut roots: Vec<PathBuf> = Vec::new();
        for root in &all {
            let is_inner = all.iter().any(|other| root != other && root.starts_with(other));
            if !is_inner && !roots.contains(root) {
                roots.push(root.clone());
            }
        }
        roots
    }

    /// Whether what is sent to this service leaves this machine.
    pub fn is_hosted(&self, service: &ServiceName) -> bool {
        self.hosted.contains(service)
    }

    /// Whether a path has a media extension, or matches `include` of the source in whose folder it is.
    pub fn is_media(&self, path: &Path) -> bool {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        let included =
            |folder: &SourceFolder| path.strip_prefix(&folder.folder).is_ok_and(|below| folder.include.is_match(below));
        ending.is_some_and(|ending| MEDIA_EXTENSIONS.contains(&ending.as_str())) || self.folders.iter().any(included)
    }

    /// Returns the current locations. Blocks, about two seconds if a folder hangs.
    pub fn current(&self) -> Arc<KnownPlaces> {
        let now = SystemClock.uptime();
        // The lock is held meanwhile: other callers wait for the same result.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, known)) = known.as_ref().filter(|(at, _)| now.since(*at) < FRESH) {
            let _ = at;
            return Arc::clone(known);
        }
        let before = known.take().map(|(_, known)| known).unwrap_or_default();
        let by_path = self.resolver.places(&self.all_paths, &before.by_path);
        let mut new = KnownPlaces { by_path, own: Vec::new(), local: Vec::new() };
        new.own = new.places_of(&self.own);
        let local = self.folders.iter().filter(|folder| folder.local_only);
        new.local = local
            .map(|folder| (folder.source.clone(), with_earlier_ids(new.place_of(&folder.folder).into_owned())))
            .collect();
        let new = Arc::new(new);
        *known = Some((SystemClock.uptime(), Arc::clone(&new)));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
        new
    }

    /// Returns the innermost root that contains a path, as written in the path, and the rest of the path. Does not
    /// access the disk.
    pub fn root_of(&self, roots: &[PathBuf], path: &Path) -> Option<(PathBuf, PathBuf)> {
        let last = Arc::clone(&self.last.lock().unwrap_or_else(PoisonError::into_inner));
        let (_, below) = innermost_root(roots.iter().map(|root| last.place_of(root)), path)?;
        let root = path.ancestors().nth(below.components().count())?;
        Some((root.to_owned(), below.to_owned()))
    }
}

/// Adds all file ids that a `local_only` folder had in this process, also before a reload: a share that is also mounted
/// elsewhere is then recognised while the folder itself is away.
fn with_earlier_ids(place: ConfiguredPlace) -> ConfiguredPlace {
    static SEEN: Mutex<BTreeMap<PathBuf, BTreeSet<FileId>>> = Mutex::new(BTreeMap::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let ids = seen.entry(place.written.clone()).or_default();
    ids.extend(place.id);
    ConfiguredPlace { earlier: ids.clone(), ..place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_kept_local_is_known_by_all_that_it_ever_was() {
        let top = tempfile::TempDir::new().unwrap();
        let (kept, aside) = (top.path().join("kept"), top.path().join("aside"));
        std::fs::create_dir(&kept).unwrap();
        let folder = SourceFolder {
            source: SourceName::new("kept"),
            folder: kept.clone(),
            place: None,
            local_only: true,
            include: GlobSet::empty(),
        };
        // Another reading of the configuration each time.
        let local = || {
            ConfiguredPlaces::new(Vec::new(), vec![folder.clone()], BTreeSet::new(), &[]).current().local[0].1.clone()
        };
        let first = local().id.unwrap();
        // As a share that goes away, and leaves its mount point.
        std::fs::rename(&kept, &aside).unwrap();
        assert!(local().earlier.contains(&first));
        std::fs::create_dir(&kept).unwrap();
        let now = local();
        assert!(now.id != Some(first) && now.earlier.contains(&first));
    }

    #[test]
    fn roots_are_found_however_their_path_is_written() {
        let top = tempfile::TempDir::new().unwrap();
        let top = top.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("real/a")).unwrap();
        std::os::unix::fs::symlink(top.join("real"), top.join("link")).unwrap();
        let root = top.join("x/../link");
        let places = ConfiguredPlaces::new(Vec::new(), Vec::new(), BTreeSet::new(), std::slice::from_ref(&root));
        std::fs::create_dir(top.join("x")).unwrap();
        let known = places.current();
        for written in [root, top.join("link")] {
            assert_eq!(known.places_of(&[written])[0].real_path, top.join("real"));
        }
        let found = places.root_of(&[top.join("link")], &top.join("real/a/talk.wav"));
        assert_eq!(found, Some((top.join("real"), PathBuf::from("a/talk.wav"))));
    }

    #[test]
    fn default_roots_hold_each_folder_once() {
        let folder = |path: &str, place: Option<&str>| SourceFolder {
            source: SourceName::new(path),
            folder: path.into(),
            place: place.map(PathBuf::from),
            local_only: false,
            include: GlobSet::empty(),
        };
        let folders = vec![folder("/srv/lists", None), folder("/srv/a", Some("/out")), folder("/srv/a/b", None)];
        let places = ConfiguredPlaces::new(Vec::new(), folders, BTreeSet::new(), &[]);
        let roots = |own: &str| places.default_roots(Path::new(own));
        assert_eq!(roots("/srv/lists"), [Path::new("/srv/lists"), Path::new("/srv/a"), Path::new("/out")]);
        assert_eq!(roots("/"), [Path::new("/")]);
    }
}
