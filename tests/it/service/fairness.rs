//! One key cannot starve the others: workers, fetchers, deliveries and the disk are shared by the keys that have
//! work, whatever one of them sends.

use crate::support::bed::ffmpeg;
use crate::support::long_flac::long_flac;
use crate::support::receiver::{Mood, Receiver};
use crate::support::test_service::{
    Canned, KEY, Mood as Hearing, OTHER_KEY, TestService, answer, eventually, names, options, speech,
};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, StatusCode};
use scribed::testing::server::fetch::ssrf_guard::AddressPolicy;
use scribed::testing::server::recognition::recogniser::{RecognisedWord, Recogniser, RecogniserError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;

async fn uploaded(service: &TestService, key: &str, bytes: Vec<u8>) -> (StatusCode, Value) {
    let form = Form::new().part("audio", Part::bytes(bytes).file_name("talk.wav"));
    let request = service.client.post(format!("{}/v2/upload", service.base)).header("x-service-key", key);
    answer(request.multipart(form).send().await.unwrap()).await
}

async fn created(service: &TestService, key: &str, params: Value) -> String {
    let request = service.client.post(format!("{}/v2/pre-recorded", service.base)).header("x-service-key", key);
    let (status, body) = answer(request.json(&params).send().await.unwrap()).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    body["id"].as_str().unwrap().to_owned()
}

/// Uploads a recording and creates a transcription of it.
async fn sent(service: &TestService, key: &str, mut params: Value) -> String {
    let (status, body) = uploaded(service, key, speech()).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    params["audio_url"] = body["audio_url"].clone();
    created(service, key, params).await
}

async fn status(service: &TestService, key: &str, id: &str) -> String {
    let url = format!("{}/v2/pre-recorded/{id}", service.base);
    let request = service.client.request(Method::GET, url).header("x-service-key", key);
    answer(request.send().await.unwrap()).await.1["status"].as_str().unwrap_or_default().to_owned()
}

async fn reaches(service: &TestService, key: &str, id: &str, wanted: &str) {
    let what = format!("{id} becomes {wanted}");
    eventually(&what, async || (status(service, key, id).await == wanted).then_some(())).await;
}

#[tokio::test]
async fn the_only_file_of_one_key_begins_while_another_key_holds_all_workers() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Hearing::Wait);
    let service = TestService::with(options(data.path()), canned.clone()).await;
    let mut first = Vec::new();
    for _ in 0..5 {
        first.push(sent(&service, KEY, json!({})).await);
    }
    reaches(&service, KEY, &first[1], "processing").await;
    let other = sent(&service, OTHER_KEY, json!({})).await;
    reaches(&service, OTHER_KEY, &other, "processing").await;
    assert_eq!(status(&service, KEY, &first[2]).await, "queued", "there are two workers");
    canned.set(Hearing::Hear);
    reaches(&service, OTHER_KEY, &other, "done").await;
    for id in &first {
        reaches(&service, KEY, id, "done").await;
    }
}

#[tokio::test]
async fn slow_addresses_of_one_key_do_not_hold_up_the_fetch_of_another() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    options.reach = AddressPolicy::unrestricted();
    let service = TestService::with(options, Canned::new(Hearing::Hear)).await;
    let slow = Receiver::start(Mood::Silent).await;
    let archive = Receiver::start(Mood::Body(speech().into())).await;
    for n in 0..12 {
        created(&service, KEY, json!({ "audio_url": slow.url(&format!("/{n}.wav")) })).await;
    }
    eventually("the slow ones are fetched", async || (slow.heard().len() >= 4).then_some(())).await;
    let other = created(&service, OTHER_KEY, json!({ "audio_url": archive.url("/talk.wav") })).await;
    reaches(&service, OTHER_KEY, &other, "done").await;
    assert!(slow.heard().len() < 12, "no key fetches without limit");
}

