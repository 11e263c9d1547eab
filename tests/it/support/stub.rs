//! A complete service in a test: it works as it should except where a rule says otherwise, and it records what it
//! really accepted.

use super::scripted::{Scripted, Seen, Step, http};
use scribed::testing::domain::names::Timestamp;
use scribed::testing::wire::timestamps;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    Upload,
    Create,
    Read,
    List,
    Delete,
}

/// A request, as a rule sees it.
pub struct StubRequest<'a> {
    pub endpoint: Endpoint,
    /// The name of the file that it concerns; empty for a list.
    pub file: &'a str,
    /// The query of its address.
    pub query: &'a str,
    /// The number of earlier requests: to this endpoint, and to this endpoint about this file.
    pub before: usize,
    pub before_of_file: usize,
}

/// What a rule decides.
pub enum Act {
    /// Answer as usual.
    Well,
    /// Give this answer, and do nothing else.
    Say(Step),
    /// Do what was requested, and give this answer.
    After(Step),
    /// Answer as usual, but change the answer.
    Change(fn(&mut Value)),
    /// Answer as usual, but change the answer with a closure.
    With(Box<dyn FnOnce(&mut Value) + Send>),
    /// Answer as usual, but with this content type.
    As(&'static str),
}

impl Act {
    /// For a read: the transcription has not ended yet.
    pub fn still_running() -> Self {
        Self::Change(|record| {
            record["status"] = json!("processing");
            record["result"] = Value::Null;
        })
    }
}

type Rule = Box<dyn FnMut(&StubRequest<'_>, &mut StubRecords) -> Act + Send>;

/// A create request.
pub struct Create {
    pub file: String,
    /// The audio to transcribe: an upload of its own, or an address to fetch.
    pub audio_url: String,
    pub token: String,
    /// Its whole body.
    pub body: Value,
    /// Its callback settings; null without a callback.
    pub callback: Value,
    pub accepted: bool,
}

#[derive(Default)]
pub struct StubRecords {
    /// The file names by the ids of their uploads.
    uploads: BTreeMap<String, String>,
    pub creates: Vec<Create>,
    /// The content that was last uploaded under each name.
    pub contents: BTreeMap<String, Vec<u8>>,
    /// The records, oldest first: the id, the file's name, the metadata, the creation time.
    transcriptions: Vec<(String, String, Value, Timestamp)>,
    /// Every request: its time, its endpoint and its file.
    pub requests: Vec<(Instant, Endpoint, String)>,
    /// What the answers to the uploads said of the length, by the file's name.
    lengths: BTreeMap<String, Value>,
    numbers: u64,
    /// Whether lists filter by `before_date`.
    pub honours_before: bool,
    /// For rules that count ended transcriptions.
    pub ended: BTreeSet<String>,
    /// Whether good answers have the header `Date`, by the machine's clock.
    pub tells_date: bool,
}

impl StubRecords {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Gives all accepted transcriptions other ids.
    pub fn rename(&mut self) {
        for record in &mut self.transcriptions {
            record.0 = format!("moved-{}", record.0.trim_start_matches("moved-"));
        }
    }

    /// Adds a transcription of another client.
    pub fn slip_in(&mut self, id: &str) {
        self.transcriptions.push((id.to_owned(), id.to_owned(), Value::Null, now()));
    }

    /// Adds a transcription of another client that was created `ago` milliseconds ago. Add older ones first.
    pub fn slip_in_dated(&mut self, id: &str, ago: i64) {
        let metadata = json!({ "whose": "another's" });
        self.transcriptions.push((id.to_owned(), id.to_owned(), metadata, Timestamp(now().0 - ago)));
    }

    /// Adds a newer copy of this file's transcription.
    pub fn double(&mut self, file: &str) {
        let first = self.transcriptions.iter().find(|record| record.1 == file).expect("it was accepted").clone();
        self.transcriptions.push((format!("{}-again", first.0), first.1, first.2, now()));
    }

    /// Removes this file's transcriptions.
    pub fn lose(&mut self, file: &str) {
        self.transcriptions.retain(|record| record.1 != file);
    }

    /// Returns the ids of the records, oldest first.
    pub fn ids(&self) -> Vec<String> {
        self.transcriptions.iter().map(|record| record.0.clone()).collect()
    }

    /// Returns the files of the records by their ids.
    pub fn files(&self) -> BTreeMap<String, String> {
        self.transcriptions.iter().map(|record| (record.0.clone(), record.1.clone())).collect()
    }

    fn delete(&mut self, id: &str) -> Option<Value> {
        let at = self.transcriptions.iter().position(|record| record.0 == id)?;
        self.transcriptions.remove(at);
        Some(json!({}))
    }

    /// Removes all records, as if nothing had ever been accepted.
    pub fn lose_all(&mut self) {
        self.transcriptions.clear();
    }

    /// Returns how many creates were accepted for each file.
    pub fn accepted(&self) -> BTreeMap<&str, usize> {
        let mut accepted = BTreeMap::new();
        for create in &self.creates {
            *accepted.entry(create.file.as_str()).or_default() += usize::from(create.accepted);
        }
        accepted
    }

    /// Returns the largest number of accepted creates with the same token.
    pub fn most_of_a_token(&self) -> usize {
        let mut tokens: BTreeMap<&str, usize> = BTreeMap::new();
        for create in self.creates.iter().filter(|create| create.accepted) {
            *tokens.entry(&create.token).or_default() += 1;
        }
        tokens.into_values().max().unwrap_or(0)
    }

    /// Returns the times of the requests to an endpoint.
    pub fn moments(&self, endpoint: Endpoint) -> Vec<Instant> {
        self.requests.iter().filter(|(_, of, _)| *of == endpoint).map(|(at, ..)| *at).collect()
    }

    fn upload(&mut self, seen: &Seen, file: &str, base: &str) -> Value {
        let id = format!("u-{}", self.number());
        self.uploads.insert(id.clone(), file.to_owned());
        self.contents.insert(file.to_owned(), content(seen).to_vec());
        json!({
            "audio_url": format!("{base}/file/{id}"),
            "audio_metadata": {
                "id": id, "filename": file, "extension": "wav", "size": content(seen).len(),
                "audio_duration": 1.5, "number_of_channels": 1,
            },
        })
    }

    fn create(&mut self, seen: &Seen, file: &str, base: &str) -> Value {
        let id = format!("t-{}", self.number());
        let metadata = body(seen)["custom_metadata"].clone();
        self.transcriptions.push((id.clone(), file.to_owned(), metadata, now()));
        if let Some(create) = self.creates.last_mut() {
            create.accepted = true;
        }
        json!({ "id": id, "result_url": format!("{base}/v2/pre-recorded/{id}") })
    }

    fn read(&self, id: &str) -> Option<Value> {
        let (id, file, metadata, at) = self.transcriptions.iter().find(|record| record.0 == id)?;
        let length = self.lengths.get(file).cloned().unwrap_or(json!(1.5));
        let mut record = json!({
            "id": id, "status": "done", "created_at": timestamps::format(*at), "custom_metadata": metadata,
            "result": good_result(file, &length),
        });
        let diarizes = |create: &Create| metadata["scribed"] == create.token && create.body["diarization"] == true;
        if self.creates.iter().any(diarizes) {
            record["result"]["transcription"]["utterances"][0]["speaker"] = json!(0);
        }
        // The record repeats the callback, like everything else that was requested.
        let has_callback = |create: &&Create| metadata["scribed"] == create.token && !create.callback.is_null();
        if let Some(create) = self.creates.iter().find(has_callback) {
            let (callback, url) = (&create.callback, &create.callback["url"]);
            record["request_params"] = json!({ "callback": true, "callback_config": callback, "callback_url": url });
        }
        Some(record)
    }

    fn list(&self, query: &str) -> Value {
        let number = |name: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse::<usize>().ok())
        };
        let (from, limit) = (number("offset").unwrap_or(0), number("limit").unwrap_or(20));
        let before = query.split('&').find_map(|pair| pair.strip_prefix("before_date="));
        let before =
            before.and_then(|date| timestamps::parse(&date.replace("%3A", ":"))).unwrap_or(Timestamp(i64::MAX));
        let shown = || self.transcriptions.iter().rev().filter(|record| !self.honours_before || record.3 < before);
        let newest_first = shown().skip(from);
        let item = |(id, _, metadata, at): &(String, String, Value, Timestamp)| json!({ "id": id, "status": "done", "created_at": timestamps::format(*at), "custom_metadata": metadata });
        let items: Vec<Value> = newest_first.take(limit).map(item).collect();
        let more = from + items.len() < shown().count();
        json!({ "items": items, "next": more.then_some("there is more") })
    }
}

