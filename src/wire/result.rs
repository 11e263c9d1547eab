//! The result of a transcription (interface, "Result object") and the file that it was made from.

use crate::domain::audio_length::{MOST_MILLIS, is_plausible_length};
use crate::domain::format::Format;
use crate::domain::missing_enrichment::Enrichment;
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::stage::AudioAmount;
#[cfg(test)]
use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::wire::bounded_value::BoundedValue;
use crate::wire::enrichment::{Enrichments, Envelope, Sentence};
use crate::wire::known_speakers::{KNOWN_SPEAKERS, speaker_names};
use crate::wire::lax_reader::{Lax, Reads};
use crate::wire::record::error_text;
use crate::wire::transcript_reader::{DiarizedSpeech, ReadTranscript};
use schemars::JsonSchema;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// The audio file of a transcription.
// Interface, "file object".
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct File {
    /// Id of the file, for `GET /file/{id}`.
    pub id: Option<String>,
    /// Name of the file, without folders; null if unknown.
    pub filename: Option<String>,
    /// URL that the service fetched the file from; null if the file was uploaded.
    pub source: Option<String>,
    /// Duration of the audio in seconds; null if unknown.
    pub audio_duration: Option<f64>,
    /// Number of channels in the file, equal channels included; null if unknown.
    pub number_of_channels: Option<u32>,
}

/// Result of a transcription.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultBody {
    /// Duration of the audio, processing time and billed time.
    pub metadata: ResultMetadata,
    /// The transcript; absent if the result has only metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcription: Option<Transcription>,
    /// The requested enrichments, each under its name.
    #[serde(flatten)]
    pub enrichments: Enrichments,
}

/// The part of a result that outputs are made from. Enrichments are skipped, so their shape does not matter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spoken {
    /// The transcript; what the diarization says, if nothing is said in it. Some results have only metadata.
    pub transcription: Option<ReadTranscript>,
    /// Whether the service reports if the speech was recognised, which cannot be requested.
    pub has_recognition_metadata: bool,
    /// The duration of the audio in seconds, if the service reports it.
    pub audio_seconds: Option<f64>,
}

impl Spoken {
    fn is_silent(&self) -> bool {
        self.transcription.as_ref().is_none_or(ReadTranscript::is_silent)
    }

    /// Returns the transcript. Where a result with something to write has none, it could not be read.
    pub fn into_speech(self) -> ReadTranscript {
        self.transcription.unwrap_or_else(|| ReadTranscript::unreadable("transcription"))
    }

    /// Stands for a result that is no object: nothing of it could be read.
    fn unreadable() -> Self {
        Self { transcription: Some(ReadTranscript::unreadable("result")), ..Self::default() }
    }
}

impl<'de> Deserialize<'de> for Spoken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpokenVisitor)
    }
}

struct SpokenVisitor;

