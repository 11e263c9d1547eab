//! Traverses a source's folder: finds files that the source takes, entries that cannot be read, and temporary outputs.
//! Folders are visited in the order of their names, each before those below it, so that an interrupted traversal can
//! continue; the files of one folder come in the system's order.

use crate::config::model::Source;
use crate::domain::job::Stamp;
use crate::domain::names::Timestamp;
use crate::domain::path::RelPath;
use crate::permission_errors::describe_error;
use crate::rooted_path::{LinkInPath, RootedPath};
use crate::source::filter::builtin::is_leftover;
use crate::source::filter::rules::{
    EntryKind, FilterResult, LONG_PATH_FIX, Rule, filter_entry_with_ignore_files, filter_path_with_ignore_files,
};
use crate::source::filter::scribedignore::IgnoreFiles;
use crate::source::mount::disk::{Disk, Disks};
use crate::source::scan::read_dir::{Buffer, FolderEntry, OpenFolder};
use rustix::fs::{FileType, Stat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Called for each folder before it is read, so that a watch misses no change in it.
pub type OnFolder = Arc<dyn Fn(&Path) + Send + Sync>;

/// The most items in a batch; fewer if the receiver waits.
const PORTION: usize = 512;

/// How many characters of a too long path are shown.
const SHOWN: usize = 100;

/// An item that a traversal finds.
#[derive(Debug)]
pub enum TraversedItem {
    /// A file that the source takes.
    File(RelPath, Stamp),
    /// An entry that could not be read.
    Trouble(String),
    /// A folder with a temporary output file.
    Leftover(RootedPath),
    /// This folder and all before it in the traversal's order are completed.
    Through(PathBuf),
}

#[derive(Debug, Clone)]
pub enum TraverseTarget {
    /// These files and folders, relative to the source's folder, with everything below them.
    Below(Vec<PathBuf>),
    /// The whole folder, beginning after the folder that an earlier traversal completed last, and wrapping around.
    Whole {
        /// The folder to begin after; `None` for the beginning.
        behind: Option<PathBuf>,
    },
    /// All folders, temporary outputs, and only files that changed at or after this moment of the wall clock.
    Folders {
        /// The moment since which no watch was active.
        since: Timestamp,
    },
}

/// Traverses the target. Links are not followed. Returns early when the receiver is closed. Blocks.
pub fn traverse(
    source: &Source,
    disks: &Disks,
    what: &TraverseTarget,
    on_folder: Option<&OnFolder>,
    to: &Sender<Vec<TraversedItem>>,
) {
    let mut walk = Walk {
        source,
        disks,
        on_folder,
        to,
        portion: Vec::new(),
        buffer: Buffer::default(),
        shown: match what {
            TraverseTarget::Folders { since } => Shown::Since(*since),
            TraverseTarget::Below(_) | TraverseTarget::Whole { .. } => Shown::All,
        },
        ignoring: IgnoreFiles::new(&source.folder),
    };
    let walked = match what {
        TraverseTarget::Below(paths) => paths.iter().try_for_each(|path| walk.below(path)),
        TraverseTarget::Whole { behind } => walk.around(behind.as_deref()),
        TraverseTarget::Folders { .. } => walk.around(None),
    };
    if walked.is_continue() {
        let _ended = walk.hand_on();
    }
}

struct Walk<'a> {
    source: &'a Source,
    disks: &'a Disks,
    on_folder: Option<&'a OnFolder>,
    to: &'a Sender<Vec<TraversedItem>>,
    portion: Vec<TraversedItem>,
    buffer: Buffer,
    shown: Shown,
    ignoring: IgnoreFiles,
}

/// Which files are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    All,
    None,
    Since(Timestamp),
}

impl Shown {
    /// Returns which files of one folder are shown: if a folder has not changed, its files need no `stat`.
    fn of(self, folder: &OpenFolder) -> Self {
        match self {
            Self::Since(since) if !folder.has_changed_since(since.0) => Self::None,
            shown => shown,
        }
    }

