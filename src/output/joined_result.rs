//! Joins the service's answers for the parts of a recording to one answer of the interface's form (interface, "Job
//! (transcription record)"), so that all that reads answers reads it like any other. Pure.
//!
//! The transcripts are joined word by word (`domain/joined_transcript.rs`). Enrichments are joined by their shape: lists
//! follow each other, texts become paragraphs, and what failed in one part has failed. The service's subtitles are left
//! out, since those of neighbouring parts share cues: scribed lays out its own.

use crate::domain::joined_transcript::{
    JoinedTranscript, KnownSpeakers, PartTranscript, VoicePerson, join_transcripts,
};
use crate::domain::names::TranscriptionId;
use crate::domain::sent_audio::ExtractedPart;
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::split::PartRange;
use crate::domain::token::{RESERVED_KEY, Token};
use crate::domain::transcript::{Transcript, Utterance};
use crate::output::time_offset::{sent_part, shift_by, shift_to_recording};
use crate::wire::bounded_value::BoundedValue;
use crate::wire::enrichment::EnvelopeError;
use crate::wire::known_speakers::KNOWN_SPEAKERS;
use crate::wire::record::Record;
use crate::wire::result::Spoken;
use crate::wire::result_out::{TranscriptionOut, Utterances};
use crate::wire::tolerant::readable;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The service's answer for a part.
pub struct PartResult {
    pub raw: Vec<u8>,
    pub range: PartRange,
    /// How its sound was extracted, if this job sent it: see [`sent_part`].
    pub cut: Option<ExtractedPart>,
}

/// An answer with the times of the recording.
struct Answer {
    number: usize,
    range: PartRange,
    /// The track that was sent, among all tracks of the file.
    track: Option<u32>,
    /// Where the sound track begins in the recording, in milliseconds.
    track_start_ms: u64,
    transcript: Transcript,
    names: SpeakerNames,
    unread: Option<String>,
    /// The whole answer, without what JSON readers refuse.
    record: Map<String, Value>,
}

/// The answers for all parts, in the order of the recording.
pub struct PartAnswers(Vec<Answer>);

/// The answers as one.
pub struct JoinedResult {
    pub raw: Vec<u8>,
    /// Whether every speaker is known to be one of the parts before, or to be somebody new.
    pub are_speakers_known: bool,
}

/// Where in a sound track its speakers speak.
pub struct SpokenParts {
    /// The number of the track among all tracks of the file, from 0; `None` if that is not known.
    pub track: Option<u32>,
    /// The utterances of each part that have a speaker, without their texts. Times count from the first sound of the track.
    pub parts: Vec<(PartRange, Transcript)>,
}

/// The people whose voices the parts have, or why the voices were not compared.
pub type HeardPeople = Result<Vec<BTreeMap<u32, VoicePerson>>, String>;

impl PartAnswers {
    /// Reads the answers of all parts.
    ///
    /// # Errors
    /// An answer is not a JSON object.
    pub fn read(parts: Vec<PartResult>) -> serde_json::Result<Self> {
        let answers = parts.into_iter().enumerate().map(|(at, part)| Answer::read(at + 1, part));
        answers.collect::<serde_json::Result<Vec<Answer>>>().map(Self)
    }

    pub fn spoken(&self) -> SpokenParts {
        let track = self.0.iter().find_map(|answer| answer.track);
        SpokenParts { track, parts: self.0.iter().map(|answer| (answer.range, answer.spoken())).collect() }
    }

