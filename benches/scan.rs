//! Compares a folder's scan with `find`: 100,000 files in 1,000 folders, or as many files as the argument says.
//!
//! `cargo bench --bench scan -- 1000000`. Uses the temporary directory (`TMPDIR`), with a warm cache. `find` prints
//! what a scan has to know of each file (size, times, number, path). Each figure comes from a separate process, so that
//! its peak memory is its own. Wall time and processor time (of all its threads) are both printed, because other work
//! on the machine disturbs only the first:
//!
//! - `walk`: the folder is looked through, nothing is admitted;
//! - `first`: every file is admitted into an empty queue, and all of it is durable;
//! - `again`: the queue is opened, the folder looked through, and nothing is new; a spy on the folders counts
//!   the recordings that are opened meanwhile.

use notify::Watcher;
use scribed::testing::config::load::read;
use scribed::testing::daemon::Daemon;
use scribed::testing::source::mount::disk::Disk;
use scribed::testing::source::scan::traverse::{TraverseTarget, TraversedItem, traverse};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const FOLDERS: usize = 1_000;
const ROUNDS: usize = 3;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let runtime = tokio::runtime::Runtime::new()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--phase", phase, place, count] => runtime.block_on(child(phase, Path::new(place), count.parse()?)),
        _ => compare(arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(100_000)),
    }
}

fn compare(count: usize) -> Result<()> {
    let place = tempfile::tempdir()?;
    fill(&place.path().join("media"), count)?;
    fs::write(place.path().join("jobs.toml"), "[[source]]\nfolder = \"media\"\n")?;
    println!("{count} files in {FOLDERS} folders, warm cache; best of {ROUNDS} where repeated");
    println!("                  wall  processor   µs a file  peak memory");
    found_by_find(place.path(), count)?;
    let mut find = Cost::WORST;
    let mut walk = Cost::WORST;
    for _ in 0..ROUNDS {
        find = find.min(found_by_find(place.path(), count)?);
        walk = walk.min(phase("walk", place.path(), count)?[0]);
    }
    find.print("find -printf", count);
    walk.print("walk", count);
    let first = phase("first", place.path(), count)?;
    first[0].print("first", count);
    let mut again = Cost::WORST;
    let mut opened = Cost::WORST;
    for _ in 0..ROUNDS {
        find = find.min(found_by_find(place.path(), count)?);
        let costs = phase("again", place.path(), count)?;
        opened = opened.min(costs[0]);
        again = again.min(costs[1]);
    }
    opened.print("queue opened", count);
    again.print("again", count);
    find.print("find -printf", count);
    let spied = phase("spied", place.path(), count)?;
    println!("  recordings opened by a scan without news: {}", spied[0].opened);
    println!("  admitted: {:.0} files a second", count as f64 / first[0].wall.as_secs_f64());
    println!(
        "  of find's wall time (wanted: at most 1.3): walk {:.2}, again {:.2}; of its processor time: {:.2}, {:.2}",
        ratio(walk.wall, find.wall),
        ratio(again.wall, find.wall),
        ratio(walk.processor, find.processor),
        ratio(again.processor, find.processor)
    );
    Ok(())
}

fn ratio(ours: Duration, theirs: Duration) -> f64 {
    ours.as_secs_f64() / theirs.as_secs_f64()
}

/// What a phase cost.
#[derive(Clone, Copy)]
struct Cost {
    wall: Duration,
    /// The user and system time of all threads.
    processor: Duration,
    peak_kib: u64,
    opened: u64,
}

impl Cost {
    const WORST: Self = Self { wall: Duration::MAX, processor: Duration::MAX, peak_kib: 0, opened: 0 };

    fn min(self, other: Self) -> Self {
        Self {
            wall: self.wall.min(other.wall),
            processor: self.processor.min(other.processor),
            peak_kib: self.peak_kib.max(other.peak_kib),
            opened: self.opened.max(other.opened),
        }
    }

    fn print(&self, name: &str, count: usize) {
        let per = self.processor.as_secs_f64() * 1e6 / count as f64;
        let (wall, processor) = (self.wall.as_secs_f64(), self.processor.as_secs_f64());
        println!("  {name:<12} {wall:>7.2} s  {processor:>7.2} s  {per:>8.2}  {:>7} MiB", self.peak_kib >> 10);
    }
}

/// Runs one phase in a separate process, which prints its costs.
fn phase(name: &str, place: &Path, count: usize) -> Result<Vec<Cost>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--phase", name]).arg(place).arg(count.to_string()).stdout(Stdio::piped());
    let output = command.spawn()?.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{name} failed: {}", output.status).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let costs = text.lines().map(|line| {
        let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<std::result::Result<_, _>>()?;
        let nanos = Duration::from_nanos;
        Ok(Cost { wall: nanos(numbers[0]), processor: nanos(numbers[1]), peak_kib: numbers[2], opened: numbers[3] })
    });
    costs.collect()
}

