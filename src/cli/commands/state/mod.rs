//! `scribed state`: commands about the whole state. `transfer.rs` moves a queue as JSON lines, `backup.rs`, `restore.rs`
//! and `check.rs` keep the state safe, `size.rs` says what takes how much space. Start reading at `backup.rs`.

mod backup;
mod check;
mod restore;
mod row_snapshot;
mod size;
mod transfer;

use crate::cli::args::{StateArgs, StateCommand};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use std::path::Path;

/// Carries out one of the commands.
pub async fn run(context: &Context, args: &StateArgs) -> Result<u8, CommandError> {
    let file = match &args.command {
        StateCommand::Export(args) | StateCommand::Import(args) | StateCommand::Restore(args) => Some(&args.file),
        StateCommand::Backup(args) => Some(&args.file),
        StateCommand::Check(args) => args.file.as_ref(),
        StateCommand::Size => None,
    };
    if file.is_some_and(|file| file == Path::new("-")) {
        return Err(no_pipe());
    }
    match &args.command {
        StateCommand::Export(args) => transfer::export(context, args).await,
        StateCommand::Import(args) => transfer::import(context, args).await,
        StateCommand::Backup(args) => backup::run(context, args).await,
        StateCommand::Restore(args) => restore::run(context, args).await,
        StateCommand::Check(args) => check::run(context, args).await,
        StateCommand::Size => size::run(context).await,
    }
}

/// What is written is private and whole, and what is read is read twice: neither is possible with a pipe.
fn no_pipe() -> CommandError {
    let words = "`-` would be standard output or input, which this command does not use: name a file (`./-` for a file \
                 of that name). Nothing was changed";
    CommandError::Usage(words.to_owned())
}

fn is_compressed(file: &Path) -> bool {
    file.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz"))
}
