//! Traverses a source's folder: finds files that the source takes, entries that cannot be read, and temporary outputs.
//! Folders are visited in the order of their names, each before those below it, so that an interrupted traversal can
//! continue; the files of one folder come in the system's order.

use crate::config::model::Source;
use crate::domain::job::Stamp;
use crate::domain::names::Timestamp;
use crate::domain::path::RelPath;
use crate::permission_errors::describe_error;
use crate::rooted_path::{LinkInPath, RootedPath};
use crate::shortage::{self, Shortage};
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
const MAX_BATCH: usize = 512;

/// How many characters of a too long path are shown.
const MAX_PATH_CHARS: usize = 100;

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
    target: &TraverseTarget,
    on_folder: Option<&OnFolder>,
    sender: &Sender<Vec<TraversedItem>>,
) {
    let mut traversal = Traversal {
        source,
        disks,
        on_folder,
        sender,
        batch: Vec::new(),
        buffer: Buffer::default(),
        shown_files: match target {
            TraverseTarget::Folders { since } => ShownFiles::Since(*since),
            TraverseTarget::Below(_) | TraverseTarget::Whole { .. } => ShownFiles::All,
        },
        ignore_files: IgnoreFiles::new(&source.folder),
    };
    let flow = match target {
        TraverseTarget::Below(paths) => paths.iter().try_for_each(|path| traversal.traverse_below(path)),
        TraverseTarget::Whole { behind } => traversal.traverse_all(behind.as_deref()),
        TraverseTarget::Folders { .. } => traversal.traverse_all(None),
    };
    if flow.is_continue() {
        let _ended = traversal.send_batch();
    }
}

struct Traversal<'a> {
    source: &'a Source,
    disks: &'a Disks,
    on_folder: Option<&'a OnFolder>,
    sender: &'a Sender<Vec<TraversedItem>>,
    batch: Vec<TraversedItem>,
    buffer: Buffer,
    shown_files: ShownFiles,
    ignore_files: IgnoreFiles,
}

/// Which files are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShownFiles {
    All,
    None,
    Since(Timestamp),
}

impl ShownFiles {
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
type Flow = ControlFlow<()>;

impl Traversal<'_> {
    /// What an earlier traversal has seen may have changed since, so it is visited too, last.
    fn traverse_all(&mut self, behind: Option<&Path>) -> Flow {
        self.traverse_folders(Path::new(""), &|folder| Visit::in_first_half(folder, behind))?;
        match behind {
            Some(behind) => self
                .traverse_folders(Path::new(""), &|folder| Visit::in_first_half(folder, Some(behind)).in_second_half()),
            None => Flow::Continue(()),
        }
    }

    fn traverse_below(&mut self, start: &Path) -> Flow {
        let rooted_path = self.rooted(start);
        if start.as_os_str().is_empty() {
            return self.traverse_folders(start, &|_| Visit::Files);
        }
        let stat = match self.wait_out(|| rooted_path.stat()) {
            Ok(stat) => stat,
            Err(error) => return self.report_error(&rooted_path.full(), &error),
        };
        match EntryKind::from(FileType::from_raw_mode(stat.st_mode)) {
            // The filter was not applied to the folders above yet.
            kind if !self.includes_start(start, kind) => Flow::Continue(()),
            EntryKind::Folder => self.traverse_folders(start, &|_| Visit::Files),
            _ if is_leftover(start.as_os_str()) => self.push(TraversedItem::Leftover(rooted_path.parent())),
            _ => {
                let path = RelPath::new(start.as_os_str().as_bytes());
                self.push(TraversedItem::File(path, self.disks.disk_of(start).stamp_of(&stat)))
            }
        }
    }

    /// Visits folders depth first. Only the siblings of the folders above wait, never the whole tree.
    fn traverse_folders(&mut self, start: &Path, visit: &dyn Fn(&Path) -> Visit) -> Flow {
        let mut waiting = vec![start.to_owned()];
        while let Some(folder) = waiting.pop() {
            let mut subfolders = Vec::new();
            if visit(&folder) != Visit::Nothing {
                self.read_folder(&folder, visit(&folder) == Visit::Files, &mut subfolders)?;
            }
            subfolders.sort_unstable_by(|one, other| other.cmp(one));
            waiting.extend(subfolders.into_iter().map(|name| folder.join(name)));
        }
        Flow::Continue(())
    }