async fn child(phase: &str, place: &Path, count: usize) -> Result<()> {
    let config = read::load(&place.join("jobs.toml")).map_err(|problems| problems.to_string())?;
    let files = count as u64;
    let mut meter = Meter::start()?;
    if phase == "walk" {
        let (source, disk) = (Arc::new(config.sources[0].clone()), Disk::detect(&config.sources[0].folder)?);
        let (to, mut found) = tokio::sync::mpsc::channel(4);
        let whole = TraverseTarget::Whole { behind: None };
        let walker = tokio::task::spawn_blocking(move || traverse(&source, &disk.into(), &whole, None, &to));
        let mut seen = 0;
        while let Some(portion) = found.recv().await {
            seen += portion.iter().filter(|seen| matches!(seen, TraversedItem::File(..))).count();
        }
        walker.await?;
        assert_eq!(seen, count);
        meter.say(0)?;
        return Ok(());
    }
    let house = Daemon::open(&config, false).await?;
    if phase == "again" {
        meter.say(0)?;
    }
    let admitted = if phase == "first" { files } else { 0 };
    if phase == "spied" {
        let opened = opened_during(&house, &place.join("media"), files).await?;
        meter.say(opened)?;
    } else {
        scan(&house, files, admitted).await?;
        house.store.flush().await?;
        meter.say(0)?;
    }
    Ok(house.close().await?)
}

/// Measures the wall and processor time since it last reported.
struct Meter {
    at: Instant,
    ticks: u64,
}

impl Meter {
    fn start() -> Result<Self> {
        Ok(Self { at: Instant::now(), ticks: ticks(13)? })
    }

    fn say(&mut self, opened: u64) -> Result<()> {
        let (wall, ticks) = (self.at.elapsed(), ticks(13)?);
        println!("{} {} {} {opened}", wall.as_nanos(), (ticks - self.ticks) * 10_000_000, peak_kib()?);
        *self = Self { at: Instant::now(), ticks };
        Ok(())
    }
}

/// Returns the user and system time of this process (13), or of its ended children (15), in hundredths of a second.
fn ticks(field: usize) -> Result<u64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    Ok(fields[field - 2].parse::<u64>()? + fields[field - 1].parse::<u64>()?)
}

fn fill(root: &Path, count: usize) -> Result<()> {
    for folder in 0..FOLDERS.min(count) {
        fs::create_dir_all(root.join(format!("{}/{folder}", folder / 100)))?;
    }
    for n in 0..count {
        let folder = n % FOLDERS;
        fs::write(root.join(format!("{}/{folder}/recording {n}.wav", folder / 100)), b"x")?;
    }
    Ok(())
}

async fn scan(house: &Daemon, files: u64, admitted: u64) -> Result<()> {
    let scans = house.scan().await?;
    assert_eq!((scans[0].1.files, scans[0].1.admitted), (files, admitted), "{:?}", scans[0].1.problems);
    Ok(())
}

/// Runs `find` with the fields that a scan reads.
fn found_by_find(place: &Path, count: usize) -> Result<Cost> {
    let (begun, before) = (Instant::now(), ticks(15)?);
    let mut find = Command::new("find");
    find.arg(place.join("media")).args(["-type", "f", "-name", "*.wav", "-printf", "%s %T@ %C@ %i %P\\n"]);
    let found = find.output()?;
    let wall = begun.elapsed();
    assert_eq!(found.stdout.iter().filter(|byte| **byte == b'\n').count(), count);
    let processor = Duration::from_millis((ticks(15)? - before) * 10);
    Ok(Cost { wall, processor, peak_kib: 0, opened: 0 })
}

/// Returns how many recordings a scan without news opens.
async fn opened_during(house: &Daemon, root: &Path, files: u64) -> Result<u64> {
    let opened = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&opened);
    let mut spy = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let is_open = matches!(event.kind, notify::EventKind::Access(notify::event::AccessKind::Open(_)));
        if is_open && event.paths.iter().any(|path| path.extension().is_some_and(|end| end == "wav")) {
            told.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    spy.watch(root, notify::RecursiveMode::Recursive)?;
    scan(house, files, 0).await?;
    // Open one recording on purpose: when the spy has seen it, it has seen all earlier ones.
    let before = opened.load(Ordering::Relaxed);
    drop(fs::File::open(root.join("0/0/recording 0.wav"))?);
    while opened.load(Ordering::Relaxed) == before {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(opened.load(Ordering::Relaxed) - 1)
}

fn peak_kib() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.split_whitespace().next().ok_or("no number")?.parse()?)
}
