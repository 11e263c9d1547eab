//! The transcript: the part of a result that outputs are made from, independent of any interface's format.

use crate::domain::word_overlap::JoinableWord;

#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// The text as displayed. It begins with a space if the language puts one there: the text of an utterance is the
    /// concatenation of its words, trimmed.
    pub text: String,
    /// Seconds from the start of the recording.
    pub start: f64,
    /// Seconds from the start of the recording, never before `start`.
    pub end: f64,
    /// From 0 (a guess) to 1 (certain).
    pub confidence: f64,
}

impl JoinableWord for Word {
    fn text(&self) -> &str {
        &self.text
    }

    fn times(&self) -> (f64, f64) {
        (self.start, self.end)
    }
}

/// Continuous speech by one speaker on one channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Utterance {
    pub text: String,
    /// The start of its first word, in seconds.
    pub start: f64,
    /// The end of its last word, in seconds.
    pub end: f64,
    /// The mean of its words' confidence, from 0 to 1.
    pub confidence: f64,
    /// The number of the channel, from 0.
    pub channel: u32,
    /// The number of the speaker by first appearance, from 0; absent without diarization.
    pub speaker: Option<u32>,
    /// A language code such as `en`; empty when unknown.
    pub language: String,
    /// The words; may be empty, because some services send the text alone.
    pub words: Vec<Word>,
}

/// The speech of a whole recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    /// Language codes, the predominant language first.
    pub languages: Vec<String>,
    /// The utterances, ordered by `start`.
    pub utterances: Vec<Utterance>,
}

impl JoinableWord for Utterance {
    fn text(&self) -> &str {
        &self.text
    }

    fn times(&self) -> (f64, f64) {
        (self.start, self.end)
    }
}

impl Utterance {
    /// Returns an utterance of these words, otherwise like this one; there must be at least one word.
    #[must_use]
    pub fn with_words(&self, words: Vec<Word>) -> Self {
        let text: String = words.iter().map(|word| word.text.as_str()).collect();
        let sum: f64 = words.iter().map(|word| word.confidence).sum();
        Self {
            text: text.trim().to_owned(),
            start: words.first().map_or(self.start, |word| word.start),
            end: words.last().map_or(self.end, |word| word.end),
            confidence: (sum / words.len().max(1) as f64 * 100.0).round() / 100.0,
            channel: self.channel,
            speaker: self.speaker,
            language: self.language.clone(),
            words,
        }
    }
}

impl Transcript {
    /// Joins the texts of the utterances with spaces; empty for silence.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.utterances.iter().map(|u| u.text.as_str()).collect();
        texts.join(" ")
    }
}
