//! Parses a service's answers: faults into text, bodies into data. No I/O.
//!
//! The text of a fault follows "service `name` ".

use crate::client::contract::{
    AcceptedUpload, FullListItem, FullListPage, ListItem, ListPage, ListedFile, RecordEvidence, RecordState,
    UnreadableItem,
};
use crate::client::record_evidence::evidence;
use crate::client::status_class::{StatusClass, meaning};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::stage::AudioAmount;
use crate::domain::token::{RESERVED_KEY, Token};
use crate::wire::bounded_value::BoundedValue;
use crate::wire::error::ErrorBody;
use crate::wire::page::RecordPage;
use crate::wire::parameter_check::METADATA;
use crate::wire::record::{Created, Record, Status};
use crate::wire::result::{ResultBill, ResultHead, length_millis};
use crate::wire::result_completeness::Delivered;
use crate::wire::timestamps;
use crate::wire::tolerant;
use crate::wire::upload;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// An answer as it was received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceAnswer {
    pub status: u16,
    /// The `Content-Type`; empty if there was none.
    pub content_type: String,
    /// The body, up to the limit and as far as it was received.
    pub body: Vec<u8>,
    /// Why the body is incomplete; `None` if it is complete.
    pub cut: Option<String>,
    /// The wait that a valid `Retry-After` asks for.
    pub retry_after: Option<Duration>,
    /// The target of a redirect, which is never followed.
    pub location: Option<String>,
    /// The service's request id, from a header.
    pub request_id: Option<String>,
}

impl ServiceAnswer {
    /// Returns the fault for an answer that is not a success.
    pub fn fault(&self, at: Timestamp) -> Fault {
        let error = serde_json::from_slice::<ErrorBody>(&self.body).unwrap_or_default();
        let mut words = format!("answered {}", self.status_words());
        match error.describe() {
            text if text.is_empty() => words.push_str(&self.other_words()),
            text => words.push_str(&format!(": {}", printable(text.as_bytes(), MAX_MESSAGE_CHARS))),
        }
        words.push_str(&self.elsewhere());
        words.push_str(self.hint());
        let request_id = Some(error.request_id).filter(|id| !id.is_empty()).or_else(|| self.request_id.clone());
        let request_id = request_id.map(|id| printable(id.as_bytes(), 100));
        Fault { request_id, ..Fault::new(self.fault_kind(), words, at) }
    }

    /// Returns the fault for an answer with a successful status whose body is not that of the interface.
    pub fn malformed(&self, why: &str, at: Timestamp) -> Fault {
        let words = format!("answered {}{}: {why}", self.status_words(), self.other_words());
        Fault { request_id: self.request_id.clone(), ..Fault::new(FaultKind::Broken, words, at) }
    }

    /// Whether this answer to an upload comes from a web server that does not have the path, so that it says nothing
    /// about the file. The interface's own refusals have a request id or a date.
    pub fn knows_no_uploads(&self) -> bool {
        let error = serde_json::from_slice::<ErrorBody>(&self.body).unwrap_or_default();
        let is_from_interface = !(error.request_id.is_empty() && error.timestamp.is_empty());
        matches!(self.status, 404 | 405) && (!is_from_interface || error.message.starts_with("Cannot POST"))
    }

    /// Returns the fault if the service is not at the configured address: it is the service's fault, not the file's.
    pub fn wrong_place(&self, at: Timestamp) -> Fault {
        let mut fault = self.fault(at);
        if !self.is_web_page() {
            fault.words.push_str(" (check `url`)");
        }
        Fault { kind: FaultKind::Broken, ..fault }
    }

    /// Whether this is a web page, made by a proxy or by another service.
    pub fn is_web_page(&self) -> bool {
        self.content_type.contains("html") || self.body.trim_ascii_start().starts_with(b"<")
    }

