//! Measures what the embedded recogniser costs and how well it hears: `cargo bench --bench recogniser`. Needs `ffmpeg
//! libpocketsphinx3 pocketsphinx-en-us pocketsphinx-testdata`.
#![allow(missing_docs)]

#[path = "../tests/it/support/librivox.rs"]
mod librivox;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use librivox::{Reading, readings, word_errors};
use rustix::time::{ClockId, clock_gettime};
use scribed::testing::media::decode::probe;
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use scribed::testing::server::recognition::recogniser::Recogniser;
use scribed::testing::server::recognition::spare_places::SparePlaces;
use scribed::testing::server::recognition::transcribe::{TranscribeOptions, transcribe};

/// The number of runs of which the best is printed where two times are compared: the machine may be shared.
const ROUNDS: usize = 5;

#[tokio::main]
async fn main() -> Result<()> {
    machine();
    let sphinx = PocketSphinx::open(Settings { decoders: 2, ..Settings::default() })?;
    let sphinx: Arc<dyn Recogniser> = Arc::new(sphinx);
    let folder = tempfile::tempdir()?;
    let all = readings();
    let long = joined(&all, folder.path())?;
    warm(&long, &sphinx).await?;
    accuracy(&all, &long, &sphinx).await?;
    cost(&long, &sphinx).await?;
    at_once(&long, &sphinx).await?;
    let many: Vec<Reading> = (0..6).flat_map(|_| readings()).collect();
    let other = tempfile::tempdir()?;
    of_one_file(&joined(&many, other.path())?, &sphinx).await?;
    println!("peak memory of this process: {}", status("/proc/self/status", "VmHWM"));
    Ok(())
}

fn machine() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("machine: {}, {cores} cores", status("/proc/cpuinfo", "model name"));
    println!("load before: {}", load.trim());
}

/// Returns the first value of `key` in a file of `key: value` lines.
fn status(path: &str, key: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_once(':')).map_or("unknown", |(_, v)| v.trim()).to_owned()
}

/// Joins all readings in one file.
fn joined(readings: &[Reading], folder: &Path) -> Result<PathBuf> {
    let path = folder.join("joined.wav");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-nostdin", "-v", "error"]);
    for reading in readings {
        ffmpeg.arg("-i").arg(&reading.path);
    }
    let filter = format!("concat=n={}:v=0:a=1", readings.len());
    let made = ffmpeg.args(["-filter_complex", &filter]).arg(&path).status()?;
    ensure!(made.success(), "ffmpeg could not join the readings");
    Ok(path)
}

/// Starts both decoders, so that no later time includes the start.
async fn warm(long: &Path, sphinx: &Arc<dyn Recogniser>) -> Result<()> {
    let begin = Instant::now();
    pair(long, sphinx).await?;
    println!("two decoders started and one file on each: {:.2} s", begin.elapsed().as_secs_f64());
    Ok(())
}

async fn accuracy(readings: &[Reading], long: &Path, sphinx: &Arc<dyn Recogniser>) -> Result<()> {
    let (mut wrong, mut words, mut said) = (0, 0, String::new());
    for reading in readings {
        let heard = transcribe(&reading.path, sphinx.clone(), TranscribeOptions::default()).await?.transcript.text();
        let (errors, count) = word_errors(&reading.text, &heard);
        (wrong, words) = (wrong + errors, words + count);
        said = said + &reading.text + " ";
    }
    println!("word error rate, file by file: {:.1} % ({wrong}/{words})", percent(wrong, words));
    let heard = transcribe(long, sphinx.clone(), TranscribeOptions::default()).await?.transcript.text();
    let (wrong, words) = word_errors(&said, &heard);
    println!("word error rate, as one file: {:.1} % ({wrong}/{words})", percent(wrong, words));
    Ok(())
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole as f64
}

/// Measures this process only, without ffmpeg.
async fn cost(long: &Path, sphinx: &Arc<dyn Recogniser>) -> Result<()> {
    let duration = probe(long).await?.duration;
    let (mut processor, mut wall) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let (before, begin) = (processor_seconds(), Instant::now());
        transcribe(long, sphinx.clone(), TranscribeOptions::default()).await?;
        processor = processor.min(processor_seconds() - before);
        wall = wall.min(begin.elapsed().as_secs_f64());
    }
    println!("sound: {duration:.2} s");
    println!("processor seconds for a second of sound: {:.3}", processor / duration);
    println!("wall seconds for a second of sound: {:.3}", wall / duration);
    Ok(())
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Alternates between both ways, so that other load on the machine affects both.
async fn at_once(long: &Path, sphinx: &Arc<dyn Recogniser>) -> Result<()> {
    let (mut in_turn, mut together) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        transcribe(long, sphinx.clone(), TranscribeOptions::default()).await?;
        transcribe(long, sphinx.clone(), TranscribeOptions::default()).await?;
        in_turn = in_turn.min(begin.elapsed());
        let begin = Instant::now();
        pair(long, sphinx).await?;
        together = together.min(begin.elapsed());
    }
    let (in_turn, together) = (in_turn.as_secs_f64(), together.as_secs_f64());
    let gain = in_turn / together;
    println!("two files in turn {in_turn:.2} s, at once {together:.2} s: {gain:.2} times as fast");
    Ok(())
}

/// As [`at_once`], for the segments of one file.
async fn of_one_file(long: &Path, sphinx: &Arc<dyn Recogniser>) -> Result<()> {
    let (mut in_turn, mut together) = (Duration::MAX, Duration::MAX);
    let one = |spare| TranscribeOptions { spare: SparePlaces::new(spare), ..TranscribeOptions::default() };
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let plain = transcribe(long, sphinx.clone(), one(0)).await?;
        in_turn = in_turn.min(begin.elapsed());
        let begin = Instant::now();
        let spread = transcribe(long, sphinx.clone(), one(1)).await?;
        together = together.min(begin.elapsed());
        ensure!(plain == spread, "another result with two places");
    }
    let (in_turn, together) = (in_turn.as_secs_f64(), together.as_secs_f64());
    let gain = in_turn / together;
    println!("one file in one place {in_turn:.2} s, in two {together:.2} s: {gain:.2} times as fast");
    Ok(())
}

async fn pair(long: &Path, sphinx: &Arc<dyn Recogniser>) -> Result<()> {
    let one = || transcribe(long, sphinx.clone(), TranscribeOptions::default());
    tokio::try_join!(one(), one()).context("two files at once")?;
    Ok(())
}
