//! Small files of the state directory that tell a later command what a process knew.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Write};
use std::path::Path;

/// The value in this file of the state directory. What is not there or cannot be read says nothing.
pub fn read<T: DeserializeOwned>(state: &Path, name: &str) -> Option<T> {
    serde_json::from_slice(&std::fs::read(state.join(name)).ok()?).ok()
}

/// Writes it, whole or not at all.
///
/// # Errors
/// The system's.
pub fn write<T: Serialize>(state: &Path, name: &str, value: &T) -> io::Result<()> {
    let mut half = tempfile::NamedTempFile::new_in(state)?;
    half.write_all(&serde_json::to_vec(value)?)?;
    half.persist(state.join(name)).map_err(|error| error.error)?;
    Ok(())
}