    /// Joins the answers under an id of their own.
    ///
    /// # Errors
    /// As writing JSON, which does not happen.
    pub fn join(mut self, id: &TranscriptionId, people: &HeardPeople) -> serde_json::Result<JoinedResult> {
        let start_s = self.0.first().map_or(0, |answer| answer.track_start_ms) as f64 / 1e3;
        let transcripts = self.0.iter_mut().enumerate().map(|(at, answer)| PartTranscript {
            range: answer.range,
            transcript: std::mem::take(&mut answer.transcript),
            known: KnownSpeakers {
                names: answer.names.clone(),
                voices: people.as_ref().ok().and_then(|parts| parts.get(at).cloned()).unwrap_or_default(),
            },
        });
        let joined = join_transcripts(transcripts.collect(), start_s);
        let not_heard = people.as_ref().err().map(String::as_str);
        let record = record(&self.0, &joined, not_heard, id, start_s);
        Ok(JoinedResult { raw: serde_json::to_vec(&record)?, are_speakers_known: joined.unmatched.is_empty() })
    }
}

impl Answer {
    fn read(number: usize, part: PartResult) -> serde_json::Result<Self> {
        let PartResult { raw, range, cut } = part;
        let sent = sent_part(&Record::<IgnoredAny, BoundedValue>::of_kept(&raw)?, cut);
        let start_ms = sent.map_or(range.from_ms, |sent| sent.start_ms);
        // An answer without the token, for a part that another job sent, is only known to begin with its range.
        let (raw, read) = match sent {
            Some(_) => shift_to_recording(Cow::Owned(raw), cut)?,
            None => shift_by(Cow::Owned(raw), range.from_ms)?,
        };
        let Record { result, .. } = read;
        let spoken: Spoken = result.unwrap_or_default();
        let transcription = spoken.into_speech();
        let unread = transcription.unreadable_fields().describe();
        let record = serde_json::from_str(&readable(&String::from_utf8_lossy(&raw))).unwrap_or_default();
        let (transcript, names) = (transcription.transcript().clone(), transcription.speaker_names().clone());
        let track_start_ms = start_ms.saturating_sub(range.from_ms);
        let track = sent.map(|sent| sent.track);
        Ok(Self { number, range, track, track_start_ms, transcript, names, unread, record })
    }

    /// Returns the utterances that have a speaker, without their texts, with times that count from the track's first sound.
    fn spoken(&self) -> Transcript {
        let start_s = self.track_start_ms as f64 / 1e3;
        let spoken = self.transcript.utterances.iter().filter(|utterance| utterance.speaker.is_some());
        let in_track = |utterance: &Utterance| Utterance {
            text: String::new(),
            start: utterance.start - start_s,
            end: utterance.end - start_s,
            confidence: utterance.confidence,
            channel: utterance.channel,
            speaker: utterance.speaker,
            language: String::new(),
            words: Vec::new(),
        };
        Transcript { languages: Vec::new(), utterances: spoken.map(in_track).collect() }
    }

    fn result(&self) -> Option<&Map<String, Value>> {
        self.record.get("result")?.as_object()
    }

    fn transcription_id(&self) -> Value {
        self.record.get("id").cloned().unwrap_or_default()
    }
}

fn record(
    answers: &[Answer],
    joined: &JoinedTranscript,
    not_heard: Option<&str>,
    id: &TranscriptionId,
    start_s: f64,
) -> Value {
    let has_failed = |answer: &&Answer| answer.record.get("status").and_then(Value::as_str) == Some("error");
    let base = answers.iter().find(has_failed).or(answers.last());
    let mut record = base.map(|answer| answer.record.clone()).unwrap_or_default();
    if let Some(first) = answers.first() {
        for key in ["request_id", "created_at", "request_params", "file"] {
            if let Some(value) = first.record.get(key) {
                record.insert(key.to_owned(), value.clone());
            }
        }
        record.insert("custom_metadata".to_owned(), whole_metadata(first.record.get("custom_metadata")));
    }
    let seconds = answers.last().map_or(0.0, |answer| answer.range.to_ms as f64 / 1e3);
    if let Some(file) = record.get_mut("file").and_then(Value::as_object_mut) {
        file.insert("audio_duration".to_owned(), json!(seconds));
    }
    record.insert("id".to_owned(), json!(id));
    record.insert("parts".to_owned(), answers.iter().map(|answer| part_of(answer, start_s)).collect());
    record.insert("result".to_owned(), result(answers, joined, not_heard, seconds));
    Value::Object(record)
}