    fn is_of(self, stat: &Stat) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Since(since) => {
                stat.st_ctime.saturating_mul(1000).saturating_add(stat.st_ctime_nsec as i64 / 1_000_000) >= since.0
            }
        }
    }
}

/// `Break` when the receiver is closed.
type Goes = ControlFlow<()>;

impl Walk<'_> {
    /// What an earlier traversal has seen may have changed since, so it is visited too, last.
    fn around(&mut self, behind: Option<&Path>) -> Goes {
        self.folders(Path::new(""), &|folder| Turn::of(folder, behind))?;
        match behind {
            Some(behind) => self.folders(Path::new(""), &|folder| Turn::of(folder, Some(behind)).other()),
            None => Goes::Continue(()),
        }
    }

    fn below(&mut self, start: &Path) -> Goes {
        let rooted = self.rooted(start);
        if start.as_os_str().is_empty() {
            return self.folders(start, &|_| Turn::Now);
        }
        let stat = match rooted.stat() {
            Ok(stat) => stat,
            Err(error) => return self.trouble(&rooted.full(), &error),
        };
        match EntryKind::from(FileType::from_raw_mode(stat.st_mode)) {
            // The filter was not applied to the folders above yet.
            kind if !self.takes_start(start, kind) => Goes::Continue(()),
            EntryKind::Folder => self.folders(start, &|_| Turn::Now),
            _ if is_leftover(start.as_os_str()) => self.hand(TraversedItem::Leftover(rooted.parent())),
            _ => {
                let path = RelPath::new(start.as_os_str().as_bytes());
                self.hand(TraversedItem::File(path, self.disks.disk_of(start).stamp_of(&stat)))
            }
        }
    }

    /// Visits folders depth first. Only the siblings of the folders above wait, never the whole tree.
    fn folders(&mut self, start: &Path, turn: &dyn Fn(&Path) -> Turn) -> Goes {
        let mut waiting = vec![start.to_owned()];
        while let Some(folder) = waiting.pop() {
            let mut below = Vec::new();
            if turn(&folder) != Turn::Never {
                self.read(&folder, turn(&folder) == Turn::Now, &mut below)?;
            }
            below.sort_unstable_by(|one, other| other.cmp(one));
            waiting.extend(below.into_iter().map(|name| folder.join(name)));
        }
        Goes::Continue(())
    }

    /// Sends the files of a folder if `shows`, and lists the folders below it.
    fn read(&mut self, folder: &Path, shows: bool, below: &mut Vec<OsString>) -> Goes {
        let is_root = folder.as_os_str().is_empty();
        let full = if is_root { self.source.folder.clone() } else { self.source.folder.join(folder) };
        // A network mount reports no changes.
        let tells = shows && !self.disks.disk_of(folder).is_network();
        if let (true, Some(told)) = (tells, self.on_folder) {
            told(&full);
        }
        // The source's folder itself may be a link. It is opened again each time: a share may have been mounted or
        // unmounted.
        let rooted = self.rooted(folder);
        let open = match OpenFolder::open(&rooted) {
            Ok(open) => open,
            Err(error) => return self.trouble(&full, &error),
        };
        let mut path = folder.as_os_str().as_bytes().to_vec();
        if !is_root {
            path.push(b'/');
        }
        let (prefix, disk, mut goes) = (path.len(), self.disks.disk_of(folder), Goes::Continue(()));
        let shown = self.shown.of(&open);
        let mut buffer = std::mem::take(&mut self.buffer);
        let listed = open.for_each_entry(&mut buffer, |entry| {
            path.truncate(prefix);
            path.extend_from_slice(entry.name().as_bytes());
            goes = match entry.kind {
                EntryKind::Folder if self.takes(&path, EntryKind::Folder) => {
                    below.push(entry.name().to_owned());
                    Goes::Continue(())
                }
                EntryKind::Folder => Goes::Continue(()),
                _ if shows => self.entry(&rooted, (&path, disk), entry, shown),
                _ => Goes::Continue(()),
            };
            goes
        });
        self.buffer = buffer;
        goes?;
        if let Err(error) = listed {
            self.trouble(&full, &error)?;
        }
        if shows { self.through(folder) } else { Goes::Continue(()) }
    }

    fn entry(
        &mut self,
        folder: &RootedPath,
        (path, disk): (&[u8], Disk),
        entry: &FolderEntry<'_>,
        shown: Shown,
    ) -> Goes {
        if is_leftover(entry.name()) {
            return self.hand(TraversedItem::Leftover(folder.clone()));
        }
        if shown == Shown::None || !self.takes(path, entry.kind) {
            return Goes::Continue(());
        }
        match entry.stat() {
            Ok(Some(stat)) if !shown.is_of(&stat) => Goes::Continue(()),
            Ok(Some(stat)) => self.hand(TraversedItem::File(RelPath::new(path), disk.stamp_of(&stat))),
            Ok(None) => Goes::Continue(()),
            Err(error) => self.trouble(&folder.join(entry.name()).full(), &error),
        }
    }

    fn takes(&mut self, path: &[u8], kind: EntryKind) -> bool {
        let choice =
            filter_entry_with_ignore_files(self.source, &mut self.ignoring, Path::new(OsStr::from_bytes(path)), kind);
        self.portion.extend(self.ignoring.take_problems().into_iter().map(TraversedItem::Trouble));
        match choice {
            FilterResult::Taken => true,
            FilterResult::PassedOver(rule) => {
                // Reported here, since a person cannot ask about a path of this length.
                if rule == Rule::TooLong {
                    let start: String = String::from_utf8_lossy(path).chars().take(SHOWN).collect();
                    self.portion.push(TraversedItem::Trouble(format!("{start}…: {rule}")));
                }
                false
            }
        }
    }

    fn takes_start(&self, start: &Path, kind: EntryKind) -> bool {
        start.file_name().is_some_and(is_leftover)
            || filter_path_with_ignore_files(self.source, start, kind) == FilterResult::Taken
    }

    fn rooted(&self, path: &Path) -> RootedPath {
        RootedPath::new(&self.source.folder, path)
    }

    /// Reports an error. An entry that has disappeared is none.
    fn trouble(&mut self, path: &Path, error: &io::Error) -> Goes {
        match words(path, error) {
            Some(words) => self.hand(TraversedItem::Trouble(words)),
            None => Goes::Continue(()),
        }
    }

    fn through(&mut self, folder: &Path) -> Goes {
        self.portion.push(TraversedItem::Through(folder.to_owned()));
        // Sent at once if the receiver has nothing to do, since the rest of the tree may take long.
        if self.to.capacity() == self.to.max_capacity() { self.hand_on() } else { Goes::Continue(()) }
    }

    fn hand(&mut self, seen: TraversedItem) -> Goes {
        self.portion.push(seen);
        if self.portion.len() < PORTION { Goes::Continue(()) } else { self.hand_on() }
    }

    fn hand_on(&mut self) -> Goes {
        let portion = std::mem::replace(&mut self.portion, Vec::with_capacity(PORTION));
        if self.to.blocking_send(portion).is_err() { Goes::Break(()) } else { Goes::Continue(()) }
    }
}

