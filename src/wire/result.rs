//! The result of a transcription (interface, "Result object") and the file it was made from.

use crate::domain::format::Format;
use crate::domain::missing_enrichment::Enrichment;
use crate::domain::stage::AudioAmount;
use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::wire::bounded_value::BoundedValue;
use crate::wire::enrichment::{Enrichments, Envelope, Sentence};
use crate::wire::transcript_reader::ReadTranscript;
use schemars::JsonSchema;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::fmt;

/// The audio a transcription was made from (interface, "file object").
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct File {
    /// The upload's id.
    pub id: Option<String>,
    /// The name it was sent under.
    pub filename: Option<String>,
    /// Where it was fetched from; null for uploads.
    pub source: Option<String>,
    /// Seconds.
    pub audio_duration: Option<f64>,
    /// Counted in the file.
    pub number_of_channels: Option<u32>,
}

/// What was made of the audio.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultBody {
    /// How much audio, how long it took, what is billed.
    pub metadata: ResultMetadata,
    /// What was said. Some answers hold their metadata alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcription: Option<Transcription>,
    /// What else was asked for, by the interface's names.
    #[serde(flatten)]
    pub enrichments: Enrichments,
}

/// As much of a result as outputs are made from: nothing that an enrichment may hold can spoil it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spoken {
    /// Some answers hold their metadata alone.
    pub transcription: Option<ReadTranscript>,
    /// Whether the service says whether the speech was understood; nobody requests that.
    pub has_recognition_metadata: bool,
}

impl<'de> Deserialize<'de> for Spoken {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SpokenVisitor)
    }
}

struct SpokenVisitor;

impl<'de> Visitor<'de> for SpokenVisitor {
    type Value = Spoken;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a result")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Spoken, A::Error> {
        let mut spoken = Spoken::default();
        while let Some(key) = map.next_key::<String>()? {
            if key == "transcription" {
                spoken.transcription = map.next_value()?;
            } else if key == Enrichment::Recognition.name() {
                spoken.has_recognition_metadata |= map.next_value::<Option<IgnoredAny>>()?.is_some();
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(spoken)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Spoken, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Spoken::default())
    }
}

/// As much of a result as is looked at before it is kept as it came.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct ResultHead {
    metadata: BoundedValue,
    transcription: Option<IgnoredAny>,
}

impl ResultHead {
    /// Whether there is anything in it that outputs could be made from.
    pub fn has_transcription(&self) -> bool {
        self.transcription.is_some()
    }

    /// How much audio it was made from; 0 for what is not said in a form that makes sense.
    pub fn audio(&self) -> AudioAmount {
        let channels = ["number_of_distinct_channels", "number_of_channels"];
        let channels = channels.iter().find_map(|name| self.metadata.get(name)?.as_u64());
        AudioAmount {
            millis: self.metadata.get("audio_duration").and_then(Value::as_f64).map_or(0, millis),
            channels: channels.and_then(|n| u32::try_from(n).ok()).unwrap_or_default(),
            billed: self.metadata.get("billing_time").and_then(Value::as_f64).and_then(billed_millis),
        }
    }
}

/// What a result says that was billed, in milliseconds. Of whatever shape the result is: what is wrong with one
/// item of a list must not hide the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResultBill(pub Option<u64>);

impl<'de> Deserialize<'de> for ResultBill {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(BillVisitor)
    }
}

struct BillVisitor;

impl<'de> Visitor<'de> for BillVisitor {
    type Value = ResultBill;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a result")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResultBill, A::Error> {
        let mut head = ResultHead::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => head.metadata = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let audio = head.audio();
        Ok(ResultBill(audio.billed.or_else(|| audio.reservation_millis())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ResultBill, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ResultBill::default())
    }