impl<'de> Visitor<'de> for SpokenVisitor {
    type Value = Spoken;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a result")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Spoken, A::Error> {
        let (mut spoken, mut diarized) = (Spoken::default(), None);
        let mut names = SpeakerNames::default();
        while let Some(key) = map.next_key::<String>()? {
            if key == "transcription" {
                spoken.transcription = map.next_value()?;
            } else if key == Enrichment::Diarization.name() && spoken.is_silent() {
                diarized = map.next_value::<Option<DiarizedSpeech>>()?;
            } else if key == KNOWN_SPEAKERS {
                names = speaker_names(&map.next_value()?);
            } else if key == "metadata" {
                spoken.audio_seconds = map.next_value::<BoundedValue>()?.get("audio_duration").and_then(Value::as_f64);
            } else if key == Enrichment::Recognition.name() {
                spoken.has_recognition_metadata |= map.next_value::<Option<IgnoredAny>>()?.is_some();
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if let Some(DiarizedSpeech(speech)) = diarized.filter(|_| spoken.is_silent())
            && !speech.is_silent()
        {
            spoken.transcription = Some(spoken.transcription.unwrap_or_default().with_speech_of(speech));
        }
        spoken.transcription = spoken.transcription.map(|speech| speech.with_speaker_names(names));
        Ok(spoken)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Spoken, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Spoken::unreadable())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Spoken, E> {
        Ok(Spoken::unreadable())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Spoken, E> {
        Ok(Spoken::unreadable())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Spoken, E> {
        Ok(Spoken::unreadable())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Spoken, E> {
        Ok(Spoken::unreadable())
    }

    fn visit_str<E>(self, _: &str) -> Result<Spoken, E> {
        Ok(Spoken::unreadable())
    }
}

/// The part of a result that is examined before the result is stored as received. A result that is no object has
/// nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResultHead {
    metadata: BoundedValue,
    has_transcription: bool,
    has_enrichment: bool,
    /// What some services write in place of a transcript.
    error: BoundedValue,
}

impl<'de> Deserialize<'de> for ResultHead {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Lax(HeadReader)).map(Option::unwrap_or_default)
    }
}

struct HeadReader;

impl<'de> Reads<'de> for HeadReader {
    type Value = ResultHead;

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<ResultHead>, A::Error> {
        let mut head = ResultHead::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "metadata" => head.metadata = map.next_value()?,
                "error" => head.error = map.next_value()?,
                "transcription" => head.has_transcription |= map.next_value::<Option<IgnoredAny>>()?.is_some(),
                name if Enrichment::of_name(name).is_some() => {
                    head.has_enrichment |= map.next_value::<Option<IgnoredAny>>()?.is_some();
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Some(head))
    }
}

impl ResultHead {
    /// Whether the result contains a transcript.
    pub fn has_transcription(&self) -> bool {
        self.has_transcription
    }

    /// Whether the result contains a transcript or an enrichment: something that can be written.
    pub fn has_content(&self) -> bool {
        self.has_transcription || self.has_enrichment
    }

    /// Returns the error that the result names, if it does.
    pub fn error(&self) -> Option<&str> {
        self.error.0.as_ref().and_then(error_text)
    }

    /// Returns how much audio the result was made from; 0 for values that are missing or invalid.
    pub fn audio(&self) -> AudioAmount {
        let channels = ["number_of_distinct_channels", "number_of_channels"];
        let channels = channels.iter().find_map(|name| self.metadata.get(name)?.as_u64());
        AudioAmount {
            millis: self.metadata.get("audio_duration").and_then(Value::as_f64).map_or(0, length_millis),
            channels: channels.and_then(|n| u32::try_from(n).ok()).unwrap_or_default(),
            billed: self.metadata.get("billing_time").and_then(Value::as_f64).and_then(billed_millis),
        }
    }
}

/// How much audio a result was made from, and what of it was billed, in milliseconds. It can be read from a result of any shape, so that an invalid item of
/// a list does not hide the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResultBill {
    pub billed: Option<u64>,
    /// The length of the audio.
    pub millis: Option<u64>,
}

impl<'de> Deserialize<'de> for ResultBill {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BillVisitor)
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
        let billed = audio.billed.or_else(|| audio.reservation_millis());
        Ok(ResultBill { billed, millis: Some(audio.millis).filter(|millis| *millis > 0) })
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

/// Amounts of a result. Times are in seconds; unknown values are absent.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultMetadata {
    /// Duration of the audio in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_duration: Option<f64>,
    /// Number of different channels: channels with equal sound count once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_distinct_channels: Option<u32>,
    /// The same number as `number_of_distinct_channels`, under an older name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_channels: Option<u32>,
    /// Billed seconds: `audio_duration` times `number_of_distinct_channels`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billing_time: Option<f64>,
    /// Seconds from the creation to the end of the transcription.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcription_time: Option<f64>,
    /// The requested parameters that had no effect, or less than their name promises. Enrichments that failed say so in
    /// their envelopes, not here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters_without_effect: Vec<ParameterWithoutEffect>,
}

/// A requested parameter that had no effect, or less than its name promises.
// Not in the interface.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ParameterWithoutEffect {
    /// The dotted path; `[]` stands for the elements of a list.
    pub parameter: String,
    pub reason: String,
}