    fn fault_kind(&self) -> FaultKind {
        let status = self.status;
        let retry_after_ms = self.retry_after.and_then(|wait| u64::try_from(wait.as_millis()).ok());
        match meaning(status) {
            // A web server that does not have the path says nothing about the file.
            StatusClass::Refused if matches!(status, 404 | 405) && self.is_web_page() => FaultKind::Broken,
            StatusClass::Refused => FaultKind::Refused { status },
            StatusClass::Barred => FaultKind::Barred { status },
            StatusClass::Throttled => FaultKind::Throttled { retry_after_ms },
            // The wait must be obeyed, and only this kind of fault can carry it.
            StatusClass::Broken if status == 503 && retry_after_ms.is_some() => FaultKind::Throttled { retry_after_ms },
            StatusClass::Broken | StatusClass::Accepted => FaultKind::Broken,
        }
    }

    fn status_words(&self) -> String {
        let name = reqwest::StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason());
        name.map_or_else(|| self.status.to_string(), |name| format!("{} ({name})", self.status))
    }

    /// Describes a body that is not an error of the interface.
    fn other_words(&self) -> String {
        let what = if self.is_web_page() { "a web page" } else { "this" };
        let start = printable(&self.body, MAX_MESSAGE_CHARS);
        match (start.is_empty(), &self.cut) {
            (true, None) => " with an empty body".to_owned(),
            (true, Some(cut)) => format!(" ({cut})"),
            (false, None) => format!(" with {what}: `{start}`"),
            (false, Some(cut)) => format!(" with {what}: `{start}` ({cut})"),
        }
    }

    /// Describes where a redirect points, without parts that may be secret.
    fn elsewhere(&self) -> String {
        let address = self.location.as_deref().and_then(|location| location.split(['?', '#']).next());
        let address = address.filter(|_| (300..400).contains(&self.status));
        address.map(|address| format!(" and points to `{}`", printable(address.as_bytes(), 100))).unwrap_or_default()
    }

    /// Returns advice for the person who runs scribed.
    fn hint(&self) -> &'static str {
        match self.status {
            300..=399 => " (scribed does not follow redirects: write this address into `url`)",
            401 | 403 => " (check `key` and `key_header`)",
            402 => " (the account has no credit: pay at the service)",
            404 | 405 if self.is_web_page() => " (check `url`)",
            _ => "",
        }
    }
}

/// The most characters of a service's message that are kept in a fault.
const MAX_MESSAGE_CHARS: usize = 200;

/// Returns the start of a text as one line without control characters, for display.
pub fn printable(text: &[u8], most: usize) -> String {
    // A character has at most 4 bytes, so the rest cannot be shown.
    let start = String::from_utf8_lossy(&text[..text.len().min(most.saturating_mul(4))]);
    let mut shown = String::new();
    for word in start.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(word);
    }
    match shown.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    }
}

/// The part of the answer to an upload that is used. The metadata may have any form.
#[derive(Deserialize)]
struct UploadAnswer {
    audio_url: String,
    #[serde(default)]
    audio_metadata: BoundedValue,
}

/// Reads the answer to an upload.
///
/// # Errors
/// Why it cannot be used, as text.
pub fn sent(body: &[u8]) -> Result<AcceptedUpload, String> {
    let answer: UploadAnswer = parse(body)?;
    let upload = upload::upload_id(&answer.audio_url).ok_or_else(|| {
        format!("its audio_url is not a web address: `{}`", printable(answer.audio_url.as_bytes(), 100))
    })?;
    let number = |name| answer.audio_metadata.get(name).and_then(Value::as_u64);
    let millis = answer.audio_metadata.get("audio_duration").and_then(Value::as_f64).map_or(0, length_millis);
    let channels = number("number_of_channels").and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    Ok(AcceptedUpload { upload, audio: AudioAmount { millis, channels, billed: None }, size: number("size") })
}

