//! The transcription service over HTTP, as the interface describes it.

use crate::support::librivox::{readings, word_errors};
use crate::support::test_service::{
    Canned, KEY, Mood, OTHER_KEY, TestService, answer, eventually, names, open_recogniser, options, speech,
};
use reqwest::{Method, StatusCode};
use scribed::testing::clock::{Clock, SystemClock, Uptime};
use scribed::testing::domain::names::Timestamp;
use scribed::testing::server::http::auth::own_key;
use scribed::testing::server::recognition::lazy::LazyRecogniser;
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use scribed::testing::server::recognition::recogniser::{Recogniser, RecogniserError};
use scribed::testing::server::service::{StartError, health, start};
use scribed::testing::wire::timestamps;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

#[tokio::test]
async fn upload_create_read_list() {
    let (service, data) = TestService::canned().await;
    let (status, uploaded) = service.upload(speech()).await;
    assert_eq!(status, StatusCode::OK);
    let file_id = uploaded["audio_metadata"]["id"].as_str().unwrap();
    assert_eq!(uploaded["audio_url"], format!("{}/file/{file_id}", service.base));
    assert_eq!(uploaded["audio_metadata"]["filename"], "Élan \"1\".WAV");
    assert_eq!(uploaded["audio_metadata"]["extension"], "wav");
    assert_eq!(uploaded["audio_metadata"]["size"], speech().len());
    assert_eq!(uploaded["audio_metadata"]["number_of_channels"], 1);
    let duration = uploaded["audio_metadata"]["audio_duration"].as_f64().unwrap();
    assert!((1.0..30.0).contains(&duration));

    let (status, created) = service.create(&json!({ "audio_url": uploaded["audio_url"] })).await;
    assert_eq!(status, StatusCode::CREATED);
    let id = created["id"].as_str().unwrap();
    assert_eq!(created["result_url"], format!("{}/v2/pre-recorded/{id}", service.base));

    let record = service.ended(id).await;
    assert_eq!(record["status"], "done");
    assert_eq!(record["id"], id);
    assert_eq!(record["request_id"], format!("G-{}", &id[..8]));
    assert_eq!(record["version"], 2);
    assert_eq!(record["kind"], "pre-recorded");
    assert_eq!(record["file"]["id"], file_id);
    assert_eq!(record["file"]["filename"], "Élan \"1\".WAV");
    assert_eq!(record["file"]["audio_duration"], duration);
    for null in ["custom_metadata", "error_code"] {
        assert_eq!(record.get(null), Some(&Value::Null), "{null} is null, not absent");
    }
    assert_eq!(record["file"].get("source"), Some(&Value::Null));
    assert_eq!(record["post_session_metadata"], json!({}), "an object, whatever came of it");
    assert_eq!(record["request_params"]["audio_url"], uploaded["audio_url"]);
    assert_eq!(record["request_params"]["diarization"], false);
    assert_eq!(record["request_params"].get("custom_metadata"), None);

    let result = &record["result"];
    assert_eq!(result["transcription"]["languages"], json!(["en"]));
    assert!(result["transcription"]["full_transcript"].as_str().unwrap().starts_with("Hello world"));
    assert_eq!(result["transcription"]["utterances"][0]["words"][0]["word"], " Hello");
    assert_eq!(result["transcription"]["utterances"][0]["channel"], 0);
    let amounts = &result["metadata"];
    assert_eq!(amounts["number_of_distinct_channels"], 1);
    assert_eq!(amounts["billing_time"], amounts["audio_duration"]);
    let moment = |field: &str| timestamps::parse(record[field].as_str().unwrap()).unwrap();
    let took = moment("completed_at").duration_since(moment("created_at"));
    let millis = (amounts["transcription_time"].as_f64().unwrap() * 1000.0).round();
    assert_eq!(millis, took.as_millis() as f64, "the last digit of seconds depends on how they were added up");

    let (status, page) = service.get("/v2/pre-recorded").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(page["items"], json!([record]));
    assert_eq!(page.get("next"), Some(&Value::Null));
    let first = page["first"].as_str().unwrap().strip_prefix(&service.base).unwrap();
    assert_eq!(service.get(first).await.1, page, "the link resolves");
    eventually("the audio goes when it has been transcribed", async || {
        names(data.path(), "uploads").is_empty().then_some(())
    })
    .await;
    service.running.shutdown().await;
}

