//! Copies the rows of the queue into a folder that the asking command has made in the state directory: it makes a backup
//! of them, or checks them.

use crate::blocking::blocking;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::CommandRefusal;
use crate::store::contract::{CopiedRows, RowCopyError, StoreError};
use crate::store::snapshot;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

/// The file in that folder.
pub const ROWS: &str = "rows";

/// Copies the rows as they are at one moment. `folder` is the name of a [`snapshot::SnapshotFolder`].
///
/// # Errors
/// [`CommandRefusal::Usage`] for another folder; [`CommandRefusal::Store`] if the disk is full, or the rows cannot be
/// read. The copy is then removed, and everything else goes on.
pub async fn copy_rows(handler: &CommandHandler, folder: &str) -> Result<CopiedRows, CommandRefusal> {
    if !snapshot::is_name(folder) {
        return Err(CommandRefusal::Usage(format!("{folder:?} is not a folder for a copy of the queue")));
    }
    let path = handler.state.join(folder).join(ROWS);
    let store = Arc::clone(&handler.store);
    let copied = blocking(move || {
        let copy = || {
            let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
            let mut file = BufWriter::with_capacity(256 << 10, file);
            let copied = store.copy_rows(&mut file)?;
            file.flush()?;
            Ok(copied)
        };
        copy().map_err(|error: RowCopyError| {
            // It is of no use; the error is what matters.
            let _ = std::fs::remove_file(&path);
            match error {
                RowCopyError::Store(error) => error,
                RowCopyError::Io(error) => StoreError::Unwritable(format!(
                    "cannot write the copy of the queue to {}: {error}. Free space on that disk, then try again; the \
                     queue itself is unchanged",
                    path.display()
                )),
            }
        })
    });
    Ok(copied.await?)
}