fn words(path: &Path, error: &io::Error) -> Option<String> {
    let whole = path;
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => None,
        // The entry was a folder before and is a link now. Links are passed over.
        _ if LinkInPath::of(error).is_some() => None,
        io::ErrorKind::InvalidFilename => Some(format!(
            "{path}: scribed does not scan the folders below: their paths are longer than the system can open; \
             {LONG_PATH_FIX}"
        )),
        _ => Some(format!("{path}: {}", describe_error(error, whole))),
    }
}

/// Whether a folder's files are shown in this half of a traversal that wraps around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Now,
    /// Not its files, but perhaps those of folders below it.
    OnlyBelow,
    /// Neither its files nor anything below it.
    Never,
}

impl Turn {
    /// In the first half, after the folder `behind`.
    fn of(folder: &Path, behind: Option<&Path>) -> Self {
        match behind {
            Some(behind) if folder > behind => Self::Now,
            Some(behind) if behind.starts_with(folder) => Self::OnlyBelow,
            Some(_) => Self::Never,
            None => Self::Now,
        }
    }

    /// Returns the turn in the second half.
    fn other(self) -> Self {
        match self {
            Self::Now => Self::Never,
            Self::OnlyBelow | Self::Never => Self::Now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, SystemClock};
    use crate::config::load::read;
    use tokio::sync::mpsc;

    /// Paths of files in the order in which they are shown, and the folders that were told of.
    fn walked(root: &Path, what: TraverseTarget) -> (Vec<String>, usize) {
        let text = format!("[[source]]\nfolder = {root:?}\n");
        let source = read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0);
        let told = Arc::new(std::sync::Mutex::new(Vec::new()));
        let folders = Arc::clone(&told);
        let on_folder: OnFolder = Arc::new(move |folder| folders.lock().unwrap().push(folder.to_owned()));
        let (to, mut found) = mpsc::channel(1_000);
        traverse(&source, &Disk::Local.into(), &what, Some(&on_folder), &to);
        drop(to);
        let mut paths = Vec::new();
        while let Ok(portion) = found.try_recv() {
            paths.extend(portion.into_iter().filter_map(|seen| match seen {
                TraversedItem::File(path, _) => Some(path.lossy().into_owned()),
                _ => None,
            }));
        }
        let mut folders = told.lock().unwrap().clone();
        let all = folders.len();
        folders.sort();
        folders.dedup();
        assert_eq!(folders.len(), all, "each folder is told of once");
        (paths, all)
    }

