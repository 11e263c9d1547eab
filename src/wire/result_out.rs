//! Writes a result from a transcript in memory, piece by piece and without copying it. Reading is in `result`.

use super::enrichment::{Enrichments, Envelope, EnvelopeError, TranslatorNote};
use super::result::ResultMetadata;
use crate::domain::transcript::{Transcript, Utterance, Word};
use serde::{Serialize, Serializer};
use std::fmt;

/// The result, written in the form of `ResultBody`.
#[derive(Serialize)]
pub struct ResultOut<'a> {
    /// The amounts of audio, processing time and billed time.
    pub metadata: ResultMetadata,
    pub transcription: TranscriptionOut<'a>,
    /// The other enrichments.
    #[serde(flatten)]
    pub enrichments: Enrichments,
    /// Present if requested, and the operator has chosen the shapes of the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diarization: Option<Envelope<Utterances<'a>>>,
    /// Present if speakers were told apart and compared with known voices. The interface has no such field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_speakers: Option<Vec<KnownSpeakerOut>>,
    /// Present if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentences: Option<Envelope<Texts<'a>>>,
    /// Present if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translation: Option<Envelope<Vec<TranslatedOut<'a>>>>,
}

/// A speaker whose voice is known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KnownSpeakerOut {
    /// The number of the speaker in the utterances.
    pub speaker: u32,
    /// The channel on which most of it was said.
    pub channel: u32,
    pub name: String,
    /// From 0.9 to 1.
    pub confidence: f64,
}

/// The transcript, written in the form of `Transcription`.
#[derive(Serialize, Clone)]
pub struct TranscriptionOut<'a> {
    /// The texts of the utterances, joined by spaces.
    pub full_transcript: Joined<'a>,
    /// Language codes, the predominant language first.
    pub languages: &'a [String],
    /// The utterances, in order of time.
    pub utterances: Utterances<'a>,
    /// Present if requested: a list of one envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentences: Option<[Envelope<Texts<'a>>; 1]>,
    /// Present if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitles: Option<Vec<SubtitlesOut<'a>>>,
}

/// A translation into one language, written in the form of `Translated`.
#[derive(Serialize)]
pub struct TranslatedOut<'a> {
    /// Why the translation failed.
    pub error: Option<EnvelopeError>,
    /// The texts of the utterances, joined by spaces.
    pub full_transcript: Joined<'a>,
    /// The target language.
    pub languages: [&'a str; 1],
    /// The utterances, in order of time.
    pub utterances: Utterances<'a>,
    /// Present if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentences: Option<[Envelope<Texts<'a>>; 1]>,
    /// Present if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitles: Option<Vec<SubtitlesOut<'a>>>,
    /// Present if no language model has made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub translator: Option<&'a TranslatorNote>,
}

/// Subtitles in one format, written in the form of `Subtitles`.
#[derive(Serialize, Clone)]
pub struct SubtitlesOut<'a> {
    pub format: &'static str,
    /// Makes the text of the whole file when it is written.
    #[serde(serialize_with = "serialize_lazily")]
    pub subtitles: &'a (dyn Fn() -> String + Sync),
}

fn serialize_lazily<S: Serializer>(text: &(dyn Fn() -> String + Sync), serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text())
}

/// The texts of utterances, joined by spaces.
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
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The text of each utterance.
#[derive(Clone, Copy)]
pub struct Texts<'a>(pub &'a [Utterance]);

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|utterance| &utterance.text))
    }
}

/// Utterances with their words.
#[derive(Clone, Copy)]
pub struct Utterances<'a>(pub &'a [Utterance]);

impl Serialize for Utterances<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(UtteranceOut::of))
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
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(WordOut::of))
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
    /// Makes the form for a transcript, without sentences and subtitles.
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

    /// Both ways to write a result give the same JSON, in the same order.
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
