//! A test that starts itself again, as a process of its own.

use std::process::Command;

/// Runs one test of this binary; `module` is its `module_path!()`.
pub fn test_in_child(module: &str, name: &str) -> Command {
    let (_, module) = module.split_once("::").unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("{module}::{name}"), "--nocapture"]);
    command
}