/// Reads the answer to a create.
///
/// # Errors
/// Why it contains no usable id, as text.
pub fn created(body: &[u8]) -> Result<TranscriptionId, String> {
    let answer: Created = parse(body)?;
    usable_id(&answer.id).ok_or_else(|| "it has no usable id".to_owned())
}

/// Reads the answer to a poll of `id`. What was paid for counts more than the status: a record with a text is done, also
/// if it ended in an error, or if its status is unknown and it names the time of its end. Any other unknown status, and
/// `done` without a transcription or a reason, become [`RecordState::Pending`] with a description: they are polled again,
/// never taken for an end, and do not stop other requests. `at` is the moment of the read by this machine's clock, and
/// by the service's, if it sent a date.
///
/// # Errors
/// Why it cannot be used, as text, and the body.
pub fn reading(id: &TranscriptionId, body: Vec<u8>, at: ReadMoment) -> Result<RecordState, (String, Vec<u8>)> {
    match read_record(id, &body, at) {
        Ok(Read::Other(reading)) => Ok(reading),
        Ok(Read::Done { audio, took, evidence }) => Ok(RecordState::Done { raw: body, audio, took, evidence }),
        Err(why) => Err((why, body)),
    }
}

enum Read {
    Done { audio: AudioAmount, took: Option<Duration>, evidence: RecordEvidence },
    Other(RecordState),
}

/// When a record was read.
#[derive(Debug, Clone, Copy)]
pub struct ReadMoment {
    pub here: Timestamp,
    /// By the service's clock, which its dates can be compared with.
    pub service: Option<Timestamp>,
}

fn read_record(id: &TranscriptionId, body: &[u8], at: ReadMoment) -> Result<Read, String> {
    let record = record_of_answer(body).map_err(|error| error.to_string())?;
    if !record.id.is_empty() && !record.id.eq_ignore_ascii_case(id.as_str()) {
        return Err(format!("it is about another transcription, {}", printable(record.id.as_bytes(), 100)));
    }
    let done = |result: &ResultHead| {
        let (audio, took, evidence) = (result.audio(), took(&record), evidence(&record));
        Read::Done { audio, took, evidence }
    };
    Ok(match (&record.status, &record.result) {
        (Status::Done, Some(result)) if result.has_content() => done(result),
        (Status::Done, _) => Read::Other(without_result(id, &record, at)),
        (Status::Error, Some(result)) if has_text(body) => done(result),
        (Status::Error, _) => Read::Other(RecordState::Lost(dead(id, &record, at.here))),
        (Status::Other(_), Some(result)) if record.completed_at.is_some() && has_text(body) => done(result),
        (other, _) => Read::Other(RecordState::Pending(printable(other.as_str().as_bytes(), 60))),
    })
}

/// Whether there is a text in the result.
fn has_text(body: &[u8]) -> bool {
    let record = Record::<Delivered, IgnoredAny>::of_kept(body);
    record.is_ok_and(|record| record.result.is_some_and(|delivered| delivered.has_text()))
}

/// How long after the end that it names a record may lack its result: its service may store both one after another.
const LATE_RESULT: Duration = Duration::from_secs(600);

/// Returns the state of a record that is done and has nothing to write: failed if the service says why, or if the result
/// is late. It is not transcribed again by itself, since it was paid for.
fn without_result<M>(id: &TranscriptionId, record: &Record<ResultHead, M>, at: ReadMoment) -> RecordState {
    let why = record.reason().or_else(|| record.result.as_ref()?.error());
    let ended = record.completed_at.as_deref().and_then(timestamps::parse);
    let since_end = ended.zip(at.service).filter(|(ended, now)| ended <= now);
    let is_late = since_end.is_some_and(|(ended, now)| now.duration_since(ended) >= LATE_RESULT);
    if why.is_none() && !is_late {
        return RecordState::Pending("done, but without a result".to_owned());
    }
    let why = why.map(|why| printable(why.as_bytes(), MAX_MESSAGE_CHARS));
    let why = why.unwrap_or_else(|| "it gave no reason".to_owned());
    let code = record.error_code.filter(|code| (400..500).contains(code)).unwrap_or(NOTHING_TO_WRITE);
    let words = format!("ended transcription {id} without a result: {why}");
    RecordState::Lost(Fault { request_id: request_id(record), ..Fault::new(FaultKind::Dead { code }, words, at.here) })
}