fn part_of(answer: &Answer, start_s: f64) -> Value {
    let time = |millis: u64| start_s + millis as f64 / 1e3;
    json!({ "id": answer.transcription_id(), "start": time(answer.range.from_ms), "end": time(answer.range.to_ms) })
}

/// Returns the metadata with the token of the whole recording: the times are those of the recording already.
fn whole_metadata(metadata: Option<&Value>) -> Value {
    let mut metadata = metadata.cloned().unwrap_or_default();
    let token = metadata.get(RESERVED_KEY).and_then(Value::as_str).and_then(Token::parse);
    if let (Some(token), Some(fields)) = (token, metadata.as_object_mut()) {
        fields.insert(RESERVED_KEY.to_owned(), json!(Token { part: None, ..token }.to_string()));
    }
    metadata
}

fn result(answers: &[Answer], joined: &JoinedTranscript, not_heard: Option<&str>, seconds: f64) -> Value {
    let transcript = &joined.transcript;
    let mut transcription = json!(TranscriptionOut::of(transcript));
    let of_transcription = |answer: &Answer| answer.result()?.get("transcription")?.get("sentences")?.get(0).cloned();
    if let Some(sentences) = joined_envelope(answers, "sentences", &of_transcription) {
        transcription["sentences"] = json!([sentences]);
    }
    let mut result = Map::from_iter([
        ("metadata".to_owned(), metadata(answers, seconds)),
        ("transcription".to_owned(), transcription),
    ]);
    let mut names: Vec<&String> = answers.iter().filter_map(Answer::result).flat_map(Map::keys).collect();
    names.sort();
    names.dedup();
    for name in names
        .into_iter()
        .filter(|name| !matches!(name.as_str(), "metadata" | "transcription" | "diarization" | KNOWN_SPEAKERS))
    {
        let of_result = |answer: &Answer| answer.result()?.get(name).filter(|value| !value.is_null()).cloned();
        if let Some(envelope) = joined_envelope(answers, name, &of_result) {
            result.insert(name.clone(), envelope);
        }
    }
    if let Some(known) = known_speakers(answers, joined) {
        result.insert(KNOWN_SPEAKERS.to_owned(), known);
    }
    if let Some(diarization) = diarization(answers, joined, not_heard) {
        result.insert("diarization".to_owned(), diarization);
    }
    if let Some(unread) = unread(answers) {
        result.insert("recognition".to_owned(), unread);
    }
    Value::Object(result)
}

/// Returns the speakers with names, under their numbers in the whole: of the same name the most certain one. `None` if no
/// part has such a list.
fn known_speakers(answers: &[Answer], joined: &JoinedTranscript) -> Option<Value> {
    let mut is_there = false;
    let mut known: Vec<Value> = Vec::new();
    for (answer, numbers) in answers.iter().zip(&joined.numbers) {
        let Some(list) = answer.result().and_then(|result| result.get(KNOWN_SPEAKERS)?.as_array()) else { continue };
        is_there = true;
        for one in list {
            let speaker = one.get("speaker").and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
            let Some(number) = speaker.and_then(|speaker| numbers.get(&speaker)) else { continue };
            let mut one = one.clone();
            one["speaker"] = json!(number);
            let confidence = |value: &Value| value["confidence"].as_f64().unwrap_or_default();
            match known.iter_mut().find(|other| other["name"] == one["name"] && other["speaker"] == one["speaker"]) {
                Some(other) if confidence(other) < confidence(&one) => *other = one,
                Some(_) => {}
                None => known.push(one),
            }
        }
    }
    is_there.then_some(Value::Array(known))
}

