//! Small files of the state directory that are put whole or not at all: written under another name, then named.

use crate::permission::at_state;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file's value. What is not there or cannot be read says nothing. Blocks.
pub fn load<T: DeserializeOwned>(file: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Puts this value into the file: [`half`] under this ending, then [`name`]. One process at a time. Blocks.
///
/// # Errors
/// What the file system says; then it is as before, or new and whole.
pub fn put(file: &Path, ending: &str, kept: &impl Serialize, is_durable: bool) -> io::Result<()> {
    name(&half(file, ending, kept, is_durable)?, file, is_durable)
}

/// Writes what is to become `file`, and says where: always under the same name, so that what a killed process
/// left of it is written over by the next one. Only the owner may read it. Blocks.
///
/// # Errors
/// What the file system says.
pub fn half(file: &Path, ending: &str, kept: &impl Serialize, is_durable: bool) -> io::Result<PathBuf> {
    fs::create_dir_all(folder(file)).map_err(at_state(folder(file)))?;
    let half = file.with_extension(ending);
    let open = File::options().write(true).create(true).truncate(true).mode(0o600).open(&half);
    let mut open = open.map_err(at_state(&half))?;
    open.write_all(&serde_json::to_vec(kept)?)?;
    if is_durable {
        open.sync_all()?;
    }
    Ok(half)
}

/// Gives it its name. Blocks.
///
/// # Errors
/// What the file system says.
pub fn name(half: &Path, file: &Path, is_durable: bool) -> io::Result<()> {
    fs::rename(half, file).map_err(at_state(file))?;
    if is_durable { File::open(folder(file))?.sync_all() } else { Ok(()) }
}

fn folder(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("."))
}
