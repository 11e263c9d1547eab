//! Neither what a client sends nor how much was said decides how much memory the service takes.

use crate::support::bed::{SERVICE_KEY, Service, ffmpeg};
use crate::support::child::test_in_child;
use crate::support::receiver::{Mood, Receiver};
use crate::support::test_service::{Canned, Mood as Ear, TestService, answer, eventually, names, options, speech};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, Method, StatusCode};
use scribed::testing::server::recognition::recogniser::{RecognisedWord, Recogniser, RecogniserError};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use tempfile::TempDir;
use uuid::Uuid;

/// Hears so many words in each segment.
pub struct Chatter(pub usize);

impl Recogniser for Chatter {
    fn languages(&self) -> &[&'static str] {
        &["en"]
    }

    fn recognise(&self, samples: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let each = samples.len() as f64 / 16e3 / self.0 as f64;
        let word = |n: usize| RecognisedWord {
            word: if n.is_multiple_of(20) { "word" } else { "chatter" }.to_owned(),
            start: each * n as f64,
            end: each * (n + 1) as f64,
            confidence: 0.5,
        };
        Ok((0..self.0).map(word).collect())
    }
}

#[tokio::test]
async fn a_create_that_asks_for_too_much_is_refused_in_few_words() {
    let (service, _data) = TestService::canned().await;
    let audio_url = service.uploaded().await;
    let key = "K".repeat(900_000);
    let prompts = vec!["p"; 100_000];
    for (params, words) in [
        (
            json!({ "custom_spelling_config": { "spelling_dictionary": { key: ["hello"] } } }),
            "must not have a key of more than 256",
        ),
        (
            json!({ "custom_vocabulary_config": { "vocabulary": ["x".repeat(900_000)] } }),
            "must be a string of at most 256 characters",
        ),
        (json!({ "audio_to_llm_config": { "prompts": prompts } }), "must hold at most 1000 entries"),
        (json!({ "subtitles_config": { "formats": ["srt", "srt"] } }), "must not hold `srt` more than once"),
        // Each of these mistakes could be answered with all the languages there are.
        (json!({ "language_config": { "languages": vec![1; 500_000] } }), "must hold at most 1000 entries"),
        (json!({ "language_config": { "languages": vec!["x"; 1_000] } }), "must only contain"),
        (json!({ "custom_vocabulary_config": { "vocabulary": vec![1; 10_000] } }), "must be a string or an object"),
    ] {
        let mut body = params.clone();
        body["audio_url"] = json!(audio_url);
        let (status, refused) = service.create(&body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{words}");
        let told = refused["validation_errors"].as_array().unwrap();
        assert!(refused.to_string().len() < 200_000 && told.len() <= 101, "{}", refused.to_string().len());
        let first = told[0].as_str().unwrap();
        assert!(first.contains(words) || first.contains("must be one of"), "{words}: {first}");
    }
    let words: Vec<String> = (0..999).map(|n| format!("word {n}")).collect();
    let many = json!({ "audio_url": audio_url, "custom_vocabulary": true, "custom_vocabulary_config": { "vocabulary": words } });
    assert_eq!(service.create(&many).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn a_form_of_the_first_version_holds_so_much_and_no_more() {
    let (service, _data) = TestService::canned().await;
    let call = async |form: Form| {
        answer(service.ask(Method::POST, "/audio/text/audio-transcription").multipart(form).send().await.unwrap()).await
    };
    let empty = (0..200).fold(Form::new(), |form, n| form.text(format!("field{n}"), ""));
    let long = Form::new().text("language", "x".repeat(100_000));
    let all = (0..30).fold(Form::new(), |form, n| form.text(format!("field{n}"), "x".repeat(50_000)));
    let named = Form::new().text("n".repeat(5_000), "x");
    for form in [empty, long, all, named] {
        let (status, refused) = call(form).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
        let words = refused["message"].as_str().unwrap();
        assert!(words.contains("too many fields") || words.contains("at most 65536"), "{refused}");
    }
    let form = Form::new().part("audio", Part::bytes(speech()).file_name("a.wav"));
    assert_eq!(call(form).await.0, StatusCode::OK);
}

/// What an older release accepted is not looked at again when it is started.
#[tokio::test]
async fn a_spelling_that_multiplies_is_not_applied_and_that_is_said() {
    let data = TempDir::new().unwrap();
    let service = TestService::with(options(data.path()), Canned::new(Ear::Wait)).await;
    let id = service.created(json!({ "sentences": true })).await;
    service.running.shutdown().await;
    let ledger = data.path().join("ledger");
    let old = json!({ "custom_spelling": true, "sentences": true, "subtitles": true,
        "subtitles_config": { "formats": vec!["srt"; 1_000] },
        "custom_spelling_config": { "spelling_dictionary": { "K".repeat(900_000): ["chatter"] } } });
    as_older_releases_kept_it(data.path(), &id, &old);
    fs::remove_dir_all(&ledger).unwrap();
    let service = TestService::with(options(data.path()), Arc::new(Chatter(1_000))).await;
    let record = service.ended(&id).await;
    assert_eq!(record["status"], "done", "{}", record["post_session_metadata"]);
    let result = &record["result"];
    assert_eq!(result["custom_spelling"]["success"], false);
    assert!(result["custom_spelling"]["error"]["message"].as_str().unwrap().contains("as they were recognised"));
    assert!(result["transcription"]["full_transcript"].as_str().unwrap().starts_with("Word chatter chatter"));
    assert_eq!(result["transcription"]["subtitles"].as_array().unwrap().len(), 1);
    assert!(result.to_string().len() < 10 << 20);
}

/// A file for each accepted create, with whatever was accepted then.
fn as_older_releases_kept_it(root: &std::path::Path, id: &str, params: &Value) {
    let upload = names(root, "uploads").into_iter().find_map(|name| Some(name.strip_suffix(".json")?.to_owned()));
    let label: Value =
        serde_json::from_slice(&fs::read(root.join(format!("uploads/{}.json", upload.as_ref().unwrap()))).unwrap())
            .unwrap();
    let head = json!({ "v": 1, "owner": label["owner"], "upload": upload, "created": 1, "file": label["file"], "params": params });
    fs::write(root.join(format!("transcriptions/{id}.json")), head.to_string()).unwrap();
}

/// Set for the child process that is measured.
const CHILD: &str = "SCRIBED_TEST_MILLION";

/// KiB of the most that this process ever held.
fn most_memory(pid: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_million_words_take_bounded_memory() {
    if std::env::var_os(CHILD).is_some() {
        return tokio::runtime::Runtime::new().unwrap().block_on(a_million_words());
    }
    let ran = test_in_child(module_path!(), "a_million_words_take_bounded_memory").env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    let most: u64 = said.lines().find_map(|line| line.strip_prefix("most ")).unwrap().parse().unwrap();
    println!("{} MiB", most >> 10);
    assert!(most < 640 << 10, "{most} KiB for a million words");
}

async fn a_million_words() {
    let folder = TempDir::new().unwrap();
    let wave = folder.path().join("pauses.wav");
    // Two hundred bursts of noise.
    ffmpeg(["-f", "lavfi", "-i", "anoisesrc=d=400:r=16000:a=0.5", "-af", "volume=0:enable='gt(mod(t,2),1)'"], &wave);
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    (options.disk, options.workers) = (2_000_000_000, 1);
    let service = TestService::with(options, Arc::new(Chatter(5_200))).await;
    let (status, said) = service.upload(fs::read(&wave).unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    let params = json!({ "audio_url": said["audio_url"], "sentences": true, "subtitles": true,
        "subtitles_config": { "formats": ["srt", "vtt"] }, "punctuation_enhanced": true,
        "translation": true, "translation_config": { "target_languages": ["en"] } });
    let (_, created) = service.create(&params).await;
    let id = created["id"].as_str().unwrap().to_owned();
    eventually("it is written", async || names(data.path(), "transcriptions").pop()).await;
    let size = fs::metadata(data.path().join(format!("results/{id}.json"))).unwrap().len();
    // Its file is there a moment before its end is told.
    let path = format!("/v2/pre-recorded/{id}");
    let ask = async || service.ask(Method::GET, &path).send().await.unwrap();
    let mut response = ask().await;
    eventually("its end is told", async || {
        response = ask().await;
        (response.content_length().unwrap() > size).then_some(())
    })
    .await;
    let announced = response.content_length().unwrap();
    let (mut read, mut words) = (0, 0);
    while let Some(piece) = response.chunk().await.unwrap() {
        read += piece.len() as u64;
        words += piece.windows(9).filter(|bytes| *bytes == b"{\"word\":\"").count();
    }
    assert!(announced == read && read > size, "{announced} {read} {size}");
    assert!(words > 1_900_000, "{words} words, in the transcript and in its translation");
    println!("{} MiB of result\nmost {}", size >> 20, most_memory("self"));
}

/// A service that has a record with a result of this size.
fn with_result(service: &mut Service, bytes: usize, calls: &Value) -> String {
    service.kill();
    let id = Uuid::new_v4().to_string();
    // Not so long ago that it has been kept for long enough.
    let now = scribed::testing::clock::Clock::now(&scribed::testing::clock::SystemClock).0;
    let head = json!({ "v": 1, "upload": Uuid::new_v4().to_string(), "created": now - 2, "ended": { "at": now - 1 }, "params": {}, "calls": calls });
    let result = json!({ "metadata": {}, "transcription": { "full_transcript": "x".repeat(bytes) } });
    service.put(&format!("transcriptions/{id}.json"), head.to_string().as_bytes());
    service.put(&format!("results/{id}.json"), result.to_string().as_bytes());
    service.revive();
    id
}

#[tokio::test]
async fn a_hundred_who_read_a_large_result_at_once_take_little_memory() {
    let mut service = Service::start();
    const LARGE: usize = 64 << 20;
    let id = with_result(&mut service, LARGE, &json!([]));
    let client = Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let base = format!("http://127.0.0.1:{}", service.port);
    let ask = async |path: &str| {
        client.get(format!("{base}{path}")).header("x-service-key", SERVICE_KEY).send().await.unwrap()
    };
    let mut readers = Vec::new();
    for n in 0..100 {
        let one = format!("/v2/pre-recorded/{id}");
        let path = ["/v2/pre-recorded", "/v2/transcription", one.as_str()][n % 3];
        let mut response = ask(path).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.chunk().await.unwrap().is_some());
        readers.push(response);
    }
    let most = most_memory(&service.running().pid().to_string());
    println!("{} MiB", most >> 10);
    assert!(most < 256 << 10, "{most} KiB for a hundred readers");
    for mut response in readers.into_iter().take(3) {
        let mut read = 0;
        while let Some(piece) = response.chunk().await.unwrap() {
            read += piece.len();
        }
        assert!(read > LARGE - (2 << 20), "{read}");
    }
    let whole: Value = ask(&format!("/v2/pre-recorded/{id}")).await.json().await.unwrap();
    assert_eq!(whole["result"]["transcription"]["full_transcript"].as_str().unwrap().len(), LARGE);
    assert_eq!((&whole["id"], &whole["status"]), (&json!(id), &json!("done")));
}

#[tokio::test]
async fn a_large_result_is_told_to_a_callback_as_a_small_one_is() {
    let receiver = Receiver::start(Mood::Status(200)).await;
    let mut service = Service::calling();
    let calls = json!([{ "to": { "callback": { "url": receiver.url("/end"), "method": "POST" } }, "due": 6 }]);
    // Larger than what is read into memory, and no larger than what the receiver takes.
    let id = with_result(&mut service, 1_500_000, &calls);
    let heard = eventually("it is told", async || receiver.heard().pop()).await;
    let told = heard.json();
    assert_eq!((&told["id"], &told["event"]), (&json!(id), &json!("transcription.success")));
    assert_eq!(told["payload"]["transcription"]["full_transcript"].as_str().unwrap().len(), 1_500_000);
    assert_eq!(heard.header("content-length"), heard.body.len().to_string());
}

#[tokio::test]
async fn one_record_that_cannot_be_read_keeps_no_other_from_being_served() {
    let mut service = Service::start();
    service.import_live(&json!({ "id": "a", "created_at": "2026-01-02T03:04:05.000Z", "status": "error", "completed_at": "2026-01-02T03:05:05.000Z" }).to_string());
    let id = with_result(&mut service, 10, &json!([]));
    service.kill();
    let live = service.data().join("live/000001.jsonl");
    let good = fs::read_to_string(&live).unwrap();
    fs::write(&live, format!("{{\"v\":1,\"own\n{good}")).unwrap();
    fs::create_dir(service.data().join(format!("transcriptions/{}.json", Uuid::new_v4()))).unwrap();
    service.revive();
    let client = Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let get = async |path: String| {
        let url = format!("http://127.0.0.1:{}{path}", service.port);
        answer(client.get(url).header("x-service-key", SERVICE_KEY).send().await.unwrap()).await
    };
    assert_eq!(get(format!("/v2/pre-recorded/{id}")).await.1["status"], "done");
    let (status, live) = get("/v2/live".to_owned()).await;
    assert_eq!((status, live["items"].as_array().unwrap().len()), (StatusCode::OK, 1), "{live}");
}
