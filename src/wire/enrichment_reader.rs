//! Reads the enrichments that outputs are made from, in every shape that the interface or the public service has. An
//! unexpected shape is no error: it costs only what is in it, and is named.

use super::enrichment_parts::{EnrichmentParts, has_failed, list, object, payload, value};
use super::lax_reader::NO_SPEAKER;
use super::tolerant::readable;
use super::transcript_reader::ReadTranscript;
use super::utterance_times::TimeLimit;
use crate::domain::enrichments::{Chapter, NamedEntity, PromptAnswer, SentenceSentiment, TimedSentence};
use crate::domain::missing_enrichment::Enrichment;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The enrichments of a result, as far as it has them and they can be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadEnrichments {
    pub summary: Option<String>,
    pub chapters: Vec<Chapter>,
    pub entities: Vec<NamedEntity>,
    pub sentiments: Vec<SentenceSentiment>,
    pub sentences: Vec<TimedSentence>,
    pub answers: Vec<PromptAnswer>,
    /// The structured data, as JSON text.
    pub data: Option<String>,
    pub moderation: Option<String>,
    /// The names that were made consistent.
    pub names: Option<String>,
    /// The speakers that were recognised.
    pub speakers: Option<String>,
    pub translations: Vec<TranslatedSpeech>,
    unread: UnreadParts,
    limit: TimeLimit,
}

/// The speech in a target language.
#[derive(Debug, Clone, PartialEq)]
pub struct TranslatedSpeech {
    /// The language code; `None` if neither the result nor the request tells it.
    pub language: Option<String>,
    pub speech: ReadTranscript,
}

/// The parts of enrichments that could not be read, with how often.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct UnreadParts(BTreeMap<String, u64>);

impl UnreadParts {
    fn count(&mut self, name: impl Into<String>) {
        *self.0.entry(name.into()).or_default() += 1;
    }
}

impl ReadEnrichments {
    /// Reads those enrichments of an answer that are `wanted`. `targets`: the target languages of the request, which
    /// tell the language of a translation where the result does not. `limit`: the latest time that they may have.
    pub fn read(answer: &str, wanted: &BTreeSet<Enrichment>, targets: &[&str], limit: TimeLimit) -> Self {
        let answer = readable(answer);
        let parts = EnrichmentParts::of(&answer);
        let mut read = Self { limit, ..Self::default() };
        for enrichment in wanted {
            for part in parts.of_enrichment(*enrichment) {
                read.add(*enrichment, part, targets);
            }
        }
        read
    }

