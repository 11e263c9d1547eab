//! Work during which the service is killed again and again is set aside; whoever stops or kills the service for
//! other reasons condemns nothing; and what is stopped stops.

use crate::support::bed::{SERVICE_KEY, Service, ffmpeg, speech};
use crate::support::receiver::{Mood, Receiver};
use crate::support::store_rules::{OWNER, store_rules, take_for_recognition, take_to_fetch};
use crate::support::test_service::{answer, eventually, names};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use rustix::process::Signal;
use scribed::testing::clock::SystemClock;
use scribed::testing::domain::names::Timestamp;
use scribed::testing::server::storage::kill_count::TranscriptionWork;
use scribed::testing::server::storage::transcriptions::{
    Acceptance, CreateAudio, CreateOrder, StoreRules, TakenTranscription, TranscriptionEnd, TranscriptionStore,
};
use scribed::testing::server::storage::uploads::UploadLimits;
use scribed::testing::wire::result::File;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use uuid::Uuid;

fn open(root: &Path) -> Arc<TranscriptionStore> {
    let rules = StoreRules { limits: UploadLimits { upload: 100, disk: 1_000 }, ..store_rules() };
    Arc::new(TranscriptionStore::open(root, rules, Arc::new(SystemClock)).unwrap())
}

async fn accepted(store: &Arc<TranscriptionStore>) -> Uuid {
    let mut incoming = store.upload_store.begin(OWNER, 0).unwrap();
    incoming.write(b"sound").await.unwrap();
    incoming.finish().await.unwrap();
    let upload = Uuid::new_v4();
    let file = File { id: Some(upload.to_string()), ..File::default() };
    store.upload_store.store(incoming, Timestamp(0), file).unwrap();
    create(store, CreateAudio::Upload(upload)).await
}

async fn create(store: &Arc<TranscriptionStore>, audio: CreateAudio) -> Uuid {
    let params = RawValue::from_string("{}".to_owned()).unwrap();
    match store.accept(CreateOrder { owner: OWNER, audio, params, metadata: None, callback: None }, ()).await.unwrap() {
        Acceptance::Accepted(id) => id,
        other => panic!("{other:?}"),
    }
}

/// As if the process were killed while it works on these.
fn killed(store: Arc<TranscriptionStore>, work: &[(&TakenTranscription, TranscriptionWork)]) {
    for (taken, work) in work {
        std::mem::forget(store.begin(taken, *work).unwrap());
    }
    drop(store);
}

fn done(store: &Arc<TranscriptionStore>, taken: &TakenTranscription) {
    let underway = store.begin(taken, TranscriptionWork::Recognition).unwrap();
    store.end(taken, TranscriptionEnd { at: store.end_time(taken), failure: None }, Some("{}")).unwrap();
    underway.complete();
}

#[tokio::test]
async fn after_a_kill_what_was_in_progress_runs_alone_and_nothing_else_is_blamed() {
    let root = TempDir::new().unwrap();
    let store = open(root.path());
    let ids = [accepted(&store).await, accepted(&store).await, accepted(&store).await];
    let [one, two] = [take_for_recognition(&store).unwrap(), take_for_recognition(&store).unwrap()];
    killed(store, &[(&one, TranscriptionWork::Recognition), (&two, TranscriptionWork::Recognition)]);

    let store = open(root.path());
    let taken = take_for_recognition(&store).unwrap();
    assert_eq!(taken.id, ids[0]);
    assert!(take_for_recognition(&store).is_none(), "alone");
    killed(store, &[(&taken, TranscriptionWork::Recognition)]);

    // The one that was not in progress this time goes first: it has the fewer kills.
    let store = open(root.path());
    let taken = take_for_recognition(&store).unwrap();
    assert_eq!(taken.id, ids[1]);
    done(&store, &taken);
    // Killed once more the first one would be set aside: it waits, and keeps nobody from working.
    let third = take_for_recognition(&store).unwrap();
    assert_eq!(third.id, ids[2]);
    assert!(take_for_recognition(&store).is_none());
    store.allow_last_attempts();
    assert!(take_for_recognition(&store).is_none(), "not beside the third");
    done(&store, &third);
    let taken = take_for_recognition(&store).unwrap();
    assert_eq!(taken.id, ids[0]);
    killed(store, &[(&taken, TranscriptionWork::Recognition)]);

    let store = open(root.path());
    let record = store.read(ids[0], &OWNER).unwrap().unwrap();
    let failure = record.head.ended.unwrap().failure.unwrap();
    assert_eq!((record.status.as_str(), failure.code), ("error", 422));
    assert!(failure.message.contains("killed 3 times while it transcribed"), "{}", failure.message);
    assert!(take_for_recognition(&store).is_none() && names(root.path(), "started").is_empty());
    assert_eq!(store.upload_store.bytes(), 5, "its audio is kept, and no other");
    drop(store);
    let store = open(root.path());
    assert_eq!(store.upload_store.bytes(), 5, "also after the next start");
    store.delete(ids[0], &OWNER).unwrap();
    assert_eq!(store.upload_store.bytes(), 0);
}