#[tokio::test]
async fn slow_receivers_of_one_key_do_not_hold_up_the_calls_of_another() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    options.reach = AddressPolicy::unrestricted();
    let service = TestService::with(options, Canned::new(Hearing::Hear)).await;
    let slow = Receiver::start(Mood::Silent).await;
    let quick = Receiver::start(Mood::Status(200)).await;
    for n in 0..40 {
        sent(&service, KEY, json!({ "callback_url": slow.url(&format!("/{n}")) })).await;
    }
    eventually("the slow ones are called", async || (slow.heard().len() >= 8).then_some(())).await;
    sent(&service, OTHER_KEY, json!({ "callback_url": quick.url("/end") })).await;
    eventually("the quick one is called", async || (!quick.heard().is_empty()).then_some(())).await;
}

#[tokio::test]
async fn a_key_that_fills_the_disk_leaves_room_for_others() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    let size = speech().len() as u64;
    (options.upload_limit, options.disk) = (2 * size, 20 * size);
    let service = TestService::with(options, Canned::new(Hearing::Hear)).await;
    let mut kept = 0;
    let refused = loop {
        match uploaded(&service, KEY, speech()).await {
            (StatusCode::OK, _) => kept += 1,
            refused => break refused,
        }
    };
    assert_eq!(refused.0, StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    assert!(kept >= 17, "nine tenths are for whoever comes: {kept}");
    let (status, body) = uploaded(&service, OTHER_KEY, speech()).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let (status, _) = uploaded(&service, KEY, speech()).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}

/// Hears two words in each segment, and takes a little time for it.
#[derive(Default)]
struct Slow(AtomicUsize);

impl Recogniser for Slow {
    fn languages(&self) -> &[&'static str] {
        &["en"]
    }

    fn recognise(&self, _: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(30));
        let heard =
            |word: &str, start: f64| RecognisedWord { word: word.to_owned(), start, end: start + 0.2, confidence: 0.5 };
        Ok(vec![heard("hello", 0.1), heard("world", 0.4)])
    }
}

/// So many seconds, of which every second one is a segment.
fn tones(seconds: u64) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tones.flac");
    let source = format!("aevalsrc='0.5*sin(3000*t)*lt(mod(t,2),1)':s=16000:d={seconds}");
    ffmpeg(["-f", "lavfi", "-i", &source], &path);
    std::fs::read(path).unwrap()
}

async fn sent_as(service: &TestService, key: &str, bytes: Vec<u8>) -> String {
    let (status, body) = uploaded(service, key, bytes).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    created(service, key, json!({ "audio_url": body["audio_url"] })).await
}

/// Also with a single worker: a recording of hours gives its place to others, and goes on where it stopped.
#[tokio::test]
async fn a_long_recording_gives_its_place_to_another_key_and_goes_on_where_it_stopped() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    (options.workers, options.slice) = (1, Duration::from_millis(50));
    let slow = Arc::new(Slow::default());
    let service = TestService::with(options, slow.clone()).await;
    let long = sent_as(&service, KEY, tones(400)).await;
    reaches(&service, KEY, &long, "processing").await;
    for _ in 0..2 {
        let other = sent_as(&service, OTHER_KEY, tones(4)).await;
        reaches(&service, OTHER_KEY, &other, "done").await;
        assert_eq!(status(&service, KEY, &long).await, "processing", "the long one has not ended");
    }
    reaches(&service, KEY, &long, "done").await;
    let (_, record) = service.get(&format!("/v2/pre-recorded/{long}")).await;
    let text = record["result"]["transcription"]["full_transcript"].as_str().unwrap();
    assert_eq!(text.to_lowercase().matches("hello").count(), 200);
    assert_eq!(slow.0.load(Ordering::SeqCst), 200 + 2 + 2, "nothing is heard twice");
}

#[tokio::test]
async fn a_recording_that_is_too_long_is_refused_by_its_header() {
    let data = TempDir::new().unwrap();
    let service = TestService::with(options(data.path()), Canned::new(Hearing::Hear)).await;
    let flac = long_flac(1_000 * 3600, true);
    assert!(flac.len() < 1_000_000, "{}", flac.len());
    let (status, body) = uploaded(&service, KEY, flac).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    let words = body["message"].as_str().unwrap();
    assert!(words.contains("longer than 1 day") && words.contains("length_limit"), "{words}");
    let (status, body) = uploaded(&service, KEY, long_flac(23 * 3600, true)).await;
    assert_eq!(status, StatusCode::OK, "{body}");
}

