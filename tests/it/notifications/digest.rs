//! The digest: what it has, as text, HTML and JSON, and when it is sent.

use super::hearing::{Hearing, refusing};
use crate::support::bed::{Bed, Running};
use crate::support::config::Config;
use crate::support::scripted::json;
use crate::support::stub::{Act, Endpoint, Stub};
use serde_json::{Value, json as object};
use std::fs;

#[test]
fn the_digest_has_what_was_done_what_failed_and_what_waits() {
    let stub = Stub::start(|request, _| match (request.endpoint, request.file) {
        (Endpoint::Create, "bad<b>.wav") => Act::Say(json(422, r#"{"message":"<script>refused</script>"}"#)),
        _ => Act::Well,
    });
    let budget = "[budget]\nmonth = \"10h\"\n";
    let bed = Config::of(&stub).inbox("hold = \"0s\"").service("price_per_hour = 36.0").section(budget).bed();
    bed.drop_in(0, "good.wav");
    bed.drop_in(1, "bad<b>.wav");
    bed.once(1);
    let digest = bed.run(["notify", "digest", "--json"]).last_object();
    let figures = ["written", "failed", "unhandled_failures"].map(|key| digest[key].as_u64().unwrap());
    assert_eq!(figures, [1, 1, 1], "{digest}");
    assert_eq!(digest["audio_seconds"], 1.5);
    let failure = &digest["failures"][0];
    assert!(failure["reason"].as_str().unwrap().contains("refused"), "{digest}");
    assert_eq!(failure["examples"][0]["name"], "inbox/bad<b>.wav");
    assert_eq!(digest["cost"][0]["bought"], 1);
    assert_eq!(digest["budgets"][0]["period"], "month");
    let text = bed.run(["notify", "digest"]).stdout;
    for part in ["scribed: 1 written, 1 failed", "Needs attention", "Failed", "bad<b>.wav", "Bought", "Budgets"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let html = bed.run(["notify", "digest", "--html"]).stdout;
    assert!(html.contains("bad&lt;b&gt;.wav") && !html.contains("<script>") && !html.contains("bad<b>"), "{html}");
    // It loads nothing from elsewhere.
    assert!(!html.contains("http") && !html.contains("src=") && !html.contains("url("), "{html}");
}

/// Runs a pass with the wall clock set forward by so many hours.
fn once_later(bed: &Bed, hours: i64) {
    fs::write(bed.path("wall"), (hours * 3_600_000).to_string()).unwrap();
    let mut command = bed.command(["once", "--json"]);
    command.env("SCRIBED_TEST_WALL", bed.path("wall"));
    let ran = Running::start(command).wait();
    assert!([0, 1].contains(&ran.code), "{ran:?}");
}

#[test]
fn a_digest_is_sent_at_its_time_and_has_the_time_since_the_last_one() {
    let (stub, hearing) = (refusing(), Hearing::well());
    let lines = format!("[notify]\non_digest = {{ post = \"{}\" }}\ndigest_at = \"0 0 * * *\"\n", hearing.url("/"));
    let bed = Config::of(&stub).inbox("hold = \"0s\"").section(&lines).bed();
    bed.drop_in(0, "one.wav");
    once_later(&bed, 0);
    assert!(hearing.heard().is_empty(), "it is not midnight yet");
    once_later(&bed, 25);
    let heard = hearing.heard();
    assert_eq!(heard.len(), 1);
    let digest = heard[0].json()["digest"].clone();
    assert_eq!((&digest["failed"], &heard[0].json()["type"]), (&object!(1), &object!("digest")), "{digest}");
    once_later(&bed, 26);
    assert_eq!(hearing.heard().len(), 1);
    once_later(&bed, 50);
    let second: Value = hearing.heard()[1].json()["digest"].clone();
    assert_eq!((&second["failed"], &second["from"]), (&object!(0), &digest["to"]), "{second}");
}