/// A transcript.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Transcription {
    /// Texts of all utterances, joined by one space.
    pub full_transcript: String,
    /// Codes of the languages that were spoken, the most frequent first.
    pub languages: Vec<String>,
    /// Utterances, in order of time.
    pub utterances: Vec<WireUtterance>,
    /// Sentences: a list with one envelope. Present if requested.
    // Interface, "Result object".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Envelope<Vec<Sentence>>>>")]
    pub sentences: Option<Value>,
    /// Subtitles, one item for each requested format. Present if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitles: Option<Vec<Subtitles>>,
}

/// Subtitles in one format.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Subtitles {
    /// Format of the subtitles: `srt` or `vtt`.
    pub format: String,
    /// Content of the subtitle file.
    pub subtitles: String,
}

/// An utterance. Times are in seconds from the start of the audio.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct WireUtterance {
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// Confidence from 0 to 1: the mean of the words. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Index of the channel, from 0. If it is absent, it is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<u32>,
    /// Words, in order of time.
    pub words: Vec<WireWord>,
    /// Text of the utterance: its words joined, without blanks at both ends.
    pub text: String,
    /// Code of the language; empty if unknown.
    pub language: String,
    /// Index of the speaker, in order of appearance. Absent without diarization.
    // Older answers have a text here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<Value>,
}

/// A word. Times are in seconds from the start of the audio.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct WireWord {
    /// The word, with the space before it.
    pub word: String,
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// Confidence from 0 to 1. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

#[cfg(test)]
impl Transcription {
    /// Converts a transcript into the interface's form, without subtitles.
    pub fn from_transcript(transcript: &Transcript) -> Self {
        Self {
            full_transcript: transcript.text(),
            languages: transcript.languages.clone(),
            utterances: transcript.utterances.iter().map(WireUtterance::from_utterance).collect(),
            ..Self::default()
        }
    }

    /// Converts to the form that outputs are made from. A text without utterances becomes one utterance without times.
    pub fn to_transcript(&self) -> Transcript {
        let mut utterances: Vec<Utterance> = self.utterances.iter().map(WireUtterance::to_utterance).collect();
        if utterances.is_empty() && !self.full_transcript.trim().is_empty() {
            utterances.push(WireUtterance { text: self.full_transcript.clone(), ..Default::default() }.to_utterance());
        }
        Transcript { languages: self.languages.clone(), utterances }
    }
}

#[cfg(test)]
impl WireUtterance {
    /// Converts an utterance into the interface's form.
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

#[cfg(test)]
impl WireWord {
    fn from_word(word: &Word) -> Self {
        Self { word: word.text.clone(), start: word.start, end: word.end, confidence: Some(word.confidence) }
    }

    fn to_word(&self) -> Word {
        let confidence = self.confidence.unwrap_or(0.0);
        Word { text: self.word.clone(), start: self.start, end: self.end, confidence }
    }
}

/// Converts seconds of the interface to milliseconds; 0 if the value is not a duration.
pub fn millis(seconds: f64) -> u64 {
    // A cast from a float saturates, and maps NaN to 0.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating is what is meant")]
    let millis = (seconds * 1000.0).round() as u64;
    millis
}

/// Converts the length of a recording in seconds to milliseconds; 0 if no recording can have this length.
pub fn length_millis(seconds: f64) -> u64 {
    let millis = millis(seconds);
    if is_plausible_length(millis) { millis } else { 0 }
}

/// Converts billed seconds to milliseconds; `None` if that much cannot be billed for one recording.
fn billed_millis(seconds: f64) -> Option<u64> {
    (seconds >= 0.0).then(|| millis(seconds)).filter(|millis| *millis <= MOST_MILLIS)
}

#[cfg(test)]
impl Transcription {
    /// Returns the subtitles of the result, by format.
    pub fn subtitles_by_format(&self) -> Vec<(Format, String)> {
        self.subtitles.iter().flatten().cloned().filter_map(Subtitles::into_known).collect()
    }
}

impl Subtitles {
    /// Returns the format and the text, if scribed writes the format.
    pub fn into_known(self) -> Option<(Format, String)> {
        Some((Self::format(&self.format)?, self.subtitles))
    }

    /// Whether scribed writes the format of this name.
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
