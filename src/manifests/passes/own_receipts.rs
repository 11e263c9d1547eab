//! What is remembered of receipts: which of the files that lie there are ours.

use super::SourceManifests;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::durable_file::{self, Durability};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::PathBuf;

/// More are not remembered: only the last one is ever found in its place, or one that a crash left there.
const MOST: usize = 8;

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    ours: Vec<Hash>,
}

impl SourceManifests {
    fn kept_at(&self, manifest: &RelPath) -> PathBuf {
        let tag = u128::from_be_bytes(self.key(manifest.clone()).tag().0);
        self.state.join(format!("{tag:032x}.json"))
    }

    /// What was written as the receipt of this manifest. Blocks.
    pub(crate) fn own_receipts(&self, manifest: &RelPath) -> Vec<Hash> {
        let read = fs::read(self.kept_at(manifest)).ok();
        read.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok()).unwrap_or_default().ours
    }

    /// Durable when it returns. Blocks.
    pub(crate) fn announce(&self, manifest: &RelPath, hash: Hash) -> io::Result<()> {
        let mut ours = self.own_receipts(manifest);
        ours.retain(|known| *known != hash);
        ours.push(hash);
        ours.drain(..ours.len().saturating_sub(MOST));
        fs::create_dir_all(&self.state)?;
        durable_file::replace(&self.kept_at(manifest), &serde_json::to_vec(&Kept { ours })?, Durability::Synced)
    }
}
