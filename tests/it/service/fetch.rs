//! Audio that lies elsewhere: fetched within limits, and never from inside the house.

use crate::service::webhooks::started;
use crate::support::bed::Bed;
use crate::support::receiver::{Mood, Receiver};
use crate::support::test_service::{Canned, Mood as Hearing, TestService, answer, eventually, names, options, speech};
use reqwest::{Method, StatusCode};
use scribed::testing::server::fetch::ssrf_guard::AddressPolicy;
use serde_json::{Value, json};
use std::net::IpAddr;
use tempfile::TempDir;

/// A service that may go to these addresses.
async fn reaching(data: &TempDir, reach: AddressPolicy) -> TestService {
    let mut options = options(data.path());
    (options.reach, options.upload_limit) = (reach, 2_000_000);
    TestService::with(options, Canned::new(Hearing::Hear)).await
}

/// The first loopback address stands for the public internet, the others for the house.
fn first_only() -> AddressPolicy {
    let public: IpAddr = "127.0.0.1".parse().unwrap();
    AddressPolicy::from_predicate(move |address| address == public)
}

async fn created(service: &TestService, url: &str) -> Value {
    let (status, created) = service.create(&json!({ "audio_url": url })).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    service.ended(created["id"].as_str().unwrap()).await
}

#[tokio::test]
async fn a_create_fetches_its_audio() {
    let data = TempDir::new().unwrap();
    let service = reaching(&data, first_only()).await;
    let archive = Receiver::start(Mood::Body(speech().into())).await;
    let url = archive.url("/shelf/talk%201.wav?signature=s");
    let record = created(&service, &url).await;
    assert_eq!(record["status"], "done", "{record}");
    assert_eq!(record["request_params"]["audio_url"], url);
    assert_eq!(record["file"]["filename"], "talk 1.wav");
    assert_eq!(record["file"]["source"], archive.url("/shelf/talk%201.wav"), "without what may be a secret");
    assert!(record["file"]["audio_duration"].as_f64().unwrap() > 1.0);
    assert_eq!(record["result"]["metadata"]["audio_duration"], record["file"]["audio_duration"]);
    assert_eq!(archive.heard().len(), 1);
    assert!(!archive.heard()[0].headers.contains_key("x-service-key"), "the key goes nowhere");
    eventually("the audio goes", async || names(data.path(), "uploads").is_empty().then_some(())).await;
}