/// The result of a recording, of the length that the answer to its upload said.
fn good_result(file: &str, length: &Value) -> Value {
    let words = format!("What was said in {file}.");
    json!({
        "metadata": { "audio_duration": length, "number_of_distinct_channels": 1 },
        "transcription": {
            "full_transcript": words, "languages": ["en"],
            "utterances": [{
                "start": 0.0, "end": 1.0, "confidence": 1.0, "channel": 0, "text": words, "language": "en", "words": [],
            }],
        },
    })
}

/// The answer to an upload whose result will be changed so: it says the length that the result will say.
pub fn upload_before(change: fn(&mut Value), file: &str) -> Act {
    let mut record = json!({ "id": "t", "status": "done", "result": good_result(file, &json!(1.5)) });
    change(&mut record);
    let length = record["result"]["metadata"]["audio_duration"].clone();
    Act::With(Box::new(move |answer| answer["audio_metadata"]["audio_duration"] = length))
}

fn now() -> Timestamp {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    Timestamp(i64::try_from(millis).unwrap())
}

/// Returns the JSON body of a create.
fn body(seen: &Seen) -> Value {
    serde_json::from_slice(&seen.body).unwrap()
}

/// Returns the content of the only part of an upload.
fn content(seen: &Seen) -> &[u8] {
    let find = |needle: &[u8], from: usize| {
        let windows = seen.body[from..].windows(needle.len());
        from + windows.into_iter().position(|window| window == needle).expect("a multipart body")
    };
    let begin = find(b"\r\n\r\n", 0) + 4;
    let boundary = seen.header("content-type").unwrap().split_once("boundary=").unwrap().1.to_owned();
    &seen.body[begin..find(format!("\r\n--{boundary}--").as_bytes(), begin)]
}

