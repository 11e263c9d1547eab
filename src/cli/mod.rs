//! The command line: what a person types, and what they read.
//!
//! `args` is the grammar; `commands/` has one file for each command; `plan/` computes what a pass would send; `top/` shows
//! the queue as it changes; `init/` asks what a new configuration is to have;
//! `runtime/` starts a command, ends it, and gives it access to the queue; `render/` writes to the terminal. Start
//! reading at `runtime/entry.rs`.

pub(crate) mod args;
pub(crate) mod commands;

mod date_argument;
mod init;
mod notify_args;
mod plan;
mod render;
pub(crate) mod runtime;
mod search_args;
mod top;
mod unsupported;
