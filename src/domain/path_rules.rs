//! Which paths a row of a manifest may name: those below its roots, and never what is scribed's own. Pure: what stands
//! at a path is asked of the caller, and only below a root, so that the answer tells nothing of files elsewhere.

use super::names::SourceName;
use std::path::{Component, Path, PathBuf};

/// What a folder or file is known by, whatever name leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// Of the file system.
    pub device: u64,
    /// Within it.
    pub inode: u64,
}

/// A folder, or a single file, that the configuration names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Absolute, without `.` and `..`.
    pub written: PathBuf,
    /// With its links resolved, as far as that could be told.
    pub real: PathBuf,
    /// What it is known by, while it is there.
    pub id: Option<FileId>,
    /// It and all folders above it, as far as they could be looked at.
    pub chain: Vec<FileId>,
}

impl Place {
    /// What is only known as it is written.
    pub fn as_written(path: &Path) -> Self {
        let written = flat(path);
        Self { real: written.clone(), written, id: None, chain: Vec::new() }
    }

    /// What is left of a path below it, by either of its names.
    fn below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.written).or_else(|_| path.strip_prefix(&self.real)).ok()
    }

    fn holds(&self, path: &Path) -> bool {
        self.below(path).is_some()
    }

    fn is(&self, id: FileId) -> bool {
        self.id == Some(id)
    }
}

/// What is decided by.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'r> {
    /// Where files may be named, and outputs go.
    pub roots: &'r [Place],
    /// Folders and files of scribed itself.
    pub own: &'r [Place],
    /// Folders of sources that are `local_only`.
    pub local: &'r [(SourceName, Place)],
}

/// What stands at a path, links not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A folder.
    Folder(FileId),
    /// A link, and what it says.
    Link(PathBuf),
    /// A file or whatever else.
    Other(FileId),
    /// Nothing, or nothing that can be looked at.
    Nothing,
}

/// What is decided of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Located {
    /// It lies below a root.
    Below(Below),
    /// It lies below none; nothing there was looked at.
    Outside {
        /// It, as far as its links below the roots are resolved.
        folder: PathBuf,
        /// The link below a root that leads there, where one does.
        link: Option<PathBuf>,
    },
    /// It is scribed's own, or lies in what is.
    Own,
}

/// A folder below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    /// The root, with its links resolved.
    pub root: PathBuf,
    /// The folder: the root, and behind it no link.
    pub folder: PathBuf,
    /// The source that keeps its files on this machine, where it lies in the folder of one.
    pub local: Option<SourceName>,
}

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

/// Without `.` and `..`, as it is written: links are not resolved.
pub fn flat(path: &Path) -> PathBuf {
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

impl Rules<'_> {
    /// Decides of a folder, by an absolute path. `look` is asked below the roots only.
    pub fn locate(&self, folder: &Path, look: &mut dyn FnMut(&Path) -> Entry) -> Located {
        let (mut folder, mut link) = (flat(folder), None);
        for _ in 0..=MOST_LINKS {
            if self.is_own(&folder) {
                return Located::Own;
            }
            let Some((root, below)) = self.root(&folder) else { return Located::Outside { folder, link } };
            match self.walk(root, below, look) {
                Walked::To(located) => return located,
                Walked::Linked { at, to } => (folder, link) = (to, Some(at)),
            }
        }
        Located::Outside { folder, link }
    }

    /// Whether a path is scribed's own by its name.
    pub fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| own.holds(path))
    }

    /// Whether a file or folder is scribed's own under another name.
    pub fn is_own_id(&self, id: FileId) -> bool {
        self.own.iter().any(|own| own.is(id))
    }

    /// The innermost.
    fn root<'p>(&self, path: &'p Path) -> Option<(&Place, &'p Path)> {
        let all = self.roots.iter().filter_map(|root| Some((root, root.below(path)?)));
        all.min_by_key(|(_, below)| below.components().count())
    }

    fn walk(&self, root: &Place, below: &Path, look: &mut dyn FnMut(&Path) -> Entry) -> Walked {
        if root.chain.iter().any(|id| self.is_own_id(*id)) {
            return Walked::To(Located::Own);
        }
        let mut local = root.chain.iter().find_map(|id| self.local_id(*id));
        let mut at = root.real.clone();
        let mut parts = below.components();
        while let Some(part) = parts.next() {
            at.push(part);
            match look(&at) {
                Entry::Folder(id) if self.is_own_id(id) => return Walked::To(Located::Own),
                Entry::Folder(id) => local = local.or_else(|| self.local_id(id)),
                Entry::Link(target) => {
                    let above = at.parent().unwrap_or(Path::new("/"));
                    return Walked::Linked { to: flat(&above.join(target).join(parts.as_path())), at };
                }
                // What is made there later is made without links.
                Entry::Other(_) | Entry::Nothing => {
                    at.push(parts.as_path());
                    break;
                }
            }
        }
        if self.is_own(&at) {
            return Walked::To(Located::Own);
        }
        let named = || self.local.iter().find(|(_, place)| place.holds(&at)).map(|(name, _)| name.clone());
        let local = local.or_else(named);
        Walked::To(Located::Below(Below { root: root.real.clone(), folder: at, local }))
    }

    fn local_id(&self, id: FileId) -> Option<SourceName> {
        self.local.iter().find(|(_, place)| place.is(id)).map(|(name, _)| name.clone())
    }
}

