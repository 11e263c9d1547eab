//! Measures how well the embedded recogniser hears given recordings, and how much it marks as not understood: `cargo
//! bench --bench accuracy -- FOLDER…`. Each folder is one line of the table and contains recordings of one kind. To
//! count word errors, put the spoken text beside a recording in NAME.txt. Needs `ffmpeg libpocketsphinx3
//! pocketsphinx-en-us`.
#![allow(missing_docs)]

#[path = "../tests/it/support/librivox.rs"]
#[allow(dead_code)] // only the word error count is used here
mod librivox;

use anyhow::{Context, Result, bail};
use librivox::word_errors;
use scribed::testing::domain::transcript::Utterance;
use scribed::testing::server::recognition::confidence::{ENOUGH, find_doubtful};
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use scribed::testing::server::recognition::recogniser::Recogniser;
use scribed::testing::server::recognition::transcribe::{TranscribeOptions, transcribe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The results for recordings of one kind.
#[derive(Default)]
struct Kind {
    recordings: usize,
    accepted: usize,
    partly: usize,
    marked: usize,
    short: usize,
    words: usize,
    confidence: f64,
    wrong: usize,
    said: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let folders: Vec<PathBuf> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from).collect();
    if folders.is_empty() {
        bail!("name folders of recordings: cargo bench --bench accuracy -- FOLDER…");
    }
    let sphinx: Arc<dyn Recogniser> = Arc::new(PocketSphinx::open(Settings::default())?);
    let mut table = String::new();
    for folder in folders {
        let mut kind = Kind::default();
        for path in recordings(&folder)? {
            kind.add(&path, &sphinx).await.with_context(|| path.display().to_string())?;
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        table += &format!("| {name} {}\n", kind.row());
    }
    println!(
        "\n| kind | recordings | accepted | partly marked | marked | too few words to judge | mean confidence | words wrong |"
    );
    println!("|---|---|---|---|---|---|---|---|\n{table}");
    Ok(())
}

fn recordings(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        if ["wav", "mp3", "flac", "ogg", "opus", "m4a", "mp4"].contains(&ending.as_str()) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

impl Kind {
    async fn add(&mut self, path: &Path, sphinx: &Arc<dyn Recogniser>) -> Result<()> {
        let transcript = transcribe(path, sphinx.clone(), TranscribeOptions::default()).await?.transcript;
        let doubtful = find_doubtful(&transcript.utterances, ENOUGH);
        let count = |one: &Utterance| one.words.len();
        let words: usize = transcript.utterances.iter().map(count).sum();
        let unsure: usize =
            transcript.utterances.iter().zip(&doubtful).filter(|(_, is)| **is).map(|(one, _)| count(one)).sum();
        let sum: f64 = transcript.utterances.iter().flat_map(|one| &one.words).map(|word| word.confidence).sum();
        let result = match (words, unsure) {
            (0, _) => ("nothing heard", &mut self.short),
            (words, _) if words < ENOUGH => ("too short", &mut self.short),
            (_, 0) => ("accepted", &mut self.accepted),
            _ if unsure == words => ("marked", &mut self.marked),
            _ => ("partly marked", &mut self.partly),
        };
        *result.1 += 1;
        let result = result.0;
        (self.recordings, self.words, self.confidence) =
            (self.recordings + 1, self.words + words, self.confidence + sum);
        let mean = sum / words.max(1) as f64;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        print!("{name:44} {result:14} {unsure:3} of {words:3} words in doubt, confidence {mean:.2}");
        if let Ok(text) = std::fs::read_to_string(path.with_extension("txt")) {
            let (wrong, said) = word_errors(&text, &transcript.text());
            (self.wrong, self.said) = (self.wrong + wrong, self.said + said);
            print!(", {wrong} of {said} words wrong");
        }
        println!();
        Ok(())
    }

    fn row(&self) -> String {
        let Self { recordings, accepted, partly, marked, short, words, confidence, wrong, said } = self;
        let wrong = match said {
            0 => "–".to_owned(),
            _ => format!("{wrong} of {said} ({:.0} %)", 100.0 * *wrong as f64 / *said as f64),
        };
        let mean = confidence / (*words).max(1) as f64;
        format!("| {recordings} | {accepted} | {partly} | {marked} | {short} | {mean:.2} | {wrong} |")
    }
}
