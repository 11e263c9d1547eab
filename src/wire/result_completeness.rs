//! Reads from a streamed result whether each enrichment is there, and if not, why. [`Delivered::parts`] compares that
//! with what was requested.
//!
//! An unexpected shape is never an error, and no payload is kept.

use super::lax_reader::NO_SPEAKER;
use super::params::Params;
use crate::domain::missing_enrichment::{Enrichment, PartOutcome, RequestedPart};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

/// The most elements of one enrichment (translations, answers to prompts) that are examined one by one.
const MAX_PARTS: usize = 1_000;

/// The most characters that are kept of a service's error message.
const MAX_ERROR_CHARS: usize = 300;

/// The enrichments that a result delivers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Delivered {
    /// All envelopes of the result. There may be several for one enrichment, because sentences can be in two places.
    envelopes: BTreeMap<Enrichment, Vec<Envelope>>,
    speech: Speech,
}

/// What is recorded about the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Speech {
    has_text: bool,
    has_utterances: bool,
    has_speakers: bool,
}

/// The envelope of an enrichment, an element of its results, or whatever is in its place.
#[derive(Debug, Clone, PartialEq, Default)]
struct Envelope {
    /// Whether it is neither null nor false.
    is_there: bool,
    success: Option<bool>,
    is_empty: Option<bool>,
    error: Option<String>,
    has_payload: bool,
    languages: Vec<String>,
    has_text: bool,
    /// The elements of its results.
    parts: Vec<Envelope>,
}

/// What became of a part that the result does not lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Done,
    /// There is nothing to say.
    Empty,
}

/// Why a part is not there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Lack {
    /// Whether the service reports a failure; otherwise the part is just not there.
    is_failure: bool,
    /// The service's message, if there is one.
    words: Option<String>,
}

type Outcome = Result<Given, Lack>;

const MISSING: Lack = Lack { is_failure: false, words: None };

impl Envelope {
    fn outcome(&self) -> Outcome {
        if self.reports_failure() {
            return Err(Lack { is_failure: true, words: self.error.clone() });
        }
        let is_promised = self.is_empty == Some(false) || (self.success.is_none() && self.is_empty.is_none());
        match (self.is_there, is_promised && !self.has_payload) {
            (true, false) if self.is_empty == Some(true) => Ok(Given::Empty),
            (true, false) => Ok(Given::Done),
            _ => Err(MISSING),
        }
    }

    fn reports_failure(&self) -> bool {
        self.error.is_some() || self.success == Some(false)
    }

    /// Returns the outcome of a list of envelopes: that of the first that failed.
    fn outcome_with_parts(&self) -> Outcome {
        let is_envelope = |part: &&Self| part.success.is_some() || part.error.is_some();
        let given = self.outcome()?;
        self.parts.iter().filter(is_envelope).try_for_each(|part| part.outcome().map(drop))?;
        Ok(given)
    }

    /// Whether the enrichment is present and failed. An absent one does not count.
    fn has_failed(&self) -> bool {
        self.is_there && self.outcome().is_err()
    }
}

impl Delivered {
    /// Whether the transcript has any text.
    pub fn has_text(&self) -> bool {
        self.speech.has_text
    }

    /// Returns what became of each requested part, ordered by name; target languages are in the order of the request.
    /// Recognition, which nobody requests, is among them if the service tells of it.
    pub fn parts(&self, request: &Params) -> Vec<RequestedPart> {
        let mut parts = Vec::new();
        for enrichment in request.requested() {
            match enrichment {
                Enrichment::Translation => parts.extend(self.translations(&request.target_languages())),
                _ => parts.push(part(enrichment, None, self.outcome(enrichment, request))),
            }
        }
        if self.envelopes(Enrichment::Recognition).iter().any(|envelope| envelope.is_there) {
            let outcome = self.outcome(Enrichment::Recognition, request);
            parts.push(part(Enrichment::Recognition, None, outcome));
        }
        parts.sort_by_key(|part| part.enrichment);
        parts
    }

    fn envelopes(&self, enrichment: Enrichment) -> &[Envelope] {
        self.envelopes.get(&enrichment).map(Vec::as_slice).unwrap_or_default()
    }