#[tokio::test]
async fn a_record_before_its_end() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Wait);
    let mut options = options(data.path());
    options.workers = 1;
    let service = TestService::with(options, canned.clone()).await;
    let first = service.created(json!({})).await;
    let second = service.created(json!({ "custom_metadata": { "a": 1 } })).await;
    eventually("the first one is processed", async || {
        let (_, record) = service.get(&format!("/v2/pre-recorded/{first}")).await;
        (record["status"] == "processing").then_some(())
    })
    .await;
    let (_, record) = service.get(&format!("/v2/pre-recorded/{second}")).await;
    assert_eq!(record["status"], "queued", "one worker, one at a time");
    for null in ["completed_at", "error_code", "result"] {
        assert_eq!(record.get(null), Some(&Value::Null), "{null} is null, not absent");
    }
    assert_eq!(record["custom_metadata"], json!({ "a": 1 }));
    assert!(record["file"]["audio_duration"].is_number());
    canned.set(Mood::Hear);
    assert_eq!(service.ended(&second).await["status"], "done");
    assert_eq!(service.ended(&first).await["status"], "done");
}

#[tokio::test]
async fn real_speech() {
    let data = TempDir::new().unwrap();
    let sphinx = PocketSphinx::open(Settings { decoders: 1, ..Settings::default() }).unwrap();
    let service = TestService::with(options(data.path()), Arc::new(sphinx)).await;
    let params = json!({
        "language_config": { "languages": ["en"] },
        "subtitles": true,
        "subtitles_config": { "formats": ["vtt", "srt"], "maximum_characters_per_row": 20 },
    });
    let id = service.created(params).await;
    let record = service.ended(&id).await;
    assert_eq!(record["status"], "done", "{record}");
    let transcription = &record["result"]["transcription"];
    let heard = transcription["full_transcript"].as_str().unwrap();
    let (wrong, words) = word_errors(&readings()[0].text, heard);
    assert!(wrong * 2 < words, "{wrong} of {words} words are wrong: {heard}");
    let subtitles = &transcription["subtitles"];
    assert_eq!((&subtitles[0]["format"], &subtitles[1]["format"]), (&json!("vtt"), &json!("srt")));
    assert!(subtitles[0]["subtitles"].as_str().unwrap().starts_with("WEBVTT\n\n1\n00:00:0"));
    let srt = subtitles[1]["subtitles"].as_str().unwrap();
    assert!(srt.starts_with("1\n00:00:0") && srt.lines().all(|line| line.len() <= 29), "{srt}");
    assert_eq!(record["request_params"]["subtitles_config"]["style"], "default");
}

#[tokio::test]
async fn keys() {
    let (service, _data) = TestService::canned().await;
    let url = format!("{}/v2/pre-recorded", service.base);
    let (status, body) = answer(service.client.get(&url).send().await.unwrap()).await;
    assert_eq!((status, &body["message"]), (StatusCode::UNAUTHORIZED, &json!("no service key provided")));
    for wrong in ["", "a-ke", "a-keyy", KEY.to_uppercase().as_str()] {
        let sent = service.client.get(&url).header("x-service-key", wrong).send().await.unwrap();
        let (status, body) = answer(sent).await;
        assert_eq!((status, &body["message"]), (StatusCode::UNAUTHORIZED, &json!("service key not found")));
    }
    let id = service.created(json!({})).await;
    service.ended(&id).await;
    let as_other = |url: String| service.client.get(url).header("X-Other-Header", OTHER_KEY).send();
    let (status, body) = answer(as_other(url.clone()).await.unwrap()).await;
    assert_eq!((status, &body["items"]), (StatusCode::OK, &json!([])), "another key sees nothing");
    let (status, _) = answer(as_other(format!("{url}/{id}")).await.unwrap()).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let audio_url = service.uploaded().await;
    let created = service.client.post(&url).header("x-service-key", OTHER_KEY);
    let (status, _) = answer(created.json(&json!({ "audio_url": audio_url })).send().await.unwrap()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "another key's upload is none");
}

