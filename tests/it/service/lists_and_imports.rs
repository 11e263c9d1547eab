//! Pages of lists that do not change while they are read, imported live transcriptions, deletion and limits: the
//! embedded service over HTTP.

use crate::support::bed::{Bed, Running};
use crate::support::test_service::{Canned, Mood, TestService, answer, eventually, options, speech};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

async fn done(service: &TestService, params: Value) -> String {
    let id = service.created(params).await;
    service.ended(&id).await;
    id
}

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_walk_along_next_is_not_moved_by_what_comes_in() {
    let (service, _data) = TestService::canned().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.insert(0, done(&service, json!({ "custom_metadata": { "a": { "b": "c d" }, "z": 1 } })).await);
    }
    let mut seen = Vec::new();
    let mut path = "/v2/transcription/?limit=2&custom_metadata[a][b]=c%20d&kind=pre-recorded".to_owned();
    loop {
        let (status, page) = service.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        let current = page["current"].as_str().unwrap().strip_prefix(&service.base).unwrap();
        assert!(current.starts_with("/v2/transcription/?") && current.contains("kind=pre-recorded"), "{current}");
        assert_eq!(ids(&service.get(current).await.1), ids(&page));
        seen.extend(ids(&page));
        done(&service, json!({ "custom_metadata": { "a": { "b": "c d" } } })).await;
        match page["next"].as_str() {
            Some(next) => path = next.strip_prefix(&service.base).unwrap().to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, made);
    assert_eq!(
        service.get("/v2/transcription?kind=dead&limit=0").await.1["validation_errors"].as_array().unwrap().len(),
        2
    );
}

#[tokio::test]
async fn the_older_paths_lead_to_the_same() {
    let (service, _data) = TestService::canned().await;
    let audio_url = service.uploaded().await;
    let body = json!({ "audio_url": audio_url });
    let created = service.ask(Method::POST, "/v2/transcription/").json(&body).send().await.unwrap();
    let (status, created) = answer(created).await;
    assert_eq!(status, StatusCode::CREATED);
    let id = created["id"].as_str().unwrap();
    assert_eq!(created["result_url"], format!("{}/v2/transcription/{id}", service.base));
    let record = service.ended(id).await;
    assert_eq!(service.get(&format!("/v2/transcription/{id}/")).await.1, record);
    let (_, page) = service.get("/v2/transcription").await;
    assert_eq!(page["items"], json!([record]));
    assert!(page["first"].as_str().unwrap().starts_with(&format!("{}/v2/transcription?", service.base)));
}

#[tokio::test]
async fn what_has_ended_can_be_deleted() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Wait);
    let service = TestService::with(options(data.path()), canned.clone()).await;
    let id = service.created(json!({})).await;
    let path = format!("/v2/pre-recorded/{id}");
    let delete = async |path: &str| service.ask(Method::DELETE, path).send().await.unwrap();
    let audio = service.ask(Method::GET, &format!("{path}/file")).send().await.unwrap();
    assert_eq!((audio.status(), audio.content_length()), (StatusCode::OK, Some(speech().len() as u64)));
    assert_eq!(audio.bytes().await.unwrap(), speech());
    let (status, refused) = answer(delete(&path).await).await;
    assert_eq!((status, &refused["statusCode"]), (StatusCode::FORBIDDEN, &json!(403)));
    canned.set(Mood::Hear);
    service.ended(&id).await;
    eventually("the audio goes", async || {
        let (status, body) = service.get(&format!("{path}/file")).await;
        (status == StatusCode::NOT_FOUND && body["message"].as_str().unwrap().contains("not kept")).then_some(())
    })
    .await;
    let theirs = service.ask_as_other(Method::DELETE, &path).send().await.unwrap();
    assert_eq!(theirs.status(), StatusCode::NOT_FOUND);
    assert_eq!(service.get(&path).await.0, StatusCode::OK);
    let deleted = delete(&format!("{path}/")).await;
    assert_eq!((deleted.status(), deleted.content_length()), (StatusCode::ACCEPTED, Some(0)));
    assert_eq!(delete(&path).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(service.get(&path).await.0, StatusCode::NOT_FOUND);
    assert_eq!(service.get("/v2/pre-recorded").await.1["items"], json!([]));
    let without = service.client.delete(format!("{}{path}", service.base)).send().await.unwrap();
    assert_eq!(without.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn past_the_queue_it_is_429_for_that_key() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Wait);
    let mut options = options(data.path());
    (options.running, options.queue) = (1, 1);
    let service = TestService::with(options, canned.clone()).await;
    let ids = [service.created(json!({})).await, service.created(json!({})).await];
    let body = json!({ "audio_url": service.uploaded().await });
    let sent = service.ask(Method::POST, "/v2/pre-recorded").json(&body).send().await.unwrap();
    assert_eq!(sent.headers()["retry-after"], "30");
    let (status, refused) = answer(sent).await;
    assert_eq!((status, &refused["statusCode"]), (StatusCode::TOO_MANY_REQUESTS, &json!(429)));
    let running = async || ids_of(&service, "processing").await;
    eventually("one runs", async || (running().await == [ids[0].clone()]).then_some(())).await;
    assert_eq!(ids_of(&service, "queued").await, [ids[1].clone()], "two could, one may");
    canned.set(Mood::Hear);
    service.ended(&ids[1]).await;
    assert_eq!(service.create(&body).await.0, StatusCode::CREATED, "the upload was not lost by it");
}

