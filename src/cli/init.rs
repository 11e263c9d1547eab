//! `scribed init`: a commented `jobs.toml` to start from.

use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::config::starter::starter;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

/// Writes the file of `--config`, unless something is there.
///
/// # Errors
/// [`Failure::Usage`] where something is there.
pub fn run(context: &Context) -> Result<u8, Failure> {
    let path = &context.common.config;
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
        let path = path.display();
        match error.kind() {
            ErrorKind::AlreadyExists => Failure::Usage(format!("{path} is there already and is left as it is")),
            _ => Failure::Usage(format!("cannot write {path}: {error}")),
        }
    })?;
    file.write_all(starter().as_bytes())?;
    file.sync_all()?;
    context.emit(&json!({"written": path}))?;
    context.say(&format!("wrote {}; every setting is explained in jobs.example.toml", path.display()))?;
    Ok(0)
}