fn request_id<R, M>(record: &Record<R, M>) -> Option<String> {
    record.request_id.as_deref().map(|id| printable(id.as_bytes(), 100))
}

/// The code of a transcription that is done and has no result: one with which it is not bought again (RFC 9110, 15.5.21).
const NOTHING_TO_WRITE: u16 = 422;

/// Reads the record of a transcription. One whose status is missing or no text, but that has a transcript, is done.
fn record_of_answer(body: &[u8]) -> serde_json::Result<Record<ResultHead, BoundedValue>> {
    tolerant::read(body).or_else(|error| {
        let has_transcript = |result: &ResultHead| result.has_transcription();
        let kept = Record::of_kept(body).ok().filter(|kept| kept.result.as_ref().is_some_and(has_transcript));
        kept.ok_or(error)
    })
}

/// Returns the time from the creation to the end, if the service states both.
fn took<R, M>(record: &Record<R, M>) -> Option<Duration> {
    let date = |text: &Option<String>| text.as_deref().and_then(timestamps::parse);
    let (created, completed) = (date(&record.created_at)?, date(&record.completed_at)?);
    (created <= completed).then(|| completed.duration_since(created))
}

/// Returns the fault of a failed transcription. The interface's `error_code` is 400 to 599; anything else counts as
/// 500.
fn dead<R, M>(id: &TranscriptionId, record: &Record<R, M>, at: Timestamp) -> Fault {
    let code = record.error_code.filter(|code| (400..=599).contains(code)).unwrap_or(500);
    let request_id = request_id(record);
    let number = request_id.as_ref().map(|id| format!(", request_id {id}")).unwrap_or_default();
    let why =
        record.reason().map(|why| format!(": {}", printable(why.as_bytes(), MAX_MESSAGE_CHARS))).unwrap_or_default();
    let words = format!("ended transcription {id} in an error (error_code {code}{number}){why}");
    // In the interface, `file` may be null if the status is `error`. A service that had the audio knows its length.
    let has_length = record.file.as_ref().is_some_and(|file| file.audio_duration.is_some_and(|length| length > 0.0));
    let unheard = !has_length && record.result.is_none();
    Fault { request_id, unheard, ..Fault::new(FaultKind::Dead { code }, words, at) }
}

/// Reads a page of the list. An unreadable item is reported, and does not affect the others.
///
/// # Errors
/// Why the page cannot be used, as text.
pub fn page(body: &[u8]) -> Result<ListPage, String> {
    let page: RecordPage<&RawValue> = parse(body)?;
    let mut list = ListPage { more: page.next.is_some_and(|next| !next.is_empty()), ..ListPage::default() };
    for (index, item) in page.items.into_iter().enumerate() {
        match listed(item) {
            Ok(item) => list.items.push(item),
            Err(unreadable) => list.unreadable.push(UnreadableItem { index, ..*unreadable }),
        }
    }
    Ok(list)
}

