//! Reads the transcript from a streamed result. Only what outputs are made from is kept: no copy of the interface's
//! form, and no utterance without text. A value that is null, of another type or unknown loses only what it contains.
//!
//! A result is untrusted input: there are limits, far above the size of any recording. What is beyond them counts as
//! unread.

use crate::domain::format::Format;
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::wire::lax_reader::{Count, Key, Lax, LaxTexts, Nullable, Number, Reads, Speaker, Text, text};
use crate::wire::result::Subtitles;
use crate::wire::utterance_parts::in_parts;
use crate::wire::utterance_times::{TimeLimit, limit_times, order, start_without_own};
use serde::de::{IgnoredAny, MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// The most words of one result, and the most utterances: some 300 hours of speech.
const MAX_WORDS: usize = 3_000_000;

/// The most bytes of text in one utterance. A longer one is divided.
const MAX_UTTERANCE_BYTES: usize = 4 << 20;

/// The most bytes of text in all words, and in all utterances.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// The part of a transcription that outputs are made from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadTranscript {
    transcript: Transcript,
    subtitles: Vec<(Format, String)>,
    unread: UnreadFields,
    limit: TimeLimit,
    speaker_names: SpeakerNames,
}

/// The fields that outputs are made from and that could not be read, because they are null, absent or of another type,
/// with how often: also times that no recording has. An empty value counts as read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnreadFields(BTreeMap<&'static str, u64>);

impl UnreadFields {
    /// Returns each field with how often it could not be read.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(name, count)| (*name, *count))
    }

    /// Describes the fields for people: `languages, utterances.start (3)`; `None` if all were read.
    pub fn describe(&self) -> Option<String> {
        let describe_field = |(name, count): (&&str, &u64)| match count {
            1 => (*name).to_owned(),
            count => format!("{name} ({count})"),
        };
        (!self.0.is_empty()).then(|| self.0.iter().map(describe_field).collect::<Vec<_>>().join(", "))
    }
}

impl ReadTranscript {
    /// Returns the transcript. A text without utterances is one utterance without times.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Stands for a transcript of which nothing could be read, because this field is of another type.
    pub fn unreadable(field: &'static str) -> Self {
        Self { unread: UnreadFields(BTreeMap::from([(field, 1)])), ..Self::default() }
    }

    /// Returns this transcript with what is said in `other`.
    #[must_use]
    pub fn with_speech_of(mut self, other: Self) -> Self {
        self.transcript.utterances = other.transcript.utterances;
        for (name, count) in other.unread.0 {
            *self.unread.0.entry(name).or_default() += count;
        }
        self
    }

    /// Returns this transcript with the names of its speakers.
    #[must_use]
    pub fn with_speaker_names(self, speaker_names: SpeakerNames) -> Self {
        Self { speaker_names, ..self }
    }

    /// Returns what is known of the names of the speakers.
    pub fn speaker_names(&self) -> &SpeakerNames {
        &self.speaker_names
    }

    /// Counts the times as unread that the recording cannot have, and puts the utterances in the order of time.
    pub fn limit_times(&mut self, limit: TimeLimit) {
        self.limit = limit.believed(&self.transcript);
        limit_times(&mut self.transcript, self.limit, &mut |name| *self.unread.0.entry(name).or_default() += 1);
        order(&mut self.transcript);
    }

    /// Returns the latest time that the result may have.
    pub fn time_limit(&self) -> TimeLimit {
        self.limit
    }

    /// Whether nothing is said in it.
    pub fn is_silent(&self) -> bool {
        self.transcript
            .utterances
            .iter()
            .all(|utterance| utterance.text.trim().is_empty() && utterance.words.is_empty())
    }

    /// Returns the fields that could not be read.
    pub fn unreadable_fields(&self) -> &UnreadFields {
        &self.unread
    }

