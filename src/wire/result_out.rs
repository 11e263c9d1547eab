//! A result as it is written from a transcript in memory, piece by piece: nothing of it is copied. What is read
//! is `result`.

use super::enrichment::{Enrichments, Envelope, EnvelopeError};
use super::result::ResultMetadata;
use crate::domain::transcript::{Transcript, Utterance, Word};
use serde::{Serialize, Serializer};
use std::fmt;

/// What was made of the audio (`ResultBody`).
#[derive(Serialize)]
pub struct ResultOut<'a> {
    /// How much audio, how long it took, what is billed.
    pub metadata: ResultMetadata,
    pub transcription: TranscriptionOut<'a>,
    /// What else was asked for.
    #[serde(flatten)]
    pub enrichments: Enrichments,
    /// Present when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentences: Option<Envelope<Texts<'a>>>,
    /// Present when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation: Option<Envelope<Vec<TranslatedOut<'a>>>>,
}

/// What was said (`Transcription`).
#[derive(Serialize, Clone)]
pub struct TranscriptionOut<'a> {
    /// The utterances' texts joined by one space.
    pub full_transcript: Joined<'a>,
    /// Most heard first.
    pub languages: &'a [String],
    /// In order of time.
    pub utterances: Utterances<'a>,
    /// Present when asked for: one envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentences: Option<[Envelope<Texts<'a>>; 1]>,
    /// Present when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitles: Option<Vec<SubtitlesOut<'a>>>,
}

/// A translation into one language (`Translated`).
#[derive(Serialize)]
pub struct TranslatedOut<'a> {
    /// Why there is none into this language.
    pub error: Option<EnvelopeError>,
    /// The utterances' texts joined by one space.
    pub full_transcript: Joined<'a>,
    /// The one that was translated into.
    pub languages: [&'a str; 1],
    /// In order of time.
    pub utterances: Utterances<'a>,
    /// Present when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentences: Option<[Envelope<Texts<'a>>; 1]>,
    /// Present when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitles: Option<Vec<SubtitlesOut<'a>>>,
}

/// Subtitles in one format (`Subtitles`).
#[derive(Serialize, Clone)]
pub struct SubtitlesOut<'a> {
    pub format: &'static str,
    /// The whole file's text, made when it is written.
    #[serde(serialize_with = "serialize_lazily")]
    pub subtitles: &'a (dyn Fn() -> String + Sync),
}

fn serialize_lazily<S: Serializer>(text: &(dyn Fn() -> String + Sync), to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text())
}

/// The texts of utterances, joined by one space.
#[derive(Clone, Copy)]
pub struct Joined<'a>(pub &'a [Utterance]);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, utterance) in self.0.iter().enumerate() {
            f.write_str(if number > 0 { " " } else { "" })?;
            f.write_str(&utterance.text)?;
        }
        Ok(())
    }
}

impl Serialize for Joined<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The text of each utterance.
#[derive(Clone, Copy)]
pub struct Texts<'a>(pub &'a [Utterance]);

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|utterance| &utterance.text))
    }
}

/// Utterances with their words.
#[derive(Clone, Copy)]
pub struct Utterances<'a>(pub &'a [Utterance]);

impl Serialize for Utterances<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(UtteranceOut::of))
    }
}

#[derive(Serialize)]
struct UtteranceOut<'a> {
    start: f64,
    end: f64,
    confidence: f64,
    channel: u32,
    words: Words<'a>,
    text: &'a str,
    language: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    speaker: Option<u32>,
}

impl<'a> UtteranceOut<'a> {
    fn of(utterance: &'a Utterance) -> Self {
        let Utterance { text, start, end, confidence, channel, speaker, language, words } = utterance;
        Self {
            start: *start,
            end: *end,
            confidence: *confidence,
            channel: *channel,
            words: Words(words),
            text,
            language,
            speaker: *speaker,
        }
    }
}

struct Words<'a>(&'a [Word]);

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(WordOut::of))
    }
}

#[derive(Serialize)]
struct WordOut<'a> {
    word: &'a str,
    start: f64,
    end: f64,
    confidence: f64,
}

impl<'a> WordOut<'a> {
    fn of(Word { text, start, end, confidence }: &'a Word) -> Self {
        Self { word: text, start: *start, end: *end, confidence: *confidence }
    }
}

impl<'a> TranscriptionOut<'a> {
    /// Without sentences and subtitles.
    pub fn of(transcript: &'a Transcript) -> Self {
        let utterances = transcript.utterances.as_slice();
        Self {
            full_transcript: Joined(utterances),
            languages: &transcript.languages,
            utterances: Utterances(utterances),
            sentences: None,
            subtitles: None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::wire::result::Transcription;

    /// The two ways to write a result say the same, in the same order.
    #[test]
    fn it_is_written_as_the_types_that_are_read() {
        let word = |text: &str| Word { text: text.to_owned(), start: 0.5, end: 0.75, confidence: 0.25 };
        let said = |text: &str, speaker| Utterance {
            text: text.to_owned(),
            start: 0.5,
            end: 0.75,
            confidence: 0.25,
            channel: 1,
            speaker,
            language: "en".to_owned(),
            words: vec![word(" \"a\n"), word(" b")],
        };
        let utterances = vec![said("one \"quoted\"", None), said("two", Some(3))];
        let transcript = Transcript { languages: vec!["en".to_owned()], utterances };
        let copied = serde_json::to_string(&Transcription::from_transcript(&transcript)).unwrap();
        assert_eq!(serde_json::to_string(&TranscriptionOut::of(&transcript)).unwrap(), copied);
    }
}
