//! The HTTP client against a service that does what a script says.

use crate::support::child::test_in_child;
use crate::support::scripted::{Scripted, Seen, Step, http, json};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use scribed::testing::client::contract::{
    Client, CreatePermit, CreateRequest, Creation, Identity, ListFault, RecordState, RequestAudio, UploadFile,
};
use scribed::testing::client::http::{ClientOptions, HttpClient, ServiceKey, Timeouts};
use scribed::testing::clock::{Clock, SystemClock, Uptime};
use scribed::testing::domain::fault::{Fault, FaultKind};
use scribed::testing::domain::job::JobTag;
use scribed::testing::domain::names::{Hash, ServiceName, Timestamp, TranscriptionId, UploadId};
use scribed::testing::domain::stage::AudioAmount;
use scribed::testing::domain::token::{RESERVED_KEY, Token};
use scribed::testing::wire::address::PlainHttp;
use scribed::testing::wire::page::ListQuery;
use scribed::testing::wire::timestamps;
use serde_json::{Map, Value, json as value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KEY: &str = "the-key-0xC0FFEE";
const ID: &str = "45463597-20b7-4af7-b3b3-f5fb778203ab";

fn timeouts() -> Timeouts {
    let short = Duration::from_millis(300);
    Timeouts {
        create: Duration::from_millis(600),
        answer: short,
        idle: short,
        body: Duration::from_millis(1500),
        stall: short,
        file: short,
        upload_answer: short,
        ..Timeouts::default()
    }
}

/// The machine's clock, which sleeps at most `most` at a time where that is asked for: waits between
/// tries are long.
struct Hasty(Duration);

#[async_trait::async_trait]
impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }
    fn uptime(&self) -> Uptime {
        SystemClock.uptime()
    }
    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span.min(self.0)).await;
    }
}

fn options(url: &str) -> ClientOptions {
    let identity = Identity {
        service: ServiceName::new("default"),
        origin: url.to_owned(),
        key: "fingerprint".to_owned(),
        is_own: false,
    };
    ClientOptions {
        identity,
        base: url.parse().unwrap(),
        key: ServiceKey::new(KEY),
        key_header: "x-service-key".to_owned(),
        authorities: Default::default(),
        requests_per_second: f64::INFINITY,
        clock: Arc::new(SystemClock),
        timeouts: timeouts(),
        plain_http: PlainHttp::Proxied,
    }
}

fn client(url: &str) -> HttpClient {
    HttpClient::new(options(url)).unwrap()
}

/// A client that hardly waits between tries.
fn hasty(url: &str) -> HttpClient {
    let clock = Arc::new(Hasty(Duration::from_millis(100)));
    HttpClient::new(ClientOptions { clock, ..options(url) }).unwrap()
}

fn request() -> CreateRequest {
    let map = |value: Value| value.as_object().unwrap().clone();
    CreateRequest {
        audio: RequestAudio::Upload(UploadId::new("file-1")),
        params: map(value!({"diarization": true})),
        metadata: map(value!({RESERVED_KEY: token().to_string()})),
        callback: None,
    }
}

fn token() -> Token {
    Token {
        content: Hash::of(b"content"),
        params: Hash::of(b"params"),
        job: JobTag([7; 16]),
        purchase_number: 1,
        part: None,
    }
}

fn file(name: &str, pieces: Vec<Bytes>) -> UploadFile {
    let size = pieces.iter().map(|piece| piece.len() as u64).sum();
    let open = Arc::new(move || stream::iter(pieces.clone()).map(Ok).boxed());
    UploadFile { name: name.to_owned(), size, open }
}

fn talk() -> UploadFile {
    file("talk.mp3", vec![Bytes::from_static(b"some "), Bytes::from_static(b"audio")])
}

/// No part of a fault tells the key.
fn blind(fault: Fault) -> Fault {
    let shown = format!("{fault:?} {}", serde_json::to_string(&fault).unwrap());
    assert!(!shown.contains(KEY) && !shown.contains("C0FFEE"), "{shown}");
    assert!(fault.words.is_ascii() || fault.words.contains('…'), "{}", fault.words);
    fault
}

// ---- create ----

struct Created {
    creation: Creation,
    seen: Vec<Seen>,
    connections: usize,
}