#[tokio::test]
async fn paths_and_methods() {
    let (service, _data) = TestService::canned().await;
    let id = service.created(json!({})).await;
    service.ended(&id).await;
    assert_eq!(service.get("/v2/pre-recorded/").await.1["items"][0]["id"], *id);
    assert_eq!(service.get(&format!("/v2/pre-recorded/{id}/")).await.1["id"], *id);
    let unknown = [
        (Method::POST, "/"),
        (Method::GET, "/v2/cauldron?a=b"),
        (Method::PUT, "/v2/pre-recorded"),
        (Method::GET, "/v2/upload/"),
        (Method::PATCH, "/v2/pre-recorded/x"),
    ];
    for (method, path) in unknown {
        let asked = service.client.request(method.clone(), format!("{}{path}", service.base));
        let (status, body) = answer(asked.send().await.unwrap()).await;
        let bare = path.split('?').next().unwrap();
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert_eq!(body["message"], format!("Cannot {method} {bare}"));
        assert_eq!(body["path"], bare);
        assert_eq!(body["statusCode"], 404);
        assert!(body["request_id"].as_str().unwrap().starts_with("G-"));
        assert!(timestamps::parse(body["timestamp"].as_str().unwrap()).is_some());
    }
    for id in ["x", "00000000-0000-4000-8000-000000000000", "..%2f..%2fdesk", &id.to_uppercase(), &format!("{id}.json")]
    {
        let (status, body) = service.get(&format!("/v2/pre-recorded/{id}")).await;
        assert_eq!((status, &body["message"]), (StatusCode::NOT_FOUND, &json!("Not found")), "{id}");
    }
}

#[tokio::test]
async fn lists_and_filters() {
    let (service, _data) = TestService::canned().await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let id = service.created(json!({ "custom_metadata": { "n": number, "all": "yes" } })).await;
        service.ended(&id).await;
        ids.insert(0, id);
    }
    let found = async |query: &str| -> Vec<String> {
        let (status, page) = service.get(&format!("/v2/pre-recorded?{query}")).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found("").await, ids, "newest first");
    assert_eq!(found("status=done&status=error").await, ids);
    assert_eq!(found("status=queued&status=processing").await, [] as [&str; 0]);
    assert_eq!(found("status=&date=&custom_metadata=").await, ids, "empty is absent");
    assert_eq!(found("custom_metadata=%7B%22n%22%3A3%7D").await, ids[1..2]);
    assert_eq!(found("custom_metadata[n]=3&custom_metadata%5Ball%5D=yes").await, ids[1..2]);
    assert_eq!(found("custom_metadata[n]=9").await, [] as [&str; 0]);
    assert_eq!(found("limit=2&offset=1").await, ids[1..3]);
    assert_eq!(found("limit=1000").await, ids);
    assert_eq!(found("offset=9999999999").await, [] as [&str; 0]);
    assert_eq!(found("offset=99999999999999999999999").await, [] as [&str; 0], "past every end");
    let (_, third) = service.get(&format!("/v2/pre-recorded/{}", ids[2])).await;
    let at = third["created_at"].as_str().unwrap();
    assert_eq!(found(&format!("after_date={at}")).await, ids[..2]);
    assert_eq!(found(&format!("before_date={at}")).await, ids[3..]);
    assert_eq!(found("after_date=2020-01-01&before_date=2020-01-02").await, [] as [&str; 0]);
    assert!(found(&format!("date={}", &at[..10])).await.contains(&ids[2]));
    let (status, body) = service.get("/v2/pre-recorded?limit=0&offset=-1&status=ended&date=today").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(service.get("/v2/pre-recorded?limit=1001").await.0, StatusCode::BAD_REQUEST, "said, not cut");
    assert_eq!(body["validation_errors"].as_array().unwrap().len(), 4, "{body}");
}

