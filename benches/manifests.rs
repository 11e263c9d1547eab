//! Measures a manifest of 100,000 rows: the time to plan it, to read it and to write its receipt, and the memory.
//!
//! `cargo bench --bench manifests`, or with the number of rows. A tenth of the files exist and are empty, so that their
//! jobs have ended (skipped) without a service; a tenth of the rows are invalid; the rest is awaited. The same is
//! measured with a hundredth of the rows, to show what grows with them: the queue's index (about 150 bytes a job).

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let rows = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100_000_usize);
    for rows in [rows / 100, rows] {
        one(rows)?;
    }
    Ok(())
}

fn one(rows: usize) -> Result<()> {
    let place = tempfile::tempdir()?;
    fs::create_dir(place.path().join("lists"))?;
    let list = place.path().join("lists/all.csv");
    let mut out = BufWriter::new(fs::File::create(&list)?);
    writeln!(out, "file,language,shelf mark,note")?;
    for n in 0..rows {
        let language = if n % 10 == 1 { "klingon" } else { "en" };
        writeln!(out, "{n:07}.wav,{language},AB {n},\"a note; of some length, as people write them\"")?;
        if n % 10 == 0 {
            fs::write(place.path().join(format!("lists/{n:07}.wav")), b"")?;
        }
    }
    drop(out.into_inner()?);
    fs::write(place.path().join("jobs.toml"), "[[source]]\nmanifest = \"lists/*.csv\"\nsettle = \"1ms\"\n")?;
    for (what, command) in [("a plan", "plan"), ("first pass", "once"), ("second pass", "once"), ("a plan", "plan")] {
        let begun = Instant::now();
        let peak = peak_of(place.path(), command)?;
        let took = begun.elapsed();
        println!("{rows:>8} rows, {what}: {took:>8.1?}, {peak} MiB at the peak");
    }
    let lines = BufReader::new(fs::File::open(place.path().join("lists/all.csv.receipt.csv"))?).lines().count();
    assert_eq!(lines, rows + 1, "every row comes back");
    Ok(())
}

/// Runs a command to its end and returns its peak memory in MiB.
fn peak_of(place: &Path, what: &str) -> Result<u64> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scribed"));
    let mut child = command.args([what, "-q", "--config"]).arg(place.join("jobs.toml")).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or_default());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Ok(peak >> 10)
}
