//! `scribed state size`: what takes how much space in the state directory.

use crate::blocking::blocking;
use crate::cli::commands::check_disk::format_size;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::clock::{Clock, SystemClock};
use crate::control::state_size::{FileSpace, KeptFor, StatePart, state_size};
use crate::daemon::embedded_data;
use crate::domain::count::count;
use serde_json::{Value, json};

/// Prints the space of each part.
pub async fn run(context: &Context) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let (state, service) = (config.state.clone(), embedded_data(&config));
    if !state.exists() {
        return Err(CommandError::Usage(format!("there is no state in {}", state.display())));
    }
    let keep = KeptFor { history: config.keep_history, results: config.keep_results };
    let now = SystemClock.now();
    let size = blocking(move || state_size(&state, &service, keep, now)).await?;
    let parts = size
        .parts
        .iter()
        .map(|(part, space)| json!({ "part": part.name(), "bytes": space.bytes, "files": space.files }));
    context.print_json(&json!({
        "state": config.state.to_string_lossy(),
        "bytes": size.total(),
        "parts": parts.collect::<Vec<_>>(),
        "old_history": size.old_history.map(space_json),
        "old_results": size.old_results.map(space_json),
    }))?;
    for (part, space) in &size.parts {
        context.print_line(&format!(
            "{:<33} {:>10}  {}",
            part.name(),
            format_size(space.bytes),
            count(space.files, "file")
        ))?;
    }
    context.print_line(&format!("{:<33} {:>10}", "total", format_size(size.total())))?;
    if let Some(old) = size.old_history.filter(|old| old.files > 0) {
        context.print_line(&format!(
            "The next start removes {} of history ({}): it is older than `keep_history`",
            format_size(old.bytes),
            count(old.files, "month")
        ))?;
    }
    if let Some(old) = size.old_results.filter(|old| old.files > 0) {
        context.print_line(&format!(
            "{} ({}) {} stored longer ago than `keep_results`; scribed removes those that no job needs",
            count(old.files, "kept result"),
            format_size(old.bytes),
            if old.files == 1 { "was" } else { "were" }
        ))?;
    }
    if size.parts.contains_key(&StatePart::SetAside) {
        context.print_line(
            "The queues in damaged-… were set aside by --rebuild: scribed does not use them, and you may delete them",
        )?;
    }
    Ok(0)
}

fn space_json(space: FileSpace) -> Value {
    json!({ "bytes": space.bytes, "files": space.files })
}