    fn outcome(&self, enrichment: Enrichment, request: &Params) -> Outcome {
        use Enrichment as E;
        let envelopes = self.envelopes(enrichment);
        match enrichment {
            // Their effect is visible in the words only; there is an envelope only if they failed.
            E::CustomSpelling | E::CustomVocabulary | E::PiiRedaction | E::PunctuationEnhanced | E::Recognition => {
                let failed = envelopes.iter().find(|envelope| envelope.has_failed());
                let is_empty = envelopes.iter().any(|envelope| envelope.is_empty == Some(true));
                failed.map_or(Ok(if is_empty { Given::Empty } else { Given::Done }), Envelope::outcome)
            }
            // Current services send an envelope only for a failure; the speakers are in the utterances.
            E::Diarization if envelopes.iter().all(|envelope| !envelope.is_there) => {
                match (self.speech.has_speakers, self.speech.has_utterances) {
                    (true, _) => Ok(Given::Done),
                    (false, false) => Ok(Given::Empty),
                    (false, true) => Err(MISSING),
                }
            }
            E::AudioToLlm => {
                best_outcome(envelopes.iter().map(|envelope| prompt_outcome(envelope, request.prompts().len())))
            }
            _ => best_outcome(envelopes.iter().map(Envelope::outcome_with_parts)),
        }
    }

    fn translations(&self, targets: &[&str]) -> Vec<RequestedPart> {
        let enrichment = Enrichment::Translation;
        let (nothing, envelopes) = (Envelope::default(), self.envelopes(enrichment));
        let envelope = envelopes.iter().rfind(|envelope| envelope.is_there).unwrap_or(&nothing);
        if targets.is_empty() {
            return vec![part(enrichment, None, envelope.outcome())];
        }
        let translation = |(number, target): (usize, &&str)| {
            let outcome = self.translation_outcome(envelope, number, target, targets.len());
            part(enrichment, Some(target), outcome)
        };
        targets.iter().enumerate().map(translation).collect()
    }

    /// Returns the outcome of the translation into a target language.
    fn translation_outcome(&self, envelope: &Envelope, number: usize, target: &str, targets: usize) -> Outcome {
        let has_target = |part: &&Envelope| part.languages.iter().any(|language| language.eq_ignore_ascii_case(target));
        let is_in_order =
            envelope.parts.len() == targets && envelope.parts.iter().all(|part| part.languages.is_empty());
        let in_order = envelope.parts.get(number).filter(|_| is_in_order);
        let envelope_outcome = envelope.outcome();
        let Some(part) = envelope.parts.iter().find(has_target).or(in_order) else {
            let is_silent = !self.speech.has_text && envelope.is_there;
            let is_empty = envelope.is_empty == Some(true) || is_silent;
            return envelope_outcome.and(if is_empty { Ok(Given::Empty) } else { Err(MISSING) });
        };
        if part.reports_failure() {
            let words = part.error.clone().or_else(|| envelope.error.clone());
            return Err(Lack { is_failure: true, words });
        }
        match (part.has_text, envelope_outcome) {
            (true, _) => Ok(Given::Done),
            (false, Ok(_)) if !self.speech.has_text => Ok(Given::Empty),
            (false, outcome) => Err(outcome.err().unwrap_or_default()),
        }
    }
}

fn part(enrichment: Enrichment, language: Option<&str>, outcome: Outcome) -> RequestedPart {
    let (outcome, words) = match outcome {
        Ok(Given::Done) => (PartOutcome::Done, None),
        Ok(Given::Empty) => (PartOutcome::Empty, None),
        Err(Lack { is_failure: true, words }) => (PartOutcome::Failed, words),
        Err(Lack { is_failure: false, words }) => (PartOutcome::Missing, words),
    };
    RequestedPart { enrichment, language: language.map(str::to_owned), outcome, words }
}

