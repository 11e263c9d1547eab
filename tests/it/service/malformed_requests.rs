//! Requests of people and programs that do not follow the interface.

use crate::support::test_service::{Canned, KEY, Mood, TestService, answer, eventually, names, options, speech};
use bytes::Bytes;
use futures_util::stream;
use reqwest::{Body, Method, StatusCode};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::process::Command;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const KIND: &str = "multipart/form-data; boundary=XX";

fn part(disposition: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!("--XX\r\nContent-Disposition: form-data; {disposition}\r\n\r\n");
    [head.as_bytes(), bytes, b"\r\n"].concat()
}

async fn send(service: &TestService, kind: &str, body: impl Into<Body>) -> (StatusCode, Value) {
    let request = service.ask(Method::POST, "/v2/upload").header("content-type", kind);
    answer(request.body(body).send().await.unwrap()).await
}

async fn no_upload_is_left(data: &TempDir) {
    eventually("nothing is left of the uploads", async || names(data.path(), "uploads").is_empty().then_some(())).await;
}

#[tokio::test]
async fn uploads_in_odd_but_right_forms() {
    let (service, _data) = TestService::canned().await;
    let odd = [part("name=\"beside\"", b"x"), part("name=audio", &speech()), part("name=\"c\"; filename=\"c\"", b"")];
    let body = [b"a preamble\r\n".to_vec(), odd.concat(), b"--XX--\r\nan epilogue".to_vec()].concat();
    let (status, uploaded) = send(&service, "Multipart/Form-Data; charset=x; boundary=\"XX\"", body).await;
    assert_eq!(status, StatusCode::OK, "{uploaded}");
    assert_eq!(uploaded["audio_metadata"]["filename"], "audio");
    assert_eq!(uploaded["audio_metadata"]["extension"], "");
    let path = part("name=\"audio\"; filename=\"C:\\tmp\\..\\a/../../b.wav\"", &speech());
    let (_, uploaded) = send(&service, KIND, [path, b"--XX--".to_vec()].concat()).await;
    assert_eq!(uploaded["audio_metadata"]["filename"], "b.wav");
}

#[tokio::test]
async fn uploads_in_wrong_forms() {
    let (service, data) = TestService::canned().await;
    let end = b"--XX--\r\n".to_vec();
    let good = [part("name=\"audio\"", &speech()), end.clone()].concat();
    let half = good[..good.len() / 2].to_vec();
    let twice = [part("name=\"audio\"", &speech()), part("name=\"audio\"", &speech()), end.clone()].concat();
    let nameless = [b"--XX\r\n\r\n".to_vec(), speech(), b"\r\n--XX--".to_vec()].concat();
    let silent_film = [part("name=\"audio\"", &film()), end.clone()].concat();
    let wrong: [(&str, Vec<u8>, u16, &str); 14] = [
        ("text/plain", b"{}".to_vec(), 415, "multipart/form-data"),
        ("application/json", b"{}".to_vec(), 400, "validation_errors"),
        ("application/json", b"{\"audio_url\":\"file:///etc/passwd\"}".to_vec(), 400, "validation_errors"),
        ("multipart/form-data", good.clone(), 415, "boundary"),
        ("multipart/form-data; boundary=YY", good, 400, "closing boundary"),
        (KIND, half, 400, "closing boundary"),
        (KIND, Vec::new(), 400, "closing boundary"),
        (KIND, end.clone(), 400, "no part named `audio`"),
        (KIND, [part("name=\"video\"", &speech()), end.clone()].concat(), 400, "no part named `audio`"),
        (KIND, twice, 400, "more than one part"),
        (KIND, nameless, 400, "headers"),
        (KIND, [part("name=\"audio\"", b""), end.clone()].concat(), 400, "empty"),
        (KIND, [part("name=\"audio\"", b"Not a recording."), end.clone()].concat(), 400, "not a recording"),
        (KIND, silent_film, 400, "no audio track"),
    ];
    for (kind, body, code, words) in wrong {
        let (status, refused) = send(&service, kind, body).await;
        assert_eq!(status.as_u16(), code, "{refused}");
        assert_eq!(refused["statusCode"], code);
        assert_eq!(refused["path"], "/v2/upload");
        assert!(refused["message"].as_str().unwrap().contains(words), "{words}: {refused}");
    }
    no_upload_is_left(&data).await;
}

/// A second of video without sound.
fn film() -> Vec<u8> {
    let options = "-v error -f lavfi -i color=black:s=16x16:d=1 -f matroska -";
    let made = Command::new("ffmpeg").args(options.split(' ')).output().expect("install the package `ffmpeg`");
    assert!(made.status.success());
    made.stdout
}

