//! Transcripts for tests.

use crate::domain::transcript::{Transcript, Utterance};

/// Returns a transcript in English: an utterance each ten seconds, of nine seconds.
pub(super) fn transcript<'t>(said: impl IntoIterator<Item = &'t str>) -> Transcript {
    let utterance = |(at, text): (usize, &str)| Utterance {
        text: text.to_owned(),
        start: at as f64 * 10.0,
        end: at as f64 * 10.0 + 9.0,
        confidence: 0.9,
        channel: 0,
        speaker: None,
        language: "en".to_owned(),
        words: Vec::new(),
    };
    let utterances = said.into_iter().enumerate().map(utterance).collect();
    Transcript { languages: vec!["en".to_owned()], utterances }
}
