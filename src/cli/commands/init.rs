//! `scribed init`: writes a commented `jobs.toml` to start from, the folder that it names, and an example with all
//! settings.

use crate::cli::args::Init;
use crate::cli::init::questions::{ask, can_ask};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::config::starter::{example, starter};
use crate::durable_file;
use crate::permission_errors::{chown_to_folder_owner, describe_error};
use serde_json::json;
use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The example with all settings, written beside the configuration: an installed program has no other copy of it.
const EXAMPLE: &str = "jobs.example.toml";

/// The folder that the written configuration names.
const INBOX: &str = "inbox";

const NEXT: &str = "next: `scribed check`, then `scribed once`; `scribed manual` lists the documentation";

/// Writes the file of `--config` and, without `--full`, the inbox and the example beside it. On a terminal it asks what
/// the file is to contain. Never changes anything that exists.
///
/// # Errors
/// [`CommandError::Usage`] if the file of `--config` exists or something cannot be written.
pub async fn run(context: &Context, args: &Init) -> Result<u8, CommandError> {
    let path = &context.common.config;
    if args.full {
        write_new(path, example()).map_err(|error| refused(&error, path))?;
        return print_full(context, path);
    }
    if args.defaults || context.common.json || !can_ask() {
        write_new(path, starter()).map_err(|error| refused(&error, path))?;
        return create_rest(context, path);
    }
    if path.symlink_metadata().is_ok() {
        return Err(refused(&ErrorKind::AlreadyExists.into(), path));
    }
    let Some(text) = ask(path).await? else {
        context.print_line("nothing was written")?;
        return Ok(UNFINISHED);
    };
    write_new(path, &text).map_err(|error| refused(&error, path))?;
    context.print_line(&format!("wrote {}", path.display()))?;
    create_example(context, path)?;
    context.print_line(NEXT)?;
    Ok(0)
}

/// Prints the result of `--full`. The full configuration names folders and services that do not exist here, so nothing
/// else is created.
fn print_full(context: &Context, path: &Path) -> Result<u8, CommandError> {
    context.print_json(&json!({ "written": path }))?;
    context.print_line(&format!("wrote {}: every setting with its default", path.display()))?;
    context.print_line("next: edit the sources and the service, remove what you do not need, then `scribed check`")?;
    Ok(0)
}

fn create_rest(context: &Context, path: &Path) -> Result<u8, CommandError> {
    let (inbox, manual) = (beside(path, INBOX), beside(path, EXAMPLE));
    let created = created_or_exists(DirBuilder::new().create(&inbox), &inbox)?;
    let created_example = created_or_exists(write_new(&manual, example()), &manual)?;
    context.print_json(&json!({ "written": path, "folder": inbox, "example": manual }))?;
    context.print_line(&format!("wrote {}", path.display()))?;
    context.print_line(&format!("  {:<18} {}: put recordings here", inbox.display(), state(created)))?;
    context.print_line(&example_line(&manual, created_example))?;
    context.print_line(NEXT)?;
    Ok(0)
}

fn create_example(context: &Context, path: &Path) -> Result<(), CommandError> {
    let manual = beside(path, EXAMPLE);
    let created = created_or_exists(write_new(&manual, example()), &manual)?;
    Ok(context.print_line(&example_line(&manual, created))?)
}

fn example_line(manual: &Path, is_new: bool) -> String {
    format!("  {:<18} {}: every setting with its default", manual.display(), state(is_new))
}

fn state(is_new: bool) -> &'static str {
    if is_new { "created" } else { "exists already and was not changed" }
}

fn beside(path: &Path, name: &str) -> PathBuf {
    path.parent().map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
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
    // Also where nothing new may be written.
    let exists = path.symlink_metadata().is_ok();
    if exists || !durable_file::create_new_by_umask(path, text.as_bytes())? {
        return Err(ErrorKind::AlreadyExists.into());
    }
    chown_to_folder_owner(path);
    Ok(())
}

/// Returns whether `path` was created; `false` if anything exists there.
fn created_or_exists(created: io::Result<()>, path: &Path) -> Result<bool, CommandError> {
    match created {
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