    /// Sends the files of a folder if `shows`, and lists the folders below it.
    fn read_folder(&mut self, folder: &Path, shows_files: bool, subfolders: &mut Vec<OsString>) -> Flow {
        let is_root = folder.as_os_str().is_empty();
        let full = if is_root { self.source.folder.clone() } else { self.source.folder.join(folder) };
        // A network mount reports no changes.
        let is_reported = shows_files && !self.disks.disk_of(folder).is_network();
        if let (true, Some(on_folder)) = (is_reported, self.on_folder) {
            on_folder(&full);
        }
        // The source's folder itself may be a link. It is opened again each time: a share may have been mounted or
        // unmounted.
        let rooted_path = self.rooted(folder);
        let open = match self.wait_out(|| OpenFolder::open(&rooted_path)) {
            Ok(open) => open,
            Err(error) => return self.report_error(&full, &error),
        };
        let mut path = folder.as_os_str().as_bytes().to_vec();
        if !is_root {
            path.push(b'/');
        }
        let (prefix, disk, mut flow) = (path.len(), self.disks.disk_of(folder), Flow::Continue(()));
        let shown = self.shown_files.of(&open);
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = open.for_each_entry(&mut buffer, |entry| {
            path.truncate(prefix);
            path.extend_from_slice(entry.name().as_bytes());
            flow = match entry.kind {
                EntryKind::Folder if self.includes(&path, EntryKind::Folder) => {
                    subfolders.push(entry.name().to_owned());
                    Flow::Continue(())
                }
                EntryKind::Folder => Flow::Continue(()),
                _ if shows_files => self.visit_entry(&rooted_path, (&path, disk), entry, shown),
                _ => Flow::Continue(()),
            };
            flow
        });
        self.buffer = buffer;
        flow?;
        if let Err(error) = result {
            self.report_error(&full, &error)?;
        }
        if shows_files { self.report_completed(folder) } else { Flow::Continue(()) }
    }

    fn visit_entry(
        &mut self,
        folder: &RootedPath,
        (path, disk): (&[u8], Disk),
        entry: &FolderEntry<'_>,
        shown_files: ShownFiles,
    ) -> Flow {
        if is_leftover(entry.name()) {
            return self.push(TraversedItem::Leftover(folder.clone()));
        }
        if shown_files == ShownFiles::None || !self.includes(path, entry.kind) {
            return Flow::Continue(());
        }
        match entry.stat() {
            Ok(Some(stat)) if !shown_files.is_of(&stat) => Flow::Continue(()),
            Ok(Some(stat)) => self.push(TraversedItem::File(RelPath::new(path), disk.stamp_of(&stat))),
            Ok(None) => Flow::Continue(()),
            Err(error) => self.report_error(&folder.join(entry.name()).full(), &error),
        }
    }

    fn includes(&mut self, path: &[u8], kind: EntryKind) -> bool {
        let filter_result = filter_entry_with_ignore_files(
            self.source,
            &mut self.ignore_files,
            Path::new(OsStr::from_bytes(path)),
            kind,
        );
        self.batch.extend(self.ignore_files.take_problems().into_iter().map(TraversedItem::Trouble));
        match filter_result {
            FilterResult::Taken => true,
            FilterResult::PassedOver(rule) => {
                // Reported here, since a person cannot ask about a path of this length.
                if rule == Rule::TooLong {
                    let start: String = String::from_utf8_lossy(path).chars().take(MAX_PATH_CHARS).collect();
                    self.batch.push(TraversedItem::Trouble(format!("{start}…: {rule}")));
                }
                false
            }
        }
    }

    fn includes_start(&self, start: &Path, kind: EntryKind) -> bool {
        start.file_name().is_some_and(is_leftover)
            || filter_path_with_ignore_files(self.source, start, kind) == FilterResult::Taken
    }

    fn rooted(&self, path: &Path) -> RootedPath {
        RootedPath::new(&self.source.folder, path)
    }

    /// Repeats an access while this machine lacks something for it: a folder that is passed over would be missed.
    fn wait_out<T>(&self, access: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        shortage::wait_out(access, Shortage::of, || !self.sender.is_closed())
    }

    /// Reports an error. An entry that has disappeared is none.
    fn report_error(&mut self, path: &Path, error: &io::Error) -> Flow {
        match describe(path, error) {
            Some(words) => self.push(TraversedItem::Trouble(words)),
            None => Flow::Continue(()),
        }
    }

    fn report_completed(&mut self, folder: &Path) -> Flow {
        self.batch.push(TraversedItem::Through(folder.to_owned()));
        // Sent at once if the receiver has nothing to do, since the rest of the tree may take long.
        if self.sender.capacity() == self.sender.max_capacity() { self.send_batch() } else { Flow::Continue(()) }
    }

    fn push(&mut self, item: TraversedItem) -> Flow {
        self.batch.push(item);
        if self.batch.len() < MAX_BATCH { Flow::Continue(()) } else { self.send_batch() }
    }

    fn send_batch(&mut self) -> Flow {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(MAX_BATCH));
        if self.sender.blocking_send(batch).is_err() { Flow::Break(()) } else { Flow::Continue(()) }
    }
}

fn describe(path: &Path, error: &io::Error) -> Option<String> {
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
enum Visit {
    Files,
    /// Not its files, but perhaps those of folders below it.
    OnlyBelow,
    /// Neither its files nor anything below it.
    Nothing,
}

impl Visit {
    /// In the first half, after the folder `behind`.
    fn in_first_half(folder: &Path, behind: Option<&Path>) -> Self {
        match behind {
            Some(behind) if folder > behind => Self::Files,
            Some(behind) if behind.starts_with(folder) => Self::OnlyBelow,
            Some(_) => Self::Nothing,
            None => Self::Files,
        }
    }

    /// Returns the turn in the second half.
    fn in_second_half(self) -> Self {
        match self {
            Self::Files => Self::Nothing,
            Self::OnlyBelow | Self::Nothing => Self::Files,
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
