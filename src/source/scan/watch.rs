//! Watches folders for changes. The events are hints only: the system drops some, and some disks send none.

use crate::config::model::Source;
use crate::source::filter::builtin::is_leftover;
use crate::source::filter::rules::{EntryKind, FilterResult, filter_path};
use crate::source::filter::scribedignore::IGNORE_FILE;
use crate::source::metadata::sidecars::is_sidecar;
use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most changed paths that are kept; after more, the whole folder is scanned.
const MAX_PATHS: usize = 1_024;

/// The changes since the last call of [`WatchHints::take`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WatchChanges {
    /// Files and folders, relative to the source's folder.
    pub paths: BTreeSet<PathBuf>,
    /// There were more changes than are kept.
    pub overflowed: bool,
    /// The source's folder was removed or replaced.
    pub replaced: bool,
    /// A sidecar has changed.
    pub settings: bool,
    /// The watch has failed for this reason and reports no more changes.
    pub broken: Option<String>,
}

/// Collects changes, up to a limit.
#[derive(Default)]
pub struct WatchHints {
    changed: Mutex<WatchChanges>,
    signal: Notify,
    /// Set if changes were dropped before [`WatchHints::take_paths`] was called, or could not be handled.
    missed: AtomicBool,
}

impl WatchHints {
    /// Returns when something has changed.
    pub async fn wait_for_change(&self) {
        loop {
            let notified = self.signal.notified();
            if self.missed.load(Ordering::Relaxed) || *self.changed() != WatchChanges::default() {
                return;
            }
            notified.await;
        }
    }

    /// Notes that changes could not be handled: the next [`WatchHints::take`] reports an overflow.
    pub fn set_missed(&self) {
        self.missed.store(true, Ordering::Relaxed);
        self.signal.notify_one();
    }

    /// Returns the changes since the last call.
    pub fn take(&self) -> WatchChanges {
        let missed = self.missed.swap(false, Ordering::Relaxed);
        let mut changed = std::mem::take(&mut *self.changed());
        changed.overflowed |= missed;
        changed
    }

    /// Returns when changed paths are known, or changes were dropped.
    pub async fn wait_for_paths(&self) {
        loop {
            let notified = self.signal.notified();
            let is_some = {
                let changed = self.changed();
                !changed.paths.is_empty() || changed.overflowed
            };
            if is_some {
                return;
            }
            notified.await;
        }
    }

    /// Returns the changed paths only; [`WatchHints::take`] returns the rest. After an overflow, new paths are
    /// collected again: while a hundred thousand files are copied into one folder, a few in another one are still
    /// found.
    pub fn take_paths(&self) -> BTreeSet<PathBuf> {
        let mut changed = self.changed();
        if std::mem::take(&mut changed.overflowed) {
            self.missed.store(true, Ordering::Relaxed);
        }
        std::mem::take(&mut changed.paths)
    }

    fn add(&self, path: PathBuf) {
        let mut changed = self.changed();
        if changed.overflowed {
            return;
        }
        if changed.paths.len() < MAX_PATHS {
            changed.paths.insert(path);
        } else {
            changed.paths.clear();
            changed.overflowed = true;
        }
        drop(changed);
        self.signal.notify_one();
    }

    fn update(&self, what: impl FnOnce(&mut WatchChanges)) {
        what(&mut self.changed());
        self.signal.notify_one();
    }

    fn changed(&self) -> MutexGuard<'_, WatchChanges> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch of one source's folders.
pub struct Watch {
    watcher: Mutex<RecommendedWatcher>,
    hints: Arc<WatchHints>,
}

impl Watch {
    /// Makes a watch without folders. Add each folder by [`Watch::add_folder`] before it is read, so that no change is
    /// missed.
    ///
    /// # Errors
    /// Why the system cannot watch, in words.
    pub fn new(source: &Arc<Source>) -> Result<Self, String> {
        let hints = Arc::<WatchHints>::default();
        let (source, shared_hints) = (Arc::clone(source), Arc::clone(&hints));
        let config = notify::Config::default().with_follow_symlinks(false);
        let handler = move |event: notify::Result<Event>| match event {
            Ok(event) => record_event(&source, &shared_hints, &event),
            Err(error) => shared_hints.update(|changed| changed.broken = Some(describe(&error))),
        };
        let watcher = RecommendedWatcher::new(handler, config).map_err(|error| describe(&error))?;
        Ok(Self { watcher: Mutex::new(watcher), hints })
    }