    fn visit_unit<E>(self) -> Result<ResultBill, E> {
        Ok(ResultBill::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<ResultBill, E> {
        Ok(ResultBill::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<ResultBill, E> {
        Ok(ResultBill::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<ResultBill, E> {
        Ok(ResultBill::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<ResultBill, E> {
        Ok(ResultBill::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<ResultBill, E> {
        Ok(ResultBill::default())
    }
}

/// Amounts of a result. All in seconds. What an answer does not say is not written either.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultMetadata {
    /// Seconds of audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_duration: Option<f64>,
    /// Equal channels counted once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_distinct_channels: Option<u32>,
    /// The same under the name that older answers and the migration notes have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_channels: Option<u32>,
    /// `audio_duration` times the distinct channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billing_time: Option<f64>,
    /// From creation to completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcription_time: Option<f64>,
}

/// What was said, as the interface writes it.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Transcription {
    /// The utterances' texts joined by one space.
    pub full_transcript: String,
    /// Most heard first.
    pub languages: Vec<String>,
    /// In order of time.
    pub utterances: Vec<WireUtterance>,
    /// Present when asked for: one envelope (interface, "Result object").
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Envelope<Vec<Sentence>>>>")]
    pub sentences: Option<Value>,
    /// Present when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitles: Option<Vec<Subtitles>>,
}

/// Subtitles in one format.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Subtitles {
    /// `srt` or `vtt`.
    pub format: String,
    /// The whole file's text.
    pub subtitles: String,
}

/// An utterance as the interface writes it.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct WireUtterance {
    /// Seconds.
    pub start: f64,
    /// Seconds.
    pub end: f64,
    /// 0 to 1; some answers do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// From 0; 0 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<u32>,
    /// In order; may be empty in what is read.
    pub words: Vec<WireWord>,
    /// The words joined, trimmed.
    pub text: String,
    /// A language code.
    pub language: String,
    /// Absent when diarization is off; older answers hold a word here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<Value>,
}

/// A word as the interface writes it.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct WireWord {
    /// With its own leading space.
    pub word: String,
    /// Seconds.
    pub start: f64,
    /// Seconds.
    pub end: f64,
    /// 0 to 1; some answers do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

impl Transcription {
    /// As the interface writes it, without subtitles.
    pub fn from_transcript(transcript: &Transcript) -> Self {
        Self {
            full_transcript: transcript.text(),
            languages: transcript.languages.clone(),
            utterances: transcript.utterances.iter().map(WireUtterance::from_utterance).collect(),
            ..Self::default()
        }
    }

    /// What outputs are made from. A text without utterances becomes one utterance without times.
    pub fn to_transcript(&self) -> Transcript {
        let mut utterances: Vec<Utterance> = self.utterances.iter().map(WireUtterance::to_utterance).collect();
        if utterances.is_empty() && !self.full_transcript.trim().is_empty() {
            utterances.push(WireUtterance { text: self.full_transcript.clone(), ..Default::default() }.to_utterance());
        }
        Transcript { languages: self.languages.clone(), utterances }
    }
}

impl WireUtterance {
    /// As the interface writes it.
    pub fn from_utterance(utterance: &Utterance) -> Self {
        Self {
            start: utterance.start,
            end: utterance.end,
            confidence: Some(utterance.confidence),
            channel: Some(utterance.channel),
            words: utterance.words.iter().map(WireWord::from_word).collect(),
            text: utterance.text.clone(),
            language: utterance.language.clone(),
            speaker: utterance.speaker.map(Value::from),
        }
    }

    fn to_utterance(&self) -> Utterance {
        let speaker = self.speaker.as_ref().and_then(Value::as_u64);
        Utterance {
            text: self.text.trim().to_owned(),
            start: self.start,
            end: self.end,
            confidence: self.confidence.unwrap_or(0.0),
            channel: self.channel.unwrap_or(0),
            speaker: speaker.and_then(|n| u32::try_from(n).ok()),
            language: self.language.clone(),
            words: self.words.iter().map(WireWord::to_word).collect(),
        }
    }
}

impl WireWord {
    fn from_word(word: &Word) -> Self {
        Self { word: word.text.clone(), start: word.start, end: word.end, confidence: Some(word.confidence) }
    }

    fn to_word(&self) -> Word {
        let confidence = self.confidence.unwrap_or(0.0);
        Word { text: self.word.clone(), start: self.start, end: self.end, confidence }
    }
}

/// Seconds as the interface writes them, in milliseconds; 0 for what is no duration.
pub fn millis(seconds: f64) -> u64 {
    // A cast from a float saturates and takes NaN to 0: whatever a service sends, this is a number.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating is what is meant")]
    let millis = (seconds * 1000.0).round() as u64;
    millis
}

/// Seconds of a bill, in milliseconds; `None` for what is no number of seconds.
fn billed_millis(seconds: f64) -> Option<u64> {
    (seconds.is_finite() && seconds >= 0.0).then(|| millis(seconds))
}

impl Transcription {
    /// The subtitles that came with it, by format.
    pub fn subtitles_by_format(&self) -> Vec<(Format, String)> {
        self.subtitles.iter().flatten().cloned().filter_map(Subtitles::into_known).collect()
    }
}

impl Subtitles {
    /// They, where they are of a format that is written.
    pub fn into_known(self) -> Option<(Format, String)> {
        Some((Self::format(&self.format)?, self.subtitles))
    }

    /// Whether a format of this name is written.
    pub fn is_known(name: &str) -> bool {
        Self::format(name).is_some()
    }

    fn format(name: &str) -> Option<Format> {
        match name {
            "srt" => Some(Format::Srt),
            "vtt" => Some(Format::Vtt),
            _ => None,
        }
    }
}
