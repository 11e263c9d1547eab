//! The rows of the queue as of one moment, for a backup or a check: from the daemon if one runs, which goes on meanwhile,
//! else from the queue itself.

use crate::blocking::blocking;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch};
use crate::config::model::Config;
use crate::control::commands::copy_rows::ROWS;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest};
use crate::store::contract::{CopiedRows, StoreError};
use crate::store::snapshot::{self, SnapshotFolder};
use std::fs::File;
use std::path::PathBuf;

/// A copy of the rows. It is removed when this is dropped.
pub struct RowSnapshot {
    pub rows: File,
    pub path: PathBuf,
    pub copied: CopiedRows,
    _folder: SnapshotFolder,
}

/// Copies the rows; `None` if there is no queue. When it returns, other commands and daemons may use the queue.
///
/// # Errors
/// See [`CommandError`].
pub async fn copy_rows(config: &Config) -> Result<Option<RowSnapshot>, CommandError> {
    if !config.state.join("queue/db").exists() {
        return Ok(None);
    }
    let queue = QueueAccess::find(config).await?;
    let state = config.state.clone();
    let made = blocking(move || {
        // What interrupted backups left.
        snapshot::sweep(&state);
        SnapshotFolder::within(&state)
    });
    let folder = made.await.map_err(|error| unwritable(config, &error))?;
    let request = ControlRequest::CopyRows { folder: folder.name() };
    let ControlAnswer::RowsCopied(copied) = queue.request(request).await? else { return Err(protocol_mismatch()) };
    drop(queue);
    let path = folder.path().join(ROWS);
    let rows = File::open(&path).map_err(|error| unwritable(config, &error))?;
    Ok(Some(RowSnapshot { rows, path, copied, _folder: folder }))
}

fn unwritable(config: &Config, error: &std::io::Error) -> CommandError {
    CommandError::Store(StoreError::Unwritable(format!(
        "cannot copy the queue within {}: {error}; the queue is unchanged",
        config.state.display()
    )))
}
