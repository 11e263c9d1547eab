//! Runs a test of this binary as a separate process.

use std::process::Command;

/// Returns a command that runs one test of this binary; `module` is its `module_path!()`.
pub fn test_in_child(module: &str, name: &str) -> Command {
    let (_, module) = module.split_once("::").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("{module}::{name}"), "--nocapture"]);
    command
}