async fn ids_of(service: &TestService, status: &str) -> Vec<String> {
    ids(&service.get(&format!("/v2/pre-recorded?status={status}")).await.1)
}

/// Through the real binary, beside the running service.
#[tokio::test]
async fn live_transcriptions_are_imported_whole_or_not_at_all() {
    let bed = Bed::new("[serve]\nlisten = \"127.0.0.1:0\"\n[[source]]\nfolder = \"inbox\"\n");
    let running = Running::start(bed.command(["serve", "--json"]));
    let line: Value = serde_json::from_str(&running.first_line()).unwrap();
    let key = fs::read_to_string(bed.path("service/key")).unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let get = async |path: &str| {
        let url = format!("http://{}{path}", line["listening"].as_str().unwrap());
        answer(client.get(url).header("x-service-key", &key).send().await.unwrap()).await
    };
    let record = |n: u32, status: &str| {
        json!({ "id": format!("live-{n}"), "request_id": "G-1", "version": 2, "kind": "live", "status": status,
            "created_at": format!("2026-11-0{n}T10:00:00.000Z"), "completed_at": "2026-11-09T10:00:00.000Z",
            "custom_metadata": { "n": n }, "error_code": null, "file": null,
            "request_params": { "encoding": "wav/pcm", "sample_rate": 16000, "messages_config": { "receive_errors": true } },
            "result": { "metadata": { "audio_duration": 1.50 }, "messages": [] } })
    };
    let import = |lines: &[String]| {
        fs::write(bed.path("live.jsonl"), lines.join("\n")).unwrap();
        bed.run(["serve", "import-live", "live.jsonl", "--json"])
    };
    let first: Vec<String> = [1, 2, 3].map(|n| record(n, "done").to_string()).into();
    let wrong = import(&[first[0].clone(), "nonsense".to_owned(), String::new(), record(0, "ended").to_string()]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("line 2: ") && wrong.stderr.contains("line 4: status must"), "{wrong:?}");
    assert!(wrong.stderr.contains("line 4: created_at must"), "all of them: {wrong:?}");
    assert_eq!(get("/v2/live").await.1["items"], json!([]), "nothing of it");

    assert_eq!(import(&first).last_object(), json!({ "new": 3, "changed": 0, "unchanged": 0 }));
    assert_eq!(import(&first).last_object(), json!({ "new": 0, "changed": 0, "unchanged": 3 }));
    let (status, page) = get("/v2/live/?limit=2").await;
    assert_eq!((status, ids(&page)), (StatusCode::OK, vec!["live-3".to_owned(), "live-2".to_owned()]));
    assert_eq!(page["items"][0], record(3, "done"));
    let next = page["next"].as_str().unwrap().split_once("/v2/").unwrap().1.to_owned();
    assert_eq!(ids(&get(&format!("/v2/{next}")).await.1), ["live-1"]);
    assert_eq!(get("/v2/live/live-2").await.1, record(2, "done"));
    assert_eq!(get("/v2/transcription/live-2/").await.1["id"], "live-2");
    assert_eq!(get("/v2/pre-recorded/live-2").await.0, StatusCode::NOT_FOUND);
    assert_eq!(get("/v2/pre-recorded").await.1["items"], json!([]));
    assert_eq!(ids(&get("/v2/transcription?custom_metadata[n]=1").await.1), ["live-1"]);
    let changed = import(&[record(2, "error").to_string(), record(2, "error").to_string()]);
    assert_eq!(changed.last_object(), json!({ "new": 0, "changed": 1, "unchanged": 0 }));
    assert_eq!(ids(&get("/v2/live?status=error&date=2026-11-02").await.1), ["live-2"]);
    assert_eq!(ids(&get("/v2/live").await.1).len(), 3);
    drop(running);
    let running = Running::start(bed.command(["serve", "--json"]));
    let line: Value = serde_json::from_str(&running.first_line()).unwrap();
    let url = format!("http://{}/v2/live", line["listening"].as_str().unwrap());
    let (_, page) = answer(client.get(url).header("x-service-key", &key).send().await.unwrap()).await;
    assert_eq!(ids(&page).len(), 3, "after a restart, too");
}

