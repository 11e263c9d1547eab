//! `scribed upgrade`: converts parameters and results of the interface's first version into the second.

use crate::cli::args::UpgradeArgs;
use crate::cli::render::terminal;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::wire::v1_params;
use crate::wire::v1_params::Upgraded;
use serde_json::{Value, json};
use std::io::{self, Read};
use std::path::Path;

/// Prints each converted file. Names on stderr the parameters that the second version does not have.
///
/// # Errors
/// [`CommandError::Usage`] for a file that cannot be read or is not a JSON object; errors of standard input and stdout.
pub fn run(context: &Context, args: &UpgradeArgs) -> Result<u8, CommandError> {
    let stdin = [Path::new("-").to_owned()];
    let files = if args.files.is_empty() { &stdin[..] } else { &args.files };
    for path in files {
        let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
        let Upgraded { value, removed } = upgrade(&read(path)?, &name)?;
        if context.common.json {
            context.print_json(&json!({ "file": name, "upgraded": value, "removed": removed }))?;
            continue;
        }
        terminal::print_json(&value, true)?;
        for field in removed.iter().filter(|_| !context.common.quiet) {
            terminal::print_error_line(&format!(
                "{name}: `{field}` is left out: the second version has no such parameter"
            ));
        }
    }
    Ok(0)
}

fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    if path.as_os_str() != "-" {
        return std::fs::read(path).map_err(|error| {
            CommandError::Usage(format!(
                "cannot read {}: {}",
                path.display(),
                crate::permission_errors::describe_error(&error, path)
            ))
        });
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn upgrade(bytes: &[u8], name: &str) -> Result<Upgraded, CommandError> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| CommandError::Usage(format!("{name} is not valid JSON: {error}")))?;
    match &value {
        value if v1_params::is_result(value) => Ok(v1_params::upgrade_result(value)),
        Value::Object(params) => Ok(v1_params::upgrade_params(params)),
        _ => Err(CommandError::Usage(format!("{name} must contain an object: a set of parameters, or a result"))),
    }
}
