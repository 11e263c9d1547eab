//! Records which folder each source had when the configuration was last loaded, so that a renamed source is recognised
//! by its folder.

use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::durable_file::Durability;
use crate::permission_errors::explain_state_at;
use crate::source::saved_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// The file in the state directory.
const FILE: &str = "sources.json";

/// The recorded folder of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFolder {
    pub source: SourceName,
    /// Its folder, or the address of its bucket.
    pub folder: RelPath,
}

/// Reads the records; none if the file is damaged.
///
/// # Errors
/// The file cannot be read.
pub fn read(state: &Path) -> io::Result<Vec<RecordedFolder>> {
    let file = state.join(FILE);
    match fs::read(&file) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(explain_state_at(&file)(error)),
    }
}

/// Writes the records if they changed. Durable when it returns.
///
/// # Errors
/// The error of the file system; then the old records remain.
pub fn save(state: &Path, all: &[RecordedFolder]) -> io::Result<()> {
    if read(state)? == all {
        return Ok(());
    }
    saved_file::save(&state.join(FILE), "json-tmp", &all, Durability::Synced)
}