enum Walked {
    To(Located),
    Linked { at: PathBuf, to: PathBuf },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn place(path: &str) -> Place {
        Place::as_written(Path::new(path))
    }

    fn id(inode: u64) -> FileId {
        FileId { device: 1, inode }
    }

    /// `/srv/in` and `/srv/media` are roots, `/srv/in/state` is scribed's own, `/srv/media/private` is kept here.
    fn located(path: &str, entries: &[(&str, Entry)]) -> String {
        let roots = [place("/srv/in"), place("/srv/media")];
        let own = [Place { id: Some(id(9)), ..place("/srv/in/state") }, place("/etc/scribed/jobs.toml")];
        let local = [(SourceName::new("private"), Place { id: Some(id(5)), ..place("/srv/media/private") })];
        let entries: BTreeMap<&Path, &Entry> = entries.iter().map(|(path, entry)| (Path::new(*path), entry)).collect();
        let mut look = |path: &Path| {
            assert!(roots.iter().any(|root| root.holds(path)), "{path:?} is looked at");
            entries.get(path).map_or(Entry::Folder(id(1)), |entry| (*entry).clone())
        };
        match (Rules { roots: &roots, own: &own, local: &local }).locate(Path::new(path), &mut look) {
            Located::Own => "own".to_owned(),
            Located::Outside { folder, link } => format!("outside {folder:?} by {link:?}"),
            Located::Below(Below { folder, local, .. }) => format!("{} {local:?}", folder.display()),
        }
    }

    fn link(to: &str) -> Entry {
        Entry::Link(PathBuf::from(to))
    }

    #[test]
    fn a_path_is_located_by_where_it_leads() {
        assert_eq!(located("/srv/in/a/../b", &[]), "/srv/in/b None");
        assert_eq!(located("/srv/in", &[]), "/srv/in None");
        assert_eq!(located("/srv/inner", &[]), "outside \"/srv/inner\" by None");
        assert_eq!(located("/srv/in/../../etc", &[]), "outside \"/etc\" by None");
        assert_eq!(located("/srv/in/a/b", &[("/srv/in/a", link("../media/x"))]), "/srv/media/x/b None");
        let out = located("/srv/in/a/b", &[("/srv/in/a", link("/mnt/x"))]);
        assert_eq!(out, "outside \"/mnt/x/b\" by Some(\"/srv/in/a\")");
        let round = located("/srv/in/a/b", &[("/srv/in/a", link("a"))]);
        assert!(round.starts_with("outside"), "{round}");
        assert_eq!(located("/srv/in/new/deep", &[("/srv/in/new", Entry::Nothing)]), "/srv/in/new/deep None");
    }

    #[test]
    fn what_is_scribeds_own_is_so_by_every_name() {
        assert_eq!(located("/srv/in/state/results", &[]), "own");
        assert_eq!(located("/srv/media/x", &[("/srv/media/x", link("../in/state"))]), "own");
        assert_eq!(located("/srv/media/x/y", &[("/srv/media/x", link("../in")), ("/srv/in/y", link("state"))]), "own");
        assert_eq!(located("/srv/media/bound/x", &[("/srv/media/bound", Entry::Folder(id(9)))]), "own");
        assert_eq!(located("/srv/in/new/../state", &[("/srv/in/new", Entry::Nothing)]), "own");
    }

    #[test]
    fn what_is_kept_here_is_so_by_every_name() {
        let private = "Some(SourceName(\"private\"))";
        assert_eq!(located("/srv/media/private/a", &[]), format!("/srv/media/private/a {private}"));
        let linked = located("/srv/in/x/a", &[("/srv/in/x", link("/srv/media/private"))]);
        assert_eq!(linked, format!("/srv/media/private/a {private}"));
        let bound = located("/srv/in/x/a", &[("/srv/in/x", Entry::Folder(id(5)))]);
        assert_eq!(bound, format!("/srv/in/x/a {private}"));
    }

    proptest! {
        /// Whatever is written and whatever links there are: nothing outside is looked at, and what is allowed is below
        /// a root and not scribed's own.
        #[test]
        fn nothing_leaves_the_roots(path in "(/srv)?(/(in|media|state|etc|x|\\.\\.|\\.)){0,6}", to in "(/?(srv|in|\\.\\.|media|state|x|etc)){1,4}") {
            let told = located(&format!("/{path}"), &[("/srv/in/x", link(&to)), ("/srv/media/x", link("../in/x"))]);
            if told.starts_with('/') {
                let at = told.split(' ').next().unwrap_or_default();
                prop_assert!(at.starts_with("/srv/in") || at.starts_with("/srv/media"), "{told}");
                prop_assert!(!at.starts_with("/srv/in/state") && !at.contains(".."), "{told}");
            }
        }
    }
}
