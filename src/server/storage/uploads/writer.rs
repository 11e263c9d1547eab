//! An upload while it arrives: a file without a lasting name, which counts in the upload store.

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

/// An upload that is arriving. When dropped, it leaves nothing behind.
pub struct UploadWriter {
    file: File,
    path: Option<TempPath>,
    /// The bytes that it has reserved in the upload store, until it is stored there.
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

    /// Waits for the permit to probe it.
    pub(crate) async fn acquire_probe_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.upload_store.acquire_probe_permit(&self.owner).await
    }

    /// Returns the longest recording that is accepted.
    pub(crate) fn length_limit(&self) -> Duration {
        self.upload_store.length_limit()
    }

    /// Hands the temporary file to the upload store, which names or removes it.
    pub(crate) fn take_path(&mut self) -> Option<TempPath> {
        self.path.take()
    }

    /// Hands the reserved bytes to the upload store, which counts them from now on.
    pub(crate) fn take_reservation(&mut self) -> u64 {
        std::mem::take(&mut self.size)
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// The bytes do not fit; errors of the file system.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), UploadStoreError> {
        self.reserve(bytes.len() as u64)?;
        Ok(self.file.write_all(bytes).await?)
    }

    /// Makes the bytes durable.
    pub async fn finish(&mut self) -> io::Result<()> {
        self.file.flush().await?;
        self.file.sync_all().await
    }

    /// Returns the path of the temporary file; `None` once the upload is stored.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the number of bytes so far.
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
