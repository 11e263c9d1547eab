//! An upload while it comes in: a file without a name of its own yet, that counts on the shelf.

use crate::domain::names::Hash;
use crate::server::shelf::{Shelf, ShelfError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempPath;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::OwnedSemaphorePermit;

/// An upload that is coming in. Dropped, it leaves nothing behind.
pub struct Incoming {
    file: File,
    path: Option<TempPath>,
    /// What it counts for on the shelf, until it is kept.
    size: u64,
    owner: Hash,
    shelf: Arc<Shelf>,
}

impl Incoming {
    pub(super) fn new(file: File, path: TempPath, owner: Hash, shelf: Arc<Shelf>) -> Self {
        Self { file, path: Some(path), size: 0, owner, shelf }
    }

    /// Whose it is.
    pub(super) fn owner(&self) -> Hash {
        self.owner
    }

    /// The right to have it looked at.
    pub(super) async fn may_look(&self) -> Option<OwnedSemaphorePermit> {
        self.shelf.may_look(&self.owner).await
    }

    /// The longest recording that is taken.
    pub(super) fn length_limit(&self) -> Duration {
        self.shelf.length_limit()
    }

    /// The file's lasting name is up to the shelf from now on.
    pub(super) fn take_path(&mut self) -> Option<TempPath> {
        self.path.take()
    }

    /// What it counted for, which counts for what is kept from now on.
    pub(super) fn hand_over(&mut self) -> u64 {
        std::mem::take(&mut self.size)
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// They do not fit, or the file system's.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), ShelfError> {
        self.reserve(bytes.len() as u64)?;
        Ok(self.file.write_all(bytes).await?)
    }

    /// Makes the bytes durable.
    ///
    /// # Errors
    /// Those of the file system.
    pub async fn finish(&mut self) -> io::Result<()> {
        self.file.flush().await?;
        self.file.sync_all().await
    }

    /// Where it lies until it is kept; `None` once it is.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Bytes so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn reserve(&mut self, more: u64) -> Result<(), ShelfError> {
        self.shelf.reserve(&self.owner, self.size, more)?;
        self.size += more;
        Ok(())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.shelf.free(&self.owner, self.size);
    }
}
