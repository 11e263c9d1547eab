//! Measures what an idle daemon costs: 100,000 known files, `scribed run`, 30 seconds.
//!
//! `cargo bench --bench idle`, or with the number of files. The files are empty, so that every job has ended (skipped)
//! without a service.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const WATCHED: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    let count = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100_000_usize);
    let place = tempfile::tempdir()?;
    for n in 0..count {
        let folder = place.path().join(format!("media/{}", n % 1_000));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("{n}.wav")), b"")?;
    }
    fs::write(place.path().join("jobs.toml"), "[[source]]\nfolder = \"media\"\nsettle = \"1ms\"\n")?;
    let begun = Instant::now();
    assert!(scribed(place.path(), "once").status()?.success());
    println!("{count} files found and ended by `once` in {:.1?}", begun.elapsed());

    let begun = Instant::now();
    let daemon = Daemon(scribed(place.path(), "run").spawn()?);
    let pid = daemon.0.id();
    let started = settled(pid)?;
    println!("  `run` has opened them, looked through the folder and come to rest after {started:.1?}");
    let before = Spent::of(pid)?;
    std::thread::sleep(WATCHED);
    let after = Spent::of(pid)?;
    let seconds = WATCHED.as_secs_f64();
    println!(
        "  in {seconds:.0} s: {:.2} processor seconds, {:.1} context switches a second, {} threads",
        (after.ticks - before.ticks) as f64 / 100.0,
        after.switches_since(&before) as f64 / seconds,
        after.switches.len()
    );
    println!("  memory {} MiB, at its peak {} MiB", kib(pid, "VmRSS:")? >> 10, kib(pid, "VmHWM:")? >> 10);
    drop(daemon);
    println!("  in all {:.0?}", begun.elapsed());
    Ok(())
}

fn scribed(place: &Path, what: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scribed"));
    command.args([what, "-q", "--config"]).arg(place.join("jobs.toml"));
    command
}

struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Waits until the process has used processor time, and then none for two seconds.
fn settled(pid: u32) -> Result<Duration> {
    let begun = Instant::now();
    let (mut last, mut since) = (0, begun);
    while last == 0 || since.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(100));
        let ticks = Spent::of(pid)?.ticks;
        if ticks > last {
            (last, since) = (ticks, Instant::now());
        }
    }
    Ok(since - begun)
}

/// The resources that all threads of a process have used.
struct Spent {
    /// Processor time in ticks of 10 ms.
    ticks: u64,
    /// Context switches by thread.
    switches: BTreeMap<OsString, u64>,
}

impl Spent {
    fn of(pid: u32) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        let mut switches = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let task = task?;
            let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let counted = status.lines().filter(|line| line.contains("ctxt_switches:"));
            let counted = counted.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
            switches.insert(task.file_name(), counted.sum());
        }
        Ok(Self { ticks, switches })
    }

    /// Returns the context switches since `before` of the threads that still exist.
    fn switches_since(&self, before: &Self) -> u64 {
        let earlier = |thread: &OsString| before.switches.get(thread).copied().unwrap_or(0);
        self.switches.iter().map(|(thread, now)| now.saturating_sub(earlier(thread))).sum()
    }
}

fn kib(pid: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
    Ok(line.split_whitespace().next().ok_or("no number")?.parse()?)
}
