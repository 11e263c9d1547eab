//! Clients without a key, slow ones, frequent ones and pages of other sites do not keep others out, and cost little.

use crate::support::test_service::{Canned, KEY, Mood, OTHER_KEY, TestService, eventually, names, options, speech};
use reqwest::{Method, StatusCode};
use scribed::testing::server::http::connections::Most;
use scribed::testing::server::http::request_body::BodyLimits;
use scribed::testing::server::service::ServiceOptions;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

const FIRST: &str = "/audio/text/audio-transcription";
const FORM: &str = "Content-Type: multipart/form-data; boundary=XX\r\n";
const JSON: &str = "Content-Type: application/json\r\n";

async fn service_with(adjust: impl FnOnce(&mut ServiceOptions)) -> (TestService, TempDir) {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    adjust(&mut options);
    (TestService::with(options, Canned::new(Mood::Hear)).await, data)
}

fn key(key: &str) -> String {
    format!("x-service-key: {key}\r\n")
}

fn head(line: &str, headers: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: x\r\n{headers}\r\n")
}

/// Sends the beginning of a request and leaves it at that.
async fn begun(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // There may be no room for it any more.
    let _ = stream.write_all(text.as_bytes()).await;
    stream
}

/// What comes back until the answer's head has ended; empty where the connection is cut off before.
async fn answer_to(stream: &mut TcpStream) -> String {
    let (mut said, mut bytes) = (Vec::new(), [0; 4096]);
    let reading = async {
        loop {
            match stream.read(&mut bytes).await {
                Ok(0) | Err(_) => break,
                Ok(count) => said.extend_from_slice(&bytes[..count]),
            }
            if said.windows(4).any(|four| four == b"\r\n\r\n") {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reading).await.expect("no answer");
    String::from_utf8_lossy(&said).into_owned()
}

async fn asked(address: SocketAddr, text: &str) -> String {
    answer_to(&mut begun(address, text).await).await
}

fn part(disposition: &str, bytes: &str) -> String {
    format!("--XX\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{bytes}\r\n")
}

/// All that the document names, but what is open to everybody.
async fn endpoints(service: &TestService) -> Vec<String> {
    let (_, document) = service.get("/openapi.json").await;
    let paths = document["paths"].as_object().unwrap();
    let methods = |path: &String, of: &Value| -> Vec<String> {
        let path = path.replace("{id}", "00000000-0000-4000-8000-000000000000");
        // An empty list of keys says that an operation needs none.
        let keyed = of.as_object().unwrap().iter().filter(|(_, of)| of.get("security") != Some(&serde_json::json!([])));
        keyed.map(|(method, _)| format!("{} {path}", method.to_uppercase())).collect()
    };
    paths.iter().flat_map(|(path, of)| methods(path, of)).collect()
}

#[tokio::test]
async fn without_a_key_every_endpoint_refuses_before_the_first_byte_of_a_body() {
    let (service, _data) = TestService::canned().await;
    let address = service.running.address;
    let endpoints = endpoints(&service).await;
    assert!(endpoints.len() > 14, "{endpoints:?}");
    for line in &endpoints {
        for kind in [FORM, JSON] {
            for wrong in [String::new(), key("wrong")] {
                // The body never comes; who waits to be told to send it is not told so.
                for expect in ["", "Expect: 100-continue\r\n"] {
                    let headers = format!("{kind}{wrong}{expect}Content-Length: 300000000\r\n");
                    let said = asked(address, &head(line, &headers)).await;
                    assert!(said.starts_with("HTTP/1.1 401"), "{line}: {said}");
                    let slash = line.clone() + "/";
                    let said = asked(address, &head(&slash, &headers)).await;
                    assert!(said.starts_with("HTTP/1.1 401"), "{slash}: {said}");
                }
            }
        }
    }
    for unknown in ["POST /v2/nothing", "PUT /v2/upload", "DELETE /v2/upload", "GET /audio/text/audio-transcription"] {
        let said = asked(address, &head(unknown, "Content-Length: 300000000\r\n")).await;
        assert!(said.starts_with("HTTP/1.1 404"), "{unknown}: {said}");
    }
    let headers = format!("{JSON}{}Expect: 100-continue\r\nContent-Length: 2\r\n", key(KEY));
    let mut stream = begun(address, &head("POST /v2/pre-recorded", &headers)).await;
    assert!(answer_to(&mut stream).await.starts_with("HTTP/1.1 100"));
    stream.write_all(b"{}").await.unwrap();
    assert!(answer_to(&mut stream).await.starts_with("HTTP/1.1 400"));
    // Refused before its body is wanted.
    let headers = format!("Content-Type: text/plain\r\n{}Expect: 100-continue\r\nContent-Length: 2\r\n", key(KEY));
    let said = asked(address, &head("POST /v2/pre-recorded", &headers)).await;
    assert!(said.starts_with("HTTP/1.1 415"), "{said}");
}

#[tokio::test]
async fn a_form_with_parts_without_end_is_refused_soon() {
    let (service, data) = TestService::canned().await;
    let address = service.running.address;
    let headers = part("name=\"a\"", "").replacen("\r\n\r\n", &format!("\r\nx: {}\r\n\r\n", "y".repeat(12_000)), 1);
    let endless = [
        part("name=\"a\"", ""),
        part("name=\"\"", ""),
        part("name=\"x\"; filename=\"y\"", ""),
        part("name=\"a\"", &"x".repeat(60_000)),
        "before the first boundary ".repeat(100),
        headers,
    ];
    for (path, code) in [("/v2/upload", "413"), (FIRST, "400")] {
        for piece in &endless {
            let headers = format!("{FORM}{}Content-Length: 300000000\r\n", key(KEY));
            let mut stream = begun(address, &head(&format!("POST {path}"), &headers)).await;
            let (mut reading, mut writing) = stream.split();
            let sending = async {
                let block = piece.repeat(1 + 100_000 / piece.len());
                for _ in 0..100 {
                    // After the answer the connection may be closed, which is no sign that anything was taken.
                    if writing.write_all(block.as_bytes()).await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            };
            let mut said = [0; 12];
            let told = async { reading.read_exact(&mut said).await.unwrap() };
            tokio::select! {
                biased;
                _ = told => {}
                () = sending => panic!("10 MB of {} were taken", &piece[..40.min(piece.len())]),
            }
            assert_eq!(&said[9..], code.as_bytes(), "{path} {}", &piece[..40.min(piece.len())]);
        }
    }
    eventually("nothing is left of it", async || names(data.path(), "uploads").is_empty().then_some(())).await;
}

#[tokio::test]
async fn connections_that_only_wait_lock_nobody_out() {
    let few = Most { all: 8, loopback: 8, address: 8 };
    let (service, _data) = service_with(|options| options.manners.connections = few).await;
    let address = service.running.address;
    let mut open = Vec::new();
    for text in [
        String::new(),
        "GET /v2/pre-recorded HTTP/1.1\r\nHo".to_owned(),
        head(&format!("POST {FIRST}"), &format!("{FORM}Content-Length: 1000\r\n")) + "--XX\r\n",
        head("POST /v2/upload", &format!("{FORM}{}Content-Length: 1000\r\n", key("wrong"))),
        head("GET /v2/pre-recorded", &key(KEY)),
    ] {
        for _ in 0..20 {
            open.push(begun(address, &text).await);
        }
        let said = asked(address, &head("GET /v2/pre-recorded", &key(KEY))).await;
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    }
}

fn stalled_upload(of: &str) -> String {
    let headers = format!("{FORM}{}Content-Length: 100000\r\n", key(of));
    head("POST /v2/upload", &headers) + "--XX\r\nContent-Disposition: form-data; name=\"audio\"\r\n\r\nx"
}

/// Uploads that have begun and do not go on, so many that the service works on all of them.
async fn stalled(service: &TestService, data: &TempDir, count: usize) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(begun(service.running.address, &stalled_upload(KEY)).await);
    }
    eventually("the uploads have begun", async || (names(data.path(), "uploads").len() == count).then_some(())).await;
    open
}

#[tokio::test]
async fn one_key_leaves_room_for_others() {
    let (service, data) = service_with(|options| options.requests = 3).await;
    let address = service.running.address;
    let open = stalled(&service, &data, 3).await;
    let said = asked(address, &head("GET /v2/pre-recorded", &key(KEY))).await.to_lowercase();
    assert!(said.starts_with("http/1.1 429") && said.contains("retry-after: "), "{said}");
    let said = asked(address, &head("GET /v2/pre-recorded", &key(OTHER_KEY))).await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    drop(open);
    eventually("the key is let in again", async || (service.get("/v2/pre-recorded").await.0 == 200).then_some(()))
        .await;
}

#[tokio::test]
async fn who_finds_no_room_is_told_so() {
    for (most, code) in [
        (Most { all: 4, loopback: 9, address: 9 }, "http/1.1 503"),
        (Most { all: 9, loopback: 4, address: 9 }, "http/1.1 429"),
    ] {
        let (service, data) = service_with(|options| options.manners.connections = most).await;
        let open = stalled(&service, &data, 4).await;
        let mut stream = begun(service.running.address, &head("GET /v2/pre-recorded", &key(OTHER_KEY))).await;
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        let said = said.to_lowercase();
        assert!(said.starts_with(code) && said.contains("retry-after: ") && said.contains("\"message\""), "{said}");
        drop(open);
        eventually("there is room again", async || {
            let said = asked(service.running.address, &head("GET /v2/pre-recorded", &key(OTHER_KEY))).await;
            said.starts_with("HTTP/1.1 200").then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_body_that_stops_coming_is_given_up() {
    let span = Duration::from_millis(300);
    let (service, data) =
        service_with(|options| options.bodies = BodyLimits { whole: span, audio: 10_000, span }).await;
    let form = |rest: &str| {
        let headers = format!("{FORM}{}Content-Length: 100000\r\n", key(KEY));
        (head("POST /v2/upload", &headers), head(&format!("POST {FIRST}"), &headers), rest.to_owned())
    };
    let audio = "--XX\r\nContent-Disposition: form-data; name=\"audio\"\r\n\r\nx";
    let create = head("POST /v2/pre-recorded", &format!("{JSON}{}Content-Length: 1000\r\n", key(KEY)));
    let address = head("POST /v2/upload", &format!("{JSON}{}Content-Length: 1000\r\n", key(KEY)));
    let mut requests = vec![create.clone(), create + "{", address];
    for rest in ["", "--XX\r\n", audio] {
        let (second, first, rest) = form(rest);
        requests.extend([second + &rest, first + &rest]);
    }
    let (second, _, rest) = form(&(audio.to_owned() + "\r\n--XX\r\n"));
    requests.push(second + &rest);
    for request in requests {
        let mut stream = begun(service.running.address, &request).await;
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        assert!(said.starts_with("HTTP/1.1 408") && said.contains("within 0.3 s"), "{request}\n{said}");
    }
    eventually("nothing is left of it", async || names(data.path(), "uploads").is_empty().then_some(())).await;
}

/// A WAV file of silence.
fn silence(bytes: u32) -> Vec<u8> {
    let mut wav = b"RIFF".to_vec();
    wav.extend((bytes + 36).to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    wav.extend([16_000_u32, 32_000].map(u32::to_le_bytes).concat());
    wav.extend(b"\x02\0\x10\0data");
    wav.extend(bytes.to_le_bytes());
    wav.resize(44 + bytes as usize, 0);
    wav
}

/// Asks and reads nothing, with little room for what comes.
async fn unread(address: SocketAddr, text: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn who_does_not_read_what_it_asked_for_is_cut_off() {
    let (service, _data) = service_with(|options| {
        options.requests = 1;
        options.manners.write = Duration::from_millis(500);
    })
    .await;
    let (status, uploaded) = service.upload(silence(8_000_000)).await;
    assert_eq!(status, StatusCode::OK, "{uploaded}");
    let path = format!("GET /file/{}", uploaded["audio_metadata"]["id"].as_str().unwrap());
    let mut slow = unread(service.running.address, &head(&path, &key(KEY))).await;
    // Its head has come, so it is in progress.
    slow.readable().await.unwrap();
    eventually("the key is let in again", async || (service.get("/v2/pre-recorded").await.0 == 200).then_some(()))
        .await;
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest).await;
    assert!(rest.starts_with(b"HTTP/1.1 200") && rest.len() < 8_000_000, "{}", rest.len());
    let whole = service.ask(Method::GET, path.strip_prefix("GET ").unwrap()).send().await.unwrap();
    assert_eq!(whole.bytes().await.unwrap().len(), 8_000_044);
}

#[test]
fn lists_that_nobody_reads_hold_no_thread() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).max_blocking_threads(8).build();
    runtime.unwrap().block_on(async {
        let data = TempDir::new().unwrap();
        let canned = Canned::new(Mood::Wait);
        let service = TestService::with(options(data.path()), canned.clone()).await;
        let audio_url = service.uploaded().await;
        for _ in 0..150 {
            let body = json!({ "audio_url": audio_url, "custom_metadata": { "a": "x".repeat(1_900) } });
            assert_eq!(service.create(&body).await.0, StatusCode::CREATED);
        }
        let list = head("GET /v2/pre-recorded?limit=1000", &key(KEY));
        let mut open = Vec::new();
        for _ in 0..16 {
            let stream = unread(service.running.address, &list).await;
            stream.readable().await.unwrap();
            open.push(stream);
        }
        let uploaded = tokio::time::timeout(Duration::from_secs(60), service.upload(speech())).await;
        assert_eq!(uploaded.expect("no thread is free").0, StatusCode::OK);
        let (_, page) = service.get("/v2/pre-recorded?limit=1000").await;
        assert_eq!(page["items"].as_array().unwrap().len(), 150);
        // Its threads wait until then.
        canned.set(Mood::Hear);
    });
}

#[tokio::test]
async fn pages_of_other_origins_are_refused_and_those_that_are_named_are_not() {
    let app = "https://app.example.org";
    let (service, _data) = service_with(|options| options.cors = vec![app.to_owned()]).await;
    let ask = async |method: Method, path: &str, heads: &[(&str, &str)]| {
        let request = service.ask(method, path);
        heads.iter().fold(request, |request, (name, value)| request.header(*name, *value)).send().await.unwrap()
    };
    for foreign in ["https://evil.example", "null", "http://app.example.org", "https://app.example.org:444"] {
        for path in ["/v2/pre-recorded", "/", "/openapi.json", "/nothing"] {
            let refused = ask(Method::GET, path, &[("origin", foreign)]).await;
            assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{foreign} {path}");
            assert!(!refused.headers().contains_key("access-control-allow-origin"));
            assert!(refused.text().await.unwrap().contains(foreign));
        }
        let preflight = [("origin", foreign), ("access-control-request-method", "POST")];
        assert_eq!(ask(Method::OPTIONS, "/v2/upload", &preflight).await.status(), StatusCode::FORBIDDEN);
    }
    let own = ask(Method::GET, "/v2/pre-recorded", &[("origin", &service.base)]).await;
    assert_eq!(own.status(), StatusCode::OK);
    assert_eq!(own.headers().get("vary").unwrap(), "Origin");
    for (path, status) in [("/v2/pre-recorded", StatusCode::OK), ("/nothing", StatusCode::NOT_FOUND)] {
        let answered = ask(Method::GET, path, &[("origin", app)]).await;
        let heads = answered.headers();
        assert_eq!(answered.status(), status);
        assert_eq!(heads.get("access-control-allow-origin").unwrap(), app);
        assert!(!heads.contains_key("access-control-allow-credentials"));
    }
    let without_key = service.client.get(format!("{}/v2/pre-recorded", service.base)).header("origin", app);
    let refused = without_key.send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(refused.headers().get("access-control-allow-origin").unwrap(), app, "the page may read why");
    let preflight = service.client.request(Method::OPTIONS, format!("{}/v2/upload", service.base));
    let preflight = preflight.header("origin", app).header("access-control-request-method", "POST");
    let may = preflight.send().await.unwrap();
    let heads = may.headers();
    assert_eq!(may.status(), StatusCode::NO_CONTENT);
    assert_eq!(heads.get("access-control-allow-origin").unwrap(), app);
    assert_eq!(heads.get("access-control-allow-headers").unwrap(), "content-type, x-service-key, x-other-header");
    assert_eq!(heads.get("access-control-allow-methods").unwrap(), "GET, POST, DELETE");
    assert_eq!(ask(Method::OPTIONS, "/v2/upload", &[]).await.status(), StatusCode::NOT_FOUND);
}