/// Reads an item of a list. Only what a list scan depends on must be readable: its id, and whether it contains a token.
fn listed(item: &RawValue) -> Result<ListItem, Box<UnreadableItem>> {
    // Not parsed as a record: one field of a wrong type, or a repeated field, would make it unreadable.
    let fields: BTreeMap<String, &RawValue> =
        serde_json::from_str(item.get()).map_err(|error| unreadable(None, None, error.to_string()))?;
    let text = |name: &str| read::<String>(&fields, name);
    let created = text("created_at").as_deref().and_then(timestamps::parse);
    let id = text("id").and_then(|id| usable_id(&id));
    let id = id.ok_or_else(|| unreadable(None, created, "it has no usable id".to_owned()))?;
    let metadata = metadata(&fields).map_err(|why| unreadable(Some(&id), created, why))?;
    let token = token_in(&metadata).map_err(|why| unreadable(Some(&id), created, why))?;
    let bill = read::<ResultBill>(&fields, "result").unwrap_or_default();
    let file = listed_file(&fields, bill.millis);
    let status = read::<Status>(&fields, "status").unwrap_or_else(|| Status::Other(String::new()));
    let has_metadata = !matches!(metadata, Metadata::None);
    Ok(ListItem { id, created, token, billed: bill.billed, status, has_metadata, file })
}

/// Reads what an item says of its audio. The length of the file counts before that of the result.
fn listed_file(fields: &BTreeMap<String, &RawValue>, of_result: Option<u64>) -> ListedFile {
    let file = read::<BTreeMap<String, &RawValue>>(fields, "file").unwrap_or_default();
    let of_file = read::<f64>(&file, "audio_duration").map(length_millis).filter(|millis| *millis > 0);
    ListedFile {
        name: read::<String>(&file, "filename").filter(|name| !name.is_empty()),
        millis: of_file.or(of_result),
    }
}

fn unreadable(id: Option<&TranscriptionId>, created: Option<Timestamp>, why: String) -> Box<UnreadableItem> {
    Box::new(UnreadableItem { index: 0, id: id.cloned(), created, why })
}

fn read<'a, T: Deserialize<'a>>(fields: &BTreeMap<String, &'a RawValue>, name: &str) -> Option<T> {
    fields.get(name).and_then(|value| serde_json::from_str(value.get()).ok())
}

/// The custom metadata of an item, as far as it may contain a token.
enum Metadata {
    /// There is no metadata, in whatever form the service expresses that.
    None,
    /// The object that was given at the create.
    Object(Map<String, Value>),
    /// A form that scribed never sends.
    Odd,
}

fn metadata(fields: &BTreeMap<String, &RawValue>) -> Result<Metadata, String> {
    let Some(raw) = fields.get(METADATA) else { return Ok(Metadata::None) };
    let value: Value = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    Ok(match value {
        Value::Null => Metadata::None,
        Value::Array(list) if list.is_empty() => Metadata::None,
        Value::Object(metadata) if metadata.is_empty() => Metadata::None,
        Value::Object(metadata) => Metadata::Object(metadata),
        Value::String(text) if text.is_empty() => Metadata::None,
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(metadata)) => Metadata::Object(metadata),
            _ if text.contains(RESERVED_KEY) => return Err("its custom_metadata is not an object".to_owned()),
            _ => Metadata::Odd,
        },
        _ if raw.get().contains(RESERVED_KEY) => return Err("its custom_metadata is not an object".to_owned()),
        _ => Metadata::Odd,
    })
}

/// Returns the token in the metadata, if there is one.
fn token_in(metadata: &Metadata) -> Result<Option<Token>, String> {
    let Metadata::Object(metadata) = metadata else { return Ok(None) };
    let Some(token) = metadata.get(RESERVED_KEY) else { return Ok(None) };
    let shown = || format!("scribed cannot read its token `{}`", printable(token.to_string().as_bytes(), 100));
    token.as_str().and_then(Token::parse).map(Some).ok_or_else(shown)
}

/// Reads a page of a list with the whole items. An unreadable item does not affect the others.
///
/// # Errors
/// Why the page cannot be used, as text.
pub fn whole_page(body: &[u8]) -> Result<FullListPage, String> {
    let page: RecordPage<&RawValue> = parse(body)?;
    let items = page.items.iter().map(|item| whole(item.get().as_bytes())).collect();
    Ok(FullListPage { items, more: page.next.is_some_and(|next| !next.is_empty()) })
}

