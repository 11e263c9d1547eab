//! Measures chapters and summaries that need no language model, beside baselines: `cargo bench --bench chapters`, for other
//! texts with `-- FOLDER`, whose folders are sources (`FOLDER/SOURCE/NAME.txt`): a line is a sentence, and a line that begins
//! with `# ` is the heading of a section. `benches/chapter_texts.py` makes such a folder. `-- FILE.jsonl` measures summaries
//! with the file of ACLSum (`aclsum/dataset/test.jsonl` in the package `aclsum` 0.1.2 on PyPI).
#![allow(missing_docs)]

#[path = "chapters/random.rs"]
mod random;
#[path = "chapters/rouge.rs"]
mod rouge;
#[path = "chapters/texts.rs"]
mod texts;

use anyhow::Result;
use random::Random;
use scribed::testing::domain::transcript::{Transcript, Utterance};
use scribed::testing::server::text_enrichments::{find_chapters, find_summary};
use scribed::testing::wire::params::SummaryType;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;
use texts::{Sample, Source, read_sources, samples_of, words};

fn main() -> Result<()> {
    let given: Vec<PathBuf> = std::env::args().skip(1).filter(|one| !one.starts_with("--")).map(Into::into).collect();
    let (files, folders): (Vec<&PathBuf>, Vec<&PathBuf>) = given.iter().partition(|path| path.is_file());
    if given.is_empty() {
        chapters(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/chapters"))?;
        cost();
    }
    folders.into_iter().try_for_each(|folder| chapters(folder))?;
    files.into_iter().try_for_each(|file| rouge::summaries(file))
}

pub fn transcript(said: &[String]) -> Transcript {
    let utterance = |(at, text): (usize, &String)| Utterance {
        text: text.clone(),
        start: at as f64,
        end: at as f64 + 0.9,
        confidence: 0.9,
        channel: 0,
        speaker: None,
        language: "en".to_owned(),
        words: Vec::new(),
    };
    Transcript { languages: vec!["en".to_owned()], utterances: said.iter().enumerate().map(utterance).collect() }
}

fn chapters(folder: &Path) -> Result<()> {
    let sources = read_sources(folder)?;
    println!(
        "| texts | form | number | utterances | segments | found | Pk | WindowDiff | none: Pk | WindowDiff | even: Pk | WindowDiff | random: Pk | WindowDiff |"
    );
    println!("|{}", "---|".repeat(14));
    let mut random = Random::new(1);
    for (name, samples) in samples_of(&sources, &mut random) {
        let recognised: Vec<Sample> = samples.iter().map(|one| one.recognised(&sources, &mut random)).collect();
        borders(name, "written", &samples, &mut random);
        borders(name, "recognised", &recognised, &mut random);
    }
    println!(
        "\n| headings | form | number | five keywords: any | share | the first five words: any | share | the most frequent five: any | share |"
    );
    println!("|{}", "---|".repeat(9));
    headlines(&sources, "written", &mut random, false);
    headlines(&sources, "recognised", &mut random, true);
    println!();
    Ok(())
}

/// The numbers of the utterances at which the found chapters begin, without the first one.
fn found(said: &[String]) -> Vec<usize> {
    let chapters = find_chapters(&transcript(said)).unwrap_or_default();
    chapters.iter().skip(1).map(|one| one.start as usize).collect()
}

fn borders(name: &str, form: &str, samples: &[Sample], random: &mut Random) {
    if samples.is_empty() {
        return;
    }
    let mut sums = [[0.0; 2]; 4];
    let (mut utterances, mut segments, mut chapters) = (0, 0, 0);
    for sample in samples {
        let (count, begins) = (sample.said.len(), &sample.begins);
        let own = found(&sample.said);
        let even = (1..=begins.len()).map(|n| count * n / (begins.len() + 1)).collect();
        let mut others: Vec<usize> = (1..count).collect();
        random.shuffle(&mut others);
        others.truncate(begins.len());
        utterances += count;
        segments += begins.len() + 1;
        chapters += own.len() + 1;
        for (sum, one) in sums.iter_mut().zip([own, Vec::new(), even, others]) {
            let [pk, window_diff] = errors(begins, &one, count);
            sum[0] += pk;
            sum[1] += window_diff;
        }
    }
    let all = samples.len() as f64;
    let mean = |sum: usize| sum as f64 / all;
    let cells: Vec<String> = sums.as_flattened().iter().map(|sum| format!("{:.1} %", 100.0 * sum / all)).collect();
    println!(
        "| {name} | {form} | {} | {:.0} | {:.1} | {:.1} | {} |",
        samples.len(),
        mean(utterances),
        mean(segments),
        mean(chapters),
        cells.join(" | ")
    );
}

/// Returns Pk (Beeferman, Berger and Lafferty, 1999) and WindowDiff (Pevzner and Hearst, 2002), with a window of half the mean
/// length of the reference's segments.
fn errors(reference: &[usize], found: &[usize], count: usize) -> [f64; 2] {
    let window = ((count as f64 / (reference.len() + 1) as f64 / 2.0).round() as usize).max(2);
    let within = |borders: &[usize], at: usize| borders.iter().filter(|one| at < **one && **one <= at + window).count();
    let places = count.saturating_sub(window);
    let (mut together, mut different) = (0, 0);
    for at in 0..places {
        let (one, other) = (within(reference, at), within(found, at));
        together += usize::from((one == 0) != (other == 0));
        different += usize::from(one != other);
    }
    [together, different].map(|errors| errors as f64 / places.max(1) as f64)
}

const FUNCTION_WORDS: &str = include_str!("../src/server/text_enrichments/data/function_words.txt");

/// How many words of a heading are among the keywords of its section, and among words that are chosen in simpler ways.
fn headlines(sources: &[Source], form: &str, random: &mut Random, is_recognised: bool) {
    let function_words: HashSet<&str> = FUNCTION_WORDS.lines().collect();
    let stems = |text: &str| -> Vec<String> {
        let plain = |word: &String| word.len() > 2 && !function_words.contains(word.as_str());
        words(text).filter(plain).filter(|word| word.chars().any(char::is_alphabetic)).map(stem).collect()
    };
    let mut sums = [[0.0; 2]; 3];
    let mut number = 0;
    for section in sources.iter().flat_map(|source| &source.texts).flatten() {
        let heading: HashSet<String> = stems(&section.heading).into_iter().collect();
        if heading.is_empty() || texts::is_general(&section.heading) || section.said.len() < 8 {
            continue;
        }
        let sample = Sample { said: section.said.clone(), begins: Vec::new() };
        let said = if is_recognised { sample.recognised(sources, random).said } else { sample.said };

        let keywords = scribed::testing::server::text_enrichments::keywords(said.iter().map(String::as_str));
        let all: Vec<String> = said.iter().flat_map(|one| stems(one)).collect();
        let mut different: Vec<&String> = Vec::new();
        all.iter().for_each(|one| {
            if !different.contains(&one) {
                different.push(one);
            }
        });
        let first: Vec<&String> = different.iter().copied().take(5).collect();
        let uses = |one: &String| all.iter().filter(|other| *other == one).count();
        different.sort_by_cached_key(|one| std::cmp::Reverse(uses(one)));
        let own: Vec<String> = keywords.iter().map(|one| stem(one.to_lowercase())).collect();
        number += 1;
        for (sum, chosen) in sums.iter_mut().zip([own.iter().collect(), first, different.into_iter().take(5).collect()])
        {
            let hits = heading.iter().filter(|one| chosen.contains(one)).count();
            sum[0] += f64::from(hits > 0);
            sum[1] += hits as f64 / heading.len() as f64;
        }
    }
    let cells: Vec<String> =
        sums.as_flattened().iter().map(|sum| format!("{:.0} %", 100.0 * sum / f64::from(number))).collect();
    if number > 0 {
        println!("| of sections | {form} | {number} | {} |", cells.join(" | "));
    }
}

fn stem(word: String) -> String {
    word.chars().take(5).collect()
}

/// What two hours of speech cost, at 150 words a minute.
fn cost() {
    // A topic of a quarter of an hour has a thousand words of its own.
    let word = |n: usize| format!("w{:03}{}", (n * n) % 997, n / 2_250);
    let line = |line: usize| (0..12).map(|at| word(line * 12 + at)).collect::<Vec<_>>().join(" ");
    let said: Vec<String> = (0..1_500).map(line).collect();
    let transcript = transcript(&said);
    let begun = Instant::now();
    let chapters = find_chapters(&transcript).map_or(0, |found| found.len());
    let middle = begun.elapsed();
    let summary = find_summary(&transcript, SummaryType::General).unwrap_or_default();
    let (first, second) = (middle.as_secs_f64(), (begun.elapsed() - middle).as_secs_f64());
    println!(
        "Two hours of speech (18,000 words in {} utterances): {chapters} chapters in {first:.2} s, a summary of {} words in {second:.2} s",
        said.len(),
        summary.split_whitespace().count()
    );
}
