//! Decides which paths a row of a manifest may name: those below its roots, but never scribed's own. Pure: the caller
//! looks at paths, and only below a root, so that the answer reveals nothing about files elsewhere.

use crate::domain::names::SourceName;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Identifies a folder or file, whatever its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// The device number of the file system.
    pub device: u64,
    pub inode: u64,
}

/// A folder or file that the configuration names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfiguredPlace {
    /// The path as written: absolute, without `.` and `..`.
    pub written: PathBuf,
    /// The path with links resolved, as far as that was possible.
    pub real_path: PathBuf,
    /// The id; the last known one if the path does not exist now.
    pub id: Option<FileId>,
    /// Earlier ids: an unmounted share leaves its mount point in its place, and may also be mounted elsewhere.
    pub earlier: BTreeSet<FileId>,
    /// The ids of the path and all folders above it, as far as they could be read.
    pub chain: Vec<FileId>,
}

impl ConfiguredPlace {
    /// Makes a place of which only the path is known.
    pub fn as_written(path: &Path) -> Self {
        let written = normalize_lexically(path);
        Self { real_path: written.clone(), written, ..Self::default() }
    }

    /// Returns the rest of a path below this place, by its written or its real path.
    pub fn strip_prefix<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.written).or_else(|_| path.strip_prefix(&self.real_path)).ok()
    }

    fn holds(&self, path: &Path) -> bool {
        self.strip_prefix(path).is_some()
    }

    fn is(&self, id: FileId) -> bool {
        self.id == Some(id) || self.earlier.contains(&id)
    }
}

/// The folders by which paths are judged.
#[derive(Debug, Clone, Copy)]
pub struct PathRules<'r> {
    /// The folders in which files may be named and outputs may go.
    pub roots: &'r [ConfiguredPlace],
    /// Folders and files of scribed itself.
    pub own: &'r [ConfiguredPlace],
    /// Folders of sources that are `local_only`.
    pub local: &'r [(SourceName, ConfiguredPlace)],
}

/// What is found at a path. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathEntry {
    Folder(FileId),
    /// A symbolic link, whatever its target is.
    Link,
    /// A file or another kind of entry.
    Other,
    Nothing,
    /// Not known, for this reason.
    Unknown(String),
}

/// The result for a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Located {
    /// The folder is below a root, with no link between.
    Below(Below),
    /// The folder is below no root; nothing there was looked at.
    Outside { folder: PathBuf },
    /// The folder is below a root and behind this link, which is not followed.
    Linked { link: PathBuf },
    /// The folder is below a root, and a component of its path cannot be checked now.
    Unknown {
        /// The path that cannot be accessed.
        at: PathBuf,
        why: String,
    },
    /// The folder is scribed's own, or inside such a folder.
    Own,
}

/// A folder below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    /// The folder's path: the root with links resolved, and after it no link.
    pub folder: PathBuf,
    /// The `local_only` source in whose folder it is, if any.
    pub local: Option<SourceName>,
}

/// Removes `.` and `..` from a path, without resolving links.
pub fn normalize_lexically(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut flat, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                flat.pop();
            }
            part => flat.push(part),
        }
        flat
    })
}

/// Returns the innermost root that contains a path, and the rest of the path.
pub fn innermost_root<P: Borrow<ConfiguredPlace>>(
    roots: impl IntoIterator<Item = P>,
    path: &Path,
) -> Option<(P, &Path)> {
    let all = roots.into_iter().filter_map(|root| root.borrow().strip_prefix(path).map(|below| (root, below)));
    all.min_by_key(|(_, below)| below.components().count())
}

