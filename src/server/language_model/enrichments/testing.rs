//! What the tests of the enrichments use.

use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::server::language_model::completion::Completion;

/// A transcript in English: each utterance lasts ten seconds, and a word of it one.
pub fn transcript(texts: &[&str]) -> Transcript {
    let word = |start: f64, text: &str| Word { text: text.to_owned(), start, end: start + 0.9, confidence: 0.75 };
    let utterance = |(at, text): (usize, &&str)| {
        let start = at as f64 * 10.0;
        let words = text.split_inclusive(' ').enumerate().map(|(at, text)| word(start + at as f64, text)).collect();
        Utterance {
            text: (*text).to_owned(),
            start,
            end: start + 9.0,
            confidence: 0.75,
            channel: 0,
            speaker: None,
            language: "en".to_owned(),
            words,
        }
    };
    Transcript { languages: vec!["en".to_owned()], utterances: texts.iter().enumerate().map(utterance).collect() }
}

/// An answer that is whole.
pub fn completion(text: &str) -> Completion {
    Completion { text: text.to_owned(), is_truncated: false }
}