#[tokio::test]
async fn pages_lead_to_the_next() {
    let (service, _data) = TestService::canned().await;
    for number in 0..5 {
        let id = service.created(json!({ "custom_metadata": { "a b&c": number % 2 } })).await;
        service.ended(&id).await;
    }
    let mut seen = HashSet::new();
    let mut next = Some("/v2/pre-recorded?limit=1&status=done&custom_metadata[a+b%26c]=0".to_owned());
    let mut pages = 0;
    while let Some(path) = next {
        let (_, page) = service.get(&path).await;
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].to_string()));
        next = page["next"].as_str().map(|url| url.strip_prefix(&service.base).unwrap().to_owned());
        pages += 1;
    }
    assert_eq!((pages, seen.len()), (3, 3));
}

#[tokio::test]
async fn what_is_not_done_is_said() {
    let (service, _data) = TestService::canned().await;
    let id = service
        .created(json!({
            "moderation": true,
            "audio_to_llm": true, "display_mode": true, "name_consistency": true,
            "speaker_reidentification": true, "structured_data_extraction": true, "translation": true,
            "translation_config": { "target_languages": ["fr"] }, "summarization": false,
        }))
        .await;
    let record = service.ended(&id).await;
    let result = &record["result"];
    let asked = [
        "moderation",
        "audio_to_llm",
        "display_mode",
        "name_consistency",
        "speaker_reidentification",
        "structured_data_extraction",
    ];
    for name in asked {
        let envelope = &result[name];
        assert_eq!(envelope["success"], false, "{name}");
        assert_eq!(envelope["is_empty"], true);
        assert_eq!(envelope["exec_time"], 0.0);
        assert_eq!(envelope["error"]["status_code"], 501);
        assert_eq!(envelope["error"]["exception"], "NotImplemented");
        assert_eq!(envelope.get("results"), Some(&Value::Null));
        assert_eq!(record["request_params"][name], true, "echoed");
    }
    assert_eq!(result["translation"]["success"], false);
    assert_eq!(result.get("summarization"), None, "not asked for, not there");
    assert_eq!(record["request_params"]["translation_config"]["target_languages"], json!(["fr"]));
}

#[tokio::test]
async fn an_upload_serves_several_creates_until_the_last_has_ended() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Wait);
    let service = TestService::with(options(data.path()), canned.clone()).await;
    let audio_url = service.uploaded().await;
    // The service may be known under another name and port, or have been restarted on one.
    let elsewhere = audio_url.replace(&service.base, "https://stt.example.org:9");
    let (_, first) = service.create(&json!({ "audio_url": audio_url })).await;
    let (status, second) = service.create(&json!({ "audio_url": elsewhere })).await;
    assert_eq!(status, StatusCode::CREATED);
    canned.set(Mood::Hear);
    for created in [first, second] {
        assert_eq!(service.ended(created["id"].as_str().unwrap()).await["status"], "done");
    }
    let (status, body) = eventually("the upload goes", async || {
        let answer = service.create(&json!({ "audio_url": audio_url })).await;
        (answer.0 != StatusCode::CREATED).then_some(answer)
    })
    .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body["validation_errors"][0].as_str().unwrap().contains("still kept"), "{body}");
}

#[tokio::test]
async fn failures_end_their_transcription_only() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Panic);
    let service = TestService::with(options(data.path()), canned.clone()).await;
    let id = service.created(json!({})).await;
    let record = service.ended(&id).await;
    assert_eq!((&record["status"], &record["error_code"]), (&json!("error"), &json!(500)));
    assert_eq!(record.get("result"), Some(&Value::Null));
    assert!(record["completed_at"].is_string());
    assert!(record["post_session_metadata"]["error"].is_string());
    canned.set(Mood::Fail);
    let id = service.created(json!({})).await;
    let record = service.ended(&id).await;
    assert_eq!((&record["status"], &record["error_code"]), (&json!("error"), &json!(500)));
    canned.set(Mood::Hear);
    let id = service.created(json!({})).await;
    assert_eq!(service.ended(&id).await["status"], "done");
    // Its header says what it is, and there is nothing behind it.
    let (status, body) = service.upload(speech()[..44].to_vec()).await;
    if status == StatusCode::OK {
        let (_, created) = service.create(&json!({ "audio_url": body["audio_url"] })).await;
        let record = service.ended(created["id"].as_str().unwrap()).await;
        assert_eq!((&record["status"], &record["error_code"]), (&json!("error"), &json!(422)));
    } else {
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    }
}