impl PathRules<'_> {
    /// Judges a folder by its absolute path. `look` is called for paths below the roots only.
    pub fn locate(&self, folder: &Path, look: &mut dyn FnMut(&Path) -> PathEntry) -> Located {
        let folder = normalize_lexically(folder);
        if self.is_own(&folder) {
            return Located::Own;
        }
        match innermost_root(self.roots, &folder) {
            None => Located::Outside { folder },
            Some((root, below)) => self.walk(root, below, look),
        }
    }

    /// Whether a path is scribed's own by its name.
    pub fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| own.holds(path))
    }

    /// Whether a file or folder is scribed's own by its id, whatever its path.
    pub fn is_own_id(&self, id: FileId) -> bool {
        self.own.iter().any(|own| own.is(id))
    }

    fn walk(&self, root: &ConfiguredPlace, below: &Path, look: &mut dyn FnMut(&Path) -> PathEntry) -> Located {
        if root.chain.iter().any(|id| self.is_own_id(*id)) {
            return Located::Own;
        }
        let mut local = root.chain.iter().find_map(|id| self.local_id(*id));
        let mut walked = PathBuf::new();
        for part in below.components() {
            walked.push(part);
            match look(&root.real_path.join(&walked)) {
                PathEntry::Folder(id) if self.is_own_id(id) => return Located::Own,
                PathEntry::Folder(id) => local = local.or_else(|| self.local_id(id)),
                PathEntry::Link => return Located::Linked { link: root.written.join(walked) },
                PathEntry::Unknown(why) => return Located::Unknown { at: root.written.join(walked), why },
                // What is created there later is created without links.
                PathEntry::Other | PathEntry::Nothing => break,
            }
        }
        let folder = if below.as_os_str().is_empty() { root.real_path.clone() } else { root.real_path.join(below) };
        if self.is_own(&folder) {
            return Located::Own;
        }
        let named = || self.local.iter().find(|(_, place)| place.holds(&folder)).map(|(name, _)| name.clone());
        let local = local.or_else(named);
        Located::Below(Below { folder, local })
    }

    fn local_id(&self, id: FileId) -> Option<SourceName> {
        self.local.iter().find(|(_, place)| place.is(id)).map(|(name, _)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn place(path: &str) -> ConfiguredPlace {
        ConfiguredPlace::as_written(Path::new(path))
    }

    fn id(inode: u64) -> FileId {
        FileId { device: 1, inode }
    }

    /// `/srv/in` and `/srv/media` are roots, `/srv/in/state` is scribed's own, `/srv/media/private` is kept here.
    fn located(path: &str, entries: &[(&str, PathEntry)]) -> String {
        let roots = [place("/srv/in"), place("/srv/media")];
        let own = [ConfiguredPlace { id: Some(id(9)), ..place("/srv/in/state") }, place("/etc/scribed/jobs.toml")];
        let local = [(
            SourceName::new("private"),
            ConfiguredPlace { id: Some(id(5)), earlier: [id(6)].into(), ..place("/srv/media/private") },
        )];
        let entries: BTreeMap<&Path, &PathEntry> =
            entries.iter().map(|(path, entry)| (Path::new(*path), entry)).collect();
        let mut look = |path: &Path| {
            assert!(roots.iter().any(|root| root.holds(path)), "{path:?} is looked at");
            entries.get(path).map_or(PathEntry::Folder(id(1)), |entry| (*entry).clone())
        };
        match (PathRules { roots: &roots, own: &own, local: &local }).locate(Path::new(path), &mut look) {
            Located::Own => "own".to_owned(),
            Located::Outside { folder } => format!("outside {}", folder.display()),
            Located::Linked { link } => format!("behind {}", link.display()),
            Located::Unknown { at, why } => format!("unknown {} {why}", at.display()),
            Located::Below(Below { folder, local, .. }) => format!("{} {local:?}", folder.display()),
        }
    }

    #[test]
    fn a_path_is_located_by_its_name_and_behind_no_link() {
        assert_eq!(located("/srv/in/a/../b", &[]), "/srv/in/b None");
        assert_eq!(located("/srv/in", &[]), "/srv/in None");
        assert_eq!(located("/srv/inner", &[]), "outside /srv/inner");
        assert_eq!(located("/srv/in/../../etc", &[]), "outside /etc");
        assert_eq!(located("/srv/in/a/b", &[("/srv/in/a", PathEntry::Link)]), "behind /srv/in/a");
        assert_eq!(located("/srv/in/new/deep", &[("/srv/in/new", PathEntry::Nothing)]), "/srv/in/new/deep None");
        let stale = [("/srv/in/a", PathEntry::Unknown("stale".to_owned()))];
        assert_eq!(located("/srv/in/a/b", &stale), "unknown /srv/in/a stale");
    }

    #[test]
    fn what_is_scribeds_own_is_so_by_every_name() {
        assert_eq!(located("/srv/in/state/results", &[]), "own");
        assert_eq!(located("/srv/media/bound/x", &[("/srv/media/bound", PathEntry::Folder(id(9)))]), "own");
        assert_eq!(located("/srv/in/new/../state", &[("/srv/in/new", PathEntry::Nothing)]), "own");
        let root = ConfiguredPlace { chain: vec![id(1), id(9)], ..place("/mnt/other") };
        let own = [ConfiguredPlace { id: Some(id(9)), ..place("/srv/in/state") }];
        let rules = PathRules { roots: &[root], own: &own, local: &[] };
        assert_eq!(rules.locate(Path::new("/mnt/other/a"), &mut |_| PathEntry::Nothing), Located::Own);
    }

    #[test]
    fn what_is_kept_here_is_so_by_every_name() {
        let private = "Some(SourceName(\"private\"))";
        assert_eq!(located("/srv/media/private/a", &[]), format!("/srv/media/private/a {private}"));
        let bound = located("/srv/in/x/a", &[("/srv/in/x", PathEntry::Folder(id(5)))]);
        assert_eq!(bound, format!("/srv/in/x/a {private}"));
        let before = located("/srv/in/x/a", &[("/srv/in/x", PathEntry::Folder(id(6)))]);
        assert_eq!(before, format!("/srv/in/x/a {private}"), "it was known by that before");
    }

    proptest! {
        /// Whatever is written and whatever links there are: nothing outside is looked at, and what is allowed is below
        /// a root and not scribed's own.
        #[test]
        fn nothing_leaves_the_roots(path in "(srv)?(/(in|media|state|etc|x|\\.\\.|\\.)){0,6}") {
            let told = located(&format!("/{path}"), &[("/srv/in/x", PathEntry::Link)]);
            if told.starts_with('/') {
                let at = told.split(' ').next().unwrap_or_default();
                prop_assert!(at.starts_with("/srv/in") || at.starts_with("/srv/media"), "{told}");
                prop_assert!(!at.starts_with("/srv/in/state") && !at.contains("..") && !at.starts_with("/srv/in/x"), "{told}");
            }
        }
    }
}
