//! Chat services, as their public documentation has it: `scribed notify test` sends a sample to each.

use super::hearing::Hearing;
use crate::support::config::Config;
use crate::support::receiver::Mood;
use crate::support::stub::Stub;
use serde_json::json;
use std::fs;

#[test]
fn each_service_gets_its_own_form() {
    let (stub, hearing) = (Stub::well(), Hearing::well());
    let lines = format!(
        "[notify]\non_failed = [\n  {{ ntfy = \"{}\", token = \"file:ntfy\" }},\n  {{ slack = \"file:slack\" }},\n  \
         {{ discord = \"file:discord\" }},\n  {{ matrix = {{ homeserver = \"{}\", room = \"!a:example.org\", \
         token = \"file:matrix\" }} }},\n]\n",
        hearing.url("/tapes"),
        hearing.url("")
    );
    let bed = Config::of(&stub).inbox("").section(&lines).bed();
    let [slack, discord] = ["/slack/T0/B0", "/api/webhooks/1/x"].map(|path| hearing.url(path));
    for (name, secret) in [("ntfy", "tk_1"), ("matrix", "syt_1"), ("slack", &slack), ("discord", &discord)] {
        fs::write(bed.path(name), secret).unwrap();
    }
    let ran = bed.run(["notify", "test", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.objects().iter().all(|target| target["delivered"] == true), "{ran:?}");
    let heard = hearing.heard();
    let of =
        |begin: &str| heard.iter().find(|heard| heard.path.starts_with(begin)).unwrap_or_else(|| panic!("{heard:?}"));
    let title = "scribed: sample.mp4 failed";
    let ntfy = heard.iter().find(|heard| heard.path == "/").unwrap();
    assert_eq!((&ntfy.json()["topic"], &ntfy.json()["title"]), (&json!("tapes"), &json!(title)));
    assert_eq!((ntfy.method.as_str(), ntfy.header("authorization")), ("POST", "Bearer tk_1"));
    let text = of("/slack/T0/B0").json()["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with(title), "{text}");
    let discord = of("/api/webhooks/1/x").json();
    assert!(discord["content"].as_str().unwrap().starts_with(title));
    assert_eq!(discord["allowed_mentions"], json!({ "parse": [] }));
    let matrix = of("/_matrix/client/v3/rooms/!a:example.org/send/m.room.message/msg_");
    assert_eq!((matrix.method.as_str(), matrix.header("authorization")), ("PUT", "Bearer syt_1"));
    assert_eq!(matrix.json()["msgtype"], "m.notice");
}

#[test]
fn a_test_that_is_refused_says_so_and_keeps_secrets() {
    let (stub, hearing) = (Stub::well(), Hearing::start(Mood::Status(403)));
    let lines = "[notify]\non_failed = { slack = \"file:slack\" }\non_written = { post = \"http://127.0.0.1:9/\" }\n";
    let bed = Config::of(&stub).inbox("").section(lines).bed();
    fs::write(bed.path("slack"), hearing.url("/services/hunter2")).unwrap();
    let ran = bed.run(["notify", "test", "failed"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("on_failed 1 (slack): not delivered: it answered 403"), "{}", ran.stdout);
    assert!(!format!("{ran:?}").contains("hunter2"));
    let none = bed.run(["notify", "test", "budget"]);
    assert_eq!((none.code, none.stderr.contains("`on_budget`")), (2, true), "{none:?}");
}
