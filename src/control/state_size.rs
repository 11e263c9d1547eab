//! How much space each part of the state directory takes, and what of it is of no use any more.

use crate::domain::names::Timestamp;
use crate::store::journal;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

/// A part of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatePart {
    Queue,
    Results,
    History,
    AcceptedTexts,
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

/// The space of all parts that have files.
#[derive(Debug, Default)]
pub struct StateSize {
    pub parts: BTreeMap<StatePart, FileSpace>,
    /// What of the history `keep_history` removes at the next start, if it is set.
    pub old_history: Option<FileSpace>,
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
pub fn state_size(
    state: &Path,
    service: &Path,
    keep_history: Option<Duration>,
    now: Timestamp,
) -> io::Result<StateSize> {
    let mut size = StateSize::default();
    sum(state, &mut size.parts, &StatePart::of)?;
    if !service.starts_with(state) {
        let of_service =
            |below: &Path| StatePart::of_service(below.iter().next().map(|name| name.to_string_lossy()).as_deref());
        sum(service, &mut size.parts, &of_service)?;
    }
    if let Some(keep) = keep_history {
        let mut old = FileSpace::default();
        for file in journal::old_files(&state.join("history"), keep, now)? {
            old.files += 1;
            old.bytes += file.metadata()?.len();
        }
        size.old_history = Some(old);
    }
    Ok(size)
}

fn sum(
    folder: &Path,
    parts: &mut BTreeMap<StatePart, FileSpace>,
    part_of: &dyn Fn(&Path) -> StatePart,
) -> io::Result<()> {
    for entry in walkdir::WalkDir::new(folder).follow_links(true) {
        let is_gone =
            |error: &walkdir::Error| error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
        let entry = match entry {
            Err(error) if is_gone(&error) => continue,
            entry => entry?,
        };
        let Ok(found) = entry.metadata() else { continue };
        if found.is_file() {
            let below = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            let part = parts.entry(part_of(below)).or_default();
            part.files += 1;
            part.bytes += found.len();
        }
    }
    Ok(())
}