/// Returns the outcome of the prompts: each must have an answer.
fn prompt_outcome(envelope: &Envelope, prompts: usize) -> Outcome {
    let given = envelope.outcome()?;
    let failed = envelope.parts.iter().enumerate().find_map(|(number, part)| {
        let Lack { is_failure, words } = part.outcome().err()?;
        let words = format!("prompt {}: {}", number + 1, words.unwrap_or_else(|| "no answer".to_owned()));
        Some(Lack { is_failure, words: Some(words) })
    });
    let answers = envelope.parts.len();
    let too_few = (answers < prompts && envelope.is_empty != Some(true))
        .then(|| Lack { is_failure: false, words: Some(format!("{answers} of {prompts} prompts were answered")) });
    failed.or(too_few).map_or(Ok(given), Err)
}

/// Returns the best of the outcomes of one enrichment, which can be in two places; of failures, the first one with a
/// message.
fn best_outcome(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let mut best: Outcome = Err(MISSING);
    for outcome in outcomes {
        best = match (best, outcome) {
            (Ok(Given::Done), _) | (_, Ok(Given::Done)) => Ok(Given::Done),
            (Ok(Given::Empty), _) | (_, Ok(Given::Empty)) => Ok(Given::Empty),
            (Err(known), Err(other)) => {
                Err(Lack { is_failure: known.is_failure || other.is_failure, words: known.words.or(other.words) })
            }
        };
    }
    best
}

impl<'de> Deserialize<'de> for Delivered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut delivered = Self::default();
        deserializer.deserialize_any(Reader(&mut delivered))?;
        Ok(delivered)
    }
}

/// Receives the fields of an object one by one. A value that is not an object has none.
trait Fields<'de> {
    /// Receives a field; the value must be read, whatever it is.
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error>;

    /// Receives an element of a list; `None` at its end.
    fn element<A: SeqAccess<'de>>(&mut self, list: &mut A) -> Result<Option<()>, A::Error> {
        Ok(list.next_element::<IgnoredAny>()?.map(drop))
    }

    fn scalar(&mut self, _value: Scalar<'_>) {}

    /// Called at the start of an object or a list.
    fn start(&mut self) {}
}

/// A value that is neither an object nor a list.
enum Scalar<'a> {
    Null,
    Flag(bool),
    Number,
    Text(&'a str),
}

/// Passes a value of any type to [`Fields`].
struct Reader<F>(F);

impl<'de, F: Fields<'de>> DeserializeSeed<'de> for Reader<&mut F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: Fields<'de>> Visitor<'de> for Reader<&mut F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a result")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.scalar(Scalar::Null);
        Ok(())
    }

    fn visit_bool<E>(self, flag: bool) -> Result<(), E> {
        self.0.scalar(Scalar::Flag(flag));
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.0.scalar(Scalar::Number);
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.0.scalar(Scalar::Number);
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.0.scalar(Scalar::Number);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.scalar(Scalar::Text(text));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.start();
        while self.0.element(&mut list)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.start();
        while let Some(name) = map.next_key::<String>()? {
            self.0.field(&name, &mut map)?;
        }
        Ok(())
    }
}

impl<'de> Fields<'de> for Delivered {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        if name == "transcription" {
            return map.next_value_seed(Reader(&mut Transcription(self)));
        }
        let Some(enrichment) = Enrichment::of_name(name) else {
            return map.next_value::<IgnoredAny>().map(drop);
        };
        self.envelope(enrichment, map)
    }
}

impl Delivered {
    fn envelope<'de, A: MapAccess<'de>>(&mut self, enrichment: Enrichment, map: &mut A) -> Result<(), A::Error> {
        let has_parts = matches!(enrichment, Enrichment::Translation | Enrichment::AudioToLlm | Enrichment::Sentences);
        let mut reader = EnvelopeReader::new(Cell::new(if has_parts { MAX_PARTS } else { 0 }));
        map.next_value_seed(Reader(&mut reader))?;
        let known = self.envelopes.entry(enrichment).or_default();
        if known.len() < MAX_PARTS {
            known.push(reader.envelope);
        }
        Ok(())
    }
}

/// Reads the transcript, and the envelope that may be in it.
struct Transcription<'d>(&'d mut Delivered);