async fn create(step: Step) -> Created {
    // More steps are there, so that a second request would be seen.
    let service = Scripted::start([step, json(201, r#"{"id":"second"}"#), json(201, r#"{"id":"third"}"#)]).await;
    let creation = client(&service.url()).create(CreatePermit::come(), request()).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    Created { creation, seen: service.seen(), connections: service.connections() }
}

async fn unknown(step: Step) -> Fault {
    let created = create(step).await;
    assert_eq!(created.connections, 1, "one request on the wire: {created:?}", created = created.creation);
    assert!(created.seen.len() <= 1);
    match created.creation {
        Creation::Unknown(fault) if fault.kind == FaultKind::Unknown => {
            assert!(fault.words.contains("buys nothing for it again"), "{}", fault.words);
            blind(fault)
        }
        other => panic!("{other:?}"),
    }
}

async fn not_accepted(step: Step) -> Fault {
    let created = create(step).await;
    assert_eq!((created.connections, created.seen.len()), (1, 1));
    match created.creation {
        Creation::NotAccepted(fault) => blind(fault),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_create_as_it_goes_out() {
    let created = create(json(201, &format!(r#"{{"id":"{ID}","result_url":"http://elsewhere/x"}}"#))).await;
    assert_eq!(created.creation, Creation::Accepted(TranscriptionId::new(ID)));
    assert_eq!((created.connections, created.seen.len()), (1, 1));
    let seen = &created.seen[0];
    assert_eq!(seen.line(), "POST /v2/pre-recorded");
    assert_eq!(seen.header("x-service-key"), Some(KEY));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert!(seen.header("user-agent").unwrap().starts_with("scribed/"));
    assert_eq!(seen.header("transfer-encoding"), None);
    let body: Value = serde_json::from_slice(&seen.body).unwrap();
    let host = seen.header("host").unwrap();
    let expected = value!({
        "diarization": true,
        "audio_url": format!("http://{host}/file/file-1"),
        "custom_metadata": {RESERVED_KEY: token().to_string()},
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn creates_keep_no_connection() {
    let service = Scripted::start([json(201, r#"{"id":"a"}"#), json(201, r#"{"id":"b"}"#)]).await;
    let client = client(&service.url());
    for id in ["a", "b"] {
        let creation = client.create(CreatePermit::come(), request()).await;
        assert_eq!(creation, Creation::Accepted(TranscriptionId::new(id)));
    }
    assert_eq!(service.connections(), 2);
}

#[tokio::test]
async fn refusals_of_a_create_are_certain() {
    for status in [400, 404, 405, 413, 415, 422] {
        let said = r#"{"message":"No","validation_errors":["audio_url must be a url"],"request_id":"G-1"}"#;
        let fault = not_accepted(json(status, said)).await;
        assert_eq!(fault.kind, FaultKind::Refused { status });
        assert!(fault.words.contains(&format!("service `default` answered {status}")), "{}", fault.words);
        assert!(fault.words.contains("No; audio_url must be a url"), "{}", fault.words);
        assert_eq!(fault.request_id.as_deref(), Some("G-1"));
    }
    for status in [401, 402, 403] {
        let fault = not_accepted(json(status, "{}")).await;
        assert_eq!(fault.kind, FaultKind::Barred { status });
    }
    let slow = http(429, "retry-after: 7\r\n", "");
    assert_eq!(not_accepted(Step::Answer(slow)).await.kind, FaultKind::Throttled { retry_after_ms: Some(7000) });
}

#[tokio::test]
async fn a_web_server_without_the_path_says_nothing_about_the_file() {
    let page = http(404, "content-type: text/html\r\n", "<!DOCTYPE html><title>Nothing here</title>");
    let fault = not_accepted(Step::Answer(page)).await;
    assert_eq!(fault.kind, FaultKind::Broken);
    assert!(fault.words.contains("check `url`"), "{}", fault.words);
}

#[tokio::test]
async fn every_other_status_of_a_create_is_unknown() {
    for status in [206, 300, 304, 307, 406, 407, 408, 409, 410, 425, 451, 500, 501, 502, 503, 504, 599] {
        unknown(json(status, r#"{"message":"hm"}"#)).await;
    }
}

#[tokio::test]
async fn an_accepting_answer_without_an_id_is_unknown() {
    for body in ["", "{}", r#"{"id":""}"#, r#"{"id":null}"#, r#"{"id":"..","result_url":""}"#, "[]", r#"{"id":"a"#] {
        unknown(json(201, body)).await;
    }
    let page = http(200, "content-type: text/html\r\n", "<html>please log in</html>");
    assert!(unknown(Step::Answer(page)).await.words.contains("a web page: `<html>please log in</html>`"));
}

#[tokio::test]
async fn an_answer_that_is_cut_short_is_unknown() {
    for status in [201, 400, 401, 429] {
        let body = format!(r#"{{"id":"{ID}","message":"x"}}"#);
        let whole = format!("HTTP/1.1 {status} X\r\ncontent-length: 4000\r\n\r\n{body}");
        unknown(Step::AnswerAndClose(whole.into_bytes())).await;
    }
    let head = b"HTTP/1.1 201 Created\r\nconte".to_vec();
    unknown(Step::AnswerAndClose(head)).await;
    unknown(Step::AnswerAndClose(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec())).await;
    let long = "x".repeat(2 << 20);
    unknown(json(201, &format!(r#"{{"id":"a","long":"{long}"}}"#))).await;
    unknown(json(400, &long)).await;
}

#[tokio::test]
async fn a_lost_connection_of_a_create_is_unknown() {
    for step in [Step::ResetAtOnce, Step::ResetAfter, Step::CloseAfter, Step::AnswerAtHead(String::new())] {
        unknown(step).await;
    }
}

#[tokio::test]
async fn a_create_that_hangs_is_unknown_in_time() {
    let begun = Instant::now();
    for step in [Step::Hang, Step::HangAtHead] {
        assert!(unknown(step).await.words.contains("gave no complete answer within 600 ms"));
    }
    let slow = http(201, "", r#"{"id":"a"}"#);
    unknown(Step::Drip(slow, Duration::from_millis(100))).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn what_never_left_is_certain() {
    let gone = Scripted::start([]).await.url();
    tokio::time::sleep(Duration::from_millis(20)).await;
    // A name that cannot be (RFC 6761), a port that nobody listens at, a server that breaks TLS off,
    // and one that keeps silent in it.
    let plain = Scripted::start([Step::ResetAtOnce]).await;
    let silent = Scripted::start([]).await;
    let tls = |service: &Scripted| service.url().replace("http://", "https://");
    for url in [gone, "http://scribed.invalid:1".to_owned(), tls(&plain), tls(&silent)] {
        let timeouts = Timeouts { create_connect: Duration::from_millis(200), ..timeouts() };
        let client = match HttpClient::new(ClientOptions { timeouts, ..options(&url) }) {
            Ok(client) => client,
            Err(error) => {
                assert!(error.to_string().contains("ca-certificates"), "{error}");
                continue; // this machine has no certificates
            }
        };
        match client.create(CreatePermit::come(), request()).await {
            Creation::NotAccepted(fault) => {
                assert_eq!(fault.kind, FaultKind::Unreachable);
                assert!(blind(fault).words.contains("nothing was sent"));
            }
            other => panic!("{url}: {other:?}"),
        }
    }
}

/// Its uptime leaps whenever it is asked: a machine that sleeps all the time.
struct Leaping(AtomicUsize);

#[async_trait::async_trait]
impl Clock for Leaping {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }
    fn uptime(&self) -> Uptime {
        Uptime(Duration::from_secs(60 * self.0.fetch_add(1, Ordering::Relaxed) as u64))
    }
    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

#[tokio::test]
async fn a_create_whose_intent_grew_old_is_held_back() {
    let service = Scripted::start([json(201, r#"{"id":"a"}"#)]).await;
    let clock = Arc::new(Leaping(AtomicUsize::new(0)));
    let client = HttpClient::new(ClientOptions { clock, ..options(&service.url()) }).unwrap();
    match client.create(CreatePermit::come(), request()).await {
        Creation::NotAccepted(fault) => {
            assert_eq!(fault.kind, FaultKind::Unreachable);
            assert!(fault.words.contains("could not leave within 5 s"), "{}", fault.words);
        }
        other => panic!("{other:?}"),
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(service.bytes(), 0, "not one byte");
}

// ---- upload ----

const UPLOADED: &str = r#"{"audio_url":"http://elsewhere/file/f-1","audio_metadata":{"id":"f-1","filename":"talk.mp3",
    "extension":"mp3","size":10,"audio_duration":4.2345,"number_of_channels":2}}"#;

#[tokio::test]
async fn an_upload_as_it_goes_out() {
    let service = Scripted::start([json(200, UPLOADED)]).await;
    let name = "/srv/a \"b\"\r\nX: y/講演\".mp3";
    let pieces = vec![Bytes::from_static(b"some "), Bytes::from_static(b"audio")];
    let sent = client(&service.url()).upload(file(name, pieces)).await.unwrap();
    assert_eq!(sent.upload, UploadId::new("http://elsewhere/file/f-1"), "as it was received");
    assert_eq!(sent.audio, AudioAmount { millis: 4235, channels: 2, billed: None });
    assert_eq!(sent.size, Some(10));
    let seen = &service.seen()[0];
    assert_eq!(seen.line(), "POST /v2/upload");
    assert_eq!(seen.header("x-service-key"), Some(KEY));
    assert_eq!(seen.header("content-length"), Some(seen.length.to_string().as_str()));
    assert_eq!(seen.header("transfer-encoding"), None);
    let body = String::from_utf8(seen.body.clone()).unwrap();
    let disposition = "Content-Disposition: form-data; name=\"audio\"; filename=\"講演_.mp3\"\r\n";
    assert!(body.contains(disposition), "{body}");
    assert!(body.contains("Content-Type: application/octet-stream\r\n\r\nsome audio\r\n--"), "{body}");
}

#[tokio::test]
async fn an_upload_is_tried_again_on_the_services_faults() {
    let page = Step::Answer(http(502, "content-type: text/html\r\n", "<html>bad gateway</html>"));
    let service = Scripted::start([page, Step::ResetAfter, json(200, UPLOADED)]).await;
    hasty(&service.url()).upload(talk()).await.unwrap();
    let bodies: Vec<_> = service.seen().into_iter().map(|seen| seen.length).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|length| *length == bodies[0]), "the whole file each time: {bodies:?}");
}

#[tokio::test]
async fn an_upload_gives_the_fault_up_after_a_few() {
    let cut = format!("HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n{UPLOADED}").into_bytes();
    let cases = [
        (json(500, r#"{"message":"boom"}"#), "answered 500 (Internal Server Error): boom"),
        (json(408, ""), "answered 408"),
        (json(302, ""), "does not follow redirects"),
        (Step::AnswerAndClose(cut), "is incomplete"),
        (json(200, "{}"), "audio_url"),
        (json(200, r#"{"audio_url":"file:///etc/passwd","audio_metadata":{}}"#), "not a web address"),
        (json(200, "<html>hello"), "a web page: `<html>hello`"),
        (Step::ResetAtOnce, "closed the connection"),
        (Step::ResetAfter, "closed the connection"),
        (Step::CloseAfter, "closed the connection"),
        (Step::Hang, "accepted the whole upload, but gave no answer"),
    ];
    for (step, words) in cases {
        let service = Scripted::start(vec![step.clone(); 9]).await;
        let fault = blind(hasty(&service.url()).upload(talk()).await.unwrap_err());
        assert_eq!(fault.kind, FaultKind::Broken, "{step:?}: {}", fault.words);
        assert!(fault.words.contains(words), "{step:?}: {}", fault.words);
        assert_eq!(service.connections().max(service.seen().len()), 3, "{step:?}");
    }
}

#[tokio::test]
async fn a_refused_upload_is_not_tried_again() {
    let page = |status| Step::Answer(http(status, "content-type: text/html\r\n", "<html>too large</html>"));
    let cases = [
        (json(400, r#"{"message":"no"}"#), FaultKind::Refused { status: 400 }),
        (page(413), FaultKind::Refused { status: 413 }),
        (json(415, ""), FaultKind::Refused { status: 415 }),
        (page(401), FaultKind::Barred { status: 401 }),
        (json(402, ""), FaultKind::Barred { status: 402 }),
    ];
    for (step, kind) in cases {
        let service = Scripted::start(vec![step; 3]).await;
        let fault = blind(client(&service.url()).upload(talk()).await.unwrap_err());
        assert_eq!(fault.kind, kind);
        assert_eq!(service.seen().len(), 1);
    }
}

/// Pieces that are made as they are asked for.
fn generated(size: u64) -> UploadFile {
    const PIECE: u64 = 256 << 10;
    let piece = Bytes::from(vec![7; PIECE as usize]);
    let open = move || {
        let piece = piece.clone();
        stream::iter(0..size / PIECE).map(move |_| Ok(piece.clone())).boxed()
    };
    UploadFile { name: "big.wav".to_owned(), size: size / PIECE * PIECE, open: Arc::new(open) }
}

#[tokio::test]
async fn a_refusal_before_the_end_of_the_upload_is_heard() {
    for _ in 0..20 {
        let answer = http(413, "connection: close\r\n", r#"{"message":"too large"}"#);
        let service = Scripted::start(vec![Step::AnswerAtHead(answer); 3]).await;
        let fault = hasty(&service.url()).upload(generated(64 << 20)).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Refused { status: 413 }, "{}", fault.words);
    }
}

#[tokio::test]
async fn an_answer_before_the_end_of_the_upload_is_no_upload() {
    let answer = http(200, "", UPLOADED);
    let service = Scripted::start(vec![Step::AnswerAtHead(answer); 3]).await;
    let fault = hasty(&service.url()).upload(generated(64 << 20)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Broken, "{}", fault.words);
}

#[tokio::test]
async fn a_service_that_takes_no_more_is_not_waited_for() {
    let service = Scripted::start(vec![Step::HangAtHead; 3]).await;
    let fault = hasty(&service.url()).upload(generated(64 << 20)).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Broken);
    assert!(fault.words.contains("accepted no more of the upload"), "{}", fault.words);
}

#[tokio::test]
async fn a_slow_file_is_no_stall_of_the_service() {
    let service = Scripted::start([json(200, UPLOADED)]).await;
    let open = || {
        let slowly = stream::iter(0..4).then(|_| async {
            tokio::time::sleep(Duration::from_millis(120)).await;
            Ok(Bytes::from_static(b"piece"))
        });
        slowly.boxed()
    };
    let slow = UploadFile { name: "slow.wav".to_owned(), size: 20, open: Arc::new(open) };
    client(&service.url()).upload(slow).await.unwrap();
}

#[tokio::test]
async fn a_fault_of_the_file_is_not_the_services() {
    type Pieces = Box<dyn Fn() -> Vec<std::io::Result<Bytes>> + Send + Sync>;
    let part = || Ok(Bytes::from_static(b"part"));
    let cases: [(&str, Pieces); 3] = [
        ("stale handle", Box::new(move || vec![part(), Err(std::io::Error::other("stale handle"))])),
        ("truncated during the upload", Box::new(move || vec![part()])),
        ("grew during the upload", Box::new(move || vec![part(), part(), part()])),
    ];
    for (words, pieces) in cases {
        let service = Scripted::start(vec![json(200, UPLOADED); 3]).await;
        let open = Arc::new(move || stream::iter(pieces()).boxed());
        let bad = UploadFile { name: "a.wav".to_owned(), size: 8, open };
        let fault = client(&service.url()).upload(bad).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unreadable);
        assert!(fault.words.contains(words) && !fault.words.contains("service"), "{}", fault.words);
        assert!(service.connections() <= 1, "not tried again");
    }
    let service = Scripted::start([]).await;
    let open = Arc::new(|| stream::pending().boxed());
    let stuck = UploadFile { name: "a.wav".to_owned(), size: 8, open };
    let fault = client(&service.url()).upload(stuck).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreadable);
    assert!(fault.words.contains("delivered no data"), "{}", fault.words);
}

#[tokio::test]
async fn memory_does_not_grow_with_the_file() {
    let service = Scripted::start([json(200, UPLOADED), json(200, UPLOADED)]).await;
    let client = HttpClient::new(ClientOptions { timeouts: Timeouts::default(), ..options(&service.url()) }).unwrap();
    client.upload(generated(8 << 20)).await.unwrap();
    let before = peak_kib();
    client.upload(generated(128 << 20)).await.unwrap();
    let grown = peak_kib() - before;
    assert!(grown < 32 << 10, "{grown} KiB more at the peak");
}

/// The most memory this process ever held. Other tests run in it too.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

// ---- read ----

async fn read(step: Step) -> Result<RecordState, Fault> {
    let service = Scripted::start(vec![step; 9]).await;
    let client = hasty(&service.url());
    let reading = client.read(&TranscriptionId::new(ID)).await;
    for seen in service.seen() {
        assert_eq!(seen.line(), format!("GET /v2/pre-recorded/{ID}"));
        assert_eq!(seen.header("x-service-key"), Some(KEY));
    }
    reading.map_err(blind)
}

#[tokio::test]
async fn a_result_comes_back_byte_for_byte() {
    let body = format!(
        r#"{{ "id":"{ID}", "status":"done","unheard_of":1e400, "error_code":null,"version":"two","post_session_metadata":[],
           "result":{{"metadata":{{"audio_duration":275.005542,"number_of_distinct_channels":2}},"transcription":{{}}}} }}"#
    );
    match read(json(200, &body)).await.unwrap() {
        RecordState::Done { raw, audio, .. } => {
            assert_eq!(raw, body.as_bytes());
            assert_eq!(audio, AudioAmount { millis: 275_006, channels: 2, billed: None });
        }
        other => panic!("{other:?}"),
    }
    let old =
        r#"{"status":"done","result":{"metadata":{"audio_duration":1,"number_of_channels":1},"transcription":{}}}"#;
    assert!(matches!(
        read(json(200, old)).await.unwrap(),
        RecordState::Done { audio: AudioAmount { millis: 1000, channels: 1, .. }, .. }
    ));
}

#[tokio::test]
async fn what_has_not_ended_is_pending_and_named() {
    let cases = [
        (r#"{"status":"queued","result":null}"#, "queued"),
        (r#"{"status":"processing"}"#, "processing"),
        (r#"{"status":"resting\nnow"}"#, "resting now"),
        (r#"{"status":"done"}"#, "done, but without a result"),
        (r#"{"status":"done","result":null}"#, "done, but without a result"),
        (r#"{"status":"done","result":{}}"#, "done, but without a result"),
    ];
    for (body, expected) in cases {
        assert_eq!(read(json(200, body)).await.unwrap(), RecordState::Pending(expected.to_owned()));
    }
}

#[tokio::test]
async fn what_ended_badly_is_lost() {
    for (code, expected) in [("422", 422), ("503", 503), ("200", 500), ("700", 500), ("null", 500), ("\"x\"", 500)] {
        let body = format!(
            r#"{{"id":"{ID}","status":"error","request_id":"G-9","error_code":{code},"file":null,
               "post_session_metadata":{{"error":"no audio\nthere"}}}}"#
        );
        match read(json(200, &body)).await.unwrap() {
            RecordState::Lost(fault) => {
                assert_eq!(fault.kind, FaultKind::Dead { code: expected });
                assert_eq!(fault.request_id.as_deref(), Some("G-9"));
                assert!(fault.words.contains("G-9): no audio there") && fault.words.contains(ID), "{}", fault.words);
            }
            other => panic!("{other:?}"),
        }
    }
    match read(json(404, r#"{"message":"Not found"}"#)).await.unwrap() {
        RecordState::Lost(fault) => assert_eq!(blind(fault).kind, FaultKind::Gone),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn faults_of_a_read() {
    let page = |status, body| Step::Answer(http(status, "content-type: text/html\r\n", body));
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n{\"status\":\"done\"".to_vec();
    let other = r#"{"id":"another","status":"done","result":{"transcription":{}}}"#;
    let cases = [
        (page(404, "<html>nginx"), FaultKind::Broken, "check `url`"),
        (page(200, "<html>hello"), FaultKind::Broken, "a web page: `<html>hello`"),
        (json(200, other), FaultKind::Broken, "another transcription"),
        (json(200, r#"{"result":1}"#), FaultKind::Broken, "status"),
        (json(200, r#"{"id":"x"}"#), FaultKind::Broken, "status"),
        (json(502, ""), FaultKind::Broken, "answered 502 (Bad Gateway) with an empty body"),
        (Step::AnswerAndClose(cut), FaultKind::Broken, "incomplete"),
        (Step::ResetAtOnce, FaultKind::Broken, "closed the connection"),
        (Step::Hang, FaultKind::Broken, "gave no answer within 300 ms"),
        (Step::Drip(http(200, "", "{}"), Duration::from_millis(90)), FaultKind::Broken, "gave no answer within"),
        (json(401, r#"{"message":"no key"}"#), FaultKind::Barred { status: 401 }, "check `key`"),
        (json(400, ""), FaultKind::Refused { status: 400 }, "answered 400"),
        (json(429, ""), FaultKind::Throttled { retry_after_ms: None }, "answered 429"),
    ];
    for (step, kind, words) in cases {
        let fault = read(step.clone()).await.unwrap_err();
        assert_eq!(fault.kind, kind, "{step:?}: {}", fault.words);
        assert!(fault.words.contains(words), "{step:?}: {}", fault.words);
    }
}

#[tokio::test]
async fn a_read_is_tried_again_a_few_times() {
    let good = json(200, r#"{"status":"queued"}"#);
    let service = Scripted::start([json(500, ""), Step::ResetAfter, json(503, ""), good]).await;
    let reading = hasty(&service.url()).read(&TranscriptionId::new(ID)).await.unwrap();
    assert_eq!(reading, RecordState::Pending("queued".to_owned()));
    let service = Scripted::start(vec![json(500, ""); 9]).await;
    hasty(&service.url()).read(&TranscriptionId::new(ID)).await.unwrap_err();
    assert_eq!(service.seen().len(), 4);
    assert!(service.connections() <= 1, "connections are kept");
}

#[tokio::test]
async fn retry_after_is_obeyed_and_carried_out() {
    let in_one_second = Step::Answer(http(429, "retry-after: 1\r\n", ""));
    let service = Scripted::start([in_one_second, json(200, r#"{"status":"queued"}"#)]).await;
    let begun = Instant::now();
    client(&service.url()).read(&TranscriptionId::new(ID)).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));

    let dates = "date: Fri, 20 Nov 2026 19:00:00 GMT\r\nretry-after: Fri, 20 Nov 2026 19:02:00 GMT\r\n";
    for (status, headers, millis) in
        [(429, "retry-after: 60\r\n", 60_000), (503, "retry-after: 60\r\n", 60_000), (429, dates, 120_000)]
    {
        let service = Scripted::start(vec![Step::Answer(http(status, headers, "")); 3]).await;
        let fault = client(&service.url()).read(&TranscriptionId::new(ID)).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Throttled { retry_after_ms: Some(millis) });
        assert_eq!(service.seen().len(), 1, "too long to be waited for here");
    }
}

/// Notes the waits between tries, and makes none of them. Time-outs are longer.
struct Noting(Mutex<Vec<Duration>>);

#[async_trait::async_trait]
impl Clock for Noting {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }
    fn uptime(&self) -> Uptime {
        SystemClock.uptime()
    }
    async fn sleep(&self, span: Duration) {
        match span < Duration::from_secs(10) {
            true => self.0.lock().unwrap().push(span),
            false => SystemClock.sleep(span).await,
        }
    }
}

#[tokio::test]
async fn a_retry_after_of_zero_takes_away_no_backoff() {
    let service = Scripted::start(vec![Step::Answer(http(429, "retry-after: 0\r\n", "")); 4]).await;
    let clock = Arc::new(Noting(Mutex::default()));
    let noting: Arc<dyn Clock> = Arc::<Noting>::clone(&clock);
    let options = ClientOptions { clock: noting, timeouts: Timeouts::default(), ..options(&service.url()) };
    HttpClient::new(options).unwrap().list(&ListQuery::default()).await.unwrap_err();
    let waits = clock.0.lock().unwrap().clone();
    assert_eq!(waits.len(), 3);
    for (wait, least) in waits.into_iter().zip([250, 375, 562].map(Duration::from_millis)) {
        assert!(wait >= least, "{wait:?} instead of {least:?}");
    }
}

#[tokio::test]
async fn an_odd_id_stays_below_the_path() {
    let service = Scripted::start([json(200, r#"{"status":"queued"}"#)]).await;
    client(&service.url()).read(&TranscriptionId::new("../upload?a=b#c")).await.unwrap();
    assert_eq!(service.seen()[0].line(), "GET /v2/pre-recorded/..%2Fupload%3Fa=b%23c");
}

// ---- list ----

async fn list(step: Step) -> (Result<scribed::testing::client::contract::ListPage, ListFault>, Vec<Seen>) {
    let service = Scripted::start(vec![step; 9]).await;
    let client = hasty(&service.url());
    let query = ListQuery {
        offset: 40,
        limit: 50,
        custom_metadata: Map::from_iter([("a b".to_owned(), Value::from("ü&="))]),
        ..ListQuery::default()
    };
    (client.list(&query).await, service.seen())
}

#[tokio::test]
async fn a_page_of_the_list() {
    let ours = value!({"id": "1", "status": "done", "created_at": "2026-11-20T19:07:00.000Z", "version": "2",
        "custom_metadata": {RESERVED_KEY: token().to_string()}, "result": {"transcription": [1, 2, {"a": null}]}});
    let theirs = value!({"id": "2", "status": "resting", "created_at": "soon", "custom_metadata": "odd", "file": 7});
    let body = value!({"first": "", "current": "", "next": "http://elsewhere/v2/x?offset=90", "items": [ours, theirs]});
    let (page, seen) = list(json(200, &body.to_string())).await;
    let page = page.unwrap();
    assert!(page.more);
    assert_eq!(page.items.len(), 2);
    assert_eq!(page.items[0].token, Some(token()));
    assert_eq!(page.items[0].created, timestamps::parse("2026-11-20T19:07:00Z"));
    assert_eq!((page.items[1].token.clone(), page.items[1].created), (None, None));
    let line = "GET /v2/pre-recorded?offset=40&limit=50&custom_metadata=%7B%22a+b%22%3A%22%C3%BC%26%3D%22%7D";
    assert_eq!(seen[0].line(), line);
    let (page, _) = list(json(200, r#"{"items":[],"next":null}"#)).await;
    assert!(!page.unwrap().more);
}

/// It may be ours, and it spoils no other.
#[tokio::test]
async fn an_item_that_cannot_be_read_is_named() {
    let token = token().to_string();
    let readable = [
        value!({"id": "a", "status": null}),
        value!({"id": "b"}),
        value!({"id": "c", "status": "done", "custom_metadata": {RESERVED_KEY: token}, "result": 7, "created_at": 7}),
        value!({"id": "d", "custom_metadata": value!({RESERVED_KEY: token}).to_string()}),
    ];
    let unreadable = [
        value!({"status": "done", "created_at": "2026-11-20T19:07:00Z"}),
        value!({"id": "e", "custom_metadata": {RESERVED_KEY: "1.cut"}}),
        value!({"id": "f", "custom_metadata": [RESERVED_KEY]}),
        value!(null),
        value!("text"),
    ];
    let items: Vec<Value> = readable.iter().zip(&unreadable).flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
    let items = [items, unreadable[4..].to_vec()].concat();
    let (page, _) = list(json(200, &value!({"items": items, "next": null}).to_string())).await;
    let page = page.unwrap();
    let ids: Vec<String> = page.items.iter().map(|item| item.id.to_string()).collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    let tokens: Vec<bool> = page.items.iter().map(|item| item.token.is_some()).collect();
    assert_eq!(tokens, [false, false, true, true]);
    assert_eq!(page.unreadable.iter().map(|item| item.index).collect::<Vec<_>>(), [1, 3, 5, 7, 8]);
    assert_eq!(page.unreadable[0].created, timestamps::parse("2026-11-20T19:07:00Z"));
}

#[tokio::test]
async fn no_list_is_another_thing_than_no_list_now() {
    for status in [404, 405, 501] {
        let (page, seen) = list(json(status, r#"{"message":"Cannot GET"}"#)).await;
        assert!(matches!(page, Err(ListFault::None(fault)) if blind(fault.clone()).words.contains("Cannot GET")));
        assert_eq!(seen.len(), 1);
    }
    for body in [r#"{"next":null}"#, r#"{"items":null}"#, "[]", "<html>"] {
        let (page, _) = list(json(200, body)).await;
        assert!(matches!(page, Err(ListFault::Now(Fault { kind: FaultKind::Broken, .. }))), "{body}");
    }
    for (status, kind) in [(500, FaultKind::Broken), (403, FaultKind::Barred { status: 403 })] {
        let (page, _) = list(json(status, "")).await;
        assert!(matches!(page, Err(ListFault::Now(fault)) if blind(fault.clone()).kind == kind));
    }
}

// ---- what holds for all ----

#[tokio::test]
async fn nobody_is_followed_elsewhere() {
    let elsewhere = Scripted::start(vec![json(200, r#"{"status":"queued"}"#); 9]).await;
    let location = format!("location: {}/v2/pre-recorded?token=x\r\n", elsewhere.url());
    for status in [301, 302, 303, 307, 308] {
        let service = Scripted::start(vec![Step::Answer(http(status, &location, "")); 20]).await;
        let client = hasty(&service.url());
        assert!(matches!(client.create(CreatePermit::come(), request()).await, Creation::Unknown(_)));
        let fault = client.read(&TranscriptionId::new(ID)).await.unwrap_err();
        assert!(fault.words.contains("does not follow redirects"), "{}", fault.words);
        assert!(fault.words.contains(&format!("points to `{}/v2/pre-recorded`", elsewhere.url())), "{}", fault.words);
        client.list(&ListQuery::default()).await.unwrap_err();
        client.upload(talk()).await.unwrap_err();
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_key_that_the_service_says_aloud_is_not_repeated() {
    let body = format!(r#"{{"message":"unknown key {KEY}","request_id":"{KEY}"}}"#);
    for status in [400, 401, 429, 500] {
        let service = Scripted::start(vec![json(status, &body); 20]).await;
        let client = hasty(&service.url());
        let fault = blind(client.read(&TranscriptionId::new(ID)).await.unwrap_err());
        assert!(fault.words.contains("unknown key [key]"), "{}", fault.words);
        blind(client.upload(talk()).await.unwrap_err());
        match client.create(CreatePermit::come(), request()).await {
            Creation::NotAccepted(fault) | Creation::Unknown(fault) => drop(blind(fault)),
            other => panic!("{other:?}"),
        }
        match client.list(&ListQuery::default()).await {
            Err(ListFault::Now(fault) | ListFault::None(fault)) => drop(blind(fault)),
            other => panic!("{other:?}"),
        }
        assert!(!format!("{client:?}").contains(KEY));
    }
    let service = Scripted::start([json(200, &format!(r#"{{"status":"{KEY}"}}"#))]).await;
    let reading = client(&service.url()).read(&TranscriptionId::new(ID)).await;
    assert!(!format!("{reading:?}").contains(KEY));
}

#[tokio::test]
async fn the_services_clock_is_heard() {
    let dated = http(500, "date: Fri, 20 Nov 2026 19:00:00 GMT\r\n", "");
    let service = Scripted::start([Step::Answer(dated), json(200, r#"{"status":"queued"}"#)]).await;
    let client = hasty(&service.url());
    assert_eq!(client.last_date(), None);
    client.read(&TranscriptionId::new(ID)).await.unwrap();
    assert_eq!(client.last_date(), timestamps::parse("2026-11-20T19:00:00Z"));
}

#[tokio::test]
async fn an_address_with_a_path_is_kept() {
    let service = Scripted::start([json(200, r#"{"status":"queued"}"#), json(201, r#"{"id":"a"}"#)]).await;
    let client = client(&format!("{}/stt/", service.url()));
    client.read(&TranscriptionId::new(ID)).await.unwrap();
    client.create(CreatePermit::come(), request()).await;
    let seen = service.seen();
    assert_eq!(seen[0].line(), format!("GET /stt/v2/pre-recorded/{ID}"));
    assert_eq!(seen[1].line(), "POST /stt/v2/pre-recorded");
    let body: Value = serde_json::from_slice(&seen[1].body).unwrap();
    assert_eq!(body["audio_url"], Value::from(format!("{}/stt/file/file-1", service.url())));
}

#[tokio::test]
async fn requests_are_spaced() {
    let service = Scripted::start(vec![json(200, r#"{"status":"queued"}"#); 9]).await;
    let client = HttpClient::new(ClientOptions { requests_per_second: 20.0, ..options(&service.url()) }).unwrap();
    let begun = Instant::now();
    for _ in 0..4 {
        client.read(&TranscriptionId::new(ID)).await.unwrap();
    }
    client.turn().await;
    assert!(begun.elapsed() >= Duration::from_millis(199), "{:?}", begun.elapsed());
}

#[test]
fn what_cannot_be_configured() {
    let with = |change: fn(&mut ClientOptions)| {
        let mut options = options("http://127.0.0.1:1");
        change(&mut options);
        HttpClient::new(options).unwrap_err().to_string()
    };
    assert!(with(|o| o.key = ServiceKey::new("a\nb")).contains("line break"));
    assert!(with(|o| o.key = ServiceKey::new("")).contains("empty"));
    assert!(with(|o| o.key_header = "x y".to_owned()).contains("`x y`"));
    assert!(with(|o| o.requests_per_second = 0.0).contains("above 0"));
    assert!(with(|o| o.base = "http://user:pw@h".parse().unwrap()).contains("user name"));
    assert!(!with(|o| o.base = "http://user:pw@h".parse().unwrap()).contains("pw"));
}

/// Runs one ignored test of this binary in a process of its own, with these variables.
fn child(test: &str, variables: &[(&str, &str)]) {
    let mut command = test_in_child(module_path!(), test);
    command.arg("--ignored").envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn this_machine_is_not_asked_for_through_a_proxy() {
    let proxy = "http://127.0.0.1:9";
    child("child_behind_a_proxy", &[("HTTP_PROXY", proxy), ("http_proxy", proxy), ("ALL_PROXY", proxy)]);
}

#[tokio::test]
#[ignore = "run by the test above with a proxy set"]
async fn child_behind_a_proxy() {
    let service = Scripted::start(vec![json(200, r#"{"status":"queued"}"#); 2]).await;
    client(&service.url()).read(&TranscriptionId::new(ID)).await.unwrap();
    client(&service.url().replace("127.0.0.1", "localhost")).read(&TranscriptionId::new(ID)).await.unwrap();
    // The proxy does not answer, so it must have been the one that was asked.
    let away = client("http://service.invalid").create(CreatePermit::come(), request()).await;
    assert!(matches!(away, Creation::NotAccepted(fault) if fault.words.contains("refused")));
}

#[test]
fn a_machine_without_certificates() {
    let empty = tempfile::tempdir().unwrap();
    let file = empty.path().join("none.pem");
    std::fs::write(&file, "").unwrap();
    let variables = [("SSL_CERT_FILE", file.to_str().unwrap()), ("SSL_CERT_DIR", empty.path().to_str().unwrap())];
    child("child_without_certificates", &variables);
}

#[tokio::test]
#[ignore = "run by the test above without certificates"]
async fn child_without_certificates() {
    let service = Scripted::start([json(200, r#"{"status":"queued"}"#)]).await;
    client(&service.url()).read(&TranscriptionId::new(ID)).await.unwrap();
    let error = HttpClient::new(options("https://stt.example.org")).unwrap_err().to_string();
    assert!(error.contains("ca-certificates"), "{error}");
}