/// Reads a record with its whole text.
///
/// # Errors
/// Why it cannot be used, as text.
pub fn whole(raw: &[u8]) -> Result<FullListItem, String> {
    let record: Record<ResultHead, IgnoredAny> = tolerant::read(raw).map_err(|error| error.to_string())?;
    let id = usable_id(&record.id).ok_or("it has no usable id")?;
    let created = record.created_at.as_deref().and_then(timestamps::parse);
    let has_result = record.result.is_some();
    let fields: BTreeMap<String, &RawValue> = parse(raw)?;
    let has_token = metadata(&fields).and_then(|metadata| token_in(&metadata)).is_ok_and(|token| token.is_some());
    let of_result = record.result.as_ref().map(|result| result.audio().millis).filter(|millis| *millis > 0);
    let file = listed_file(&fields, of_result);
    Ok(FullListItem { id, status: record.status, created, has_result, has_token, file, raw: raw.to_vec() })
}

/// Checks an id that goes into addresses and log lines.
fn usable_id(id: &str) -> Option<TranscriptionId> {
    let is_usable = !id.is_empty() && id.len() <= 200 && id != "." && id != ".." && !id.chars().any(char::is_control);
    is_usable.then(|| TranscriptionId::new(id))
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SAMPLES: [&str; 3] = [
        include_str!("../../tests/data/samples/v2/job_done.captured_2023-12_early.json"),
        include_str!("../../tests/data/samples/v2/job_done.vercel_fixture_2025.json"),
        include_str!("../../tests/data/samples/v1/response.docs_migration.json"),
    ];

    fn read(body: &str) -> Result<RecordState, String> {
        let id = TranscriptionId::new("t-1");
        let at = ReadMoment { here: Timestamp(0), service: Some(Timestamp(0)) };
        reading(&id, body.as_bytes().to_vec(), at).map_err(|(why, _)| why)
    }

    fn is_done(body: &str) -> bool {
        matches!(read(body), Ok(RecordState::Done { raw, .. }) if raw == body.as_bytes())
    }

    /// Returns the paths of all values; of a list, only those of its first element.
    fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
        found.push(at.to_owned());
        match value {
            Value::Object(fields) => fields.iter().for_each(|(key, inner)| paths(inner, &format!("{at}/{key}"), found)),
            Value::Array(list) => list.iter().take(1).for_each(|inner| paths(inner, &format!("{at}/0"), found)),
            _ => {}
        }
    }

    /// The read that brings a result brings it whatever its details look like; it is kept as it was sent.
    #[test]
    fn a_paid_result_is_taken_whatever_its_details_are() {
        const MARK: &str = "\"@@\"";
        let deep = "[".repeat(500) + &"]".repeat(500);
        let others = ["null", "\"\"", "[]", "{}", "7", "true", "1e999", "NaN", r#""\ud800""#, &deep];
        for sample in SAMPLES {
            let mut sample: Value = serde_json::from_str(sample).unwrap();
            if !sample["id"].is_null() {
                sample["id"] = json!("t-1");
            }
            assert!(is_done(&sample.to_string()));
            let mut all = Vec::new();
            paths(&sample, "", &mut all);
            let is_detail = |path: &&String| !["", "/result", "/result/transcription"].contains(&path.as_str());
            for path in all.iter().filter(is_detail) {
                let mut marked = sample.clone();
                *marked.pointer_mut(path).unwrap() = json!("@@");
                let is_text_of_status = |other: &&&str| path == "/status" && other.starts_with('"');
                for other in others.iter().filter(|other| !is_text_of_status(other)) {
                    let body = marked.to_string().replace(MARK, other);
                    assert!(is_done(&body) || (path == "/id" && other.contains("ud800")), "{path} as {other}");
                }
            }
        }
    }

    #[test]
    fn a_text_counts_more_than_the_status() {
        let ended = r#""id":"t-1","completed_at":"2026-01-01T00:00:00Z""#;
        let text = r#""result":{"transcription":{"full_transcript":"All of it."}}"#;
        assert!(is_done(&format!(r#"{{{ended},"status":"finished",{text}}}"#)));
        assert!(is_done(&format!(r#"{{{ended},"status":"error","error":"late",{text}}}"#)));
        let silent = format!(r#"{{{ended},"status":"error","error":"late","result":{{"transcription":{{}}}}}}"#);
        assert!(matches!(read(&silent), Ok(RecordState::Lost(fault)) if fault.words.ends_with(": late")));
    }

    #[test]
    fn what_is_done_with_a_reason_in_place_of_a_result_has_failed() {
        let of = |rest: &str| read(&format!(r#"{{"id":"t-1","status":"done",{rest}}}"#)).unwrap();
        let failed = |state: RecordState, why: &str| match state {
            RecordState::Lost(fault) => {
                assert_eq!(fault.kind, FaultKind::Dead { code: 422 });
                assert_eq!(fault.words, format!("ended transcription t-1 without a result: {why}"));
            }
            other => panic!("{other:?}"),
        };
        failed(of(r#""result":null,"error":{"message":"no speech model"}"#), "no speech model");
        failed(of(r#""result":{"transcription":null,"error":"too noisy"}"#), "too noisy");
        let ended = |at: &str| of(&format!(r#""result":null,"completed_at":"{at}""#));
        failed(ended("1969-12-31T23:50:00Z"), "it gave no reason");
        for late in ["1969-12-31T23:51:00Z", "1970-01-02T00:00:00Z"] {
            assert!(matches!(ended(late), RecordState::Pending(_)), "{late}");
        }
    }

    /// A clock that is wrong here makes no result late.
    #[test]
    fn only_the_services_clock_makes_a_result_late() {
        let id = TranscriptionId::new("t-1");
        let body = r#"{"id":"t-1","status":"done","result":null,"completed_at":"2026-01-01T00:00:00Z"}"#;
        let minutes = |minutes: i64| Timestamp(1_767_225_600_000 + minutes * 60_000);
        for (service, is_late) in [(None, false), (Some(minutes(9)), false), (Some(minutes(10)), true)] {
            let at = ReadMoment { here: minutes(1_000_000), service };
            let read = reading(&id, body.as_bytes().to_vec(), at).unwrap();
            assert_eq!(matches!(read, RecordState::Lost(_)), is_late, "{service:?}");
        }
    }

    #[test]
    fn what_has_nothing_to_write_is_asked_for_again() {
        for result in ["null", "7", "[]", "{}", r#"{"metadata":{}}"#, r#"{"transcription":null,"summarization":null}"#]
        {
            let body = format!(r#"{{"id":"t-1","status":"done","result":{result}}}"#);
            assert!(
                matches!(read(&body), Ok(RecordState::Pending(words)) if words.contains("without a result")),
                "{body}"
            );
        }
        for result in [r#"{"transcription":7}"#, r#"{"transcription":null,"summarization":{"results":"x"}}"#] {
            assert!(is_done(&format!(r#"{{"id":"t-1","status":"done","result":{result}}}"#)), "{result}");
        }
        let odd = r#"{"id":"t-1","status":"archived","result":{"transcription":{}}}"#;
        let early = r#"{"id":"t-1","status":"archived","result":{"transcription":{"full_transcript":"Part of"}}}"#;
        assert!(matches!(read(early), Ok(RecordState::Pending(status)) if status == "archived"));
        assert!(matches!(read(odd), Ok(RecordState::Pending(status)) if status == "archived"));
        assert!(read(r#"{"id":"t-2","result":{"transcription":{}}}"#).unwrap_err().contains("another transcription"));
        assert!(read(r#"{"id":"t-1"}"#).is_err());
    }
}