#[tokio::test]
async fn a_recording_that_hides_its_length_is_ended_where_it_becomes_too_long() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    (options.workers, options.length_limit) = (1, Duration::from_secs(60));
    let service = TestService::with(options, Canned::new(Hearing::Hear)).await;
    let id = sent_as(&service, KEY, long_flac(1_000 * 3600, false)).await;
    let record = service.ended(&id).await;
    assert_eq!((&record["status"], &record["error_code"]), (&json!("error"), &json!(422)), "{record}");
    let words = record["post_session_metadata"]["error"].as_str().unwrap();
    assert!(words.contains("longer than 1 min") && words.contains("length_limit"), "{words}");
}

/// Days of silence are decoded as fast as they come, and keep nobody else waiting.
#[tokio::test]
async fn hours_of_silence_give_their_place_to_another_key() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    (options.workers, options.slice, options.length_limit) = (1, Duration::from_millis(50), Duration::MAX);
    let service = TestService::with(options, Canned::new(Hearing::Hear)).await;
    let silence = sent_as(&service, KEY, long_flac(1_000 * 3600, true)).await;
    reaches(&service, KEY, &silence, "processing").await;
    let other = sent(&service, OTHER_KEY, json!({})).await;
    reaches(&service, OTHER_KEY, &other, "done").await;
    assert_eq!(status(&service, KEY, &silence).await, "processing");
    assert_eq!(delete(&service, &silence, "?cancel=true").await, StatusCode::ACCEPTED);
}

async fn delete(service: &TestService, id: &str, query: &str) -> StatusCode {
    service.ask(Method::DELETE, &format!("/v2/pre-recorded/{id}{query}")).send().await.unwrap().status()
}

#[tokio::test]
async fn what_waits_or_is_in_progress_can_be_cancelled() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    (options.workers, options.reach) = (1, AddressPolicy::unrestricted());
    let canned = Canned::new(Hearing::Wait);
    let service = TestService::with(options, canned.clone()).await;
    let slow = Receiver::start(Mood::Silent).await;
    let running = sent(&service, KEY, json!({})).await;
    reaches(&service, KEY, &running, "processing").await;
    let queued = sent(&service, KEY, json!({})).await;
    let fetched = created(&service, KEY, json!({ "audio_url": slow.url("/talk.wav") })).await;
    eventually("it is fetched", async || (!slow.heard().is_empty()).then_some(())).await;
    for id in [&running, &queued, &fetched] {
        assert_eq!(delete(&service, id, "").await, StatusCode::FORBIDDEN, "as the public service has it");
        let other = service.ask_as_other(Method::DELETE, &format!("/v2/pre-recorded/{id}?cancel=true"));
        assert_eq!(other.send().await.unwrap().status(), StatusCode::NOT_FOUND, "not another key's");
        assert_eq!(delete(&service, id, "?cancel=true").await, StatusCode::ACCEPTED);
        assert_eq!(service.get(&format!("/v2/pre-recorded/{id}")).await.0, StatusCode::NOT_FOUND);
    }
    canned.set(Hearing::Hear);
    let next = sent(&service, KEY, json!({})).await;
    reaches(&service, KEY, &next, "done").await;
    assert_eq!(delete(&service, &next, "?cancel=true").await, StatusCode::ACCEPTED, "what has ended is deleted");
    // A worker removes its note in `started` after the end that a client sees.
    for folder in ["uploads", "started"] {
        eventually("nothing is left", async || names(data.path(), folder).is_empty().then_some(())).await;
    }
    for folder in ["transcriptions", "results"] {
        assert_eq!(names(data.path(), folder), [] as [&str; 0], "{folder}");
    }
}
