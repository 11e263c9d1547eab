//! What this process uses, as the kernel says (`proc_pid_stat`). The names are those that Prometheus' clients use.

use rustix::process::{Resource, getrlimit};
use std::fs;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessValues {
    pub cpu_seconds: Option<f64>,
    pub resident_bytes: Option<f64>,
    pub open_files: Option<f64>,
    /// How many files may be open; `None` if there is no limit.
    pub most_files: Option<f64>,
}

/// Returns what can be read.
pub fn process_values() -> ProcessValues {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program is in brackets and may have spaces.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    let field = |at: usize| fields.get(at)?.parse::<f64>().ok();
    let (ticks, page) = (rustix::param::clock_ticks_per_second() as f64, rustix::param::page_size() as f64);
    let times = field(11).zip(field(12)).map(|(user, system)| (user + system) / ticks);
    let open_files = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
    let most_files = getrlimit(Resource::Nofile).current.map(|files| files as f64);
    ProcessValues { cpu_seconds: times, resident_bytes: field(21).map(|pages| pages * page), open_files, most_files }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let values = process_values();
        assert!(values.resident_bytes.unwrap() > 1e6 && values.open_files.unwrap() > 2.0, "{values:?}");
        assert!(values.cpu_seconds.unwrap() >= 0.0);
    }
}
