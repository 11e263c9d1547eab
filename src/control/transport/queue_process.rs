//! Names the process that has the queue and does not answer, for messages: it cannot name itself.

use crate::store::process_lock::holder;
use std::fmt;
use std::fs;
use std::path::Path;

/// The process that has the queue, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueProcess {
    pid: Option<u32>,
    kind: Option<ProcessKind>,
    is_stopped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessKind {
    Daemon,
    Pass,
}

impl QueueProcess {
    /// Finds out which process has the queue of a state directory. Its arguments tell what it does; only Linux shows
    /// them.
    pub fn of(state: &Path) -> Self {
        let Some(pid) = holder(state) else { return Self::default() };
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        Self { pid: Some(pid), kind: kind(&read("cmdline")), is_stopped: is_stopped(&read("stat")) }
    }

    /// Says what to do if it does not answer.
    pub fn remedy(&self) -> String {
        match (self.pid, self.is_stopped) {
            (Some(pid), true) => format!("the process is stopped: `kill -CONT {pid}` lets it continue"),
            (Some(pid), false) => {
                let again = match self.kind {
                    Some(ProcessKind::Pass) => "the next `scribed once` continues",
                    Some(ProcessKind::Daemon) => "start it again",
                    None => "start it again, or wait for the next `scribed once`",
                };
                format!("read its log; if it hangs, end it with `kill -9 {pid}`: nothing is lost, and {again}")
            }
            (None, _) => "read its log; if it hangs, end it: nothing is lost".to_owned(),
        }
    }
}

/// `a pass of `scribed once`, process 12`, `the daemon, process 12` or `the scribed process 12`.
impl fmt::Display for QueueProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Some(ProcessKind::Daemon) => "the daemon, process",
            Some(ProcessKind::Pass) => "a pass of `scribed once`, process",
            None => "the scribed process",
        };
        match self.pid {
            Some(pid) => write!(f, "{kind} {pid}"),
            None => f.write_str("the scribed process"),
        }
    }
}

/// Reads what a process does from its arguments, which end with a NUL each.
fn kind(arguments: &[u8]) -> Option<ProcessKind> {
    arguments.split(|byte| *byte == 0).skip(1).find_map(|argument| match argument {
        b"run" => Some(ProcessKind::Daemon),
        b"once" => Some(ProcessKind::Pass),
        _ => None,
    })
}

/// Reads from `/proc/PID/stat` whether a process is stopped. The name before the state may contain brackets.
fn is_stopped(stat: &[u8]) -> bool {
    let stat = String::from_utf8_lossy(stat);
    stat.rsplit(") ").next().is_some_and(|state| state.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_tell_a_pass_from_a_daemon() {
        let said =
            |arguments: &[u8]| QueueProcess { pid: Some(7), kind: kind(arguments), is_stopped: false }.to_string();
        assert_eq!(said(b"scribed\0--config\0a.toml\0once\0-q\0"), "a pass of `scribed once`, process 7");
        assert_eq!(said(b"/usr/bin/scribed\0run\0"), "the daemon, process 7");
        assert_eq!(said(b""), "the scribed process 7");
        assert_eq!(QueueProcess::default().to_string(), "the scribed process");
        assert!(is_stopped(b"7 (a) b) T 1 2") && !is_stopped(b"7 (scribed) S 1 2") && !is_stopped(b""));
    }
}
