//! An upload while it comes in: a file without a name of its own yet, that counts in the upload store.

use crate::domain::names::Hash;
use crate::server::storage::uploads::{UploadStore, UploadStoreError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempPath;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::OwnedSemaphorePermit;

/// An upload that is coming in. Dropped, it leaves nothing behind.
pub struct UploadWriter {
    file: File,
    path: Option<TempPath>,
    /// What it counts for in the upload store, until it is kept.
    size: u64,
    owner: Hash,
    upload_store: Arc<UploadStore>,
}

impl UploadWriter {
    pub(crate) fn new(file: File, path: TempPath, owner: Hash, upload_store: Arc<UploadStore>) -> Self {
        Self { file, path: Some(path), size: 0, owner, upload_store }
    }

    pub(crate) fn owner(&self) -> Hash {
        self.owner
    }

    /// The right to have it looked at.
    pub(crate) async fn acquire_probe_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.upload_store.acquire_probe_permit(&self.owner).await
    }

    /// The longest recording that is taken.
    pub(crate) fn length_limit(&self) -> Duration {
        self.upload_store.length_limit()
    }

    /// The file's lasting name is up to the upload store from now on.
    pub(crate) fn take_path(&mut self) -> Option<TempPath> {
        self.path.take()
    }

    /// What it counted for, which counts for what is kept from now on.
    pub(crate) fn take_reservation(&mut self) -> u64 {
        std::mem::take(&mut self.size)
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// They do not fit, or the file system's.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), UploadStoreError> {
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

    fn reserve(&mut self, more: u64) -> Result<(), UploadStoreError> {
        self.upload_store.reserve(&self.owner, self.size, more)?;
        self.size += more;
        Ok(())
    }
}

impl Drop for UploadWriter {
    fn drop(&mut self) {
        self.upload_store.free(&self.owner, self.size);
    }
}
