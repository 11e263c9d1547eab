//! Small JSON files of the state directory that are replaced whole.

use crate::durable_file::{Durability, FinishedFile, RenamedFile, StagedFile, folder_of};
use crate::permission_errors::explain_state_at;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The file's value. What is not there or cannot be read says nothing. Blocks.
pub fn load<T: DeserializeOwned>(file: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Puts this value into the file. One process at a time. Blocks.
///
/// # Errors
/// What the file system says; then it is as before, or new and whole.
pub fn save(file: &Path, ending: &str, kept: &impl Serialize, durability: Durability) -> io::Result<()> {
    write(file, ending, kept, durability)?.rename(file).and_then(RenamedFile::sync).map_err(explain_state_at(file))
}

/// Writes what is to become `file`: always under the same name, the file's with this ending, so that the next process
/// writes over what a killed one left. Blocks.
///
/// # Errors
/// The error of the file system.
pub fn write(file: &Path, ending: &str, kept: &impl Serialize, durability: Durability) -> io::Result<FinishedFile> {
    let (folder, temporary) = (folder_of(file)?, file.with_extension(ending));
    fs::create_dir_all(folder).map_err(explain_state_at(folder))?;
    let mut staged = StagedFile::create_as(&temporary).map_err(explain_state_at(&temporary))?;
    staged.write_all(&serde_json::to_vec(kept)?)?;
    staged.finish(durability)
}