    /// Returns the subtitles of the result, by format.
    pub fn subtitles_by_format(&self) -> &[(Format, String)] {
        &self.subtitles
    }
}

/// What was counted so far in this result.
#[derive(Default)]
struct Usage {
    words: TextAllowance,
    utterances: TextAllowance,
    unread: RefCell<BTreeMap<&'static str, u64>>,
}

/// How many words or utterances were read so far, and how many bytes of text they have.
#[derive(Default)]
struct TextAllowance {
    count: Cell<usize>,
    bytes: Cell<usize>,
}

impl TextAllowance {
    /// Whether there is room for another one with a text of this length; if there is, it is counted.
    fn take(&self, bytes: usize) -> bool {
        let (count, bytes) = (self.count.get() + 1, self.bytes.get() + bytes);
        let has_room = count <= MAX_WORDS && bytes <= MAX_TEXT_BYTES;
        if has_room {
            self.count.set(count);
            self.bytes.set(bytes);
        }
        has_room
    }
}

/// The fields of an object that are read, with whether each could be read.
struct Fields<'u, const N: usize> {
    usage: &'u Usage,
    names: [&'static str; N],
    is_read: [bool; N],
}

impl<'u, const N: usize> Fields<'u, N> {
    fn new(usage: &'u Usage, names: [&'static str; N]) -> Self {
        Self { usage, names, is_read: [false; N] }
    }

    /// Takes the value of the n-th field. If a field occurs twice, the last one counts.
    fn take<T: Default>(&mut self, n: usize, value: Option<T>) -> T {
        self.is_read[n] = value.is_some();
        value.unwrap_or_default()
    }

    fn finish(self) {
        let unread = self.names.iter().zip(self.is_read).filter(|(_, is_read)| !is_read);
        unread.for_each(|(name, _)| self.usage.count_unread(name));
    }
}

impl Usage {
    fn count_unread(&self, name: &'static str) {
        *self.unread.borrow_mut().entry(name).or_default() += 1;
    }

    /// Takes the value of a field that may be null or absent.
    fn optional<T: Default>(&self, name: &'static str, value: Option<Option<T>>) -> T {
        if value.is_none() {
            self.count_unread(name);
        }
        value.flatten().unwrap_or_default()
    }

    /// Divides an utterance that is too long.
    fn parts_of(&self, utterance: Utterance) -> Vec<Utterance> {
        let (parts, dropped) = in_parts(utterance, MAX_UTTERANCE_BYTES);
        (0..dropped).for_each(|_| self.count_unread("words"));
        parts
    }
}

impl<'de> Deserialize<'de> for ReadTranscript {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = deserializer.deserialize_any(Lax(Transcription(Usage::default())))?;
        Ok(read.unwrap_or_else(|| Self::unreadable("transcription")))
    }
}

struct Transcription(Usage);