impl<'de> Fields<'de> for Transcription<'_> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "sentences" => self.0.envelope(Enrichment::Sentences, map),
            "utterances" => map.next_value_seed(Reader(&mut Utterances(&mut self.0.speech))),
            "full_transcript" => {
                let mut text = Presence::default();
                map.next_value_seed(Reader(&mut text))?;
                self.0.speech.has_text |= text.is_there;
                Ok(())
            }
            _ => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

struct Utterances<'s>(&'s mut Speech);

impl<'de> Fields<'de> for Utterances<'_> {
    fn field<A: MapAccess<'de>>(&mut self, _name: &str, map: &mut A) -> Result<(), A::Error> {
        map.next_value::<IgnoredAny>().map(drop)
    }

    fn element<A: SeqAccess<'de>>(&mut self, list: &mut A) -> Result<Option<()>, A::Error> {
        list.next_element_seed(Reader(&mut Utterance(&mut *self.0)))
    }
}

struct Utterance<'s>(&'s mut Speech);

impl<'de> Fields<'de> for Utterance<'_> {
    fn start(&mut self) {
        self.0.has_utterances = true;
    }

    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let (mut value, speech) = (Presence::default(), &mut *self.0);
        match name {
            "speaker" => {
                map.next_value_seed(Reader(&mut value))?;
                speech.has_speakers |= value.is_there;
            }
            "text" => {
                map.next_value_seed(Reader(&mut value))?;
                speech.has_text |= value.is_there;
            }
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }
}

/// Whether a value has content: it is not null, false, blank text, or an empty list or object.
#[derive(Default)]
struct Presence {
    is_there: bool,
}

impl<'de> Fields<'de> for Presence {
    fn scalar(&mut self, scalar: Scalar<'_>) {
        self.is_there = match scalar {
            Scalar::Null => false,
            Scalar::Flag(flag) => flag,
            Scalar::Number => true,
            Scalar::Text(text) => !text.trim().is_empty() && text != NO_SPEAKER,
        };
    }

    fn field<A: MapAccess<'de>>(&mut self, _name: &str, map: &mut A) -> Result<(), A::Error> {
        self.is_there = true;
        map.next_value::<IgnoredAny>().map(drop)
    }

    fn element<A: SeqAccess<'de>>(&mut self, list: &mut A) -> Result<Option<()>, A::Error> {
        let element = list.next_element::<IgnoredAny>()?;
        self.is_there |= element.is_some();
        Ok(element.map(drop))
    }
}

/// Reads an envelope. `parts` is how many elements of its results may still be read.
struct EnvelopeReader {
    envelope: Envelope,
    parts: Cell<usize>,
}

impl EnvelopeReader {
    fn new(parts: Cell<usize>) -> Self {
        Self { envelope: Envelope::default(), parts }
    }
}

impl<'de> Fields<'de> for EnvelopeReader {
    fn start(&mut self) {
        self.envelope.is_there = true;
    }

    fn scalar(&mut self, scalar: Scalar<'_>) {
        self.envelope.is_there = !matches!(scalar, Scalar::Null | Scalar::Flag(false));
        self.envelope.has_payload = self.envelope.is_there;
    }

    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let envelope = &mut self.envelope;
        match name {
            "success" => envelope.success = flag(map)?,
            "is_empty" => envelope.is_empty = flag(map)?,
            "exec_time" => drop(map.next_value::<IgnoredAny>()?),
            "error" => {
                let mut error = ErrorReader::default();
                map.next_value_seed(Reader(&mut error))?;
                envelope.error = error.words();
            }
            "results" if self.parts.get() > 0 => {
                let mut results = EnvelopeReader::new(Cell::new(self.parts.take()));
                map.next_value_seed(Reader(&mut results))?;
                envelope.has_payload |= results.envelope.is_there;
                envelope.parts = results.envelope.parts;
            }
            "language" | "languages" => {
                let mut languages = Texts::default();
                map.next_value_seed(Reader(&mut languages))?;
                envelope.languages.extend(languages.0);
            }
            "full_transcript" | "utterances" => {
                let mut text = Presence::default();
                map.next_value_seed(Reader(&mut text))?;
                envelope.has_text |= text.is_there;
                envelope.has_payload |= text.is_there;
            }
            // `results`, or a payload under another name.
            _ => {
                let mut value = NotNull::default();
                map.next_value_seed(Reader(&mut value))?;
                envelope.has_payload |= value.0;
            }
        }
        Ok(())
    }

    fn element<A: SeqAccess<'de>>(&mut self, list: &mut A) -> Result<Option<()>, A::Error> {
        self.envelope.has_payload = true;
        let left = self.parts.get();
        if left == 0 {
            return Ok(list.next_element::<IgnoredAny>()?.map(drop));
        }
        let mut part = EnvelopeReader::new(Cell::new(0));
        let element = list.next_element_seed(Reader(&mut part))?;
        if element.is_some() {
            self.parts.set(left - 1);
            self.envelope.parts.push(part.envelope);
        }
        Ok(element)
    }
}

