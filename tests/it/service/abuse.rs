//! All kinds of bad requests at once, again and again, against the real process: it stays up, each answer says what is
//! wrong, and neither memory nor disk use grows.

use crate::support::bed::{SERVICE_KEY, ServeProcess, ffmpeg, files, speech_piece};
use crate::support::receiver::{Mood, Receiver};
use crate::support::test_service::{answer, eventually};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use std::fs;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

struct Abused {
    service: ServeProcess,
    base: String,
    client: Client,
}

impl Abused {
    fn start() -> Self {
        let service = ServeProcess::start();
        let base = format!("http://127.0.0.1:{}", service.port);
        Self { service, base, client: Client::builder().no_proxy().tls_certs_only([]).build().unwrap() }
    }

    async fn upload(&self, part: &'static str, name: &str, bytes: Vec<u8>) -> (StatusCode, Value) {
        let form = Form::new().part(part, Part::bytes(bytes).file_name(name.to_owned()));
        let sent = self.client.post(format!("{}/v2/upload", self.base)).header("x-service-key", SERVICE_KEY);
        answer(sent.multipart(form).send().await.unwrap()).await
    }

    async fn create(&self, body: impl Into<reqwest::Body>) -> (StatusCode, Value) {
        let sent = self.client.post(format!("{}/v2/pre-recorded", self.base)).header("x-service-key", SERVICE_KEY);
        answer(sent.header("content-type", "application/json").body(body).send().await.unwrap()).await
    }

    /// The record, once it has ended; it is deleted then.
    async fn ended(&self, id: &str) -> Value {
        let ask = |method| {
            let url = format!("{}/v2/pre-recorded/{id}", self.base);
            self.client.request(method, url).header("x-service-key", SERVICE_KEY).send()
        };
        let record = eventually("it ends", async || {
            let (_, record) = answer(ask(Method::GET).await.unwrap()).await;
            ["done", "error"].contains(&record["status"].as_str()?).then_some(record)
        });
        let record = record.await;
        // The end is read from the disk a moment before the store itself counts it.
        // What was read as ended can be deleted.
        assert_eq!(ask(Method::DELETE).await.unwrap().status(), StatusCode::ACCEPTED);
        record
    }

    /// Sends these bytes, and reads the head of the answer; closed by us at once where it is `cut`.
    async fn raw(&self, bytes: &[u8], cut: bool) -> String {
        let mut stream = self.connect().await;
        let _ = stream.write_all(bytes).await;
        if cut {
            return String::new();
        }
        let mut said = Vec::new();
        // The connection may be cut instead of answered.
        while !said.windows(4).any(|end| end == b"\r\n\r\n") && stream.read_buf(&mut said).await.is_ok_and(|n| n > 0) {}
        String::from_utf8_lossy(&said).into_owned()
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.service.port)).await.unwrap()
    }

    /// KiB that the process holds.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.service.running().pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Files in the data directory, and their bytes.
    fn disk(&self) -> (usize, u64) {
        let mut files = files(&self.service.data());
        // Its volumes are laid out ahead.
        files.retain(|path| !path.parent().is_some_and(|folder| folder.ends_with("ledger")));
        let bytes = files.iter().filter_map(|path| fs::metadata(path).ok()).map(|found| found.len()).sum();
        (files.len(), bytes)
    }
}

/// What is no recording, or not a whole one. `Err`: refused at once; `Ok`: may be taken, and then ends.
fn recordings() -> Vec<(&'static str, Vec<u8>, bool)> {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str, arguments: &[&str]| {
        let (wav, path) = (folder.path().join("in.wav"), folder.path().join(name));
        fs::write(&wav, speech_piece(0)).unwrap();
        ffmpeg([&["-i", wav.to_str().unwrap()], arguments].concat(), &path);
        fs::read(path).unwrap()
    };
    let (late, early) = (made("late.mp4", &[]), made("early.mp4", &["-movflags", "+faststart"]));
    let rated = |rate: u32| {
        let mut wave = speech_piece(0);
        wave[24..28].copy_from_slice(&rate.to_le_bytes());
        wave
    };
    vec![
        ("text.wav", b"This is not a recording.".to_vec(), false),
        ("empty.wav", Vec::new(), false),
        ("zeros.mp3", vec![0; 100_000], false),
        ("index-missing.mp4", late[..late.len() / 2].to_vec(), false),
        ("half.mp4", early[..early.len() * 2 / 3].to_vec(), true),
        ("half.wav", speech_piece(0)[..20_000].to_vec(), true),
        ("channels.wav", channels(), true),
        ("rate0.wav", rated(0), true),
        ("rate-max.wav", rated(u32::MAX), true),
        ("playlist.m3u8", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n".to_vec(), false),
    ]
}