    /// Watches this folder too, but not those below it.
    pub fn add_folder(&self, folder: &Path) {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        match watcher.watch(folder, RecursiveMode::NonRecursive) {
            Ok(()) => {}
            // The folder is gone.
            Err(error) if is_gone(&error) => {}
            Err(error) => self.hints.update(|changed| changed.broken = Some(describe(&error))),
        }
    }

    /// The collected changes.
    pub fn hints(&self) -> &WatchHints {
        &self.hints
    }
}

fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => error.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

fn describe(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "the system's limit of watched folders is reached (raise it with sysctl fs.inotify.max_user_watches)"
                .to_owned()
        }
        notify::ErrorKind::Io(error) if error.raw_os_error() == Some(24) => {
            "the system's limit of watchers is reached (raise it with sysctl fs.inotify.max_user_instances)".to_owned()
        }
        _ => format!("the system cannot watch the folder: {error}"),
    }
}

/// Records an event if it may mean a complete file, a new folder or a changed setting.
fn record_event(source: &Source, hints: &WatchHints, event: &Event) {
    if event.need_rescan() {
        hints.update(|changed| changed.overflowed = true);
        return;
    }
    let is_removal = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    if is_removal && event.paths.contains(&source.folder) {
        hints.update(|changed| changed.replaced = true);
    }
    let kind = entry_kind(&event.kind);
    for path in &event.paths {
        let Ok(path) = path.strip_prefix(&source.folder) else { continue };
        if is_removal || kind.is_some() {
            record_settings_change(hints, path);
        }
        let Some(kind) = kind else { continue };
        if !path.as_os_str().is_empty() && is_wanted(source, path, kind) {
            hints.add(path.to_owned());
        }
    }
}

/// Records a change of a sidecar or `.scribedignore`, also its removal.
fn record_settings_change(hints: &WatchHints, path: &Path) {
    let name = path.file_name().unwrap_or_default();
    if name == IGNORE_FILE {
        hints.add(path.parent().unwrap_or(Path::new("")).to_owned());
    } else if is_sidecar(name) {
        hints.update(|changed| changed.settings = true);
    }
}

/// Returns the kind of entry if the event is relevant: a new name, a file closed after writing, changed metadata.
/// Single writes are not: the file is checked when it is closed, or after its settle time. The inner `None` means a
/// file or a folder.
fn entry_kind(event: &EventKind) -> Option<Option<EntryKind>> {
    match event {
        EventKind::Create(CreateKind::File) | EventKind::Access(AccessKind::Close(AccessMode::Write)) => {
            Some(Some(EntryKind::File))
        }
        EventKind::Create(CreateKind::Folder) => Some(Some(EntryKind::Folder)),
        EventKind::Create(_)
        | EventKind::Modify(
            ModifyKind::Name(RenameMode::To | RenameMode::Any) | ModifyKind::Metadata(_) | ModifyKind::Any,
        )
        | EventKind::Any => Some(None),
        _ => None,
    }
}

