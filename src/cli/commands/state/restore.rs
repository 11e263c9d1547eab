//! `scribed state restore`: makes the state directory of a backup.

use crate::blocking::blocking;
use crate::cli::args::StateFileArgs;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::control::backup::{BackupError, RestoreError, restore};
use crate::domain::count::count;
use crate::permission_errors::{root_refusal, typed_command};
use crate::store::contract::StoreError;
use crate::wire::timestamps;
use serde_json::json;
use std::path::Path;

/// Restores a backup.
pub async fn run(context: &Context, args: &StateFileArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    if let Some(words) = root_refusal(&config.state, &typed_command()) {
        return Err(CommandError::Store(StoreError::Unwritable(words)));
    }
    let (file, state) = (args.file.clone(), config.state.clone());
    let restored = blocking(move || restore(&file, &state)).await;
    let (header, report) = restored.map_err(|error| refusal(error, &args.file, &config.state))?;
    let at = context.moment(header.at);
    context.print_json(&json!({
        "restored": args.file.to_string_lossy(), "at": timestamps::format(header.at), "program": header.program, "jobs": header.jobs,
        "purchases": header.purchases, "files": report.files, "bytes": report.bytes, "problems": report.problems,
    }))?;
    context.print_line(&format!(
        "restored {}, {} and {} of {at} into {}",
        count(header.jobs, "job"),
        count(header.purchases, "purchase"),
        count(report.files, "file"),
        config.state.display()
    ))?;
    for problem in &report.problems {
        context.print_line(&format!("  the backup was made of an incomplete state: {problem}"))?;
    }
    context.print_line("Before it buys anything, scribed reads the lists of the services")?;
    Ok(0)
}

fn refusal(error: RestoreError, file: &Path, state: &Path) -> CommandError {
    match error {
        RestoreError::Backup(BackupError::Io(error)) => {
            CommandError::Usage(format!("cannot read {}: {error}; nothing was changed", file.display()))
        }
        RestoreError::Backup(error) => {
            CommandError::Usage(format!("cannot restore {}: {error}. Nothing was changed", file.display()))
        }
        RestoreError::NotEmpty => {
            let state = state.display();
            CommandError::Declined(format!(
                "the state directory {state} is not empty: a backup is restored into an empty or absent one. Nothing \
                 was changed. Stop scribed and move the old one away (`mv {state} {state}.before`; where only its \
                 content can be moved, move all of that), or set another directory ([state] store)"
            ))
        }
        RestoreError::Store(error) => error.into(),
        RestoreError::Unwritable { .. } => CommandError::Store(StoreError::Unwritable(format!(
            "{error}. What was restored is removed again: free space on that disk, or check its permissions, then \
             restore again"
        ))),
    }
}
