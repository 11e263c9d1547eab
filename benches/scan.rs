//! The scan of a folder beside `find`: 100,000 files in 1,000 folders, or as many as the argument says.
//!
//! `cargo bench --bench scan`. The first scan admits every file into an empty queue; the second one finds
//! nothing new, and a spy on the folders counts the files that are opened meanwhile. `find` only lists and
//! looks at each file (`-size +0`, so that it has to), in the same run and on the same warm cache.

use notify::Watcher;
use scribed::config::reading;
use scribed::daemon::House;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const FOLDERS: usize = 1_000;
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() -> Result<()> {
    let count = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100_000_usize);
    let place = tempfile::tempdir()?;
    fill(&place.path().join("media"), count)?;
    let config = place.path().join("jobs.toml");
    fs::write(&config, "[[source]]\nfolder = \"media\"\n")?;
    let config = reading::load(&config).map_err(|problems| problems.to_string())?;

    let house = House::open(&config, false).await?;
    let first = scan(&house, count as u64, count as u64).await?;
    let (mut again, mut find) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        again = again.min(scan(&house, count as u64, 0).await?);
        find = find.min(found_by_find(&place.path().join("media"), count)?);
    }
    let opened = opened_during(&house, &place.path().join("media"), count as u64).await?;
    house.close().await?;

    let per = |took: Duration| took.as_secs_f64() * 1e6 / count as f64;
    println!("{count} files in {FOLDERS} folders; best of {ROUNDS} where repeated");
    println!("  first scan, all admitted  {first:>8.2?}  {:>6.1} µs a file", per(first));
    println!("  scan without news         {again:>8.2?}  {:>6.1} µs a file; {opened} files opened", per(again));
    println!("  find -type f -size +0     {find:>8.2?}  {:>6.1} µs a file", per(find));
    println!("  peak memory of this process {} MiB", peak_kib()? >> 10);
    Ok(())
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

async fn scan(house: &House, files: u64, admitted: u64) -> Result<Duration> {
    let begun = Instant::now();
    let scans = house.scan().await?;
    let took = begun.elapsed();
    assert_eq!((scans[0].1.files, scans[0].1.admitted), (files, admitted), "{:?}", scans[0].1.troubles);
    Ok(took)
}

fn found_by_find(root: &Path, count: usize) -> Result<Duration> {
    let begun = Instant::now();
    let found = Command::new("find").arg(root).args(["-type", "f", "-size", "+0", "-name", "*.wav"]).output()?;
    let took = begun.elapsed();
    assert_eq!(found.stdout.iter().filter(|byte| **byte == b'\n').count(), count);
    Ok(took)
}

/// How many recordings are opened by a scan without news.
async fn opened_during(house: &House, root: &Path, files: u64) -> Result<u64> {
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
    // One that is opened on purpose: when the spy has seen it, it has seen all before it.
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