fn is_wanted(source: &Source, path: &Path, kind: Option<EntryKind>) -> bool {
    let takes = |kind| filter_path(source, path, kind) == FilterResult::Taken;
    let is_ours = path.file_name().is_some_and(is_leftover);
    !is_ours && kind.map_or_else(|| takes(EntryKind::Folder) || takes(EntryKind::File), takes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::read;
    use notify::event::{DataChange, Flag, MetadataKind, RemoveKind};

    fn source() -> Source {
        let text = "[[source]]\nfolder = \"/srv/media\"\nexclude = [\"**/rushes/**\"]\n";
        read::parse(Path::new("/etc/jobs.toml"), text, &|_| None).unwrap().sources.remove(0)
    }

    fn heard(kind: EventKind, path: &str) -> WatchChanges {
        let hints = WatchHints::default();
        record_event(&source(), &hints, &Event::new(kind).add_path(PathBuf::from(path)));
        hints.take()
    }

    #[test]
    fn what_may_be_a_whole_file_or_a_new_folder_is_kept() {
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let to = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let kept = |kind, path: &str| !heard(kind, &format!("/srv/media/{path}")).paths.is_empty();
        assert!(kept(EventKind::Create(CreateKind::Folder), "a"));
        assert!(kept(EventKind::Create(CreateKind::File), "a/talk.wav"));
        assert!(kept(closed, "talk.wav") && kept(to, "talk.wav") && kept(to, "folder"));
        assert!(kept(EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)), "talk.wav"));
        assert!(!kept(closed, "talk.en.srt") && !kept(closed, "rushes/talk.wav") && !kept(to, ".git"));
        assert!(!kept(to, ".0123456789abcdef0123456789abcdef.scribed-tmp"));
        assert!(!kept(EventKind::Remove(RemoveKind::File), "talk.wav"));
        assert!(!kept(EventKind::Modify(ModifyKind::Data(DataChange::Any)), "talk.wav"));
    }

    #[test]
    fn what_says_how_recordings_are_made_is_heard_of_also_when_it_goes() {
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        for kind in [closed, EventKind::Remove(RemoveKind::File), EventKind::Modify(ModifyKind::Name(RenameMode::To))] {
            assert!(heard(kind, "/srv/media/a/talk.toml").settings && heard(kind, "/srv/media/.scribed.toml").settings);
            assert!(heard(kind, "/srv/media/a/.scribedignore").paths.contains(Path::new("a")));
            assert!(heard(kind, "/srv/media/.scribedignore").paths.contains(Path::new("")));
        }
        assert!(!heard(EventKind::Modify(ModifyKind::Data(DataChange::Any)), "/srv/media/a/talk.toml").settings);
    }

    #[test]
    fn the_folders_own_end_and_a_queue_that_overflowed_are_told() {
        assert!(heard(EventKind::Remove(RemoveKind::Folder), "/srv/media").replaced);
        assert!(heard(EventKind::Modify(ModifyKind::Name(RenameMode::From)), "/srv/media").replaced);
        let hints = WatchHints::default();
        record_event(&source(), &hints, &Event::new(EventKind::Other).set_flag(Flag::Rescan));
        assert!(hints.take().overflowed);
    }

    #[test]
    fn memory_is_bounded_and_nothing_is_forgotten_in_silence() {
        let hints = WatchHints::default();
        for n in 0..MAX_PATHS {
            hints.add(PathBuf::from(format!("{n}.wav")));
        }
        let all = hints.take();
        assert!(all.paths.len() == MAX_PATHS && !all.overflowed);
        for n in 0..=3 * MAX_PATHS {
            hints.add(PathBuf::from(format!("{n}.wav")));
        }
        assert_eq!(hints.take(), WatchChanges { overflowed: true, ..WatchChanges::default() });
    }
    #[test]
    fn what_is_taken_in_between_hides_nothing_else() {
        let hints = WatchHints::default();
        hints.update(|changed| changed.replaced = true);
        for n in 0..=MAX_PATHS {
            hints.add(PathBuf::from(format!("{n}.wav")));
        }
        assert_eq!(hints.take_paths(), BTreeSet::new(), "more than is remembered");
        hints.add(PathBuf::from("clip.wav"));
        assert_eq!(hints.take_paths(), BTreeSet::from([PathBuf::from("clip.wav")]));
        assert_eq!(hints.take(), WatchChanges { overflowed: true, replaced: true, ..WatchChanges::default() });
        assert_eq!(hints.take(), WatchChanges::default());
    }
}
