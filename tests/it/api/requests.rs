//! What the API answers, and what its commands change.

use super::served::{Served, token, web, write_tokens};
use crate::support::bed::{Bed, Running, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::fs;

fn wait_for(served: &Served, name: &str, stage: &str) {
    wait_until(stage, || served.bed.jobs().get(name).is_some_and(|row| row["stage"] == stage));
}

#[test]
fn what_the_api_says_is_what_the_command_line_says() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    served.bed.drop_in(0, "talk.wav");
    wait_for(&served, "talk.wav", "written");
    let (status, page) = served.get("/api/v1/jobs", "vera");
    assert_eq!((status, &page["next"]), (StatusCode::OK, &Value::Null), "{page}");
    assert_eq!(page["jobs"][0], served.bed.jobs()["talk.wav"]);
    let id = page["jobs"][0]["id"].as_u64().unwrap();
    let (_, detail) = served.get(&format!("/api/v1/jobs/{id}"), "vera");
    let stages: Vec<&str> =
        detail["history"].as_array().unwrap().iter().filter_map(|line| line["stage"].as_str()).collect();
    assert!(stages.contains(&"submitted") && stages.last() == Some(&"written"), "{detail}");
    let (_, status) = served.get("/api/v1/status", "vera");
    let shown = served.bed.run(["status", "--json"]).last_object();
    assert_eq!((&status["total"], &status["jobs"]), (&shown["total"], &shown["jobs"]));
    let path = served.bed.path("inbox/talk.wav");
    let (_, explained) = served.get(&format!("/api/v1/explain?path={}", path.display()), "vera");
    assert_eq!((&explained["role"], &explained["job"]["id"]), (&json!("job"), &json!(id)), "{explained}");
    let (_, cost) = served.get("/api/v1/cost?by=source", "vera");
    assert_eq!((&cost["lines"][0]["key"], &cost["lines"][0]["bought"]), (&json!("inbox"), &json!(1)), "{cost}");
    let (status, refused) = served.get("/api/v1/jobs/999", "vera");
    assert!(status == StatusCode::NOT_FOUND && refused["detail"].as_str().unwrap().contains("no job 999"), "{refused}");
    for wrong in ["/api/v1/jobs?stag=written", "/api/v1/jobs?stage=x", "/api/v1/jobs?limit=0", "/api/v1/explain?path=a"]
    {
        assert_eq!(served.get(wrong, "vera").0, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
    }
}

#[test]
fn pages_follow_each_other_without_gap_or_repetition() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    for n in 0..5 {
        served.bed.drop_in(n, format!("talk{n}.wav"));
    }
    wait_until("all are written", || {
        let jobs = served.bed.jobs();
        jobs.len() == 5 && jobs.values().all(|job| job["stage"] == "written")
    });
    let (mut ids, mut after) = (Vec::new(), String::new());
    loop {
        let (_, page) = served.get(&format!("/api/v1/jobs?limit=2&stage=written,failed{after}"), "vera");
        let jobs = page["jobs"].as_array().unwrap();
        assert!(jobs.len() <= 2);
        ids.extend(jobs.iter().map(|job| job["id"].as_u64().unwrap()));
        let Some(next) = page["next"].as_u64() else { break };
        after = format!("&after={next}");
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4, 5]);
    assert_eq!(served.get("/api/v1/jobs?stage=failed", "vera").1["jobs"], json!([]));
}

/// Job 1 is written, and has the output `txt`.
fn outputs_are_verified_rendered_and_accepted(served: &Served) {
    let output = served.bed.path("inbox/talk.en.txt");
    let (_, verified) = served.post("/api/v1/jobs/1/verify", "vera", &json!({}));
    assert_eq!(verified["result"]["outputs"][0]["state"], "unchanged", "{verified}");
    fs::remove_file(&output).unwrap();
    let (status, refused) = served.post("/api/v1/jobs/1/verify", "vera", &json!({ "repair": true }));
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    let (_, repaired) = served.post("/api/v1/jobs/1/verify", "edda", &json!({ "repair": true }));
    assert_eq!(repaired["result"]["outputs"][0]["state"], "restored", "{repaired}");
    let (_, dry) = served.post("/api/v1/jobs/1/render", "vera", &json!({ "dry_run": true }));
    assert_eq!((&dry["job"]["id"], &dry["result"]["files"]), (&json!(1), &json!([])), "{dry}");
    let text = fs::read_to_string(&output).unwrap();
    fs::write(&output, "Another text.\n").unwrap();
    let (status, wrong) = served.post("/api/v1/accept", "edda", &json!({ "path": "talk.en.txt" }));
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
    let (_, accepted) = served.post("/api/v1/accept", "edda", &json!({ "path": output }));
    assert_eq!(accepted["result"]["instead_of_purchase"], false, "{accepted}");
    let (_, undone) = served.post("/api/v1/accept", "edda", &json!({ "path": output, "undo": true }));
    assert_eq!(undone["job"]["id"], 1, "{undone}");
    fs::write(&output, text).unwrap();
}