    #[test]
    fn wherever_it_begins_it_shows_everything_once_and_what_it_has_not_shown_first() {
        let dir = tempfile::tempdir().unwrap();
        let folders = ["", "a", "a/b", "a/b/c", "a.x", "b", "b/z", "c"];
        for folder in folders {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
            std::fs::write(dir.path().join(folder).join("t.wav"), "x").unwrap();
        }
        let (in_order, _) = walked(dir.path(), TraverseTarget::Whole { behind: None });
        let expected = ["t.wav", "a/t.wav", "a/b/t.wav", "a/b/c/t.wav", "a.x/t.wav", "b/t.wav", "b/z/t.wav", "c/t.wav"];
        assert_eq!(in_order, expected);
        for (n, folder) in folders.iter().enumerate() {
            let (around, told) = walked(dir.path(), TraverseTarget::Whole { behind: Some(folder.into()) });
            let mut rotated = expected.to_vec();
            rotated.rotate_left(n + 1);
            assert_eq!((around, told), (rotated.iter().map(ToString::to_string).collect(), folders.len()), "{folder}");
        }
        let (around, _) = walked(dir.path(), TraverseTarget::Whole { behind: Some("a/gone".into()) });
        assert_eq!((around.len(), around[0].as_str()), (8, "a.x/t.wav"));
        let since = |moment: i64| walked(dir.path(), TraverseTarget::Folders { since: Timestamp(moment) });
        let now = SystemClock.now();
        assert_eq!(since(now.0 + 3_600_000), (Vec::new(), folders.len()), "told of, and not shown");
        let (came, _) = since(now.0 - 3_600_000);
        assert_eq!(came, expected, "all of it came within this hour");
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        std::fs::File::open(dir.path().join("a/b")).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(since(now.0 - 3_600_000).0.len(), folders.len() - 1, "nothing came into that folder");
    }
}
