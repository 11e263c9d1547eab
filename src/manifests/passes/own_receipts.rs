//! Records which receipts scribed wrote, so that they can be recognised.

use super::SourceManifests;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::durable_file::{self, Durability};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::PathBuf;

/// The number of hashes that are kept: only the last receipt, or one that a crash left, is ever found in its place.
const MAX_REMEMBERED: usize = 8;

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    ours: Vec<Hash>,
}

impl SourceManifests {
    fn record_path(&self, manifest: &RelPath) -> PathBuf {
        self.state.join(format!("{}.json", self.key(manifest.clone()).tag()))
    }

    /// Returns the hashes of the receipts that were written for this manifest. Blocks.
    pub(crate) fn own_receipts(&self, manifest: &RelPath) -> Vec<Hash> {
        let read = fs::read(self.record_path(manifest)).ok();
        read.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok()).unwrap_or_default().ours
    }

    /// Records the hash of a receipt that is about to be published. The record is on the disk when this returns.
    /// Blocks.
    pub(crate) fn announce(&self, manifest: &RelPath, hash: Hash) -> io::Result<()> {
        let mut ours = self.own_receipts(manifest);
        ours.retain(|known| *known != hash);
        ours.push(hash);
        ours.drain(..ours.len().saturating_sub(MAX_REMEMBERED));
        fs::create_dir_all(&self.state)?;
        durable_file::replace(&self.record_path(manifest), &serde_json::to_vec(&Kept { ours })?, Durability::Synced)
    }
}