#[test]
fn commands_change_jobs_and_the_history_says_who_gave_them() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Create => Act::Say(refusal(422, "no such language")),
        _ => Act::Well,
    });
    let served = Served::start(&stub, "");
    served.bed.drop_in(0, "talk.wav");
    wait_for(&served, "talk.wav", "failed");
    let (status, done) = served.post("/api/v1/jobs/1/acknowledge", "edda", &json!({}));
    assert!(status == StatusCode::OK && done["job"]["acknowledged"].is_string(), "{done}");
    let (status, refused) = served.post("/api/v1/jobs/1/retry", "edda", &json!({}));
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("needs the role operator"), "{refused}");
    stub.set(|_, _| Act::Well);
    let (status, retried) = served.post("/api/v1/jobs/1/retry", "otto", &json!({}));
    assert_eq!((status, &retried["result"]["cost"]), (StatusCode::OK, &json!("nothing")), "{retried}");
    wait_for(&served, "talk.wav", "written");
    let (_, detail) = served.get("/api/v1/jobs/1", "vera");
    let words: Vec<&str> =
        detail["history"].as_array().unwrap().iter().filter_map(|line| line["words"].as_str()).collect();
    for line in ["edda gave the command `acknowledge` over HTTP", "otto gave the command `retry` over HTTP"] {
        assert!(words.contains(&line), "{line} is not among {words:?}");
    }
    outputs_are_verified_rendered_and_accepted(&served);
    let (_, dry) = served.post("/api/v1/jobs/1/erase", "otto", &json!({}));
    assert_eq!(dry["result"]["dry_run"], true);
    assert!(served.bed.path("inbox/talk.en.txt").exists());
    let (_, erased) = served.post("/api/v1/jobs/1/erase", "otto", &json!({ "yes": true }));
    assert_eq!(erased["job"]["stage"], "skipped", "{erased}");
    assert!(!served.bed.path("inbox/talk.en.txt").exists());

    let (_, paused) = served.post("/api/v1/pauses", "otto", &json!({ "seconds": 60 }));
    assert_eq!(paused["paused"], true);
    let resumed = served.send(served.request(Method::DELETE, "/api/v1/pauses").bearer_auth(token("otto")));
    assert_eq!(resumed.json()["paused"], false);
    let (status, wrong) = served.post("/api/v1/jobs/1/retry", "otto", &json!({ "pay": true }));
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
}

#[test]
fn steps_are_told_as_they_happen_and_the_stream_ends_with_the_daemon() {
    let stub = Stub::well();
    let mut served = Served::start(&stub, "");
    let request = served.request(Method::GET, "/api/v1/events").bearer_auth(token("vera"));
    let response = served.wait_for(request.send()).unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.bytes_stream();
    served.bed.drop_in(0, "talk.wav");
    let mut told = String::new();
    while !told.contains("\"stage\":\"written\"") {
        told += &String::from_utf8_lossy(&served.wait_for(stream.next()).unwrap().unwrap());
    }
    assert!(told.contains("event: step\n") && told.contains("\"job\":1"), "{told}");
    served.stop();
    while served.wait_for(stream.next()).is_some_and(|rest| rest.is_ok()) {}
}

#[test]
fn metrics_have_what_the_queue_has_and_no_path() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    served.bed.drop_in(0, "secret-name.wav");
    wait_for(&served, "secret-name.wav", "written");
    let answered = served.send(served.request(Method::GET, "/metrics").bearer_auth(token("vera")));
    assert!(answered.headers["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    let text = answered.text;
    for line in [
        "scribed_jobs{source=\"inbox\",stage=\"written\"} 1",
        "scribed_jobs_ended_total{outcome=\"written\"} 1",
        "scribed_service_up{service=\"default\"} 1",
        "scribed_source_available{source=\"inbox\"} 1",
        "scribed_paused{source=\"\"} 0",
        "# TYPE scribed_audio_written_seconds counter",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line || found.starts_with(&format!("{line}."))), "{line}:\n{text}");
    }
    assert!(text.contains("process_cpu_seconds_total ") && !text.contains("secret-name"), "{text}");
}

#[test]
fn without_a_daemon_the_queue_is_served_and_commands_still_reach_it() {
    let stub = Stub::well();
    let bed: Bed = Config::of(&stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&web("")).bed();
    write_tokens(&bed);
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    let running = Running::start(bed.command(["web", "--json"]));
    let served = Served::over(bed, running);
    assert_eq!(served.get("/api/v1/jobs", "vera").1["jobs"][0]["stage"], "written");
    assert_eq!(served.bed.jobs().len(), 1);
    fs::remove_file(served.bed.path("inbox/talk.wav")).unwrap();
    assert_eq!(served.post("/api/v1/jobs/1/forget", "otto", &json!({})).0, StatusCode::OK);
    let (status, refused) = served.post("/api/v1/reload", "otto", &json!({}));
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    let second = served.bed.run(["web"]);
    assert!(second.code == 1 || second.code == 3, "{second:?}");
}