/// A record of a live transcription with so many bytes in its result.
fn live_of(id: &str, bytes: usize) -> String {
    json!({ "id": id, "request_id": "G-1", "version": 2, "kind": "live", "status": "done",
        "created_at": "2026-11-01T10:00:00.000Z", "completed_at": "2026-11-01T11:00:00.000Z", "custom_metadata": null,
        "error_code": null, "file": null, "request_params": { "encoding": "wav/pcm", "sample_rate": 16000 },
        "result": { "metadata": { "audio_duration": 1.50 }, "messages": ["x".repeat(bytes)] } })
    .to_string()
}

#[tokio::test]
async fn imports_count_on_the_disk_and_what_does_not_fit_is_refused() {
    let limits = "disk = \"20kB\"\nupload_limit = \"10kB\"";
    let bed = Bed::new(&format!("[serve]\nlisten = \"127.0.0.1:0\"\n{limits}\n[[source]]\nfolder = \"inbox\"\n"));
    let running = Running::start(bed.command(["serve", "--json"]));
    let line: Value = serde_json::from_str(&running.first_line()).unwrap();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let page = async || {
        let url = format!("http://{}/", line["listening"].as_str().unwrap());
        client.get(url).send().await.unwrap().text().await.unwrap()
    };
    assert!(page().await.contains("<strong>0 B</strong> of 20 kB"));
    let import = |records: &[String]| {
        fs::write(bed.path("live.jsonl"), records.join("\n")).unwrap();
        bed.run(["serve", "import-live", "live.jsonl", "--json"])
    };
    let too_much = import(&[live_of("a", 5_000), live_of("b", 13_000)]);
    assert_eq!(too_much.code, 1, "{too_much:?}");
    for words in ["nothing was imported", "of the 20000 bytes", "raise `disk`"] {
        assert!(too_much.stderr.contains(words), "{too_much:?}");
    }
    assert!(page().await.contains("<strong>0 B</strong> of 20 kB"));
    assert_eq!(import(&[live_of("a", 10_000)]).last_object()["new"], 1);
    assert!(page().await.contains("<strong>10 kB</strong> of 20 kB"));
    assert_eq!(import(&[live_of("b", 10_000)]).code, 1, "what is kept counts");
    assert_eq!(import(&[live_of("a", 10_000)]).last_object()["unchanged"], 1, "what is known takes no room");
    assert_eq!(bed.temporaries(), [] as [std::path::PathBuf; 0]);
    drop(running);
    let running = Running::start(bed.command(["serve", "--json"]));
    let line: Value = serde_json::from_str(&running.first_line()).unwrap();
    let again = client.get(format!("http://{}/", line["listening"].as_str().unwrap())).send().await.unwrap();
    assert!(again.text().await.unwrap().contains(">10 kB</strong>"), "after a restart, too");
}

#[tokio::test]
async fn what_a_killed_import_left_goes_unless_one_is_running() {
    let (service, data) = TestService::canned().await;
    let left = data.path().join("live/.tmpAbCdEf");
    fs::write(&left, "half a li").unwrap();
    service.running.shutdown().await;
    let importing = fs::File::options().write(true).open(data.path().join("live/lock")).unwrap();
    importing.try_lock().unwrap();
    let service = TestService::with(options(data.path()), Canned::new(Mood::Hear)).await;
    assert!(left.exists(), "somebody may be writing it");
    service.running.shutdown().await;
    drop(importing);
    let _service = TestService::with(options(data.path()), Canned::new(Mood::Hear)).await;
    assert!(!left.exists());
}