impl<'de> Reads<'de> for Transcription {
    type Value = ReadTranscript;

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<ReadTranscript>, A::Error> {
        let (mut parsed, mut full_text) = (ReadTranscript::default(), String::new());
        let mut words = Vec::new();
        let mut fields = Fields::new(&self.0, ["full_transcript", "languages", "utterances"]);
        while let Some(key) = map.next_key_seed(Key)? {
            match key.as_deref() {
                Some("full_transcript") => full_text = fields.take(0, map.next_value_seed(Lax(Text))?),
                Some("languages") => {
                    let others = Cell::new(0);
                    parsed.transcript.languages = fields.take(1, map.next_value_seed(Lax(LaxTexts(&others)))?);
                    (0..others.get()).for_each(|_| self.0.count_unread("languages"));
                }
                Some("utterances") => {
                    parsed.transcript.utterances = fields.take(2, map.next_value_seed(Lax(Utterances(&self.0)))?);
                }
                // Translations of the public service have their words here.
                Some("words") => {
                    let read = map.next_value_seed(Lax(Words(&self.0)))?;
                    if read.is_none() {
                        self.0.count_unread("words");
                    }
                    words = read.unwrap_or_default();
                }
                Some("subtitles") => {
                    let files = map.next_value_seed(Lax(SubtitlesList))?.unwrap_or_default();
                    parsed.subtitles = files.into_iter().filter_map(Subtitles::into_known).collect();
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        fields.finish();
        let text = full_text.trim();
        if parsed.transcript.utterances.is_empty() && !text.is_empty() {
            let whole = Utterance { text: text.to_owned(), words, ..empty_utterance() };
            parsed.transcript.utterances = self.0.parts_of(whole);
        }
        parsed.unread = UnreadFields(self.0.unread.take());
        parsed.limit_times(TimeLimit::default());
        Ok(Some(parsed))
    }
}

/// The utterances of a diarization: some answers have their text there alone.
pub(super) struct DiarizedSpeech(pub(super) ReadTranscript);

impl<'de> Deserialize<'de> for DiarizedSpeech {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let usage = Usage::default();
        let utterances = deserializer.deserialize_any(Lax(Within("results", Utterances(&usage))))?;
        let mut read = ReadTranscript::default();
        read.transcript.utterances = utterances.unwrap_or_default();
        read.unread = UnreadFields(usage.unread.take());
        read.limit_times(TimeLimit::default());
        Ok(Self(read))
    }
}

/// Reads a field of an object, and nothing else of it.
struct Within<R>(&'static str, R);

impl<'de, R: Reads<'de>> Reads<'de> for Within<R> {
    type Value = R::Value;

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<R::Value>, A::Error> {
        let (mut reader, mut value) = (Some(self.1), None);
        while let Some(key) = map.next_key_seed(Key)? {
            match reader.take_if(|_| key.as_deref() == Some(self.0)) {
                Some(reader) => value = map.next_value_seed(Lax(reader))?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(value)
    }
}

struct Utterances<'u>(&'u Usage);

impl<'de> Reads<'de> for Utterances<'_> {
    type Value = Vec<Utterance>;

    fn list<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<Vec<Utterance>>, A::Error> {
        let mut utterances = Vec::new();
        while let Some(utterance) = seq.next_element_seed(Lax(UtteranceReader(self.0)))? {
            match utterance {
                Some(utterance) if utterance.text.is_empty() => {}
                Some(utterance) if self.0.utterances.take(utterance.text.len()) => {
                    utterances.extend(self.0.parts_of(utterance));
                }
                _ => self.0.count_unread("utterances"),
            }
        }
        Ok(Some(utterances))
    }
}

struct UtteranceReader<'u>(&'u Usage);

impl<'de> Reads<'de> for UtteranceReader<'_> {
    type Value = Utterance;

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Utterance>, A::Error> {
        let mut utterance = empty_utterance();
        let names =
            ["utterances.start", "utterances.end", "utterances.text", "utterances.language", "utterances.words"];
        let mut fields = Fields::new(self.0, names);
        while let Some(key) = map.next_key_seed(Key)? {
            match key.as_deref() {
                Some("start") => utterance.start = fields.take(0, map.next_value_seed(Lax(Number))?),
                Some("end") => utterance.end = fields.take(1, map.next_value_seed(Lax(Number))?),
                Some("confidence") => {
                    let read = map.next_value_seed(Lax(Nullable(Number)))?;
                    utterance.confidence = self.0.optional("utterances.confidence", read);
                }
                Some("channel") => {
                    let read = map.next_value_seed(Lax(Nullable(Count)))?;
                    utterance.channel = self.0.optional("utterances.channel", read);
                }
                Some("speaker") => {
                    let read = map.next_value_seed(Lax(Nullable(Speaker)))?;
                    utterance.speaker = self.0.optional("utterances.speaker", read);
                }
                Some("text") => utterance.text = fields.take(2, map.next_value_seed(Lax(Text))?).trim().to_owned(),
                Some("language") => utterance.language = fields.take(3, map.next_value_seed(Lax(Text))?),
                Some("words") => utterance.words = fields.take(4, map.next_value_seed(Lax(Words(self.0)))?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if !fields.is_read[0] {
            utterance.start = start_without_own(&utterance);
        }
        fields.finish();
        if utterance.text.is_empty() {
            utterance.text = join_words(&utterance.words);
        }
        Ok(Some(utterance))
    }
}

struct Words<'u>(&'u Usage);

impl<'de> Reads<'de> for Words<'_> {
    type Value = Vec<Word>;

    fn list<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<Vec<Word>>, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = seq.next_element_seed(Lax(WordReader(self.0)))? {
            match word {
                Some(word) if word.text.is_empty() => {}
                Some(word) if self.0.words.take(word.text.len()) => words.push(word),
                _ => self.0.count_unread("words"),
            }
        }
        Ok(Some(words))
    }
}

