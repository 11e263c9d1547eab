//! `sentiment_analysis` by the valences of words. An utterance is a sentence.

use super::valence::{Polarity, polarity};
use crate::domain::transcript::{Transcript, Utterance};
use crate::server::language_model::sentiment_item;
use crate::wire::enrichment::Sentiment;

/// Returns the sentiment of each utterance; `unknown` for one that is not in English. Emotions are not told.
pub fn find_sentiments(transcript: &Transcript) -> Vec<Sentiment> {
    let is_said = |said: &&Utterance| !said.text.trim().is_empty();
    transcript.utterances.iter().filter(is_said).map(|said| sentiment_item(said, of_utterance(said), None)).collect()
}

fn of_utterance(said: &Utterance) -> &'static str {
    if said.language != "en" {
        return "unknown";
    }
    match polarity(&said.text) {
        Polarity::Positive => "positive",
        Polarity::Negative => "negative",
        Polarity::Neutral => "neutral",
    }
}
