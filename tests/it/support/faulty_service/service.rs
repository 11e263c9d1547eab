//! The service of a row, and its record of what it really accepted.

use super::super::scripted::{Scripted, Seen, Step, http};
use super::Fast;
use super::faults::{Faults, Out};
use scribed::testing::clock::Clock;
use scribed::testing::domain::names::Timestamp;
use scribed::testing::wire::timestamps;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

/// The counts of what was requested and accepted.
#[derive(Debug, Clone, Default)]
pub struct Books {
    pub requests: u64,
    pub uploads: u64,
    pub creates: u64,
    pub reads: u64,
    pub lists: u64,
    /// Requests answered with 429, and those after half of the uploaded files were accepted.
    pub throttled: u64,
    pub throttled_after: u64,
    /// Accepted creates that do not end in error, by file.
    pub good: BTreeMap<String, u32>,
    /// Accepted creates, by token.
    pub tokens: BTreeMap<String, u32>,
}

impl Books {
    /// Returns the smallest and the largest number of good transcriptions of a file.
    pub fn created(&self) -> (u32, u32) {
        let of = |all: Option<&u32>| all.copied().unwrap_or(0);
        (of(self.good.values().min()), of(self.good.values().max()))
    }

    /// Returns the largest number of accepted creates with the same token.
    pub fn most_of_a_token(&self) -> u32 {
        self.tokens.values().max().copied().unwrap_or(0)
    }
}

struct Record {
    id: String,
    file: String,
    metadata: Value,
    created: Timestamp,
    ends: Timestamp,
    dies: bool,
}

struct Call {
    at: Timestamp,
    url: String,
}

struct State {
    faults: Faults,
    clock: Arc<Fast>,
    begun: Timestamp,
    rng: fastrand::Rng,
    running: usize,
    uploads: HashMap<String, String>,
    records: Vec<Record>,
    by_id: HashMap<String, usize>,
    calls: Vec<Call>,
    books: Books,
    numbers: u64,
}

/// A running service; it stops when dropped.
pub struct Service {
    scripted: Scripted,
    state: Arc<Mutex<State>>,
    clock: Arc<Fast>,
    forges: bool,
}

