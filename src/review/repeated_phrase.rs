//! `repeated_phrase`: the same words, or the same utterance, many times in a row, as recognisers write where they
//! understand nothing.

use super::spoken::{SpokenWord, units};
use super::{Finding, Material, Thresholds};
use crate::domain::escape::is_harmful;
use std::collections::{BTreeMap, HashMap};

/// The words of the longest phrase that is looked for.
const LONGEST_PHRASE: usize = 40;

/// The characters of a phrase that a message shows.
const SHOWN: usize = 60;

pub(super) fn find(material: &Material<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let mut by_channel: BTreeMap<u32, Vec<Token<'_, '_>>> = BTreeMap::new();
    for word in &material.words {
        by_channel.entry(word.voice.0).or_default().extend(tokens(word));
    }
    by_channel.values().flat_map(|tokens| in_channel(tokens, thresholds)).collect()
}

/// What repetitions are counted in: a word, or a character of a language without spaces.
struct Token<'m, 'a> {
    text: &'a str,
    word: &'m SpokenWord<'a>,
}

fn tokens<'m, 'a>(word: &'m SpokenWord<'a>) -> impl Iterator<Item = Token<'m, 'a>> {
    units(word.text).into_iter().map(move |text| Token { text, word })
}

fn in_channel(tokens: &[Token<'_, '_>], thresholds: &Thresholds) -> Vec<Finding> {
    let numbers = numbered(tokens);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        match longest(&numbers, tokens, at, thresholds) {
            Some((period, times)) => {
                found.push(finding(&tokens[at..at + period * times], period, times));
                at += period * times;
            }
            None => at += 1,
        }
    }
    found
}

/// Gives equal words equal numbers, whatever their case and punctuation.
fn numbered(tokens: &[Token<'_, '_>]) -> Vec<u32> {
    let mut known: HashMap<String, u32> = HashMap::new();
    let number = |token: &Token<'_, '_>| {
        let letters = token.text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        let next = known.len() as u32;
        *known.entry(letters).or_insert(next)
    };
    tokens.iter().map(number).collect()
}

/// Returns the length of the phrase that is repeated from `at` on, and how many times it is said; of several ways to
/// see a repetition, the one with the shortest phrase.
fn longest(numbers: &[u32], tokens: &[Token<'_, '_>], at: usize, thresholds: &Thresholds) -> Option<(usize, usize)> {
    let rest = &numbers[at..];
    let times_needed = thresholds.repeated_phrase.max(2) as usize;
    (1..=LONGEST_PHRASE.min(rest.len() / times_needed)).find_map(|period| {
        let equal = rest.iter().zip(&rest[period..]).take_while(|(one, next)| one == next).count();
        let times = equal / period + 1;
        let is_long = period * times >= thresholds.repeated_words as usize;
        (times >= times_needed && (is_long || is_whole_utterances(tokens, at, period, times)))
            .then_some((period, times))
    })
}

/// Whether each repetition is an utterance of its own: then few words are enough.
fn is_whole_utterances(tokens: &[Token<'_, '_>], at: usize, period: usize, times: usize) -> bool {
    let utterance = |n: usize| tokens.get(n).map(|token| token.word.utterance);
    let starts = (0..=times).map(|n| at + n * period);
    let begins = starts.map(|n| n == 0 || utterance(n) != utterance(n - 1));
    let is_one_voice = tokens[at..at + period * times].iter().all(|token| token.word.voice == tokens[at].word.voice);
    is_one_voice && begins.into_iter().all(|begins| begins)
}

fn finding(tokens: &[Token<'_, '_>], period: usize, times: usize) -> Finding {
    let span = tokens.iter().map(|token| token.word.span()).reduce(super::TimeSpan::joined);
    let span = span.unwrap_or(super::TimeSpan { start: 0.0, end: 0.0 });
    let between = if tokens[0].word.is_unspaced() { "" } else { " " };
    let phrase = tokens[..period].iter().map(|token| token.text).collect::<Vec<_>>().join(between);
    Finding { span, detail: format!("\"{}\" {times} times in a row", shown(&phrase)) }
}

/// Returns the start of a phrase, without characters that are no text.
fn shown(phrase: &str) -> String {
    let plain: String = phrase.chars().filter(|c| !is_harmful(*c)).collect();
    match plain.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}\u{2026}", &plain[..end]),
        None => plain,
    }
}
