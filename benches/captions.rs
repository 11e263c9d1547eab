//! Counts how many captions keep each published rule: `cargo bench --bench captions -- FOLDER…`. Each folder contains
//! results as scribed writes them (`*.json`). Three ways of laying them out are compared: by the profile, as the
//! embedded service does, and plainly, with one cue for each utterance, filled line by line. Without a folder it reads
//! the two captured answers in `tests/data`.
#![allow(missing_docs)]

use anyhow::{Context, Result};
use scribed::captions::{
    CaptionFile, CaptionFormat, CaptionRule, CaptionRules, Cue, Layout, Profile, check, lay_out, srt,
};
use scribed::domain::transcript::{Transcript, Utterance};
use scribed::wire::record::Record;
use scribed::wire::result::Spoken;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PROFILES: [Profile; 5] = [Profile::Netflix, Profile::Bbc, Profile::Amazon, Profile::Arte, Profile::Vertical];

fn main() -> Result<()> {
    let folders: Vec<PathBuf> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from).collect();
    let captured = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/service");
    let folders = if folders.is_empty() { vec![captured] } else { folders };
    let mut transcripts = Vec::new();
    for path in folders.iter().map(|folder| results(folder)).collect::<Result<Vec<_>>>()?.concat() {
        transcripts.push(transcript(&path).with_context(|| path.display().to_string())?);
    }
    let words: usize = transcripts.iter().map(|t| t.text().split_whitespace().count()).sum();
    println!("{} results, {words} words\n", transcripts.len());
    for profile in PROFILES {
        table(profile, &transcripts);
    }
    speed(&transcripts);
    Ok(())
}

fn results(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    Ok(paths)
}

fn transcript(path: &Path) -> Result<Transcript> {
    let record: Record<Spoken, Value> = serde_json::from_slice(&std::fs::read(path)?)?;
    let transcription = record.result.unwrap_or_default().transcription.unwrap_or_default();
    Ok(transcription.transcript().clone())
}

/// The cues of all transcripts, and how many of them break each rule.
#[derive(Default)]
struct Counts {
    cues: usize,
    good: usize,
    broken: BTreeMap<CaptionRule, usize>,
}

impl Counts {
    fn of(transcripts: &[Transcript], rules: &Layout, cues: impl Fn(&Transcript) -> Vec<Cue>) -> Self {
        let mut counts = Self::default();
        for transcript in transcripts {
            let file = CaptionFile::parse(srt(&cues(transcript)).as_bytes(), Some(CaptionFormat::Srt));
            counts.add(&file, rules);
        }
        counts
    }

    fn add(&mut self, file: &CaptionFile, rules: &Layout) {
        let violations = check(file, rules);
        let by_cue: BTreeSet<(CaptionRule, usize)> = violations.iter().map(|v| (v.rule, v.cue)).collect();
        by_cue.iter().for_each(|(rule, _)| *self.broken.entry(*rule).or_default() += 1);
        let bad: BTreeSet<usize> = violations.iter().filter(|v| !v.rule.only_warns()).map(|v| v.cue).collect();
        self.cues += file.cues.len();
        self.good += file.cues.len() - bad.len();
    }

    fn share(&self, rule: CaptionRule) -> String {
        percent(self.cues - self.broken.get(&rule).copied().unwrap_or_default(), self.cues)
    }
}

fn percent(part: usize, whole: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn table(profile: Profile, transcripts: &[Transcript]) {
    let layout = CaptionRules::of(profile).layout("en");
    let ways = [
        Counts::of(transcripts, &layout, |transcript| lay_out(transcript, &layout)),
        Counts::of(transcripts, &layout, |transcript| lay_out(transcript, &Layout::default())),
        Counts::of(transcripts, &layout, plain),
    ];
    println!(
        "| {}: share of cues that keep the rule | by the profile | embedded service | one cue an utterance |",
        profile.name()
    );
    println!("|---|---|---|---|");
    let row = |name: &str, cell: &dyn Fn(&Counts) -> String| {
        println!("| {name} | {} |", ways.iter().map(cell).collect::<Vec<_>>().join(" | "));
    };
    row("cues", &|counts: &Counts| counts.cues.to_string());
    for rule in CaptionRule::ALL.into_iter().filter(|rule| ways.iter().any(|way| way.broken.contains_key(rule))) {
        row(&rule.name().replace('_', " "), &|counts: &Counts| counts.share(rule));
    }
    row("all rules", &|counts: &Counts| percent(counts.good, counts.cues));
    println!();
}

/// One cue for each utterance, in lines of at most 42 characters.
fn plain(transcript: &Transcript) -> Vec<Cue> {
    let spoken = transcript.utterances.iter().filter(|utterance| !utterance.text.trim().is_empty());
    spoken.map(plain_cue).collect()
}

fn plain_cue(utterance: &Utterance) -> Cue {
    let mut rows: Vec<String> = Vec::new();
    for word in utterance.text.split_whitespace() {
        match rows.last_mut() {
            Some(row) if row.chars().count() + 1 + word.chars().count() <= 42 => row.extend([" ", word]),
            _ => rows.push(word.to_owned()),
        }
    }
    let time = |seconds: f64| Duration::from_millis((seconds * 1000.0).round() as u64);
    Cue { start: time(utterance.start), end: time(utterance.end), rows, speaker: utterance.speaker }
}

/// How long the layouts take.
fn speed(transcripts: &[Transcript]) {
    const TIMES: u32 = 200;
    for (name, layout) in [("embedded service", Layout::default()), ("netflix", Profile::Netflix.layout("en"))] {
        let begun = Instant::now();
        let mut cues = 0;
        for _ in 0..TIMES {
            cues += transcripts.iter().map(|transcript| lay_out(transcript, &layout).len()).sum::<usize>();
        }
        println!("layout of {name}: {:.2} µs a cue", begun.elapsed().as_secs_f64() * 1e6 / cues.max(1) as f64);
    }
}