#[tokio::test]
async fn a_missing_recogniser_is_said_before_anything_is_accepted() {
    let data = TempDir::new().unwrap();
    let installed = Arc::new(AtomicBool::new(false));
    let look = Arc::clone(&installed);
    let lazy = Arc::new(LazyRecogniser::new(move || match look.load(Ordering::SeqCst) {
        true => Ok(Canned::new(Mood::Hear) as Arc<dyn Recogniser>),
        false => {
            Err(RecogniserError::LibraryMissing { library: "libx.so".to_owned(), reason: "no such file".to_owned() })
        }
    }));
    assert!(health(&lazy).unwrap_err()[0].contains("libpocketsphinx3"));
    let service = TestService::on(options(data.path()), Arc::clone(&lazy), Arc::new(SystemClock)).await;
    let audio_url = service.uploaded().await;
    let body = json!({ "audio_url": audio_url });
    assert_eq!(load_balancer(&service).await, (503, json!({ "status": "no_recogniser" })));
    let sent = service.ask(Method::POST, "/v2/pre-recorded").json(&body).send().await.unwrap();
    assert!(sent.headers().contains_key("retry-after"));
    let (status, refused) = answer(sent).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused["message"].as_str().unwrap().contains("install the package"), "{refused}");
    assert_eq!(service.get("/v2/pre-recorded").await.1["items"], json!([]));
    installed.store(true, Ordering::SeqCst);
    assert_eq!(load_balancer(&service).await, (200, json!({ "status": "ok" })), "no create has to come first");
    let (status, created) = service.create(&body).await;
    assert_eq!(status, StatusCode::CREATED, "no restart is needed");
    assert_eq!(service.ended(created["id"].as_str().unwrap()).await["status"], "done");
    health(&lazy).unwrap();
}

/// What was requested and had no effect is listed, and a result that is there in part is not empty.
#[tokio::test]
async fn a_result_says_what_it_lacks() {
    let data = TempDir::new().unwrap();
    let service = TestService::with(options(data.path()), Canned::new(Mood::Hear)).await;
    let id = service.created(json!({})).await;
    assert_eq!(service.ended(&id).await["result"]["metadata"].get("parameters_without_effect"), None);
    let request = json!({ "audio_enhancer": true, "context_prompt": "a talk", "diarization": true,
        "diarization_config": { "min_speakers": 2 }, "translation": true,
        "translation_config": { "target_languages": ["en", "fr"], "informal": true } });
    let result = service.ended(&service.created(request).await).await["result"].clone();
    let listed = result["metadata"]["parameters_without_effect"].as_array().unwrap();
    let named: Vec<&Value> = listed.iter().map(|one| &one["parameter"]).collect();
    assert_eq!(named, ["translation_config.informal", "context_prompt", "audio_enhancer"]);
    assert_eq!(listed[2]["reason"], "the sound is recognised as it is");
    let translation = &result["translation"];
    assert_eq!((&translation["success"], &translation["is_empty"]), (&json!(false), &json!(false)), "{translation}");
    let french = json!({ "translation": true, "translation_config": { "target_languages": ["fr"] } });
    let result = service.ended(&service.created(french).await).await["result"].clone();
    assert_eq!(result["translation"]["is_empty"], true);
}

/// What a load balancer is told, which has no key.
async fn load_balancer(service: &TestService) -> (u16, Value) {
    let url = format!("{}/health", service.base);
    let head = service.client.head(&url).send().await.unwrap();
    let sent = service.client.get(&url).send().await.unwrap();
    assert_eq!(head.status(), sent.status());
    assert_eq!(sent.headers()["cache-control"], "no-store");
    (sent.status().as_u16(), sent.json().await.unwrap())
}

