//! Measures enrichments that need no language model, beside baselines: `cargo bench --bench text_enrichments`, with files of
//! people's ratings for the sentiments. Each line of such a file has a number, a rating from -4 to 4 and a text, separated
//! by tabs, as the files `*_GroundTruth.txt` have that the source package of vaderSentiment 3.3.2 on PyPI contains.
#![allow(missing_docs)]

use anyhow::{Context, Result};
use scribed::testing::domain::transcript::{Transcript, Utterance, Word};
use scribed::testing::server::text_enrichments::{Polarity, find_entities, find_sentiments, polarity};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<()> {
    let files: Vec<String> = std::env::args().skip(1).filter(|one| !one.starts_with("--")).collect();
    entities()?;
    if files.is_empty() {
        println!("\nSentiments: no files of ratings are given");
    } else {
        println!(
            "\n| sentiments | texts | accuracy | mean F1 | the most frequent one: accuracy | mean F1 | always neutral: accuracy |"
        );
        println!("|---|---|---|---|---|---|---|");
        files.iter().try_for_each(|file| sentiments(Path::new(file)))?;
    }
    cost();
    Ok(())
}

const ALL: [Polarity; 3] = [Polarity::Negative, Polarity::Neutral, Polarity::Positive];

/// The mean rating of people from which a text counts as positive, on a scale from -4 to 4.
const RATED: f64 = 0.5;

fn sentiments(path: &Path) -> Result<()> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    let rated = |line: &str| {
        let mut cells = line.splitn(3, '\t').skip(1);
        let rating: f64 = cells.next()?.trim().parse().ok()?;
        let rated = match rating {
            rating if rating > RATED => Polarity::Positive,
            rating if rating < -RATED => Polarity::Negative,
            _ => Polarity::Neutral,
        };
        Some((rated, polarity(cells.next()?)))
    };
    let pairs: Vec<(Polarity, Polarity)> = text.lines().filter_map(rated).collect();
    let count = |one: Polarity| pairs.iter().filter(|(rated, _)| *rated == one).count();
    let most = ALL.into_iter().max_by_key(|one| count(*one)).unwrap_or(Polarity::Neutral);
    let always = |one: Polarity| pairs.iter().map(|(rated, _)| (*rated, one)).collect::<Vec<_>>();
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let [own, majority, neutral] = [pairs.clone(), always(most), always(Polarity::Neutral)].map(|pairs| score(&pairs));
    println!(
        "| {name} | {} | {:.1} % | {:.2} | {:.1} % | {:.2} | {:.1} % |",
        pairs.len(),
        own.0,
        own.1,
        majority.0,
        majority.1,
        neutral.0
    );
    Ok(())
}

/// Returns the accuracy in per cent, and the mean of the F1 of the three polarities.
fn score(pairs: &[(Polarity, Polarity)]) -> (f64, f64) {
    let right = |one: Option<Polarity>| {
        pairs.iter().filter(|(rated, found)| rated == found && one.is_none_or(|one| one == *rated)).count() as f64
    };
    let f1 = |one: Polarity| {
        let (rated, found) = pairs.iter().fold((0.0, 0.0), |(rated, found), pair| {
            (rated + f64::from(u8::from(pair.0 == one)), found + f64::from(u8::from(pair.1 == one)))
        });
        if rated + found > 0.0 { 2.0 * right(Some(one)) / (rated + found) } else { 0.0 }
    };
    (100.0 * right(None) / pairs.len().max(1) as f64, ALL.into_iter().map(f1).sum::<f64>() / 3.0)
}

/// Kinds that say the same, with more or less detail.
fn family(kind: &str) -> &str {
    match kind {
        "DATE" | "DOB" | "YEAR" | "MONTH" | "DAY" | "DATE_INTERVAL" => "DATE",
        "BANK_ACCOUNT" | "ACCOUNT_NUMBER" => "ACCOUNT",
        _ if kind.starts_with("NAME") => "NAME",
        _ if kind.starts_with("LOCATION") => "LOCATION",
        _ => kind,
    }
}

/// An entity: its kind and the places of its words.
type PlacedEntity = (String, std::ops::Range<usize>);

