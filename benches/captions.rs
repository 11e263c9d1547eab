//! Counts how many captions keep each published rule: `cargo bench --bench captions -- FOLDER…`. Each folder contains
//! results as services send them or scribed writes them (`*.json`). Four ways are compared: laid out by the profile, laid
//! out as the embedded service does, the subtitles that the service sent, in those results that have them, and plainly:
//! one cue for each utterance, filled line by line. Without a folder it reads the two captured answers in `tests/data`.
#![allow(missing_docs)]

use anyhow::{Context, Result};
use scribed::testing::captions::{
    CaptionFile, CaptionFormat, CaptionRule, CaptionRules, Cue, Layout, Profile, check, lay_out, srt,
};
use scribed::testing::domain::format::Format;
use scribed::testing::domain::transcript::{Transcript, Utterance};
use scribed::testing::wire::record::Record;
use scribed::testing::wire::result::Spoken;
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
    let mut samples = Vec::new();
    for path in folders.iter().map(|folder| results(folder)).collect::<Result<Vec<_>>>()?.concat() {
        samples.push(Sample::read(&path).with_context(|| path.display().to_string())?);
    }
    samples.retain(|sample| !sample.transcript.utterances.is_empty());
    let words: usize = samples.iter().map(|sample| sample.transcript.text().split_whitespace().count()).sum();
    let with_own = samples.iter().filter(|sample| sample.own.is_some()).count();
    println!("{} results, {words} words; {with_own} have subtitles of the service\n", samples.len());
    for profile in PROFILES {
        table(profile, &samples);
    }
    speed(&samples);
    Ok(())
}

/// A result.
struct Sample {
    transcript: Transcript,
    /// The subtitles that the service sent.
    own: Option<CaptionFile>,
}

impl Sample {
    fn read(path: &Path) -> Result<Self> {
        let record: Record<Spoken, Value> = Record::of_kept(&std::fs::read(path)?)?;
        let read = record.result.unwrap_or_default().transcription.unwrap_or_default();
        let format = |format: &Format| if *format == Format::Vtt { CaptionFormat::Vtt } else { CaptionFormat::Srt };
        let own = read.subtitles_by_format().first();
        let own = own.map(|(kind, text)| CaptionFile::parse(text.as_bytes(), Some(format(kind))));
        Ok(Self { transcript: read.transcript().clone(), own })
    }

    fn language(&self) -> &str {
        self.transcript.languages.first().map_or("", String::as_str)
    }

    /// What cues of it are as a file.
    fn file(&self, lay_out: impl Fn(&Transcript) -> Vec<Cue>) -> Option<CaptionFile> {
        Some(CaptionFile::parse(srt(&lay_out(&self.transcript)).as_bytes(), Some(CaptionFormat::Srt)))
    }
}

fn results(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    Ok(paths)
}

/// The cues of all transcripts, and how many of them break each rule.
#[derive(Default)]
struct Counts {
    cues: usize,
    good: usize,
    broken: BTreeMap<CaptionRule, usize>,
}

impl Counts {
    fn of(samples: &[Sample], profile: Profile, file: impl Fn(&Sample, &Layout) -> Option<CaptionFile>) -> Self {
        let mut counts = Self::default();
        for sample in samples {
            let layout = CaptionRules::of(profile).layout(sample.language());
            if let Some(file) = file(sample, &layout) {
                counts.add(&file, &layout);
            }
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
    if whole == 0 {
        return "–".to_owned();
    }
    format!("{:.1} %", 100.0 * part as f64 / whole as f64)
}

fn table(profile: Profile, samples: &[Sample]) {
    let ways = [
        Counts::of(samples, profile, |sample, layout| sample.file(|transcript| lay_out(transcript, layout))),
        Counts::of(samples, profile, |sample, _| sample.file(|transcript| lay_out(transcript, &Layout::default()))),
        Counts::of(samples, profile, |sample, _| sample.own.clone()),
        Counts::of(samples, profile, |sample, _| sample.file(plain)),
    ];
    println!(
        "| {}: share of cues that keep the rule | by the profile | embedded service | sent by the service | one cue an utterance |",
        profile.name()
    );
    println!("|---|---|---|---|---|");
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
fn speed(samples: &[Sample]) {
    const TIMES: u32 = 200;
    for (name, layout) in [("embedded service", Layout::default()), ("netflix", Profile::Netflix.layout("en"))] {
        let begun = Instant::now();
        let mut cues = 0;
        for _ in 0..TIMES {
            cues += samples.iter().map(|sample| lay_out(&sample.transcript, &layout).len()).sum::<usize>();
        }
        println!("layout of {name}: {:.2} µs a cue", begun.elapsed().as_secs_f64() * 1e6 / cues.max(1) as f64);
    }
}