/// Returns the amounts: the lengths of the parts overlap, and what was billed is the sum.
fn metadata(answers: &[Answer], seconds: f64) -> Value {
    let of = |name: &str| -> Vec<f64> {
        let number = |answer: &Answer| answer.result()?.get("metadata")?.get(name)?.as_f64();
        answers.iter().filter_map(number).collect()
    };
    let mut metadata = answers.first().and_then(|answer| answer.result()?.get("metadata")?.as_object().cloned());
    let metadata = metadata.get_or_insert_default();
    metadata.insert("audio_duration".to_owned(), json!(seconds));
    for name in ["billing_time", "transcription_time"] {
        let amounts = of(name);
        if amounts.len() == answers.len() {
            metadata.insert(name.to_owned(), json!((amounts.iter().sum::<f64>() * 1e3).round() / 1e3));
        } else {
            metadata.remove(name);
        }
    }
    for name in ["number_of_distinct_channels", "number_of_channels"] {
        if let Some(most) = of(name).into_iter().max_by(f64::total_cmp) {
            metadata.insert(name.to_owned(), json!(most as u64));
        }
    }
    json!(metadata)
}

/// Joins an enrichment of all parts; `None` if no part has it.
fn joined_envelope(answers: &[Answer], name: &str, of: &dyn Fn(&Answer) -> Option<Value>) -> Option<Value> {
    let found: Vec<(usize, Option<Value>)> = answers.iter().map(|answer| (answer.number, of(answer))).collect();
    let there = found.iter().filter_map(|(number, value)| Some((*number, value.clone()?)));
    let there: Vec<(usize, Value)> = there.collect();
    let (_, first) = there.first()?;
    let Some(mut envelope) = first.as_object().cloned().filter(|_| there.iter().all(|(_, value)| value.is_object()))
    else {
        return Some(joined_values(answers, name, there));
    };
    let field = |name: &str| -> Vec<(usize, Value)> {
        let values = there.iter().filter_map(|(number, value)| Some((*number, value.get(name)?.clone())));
        values.filter(|(_, value)| !value.is_null()).collect()
    };
    let all = |name: &str| field(name).iter().all(|(_, value)| *value == Value::Bool(true));
    let failures = found.iter().filter_map(|(number, value)| failure(*number, value.as_ref()));
    let failures: Vec<String> = failures.collect();
    if envelope.contains_key("success") {
        envelope.insert("success".to_owned(), json!(failures.is_empty() && all("success")));
    }
    if envelope.contains_key("is_empty") {
        envelope.insert("is_empty".to_owned(), json!(all("is_empty")));
    }
    let took: Vec<f64> = field("exec_time").iter().filter_map(|(_, value)| value.as_f64()).collect();
    if !took.is_empty() {
        envelope.insert("exec_time".to_owned(), json!((took.iter().sum::<f64>() * 1e3).round() / 1e3));
    }
    if !failures.is_empty() {
        envelope.insert("error".to_owned(), error("PartOfTheRecording", &failures.join("; ")));
    }
    for key in ["results", "entity"] {
        let values = field(key);
        if !values.is_empty() {
            envelope.insert(key.to_owned(), joined_values(answers, name, values));
        }
    }
    Some(Value::Object(envelope))
}

/// Says why an enrichment is not there for all of a part; `None` if it is.
fn failure(number: usize, envelope: Option<&Value>) -> Option<String> {
    let Some(envelope) = envelope else { return Some(format!("part {number}: the service sent nothing")) };
    if envelope.get("success") != Some(&Value::Bool(false)) && envelope.get("error").is_none_or(Value::is_null) {
        return None;
    }
    let why = envelope.get("error").and_then(|error| match error {
        Value::String(words) => Some(words.as_str()),
        error => error.get("message").and_then(Value::as_str),
    });
    Some(format!("part {number}: {}", why.unwrap_or("the service gave no reason")))
}

fn error(exception: &str, message: &str) -> Value {
    let (exception, message) = (exception.to_owned(), message.to_owned());
    json!(EnvelopeError { status_code: 422, exception, message })
}

