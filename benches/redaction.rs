//! Measures the redaction of personal information on synthetic sentences that no rule was tuned on
//! (`tests/data/redaction/`), and its false alarms in the comments of this source code: `cargo bench --bench redaction`.
#![allow(missing_docs)]

use anyhow::{Context, Result};
use scribed::testing::domain::transcript::{Transcript, Utterance, Word};
use scribed::testing::server::redaction::{EntityType, RedactionPlan, redact};
use scribed::testing::wire::params::Params;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

/// A sentence without its marks.
struct Sentence {
    is_written: bool,
    text: String,
    /// The kind and the characters of each value.
    labels: Vec<(String, Range<usize>)>,
}

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("tests/data/redaction/evaluation.tsv");
    let file = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let all: Vec<(String, Sentence)> = file.lines().map(parse).collect::<Result<_>>()?;
    for source in ["presidio", "own"] {
        let sentences: Vec<&Sentence> = all.iter().filter(|(from, _)| from == source).map(|(_, one)| one).collect();
        println!("\nSynthetic sentences, templates: {source}\n");
        println!(
            "| entity type | written | hidden | found | right | other | wrong | spoken | hidden | found | right | other | wrong |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
        print_rows(&sentences);
    }
    false_alarms(root)?;
    time();
    Ok(())
}

fn parse(line: &str) -> Result<(String, Sentence)> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [form, source, marked] = cells[..] else { anyhow::bail!("no line of three cells: {line}") };
    let (mut text, mut labels) = (String::new(), Vec::new());
    for piece in marked.split('{') {
        let Some((label, rest)) = piece.split_once('}') else {
            text.push_str(piece);
            continue;
        };
        let (kind, value) = label.split_once('|').context("no kind")?;
        let start = text.chars().count();
        text.push_str(value);
        labels.push((kind.to_owned(), start..text.chars().count()));
        text.push_str(rest);
    }
    Ok((source.to_owned(), Sentence { is_written: form == "written", text, labels }))
}

/// Returns for each character whether it is hidden if these kinds are requested; all kinds if none is named.
fn hidden(text: &str, is_written: bool, kinds: &[&str]) -> Vec<bool> {
    let config = json!({ "entity_types": kinds, "processed_text_type": "MASK" });
    let request = Params::parse_lenient(&json!({ "pii_redaction": true, "pii_redaction_config": config }));
    let Some(plan) = RedactionPlan::of(&request) else { return Vec::new() };
    let word = |(at, text): (usize, &str)| {
        let start = at as f64 * 0.4;
        Word { text: format!("{}{text}", if at > 0 { " " } else { "" }), start, end: start + 0.3, confidence: 0.9 }
    };
    let words: Vec<Word> = text.split(' ').enumerate().map(word).collect();
    let utterance = Utterance {
        text: text.to_owned(),
        start: 0.0,
        end: words.len() as f64 * 0.4,
        confidence: 0.9,
        channel: 0,
        speaker: None,
        language: "en".to_owned(),
        words,
    };
    let mut transcript = Transcript { languages: vec!["en".to_owned()], utterances: vec![utterance] };
    redact(&mut transcript, is_written, &plan);
    let masked: Vec<char> = transcript.utterances[0].words.iter().flat_map(|word| word.text.chars()).collect();
    text.chars().zip(masked).map(|(before, after)| before != after).collect()
}

/// Returns the groups of words that are hidden, as characters.
fn groups(text: &str, hidden: &[bool]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    for word in text.split(' ') {
        let end = at + word.chars().count();
        if hidden[at..end].contains(&true) {
            match groups.last_mut() {
                Some(last) if last.end + 1 == at => last.end = end,
                _ => groups.push(at..end),
            }
        }
        at = end + 1;
    }
    groups
}

#[derive(Default)]
struct Score {
    values: usize,
    hidden: usize,
    found: usize,
    /// Groups of words that are hidden if this kind alone is requested: in a value of this kind,
    right: usize,
    /// in a value of another kind,
    other: usize,
    /// and in none.
    wrong: usize,
}

impl Score {
    fn cells(&self) -> String {
        let share = |part: usize, all: usize| match all {
            0 => "–".to_owned(),
            _ => format!("{:.0} %", 100.0 * part as f64 / all as f64),
        };
        let Self { values, hidden, found, right, other, wrong } = self;
        let (hidden, found) = (share(*hidden, *values), share(*found, *values));
        format!("{values} | {hidden} | {found} | {right} | {other} | {wrong}")
    }
}