#[tokio::test]
async fn uploads_that_are_too_large() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    (options.upload_limit, options.disk) = (2_000_000, 3_000_000);
    let service = TestService::with(options, Canned::new(Mood::Wait)).await;
    // Without a length, and longer than any buffer: refused while it streams.
    let head = part("name=\"audio\"", b"");
    let endless = (0..1000).map(|_| Bytes::from(vec![0_u8; 64 * 1024]));
    let pieces = std::iter::once(Bytes::from(head.clone())).chain(endless).map(Ok::<_, Infallible>);
    let (status, refused) = send(&service, KIND, Body::wrap_stream(stream::iter(pieces))).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(refused["message"].as_str().unwrap().contains("2000000 bytes"), "{refused}");
    // Without a key: the answer arrives although nobody reads the body.
    let large = service.client.post(format!("{}/v2/upload", service.base)).body(vec![0; 20 << 20]);
    assert_eq!(answer(large.send().await.unwrap()).await.0, StatusCode::UNAUTHORIZED);
    let beside = part("name=\"beside\"", &vec![0; 2_000_000]);
    assert_eq!(send(&service, KIND, beside).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    no_upload_is_left(&data).await;
    // One fits, but not beside those that are kept: the service's fault, and it passes.
    let long = long_recording();
    assert_eq!(service.upload(long.clone()).await.0, StatusCode::OK);
    let (status, refused) = service.upload(long).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{refused}");
    eventually("only the first upload is left", async || (names(data.path(), "uploads").len() == 2).then_some(()))
        .await;
    assert_eq!(service.upload(speech()).await.0, StatusCode::OK, "what was reserved is free again");
}

/// About 1.9 MB of sound.
fn long_recording() -> Vec<u8> {
    let options = "-v error -f lavfi -i sine=d=60 -ar 16000 -ac 1 -f wav -";
    let made = Command::new("ffmpeg").args(options.split(' ')).output().expect("install the package `ffmpeg`");
    assert!((1_800_000..2_000_000).contains(&made.stdout.len()));
    made.stdout
}

