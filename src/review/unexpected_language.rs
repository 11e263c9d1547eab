//! `unexpected_language`: a passage in a language, or in a script, that was not requested.

use super::scripts::{Script, primary, scripts_of};
use super::spoken::SpokenWord;
use super::{Finding, Material, Thresholds, TimeSpan};
use std::collections::BTreeMap;

/// The share of a passage's letters that have to be of other scripts: names and quotations are often in Latin letters.
const SHARE: f64 = 0.7;

pub(super) fn find(material: &Material<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let requested: Vec<String> = material.requested.iter().map(|code| primary(code)).collect();
    let passages = passages(material, &requested);
    let least = thresholds.unexpected_letters as usize;
    passages.into_iter().filter(|passage| passage.letters >= least).filter_map(Passage::finding).collect()
}

/// Utterances in a row about which the same is wrong.
struct Passage {
    wrong: Option<Wrong>,
    span: TimeSpan,
    letters: usize,
    words: usize,
}

#[derive(Clone, PartialEq)]
enum Wrong {
    /// The service names another language than the requested ones.
    Language { found: String, requested: String },
    /// The text is in another script than the language is written in.
    Script { found: Script, language: String },
}

impl Passage {
    fn finding(self) -> Option<Finding> {
        let detail = match self.wrong? {
            Wrong::Language { found, requested } => {
                format!("{} words in {found}, requested was {requested}", self.words)
            }
            Wrong::Script { found, language } => {
                format!("{} words in {} letters, in which {language} is not written", self.words, found.name())
            }
        };
        Some(Finding { span: self.span, detail })
    }
}

fn passages(material: &Material<'_>, requested: &[String]) -> Vec<Passage> {
    let mut by_utterance: BTreeMap<usize, Vec<&SpokenWord<'_>>> = BTreeMap::new();
    material.words.iter().for_each(|word| by_utterance.entry(word.utterance).or_default().push(word));
    let mut passages: Vec<Passage> = Vec::new();
    for words in by_utterance.values() {
        let passage = passage(words, requested);
        match passages.last_mut() {
            // A word or two in between does not end a passage.
            Some(last) if last.wrong == passage.wrong || passage.letters == 0 => {
                last.span = last.span.joined(passage.span);
                last.letters += passage.letters;
                last.words += passage.words;
            }
            _ => passages.push(passage),
        }
    }
    passages
}

fn passage(words: &[&SpokenWord<'_>], requested: &[String]) -> Passage {
    let spans = words.iter().map(|word| word.span());
    let scripts: Vec<Script> = words.iter().flat_map(|word| word.text.chars().filter_map(Script::of)).collect();
    Passage {
        wrong: wrong(words.first().map_or("", |word| word.language), &scripts, requested),
        span: spans.reduce(TimeSpan::joined).unwrap_or(TimeSpan { start: 0.0, end: 0.0 }),
        letters: scripts.len(),
        words: words.len(),
    }
}

/// Says what is wrong with text of these letters, which the service says is in `language`. If no language was
/// requested, that one is expected.
fn wrong(language: &str, letters: &[Script], requested: &[String]) -> Option<Wrong> {
    let named = primary(language);
    if !named.is_empty() && !requested.is_empty() && !requested.contains(&named) {
        return Some(Wrong::Language { found: named, requested: requested.join(", ") });
    }
    let expected = if requested.is_empty() { std::slice::from_ref(&named) } else { requested };
    if expected.iter().all(String::is_empty) {
        return None;
    }
    let right: Vec<Script> = expected.iter().flat_map(|code| scripts_of(code)).copied().collect();
    let is_other = |script: &&Script| !right.contains(script);
    let others: Vec<Script> = letters.iter().filter(is_other).copied().collect();
    let is_most = !others.is_empty() && others.len() as f64 >= SHARE * letters.len() as f64;
    is_most.then(|| Wrong::Script { found: most(&others), language: expected.join(", ") })
}

fn most(scripts: &[Script]) -> Script {
    let mut counts: BTreeMap<Script, usize> = BTreeMap::new();
    scripts.iter().for_each(|script| *counts.entry(*script).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map_or(Script::Latin, |(script, _)| script)
}
