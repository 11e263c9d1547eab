//! `scribed upgrade`: first-version parameters and results into second-version ones.

use crate::cli::args::Upgrade;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::terminal;
use crate::wire::upgrade::{self, Upgraded};
use serde_json::{Value, json};
use std::io::{self, Read};
use std::path::Path;

/// Prints what becomes of each file; names on stderr what the second version has no place for.
///
/// # Errors
/// A file that cannot be read, or that is no JSON object.
pub fn run(context: &Context, args: &Upgrade) -> Result<u8, Failure> {
    let stdin = [Path::new("-").to_owned()];
    let files = if args.files.is_empty() { &stdin[..] } else { &args.files };
    for path in files {
        let name = if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() };
        let Upgraded { value, removed } = upgraded(&read(path)?, &name)?;
        if context.common.json {
            context.emit(&json!({ "file": name, "upgraded": value, "removed": removed }))?;
            continue;
        }
        terminal::emit(&value, true)?;
        for field in removed.iter().filter(|_| !context.common.quiet) {
            terminal::complain(&format!("{name}: `{field}` is left out: the second version has no place for it"));
        }
    }
    Ok(0)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if path.as_os_str() != "-" {
        return std::fs::read(path).map_err(|error| {
            Failure::Usage(format!("cannot read {}: {}", path.display(), crate::permission::said(&error, path)))
        });
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn upgraded(bytes: &[u8], name: &str) -> Result<Upgraded, Failure> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| Failure::Usage(format!("{name} is no valid JSON: {error}")))?;
    match &value {
        value if upgrade::is_result(value) => Ok(upgrade::result(value)),
        Value::Object(params) => Ok(upgrade::params(params)),
        _ => Err(Failure::Usage(format!("{name} must hold an object: a set of parameters, or a result"))),
    }
}
