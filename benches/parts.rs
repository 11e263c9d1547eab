//! Counts the word errors at the joins of a recording that is sent in parts: an hour of read speech, transcribed by the
//! embedded service in one piece and in parts, with the real program. Both runs make the same errors away from the joins, so
//! the unsplit run is the reference.
//!
//! `cargo bench --bench parts -- [MINUTES] [LONGEST]`: a recording of MINUTES (60) in parts of at most LONGEST seconds
//! (300). Needs ffmpeg and the same packages as `benches/recogniser.rs`.
#![allow(missing_docs)]

#[path = "../tests/it/support/librivox.rs"]
#[allow(dead_code)] // the texts are not needed: the unsplit run is the reference
mod librivox;

use anyhow::{Result, ensure};
use librivox::{readings, word_errors};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// How far from the shared second words are compared, in seconds.
const NEAR: f64 = 2.0;

struct Word {
    text: String,
    start: f64,
    end: f64,
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<u32>().ok());
    let (minutes, longest) = (numbers.next().unwrap_or(60), numbers.next().unwrap_or(300));
    let folder = tempfile::tempdir()?;
    let recording = folder.path().join("hour.flac");
    record(&recording, minutes)?;
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    let (reference, no_cuts) = transcribe(&whole, &recording, "")?;
    let limits = format!("[service.limits]\nduration = \"{longest}s\"\n");
    let (joined, cuts) = transcribe(&parts, &recording, &limits)?;
    ensure!(no_cuts.is_empty() && !cuts.is_empty(), "the recording was not sent in parts");
    report(&reference, &joined, &cuts);
    Ok(())
}

/// Makes a recording of read sentences one after the other, each time at a slightly different speed.
fn record(to: &Path, minutes: u32) -> Result<()> {
    let sentences = readings();
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-nostdin", "-v", "error", "-y"]);
    for reading in &sentences {
        ffmpeg.arg("-i").arg(&reading.path);
    }
    let rounds = minutes * 60 / 20; // the sentences last some 25 s together
    let mut filter = String::new();
    let mut names = String::new();
    for sentence in 0..sentences.len() {
        let outputs: String = (0..rounds).map(|round| format!("[s{sentence}_{round}]")).collect();
        filter.push_str(&format!("[{sentence}:a]asplit={rounds}{outputs};"));
    }
    for round in 0..rounds {
        for sentence in 0..sentences.len() {
            let tempo = 0.9 + 0.02 * f64::from((round * 7 + sentence as u32 * 3) % 11);
            filter.push_str(&format!("[s{sentence}_{round}]atempo={tempo:.2}[t{sentence}_{round}];"));
            names.push_str(&format!("[t{sentence}_{round}]"));
        }
    }
    filter.push_str(&format!("{names}concat=n={}:v=0:a=1", rounds as usize * sentences.len()));
    let script = to.with_extension("filter");
    fs::write(&script, filter)?;
    ffmpeg.arg("-filter_complex_script").arg(&script).args(["-t", &(minutes * 60).to_string()]).arg(to);
    ensure!(ffmpeg.status()?.success(), "ffmpeg made no recording");
    Ok(())
}

/// Transcribes a recording, and returns its words and where it was cut, in seconds.
fn transcribe(folder: &Path, recording: &Path, limits: &str) -> Result<(Vec<Word>, Vec<f64>)> {
    let inbox = folder.join("inbox");
    fs::create_dir_all(&inbox)?;
    fs::copy(recording, inbox.join("hour.flac"))?;
    let source = "[[source]]\nfolder = \"inbox\"\nsettle = \"200ms\"\noutputs = [\"words.jsonl\"]\n";
    fs::write(folder.join("jobs.toml"), format!("{limits}{source}"))?;
    let program = env!("CARGO_BIN_EXE_scribed");
    let begun = Instant::now();
    let ran = Command::new(program).args(["once"]).current_dir(folder).output()?;
    println!("{} took {:.0} s", folder.file_name().unwrap_or_default().display(), begun.elapsed().as_secs_f64());
    let jobs = Command::new(program).args(["jobs", "--json"]).current_dir(folder).output()?;
    let jobs = String::from_utf8(jobs.stdout)?;
    let job: Value = serde_json::from_str(jobs.lines().next().unwrap_or_default())?;
    ensure!(job["stage"] == "written", "{job} {}", String::from_utf8_lossy(&ran.stderr));
    let parts = job["split"].as_array().cloned().unwrap_or_default();
    let cuts = parts.iter().skip(1).filter_map(|part| part["start"].as_f64()).collect();
    Ok((words(&inbox)?, cuts))
}

fn words(inbox: &Path) -> Result<Vec<Word>> {
    let mut words = Vec::new();
    for entry in fs::read_dir(inbox)? {
        let path = entry?.path();
        if !path.to_string_lossy().ends_with(".words.jsonl") {
            continue;
        }
        for line in fs::read_to_string(path)?.lines() {
            let line: Value = serde_json::from_str(line)?;
            let text = line["word"].as_str().or(line["text"].as_str());
            let times = line["start"].as_f64().zip(line["end"].as_f64());
            if let (Some(text), Some((start, end))) = (text, times) {
                words.push(Word { text: text.trim().to_owned(), start, end });
            }
        }
    }
    ensure!(!words.is_empty(), "no words were written");
    Ok(words)
}

fn report(reference: &[Word], joined: &[Word], cuts: &[f64]) {
    let text = |words: &[Word], from: f64, to: f64| -> String {
        let within = |word: &&Word| (from..to).contains(&f64::midpoint(word.start, word.end));
        words.iter().filter(within).map(|word| word.text.to_lowercase()).collect::<Vec<_>>().join(" ")
    };
    let (mut wrong, mut all) = (0, 0);
    for cut in cuts {
        let (from, to) = (cut - NEAR, cut + 1.0 + NEAR);
        let (said, heard) = (text(reference, from, to), text(joined, from, to));
        let (errors, words) = word_errors(&said, &heard);
        if errors > 0 {
            println!("  at {cut} s: `{said}` became `{heard}`");
        }
        (wrong, all) = (wrong + errors, all + words);
    }
    let (away, total) = word_errors(&text(reference, 0.0, f64::MAX), &text(joined, 0.0, f64::MAX));
    println!(
        "{} joins: {wrong} of {all} words within {NEAR} s of the shared second differ from the unsplit run",
        cuts.len()
    );
    println!("in the whole recording {away} of {total} words differ");
}