#[tokio::test]
async fn an_upload_by_its_address() {
    let data = TempDir::new().unwrap();
    let service = reaching(&data, first_only()).await;
    let archive = Receiver::start(Mood::Body(speech().into())).await;
    let upload = async |url: &str| {
        let body = json!({ "audio_url": url });
        answer(service.ask(Method::POST, "/v2/upload").json(&body).send().await.unwrap()).await
    };
    let (status, uploaded) = upload(&archive.url("/talk.wav?signature=s")).await;
    assert_eq!(status, StatusCode::OK, "{uploaded}");
    assert_eq!(uploaded["audio_metadata"]["filename"], "talk.wav");
    assert_eq!(uploaded["audio_metadata"]["size"], speech().len());
    assert_eq!(uploaded["audio_metadata"]["source"], archive.url("/talk.wav"), "without what may be a secret");
    let (_, sent) = service.upload(speech()).await;
    assert!(sent["audio_metadata"].get("source").is_none(), "what was sent comes from nowhere: {sent}");
    let (_, again) = upload(uploaded["audio_url"].as_str().unwrap()).await;
    assert_eq!(again, uploaded, "our own is known already");
    let own = uploaded["audio_url"].as_str().unwrap();
    let sent = service.ask(Method::GET, own.strip_prefix(&service.base).unwrap()).send().await.unwrap();
    assert_eq!(sent.headers()["content-type"], "application/octet-stream");
    assert_eq!(sent.bytes().await.unwrap(), speech());
    let theirs = service.ask_as_other(Method::GET, own.strip_prefix(&service.base).unwrap());
    assert_eq!(theirs.send().await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(created(&service, own).await["status"], "done");
    archive.set(Mood::Status(404));
    let (status, refused) = upload(&archive.url("/gone.wav")).await;
    assert_eq!((status, &refused["path"]), (StatusCode::NOT_FOUND, &json!("/v2/upload")));
}

#[tokio::test]
async fn redirects_are_followed_within_reach_only() {
    let data = TempDir::new().unwrap();
    let service = reaching(&data, first_only()).await;
    let archive = Receiver::start(Mood::Body(speech().into())).await;
    let inside = Receiver::on("127.0.0.2:0", Mood::Body(speech().into())).await;
    let door = Receiver::start(Mood::Redirect(archive.url("/talk.wav"))).await;
    assert_eq!(created(&service, &door.url("/a")).await["status"], "done");
    let port = inside.address.port();
    for to in [inside.url("/talk.wav"), format!("http://[::ffff:127.0.0.2]:{port}/"), "file:///etc/passwd".to_owned()] {
        door.set(Mood::Redirect(to.clone()));
        let record = created(&service, &door.url("/a")).await;
        let code = record["error_code"].as_u64().unwrap();
        assert_eq!((&record["status"], record.get("result")), (&json!("error"), Some(&Value::Null)));
        assert_eq!(code, if to.starts_with("http") { 403 } else { 422 }, "{record}");
        assert_eq!(record["file"], Value::Null);
    }
    assert!(inside.heard().is_empty());
    door.set(Mood::Redirect(door.url("/again")));
    assert_eq!(created(&service, &door.url("/a")).await["error_code"], 422, "a loop");
}

#[tokio::test]
async fn by_default_nothing_inside_is_reached() {
    let data = TempDir::new().unwrap();
    let service = reaching(&data, AddressPolicy::public()).await;
    let inside = Receiver::start(Mood::Body(speech().into())).await;
    let port = inside.address.port();
    for host in ["127.0.0.1", "localhost", "2130706433", "[::1]", "169.254.169.254", "10.0.0.1", "0.0.0.0"] {
        let record = created(&service, &format!("http://{host}:{port}/talk.wav")).await;
        assert_eq!((&record["status"], &record["error_code"]), (&json!("error"), &json!(403)), "{host}: {record}");
        assert!(record["post_session_metadata"]["error"].as_str().unwrap().contains("private"), "{record}");
    }
    assert!(inside.heard().is_empty());
}

#[tokio::test]
async fn what_does_not_come_or_is_no_audio_ends_the_transcription() {
    let data = TempDir::new().unwrap();
    let service = reaching(&data, AddressPolicy::unrestricted()).await;
    let archive = Receiver::start(Mood::Status(404)).await;
    let code = async || created(&service, &archive.url("/talk.wav")).await["error_code"].as_u64().unwrap();
    assert_eq!(code().await, 404);
    archive.set(Mood::Body("<html>please log in</html>".into()));
    assert_eq!(code().await, 422);
    archive.set(Mood::Body("".into()));
    assert_eq!(code().await, 422);
    archive.set(Mood::Body(vec![0; 3_000_000].into()));
    assert_eq!(code().await, 413);
    assert!(names(data.path(), "uploads").is_empty());
}

/// What was accepted while its audio was still elsewhere is fetched again and finished.
#[tokio::test]
async fn a_fetch_outlives_kill_9() {
    let archive = Receiver::start(Mood::Silent).await;
    let bed = Bed::new(
        "[serve]\nlisten = \"127.0.0.1:0\"\nkeys = [\"env:SERVE_KEY\"]\nfetch_private = true\n\
         [[source]]\nfolder = \"inbox\"\n",
    );
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let ask = |method, url: String| client.request(method, url).header("x-service-key", "a-key");
    let (running, base) = started(&bed);
    let create = ask(Method::POST, format!("{base}/v2/pre-recorded"));
    let created = create.json(&json!({ "audio_url": archive.url("/talk.wav") })).send().await.unwrap();
    let id = answer(created).await.1["id"].as_str().unwrap().to_owned();
    eventually("it is asked for", async || (!archive.heard().is_empty()).then_some(())).await;
    let read = async |base: &str| {
        answer(ask(Method::GET, format!("{base}/v2/pre-recorded/{id}")).send().await.unwrap()).await.1
    };
    let waiting = read(&base).await;
    assert_eq!((&waiting["status"], &waiting["file"]), (&json!("queued"), &Value::Null));
    running.kill();
    archive.set(Mood::Body(speech().into()));
    let (_running, base) = started(&bed);
    let record = eventually("it ends", async || {
        let record = read(&base).await;
        record["completed_at"].is_string().then_some(record)
    })
    .await;
    assert_eq!(record["status"], "done", "{record}");
    assert_eq!(record["file"]["filename"], "talk.wav");
}