fn file_name(seen: &Seen) -> String {
    let head = String::from_utf8_lossy(&seen.body[..seen.body.len().min(1_000)]).into_owned();
    let (_, rest) = head.split_once("filename=\"").expect("a file's name");
    rest.split_once('"').unwrap().0.to_owned()
}

/// A running service; it stops when dropped.
pub struct Stub {
    scripted: Scripted,
    records: Arc<Mutex<StubRecords>>,
    rule: Arc<Mutex<Rule>>,
    _runtime: Runtime,
}

impl Stub {
    pub fn start(rule: impl FnMut(&StubRequest<'_>, &mut StubRecords) -> Act + Send + 'static) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let records = Arc::<Mutex<StubRecords>>::default();
        let rule: Arc<Mutex<Rule>> = Arc::new(Mutex::new(Box::new(rule)));
        let (shared, rules) = (Arc::clone(&records), Arc::clone(&rule));
        let answer = move |seen: &Seen| answer(seen, &mut shared.lock().unwrap(), &mut rules.lock().unwrap());
        let scripted = runtime.block_on(Scripted::answering(answer));
        Self { scripted, records, rule, _runtime: runtime }
    }

    /// Starts a service without faults.
    pub fn well() -> Self {
        Self::start(|_, _| Act::Well)
    }

    /// Starts a service without faults that changes each record before it answers with it.
    pub fn changing_results(change: fn(&mut Value)) -> Self {
        Self::start(move |asked, _| match asked.endpoint {
            Endpoint::Read => Act::Change(change),
            Endpoint::Upload => upload_before(change, asked.file),
            _ => Act::Well,
        })
    }

    /// Starts a service whose transcriptions end when the returned flag is set.
    pub fn slow() -> (Self, Arc<AtomicBool>) {
        let ended = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ended);
        let stub = Self::start(move |request, _| match request.endpoint {
            Endpoint::Read if !over.load(Ordering::SeqCst) => Act::still_running(),
            _ => Act::Well,
        });
        (stub, ended)
    }

    /// Uses another rule from now on.
    pub fn set(&self, rule: impl FnMut(&StubRequest<'_>, &mut StubRecords) -> Act + Send + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
    }

    pub fn url(&self) -> String {
        self.scripted.url()
    }

    pub fn records(&self) -> MutexGuard<'_, StubRecords> {
        self.records.lock().unwrap()
    }
}

