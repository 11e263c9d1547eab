//! What is remembered of receipts: which of the files that lie there are ours.

use super::SourceManifests;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
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
    pub(crate) fn ours(&self, manifest: &RelPath) -> Vec<Hash> {
        let read = fs::read(self.kept_at(manifest)).ok();
        read.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok()).unwrap_or_default().ours
    }

    /// Durable when it returns. Blocks.
    pub(crate) fn announce(&self, manifest: &RelPath, hash: Hash) -> io::Result<()> {
        let mut ours = self.ours(manifest);
        ours.retain(|known| *known != hash);
        ours.push(hash);
        ours.drain(..ours.len().saturating_sub(MOST));
        fs::create_dir_all(&self.state)?;
        let mut file = tempfile::Builder::new().prefix(".tmp").tempfile_in(&self.state)?;
        serde_json::to_writer(&mut file, &Kept { ours })?;
        file.flush()?;
        file.as_file().sync_all()?;
        file.persist(self.kept_at(manifest))?;
        fs::File::open(&self.state)?.sync_all()
    }
}
