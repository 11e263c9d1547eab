//! `scribed init`: a commented `jobs.toml` to start from, the folder that it names, and the manual of all settings.

use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::config::starter::{example, starter};
use crate::permission::{give_to_owner_of_folder, said};
use serde_json::json;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The manual of all settings, beside the configuration: an installed program has no other copy of it.
const EXAMPLE: &str = "jobs.example.toml";

/// The folder that the written configuration names.
const INBOX: &str = "inbox";

/// Writes the file of `--config`, unless something is there. What else it makes is made only where nothing is there.
///
/// # Errors
/// [`Failure::Usage`] where something is there.
pub fn run(context: &Context) -> Result<u8, Failure> {
    let path = &context.common.config;
    let refused = |error: io::Error| {
        let shown = path.display();
        Failure::Usage(match error.kind() {
            ErrorKind::AlreadyExists => format!("{shown} is there already and is left as it is; nothing was changed"),
            ErrorKind::NotFound => {
                let folder = path.parent().unwrap_or(Path::new("")).display();
                format!("cannot write {shown}: there is no folder {folder}. Create it: mkdir -p {folder}")
            }
            _ => format!("cannot write {shown}: {}", said(&error, path)),
        })
    };
    write_new(path, starter()).map_err(refused)?;
    let beside = |name: &str| path.parent().map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
    let (inbox, manual) = (beside(INBOX), beside(EXAMPLE));
    let made = made_or_there(DirBuilder::new().create(&inbox), &inbox)?;
    let has_manual = made_or_there(write_new(&manual, example()), &manual)?;
    context.emit(&json!({ "written": path, "folder": inbox, "example": manual }))?;
    let words = |is_new: bool| if is_new { "created" } else { "is there already, and is left as it is" };
    context.say(&format!("wrote {}", path.display()))?;
    context.say(&format!("  {:<18} {}: put recordings here", inbox.display(), words(made)))?;
    context.say(&format!("  {:<18} {}: every setting with its default", manual.display(), words(has_manual)))?;
    context.say("next: `scribed check`, then `scribed once`")?;
    Ok(0)
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    give_to_owner_of_folder(path);
    Ok(())
}

/// Whether it was made; `false` where something is there, whatever that is.
fn made_or_there(made: io::Result<()>, path: &Path) -> Result<bool, Failure> {
    match made {
        Ok(()) => {
            give_to_owner_of_folder(path);
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Failure::Usage(format!("cannot create {}: {}", path.display(), said(&error, path)))),
    }
}