fn print_rows(sentences: &[&Sentence]) {
    let mut scores: BTreeMap<&str, [Score; 2]> = BTreeMap::new();
    let labelled: BTreeSet<&str> =
        sentences.iter().flat_map(|one| &one.labels).map(|(kind, _)| kind.as_str()).collect();
    for sentence in sentences {
        let form = usize::from(!sentence.is_written);
        let all = hidden(&sentence.text, sentence.is_written, &[]);
        for kind in EntityType::ALL {
            let has_label = sentence.labels.iter().any(|(label, _)| label == kind.name());
            if !labelled.contains(kind.name()) && !kind.is_found() {
                continue;
            }
            let alone = hidden(&sentence.text, sentence.is_written, &[kind.name()]);
            let score = &mut scores.entry(kind.name()).or_default()[form];
            for (_, range) in sentence.labels.iter().filter(|(label, _)| has_label && label == kind.name()) {
                score.values += 1;
                score.hidden += usize::from(is_covered(&sentence.text, range, &all));
                score.found += usize::from(is_covered(&sentence.text, range, &alone));
            }
            for group in groups(&sentence.text, &alone) {
                let overlaps = |range: &Range<usize>| range.start < group.end && group.start < range.end;
                let mut labels =
                    sentence.labels.iter().filter(|(_, range)| overlaps(range)).map(|(label, _)| label.as_str());
                let fits = |label| family(label) == family(kind.name()) || *kind == EntityType::NumericalPii;
                let count = match (labels.clone().any(fits), labels.next().is_some()) {
                    (true, _) => &mut score.right,
                    (false, true) => &mut score.other,
                    (false, false) => &mut score.wrong,
                };
                *count += 1;
            }
        }
    }
    for (kind, [written, spoken]) in &scores {
        if [written, spoken].iter().any(|one| one.values + one.right + one.other + one.wrong > 0) {
            println!("| {kind} | {} | {} |", written.cells(), spoken.cells());
        }
    }
    let sum = |form: usize| {
        scores.values().fold((0, 0), |(all, hidden), one| (all + one[form].values, hidden + one[form].hidden))
    };
    for (form, name) in [(0, "written"), (1, "spoken")] {
        let (all, hidden) = sum(form);
        println!("\n{name}: {hidden} of {all} values are hidden ({:.0} %)", 100.0 * hidden as f64 / all.max(1) as f64);
    }
}

/// Whether every letter and digit of a value is hidden; "the" of "the fourth of July" says nothing.
fn is_covered(text: &str, range: &Range<usize>, hidden: &[bool]) -> bool {
    let article = if text.chars().skip(range.start).take(4).eq("the ".chars()) { 4 } else { 0 };
    let value = text.chars().enumerate().skip(range.start + article).take(range.len() - article);
    value.filter(|(_, c)| c.is_alphanumeric()).all(|(at, _)| hidden[at])
}

/// Kinds that say the same of a value, with more or less detail.
fn family(kind: &str) -> &str {
    match kind {
        "DATE" | "DOB" | "YEAR" | "MONTH" | "DAY" | "DATE_INTERVAL" => "DATE",
        "BANK_ACCOUNT" | "ACCOUNT_NUMBER" => "ACCOUNT",
        _ if kind.starts_with("NAME") => "NAME",
        _ if kind.starts_with("LOCATION") => "LOCATION",
        _ => kind,
    }
}

/// Counts what is found in the comments of the source code: text about programs, of which nothing is labelled.
fn false_alarms(root: &Path) -> Result<()> {
    let mut lines = Vec::new();
    comments(&root.join("src"), &mut lines)?;
    println!("\nComments of the source code, in which no person is named\n");
    println!("| form | words | groups of words hidden, by entity type |\n|---|---|---|");
    for is_written in [true, false] {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut words = 0;
        for line in &lines {
            let text = if is_written { line.clone() } else { plain(line) };
            words += text.split(' ').count();
            for kind in EntityType::ALL.iter().filter(|kind| kind.is_found()) {
                let found = groups(&text, &hidden(&text, is_written, &[kind.name()])).len();
                *counts.entry(kind.name()).or_default() += found;
            }
        }
        let mut counts: Vec<(&str, usize)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let named: Vec<String> = counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        println!("| {} | {words} | {} |", if is_written { "written" } else { "spoken" }, named.join(", "));
    }
    Ok(())
}

fn comments(folder: &Path, lines: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "redaction") {
                comments(&path, lines)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path)?;
            let comment = |line: &str| {
                let line = line.trim_start();
                line.strip_prefix("//! ").or(line.strip_prefix("/// ")).map(str::to_owned)
            };
            let without_code = |line: &String| !line.contains(['`', '|', '[', '─']);
            lines.extend(text.lines().filter_map(comment).filter(without_code));
        }
    }
    Ok(())
}

fn plain(text: &str) -> String {
    let lower: String =
        text.to_lowercase().chars().map(|c| if c.is_alphanumeric() || c == '\'' { c } else { ' ' }).collect();
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn time() {
    let said = "please call john smith at four one five five five five oh one nine eight about the bill of july ";
    println!("\n| words | time |\n|---|---|");
    for count in [50_000, 100_000, 200_000] {
        let text = said.repeat(count / said.split_whitespace().count());
        let begun = Instant::now();
        let hidden = hidden(text.trim(), false, &[]);
        println!("| {} | {:.2} s |", text.split_whitespace().count(), begun.elapsed().as_secs_f64());
        assert!(hidden.contains(&true), "something is hidden");
    }
}
