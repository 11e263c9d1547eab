//! When a source was scanned last and is scanned next. Saved in the state directory, so that each slot of a cron line
//! runs at most once, also over restarts.

use crate::blocking::blocking;
use crate::clock::Uptime;
use crate::config::model::Source;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::scan_slots::{LastScan, ScanTurn, next_scan};
use crate::durable_file::Durability;
use crate::source::saved_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct ScanSchedule {
    source: Arc<Source>,
    file: PathBuf,
    known: Mutex<Known>,
    first: Mutex<FirstScan>,
}

/// The progress of this process's first scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FirstScan {
    /// Not begun.
    #[default]
    Ahead,
    /// In progress.
    Running,
    /// Completed or interrupted.
    Over,
}

/// Ends the first scan when it is dropped.
pub struct FirstScanGuard<'s>(&'s ScanSchedule);

impl Drop for FirstScanGuard<'_> {
    fn drop(&mut self) {
        *self.0.first.lock().unwrap_or_else(PoisonError::into_inner) = FirstScan::Over;
    }
}

#[derive(Default)]
struct Known {
    last: Option<LastScan>,
    /// By the monotonic clock.
    due: Option<Uptime>,
}

#[derive(Serialize, Deserialize)]
struct SavedScan {
    /// A record of another folder under the same source name does not apply …
    folder: RelPath,
    /// … and neither does one of other `include` and `exclude` patterns.
    #[serde(default)]
    #[serde(rename = "sought")]
    selection_hash: Option<Hash>,
    #[serde(flatten)]
    last: LastScan,
}