#[test]
fn what_was_accepted_survives_the_service() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Wait);
    let (ids, origin) = run_and_die(async {
        let service = TestService::with(options(data.path()), canned.clone()).await;
        let mut ids = Vec::new();
        for number in 0..4 {
            // To the letter: neither the order nor a number too large for a float changes.
            let metadata = format!("{{\"z\":123456789012345678901234567890, \"a\":{number}}}");
            let audio_url = service.uploaded().await;
            let body = format!("{{\"audio_url\":\"{audio_url}\",\"custom_metadata\":{metadata}}}");
            let request = service.ask(Method::POST, "/v2/pre-recorded").header("content-type", "application/json");
            let (status, created) = answer(request.body(body).send().await.unwrap()).await;
            assert_eq!(status, StatusCode::CREATED);
            ids.push((created["id"].as_str().unwrap().to_owned(), metadata));
        }
        eventually("two are processed", async || {
            let (_, page) = service.get("/v2/pre-recorded?status=processing").await;
            (page["items"].as_array().unwrap().len() == 2).then_some(())
        })
        .await;
        (ids, service.running.origin)
    });
    run_and_die(async {
        let service = TestService::with(options(data.path()), Canned::new(Mood::Hear)).await;
        assert_eq!(service.running.origin, origin, "the same store, wherever it listens");
        for (id, metadata) in &ids {
            assert_eq!(service.ended(id).await["status"], "done");
            let raw = service.ask(Method::GET, &format!("/v2/pre-recorded/{id}")).send().await.unwrap();
            let raw = raw.text().await.unwrap();
            assert!(raw.contains(metadata), "{raw}");
        }
        let newest: Vec<String> = ids.iter().rev().map(|(id, _)| id.clone()).collect();
        let (_, page) = service.get("/v2/pre-recorded").await;
        let listed: Vec<&str> =
            page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
        assert_eq!(listed, newest);
        eventually("the audio goes", async || names(data.path(), "uploads").is_empty().then_some(())).await;
    });
    // The first service's threads still wait; they must not keep the test from ending.
    canned.set(Mood::Hear);
}

/// Runs something on a runtime that is then taken away from under it, as a killed process would be.
fn run_and_die<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

#[tokio::test]
async fn a_data_directory_belongs_to_one_process_at_a_time() {
    let (service, data) = TestService::canned().await;
    let recogniser = open_recogniser(Canned::new(Mood::Hear));
    let second = start(options(data.path()), recogniser, Arc::new(SystemClock)).await;
    let Err(error @ StartError::Store(_)) = second else { panic!("it started") };
    assert!(error.to_string().contains("in use by another process"), "{error}");
    service.running.shutdown().await;
    TestService::with(options(data.path()), Canned::new(Mood::Hear)).await;
}

/// A wall clock that stands still.
struct Stopped;

#[async_trait::async_trait]
impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp(1_700_000_000_000)
    }

    fn uptime(&self) -> Uptime {
        SystemClock.uptime()
    }

    async fn sleep(&self, span: Duration) {
        SystemClock.sleep(span).await;
    }
}

#[tokio::test]
async fn no_two_are_created_at_once() {
    let data = TempDir::new().unwrap();
    let mut moments = HashSet::new();
    for _ in 0..2 {
        let recogniser = open_recogniser(Canned::new(Mood::Hear));
        let service = TestService::on(options(data.path()), recogniser, Arc::new(Stopped)).await;
        for _ in 0..3 {
            let id = service.created(json!({})).await;
            let record = service.ended(&id).await;
            moments.insert(record["created_at"].to_string());
            assert!(record["completed_at"].as_str() >= record["created_at"].as_str());
        }
        service.running.shutdown().await;
    }
    assert_eq!(moments.len(), 6);
}

#[test]
fn the_own_key_is_made_once_and_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let data = TempDir::new().unwrap();
    let folder = data.path().join("new/service");
    let key = own_key(&folder).unwrap();
    assert_eq!(own_key(&folder).unwrap(), key);
    assert_eq!(key.reveal().len(), 64);
    assert!(!format!("{key:?}").contains(key.reveal()));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder.join("key")), mode(&folder)), (0o600, 0o700));
}
