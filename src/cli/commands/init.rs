//! `scribed init`: a commented `jobs.toml` to start from, the folder that it names, and the manual of all settings.

use crate::cli::args::Init;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::config::starter::{example, starter};
use crate::permission_errors::{chown_to_folder_owner, describe_error};
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
/// [`CommandError::Usage`] where something is there.
pub fn run(context: &Context, args: &Init) -> Result<u8, CommandError> {
    let path = &context.common.config;
    write_new(path, if args.full { example() } else { starter() }).map_err(|error| refused(&error, path))?;
    match args.full {
        true => tell_full(context, path),
        false => make_rest(context, path),
    }
}

/// A whole configuration names folders and services that are not here: nothing is made for it.
fn tell_full(context: &Context, path: &Path) -> Result<u8, CommandError> {
    context.print_json(&json!({ "written": path }))?;
    context.print_line(&format!("wrote {}: every setting with its default", path.display()))?;
    context.print_line("next: edit the sources and the service, remove what you do not need, then `scribed check`")?;
    Ok(0)
}

fn make_rest(context: &Context, path: &Path) -> Result<u8, CommandError> {
    let beside = |name: &str| path.parent().map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
    let (inbox, manual) = (beside(INBOX), beside(EXAMPLE));
    let made = made_or_there(DirBuilder::new().create(&inbox), &inbox)?;
    let has_manual = made_or_there(write_new(&manual, example()), &manual)?;
    context.print_json(&json!({ "written": path, "folder": inbox, "example": manual }))?;
    let words = |is_new: bool| if is_new { "created" } else { "exists already and was not changed" };
    context.print_line(&format!("wrote {}", path.display()))?;
    context.print_line(&format!("  {:<18} {}: put recordings here", inbox.display(), words(made)))?;
    context.print_line(&format!("  {:<18} {}: every setting with its default", manual.display(), words(has_manual)))?;
    context.print_line("next: `scribed check`, then `scribed once`; `scribed manual` lists the documentation")?;
    Ok(0)
}

fn refused(error: &io::Error, path: &Path) -> CommandError {
    let shown = path.display();
    CommandError::Usage(match error.kind() {
        ErrorKind::AlreadyExists => format!("{shown} exists already; nothing was changed"),
        ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("")).display();
            format!("cannot write {shown}: the folder {folder} does not exist. Create it: mkdir -p {folder}")
        }
        _ => format!("cannot write {shown}: {}", describe_error(error, path)),
    })
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    chown_to_folder_owner(path);
    Ok(())
}

/// Whether it was made; `false` where something is there, whatever that is.
fn made_or_there(made: io::Result<()>, path: &Path) -> Result<bool, CommandError> {
    match made {
        Ok(()) => {
            chown_to_folder_owner(path);
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => {
            Err(CommandError::Usage(format!("cannot create {}: {}", path.display(), describe_error(&error, path))))
        }
    }
}