fn answer(seen: &Seen, records: &mut StubRecords, rule: &mut Rule) -> Step {
    let base = format!("http://{}", seen.header("host").unwrap());
    let line = seen.line().to_owned();
    let (endpoint, file) = match line.split_once(' ').unwrap() {
        ("POST", "/v2/upload") => (Endpoint::Upload, file_name(seen)),
        ("POST", "/v2/pre-recorded") => (Endpoint::Create, file_of_create(seen, records)),
        ("GET", path) if path.starts_with("/v2/pre-recorded/") => (Endpoint::Read, file_of_record(path, records)),
        ("GET", _) => (Endpoint::List, String::new()),
        ("DELETE", path) => (Endpoint::Delete, file_of_record(path, records)),
        other => panic!("nobody asks for {other:?}"),
    };
    if endpoint == Endpoint::Create {
        let token = body(seen)["custom_metadata"]["scribed"].as_str().expect("a token").to_owned();
        let (body, file) = (body(seen), file.clone());
        assert_eq!(body["callback"].as_bool().unwrap_or(false), body["callback_config"].is_object());
        let callback = body["callback_config"].clone();
        let audio_url = body["audio_url"].as_str().unwrap().to_owned();
        records.creates.push(Create { file, audio_url, token, body, callback, accepted: false });
    }
    let before = records.requests.iter().filter(|(_, of, _)| *of == endpoint).count();
    let before_of_file = records.requests.iter().filter(|(_, to, of)| *to == endpoint && *of == file).count();
    records.requests.push((Instant::now(), endpoint, file.clone()));
    let query = line.split_once('?').map_or("", |(_, query)| query);
    let act = rule(&StubRequest { endpoint, file: &file, query, before, before_of_file }, records);
    let good = |records: &mut StubRecords| match endpoint {
        Endpoint::Upload => Some((200, records.upload(seen, &file, &base))),
        Endpoint::Create => Some((201, records.create(seen, &file, &base))),
        Endpoint::Read => records.read(line.rsplit('/').next().unwrap()).map(|record| (200, record)),
        Endpoint::Delete => records.delete(line.rsplit('/').next().unwrap()).map(|record| (202, record)),
        Endpoint::List => Some((200, records.list(line.split_once('?').map_or("", |(_, query)| query)))),
    };
    if let Act::Say(step) = act {
        return step;
    }
    let Some((status, mut body)) = good(records) else { return refusal(404, "no such transcription") };
    let date = if records.tells_date {
        format!("date: {}\r\n", httpdate::fmt_http_date(SystemTime::now()))
    } else {
        String::new()
    };
    let answer = |kind: &str, body: &Value| {
        Step::Answer(http(status, &format!("{date}content-type: {kind}\r\n"), &body.to_string()))
    };
    let answered = match act {
        Act::Say(step) | Act::After(step) => step,
        Act::Well => answer("application/json", &body),
        Act::As(kind) => answer(kind, &body),
        Act::Change(change) => {
            change(&mut body);
            answer("application/json", &body)
        }
        Act::With(change) => {
            change(&mut body);
            answer("application/json", &body)
        }
    };
    if endpoint == Endpoint::Upload {
        let length = body["audio_metadata"].get("audio_duration");
        records.lengths.extend(length.map(|length| (file, length.clone())));
    }
    answered
}

fn file_of_create(seen: &Seen, records: &StubRecords) -> String {
    let url = body(seen)["audio_url"].as_str().unwrap().to_owned();
    let last = url.rsplit('/').next().unwrap();
    // A fetched recording is known by its own name.
    records.uploads.get(last).cloned().unwrap_or_else(|| last.split('?').next().unwrap().to_owned())
}

/// Returns the file of a record; if the record was removed, its id, which still identifies it.
fn file_of_record(path: &str, records: &StubRecords) -> String {
    let id = path.rsplit('/').next().unwrap();
    records.transcriptions.iter().find(|record| record.0 == id).map_or_else(|| id.to_owned(), |record| record.1.clone())
}

pub const JSON: &str = "content-type: application/json\r\n";

/// Returns an error in the interface's form.
pub fn refusal(status: u16, message: &str) -> Step {
    refusal_with(status, "", message)
}

/// Returns an error with more headers, each with its line end.
pub fn refusal_with(status: u16, headers: &str, message: &str) -> Step {
    let body = json!({
        "timestamp": "2026-01-01T00:00:00Z", "path": "/", "request_id": format!("G-{status}"),
        "statusCode": status, "message": message,
    });
    Step::Answer(http(status, &format!("{JSON}{headers}"), &body.to_string()))
}
