//! The words of a transcript in time: finite times in order, whatever a service sent.

use super::scripts::is_without_spaces;
use super::span::TimeSpan;
use crate::domain::transcript::{Transcript, Utterance, Word};

/// A word, or of a language without spaces some characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpokenWord<'a> {
    pub(super) text: &'a str,
    pub(super) start: f64,
    pub(super) end: f64,
    /// From 0 to 1; `None` if the service gave no such number.
    pub(super) confidence: Option<f64>,
    /// Who says it: the channel and the speaker.
    pub(super) voice: (u32, Option<u32>),
    /// A language code; empty if unknown.
    pub(super) language: &'a str,
    /// The number of its utterance.
    pub(super) utterance: usize,
    /// How many letters it has of scripts without spaces; 0 for a word.
    pub(super) characters: usize,
}

/// No word takes longer, in seconds. A longer one has a wrong end, and does not stand for the speech until there.
const LONGEST_WORD: f64 = 3.0;

impl SpokenWord<'_> {
    /// Returns when it is said. A word of an impossible length ends sooner than its times say.
    pub(super) fn span(&self) -> TimeSpan {
        TimeSpan { start: self.start, end: self.end.min(self.start + LONGEST_WORD) }
    }

    /// Whether its language has no spaces between words.
    pub(super) fn is_unspaced(&self) -> bool {
        self.characters > 0
    }
}

/// Returns the words by their starts, with times from 0 to `limit`. Words of utterances that came without words are
/// spread evenly over the utterance.
pub(super) fn spoken_words(transcript: &Transcript, limit: f64) -> Vec<SpokenWord<'_>> {
    let mut words = Vec::new();
    for (number, utterance) in transcript.utterances.iter().enumerate() {
        match utterance.words.is_empty() {
            true => words.extend(spread(utterance, number, limit)),
            false => words.extend(timed(utterance, number, limit)),
        }
    }
    words.sort_by(|a: &SpokenWord<'_>, b: &SpokenWord<'_>| a.start.total_cmp(&b.start));
    words
}

fn timed(utterance: &Utterance, number: usize, limit: f64) -> impl Iterator<Item = SpokenWord<'_>> {
    let mut before = time(utterance.start, 0.0, limit);
    let spoken = utterance.words.iter().filter(|word| word.text.chars().any(char::is_alphanumeric));
    spoken.map(move |Word { text, start, end, confidence }| {
        let start = time(*start, before, limit);
        let end = time(*end, start, limit).max(start);
        before = end;
        SpokenWord { confidence: known(*confidence), ..word(text, TimeSpan { start, end }, utterance, number) }
    })
}

fn spread(utterance: &Utterance, number: usize, limit: f64) -> impl Iterator<Item = SpokenWord<'_>> {
    let texts: Vec<&str> = utterance.text.split_whitespace().flat_map(units).collect();
    let start = time(utterance.start, 0.0, limit);
    let step = (time(utterance.end, start, limit) - start).max(0.0) / texts.len().max(1) as f64;
    texts.into_iter().enumerate().map(move |(n, text)| {
        let start = (start + step * n as f64).min(limit);
        let span = TimeSpan { start, end: (start + step).min(limit) };
        SpokenWord { confidence: known(utterance.confidence), ..word(text, span, utterance, number) }
    })
}

fn word<'a>(text: &'a str, span: TimeSpan, utterance: &'a Utterance, number: usize) -> SpokenWord<'a> {
    SpokenWord {
        text: text.trim(),
        start: span.start,
        end: span.end,
        confidence: None,
        voice: (utterance.channel, utterance.speaker),
        language: &utterance.language,
        utterance: number,
        characters: text.chars().filter(|c| is_without_spaces(*c)).count(),
    }
}

/// Splits text of a script without spaces into characters; another word stays whole. Punctuation is left out.
pub(super) fn units(text: &str) -> Vec<&str> {
    let is_word = |text: &&str| text.chars().any(char::is_alphanumeric);
    if !text.chars().any(is_without_spaces) {
        return [text].into_iter().filter(is_word).collect();
    }
    let next = |at: usize| text[at..].chars().next().map_or(0, char::len_utf8);
    text.char_indices().map(|(at, _)| &text[at..at + next(at)]).filter(is_word).collect()
}

/// Returns a time from 0 to `limit`, `instead` where it is no number.
fn time(seconds: f64, instead: f64, limit: f64) -> f64 {
    if seconds.is_nan() { instead } else { seconds.clamp(0.0, limit) }
}

fn known(confidence: f64) -> Option<f64> {
    (0.0..=1.0).contains(&confidence).then_some(confidence)
}
