//! Finds the sounds of English words: in the recogniser's own dictionary, else by spelling.

use crate::server::recognition::letter_to_sound;
use crate::server::recognition::recogniser::{LearntVocabulary, LearntWord, Term};
use std::collections::{HashMap, HashSet};

/// The most pronunciations of a term that are kept.
const MAX_PRONUNCIATIONS: usize = 6;

/// Longest term, in words: the recogniser treats a term as one word.
const LONGEST: usize = 8;

/// Returns the vocabulary that can be learnt of `terms`. `dictionary` is the text of a pronouncing dictionary (`word S
/// OU N D` on a line, `word(2) …` for another pronunciation).
pub fn build_vocabulary(terms: &[Term], dictionary: &str) -> LearntVocabulary {
    let wanted: HashSet<String> = terms.iter().flat_map(spellings).flat_map(|text| words(&text)).collect();
    let known = look_up(dictionary, &wanted);
    let mut lesson = LearntVocabulary::default();
    for term in terms {
        match pronunciations(term, &known) {
            sounds if sounds.is_empty() => lesson.unknown.push(term.value.clone()),
            sounds => lesson.words.push(LearntWord { value: term.value.trim().to_owned(), sounds }),
        }
    }
    lesson
}

/// Returns what is spoken: the given pronunciations, else the term itself.
fn spellings(term: &Term) -> Vec<String> {
    if term.pronunciations.is_empty() { vec![term.value.clone()] } else { term.pronunciations.clone() }
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '-' | '_' | '/' | ','));
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).replace('\u{2019}', "'");
    words.map(plain).filter(|word| !word.is_empty()).map(|word| word.to_lowercase()).collect()
}

fn look_up(dictionary: &str, wanted: &HashSet<String>) -> HashMap<String, Vec<String>> {
    let mut known: HashMap<String, Vec<String>> = HashMap::new();
    for line in dictionary.lines() {
        let Some((word, sounds)) = line.split_once(' ') else { continue };
        let (word, _) = word.split_once('(').unwrap_or((word, ""));
        if wanted.contains(word) {
            known.entry(word.to_owned()).or_default().push(sounds.trim().to_owned());
        }
    }
    known
}

/// Returns the pronunciations of a term; none if they cannot be found.
fn pronunciations(term: &Term, known: &HashMap<String, Vec<String>>) -> Vec<String> {
    let mut pronunciations: Vec<String> = Vec::new();
    for text in spellings(term) {
        let found = if letter_to_sound::are_symbols(&text) { vec![joined(&text)] } else { combine(&text, known) };
        for pronunciation in found {
            if pronunciations.len() < MAX_PRONUNCIATIONS && !pronunciations.contains(&pronunciation) {
                pronunciations.push(pronunciation);
            }
        }
    }
    pronunciations
}

fn joined(symbols: &str) -> String {
    symbols.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Combines all pronunciations of all words, up to [`MAX_PRONUNCIATIONS`].
fn combine(text: &str, known: &HashMap<String, Vec<String>>) -> Vec<String> {
    let words = words(text);
    if words.is_empty() || words.len() > LONGEST {
        return Vec::new();
    }
    let mut pronunciations = vec![String::new()];
    for word in words {
        let of_word = known
            .get(&word)
            .cloned()
            .or_else(|| letter_to_sound::pronounce(&word).map(|pronunciation| vec![pronunciation]));
        let Some(of_word) = of_word else { return Vec::new() };
        let longer = pronunciations
            .iter()
            .flat_map(|pronunciation| of_word.iter().map(move |next| format!("{pronunciation} {next}")));
        pronunciations = longer.take(MAX_PRONUNCIATIONS).collect();
    }
    pronunciations.into_iter().map(|pronunciation| pronunciation.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DICTIONARY: &str = "read R EH D\nread(2) R IY D\nnew N UW\nyork Y AO R K\n";

    fn learnt(value: &str, pronunciations: &[&str]) -> Vec<String> {
        let pronunciations = pronunciations.iter().map(|p| (*p).to_owned()).collect();
        let lesson = build_vocabulary(&[Term { value: value.to_owned(), pronunciations }], DICTIONARY);
        lesson.words.into_iter().flat_map(|word| word.sounds).collect()
    }

    #[test]
    fn the_dictionary_knows_best() {
        assert_eq!(learnt("Read", &[]), ["R EH D", "R IY D"]);
        assert_eq!(learnt("New-York", &[]), ["N UW Y AO R K"]);
    }

    #[test]
    fn what_was_given_is_taken_before_the_spelling() {
        assert_eq!(learnt("Nguyen", &["new"]), ["N UW"]);
        assert_eq!(learnt("York", &["Y AO K", "york"]), ["Y AO K", "Y AO R K"]);
    }

    #[test]
    fn what_it_does_not_have_is_said_as_it_is_spelt() {
        assert_eq!(learnt("Zib", &[]), ["Z IH B"]);
    }

    #[test]
    fn what_nothing_says_how_to_say_is_named() {
        let terms = ["北京", "", "C3PO", "r2"].map(|value| Term { value: value.to_owned(), pronunciations: vec![] });
        assert_eq!(
            build_vocabulary(&terms, DICTIONARY),
            LearntVocabulary { words: vec![], unknown: terms.map(|t| t.value).to_vec() }
        );
    }
}