#[tokio::test]
async fn whoever_kills_the_service_many_times_in_a_row_condemns_nothing() {
    let root = TempDir::new().unwrap();
    let store = open(root.path());
    let ids = [
        accepted(&store).await,
        accepted(&store).await,
        create(&store, CreateAudio::Elsewhere("http://x/".into())).await,
    ];
    drop(store);
    for _ in 0..20 {
        let store = open(root.path());
        let heard: Vec<TakenTranscription> = std::iter::from_fn(|| take_for_recognition(&store)).collect();
        let fetched: Vec<TakenTranscription> = std::iter::from_fn(|| take_to_fetch(&store)).collect();
        let heard = heard.iter().map(|taken| (taken, TranscriptionWork::Recognition));
        let work: Vec<_> = heard.chain(fetched.iter().map(|taken| (taken, TranscriptionWork::Fetch))).collect();
        killed(store, &work);
    }
    let store = open(root.path());
    assert!(ids.iter().all(|id| store.status_and_upload(*id, &OWNER).unwrap().0.as_str() == "queued"));
    store.allow_last_attempts();
    for id in &ids[..2] {
        let taken = take_for_recognition(&store).unwrap();
        assert_eq!(taken.id, *id);
        assert!(take_to_fetch(&store).is_none());
        done(&store, &taken);
    }
    let taken = take_to_fetch(&store).unwrap();
    // It did no harm: it is like any other again.
    store.requeue(&taken, scribed::testing::server::storage::index::QueueKind::ToBeFetched);
    let other = accepted(&store).await;
    assert_eq!(take_for_recognition(&store).unwrap().id, other);
}

/// The service, and how it is asked.
struct Asked {
    service: Service,
    client: Client,
}

impl Asked {
    fn new(service: Service) -> Self {
        Self { service, client: Client::builder().no_proxy().tls_certs_only([]).build().unwrap() }
    }

    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://127.0.0.1:{}{path}", self.service.port);
        self.client.request(method, url).header("x-service-key", SERVICE_KEY)
    }

    async fn created(&self, name: &str, bytes: Vec<u8>, mut params: Value) -> String {
        // It may have been started just now.
        eventually("it listens", async || self.ask(Method::GET, "/").send().await.ok()).await;
        let form = Form::new().part("audio", Part::bytes(bytes).file_name(name.to_owned()));
        let (status, said) = answer(self.ask(Method::POST, "/v2/upload").multipart(form).send().await.unwrap()).await;
        assert_eq!(status, StatusCode::OK, "{said}");
        params["audio_url"] = said["audio_url"].clone();
        let (_, said) = answer(self.ask(Method::POST, "/v2/pre-recorded").json(&params).send().await.unwrap()).await;
        said["id"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
    }

    async fn status(&self, id: &str, wanted: &[&str]) -> Value {
        eventually("its status is there", async || {
            let sent = self.ask(Method::GET, &format!("/v2/pre-recorded/{id}")).send().await.ok()?;
            let (_, record) = answer(sent).await;
            wanted.contains(&record["status"].as_str()?).then_some(record)
        })
        .await
    }
}

#[tokio::test]
async fn a_recording_that_kills_the_service_is_set_aside_and_told() {
    let receiver = Receiver::start(Mood::Status(200)).await;
    let mut asked = Asked::new(Service::calling());
    asked.service.kill();
    asked.service.revive_to_die_at("end-result");
    let id = asked.created("poison.wav", speech(0), json!({ "callback_url": receiver.url("/end") })).await;
    assert_eq!(asked.service.end().code, -9);
    for _ in 0..2 {
        asked.service.revive_to_die_at("end-result");
        assert_eq!(asked.service.end().code, -9);
    }
    asked.service.revive();
    let record = asked.status(&id, &["error"]).await;
    assert_eq!(record["error_code"], 422, "{record}");
    let told = record["post_session_metadata"]["error"].as_str().unwrap();
    assert!(told.contains("killed 3 times"), "{told}");
    eventually("the callback is told", async || {
        receiver.heard().iter().any(|heard| heard.json()["event"] == "transcription.error").then_some(())
    })
    .await;
    let page = asked.ask(Method::GET, "/").send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Set aside") && page.contains("poison.wav") && page.contains(&id), "{page}");
    let kept = asked.ask(Method::GET, &format!("/v2/pre-recorded/{id}/file")).send().await.unwrap();
    assert_eq!(kept.bytes().await.unwrap(), speech(0), "whoever looks into it has the audio");
    let good = asked.created("good.wav", speech(1), json!({})).await;
    asked.status(&good, &["done"]).await;
    let deleted = asked.ask(Method::DELETE, &format!("/v2/pre-recorded/{id}")).send().await.unwrap();
    assert_eq!(deleted.status(), StatusCode::ACCEPTED);
    let audio = record["file"]["id"].as_str().unwrap();
    let left = names(&asked.service.data(), "uploads");
    assert!(left.len() == 2 && !left.iter().any(|name| name.starts_with(audio)), "only the good one's: {left:?}");
    asked.service.running().signal(Signal::TERM);
    let ran = asked.service.end();
    assert!(
        ran.stderr.contains(&id) && ran.stderr.contains("set aside") && ran.stderr.contains("poison.wav"),
        "{ran:?}"
    );
}

