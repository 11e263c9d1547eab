//! Which folder each source had when the configuration was last taken up: a source that has another name since is known
//! again by it.

use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::source::kept;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// In the state directory.
const FILE: &str = "sources.json";

/// What is written down of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFolder {
    /// Its name.
    pub source: SourceName,
    /// Its folder, or the address of its bucket.
    pub folder: RelPath,
}

/// What was written down; nothing where that cannot be read.
pub fn read(state: &Path) -> Vec<SourceFolder> {
    fs::read(state.join(FILE)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Writes it down. Durable when it returns.
///
/// # Errors
/// What the file system says; then it is as before.
pub fn keep(state: &Path, all: &[SourceFolder]) -> io::Result<()> {
    if read(state) == all {
        return Ok(());
    }
    let file = state.join(FILE);
    kept::name(&kept::half(&file, "json-tmp", &all, true)?, &file, true)
}
