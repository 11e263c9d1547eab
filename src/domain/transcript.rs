//! What was said: the part of a result that outputs are made from, free of any interface's spelling.

#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// As displayed. Carries its own leading space where the language writes one, so that an
    /// utterance's text is the concatenation of its words, trimmed.
    pub text: String,
    /// Seconds from the start of the recording.
    pub start: f64,
    /// Seconds from the start of the recording, never before `start`.
    pub end: f64,
    /// 0 (a guess) to 1 (certain).
    pub confidence: f64,
}

/// A stretch of speech by one speaker on one channel, between two pauses.
#[derive(Debug, Clone, PartialEq)]
pub struct Utterance {
    pub text: String,
    /// Seconds; that of the first word.
    pub start: f64,
    /// Seconds; that of the last word.
    pub end: f64,
    /// 0 to 1, the mean of the words'.
    pub confidence: f64,
    /// Counted from 0.
    pub channel: u32,
    /// By order of appearance, from 0; absent when diarization is off.
    pub speaker: Option<u32>,
    /// A language code such as `en`; empty when unknown.
    pub language: String,
    /// May be empty: some services send the text alone.
    pub words: Vec<Word>,
}

/// A whole recording's speech, in order of time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    /// Codes from the most to the least heard.
    pub languages: Vec<String>,
    /// In order of `start`.
    pub utterances: Vec<Utterance>,
}

impl Transcript {
    /// The utterances' texts joined by one space; empty for silence.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.utterances.iter().map(|u| u.text.as_str()).collect();
        texts.join(" ")
    }
}