/// Joins values of the parts: lists follow each other, texts become paragraphs, and other values a list.
fn joined_values(answers: &[Answer], name: &str, values: Vec<(usize, Value)>) -> Value {
    if values.iter().all(|(_, value)| value.is_array()) {
        let lists = values.into_iter().map(|(number, value)| (number, into_list(value))).collect();
        return match name {
            "translation" => by_language(answers, lists),
            "audio_to_llm" => by_place(lists),
            _ => Value::Array(in_a_row(answers, lists)),
        };
    }
    let texts: Option<Vec<&str>> = values.iter().map(|(_, value)| value.as_str()).collect();
    match texts {
        Some(texts) => {
            let said: Vec<&str> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
            Value::String(said.join("\n\n"))
        }
        None => values.into_iter().map(|(_, value)| value).collect(),
    }
}

fn into_list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        other => vec![other],
    }
}

/// Puts lists one behind the other. What has times, and is in the sound that two parts share, is kept once.
fn in_a_row(answers: &[Answer], lists: Vec<(usize, Vec<Value>)>) -> Vec<Value> {
    let keeps = |number: usize, item: &Value| {
        let times = item.get("start").and_then(Value::as_f64).zip(item.get("end").and_then(Value::as_f64));
        let Some((start, end)) = times else { return true };
        let (after, before) = seams(answers, number);
        f64::midpoint(start, end) >= after && start < before
    };
    let kept =
        |(number, list): (usize, Vec<Value>)| list.into_iter().filter(|item| keeps(number, item)).collect::<Vec<_>>();
    lists.into_iter().flat_map(kept).collect()
}

/// Returns the middles of the sound that a part shares with the one before it and with the one behind it, in seconds of
/// the recording.
fn seams(answers: &[Answer], number: usize) -> (f64, f64) {
    let at = number - 1;
    let Some(answer) = answers.get(at) else { return (f64::NEG_INFINITY, f64::INFINITY) };
    let middle = |from: u64, to: u64| (answer.track_start_ms as f64 + u64::midpoint(from, to) as f64) / 1e3;
    let before = at.checked_sub(1).and_then(|at| answers.get(at));
    let behind = answers.get(at + 1);
    (
        before.map_or(f64::NEG_INFINITY, |before| middle(answer.range.from_ms, before.range.to_ms)),
        behind.map_or(f64::INFINITY, |behind| middle(behind.range.from_ms, answer.range.to_ms)),
    )
}

/// Joins the translations into each language.
fn by_language(answers: &[Answer], lists: Vec<(usize, Vec<Value>)>) -> Value {
    let mut languages: Vec<(Value, Vec<(usize, Value)>)> = Vec::new();
    for (number, list) in lists {
        for item in list {
            let language = item.get("languages").cloned().unwrap_or_default();
            match languages.iter_mut().find(|(known, _)| *known == language) {
                Some((_, items)) => items.push((number, item)),
                None => languages.push((language, vec![(number, item)])),
            }
        }
    }
    languages.into_iter().map(|(language, items)| translated(answers, language, items)).collect()
}

fn translated(answers: &[Answer], language: Value, items: Vec<(usize, Value)>) -> Value {
    let mut whole = Map::from_iter([("languages".to_owned(), language)]);
    let texts: Vec<&str> =
        items.iter().filter_map(|(_, item)| item.get("full_transcript")?.as_str()).map(str::trim).collect();
    whole.insert("full_transcript".to_owned(), json!(texts.join(" ").trim()));
    for name in ["utterances", "sentences"] {
        let lists = items.iter().filter_map(|(number, item)| Some((*number, into_list(item.get(name)?.clone()))));
        let lists: Vec<_> = lists.collect();
        if !lists.is_empty() {
            whole.insert(name.to_owned(), Value::Array(in_a_row(answers, lists)));
        }
    }
    let has_failed = |item: &Value| item.get("error").is_some_and(|error| !error.is_null());
    let failures: Vec<String> = items
        .iter()
        .filter(|(_, item)| has_failed(item))
        .filter_map(|(number, item)| failure(*number, Some(item)))
        .collect();
    let error = if failures.is_empty() { Value::Null } else { error("PartOfTheRecording", &failures.join("; ")) };
    whole.insert("error".to_owned(), error);
    Value::Object(whole)
}

