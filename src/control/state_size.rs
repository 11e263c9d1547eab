//! How much space each part of the state directory takes, and what of it is of no use any more.

use crate::domain::names::Timestamp;
use crate::store::journal;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// A part of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatePart {
    Queue,
    Results,
    History,
    AcceptedTexts,
    Drafts,
    SearchIndex,
    Params,
    ServiceUploads,
    ServiceResults,
    ServiceOther,
    Spool,
    SetAside,
    Other,
}

impl StatePart {
    /// Returns its name for people and for `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Results => "kept results",
            Self::History => "history",
            Self::AcceptedTexts => "accepted texts",
            Self::Drafts => "drafts",
            Self::SearchIndex => "search index",
            Self::Params => "request parameters",
            Self::ServiceUploads => "embedded service: uploads",
            Self::ServiceResults => "embedded service: transcriptions",
            Self::ServiceOther => "embedded service: other",
            Self::Spool => "spool",
            Self::SetAside => "queues set aside",
            Self::Other => "other",
        }
    }

    /// Returns the part that a file belongs to, by its path below the state directory.
    fn of(below: &Path) -> Self {
        let mut names = below.iter().map(|name| name.to_string_lossy());
        match names.next().as_deref() {
            Some("queue") => Self::Queue,
            Some("results") => Self::Results,
            Some("history") => Self::History,
            Some("accepted") => Self::AcceptedTexts,
            Some("drafts") => Self::Drafts,
            Some("search") => Self::SearchIndex,
            Some("params") => Self::Params,
            Some("spool") => Self::Spool,
            Some("service") => Self::of_service(names.next().as_deref()),
            Some(name) if name.starts_with("damaged-") => Self::SetAside,
            _ => Self::Other,
        }
    }

    fn of_service(folder: Option<&str>) -> Self {
        match folder {
            Some("uploads") => Self::ServiceUploads,
            Some("transcriptions" | "results" | "live") => Self::ServiceResults,
            _ => Self::ServiceOther,
        }
    }
}

/// The space that files take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileSpace {
    pub bytes: u64,
    pub files: u64,
}

impl FileSpace {
    fn add(&mut self, file: &Metadata) {
        self.files += 1;
        self.bytes += file.len();
    }
}

/// The space of all parts that have files.
#[derive(Debug, Default)]
pub struct StateSize {
    pub parts: BTreeMap<StatePart, FileSpace>,
    /// What of the history `keep_history` removes at the next start, if it is set.
    pub old_history: Option<FileSpace>,
    /// The kept results that were stored longer ago than `keep_results`, if it is set. Those of them that no job needs are
    /// removed.
    pub old_results: Option<FileSpace>,
}

/// How long history and kept results stay; `None` means for ever.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeptFor {
    pub history: Option<Duration>,
    pub results: Option<Duration>,
}

impl StateSize {
    pub fn total(&self) -> u64 {
        self.parts.values().map(|part| part.bytes).sum()
    }
}

/// Sums the files of a state directory, and of the embedded service's data where that is elsewhere. Files that come and go
/// meanwhile may be missing. Blocks.
///
/// # Errors
/// A folder cannot be read.
pub fn state_size(state: &Path, service: &Path, keep: KeptFor, now: Timestamp) -> io::Result<StateSize> {
    let mut size = StateSize::default();
    let limit = keep.results.map(|keep| now.saturating_sub(keep));
    size.old_results = limit.map(|_| FileSpace::default());
    each_file(state, &mut |below, found| {
        let part = StatePart::of(below);
        size.parts.entry(part).or_default().add(found);
        let is_result = part == StatePart::Results && below.extension().is_some_and(|ending| ending == "gz");
        if let (true, Some(limit), Some(old)) = (is_result, limit, &mut size.old_results)
            && modified(found).is_some_and(|stored| stored < limit)
        {
            old.add(found);
        }
    })?;
    if !service.starts_with(state) {
        each_file(service, &mut |below, found| {
            let folder = below.iter().next().map(|name| name.to_string_lossy());
            size.parts.entry(StatePart::of_service(folder.as_deref())).or_default().add(found);
        })?;
    }
    if let Some(keep) = keep.history {
        let mut old = FileSpace::default();
        for file in journal::old_files(&state.join("history"), keep, now)? {
            old.add(&file.metadata()?);
        }
        size.old_history = Some(old);
    }
    Ok(size)
}

fn modified(found: &Metadata) -> Option<Timestamp> {
    let since_1970 = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp(i64::try_from(since_1970.as_millis()).ok()?))
}

fn each_file(folder: &Path, take: &mut dyn FnMut(&Path, &Metadata)) -> io::Result<()> {
    for entry in walkdir::WalkDir::new(folder).follow_links(true) {
        let is_gone =
            |error: &walkdir::Error| error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
        let entry = match entry {
            Err(error) if is_gone(&error) => continue,
            entry => entry?,
        };
        let Ok(found) = entry.metadata() else { continue };
        if found.is_file() {
            take(entry.path().strip_prefix(folder).unwrap_or(entry.path()), &found);
        }
    }
    Ok(())
}
