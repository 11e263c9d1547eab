//! The index of the uploads, and the JSON file (label) beside each of them.

use crate::domain::names::{Hash, Timestamp};
use crate::server::storage::record_meta::nobody;
use crate::wire::result::File;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;
use uuid::Uuid;

/// How long an upload that no create has named is kept even if the disk is nearly full: its create may be on its way.
const FRESH: Duration = Duration::from_secs(15 * 60);

#[derive(Default)]
pub(super) struct Index {
    pub(super) bytes: u64,
    /// Bytes of records and results, which are elsewhere on the same disk.
    pub(super) records: u64,
    /// All of these bytes by owner.
    pub(super) owners: HashMap<Hash, u64>,
    pub(super) uploads: HashMap<Uuid, Kept>,
    /// Uploads that no unfinished transcription holds, by owner and last use.
    pub(super) idle: HashMap<Hash, BTreeSet<(Timestamp, Uuid)>>,
}

impl Index {
    pub(super) fn total_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.records)
    }

    pub(super) fn bytes_of(&self, owner: &Hash) -> u64 {
        self.owners.get(owner).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, owner: &Hash, bytes: u64) {
        let of = self.owners.entry(*owner).or_default();
        *of = of.saturating_add(bytes);
    }

    pub(super) fn subtract(&mut self, owner: &Hash, bytes: u64) {
        if let Some(of) = self.owners.get_mut(owner) {
            *of = of.saturating_sub(bytes);
        }
    }

    pub(super) fn insert(&mut self, id: Uuid, kept: Kept) {
        if kept.open == 0 {
            self.idle.entry(kept.owner).or_default().insert((kept.used, id));
        }
        self.uploads.insert(id, kept);
    }

    /// Changes an upload's entry, and updates whether it is idle.
    pub(super) fn change<T>(&mut self, id: Uuid, change: impl FnOnce(&mut Kept) -> T) -> Option<T> {
        let kept = self.uploads.get_mut(&id)?;
        let idle = self.idle.entry(kept.owner).or_default();
        idle.remove(&(kept.used, id));
        let changed = change(kept);
        if kept.open == 0 {
            idle.insert((kept.used, id));
        }
        Some(changed)
    }

    /// Removes an upload that no unfinished transcription holds.
    pub(super) fn remove_idle(&mut self, id: Uuid) -> Option<Kept> {
        let kept = self.uploads.get(&id).filter(|kept| kept.open == 0)?;
        let (owner, used) = (kept.owner, kept.used);
        if let Some(idle) = self.idle.get_mut(&owner) {
            idle.remove(&(used, id));
            if idle.is_empty() {
                self.idle.remove(&owner);
            }
        }
        let kept = self.uploads.remove(&id)?;
        self.bytes = self.bytes.saturating_sub(kept.size);
        self.subtract(&owner, kept.size);
        Some(kept)
    }

    /// Returns the removable idle upload with the oldest last use, among the owners for which `may` returns true.
    pub(super) fn oldest_idle(&self, now: Timestamp, may: impl Fn(&Hash) -> bool) -> Option<Uuid> {
        let owners = self.idle.iter().filter(|(owner, _)| may(owner));
        let of_each = owners.filter_map(|(_, idle)| idle.iter().find(|(_, id)| self.is_removable(*id, now)));
        of_each.min().map(|(_, id)| *id)
    }

    pub(super) fn is_removable(&self, id: Uuid, now: Timestamp) -> bool {
        self.uploads.get(&id).is_some_and(|kept| kept.named || now.duration_since(kept.used) > FRESH)
    }
}

pub(super) struct Kept {
    pub(super) owner: Hash,
    pub(super) since: Timestamp,
    pub(super) size: u64,
    pub(super) file: File,
    /// The number of its transcriptions that have not ended.
    pub(super) open: usize,
    /// The number of its transcriptions that have ended and are kept.
    pub(super) ended: usize,
    /// The last use.
    pub(super) used: Timestamp,
    /// The last use as its label has it.
    pub(super) noted: Timestamp,
    /// Whether a create has named it.
    pub(super) named: bool,
}

impl Kept {
    pub(super) fn from_label(label: Label, size: u64) -> Self {
        let Label { owner, since, used, named, file, .. } = label;
        let used = used.unwrap_or(since).max(since);
        Self { owner, since, size, file, open: 0, ended: 0, used, noted: used, named }
    }

    pub(super) fn to_label(&self) -> Label {
        let used = Some(self.used).filter(|used| *used != self.since);
        Label { v: 1, owner: self.owner, since: self.since, used, named: self.named, file: self.file.clone() }
    }
}

/// The JSON beside an upload.
#[derive(Serialize, Deserialize)]
pub(super) struct Label {
    pub(super) v: u32,
    #[serde(default = "nobody")]
    pub(super) owner: Hash,
    pub(super) since: Timestamp,
    /// The last use, unless the kept transcriptions say it; absent if it was not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) used: Option<Timestamp>,
    /// Whether a create has named it, unless a transcription says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) named: bool,
    pub(super) file: File,
}

pub(super) fn read_entry(folder: &Path, id: Uuid) -> io::Result<Kept> {
    let label: Label = serde_json::from_slice(&fs::read(folder.join(format!("{id}.json")))?)?;
    if label.v != 1 {
        let words = format!("a newer release of scribed stored an upload (version {})", label.v);
        return Err(io::Error::new(io::ErrorKind::Unsupported, words));
    }
    let size = fs::metadata(folder.join(id.to_string()))?.len();
    Ok(Kept::from_label(label, size))
}

/// Whether the error means that the file or a valid label is missing: the upload was never answered, or its removal was
/// interrupted.
pub(super) fn is_incomplete(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | InvalidData | UnexpectedEof)
}