impl Service {
    pub async fn start(faults: &Faults, clock: Arc<Fast>, running: usize) -> Self {
        let state = State {
            faults: faults.clone(),
            begun: clock.now(),
            clock: Arc::clone(&clock),
            rng: fastrand::Rng::with_seed(11),
            running,
            uploads: HashMap::new(),
            records: Vec::new(),
            by_id: HashMap::new(),
            calls: Vec::new(),
            books: Books::default(),
            numbers: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let answering = Arc::clone(&state);
        let scripted = Scripted::answering(move |seen| lock(&answering).answer(seen)).await;
        Self { scripted, state, clock, forges: faults.calls_forged }
    }

    pub fn url(&self) -> String {
        self.scripted.url()
    }

    pub fn books(&self) -> Books {
        lock(&self.state).books.clone()
    }

    /// Makes the callbacks that are due, without end.
    pub fn caller(&self) -> impl Future<Output = ()> + Send + use<> {
        let (state, clock, forges) = (Arc::clone(&self.state), Arc::clone(&self.clock), self.forges);
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        async move {
            loop {
                let due = lock(&state).due_calls();
                for url in due {
                    if forges && let Some((place, _)) = url.rsplit_once('/') {
                        let forged = format!("{place}/1.0.{}", "0".repeat(32));
                        http.post(forged).body("{}").send().await.ok();
                    }
                    http.post(url).body("{}").send().await.ok();
                }
                clock.sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap()
}

const JSON: &str = "content-type: application/json\r\n";

fn json_body(seen: &Seen) -> Value {
    serde_json::from_slice(&seen.body).unwrap()
}

fn file_name(seen: &Seen) -> String {
    let head = String::from_utf8_lossy(&seen.body[..seen.body.len().min(1_000)]).into_owned();
    let (_, rest) = head.split_once("filename=\"").expect("a file's name");
    rest.split_once('"').unwrap().0.to_owned()
}

impl State {
    fn answer(&mut self, seen: &Seen) -> Step {
        self.books.requests += 1;
        let line = seen.line().to_owned();
        let (method, path) = line.split_once(' ').unwrap();
        let counted = match (method, path) {
            ("POST", "/v2/upload") => &mut self.books.uploads,
            ("POST", _) => &mut self.books.creates,
            ("GET", path) if path.starts_with("/v2/pre-recorded/") => &mut self.books.reads,
            _ => &mut self.books.lists,
        };
        *counted += 1;
        let now = self.clock.now();
        let since = now.duration_since(self.begun);
        let is_out = |outage: &&super::faults::Outage| since >= outage.from && since < outage.from + outage.lasts;
        if let Some(outage) = self.faults.outages.iter().find(is_out) {
            return self.out(outage.says, method);
        }
        if self.chance(self.faults.wrong) {
            let status = [500, 502, 503, 504, 408, 409, 425][self.rng.usize(0..7)];
            return self.refuse(status, "");
        }
        let (status, body) = match (method, path) {
            ("POST", "/v2/upload") => (200, self.upload(seen)),
            ("POST", _) => match self.create(seen) {
                Some(created) => (201, created),
                None => return self.refuse(429, "retry-after: 5\r\n"),
            },
            ("GET", path) if path.starts_with("/v2/pre-recorded/") => match self.read(path) {
                Some(record) => (200, record),
                None => return self.refuse(404, ""),
            },
            _ => (200, self.list(path)),
        };
        self.said(status, &body)
    }

    fn chance(&mut self, of_a_hundred: u32) -> bool {
        self.rng.u32(0..100) < of_a_hundred
    }

    /// Returns headers that include the service's date.
    fn head(&self, more: &str) -> String {
        let now = UNIX_EPOCH + Duration::from_millis(self.clock.now().0.try_into().unwrap());
        format!("date: {}\r\n{more}", httpdate::fmt_http_date(now))
    }

    fn out(&mut self, says: Out, method: &str) -> Step {
        match says {
            // Without credit, existing transcriptions can still be listed.
            Out::Status(402) if method == "GET" => {
                Step::Answer(http(200, &self.head(JSON), r#"{"items":[],"next":null}"#))
            }
            Out::Status(status) => self.refuse(status, ""),
            Out::Reset => Step::ResetAfter,
            Out::Hang => Step::Hang,
            Out::Page => Step::Answer(http(200, &self.head("content-type: text/html\r\n"), "<html>back soon</html>")),
        }
    }

    fn refuse(&mut self, status: u16, headers: &str) -> Step {
        if status == 429 {
            self.books.throttled += 1;
            // By then the client should have learned the limit.
            let accepted = self.books.good.len();
            self.books.throttled_after += u64::from(accepted * 2 > self.uploads.len().max(20));
        }
        let body = json!({ "request_id": "G-1", "statusCode": status, "message": "not now" });
        Step::Answer(http(status, &self.head(&format!("{JSON}{headers}")), &body.to_string()))
    }

    fn said(&mut self, status: u16, body: &Value) -> Step {
        let (text, head) = (body.to_string(), self.head(JSON));
        if self.chance(self.faults.lost) {
            return [Step::ResetAfter, Step::CloseAfter][self.rng.usize(0..2)].clone();
        }
        if self.chance(self.faults.malformed) {
            let half = &text[..text.len() / 2];
            return match self.rng.u32(0..3) {
                0 => Step::Answer(http(status, &head, half)),
                1 => Step::Answer(http(status, &self.head("content-type: text/html\r\n"), "<html>a gateway</html>")),
                _ => Step::AnswerAndClose(
                    format!("HTTP/1.1 {status} X\r\n{head}content-length: {}\r\n\r\n{half}", text.len()).into_bytes(),
                ),
            };
        }
        Step::Answer(http(status, &head, &text))
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn upload(&mut self, seen: &Seen) -> Value {
        let id = format!("u-{}", self.number());
        self.uploads.insert(id.clone(), file_name(seen));
        let mut metadata = json!({ "id": id, "audio_duration": 60.0, "number_of_channels": 1 });
        if self.chance(self.faults.void) {
            metadata["size"] = json!(1);
        }
        json!({ "audio_url": format!("http://stt/file/{id}"), "audio_metadata": metadata })
    }

    /// Accepts a create; `None` if enough transcriptions are running.
    fn create(&mut self, seen: &Seen) -> Option<Value> {
        let (body, now) = (json_body(seen), self.clock.now());
        let at_work = self.records.iter().filter(|record| record.ends > now).count();
        if self.faults.learned_limits.is_some_and(|of| at_work >= (self.running / of).max(1)) {
            return None;
        }
        let id = format!("t-{}", self.number());
        let upload = body["audio_url"].as_str().unwrap().rsplit('/').next().unwrap();
        let file = self.uploads[upload].clone();
        let dies = self.chance(self.faults.dies);
        *self.books.good.entry(file.clone()).or_default() += u32::from(!dies);
        let token = body["custom_metadata"]["scribed"].as_str().unwrap().to_owned();
        *self.books.tokens.entry(token).or_default() += 1;
        let ends = now.saturating_add(Duration::from_millis(self.rng.u64(5_000..15_000)));
        if let Some(url) = body["callback_config"]["url"].as_str() {
            self.call(url, now, ends);
        }
        let metadata = body["custom_metadata"].clone();
        self.by_id.insert(id.clone(), self.records.len());
        self.records.push(Record { id: id.clone(), file, metadata, created: now, ends, dies });
        Some(json!({ "id": id, "result_url": format!("http://stt/v2/pre-recorded/{id}") }))
    }

    fn call(&mut self, url: &str, now: Timestamp, ends: Timestamp) {
        let Faults { calls_lost, calls_doubled, calls_early, .. } = self.faults;
        if self.chance(calls_early) {
            self.calls.push(Call { at: now, url: url.to_owned() });
        }
        if !self.chance(calls_lost) {
            self.calls.push(Call { at: ends, url: url.to_owned() });
        }
        if self.chance(calls_doubled) {
            self.calls.push(Call { at: ends.saturating_add(Duration::from_secs(3)), url: url.to_owned() });
        }
    }

    fn due_calls(&mut self) -> Vec<String> {
        let now = self.clock.now();
        let (due, later) = self.calls.drain(..).partition(|call| call.at <= now);
        self.calls = later;
        due.into_iter().map(|call: Call| call.url).collect()
    }

    fn read(&mut self, path: &str) -> Option<Value> {
        let now = self.clock.now();
        let at = *self.by_id.get(path.rsplit('/').next().unwrap())?;
        let is_odd = self.chance(self.faults.odd);
        let odd = ["asleep", "done", "queued"][self.rng.usize(0..3)];
        let record = &self.records[at];
        if now < record.created.saturating_add(self.faults.reads_late) && self.faults.reads_late > Duration::ZERO {
            return None;
        }
        let mut told = listed(record, now);
        if is_odd {
            told["status"] = json!(odd);
        } else if told["status"] == "done" {
            told["result"] = json!({
                "metadata": { "audio_duration": 60.0, "number_of_distinct_channels": 1, "billing_time": 60.0 },
                "transcription": {
                    "full_transcript": format!("What was said in {}.", record.file), "languages": ["en"],
                    "utterances": [{
                        "start": 0.0, "end": 1.0, "confidence": 1.0, "channel": 0, "language": "en",
                        "text": format!("What was said in {}.", record.file),
                    }],
                },
            });
        }
        Some(told)
    }

    fn list(&self, path: &str) -> Value {
        let query = path.split_once('?').map_or("", |(_, query)| query);
        let pairs = || query.split('&').filter_map(|pair| pair.split_once('='));
        let number = |name: &str| pairs().find(|(key, _)| *key == name).and_then(|(_, value)| value.parse().ok());
        let (from, limit): (usize, usize) = (number("offset").unwrap_or(0), number("limit").unwrap_or(20));
        let wanted: Vec<&str> = pairs().filter(|(key, _)| *key == "status").map(|(_, value)| value).collect();
        let after = pairs()
            .find(|(key, _)| *key == "after_date")
            .and_then(|(_, value)| timestamps::parse(&value.replace("%3A", ":").replace("%2B", "+")));
        let now = self.clock.now();
        let fits = |record: &&Record| {
            let status = listed(record, now)["status"].clone();
            let filtered = (wanted.is_empty() || wanted.iter().any(|wanted| status == *wanted))
                && after.is_none_or(|after| record.created > after);
            now >= record.created.saturating_add(self.faults.list_late) && (filtered || self.faults.ignores)
        };
        let mut items: Vec<&Record> = self.records.iter().filter(fits).collect();
        if !self.faults.ignores {
            items.reverse();
        }
        let more = items.len() > from + limit;
        let items: Vec<Value> = items.into_iter().skip(from).take(limit).map(|record| listed(record, now)).collect();
        json!({ "items": items, "next": more.then_some("more") })
    }
}

/// Returns a record without its result.
fn listed(record: &Record, now: Timestamp) -> Value {
    let has_ended = now >= record.ends;
    let status = match (has_ended, record.dies) {
        (false, _) => "processing",
        (true, false) => "done",
        (true, true) => "error",
    };
    let mut told = json!({
        "id": record.id, "status": status, "created_at": timestamps::format(record.created),
        "custom_metadata": record.metadata,
    });
    if has_ended {
        told["completed_at"] = json!(timestamps::format(record.ends));
    }
    if status == "error" {
        told["error_code"] = json!(500);
    }
    told
}