impl ScanSchedule {
    /// Reads the record from `file`. An unreadable record counts as none: an additional scan is always correct.
    pub fn new(source: Arc<Source>, file: PathBuf) -> Self {
        let saved = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<SavedScan>(&bytes).ok());
        let applies = |saved: &SavedScan| {
            let is_same = saved.selection_hash.is_none_or(|selection_hash| selection_hash == source.selection_hash);
            is_same && saved.folder.as_bytes() == source.folder.as_os_str().as_bytes()
        };
        let saved = saved.filter(applies);
        let known = Known { last: saved.map(|saved| saved.last), due: None };
        Self { source, file, known: Mutex::new(known), first: Mutex::default() }
    }

    /// Notes that a full scan begins; it ends when the guard is dropped.
    #[must_use]
    pub fn begin_first_scan(&self) -> FirstScanGuard<'_> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if *first == FirstScan::Ahead {
            *first = FirstScan::Running;
        }
        FirstScanGuard(self)
    }

    /// The progress of this process's first scan.
    pub fn first(&self) -> FirstScan {
        *self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last scan; `None` if none is known.
    pub fn last(&self) -> Option<LastScan> {
        self.known().last.clone()
    }

    /// Returns the next scan by the cron line; `None` if the source has none.
    pub fn next_scan(&self, wall: Timestamp) -> Option<ScanTurn> {
        let line = self.source.scan.line()?;
        Some(next_scan(line, self.source.missed, self.known().last.as_ref(), wall))
    }

    /// Returns the next scan of a source with an interval, as set by [`ScanSchedule::set_due`].
    pub fn due(&self) -> Option<Uptime> {
        self.known().due
    }

    /// Sets when the source is scanned next, if nothing happens before.
    pub fn set_due(&self, due: Option<Uptime>) {
        self.known().due = due;
    }

    /// If the cron line was changed, counts its slots from now on. Durable when it returns.
    pub async fn adopt_cron_line(&self, wall: Timestamp) {
        let line = self.source.scan.line();
        let with_new_line = |last: LastScan| (!last.has_line(line)).then(|| last.under(line, wall));
        if let Some(last) = self.last().and_then(with_new_line) {
            self.note(last).await;
        }
    }

    /// Records that a scan begins: its slot is used, even if this process ends. Durable when it returns, for a source
    /// with a cron line.
    pub async fn record_start(&self, wall: Timestamp) {
        let last = LastScan::started(self.last().as_ref(), self.source.scan.line(), wall);
        self.known().due = None;
        match self.source.scan.line() {
            Some(_) => self.note(last).await,
            // With an interval nothing depends on the record.
            None => self.known().last = Some(last),
        }
    }

    /// Records that the scan has completed.
    pub async fn record_end(&self, wall: Timestamp) {
        if let Some(last) = self.last() {
            self.note(last.finished(wall)).await;
        }
    }

    async fn note(&self, last: LastScan) {
        self.known().last = Some(last.clone());
        let folder = RelPath::new(self.source.folder.as_os_str().as_bytes());
        // With an interval nothing depends on the record.
        let by_slots = self.source.scan.line().is_some();
        let durability = if by_slots { Durability::Synced } else { Durability::Unsynced };
        let file = self.file.clone();
        let kept = SavedScan { folder, selection_hash: Some(self.source.selection_hash), last };
        let written = blocking(move || write(&file, &kept, durability)).await;
        if let Err(error) = written {
            let words = "cannot save the time of the last scan; after a restart the source may be scanned again";
            tracing::warn!(source = %self.source.name, file = %self.file.display(), %error, "{words}");
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(file: &Path, kept: &SavedScan, durability: Durability) -> io::Result<()> {
    saved_file::save(file, "scanned-tmp", kept, durability)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::read;
    use crate::domain::scan_slots::Cause;

    fn scans(state: &Path, lines: &str) -> ScanSchedule {
        let text = format!("[[source]]\nname = \"s\"\n{lines}\n");
        let source = read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0);
        ScanSchedule::new(Arc::new(source), state.join("folders/s.scanned"))
    }

    #[tokio::test]
    async fn what_was_begun_is_known_after_a_restart_of_this_folder_alone() {
        let state = tempfile::tempdir().unwrap();
        let cron = "folder = \"/srv\"\nscan = \"0 22 * * *\"";
        let first = scans(state.path(), cron);
        let (slot, day) = (Timestamp(22 * 3_600_000), 24 * 3_600_000);
        assert_eq!(first.next_scan(slot), Some(ScanTurn::Now(Cause::First)));
        first.record_start(slot).await;
        assert_eq!(scans(state.path(), cron).next_scan(slot), Some(ScanTurn::Now(Cause::CutOff)));
        first.record_end(Timestamp(slot.0 + 5)).await;
        let next = ScanTurn::At { slot: Timestamp(slot.0 + day), left_out: None };
        assert_eq!(scans(state.path(), cron).next_scan(slot), Some(next));
        let elsewhere = scans(state.path(), "folder = \"/srv2\"\nscan = \"0 22 * * *\"");
        assert_eq!(elsewhere.next_scan(slot), Some(ScanTurn::Now(Cause::First)));
        let more = scans(state.path(), &format!("{cron}\ninclude = [\"**/*.dat\"]"));
        assert_eq!(more.next_scan(slot), Some(ScanTurn::Now(Cause::First)), "what nobody has looked for yet");
        assert_eq!(scans(state.path(), "folder = \"/srv\"").next_scan(slot), None);
        fs::write(state.path().join("folders/s.scanned"), "half").unwrap();
        assert_eq!(scans(state.path(), cron).next_scan(slot), Some(ScanTurn::Now(Cause::First)));
    }

    #[tokio::test]
    async fn another_line_is_taken_up_without_a_scan() {
        let state = tempfile::tempdir().unwrap();
        let (evening, noon) = (Timestamp(22 * 3_600_000), Timestamp((24 + 12) * 3_600_000));
        let nightly = scans(state.path(), "folder = \"/srv\"\nscan = \"0 22 * * *\"");
        nightly.record_start(evening).await;
        nightly.record_end(evening).await;
        let daily = || scans(state.path(), "folder = \"/srv\"\nscan = \"0 12 * * *\"");
        let after_noon = Timestamp(noon.0 + 3_600_000);
        daily().adopt_cron_line(after_noon).await;
        let next = ScanTurn::At { slot: Timestamp(noon.0 + 24 * 3_600_000), left_out: None };
        assert_eq!(daily().next_scan(after_noon), Some(next));
    }
}
