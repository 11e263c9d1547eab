//! Small JSON files of the state directory that are replaced whole.

use crate::durable_file::{Durability, FinishedFile, RenamedFile, StagedFile, folder_of};
use crate::permission_errors::explain_state_at;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Reads the file's value; `None` if it is missing or damaged. Blocks.
pub fn load<T: DeserializeOwned>(file: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Replaces the file's value. Only one process may do so at a time. Blocks.
///
/// # Errors
/// The error of the file system; then the file has the old or the new value, complete.
pub fn save(file: &Path, ending: &str, kept: &impl Serialize, durability: Durability) -> io::Result<()> {
    write(file, ending, kept, durability)?.rename(file).and_then(RenamedFile::sync).map_err(explain_state_at(file))
}

/// Writes the new content of `file` under a temporary name, the file's with the extension `ending`. The name is always
/// the same, so that the next process overwrites what a killed one left. Blocks.
pub fn write(file: &Path, ending: &str, kept: &impl Serialize, durability: Durability) -> io::Result<FinishedFile> {
    let (folder, temporary) = (folder_of(file)?, file.with_extension(ending));
    fs::create_dir_all(folder).map_err(explain_state_at(folder))?;
    let mut staged = StagedFile::create_as(&temporary).map_err(explain_state_at(&temporary))?;
    staged.write_all(&serde_json::to_vec(kept)?)?;
    staged.finish(durability)
}