/// An hour of speech in a form that only ffmpeg decodes.
fn long_recording() -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let (wav, long) = (folder.path().join("in.wav"), folder.path().join("long.m4a"));
    fs::write(&wav, speech(0)).unwrap();
    let looped = ["-stream_loop", "-1", "-i", wav.to_str().unwrap(), "-t", "3600", "-c:a", "aac", "-b:a", "24k"];
    ffmpeg(looped, &long);
    fs::read(long).unwrap()
}

/// Programs that have a file of this folder among their arguments.
fn children(folder: &Path) -> usize {
    let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path().join("cmdline"));
    let folder = folder.to_str().unwrap();
    entries.filter(|path| fs::read(path).is_ok_and(|line| String::from_utf8_lossy(&line).contains(folder))).count()
}

#[tokio::test]
async fn a_stop_in_the_middle_of_a_long_recording_is_prompt_and_no_kill() {
    let mut asked = Asked::new(Service::start());
    let id = asked.created("long.m4a", long_recording(), json!({})).await;
    let uploads = asked.service.data().join("uploads");
    for _ in 0..2 {
        asked.status(&id, &["processing"]).await;
        eventually("ffmpeg is at work", async || (children(&uploads) > 0).then_some(())).await;
        assert_eq!(names(&asked.service.data(), "started"), [format!("{id}.json")]);
        let refused = asked.ask(Method::DELETE, &format!("/v2/pre-recorded/{id}")).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        let begun = Instant::now();
        asked.service.running().signal(Signal::TERM);
        let ran = asked.service.end();
        println!("it stopped after {:?}", begun.elapsed());
        assert_eq!(ran.code, 0, "{ran:?}");
        // The recording takes minutes.
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        assert_eq!(children(&uploads), 0, "no ffmpeg is left");
        assert_eq!(names(&asked.service.data(), "started"), Vec::<String>::new(), "a stop is no kill");
        asked.service.revive();
    }
    asked.status(&id, &["queued", "processing"]).await;
}

#[tokio::test]
async fn audio_whose_fetching_kills_the_service_is_set_aside() {
    let mut asked = Asked::new(Service::calling());
    asked.service.kill();
    asked.service.revive_to_die_at("fetching");
    eventually("it listens", async || asked.ask(Method::GET, "/").send().await.ok()).await;
    let params = json!({ "audio_url": "http://127.0.0.1:1/a.wav" });
    // It may die before it has answered.
    let _ = asked.ask(Method::POST, "/v2/pre-recorded").json(&params).send().await;
    assert_eq!(asked.service.end().code, -9);
    for _ in 0..2 {
        asked.service.revive_to_die_at("fetching");
        assert_eq!(asked.service.end().code, -9);
    }
    asked.service.revive();
    // The first one may go out on a connection to the process that was killed.
    let page = eventually("it answers", async || asked.ask(Method::GET, "/v2/pre-recorded").send().await.ok()).await;
    let (_, page) = answer(page).await;
    let told = page["items"][0]["post_session_metadata"]["error"].as_str().unwrap();
    assert!(told.contains("killed 3 times while it fetched the audio"), "{page}");
}

#[tokio::test]
async fn a_call_during_which_the_service_is_killed_counts_as_one_that_failed() {
    let receiver = Receiver::start(Mood::Status(200)).await;
    let mut asked = Asked::new(Service::calling());
    asked.service.kill();
    asked.service.revive_to_die_at("telling");
    let id = asked.created("good.wav", speech(0), json!({ "callback_url": receiver.url("/end") })).await;
    assert_eq!(asked.service.end().code, -9);
    asked.service.revive();
    let counted = || {
        let head = fs::read(asked.service.data().join(format!("transcriptions/{id}.json"))).unwrap();
        let head: Value = serde_json::from_slice(&head).unwrap();
        (head["calls"][0]["failed"].as_u64(), head["calls"][0]["due"].is_number())
    };
    assert_eq!(counted(), (Some(1), true), "and it is made again later");
    eventually("it is told", async || (receiver.heard().len() == 1).then_some(())).await;
    eventually("that is known", async || (!counted().1).then_some(())).await;
    let noted = || names(&asked.service.data(), "started");
    eventually("nothing is noted any more", async || noted().is_empty().then_some(())).await;
}
