//! Enrichments of a transcript as outputs need them, independent of any interface's format. All times are in seconds
//! from the start of the recording; `None` where the service did not give one.

#[derive(Debug, Clone, PartialEq)]
pub struct Chapter {
    pub title: String,
    pub summary: Option<String>,
    pub start: Option<f64>,
    pub end: Option<f64>,
}

/// A name, number or address that was recognised in the speech.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedEntity {
    /// Such as `EMAIL_ADDRESS`; empty where the service gave only the text.
    pub kind: String,
    pub text: String,
    pub start: Option<f64>,
    pub end: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SentenceSentiment {
    /// The sentence; empty where the service described the whole recording in words.
    pub text: String,
    /// Such as `positive`, or a description.
    pub sentiment: String,
    pub emotion: Option<String>,
    pub start: Option<f64>,
    pub end: Option<f64>,
    /// From 0.
    pub channel: Option<u32>,
    /// From 0.
    pub speaker: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TimedSentence {
    pub text: String,
    pub start: Option<f64>,
    /// From 0.
    pub speaker: Option<u32>,
}

/// A prompt with the language model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptAnswer {
    /// Empty where the service did not repeat it.
    pub prompt: String,
    /// Markdown, as the model wrote it.
    pub response: String,
}
