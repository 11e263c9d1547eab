//! Copying: for backups.

use super::StoreError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What a copy of the rows holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedRows {
    /// The format of the rows.
    pub format: u8,
    pub jobs: u64,
    pub purchases: u64,
    /// How long each file of the history was at the moment of the copy. What was appended later is not about these
    /// rows.
    pub history: BTreeMap<String, u64>,
}

/// Why rows could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum RowCopyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rows cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Copies of all rows.
pub trait Backups: Send + Sync {
    /// Writes all rows as they are at one moment, as `store/row_file.rs` says. Others read and change rows meanwhile;
    /// nobody waits longer than for some hundred rows. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Locked`] while another copy is made.
    fn copy_rows(&self, to: &mut dyn Write) -> Result<CopiedRows, RowCopyError>;
}