/// Joins lists of which each place has the same meaning in every part, such as the answers to prompts.
fn by_place(lists: Vec<(usize, Vec<Value>)>) -> Value {
    let mut whole: Vec<Value> = Vec::new();
    for (number, list) in lists {
        for (at, item) in list.into_iter().enumerate() {
            match whole.get_mut(at) {
                Some(known) => add_answer(known, &item, number),
                None => whole.push(item),
            }
        }
    }
    Value::Array(whole)
}

/// Adds the answer for one more part to the answer to a prompt.
fn add_answer(known: &mut Value, item: &Value, number: usize) {
    let response = item.pointer("/results/response").and_then(Value::as_str).map(str::to_owned);
    if let (Some(Value::String(known)), Some(more)) = (known.pointer_mut("/results/response"), response) {
        known.push_str(&format!("\n\nPart {number} of the recording:\n{more}"));
    }
    if item.get("success") == Some(&Value::Bool(false))
        && let Some(fields) = known.as_object_mut()
    {
        fields.insert("success".to_owned(), json!(false));
        let why = item.pointer("/error/message").and_then(Value::as_str).unwrap_or("the service gave no reason");
        fields.insert("error".to_owned(), error("PartOfTheRecording", &format!("part {number}: {why}")));
    }
}

/// Returns the envelope of the speakers: those that cannot be told to be the same in two parts have different numbers,
/// and the envelope says so. `not_heard` is why their voices were not compared.
fn diarization(answers: &[Answer], joined: &JoinedTranscript, not_heard: Option<&str>) -> Option<Value> {
    let of_result = |answer: &Answer| answer.result()?.get("diarization").filter(|value| !value.is_null()).cloned();
    let envelope = joined_envelope(answers, "diarization", &of_result);
    let utterances = &joined.transcript.utterances;
    let mut envelope = match envelope {
        Some(Value::Object(envelope)) => Some(envelope),
        _ => None,
    };
    if let Some(envelope) = &mut envelope
        && envelope.get("results").is_some_and(Value::is_array)
    {
        envelope.insert("results".to_owned(), json!(Utterances(utterances)));
    }
    if !joined.unmatched.is_empty() {
        let parts: Vec<String> = joined.unmatched.iter().map(usize::to_string).collect();
        let message = format!(
            "the recording was sent in {} parts, and not every speaker of part {} is known to be one of those before: \
             such a speaker has a number of its own, so one person may have several numbers{}",
            answers.len(),
            parts.join(", "),
            not_heard.map(|why| format!(". Their voices were not compared: {why}")).unwrap_or_default()
        );
        let envelope = envelope.get_or_insert_default();
        envelope.insert("success".to_owned(), json!(false));
        envelope.insert("is_empty".to_owned(), json!(false));
        envelope.insert("error".to_owned(), error("SpeakersNotMatched", &message));
        envelope.remove("results");
    }
    envelope.map(Value::Object)
}

/// Says what of the answers could not be read, in the envelope that says it of a whole answer.
fn unread(answers: &[Answer]) -> Option<Value> {
    let one = |answer: &Answer| Some(format!("part {}: {}", answer.number, answer.unread.as_deref()?));
    let unread: Vec<String> = answers.iter().filter_map(one).collect();
    let message = format!("these fields of the service's answers could not be read: {}", unread.join("; "));
    let envelope = json!({ "success": false, "is_empty": false, "error": error("UnreadableFields", &message) });
    (!unread.is_empty()).then_some(envelope)
}

#[cfg(test)]
mod tests;