struct WordReader<'u>(&'u Usage);

impl<'de> Reads<'de> for WordReader<'_> {
    type Value = Word;

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Word>, A::Error> {
        let mut word = Word { text: String::new(), start: 0.0, end: 0.0, confidence: 0.0 };
        let mut fields = Fields::new(self.0, ["words.word", "words.start", "words.end"]);
        while let Some(key) = map.next_key_seed(Key)? {
            match key.as_deref() {
                Some("word") => word.text = fields.take(0, map.next_value_seed(Lax(Text))?),
                Some("start") => word.start = fields.take(1, map.next_value_seed(Lax(Number))?),
                Some("end") => word.end = fields.take(2, map.next_value_seed(Lax(Number))?),
                Some("confidence") => {
                    let read = map.next_value_seed(Lax(Nullable(Number)))?;
                    word.confidence = self.0.optional("words.confidence", read);
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if !fields.is_read[1] {
            word.end = 0.0;
        }
        fields.finish();
        Ok(Some(word))
    }
}

struct SubtitlesList;

impl<'de> Reads<'de> for SubtitlesList {
    type Value = Vec<Subtitles>;

    fn list<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<Vec<Subtitles>>, A::Error> {
        let mut files: Vec<Subtitles> = Vec::new();
        while let Some(file) = seq.next_element_seed(Lax(SubtitlesReader))? {
            // There are two formats; the first file of each counts.
            files.extend(file.filter(|file| files.len() < 100 && Subtitles::is_known(&file.format)));
        }
        Ok(Some(files))
    }
}

struct SubtitlesReader;

impl<'de> Reads<'de> for SubtitlesReader {
    type Value = Subtitles;

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Subtitles>, A::Error> {
        let mut file = Subtitles::default();
        while let Some(key) = map.next_key_seed(Key)? {
            match key.as_deref() {
                Some("format") => file.format = text(&mut map)?,
                Some("subtitles") => file.subtitles = text(&mut map)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Some(file))
    }
}

/// Joins the words of an utterance that has no text. Some services put the spaces between words into the words.
fn join_words(words: &[Word]) -> String {
    let words = words.iter().map(|word| word.text.trim()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn empty_utterance() -> Utterance {
    Utterance {
        text: String::new(),
        start: 0.0,
        end: 0.0,
        confidence: 0.0,
        channel: 0,
        speaker: None,
        language: String::new(),
        words: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::record::Record;
    use crate::wire::result::Spoken;
    use crate::wire::result::Transcription as Whole;

    const CAPTURED: &str = include_str!("../../tests/data/service/job_done.captured_2023-12_early.json");
    const FIXTURE: &str = include_str!("../../tests/data/service/job_done.vercel_fixture_2025.json");

    #[test]
    fn a_text_in_the_diarization_alone_is_read() {
        let said = r#"{"text":"All of it.","speaker":1,"start":0.5,"end":2,"words":[]}"#;
        let diarized = format!(r#""diarization":{{"success":true,"results":[{said}]}}"#);
        let read = |result: &str| serde_json::from_str::<Spoken>(result).unwrap().transcription;
        let silent =
            [r#""transcription":null"#, r#""transcription":{"full_transcript":"","utterances":[]}"#, r#""x":1"#];
        for silent in silent {
            for result in [format!("{{{silent},{diarized}}}"), format!("{{{diarized},{silent}}}")] {
                let whole = read(&result).unwrap();
                let [utterance] = &whole.transcript().utterances[..] else { panic!("{whole:?}") };
                let read = (utterance.text.as_str(), utterance.speaker, whole.is_silent());
                assert_eq!(read, ("All of it.", Some(1), false), "{result}");
            }
        }
        let transcript = r#""transcription":{"full_transcript":"Once.","utterances":[]}"#;
        for result in [format!("{{{transcript},{diarized}}}"), format!("{{{diarized},{transcript}}}")] {
            assert_eq!(read(&result).unwrap().transcript().text(), "Once.", "{result}");
        }
        for other in ["{}", r#"{"diarization":[]}"#, r#"{"diarization":{"results":7}}"#] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn it_reads_what_the_interfaces_own_form_reads() {
        for sample in [CAPTURED, FIXTURE] {
            let record: serde_json::Value = serde_json::from_str(sample).unwrap();
            let json = record["result"]["transcription"].to_string();
            let (said, whole): (ReadTranscript, Whole) =
                (serde_json::from_str(&json).unwrap(), serde_json::from_str(&json).unwrap());
            assert_eq!(*said.transcript(), whole.to_transcript());
            assert_eq!(said.subtitles_by_format(), whole.subtitles_by_format());
            assert_eq!(said.unreadable_fields().describe(), None, "all of it is read");
        }
    }

    #[test]
    fn what_is_empty_null_or_of_another_type_costs_only_what_it_held() {
        let json = r#"{"full_transcript":null,"languages":["en",null,7],"sentences":[[[]]],"x":{"y":[1]},
            "utterances":[{},null,7,"x",[1],{"text":"  "},{"words":[{},null,{"word":""}]},
                {"start":null,"end":"2","text":"Hello.","speaker":"none","channel":-1,"words":[{"word":"Hello.","start":1},{}]}],
            "subtitles":[null,{"format":"srt","subtitles":"1"},{"format":"odd","subtitles":"2"}]}"#;
        let said: ReadTranscript = serde_json::from_str(json).unwrap();
        let word = Word { text: "Hello.".into(), start: 1.0, end: 0.0, confidence: 0.0 };
        let utterance = Utterance { text: "Hello.".into(), words: vec![word], ..empty_utterance() };
        assert_eq!(*said.transcript(), Transcript { languages: vec!["en".into()], utterances: vec![utterance] });
        assert_eq!(said.subtitles_by_format(), [(Format::Srt, "1".to_owned())]);
        for other in ["null", "7", "[]", "\"text\"", "{}", r#"{"utterances":{}}"#] {
            assert_eq!(
                *serde_json::from_str::<ReadTranscript>(other).unwrap().transcript(),
                Transcript::default(),
                "{other}"
            );
        }
        let text: ReadTranscript = serde_json::from_str(r#"{"full_transcript":" Hello. "}"#).unwrap();
        assert_eq!(text.transcript().utterances[0].text, "Hello.");
    }

    #[test]
    fn what_cannot_be_read_is_named_and_counted_and_what_is_empty_was_read() {
        let unread = |json: &str| {
            let record = format!(r#"{{"id":"t","status":"done","result":{{"transcription":{json}}}}}"#);
            let record: Record<Spoken, IgnoredAny> = serde_json::from_str(&record).unwrap();
            record.result.unwrap().transcription.unwrap_or_default().unread.describe().unwrap_or_default()
        };
        assert_eq!(unread(r#"{"full_transcript":"","languages":[],"utterances":[]}"#), "");
        assert_eq!(unread(r#"{"full_transcript":null,"languages":"en"}"#), "full_transcript, languages, utterances");
        let utterances = r#"{"full_transcript":"a","languages":["en"],"utterances":[
            {"start":null,"end":1,"text":"a","language":"","words":[{"word":"a","start":"0","end":1},null]},
            {"start":[],"end":1,"text":"b","language":null,"words":null},7]}"#;
        let named = "utterances, utterances.language, utterances.start (2), utterances.words, words, words.start";
        assert_eq!(unread(utterances), named);
    }

    #[test]
    fn an_optional_field_of_another_type_is_named_and_an_absent_one_is_not() {
        let read = |fields: &str| {
            let word = r#"{"word":"a","start":0,"end":1,"confidence":CONFIDENCE}"#;
            let utterance = format!(r#"{{"start":0,"end":1,"text":"a","language":"en",{fields},"words":[{word}]}}"#);
            let confidence = if fields.contains("\"0.9\"") { "\"0.9\"" } else { "null" };
            let json = format!(r#"{{"full_transcript":"a","languages":["en"],"utterances":[{utterance}]}}"#);
            let said: ReadTranscript = serde_json::from_str(&json.replace("CONFIDENCE", confidence)).unwrap();
            (said.transcript().utterances[0].speaker, said.unread.describe().unwrap_or_default())
        };
        let named = "utterances.channel, utterances.confidence, utterances.speaker, words.confidence";
        assert_eq!(read(r#""confidence":"0.9","channel":"left","speaker":"Ann""#), (None, named.to_owned()));
        assert_eq!(read(r#""confidence":null,"channel":null,"speaker":null"#), (None, String::new()));
        assert_eq!(read(r#""x":1,"speaker":"speaker_not_activated""#), (None, String::new()));
        assert_eq!(read(r#""speaker":"3""#), (Some(3), String::new()));
        for other in ["-1", "0.5", "true", "[]", "{}", "\"\""] {
            assert_eq!(read(&format!(r#""speaker":{other}"#)).1, "utterances.speaker", "{other}");
        }
    }

    #[test]
    fn it_has_limits_and_names_what_is_beyond_them() {
        let word = r#"{"word":"a","start":0,"end":0},"#;
        let many = format!(
            r#"{{"full_transcript":"","languages":[],"utterances":[{{"start":0,"end":1,"language":"","text":"b","words":[{}{{"word":""}}]}},
                {{"start":0,"end":1,"language":"","text":"c","words":[]}}]}}"#,
            word.repeat(MAX_WORDS + 1)
        );
        let many: ReadTranscript = serde_json::from_str(&many).unwrap();
        let words: Vec<usize> = many.transcript().utterances.iter().map(|utterance| utterance.words.len()).collect();
        assert_eq!(
            (words, many.unread.describe().as_deref()),
            (vec![MAX_WORDS, 0], Some("words, words.end, words.start"))
        );
        let long = format!(r#"{{"utterances":[{{"text":"{}"}}]}}"#, "a".repeat(MAX_UTTERANCE_BYTES + 1));
        let long: ReadTranscript = serde_json::from_str(&long).unwrap();
        let lengths: Vec<usize> = long.transcript().utterances.iter().map(|utterance| utterance.text.len()).collect();
        assert_eq!(lengths, [MAX_UTTERANCE_BYTES, 1]);
        let empty = format!(r#"{{"utterances":[{}{{}}]}}"#, "{},".repeat(5_000_000));
        assert_eq!(*serde_json::from_str::<ReadTranscript>(&empty).unwrap().transcript(), Transcript::default());
        let deep = format!(r#"{{"x":{}"#, "[".repeat(1_000_000));
        assert!(serde_json::from_str::<ReadTranscript>(&deep).is_err());
    }
}