fn flag<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<bool>, A::Error> {
    let mut flag = Flag::default();
    map.next_value_seed(Reader(&mut flag))?;
    Ok(flag.0)
}

#[derive(Default)]
struct Flag(Option<bool>);

impl<'de> Fields<'de> for Flag {
    fn scalar(&mut self, scalar: Scalar<'_>) {
        if let Scalar::Flag(flag) = scalar {
            self.0 = Some(flag);
        }
    }

    fn field<A: MapAccess<'de>>(&mut self, _name: &str, map: &mut A) -> Result<(), A::Error> {
        map.next_value::<IgnoredAny>().map(drop)
    }
}

/// Whether a value is not null: an empty list may be a payload.
#[derive(Default)]
struct NotNull(bool);

impl<'de> Fields<'de> for NotNull {
    fn start(&mut self) {
        self.0 = true;
    }

    fn scalar(&mut self, scalar: Scalar<'_>) {
        self.0 = !matches!(scalar, Scalar::Null);
    }

    fn field<A: MapAccess<'de>>(&mut self, _name: &str, map: &mut A) -> Result<(), A::Error> {
        map.next_value::<IgnoredAny>().map(drop)
    }
}

/// Reads a text or the texts of a list, about ten at most.
#[derive(Default)]
struct Texts(Vec<String>);

impl<'de> Fields<'de> for Texts {
    fn scalar(&mut self, scalar: Scalar<'_>) {
        if let Scalar::Text(text) = scalar {
            self.0.push(shorten(text));
        }
    }

    fn field<A: MapAccess<'de>>(&mut self, _name: &str, map: &mut A) -> Result<(), A::Error> {
        map.next_value::<IgnoredAny>().map(drop)
    }

    fn element<A: SeqAccess<'de>>(&mut self, list: &mut A) -> Result<Option<()>, A::Error> {
        let mut text = Self::default();
        let element = list.next_element_seed(Reader(&mut text))?;
        if self.0.len() < 10 {
            self.0.append(&mut text.0);
        }
        Ok(element)
    }
}

/// Reads the error of an envelope: a text, or an object with a message.
#[derive(Default)]
struct ErrorReader {
    is_error: bool,
    text: Option<String>,
    message: Option<String>,
    exception: Option<String>,
}

impl ErrorReader {
    /// Returns the message; `None` if there is no error.
    fn words(self) -> Option<String> {
        let messages = [self.message, self.exception, self.text].into_iter().flatten();
        let words = messages.into_iter().find(|words| !words.trim().is_empty());
        self.is_error.then(|| words.unwrap_or_else(|| "the service reports an error and says no more".to_owned()))
    }
}

impl<'de> Fields<'de> for ErrorReader {
    fn scalar(&mut self, scalar: Scalar<'_>) {
        self.is_error = !matches!(scalar, Scalar::Null | Scalar::Flag(false) | Scalar::Text(""));
        if let Scalar::Text(text) = scalar {
            self.text = Some(shorten(text));
        }
    }

    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let (mut words, mut value) = (Texts::default(), NotNull::default());
        let target = match name {
            "message" => &mut self.message,
            "exception" => &mut self.exception,
            _ => {
                map.next_value_seed(Reader(&mut value))?;
                self.is_error |= value.0;
                return Ok(());
            }
        };
        map.next_value_seed(Reader(&mut words))?;
        *target = words.0.pop();
        self.is_error |= target.is_some();
        Ok(())
    }
}

