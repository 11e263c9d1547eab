//! Gives the text of a translation the times of its original. Pure.

use crate::domain::transcript::{Utterance, Word};
use crate::server::recognition::openai::spread::spread;

/// Returns an utterance with another text, whose words are spread over its time.
pub fn translated_utterance(original: &Utterance, text: &str, target: &str) -> Utterance {
    let rounded = |seconds: f64| (seconds * 1000.0).round() / 1000.0;
    let span = [(original.start, original.end)];
    let words = spread(text, &span, None).into_iter().map(|word| Word {
        text: word.text,
        start: rounded(word.start).max(original.start),
        end: rounded(word.end).min(original.end),
        confidence: original.confidence,
    });
    Utterance { text: text.to_owned(), words: words.collect(), language: target.to_owned(), ..original.clone() }
}