    /// Describes for people what could not be read: `summarization, sentiment_analysis.start (3)`.
    pub fn describe_unread(&self) -> Option<String> {
        let one = |(name, count): (&String, &u64)| match count {
            1 => name.clone(),
            count => format!("{name} ({count})"),
        };
        (!self.unread.0.is_empty()).then(|| self.unread.0.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    fn add(&mut self, enrichment: Enrichment, part: &RawValue, targets: &[&str]) {
        use Enrichment as E;
        let Some(payload) = payload(part) else { return };
        let name = enrichment.name();
        match enrichment {
            E::Summarization => self.summary = self.text(name, payload).or(self.summary.take()),
            E::Moderation => self.moderation = self.text(name, payload).or(self.moderation.take()),
            E::NameConsistency => self.names = self.text(name, payload).or(self.names.take()),
            E::SpeakerReidentification => self.speakers = self.text(name, payload).or(self.speakers.take()),
            E::StructuredDataExtraction => self.data = data(payload).or(self.data.take()),
            E::Chapterization => self.chapters = self.items(name, chapter_list(payload), &chapter),
            E::NamedEntityRecognition => self.entities = self.items(name, payload, &entity),
            E::SentimentAnalysis => self.sentiments = self.items(name, payload, &sentiment),
            E::Sentences if self.sentences.is_empty() => self.sentences = self.items(name, payload, &sentence),
            E::AudioToLlm => self.answers = self.items(name, payload, &answer),
            E::Translation => self.add_translations(payload, targets),
            _ => {}
        }
    }

    fn text(&mut self, name: &str, payload: &RawValue) -> Option<String> {
        let text = value(payload).as_ref().and_then(text_of);
        if text.is_none() {
            self.unread.count(name);
        }
        text.filter(|text| !text.trim().is_empty())
    }

    /// Reads the elements of a list; a value that is no list is the only element. Elements that are envelopes are
    /// opened, and lists in them are read as well.
    fn items<T>(&mut self, name: &str, payload: &RawValue, read: &dyn Fn(&mut ItemReader<'_>) -> Option<T>) -> Vec<T> {
        let mut items = Vec::new();
        self.add_items(name, payload, read, &mut items, MAX_NESTING);
        items
    }

    fn add_items<T>(
        &mut self,
        name: &str,
        json: &RawValue,
        read: &dyn Fn(&mut ItemReader<'_>) -> Option<T>,
        items: &mut Vec<T>,
        nesting: u32,
    ) {
        if let Some(elements) = list(json.get()).filter(|_| nesting > 0) {
            for element in elements {
                // Its envelope says that it was not done: then it is missing, not unreadable.
                match payload(element) {
                    Some(inner) => self.add_items(name, inner, read, items, nesting - 1),
                    None if has_failed(element) => {}
                    None => self.unread.count(name),
                }
            }
            return;
        }
        let value = value(json);
        // The interface has texts for entities and sentiments: they may be lists as JSON.
        let inner = value.as_ref().and_then(Value::as_str).filter(|text| text.trim_start().starts_with('['));
        if let Some(inner) = inner.filter(|_| nesting > 0).and_then(|text| serde_json::from_str::<&RawValue>(text).ok())
        {
            return self.add_items(name, inner, read, items, nesting - 1);
        }
        if value.as_ref().is_some_and(is_empty) {
            return;
        }
        let value = value.as_ref().unwrap_or(&Value::Null);
        let mut item = ItemReader { value, name, limit: self.limit, unread: &mut self.unread };
        match read(&mut item) {
            Some(item) => items.push(item),
            None => self.unread.count(name),
        }
    }

    fn add_translations(&mut self, payload: &RawValue, targets: &[&str]) {
        let elements = list(payload.get()).unwrap_or_else(|| vec![payload]);
        let in_order = elements.len() == targets.len();
        for (n, element) in elements.iter().enumerate() {
            if has_failed(element) {
                continue;
            }
            let target = targets.get(n).filter(|_| in_order).copied();
            self.add_translation(element, target);
        }
    }

    fn add_translation(&mut self, element: &RawValue, target: Option<&str>) {
        let Ok(mut speech) = read_speech(element) else { return self.unread.count("translation") };
        speech.limit_times(self.limit);
        let language = speech.transcript().languages.first().map(String::as_str).filter(|code| is_language(code));
        let language = language.or(target).map(str::to_owned);
        let prefix = language.as_ref().map_or("translation".to_owned(), |language| format!("translation {language}"));
        for (field, count) in speech.unreadable_fields().counts() {
            *self.unread.0.entry(format!("{prefix}.{field}")).or_default() += count;
        }
        if language.is_none() {
            self.unread.count("translation.languages");
        }
        if speech.transcript().utterances.is_empty() {
            return;
        }
        let of_language = |known: &&TranslatedSpeech| known.language == language && language.is_some();
        match self.translations.iter().find(of_language) {
            None => self.translations.push(TranslatedSpeech { language, speech }),
            // The outputs of both would be the same files: the first one is written, and the other one named.
            Some(first) if first.speech.transcript().text() != speech.transcript().text() => {
                self.unread.count(format!("second translation into {}", language.as_deref().unwrap_or_default()));
            }
            Some(_) => {}
        }
    }
}

/// How deep lists may be nested: a list of envelopes with lists.
const MAX_NESTING: u32 = 3;

/// Reads a translation: an object, or its text alone.
fn read_speech(element: &RawValue) -> serde_json::Result<ReadTranscript> {
    match serde_json::from_str::<String>(element.get()) {
        Ok(text) => {
            let whole = Map::from_iter([
                ("full_transcript".to_owned(), text.into()),
                ("languages".to_owned(), Value::Array(Vec::new())),
                ("utterances".to_owned(), Value::Array(Vec::new())),
            ]);
            serde_json::from_value(Value::Object(whole))
        }
        Err(_) => serde_json::from_str(element.get()),
    }
}

/// Whether the text is a language code (BCP 47: letters and digits in groups joined by `-`).
pub fn is_language(code: &str) -> bool {
    let plain = code.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
    plain && (2..=35).contains(&code.len())
}

/// Returns the list of chapters, which an object may hold.
fn chapter_list(payload: &RawValue) -> &RawValue {
    object(payload.get()).remove("chapters").unwrap_or(payload)
}

/// Returns the structured data as JSON: some services send it as text that holds JSON.
fn data(payload: &RawValue) -> Option<String> {
    let text = serde_json::from_str::<String>(payload.get()).ok();
    let held = text.as_deref().map(str::trim);
    let is_json = |text: &&str| text.starts_with(['{', '[']) && serde_json::from_str::<&RawValue>(text).is_ok();
    match held {
        Some("") => None,
        Some(text) if is_json(&text) => Some(text.to_owned()),
        _ if matches!(payload.get(), "{}" | "[]") => None,
        _ => Some(payload.get().to_owned()),
    }
}

/// Returns a text: a string, the strings of a list as lines, or other structured values as JSON; `None` for a number
/// or `true`.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            Some(list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"))
        }
        Value::Object(fields) if fields.is_empty() => Some(String::new()),
        Value::Array(_) | Value::Object(_) => serde_json::to_string_pretty(value).ok(),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Reads one element of an enrichment.
struct ItemReader<'r> {
    value: &'r Value,
    name: &'r str,
    limit: TimeLimit,
    unread: &'r mut UnreadParts,
}

impl ItemReader<'_> {
    /// Returns the element, if it is a text alone.
    fn plain_text(&self) -> Option<String> {
        self.value.as_str().map(str::to_owned)
    }

    /// Returns the first of these fields that has a text. A field of another type is counted.
    fn text(&mut self, keys: &[&str]) -> Option<String> {
        let texts = keys.iter().filter_map(|key| match self.value.get(key)? {
            Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Value::Null => None,
            _ => {
                self.unread.count(format!("{}.{key}", self.name));
                None
            }
        });
        texts.collect::<Vec<_>>().into_iter().next()
    }

    fn seconds(&mut self, key: &str) -> Option<f64> {
        let time = self.value.get(key)?.as_f64().and_then(|time| self.limit.bounded(time));
        if time.is_none() {
            self.unread.count(format!("{}.{key}", self.name));
        }
        time
    }

    /// Returns the number of a speaker or a channel, which may be null.
    fn number(&mut self, key: &str) -> Option<u32> {
        let value = self.value.get(key).filter(|value| !value.is_null() && *value != NO_SPEAKER)?;
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        if number.is_none() {
            self.unread.count(format!("{}.{key}", self.name));
        }
        number
    }
}

fn chapter(item: &mut ItemReader<'_>) -> Option<Chapter> {
    if let Some(title) = item.plain_text() {
        return Some(Chapter { title, summary: None, start: None, end: None });
    }
    let summary = item.text(&["summary"]);
    let title = item.text(&["gist", "headline", "title"]).or_else(|| summary.clone())?;
    Some(Chapter { title, summary, start: item.seconds("start"), end: item.seconds("end") })
}

fn entity(item: &mut ItemReader<'_>) -> Option<NamedEntity> {
    if let Some(text) = item.plain_text() {
        return Some(NamedEntity { kind: String::new(), text, start: None, end: None });
    }
    let text = item.text(&["text", "entity", "value", "name"])?;
    let kind = item.text(&["entity_type", "type", "label", "category"]).unwrap_or_default();
    Some(NamedEntity { kind, text, start: item.seconds("start"), end: item.seconds("end") })
}

fn sentiment(item: &mut ItemReader<'_>) -> Option<SentenceSentiment> {
    if let Some(sentiment) = item.plain_text() {
        let (text, emotion, start, end, channel, speaker) = (String::new(), None, None, None, None, None);
        return Some(SentenceSentiment { text, sentiment, emotion, start, end, channel, speaker });
    }
    let (sentiment, emotion) = (item.text(&["sentiment"]), item.text(&["emotion"]));
    let text = item.text(&["text", "sentence"]);
    if sentiment.is_none() && emotion.is_none() {
        return None;
    }
    Some(SentenceSentiment {
        text: text.unwrap_or_default(),
        sentiment: sentiment.unwrap_or_default(),
        emotion,
        start: item.seconds("start"),
        end: item.seconds("end"),
        channel: item.number("channel"),
        speaker: item.number("speaker"),
    })
}

fn sentence(item: &mut ItemReader<'_>) -> Option<TimedSentence> {
    if let Some(text) = item.plain_text() {
        return Some(TimedSentence { text, start: None, speaker: None });
    }
    let text = item.text(&["sentence", "text"])?;
    Some(TimedSentence { text, start: item.seconds("start"), speaker: item.number("speaker") })
}

fn answer(item: &mut ItemReader<'_>) -> Option<PromptAnswer> {
    if let Some(response) = item.plain_text() {
        return Some(PromptAnswer { prompt: String::new(), response });
    }
    let response = item.value.get("response").and_then(text_of);
    let prompt = item.text(&["prompt"]).unwrap_or_default();
    Some(PromptAnswer { prompt, response: response? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the interface entities and sentiments are texts; the embedded service writes lists into them.
    #[test]
    fn a_list_may_be_in_a_text() {
        let list = r#"[{\"entity_type\":\"NAME\",\"text\":\"Anna\",\"start\":1.5,\"end\":2}]"#;
        let answer = format!(
            r#"{{"result":{{"named_entity_recognition":{{"success":true,"results":null,"entity":"{list}"}},
            "sentiment_analysis":{{"success":true,"results":"[{{\"text\":\"Hello.\",\"sentiment\":\"positive\"}}]"}}}}}}"#
        );
        let wanted = BTreeSet::from([Enrichment::NamedEntityRecognition, Enrichment::SentimentAnalysis]);
        let read = ReadEnrichments::read(&answer, &wanted, &[], TimeLimit::default());
        assert_eq!((read.entities[0].kind.as_str(), read.entities[0].text.as_str()), ("NAME", "Anna"));
        assert_eq!((read.entities[0].start, read.sentiments[0].sentiment.as_str()), (Some(1.5), "positive"));
        let plain = r#"{"result":{"named_entity_recognition":{"success":true,"entity":"[Anna], Bob"}}}"#;
        assert_eq!(ReadEnrichments::read(plain, &wanted, &[], TimeLimit::default()).entities[0].text, "[Anna], Bob");
        assert_eq!(read.describe_unread(), None);
    }
}