/// What the service answers to a request that is written byte by byte, and cut off there.
async fn raw(service: &TestService, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(service.running.address).await.unwrap();
    let head = format!("{head}\r\nHost: x\r\nx-service-key: {KEY}\r\nConnection: close\r\n");
    stream.write_all(format!("{head}Content-Type: {KIND}\r\n\r\n").as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    // The connection may be cut instead of answered.
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

#[tokio::test]
async fn senders_that_go_away_or_lie() {
    let (service, data) = TestService::canned().await;
    let beginning = part("name=\"audio\"", &speech());
    let lie = raw(&service, "POST /v2/upload HTTP/1.1\r\nContent-Length: 1073741824", &beginning).await;
    assert!(lie.starts_with("HTTP/1.1 413"), "{lie}");
    let gone = raw(&service, "POST /v2/upload HTTP/1.1\r\nContent-Length: 10000000", &beginning).await;
    assert!(gone.is_empty() || gone.starts_with("HTTP/1.1 400"), "{gone}");
    no_upload_is_left(&data).await;
    let (status, _) = service.upload(speech()).await;
    assert_eq!(status, StatusCode::OK, "the service lives");
}

#[tokio::test]
async fn strange_hosts_make_no_strange_links() {
    let (service, _data) = TestService::canned().await;
    for host in ["a\"b", "user@evil.example", "a b", "example.org/path"] {
        let sent = service.ask(Method::GET, "/v2/pre-recorded").header("host", host).send().await.unwrap();
        if sent.status() == StatusCode::OK {
            let (_, page) = answer(sent).await;
            assert!(page["first"].as_str().unwrap().starts_with(&service.base), "{page}");
        }
    }
}

#[tokio::test]
async fn creates_in_wrong_forms() {
    let (service, _data) = TestService::canned().await;
    let audio_url = service.uploaded().await;
    let send = async |kind: &str, body: String| {
        let request = service.ask(Method::POST, "/v2/pre-recorded").header("content-type", kind);
        answer(request.body(body).send().await.unwrap()).await
    };
    let json_kind = "application/json; charset=utf-8";
    let whole = json!({ "audio_url": audio_url }).to_string();
    assert_eq!(send("text/plain", whole.clone()).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(send(KIND, whole).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    for bad in ["", "{", "nonsense", "\u{0}", &"[".repeat(100_000), &format!("{}1", "{\"a\":".repeat(100_000))] {
        let (status, refused) = send(json_kind, bad.to_owned()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(refused["message"].as_str().unwrap().contains("not valid JSON"), "{refused}");
    }
    for bad in ["null", "[]", "\"text\"", "{}"] {
        assert_eq!(send(json_kind, bad.to_owned()).await.0, StatusCode::BAD_REQUEST, "{bad}");
    }
    let large = json!({ "audio_url": audio_url, "x": "y".repeat(2 << 20) }).to_string();
    assert_eq!(send(json_kind, large).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(service.get("/v2/pre-recorded").await.1["items"], json!([]), "nothing was accepted");
}

#[tokio::test]
async fn creates_with_wrong_parameters() {
    let (service, _data) = TestService::canned().await;
    let audio_url = service.uploaded().await;
    let refused = async |mut body: Value| -> Vec<String> {
        let given = body.as_object_mut().unwrap();
        given.entry("audio_url").or_insert(audio_url.clone().into());
        let (status, refused) = service.create(&body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
        assert_eq!(refused["message"], "Invalid parameter(s). See validation_errors for more details.");
        let wrong = refused["validation_errors"].as_array().unwrap();
        wrong.iter().map(|wrong| wrong.as_str().unwrap().to_owned()).collect()
    };
    let wrong = refused(json!({ "audio_url": 3, "diarization": "maybe", "subtitles_config": { "formats": [] } })).await;
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    for elsewhere in ["ftp://example.org/a.wav", "/file/../../desk.json", "file:///etc/passwd", ""] {
        let wrong = refused(json!({ "audio_url": elsewhere })).await;
        assert!(wrong[0].starts_with("audio_url must"), "{wrong:?}");
    }
    let unknown = "http://x/file/00000000-0000-4000-8000-000000000000";
    assert!(refused(json!({ "audio_url": unknown })).await[0].contains("still kept"));
    let wrong = refused(json!({ "language_config": { "languages": ["en", "fr"] } })).await;
    assert_eq!(wrong, ["language_config.languages must only contain the following values: en"]);
    assert_eq!(refused(json!({ "language": "fr" })).await.len(), 1);
    let wrong = refused(json!({ "callback": true })).await;
    assert_eq!(wrong, ["callback_config.url must be given when callback is true"]);
    assert_eq!(refused(json!({ "custom_metadata": "text" })).await.len(), 1);
    assert_eq!(refused(json!({ "custom_metadata": ["a"] })).await.len(), 1);
    assert_eq!(refused(json!({ "custom_metadata": { "a": "x".repeat(2000) } })).await.len(), 1);
    let undone = json!({ "pii_redaction": true, "pii_redaction_config": { "entity_types": ["EVENT"] } });
    assert!(refused(undone).await[0].starts_with("pii_redaction_config.entity_types must name"));
    let (status, _) =
        service.create(&json!({ "audio_url": audio_url, "custom_metadata": { "a": "x".repeat(1990) } })).await;
    assert_eq!(status, StatusCode::CREATED);
}

/// What the service answers to bytes that are no request of its, until the connection ends.
async fn answered(service: &TestService, head: &str) -> String {
    let mut stream = TcpStream::connect(service.running.address).await.unwrap();
    // The service may have closed it before all is written.
    let _ = stream.write_all(head.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn floods_of_headers_and_odd_requests() {
    let (service, _data) = TestService::canned().await;
    let many: String = (0..200).map(|n| format!("x-{n}: y\r\n")).collect();
    let long = format!("x-long: {}\r\n", "y".repeat(200_000));
    for flood in [many, long] {
        let said = answered(&service, &format!("GET /v2/pre-recorded HTTP/1.1\r\nhost: x\r\n{flood}\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 431"), "{said}");
    }
    for odd in ["nonsense\r\n\r\n", "GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\nhost: x\r\n\r\n"] {
        let said = answered(&service, odd).await;
        assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    }
    for id in ["%ff", "%00", "..%2f..%2fdesk.json", "a%0d%0ab"] {
        for below in ["", "/file"] {
            let (status, _) = service.get(&format!("/v2/pre-recorded/{id}{below}")).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{id}");
        }
        let (status, _) = service.get(&format!("/file/{id}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{id}");
    }
    assert_eq!(service.get("/v2/pre-recorded?status=%ff&date=%00").await.0, StatusCode::BAD_REQUEST);
}

/// Each bracket was a call in a call: the stack ended, and with it the process.
#[tokio::test]
async fn names_in_a_query_have_a_depth() {
    let (service, _data) = TestService::canned().await;
    let deep = format!("/v2/pre-recorded?custom_metadata[a{}]=1", "][".repeat(30_000));
    let (status, refused) = service.get(&deep).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let wrong = refused["validation_errors"][0].as_str().unwrap();
    assert!(wrong.ends_with("must not lie deeper than 32 objects") && wrong.len() < 200, "{wrong}");
    let fits = format!("/v2/pre-recorded?custom_metadata[a{}]=1", "][b".repeat(31));
    assert_eq!(service.get(&fits).await.0, StatusCode::OK);
}

#[tokio::test]
async fn many_idle_connections_keep_nobody_out() {
    let (service, data) = TestService::canned().await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(service.running.address).await.unwrap();
        stream.write_all(b"GET /v2/pre-rec").await.unwrap();
        idle.push(stream);
    }
    assert_eq!(service.get("/v2/pre-recorded").await.0, StatusCode::OK);
    // Those that never finished their request do not keep the service from ending.
    service.running.shutdown().await;
    TestService::with(options(data.path()), Canned::new(Mood::Hear)).await;
}
