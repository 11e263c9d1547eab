//! Transcribes a recording of two hours and checks the memory, and the times at its end: `cargo bench --bench long`.
//! Needs the same packages as `benches/recogniser.rs`.
#![allow(missing_docs)]

#[path = "../tests/it/support/librivox.rs"]
mod librivox;

use anyhow::{Result, ensure};
use librivox::{readings, word_errors};
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use scribed::testing::server::recognition::transcribe::{TranscribeOptions, transcribe};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

/// The seconds of a block (speech, then silence), and the number of blocks.
const BLOCK: f64 = 120.0;
const BLOCKS: u32 = 60;

/// The most seconds by which a word may be off. The first block has no silence before it, so its segments are cut
/// slightly differently (0.12 s were measured, at 121 MB). A clock that drifts is off by more.
const OFF: f64 = 0.2;

/// The most memory that the process may use, in MB.
const MOST: u64 = 400;

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = recording(folder.path())?;
    let sphinx = Arc::new(PocketSphinx::open(Settings { decoders: 1, ..Settings::default() })?);
    let begun = Instant::now();
    let transcript = transcribe(&path, sphinx, TranscribeOptions::default()).await?.transcript;
    println!("{} utterances in {:.0} s", transcript.utterances.len(), begun.elapsed().as_secs_f64());
    let in_block = |number: u32| {
        let from = f64::from(number) * BLOCK;
        let of_block = transcript.utterances.iter().filter(move |u| (from..from + BLOCK).contains(&u.start));
        of_block.map(move |u| (u.start - from, u.end - from, u.text.as_str())).collect::<Vec<_>>()
    };
    let (first, last) = (in_block(0), in_block(BLOCKS - 1));
    ensure!(first.len() == last.len(), "{first:?}\n{last:?}");
    let said: Vec<String> = readings().into_iter().map(|reading| reading.text).collect();
    let heard: Vec<&str> = first.iter().map(|utterance| utterance.2).collect();
    let (wrong, words) = word_errors(&said.join(" "), &heard.join(" "));
    println!("{wrong} of {words} words of the first block are wrong");
    let off = first.iter().zip(&last).map(|(one, other)| (one.0 - other.0).abs().max((one.1 - other.1).abs()));
    let off = off.fold(0.0, f64::max);
    println!("the last block's times differ from the first one's by {off:.3} s at most");
    let peak = peak();
    println!("peak memory of this process: {peak} MB (at most {MOST} MB)");
    ensure!(off < OFF && peak < MOST);
    Ok(())
}

fn recording(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("long.flac");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-nostdin", "-v", "error"]);
    let readings = readings();
    for reading in &readings {
        ffmpeg.arg("-i").arg(&reading.path);
    }
    let samples = BLOCK * 16_000.0;
    let loops = BLOCKS - 1;
    let filter = format!("concat=n={}:v=0:a=1,apad=whole_len={samples},aloop={loops}:{samples}", readings.len());
    ensure!(ffmpeg.args(["-filter_complex", &filter]).arg(&path).status()?.success(), "ffmpeg made no recording");
    Ok(path)
}

/// Returns the peak memory of this process in MB.
fn peak() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(u64::MAX) / 1000
}