/// Returns the start of a service's message.
pub fn shorten(text: &str) -> String {
    let short: String = text.trim().chars().take(MAX_ERROR_CHARS).collect();
    if short.len() < text.trim().len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::missing_enrichment::{MissingPart, join_names};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn missing(request: &Value, result: &Value) -> Vec<MissingPart> {
        let delivered: Delivered = serde_json::from_str(&result.to_string()).unwrap();
        let parts = delivered.parts(&Params::parse_lenient(request));
        parts.iter().filter_map(RequestedPart::as_missing).collect()
    }

    fn said() -> Value {
        json!({ "full_transcript": "hello", "utterances": [{ "text": "hello", "start": 0, "end": 1 }] })
    }

    fn failed(message: &str) -> Value {
        let error = json!({ "status_code": 500, "exception": "Timeout", "message": message });
        json!({ "success": false, "is_empty": true, "exec_time": 0, "error": error, "results": null })
    }

    /// The enrichments that have an envelope of their own.
    const WITH_ENVELOPE: [Enrichment; 10] = [
        Enrichment::Chapterization,
        Enrichment::DisplayMode,
        Enrichment::Moderation,
        Enrichment::NameConsistency,
        Enrichment::NamedEntityRecognition,
        Enrichment::Sentences,
        Enrichment::SentimentAnalysis,
        Enrichment::SpeakerReidentification,
        Enrichment::StructuredDataExtraction,
        Enrichment::Summarization,
    ];

    #[test]
    fn an_enrichment_that_failed_or_was_left_out_is_missing() {
        for one in WITH_ENVELOPE {
            let (name, request) = (one.name(), json!({ one.name(): true }));
            let of = |envelope: Value| missing(&request, &json!({ "transcription": said(), name: envelope }));
            let whole = |words: Option<&str>| {
                vec![MissingPart { enrichment: one, language: None, words: words.map(str::to_owned) }]
            };
            assert_eq!(missing(&request, &json!({ "transcription": said() })), whole(None), "{name} left out");
            assert_eq!(of(Value::Null), whole(None));
            assert_eq!(of(json!({})), whole(None));
            assert_eq!(of(failed("out of memory")), whole(Some("out of memory")));
            assert_eq!(of(json!({ "success": false })), whole(None));
            assert_eq!(of(json!({ "success": true, "error": { "exception": "Timeout" } })), whole(Some("Timeout")));
            assert_eq!(of(json!({ "success": true, "error": "timed out", "results": "x" })), whole(Some("timed out")));
            assert_eq!(of(json!({ "success": true, "is_empty": false, "results": null })), whole(None));
            for done in [
                json!({ "success": true, "is_empty": false, "error": null, "results": "x" }),
                json!({ "success": true, "is_empty": true, "error": null, "results": null }),
                json!({ "success": true, "is_empty": false, "error": {}, "results": [] }),
                json!({ "success": true, "is_empty": false, "error": null, "entity": "Ada" }),
                json!({ "success": null, "results": { "a": 1 } }),
                json!("a text in its place"),
            ] {
                assert_eq!(of(done.clone()), [], "{name}: {done}");
            }
        }
    }

    #[test]
    fn what_failed_is_told_from_what_is_missing_and_from_what_is_empty() {
        let outcome = |request: Value, result: Value| {
            let delivered: Delivered = serde_json::from_str(&result.to_string()).unwrap();
            let parts = delivered.parts(&Params::parse_lenient(&request));
            parts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        let of = |envelope: Value| outcome(json!({ "summarization": true }), json!({ "summarization": envelope }));
        assert_eq!(of(json!({ "success": true, "is_empty": false, "results": "x" })), "summarization done");
        assert_eq!(of(json!({ "success": true, "is_empty": true, "results": null })), "summarization empty");
        assert_eq!(of(failed("out of memory")), "summarization failed: out of memory");
        assert_eq!(of(json!({ "success": false })), "summarization failed");
        assert_eq!(of(json!({ "success": true, "is_empty": false, "results": null })), "summarization missing");
        assert_eq!(of(Value::Null), "summarization missing");
        let request =
            json!({ "translation": true, "translation_config": { "target_languages": ["fr", "de", "it", "es"] } });
        let results = json!([
            { "error": null, "languages": ["de"], "full_transcript": "x" },
            { "error": { "message": "no model" }, "languages": ["fr"], "full_transcript": "" },
            { "error": null, "languages": ["it"], "full_transcript": "" },
        ]);
        let envelope = json!({ "success": true, "is_empty": false, "error": null, "results": results });
        let told =
            "translation fr failed: no model; translation de done; translation it missing; translation es missing";
        assert_eq!(outcome(request.clone(), json!({ "transcription": said(), "translation": envelope })), told);
        let silence = json!({ "full_transcript": "", "utterances": [] });
        let envelope = json!({ "success": true, "is_empty": true, "results": [] });
        let told = "translation fr empty; translation de empty; translation it empty; translation es empty";
        assert_eq!(outcome(request, json!({ "transcription": silence, "translation": envelope })), told);
        let diarized = json!({ "diarization": true });
        assert_eq!(outcome(diarized.clone(), json!({ "transcription": { "utterances": [] } })), "diarization empty");
        assert_eq!(outcome(diarized, json!({ "transcription": said() })), "diarization missing");
        let recognition = json!({ "recognition": { "success": true, "is_empty": true } });
        assert_eq!(outcome(json!({}), recognition), "recognition empty");
        assert_eq!(outcome(json!({}), json!({ "transcription": said() })), "");
    }

    #[test]
    fn what_was_not_requested_is_not_missing() {
        let result = json!({ "transcription": said(), "summarization": failed("x"), "diarization": failed("x") });
        assert_eq!(missing(&json!({}), &result), []);
        assert_eq!(missing(&json!({ "summarization": false, "diarization": null }), &result), []);
    }

    #[test]
    fn each_target_language_counts_for_itself() {
        let request =
            json!({ "translation": true, "translation_config": { "target_languages": ["en", "fr", "de", "it"] } });
        let done = |language: &str| json!({ "error": null, "languages": [language], "full_transcript": "x" });
        let bad = json!({ "error": { "message": "no model" }, "languages": ["fr"], "full_transcript": "" });
        let empty = json!({ "error": null, "languages": ["it"], "full_transcript": "", "utterances": [] });
        let of = |envelope: Value| missing(&request, &json!({ "transcription": said(), "translation": envelope }));
        for success in [true, false] {
            let results = json!([done("EN"), bad, done("de"), empty]);
            let told = of(json!({ "success": success, "is_empty": false, "error": null, "results": results }));
            assert_eq!(join_names(&told), "translation fr, translation it");
            assert_eq!(told[0].words.as_deref(), Some("no model"));
        }
        let left_out = of(json!({ "success": true, "is_empty": false, "results": [done("en")] }));
        assert_eq!(join_names(&left_out), "translation fr, translation de, translation it");
        assert_eq!(join_names(&of(failed("quota"))), "translation en, translation fr, translation de, translation it");
        assert!(of(failed("quota")).iter().all(|part| part.words.as_deref() == Some("quota")));
        assert_eq!(join_names(&of(Value::Null)), "translation en, translation fr, translation de, translation it");
        let nameless = json!({ "full_transcript": "x" });
        let in_order = json!([nameless, nameless, { "error": "late" }, nameless]);
        assert_eq!(join_names(&of(json!({ "success": true, "results": in_order }))), "translation de");
        let silence = json!({ "full_transcript": "", "utterances": [] });
        let of_silence =
            |envelope: Value| missing(&request, &json!({ "transcription": silence, "translation": envelope }));
        assert_eq!(of_silence(json!({ "success": true, "is_empty": true, "results": [] })), []);
        assert_eq!(of_silence(json!({ "success": true, "results": [empty, done("en")] })), []);
        let no_targets = json!({ "translation": true });
        assert_eq!(join_names(&missing(&no_targets, &json!({ "translation": failed("x") }))), "translation");
    }

    #[test]
    fn speakers_at_the_utterances_are_a_diarization() {
        let request = json!({ "diarization": true });
        let by = |speaker: Value| {
            let utterances = json!([{ "text": "a", "speaker": speaker }, { "text": "b" }]);
            missing(&request, &json!({ "transcription": { "full_transcript": "a b", "utterances": utterances } }))
        };
        assert_eq!((by(json!(0)), by(json!("A"))), (vec![], vec![]));
        for speaker in [Value::Null, json!("speaker_not_activated")] {
            assert_eq!(join_names(&by(speaker)), "diarization");
        }
        assert_eq!(missing(&request, &json!({ "transcription": { "utterances": [] } })), [], "nobody speaks");
        let envelope = json!({ "transcription": said(), "diarization": failed("no") });
        assert_eq!(join_names(&missing(&request, &envelope)), "diarization");
    }

    #[test]
    fn sentences_may_stand_in_either_place() {
        let request = json!({ "sentences": true });
        let done = json!({ "success": true, "is_empty": false, "results": ["Hello."] });
        let inner = |envelope: Value| json!({ "full_transcript": "hello", "sentences": envelope });
        for result in [
            json!({ "sentences": done }),
            json!({ "transcription": inner(json!([done])) }),
            json!({ "transcription": inner(json!([done])), "sentences": failed("x") }),
            json!({ "transcription": inner(json!([failed("x")])), "sentences": done }),
        ] {
            assert_eq!(missing(&request, &result), [], "{result}");
        }
        for result in [json!({}), json!({ "transcription": inner(json!([failed("x")])) }), json!({ "sentences": null })]
        {
            assert_eq!(join_names(&missing(&request, &result)), "sentences", "{result}");
        }
    }

    #[test]
    fn every_prompt_is_to_be_answered() {
        let request = json!({ "audio_to_llm": true, "audio_to_llm_config": { "prompts": ["one", "two"] } });
        let answer = json!({ "success": true, "is_empty": false, "results": { "prompt": "one", "response": "1" } });
        let of = |results: Value| {
            let envelope = json!({ "success": true, "is_empty": false, "results": results });
            missing(&request, &json!({ "audio_to_llm": envelope })).pop().map(|part| part.words.unwrap_or_default())
        };
        assert_eq!(of(json!([answer, answer])), None);
        assert_eq!(of(json!([answer, failed("quota")])), Some("prompt 2: quota".to_owned()));
        assert_eq!(of(json!([answer])), Some("1 of 2 prompts were answered".to_owned()));
    }

    #[test]
    fn what_shows_in_the_words_is_missing_where_its_envelope_says_so() {
        let request = json!({ "custom_vocabulary": true, "custom_spelling": true, "punctuation_enhanced": true });
        assert_eq!(missing(&request, &json!({ "transcription": said() })), []);
        let result = json!({ "custom_vocabulary": failed("unknown word"), "custom_spelling": null });
        assert_eq!(join_names(&missing(&request, &result)), "custom_vocabulary");
    }

    #[test]
    fn what_a_service_says_is_kept_short() {
        let told = missing(&json!({ "summarization": true }), &json!({ "summarization": failed(&"x".repeat(5_000)) }));
        assert_eq!(told[0].words.as_ref().unwrap().chars().count(), MAX_ERROR_CHARS + 1);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let names = Enrichment::ALL.map(Enrichment::name).into_iter().chain([
            "success",
            "is_empty",
            "error",
            "message",
            "results",
            "languages",
            "transcription",
            "utterances",
            "speaker",
            "text",
            "full_transcript",
        ]);
        let names = prop::sample::select(names.map(str::to_owned).collect::<Vec<_>>());
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z ]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 60, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(names.clone(), inner, 0..6)
                    .prop_map(|map| Value::from(serde_json::Map::from_iter(map))),
            ]
        })
    }

    proptest! {
        /// Every result can be read, and each part of a request is named at most once.
        #[test]
        fn any_result_is_read(result in any_json()) {
            let all: serde_json::Map<String, Value> =
                Enrichment::ALL.iter().map(|one| (one.name().to_owned(), json!(true))).collect();
            let told = missing(&Value::Object(all), &result);
            prop_assert!(told.is_sorted_by(|one, next| one.enrichment < next.enrichment));
        }
    }
}
