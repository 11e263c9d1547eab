//! Summaries by ROUGE (Lin, 2004): the share of words (1), of pairs of words (2) and of the longest common subsequence (L) that
//! a summary and a person's have in common, as F1, without stemming.

use super::random::Random;
use super::texts::{Sample, Section, Source};
use super::transcript;
use anyhow::{Context, Result};
use scribed::testing::server::text_enrichments::find_summary;
use scribed::testing::wire::params::SummaryType;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A paper whose summary a person has written.
struct Paper {
    said: Sample,
    reference: Vec<String>,
}

impl Paper {
    fn read(line: &str) -> Result<Self> {
        let paper: Value = serde_json::from_str(line)?;
        let sentences = |part: &str| texts(&paper["sentences"][part]);
        let said = [sentences("introduction"), sentences("conclusion")].concat();
        let summary =
            ["challenge", "approach", "outcome"].map(|one| paper["summary"][one].as_str().unwrap_or_default());
        Ok(Self { said: Sample { said, begins: Vec::new() }, reference: words(&summary.join(" ")) })
    }
}

/// Compares summaries of introductions and conclusions with those that people wrote, each with baselines of the same length.
pub fn summaries(file: &Path) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let papers = text.lines().map(Paper::read).collect::<Result<Vec<Paper>>>()?;
    let section = |paper: &Paper| vec![Section { heading: String::new(), said: paper.said.said.clone() }];
    let source = [Source { texts: papers.iter().map(section).collect() }];
    let mut random = Random::new(1);
    let heard = |paper: &Paper, random: &mut Random| paper.said.recognised(&source, random).said;
    let written: Vec<Vec<String>> = papers.iter().map(|paper| paper.said.said.clone()).collect();
    let recognised: Vec<Vec<String>> = papers.iter().map(|paper| heard(paper, &mut random)).collect();
    println!(
        "| summary | form | papers | words | ROUGE-1 | ROUGE-2 | ROUGE-L | lead: ROUGE-1 | ROUGE-2 | ROUGE-L | random: ROUGE-1 | ROUGE-2 | ROUGE-L |"
    );
    println!("|{}", "---|".repeat(13));
    for (name, kind) in [
        ("general", SummaryType::General),
        ("bullet_points", SummaryType::BulletPoints),
        ("concise", SummaryType::Concise),
    ] {
        for (form, said) in [("written", &written), ("recognised", &recognised)] {
            let (length, cells) = compare(&papers, said, kind, &mut random);
            println!("| `{name}` | {form} | {} | {length:.0} | {} |", papers.len(), cells.join(" | "));
        }
    }
    Ok(())
}

/// Returns the mean length of the summaries, and the scores of them and of the baselines.
fn compare(papers: &[Paper], said: &[Vec<String>], kind: SummaryType, random: &mut Random) -> (f64, Vec<String>) {
    let mut sums = [[0.0; 3]; 3];
    let mut length = 0;
    for (Paper { reference, .. }, said) in papers.iter().zip(said) {
        let own = words(&find_summary(&transcript(said), kind).unwrap_or_default());
        let mut shuffled = said.clone();
        random.shuffle(&mut shuffled);
        length += own.len();
        let (lead, random) = (first(said, own.len()), first(&shuffled, own.len()));
        for (sum, one) in sums.iter_mut().zip([own, lead, random]) {
            let scores = [common(&one, reference, 1), common(&one, reference, 2), subsequence(&one, reference)];
            sum.iter_mut().zip(scores).for_each(|(sum, score)| *sum += score);
        }
    }
    let all = papers.len() as f64;
    (length as f64 / all, sums.as_flattened().iter().map(|sum| format!("{:.1} %", 100.0 * sum / all)).collect())
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn words(text: &str) -> Vec<String> {
    super::words(text).collect()
}

/// The first words of a text.
fn first(said: &[String], count: usize) -> Vec<String> {
    said.iter().flat_map(|one| words(one)).take(count).collect()
}

fn f1(hits: usize, found: usize, wanted: usize) -> f64 {
    if hits == 0 { 0.0 } else { 2.0 * hits as f64 / (found + wanted) as f64 }
}

fn common(found: &[String], wanted: &[String], size: usize) -> f64 {
    let mut counts: BTreeMap<&[String], usize> = BTreeMap::new();
    wanted.windows(size).for_each(|words| *counts.entry(words).or_default() += 1);
    let mut hits = 0;
    for words in found.windows(size) {
        if let Some(left) = counts.get_mut(words).filter(|left| **left > 0) {
            *left -= 1;
            hits += 1;
        }
    }
    let number = |all: &[String]| (all.len() + 1).saturating_sub(size);
    f1(hits, number(found), number(wanted))
}

fn subsequence(found: &[String], wanted: &[String]) -> f64 {
    let mut longest = vec![0; wanted.len() + 1];
    for word in found {
        let mut before = 0;
        for (at, other) in wanted.iter().enumerate() {
            let here = longest[at + 1];
            longest[at + 1] = if word == other { before + 1 } else { here.max(longest[at]) };
            before = here;
        }
    }
    f1(longest[wanted.len()], found.len(), wanted.len())
}
