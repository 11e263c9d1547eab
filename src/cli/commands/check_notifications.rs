//! The part of `scribed check` that looks at notifications. Nothing is sent: `scribed notify test` does that.

use crate::config::model::{NotifyConfig, TargetKind};
use crate::notifications::send::Sender;
use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};

/// Returns what is found about each target: what it is for, or why it cannot work.
pub fn findings(config: &NotifyConfig) -> Vec<(String, Result<String, String>)> {
    let finding = |target: &crate::config::model::NotifyTarget| {
        let opened = Sender::open(target).map_err(|error| error.words);
        let found = opened.and_then(|_| match &target.kind {
            TargetKind::Run(arguments) => program(arguments.program()),
            kind => Ok(format!("a target with `{}`; `scribed notify test` sends a sample to it", kind.name())),
        });
        (format!("notify {}", target.name()), found)
    };
    config.targets.iter().map(finding).collect()
}

fn program(name: &str) -> Result<String, String> {
    let is_program = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let found = if name.contains('/') {
        Some(PathBuf::from(name)).filter(|path| is_program(path))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path))
    };
    match found {
        Some(path) => Ok(format!("the program {} can be run", path.display())),
        None => Err(format!("there is no program {name:?} that can be run")),
    }
}
