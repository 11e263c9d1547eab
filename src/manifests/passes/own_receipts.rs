//! The record of each manifest in the state directory: which receipts scribed wrote, so that they can be recognised,
//! and which manifest was read, so that its disappearance is noticed.

use super::SourceManifests;
use crate::domain::job::JobKey;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::durable_file::{self, Durability};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder with the records, in the state directory.
const FOLDER: &str = "receipts";

/// The number of hashes that are kept: only the last receipt, or one that a crash left, is ever found in its place.
const MAX_REMEMBERED: usize = 8;

/// What is recorded of one manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ManifestRecord {
    ours: Vec<Hash>,
    /// The source and the path of the manifest, once it was read; `None` in records of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<JobKey>,
    /// Whether the manifest is gone and none of its jobs counts any more: a person has dealt with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dismissed: bool,
}

/// Returns the folder with the records of all manifests.
pub(super) fn folder(state: &Path) -> PathBuf {
    state.join(FOLDER)
}

/// Returns all records of a state directory. A record that cannot be read is left out. Blocks.
pub(super) fn all(state: &Path) -> Vec<ManifestRecord> {
    let entries = fs::read_dir(folder(state)).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ext| ext == "json"));
    files.map(|path| load(&path)).collect()
}

/// Records that a person has dealt with a manifest that is gone. Blocks.
pub(super) fn dismiss(state: &Path, manifest: &JobKey) -> io::Result<()> {
    let path = record_path(&folder(state), manifest);
    let record = ManifestRecord { is_dismissed: true, ..load(&path) };
    // If it is lost, the jobs are read once more.
    save(&path, &record, Durability::Unsynced)
}

fn record_path(folder: &Path, manifest: &JobKey) -> PathBuf {
    folder.join(format!("{}.json", manifest.tag()))
}

fn load(path: &Path) -> ManifestRecord {
    let read = fs::read(path).ok();
    read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn save(path: &Path, record: &ManifestRecord, durability: Durability) -> io::Result<()> {
    durable_file::replace(path, &serde_json::to_vec(record)?, durability)
}

impl SourceManifests {
    fn record_path(&self, manifest: &RelPath) -> PathBuf {
        record_path(&self.state, &self.key(manifest.clone()))
    }

    /// Returns the hashes of the receipts that were written for this manifest. Blocks.
    pub(crate) fn own_receipts(&self, manifest: &RelPath) -> Vec<Hash> {
        load(&self.record_path(manifest)).ours
    }

    /// Records the hash of a receipt that is about to be published. The record is on the disk when this returns.
    /// Blocks.
    pub(crate) fn announce(&self, manifest: &RelPath, hash: Hash) -> io::Result<()> {
        let path = self.record_path(manifest);
        let mut record = load(&path);
        record.ours.retain(|known| *known != hash);
        record.ours.push(hash);
        record.ours.drain(..record.ours.len().saturating_sub(MAX_REMEMBERED));
        fs::create_dir_all(&self.state)?;
        save(&path, &record, Durability::Synced)
    }

    /// Records that this manifest was read. Blocks.
    pub(super) fn note_read(&self, manifest: &RelPath) -> io::Result<()> {
        let path = self.record_path(manifest);
        let before = load(&path);
        let record = ManifestRecord {
            manifest: Some(self.key(manifest.clone())),
            is_dismissed: false,
            ours: before.ours.clone(),
        };
        if record == before {
            return Ok(());
        }
        fs::create_dir_all(&self.state)?;
        save(&path, &record, Durability::Synced)
    }
}