/// Says that it has 64 channels: taken in, and never heard.
fn channels() -> Vec<u8> {
    let mut wave = speech_piece(0);
    wave[22..24].copy_from_slice(&64_u16.to_le_bytes());
    wave[32..34].copy_from_slice(&128_u16.to_le_bytes());
    wave
}

async fn bad_recordings(abused: &Abused, recordings: &[(&'static str, Vec<u8>, bool)]) {
    for (name, bytes, may_pass) in recordings {
        let (status, said) = abused.upload("audio", name, bytes.clone()).await;
        if status != StatusCode::OK || !may_pass {
            assert_eq!(status, StatusCode::BAD_REQUEST, "{name}: {said}");
            assert!(said["message"].as_str().unwrap().len() > 10, "{said}");
            continue;
        }
        let (status, created) = abused.create(json!({ "audio_url": said["audio_url"] }).to_string()).await;
        assert_eq!(status, StatusCode::CREATED, "{name}: {created}");
        let record = abused.ended(created["id"].as_str().unwrap()).await;
        let told = || record["post_session_metadata"]["error"].as_str().is_some_and(|words| words.len() > 10);
        assert!(record["status"] == "done" || (record["error_code"] == 422 && told()), "{name}: {record}");
    }
}

async fn bad_bodies(abused: &Abused, inward: &str) {
    let (status, said) = abused.upload("video", "a.wav", speech_piece(0)).await;
    assert_eq!((status, said["statusCode"].as_u64()), (StatusCode::BAD_REQUEST, Some(400)), "{said}");
    let deep = [&b"{\"custom_metadata\":"[..], &[b'['; 200_000]].concat();
    let words = vec!["wörd"; 1_800_000];
    let vocabulary = json!({ "audio_url": "http://x/a", "custom_vocabulary_config": { "vocabulary": words } });
    assert!(vocabulary.to_string().len() > 10_000_000);
    for (body, code) in [
        (deep, 400),
        (vocabulary.to_string().into_bytes(), 413),
        (b"\xff\xfe{".to_vec(), 400),
        (json!({ "audio_url": "file:///etc/passwd" }).to_string().into_bytes(), 400),
        (json!({ "audio_url": "http://x/file/../../desk.json", "custom_metadata": 1 }).to_string().into_bytes(), 400),
    ] {
        let (status, said) = abused.create(body).await;
        assert_eq!(status.as_u16(), code, "{said}");
        assert!(said["message"].is_string() && said["request_id"].is_string(), "{said}");
    }
    for elsewhere in
        [inward, "http://localhost:1/", "http://0x7f.1/", "http://[::ffff:7f00:1]/", "http://169.254.169.254/"]
    {
        let (status, created) = abused.create(json!({ "audio_url": elsewhere }).to_string()).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        let record = abused.ended(created["id"].as_str().unwrap()).await;
        assert_eq!((&record["status"], &record["error_code"]), (&json!("error"), &json!(403)), "{record}");
    }
}

async fn bad_names(abused: &Abused) {
    for (sent, kept) in
        [("../../../desk.json", "desk.json"), ("..", ".."), ("/etc/passwd", "passwd"), ("a\u{0}b.wav", "ab.wav")]
    {
        let (status, said) = abused.upload("audio", sent, channels()).await;
        assert_eq!(status, StatusCode::OK, "{said}");
        let shown = said["audio_metadata"]["filename"].as_str().unwrap();
        assert!(!shown.contains('/') && (shown == kept || shown.contains('%')), "{said}");
        let url = said["audio_url"].as_str().unwrap();
        // Ended and deleted, so that nothing stays.
        let (_, created) = abused.create(json!({ "audio_url": url }).to_string()).await;
        abused.ended(created["id"].as_str().unwrap()).await;
    }
}

async fn bad_senders(abused: &Abused) {
    let head = |length: usize| {
        format!(
            "POST /v2/upload HTTP/1.1\r\nhost: x\r\nx-service-key: {SERVICE_KEY}\r\ncontent-length: {length}\r\n\
             content-type: multipart/form-data; boundary=XX\r\n\r\n--XX\r\ncontent-disposition: form-data; name=audio\r\n\r\n"
        )
    };
    let lie = abused.raw(format!("{}xxxx", head(usize::MAX / 2)).as_bytes(), false).await;
    assert!(lie.starts_with("HTTP/1.1 413"), "{lie}");
    abused.raw(&[head(5_000_000).into_bytes(), vec![7; 2_000_000]].concat(), true).await;
    let flood: String = (0..500).map(|n| format!("x-{n}: y\r\n")).collect();
    let flooded = abused.raw(format!("GET / HTTP/1.1\r\nhost: x\r\n{flood}\r\n").as_bytes(), false).await;
    assert!(flooded.starts_with("HTTP/1.1 431"), "{flooded}");
    let long = "y".repeat(2_000_000);
    let flooded = abused.raw(format!("GET /{long} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes(), false).await;
    assert!(["", "HTTP/1.1 414", "HTTP/1.1 431"].iter().any(|begin| flooded.starts_with(begin)));
    let split =
        "POST /v2/upload HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\nzz\r\n\r\n";
    let refused = abused.raw(split.as_bytes(), false).await;
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 4"), "{refused}");
}

/// Connections that begin and do not go on: half a head, half a body.
async fn slow_senders(abused: &Abused) -> Vec<TcpStream> {
    let mut slow = Vec::new();
    for n in 0..100 {
        let mut stream = abused.connect().await;
        let whole = format!(
            "POST /v2/upload HTTP/1.1\r\nhost: x\r\nx-service-key: {SERVICE_KEY}\r\ncontent-length: 100000\r\n\
             content-type: multipart/form-data; boundary=XX\r\n\r\n--XX\r\ncontent-disposition: form-data; name=audio\r\n\r\nxx"
        );
        let part = if n % 2 == 0 { &whole[..40] } else { &whole };
        stream.write_all(part.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    slow
}

#[tokio::test]
async fn nothing_bad_leaves_a_trace() {
    let abused = Abused::start();
    let recordings = recordings();
    let inside = Receiver::start(Mood::Status(200)).await;
    let slow = slow_senders(&abused).await;
    eventually("the slow ones have begun", async || (abused.disk().0 >= 50).then_some(())).await;
    let round = async || {
        bad_recordings(&abused, &recordings).await;
        bad_bodies(&abused, &inside.url("/")).await;
        bad_names(&abused).await;
        bad_senders(&abused).await;
    };
    // What is opened once stays open: the recogniser, the pools.
    round().await;
    let warm = abused.memory();
    for _ in 0..2 {
        round().await;
    }
    let grown = abused.memory().saturating_sub(warm);
    println!("{warm} KiB after the first round, {grown} KiB more after the others");
    assert!(grown < 64 << 10, "{grown} KiB more than after the first round ({warm} KiB)");
    drop(slow);
    // The identity of the store, its lock, the lock of imports.
    eventually("only the store itself is left", async || (abused.disk().0 <= 3).then_some(())).await;
    assert!(abused.disk().1 < 1000, "{:?}", abused.disk());
    assert!(files(&abused.service.data().join("ledger")).len() <= 2);
    assert_eq!(abused.upload("audio", "good.wav", speech_piece(0)).await.0, StatusCode::OK, "it serves as before");
}
