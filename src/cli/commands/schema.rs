//! `scribed schema`, `completions` and `man`: descriptions of this program for other programs.

use crate::cli::args::{Arguments, CompletionsArgs, ManArgs};
use crate::cli::render::terminal;
use crate::cli::runtime::exit::CommandError;
use crate::config::load::schema::schema;
use crate::permission_errors::at;
use clap::CommandFactory;

/// Prints the JSON Schema of `jobs.toml`.
pub fn config_schema() -> Result<u8, CommandError> {
    terminal::print_json(&schema(), true)?;
    Ok(0)
}

/// Prints the completions for a shell.
pub fn completions(args: &CompletionsArgs) -> Result<u8, CommandError> {
    // The text is generated in memory, since the generator panics if stdout is closed early.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "scribed", &mut text);
    terminal::write_raw(&text)?;
    Ok(0)
}

/// Prints the manual page, or writes one page for each command into a folder.
///
/// # Errors
/// Errors of stdout or of the folder.
pub fn man(args: &ManArgs) -> Result<u8, CommandError> {
    match &args.to {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(at(folder))?;
            clap_mangen::generate_to(Arguments::command(), folder).map_err(at(folder))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
            terminal::write_raw(&page)?;
        }
    }
    Ok(0)
}