/// Measures with the synthetic sentences of the redaction.
fn entities() -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/redaction/evaluation.tsv");
    let file = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    println!("| entities of synthetic sentences | labelled | recall | precision | baseline: recall | precision |");
    println!("|---|---|---|---|---|---|");
    for (source, form) in [("presidio", "written"), ("presidio", "spoken"), ("own", "written"), ("own", "spoken")] {
        let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
        for line in file.lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let [of_form, of_source, marked] = cells[..] else { anyhow::bail!("no line of three cells: {line}") };
            if (of_form, of_source) != (form, source) {
                continue;
            }
            let (text, labels) = labelled(marked)?;
            let found = found_in(&text, form == "written");
            for (name, found) in [("own", found), ("baseline", capitals(&text))] {
                let [right, all_found, all] = counts.entry(name).or_default();
                *all += labels.len();
                *all_found += found.len();
                *right += labels.iter().filter(|label| found.iter().any(|one| is_same(label, one))).count();
            }
        }
        let shares = |name: &str| {
            let [right, found, all] = counts.get(name).copied().unwrap_or_default();
            let share = |of: usize| if of == 0 { 0.0 } else { 100.0 * right as f64 / of as f64 };
            (all, share(all), share(found))
        };
        let ((all, recall, precision), (_, base_recall, base_precision)) = (shares("own"), shares("baseline"));
        println!(
            "| {source}, {form} | {all} | {recall:.0} % | {precision:.0} % | {base_recall:.0} % | {base_precision:.0} % |"
        );
    }
    Ok(())
}

fn labelled(marked: &str) -> Result<(String, Vec<PlacedEntity>)> {
    let (mut text, mut labels) = (String::new(), Vec::new());
    let word_at = |text: &str| text.matches(' ').count();
    for piece in marked.split('{') {
        let Some((label, rest)) = piece.split_once('}') else {
            text.push_str(piece);
            continue;
        };
        let (kind, value) = label.split_once('|').context("no kind")?;
        let first = word_at(&text);
        text.push_str(value);
        labels.push((kind.to_owned(), first..word_at(&text) + 1));
        text.push_str(rest);
    }
    Ok((text, labels))
}

/// Whether an entity has the words of a label, and a kind that says the same. "the" of "the fourth of July" says nothing.
fn is_same(label: &PlacedEntity, found: &PlacedEntity) -> bool {
    let is_article = label.1.len() > 1 && found.1.start == label.1.start + 1;
    family(&label.0) == family(&found.0) && label.1.end == found.1.end && (label.1.start == found.1.start || is_article)
}

fn transcript(text: &str) -> Transcript {
    let word = |(at, text): (usize, &str)| {
        let start = at as f64;
        Word { text: format!("{}{text}", if at > 0 { " " } else { "" }), start, end: start + 0.9, confidence: 0.9 }
    };
    let words: Vec<Word> = text.split(' ').enumerate().map(word).collect();
    let utterance = Utterance {
        text: text.to_owned(),
        start: 0.0,
        end: words.len() as f64,
        confidence: 0.9,
        channel: 0,
        speaker: None,
        language: "en".to_owned(),
        words,
    };
    Transcript { languages: vec!["en".to_owned()], utterances: vec![utterance] }
}

fn found_in(text: &str, is_written: bool) -> Vec<PlacedEntity> {
    let all = find_entities(&transcript(text), is_written);
    // The times are the places of the words.
    all.into_iter().map(|one| (one.entity_type, one.start as usize..one.end.ceil() as usize)).collect()
}

/// The baseline: words with a capital that begin no sentence are names.
fn capitals(text: &str) -> Vec<PlacedEntity> {
    let words: Vec<&str> = text.split(' ').collect();
    let is_capital = |at: usize| {
        words[at].starts_with(char::is_uppercase)
            && words[at] != "I"
            && at > 0
            && !words[at - 1].ends_with(['.', '!', '?'])
    };
    let mut found: Vec<PlacedEntity> = Vec::new();
    for at in (0..words.len()).filter(|at| is_capital(*at)) {
        match found.last_mut() {
            Some((_, range)) if range.end == at => range.end = at + 1,
            _ => found.push(("NAME".to_owned(), at..at + 1)),
        }
    }
    found
}

/// The words of two hours of speech, at 150 words a minute.
const WORDS: usize = 18_000;

fn cost() {
    let said =
        "my name is john smith and the food was very good on the fourth of july but we did not like the service ";
    let text = said.repeat(WORDS / said.split_whitespace().count());
    let whole = transcript(text.trim());
    let utterances: Vec<Utterance> =
        whole.utterances[0].words.chunks(12).map(|words| whole.utterances[0].with_words(words.to_vec())).collect();
    let two_hours = Transcript { utterances, ..whole };
    let begun = Instant::now();
    let (entities, sentiments) = (find_entities(&two_hours, false).len(), find_sentiments(&two_hours).len());
    let seconds = begun.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default().trim();
    println!(
        "\nTwo hours of speech ({WORDS} words): {entities} entities and {sentiments} sentiments in {seconds:.2} s; the process had at most {peak}"
    );
}
