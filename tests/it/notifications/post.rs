//! An address that gets signed JSON: what it gets, what happens when it does not answer, and after a crash.

use super::hearing::{Hearing, refusing};
use crate::support::bed::{Bed, Running, wait_until};
use crate::support::config::Config;
use crate::support::receiver::{Heard, Mood};
use crate::support::stub::Stub;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

fn notify(lines: &str) -> String {
    format!("[notify]\n{lines}")
}

fn bed(stub: &Stub, lines: &str) -> Bed {
    Config::of(stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&notify(lines)).bed()
}

fn waiting(bed: &Bed) -> Vec<Value> {
    let ran = bed.run(["notify", "list", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.objects()
}

fn signature(secret: &[u8], heard: &Heard) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(format!("{}.{}.", heard.header("webhook-id"), heard.header("webhook-timestamp")).as_bytes());
    mac.update(&heard.body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[test]
fn a_failed_job_is_reported_as_signed_json_once() {
    let (stub, hearing) = (refusing(), Hearing::well());
    let url = hearing.url("/hook");
    let bed = bed(&stub, &format!("on_failed = {{ post = \"{url}\", secret = \"file:secret\" }}\n"));
    std::fs::write(bed.path("secret"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    bed.drop_in(0, "talk \"1\".wav");
    bed.once(1);
    let heard = hearing.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    let (said, key) = (heard[0].json(), STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
    assert_eq!((heard[0].path.as_str(), heard[0].header("content-type")), ("/hook", "application/json"));
    assert_eq!(heard[0].header("webhook-signature"), signature(&key, &heard[0]));
    assert_eq!(said["id"], heard[0].header("webhook-id"));
    assert_eq!((&said["type"], &said["count"], &said["more"]), (&json!("failed"), &json!(1), &json!(0)));
    assert_eq!(said["title"], "scribed: talk \"1\".wav failed");
    let job = &said["jobs"][0];
    assert_eq!((&job["path"], &job["source"]), (&json!("talk \"1\".wav"), &json!("inbox")));
    assert!(job["reason"].as_str().unwrap().contains("this recording is refused"), "{said}");
    assert_eq!(said["reasons"][0]["jobs"], 1);
    // The next pass has nothing new to tell.
    bed.once(1);
    assert_eq!(hearing.heard().len(), 1);
}

/// Also what happened before the target was configured is not told.
#[test]
fn a_new_target_is_told_of_what_happens_from_then_on() {
    let (stub, hearing) = (refusing(), Hearing::well());
    let without = Config::of(&stub).inbox("hold = \"0s\"");
    let bed = without.bed();
    bed.drop_in(0, "before.wav");
    bed.once(1);
    bed.configure(&without.section(&notify(&format!("on_failed = {{ post = \"{}\" }}\n", hearing.url("/")))));
    bed.once(1);
    assert!(hearing.heard().is_empty());
    bed.drop_in(1, "after.wav");
    bed.once(1);
    let heard = hearing.heard();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].json()["jobs"][0]["path"], "after.wav");
}

#[test]
fn a_thousand_failures_become_one_message_with_their_reasons() {
    const MANY: usize = 1_000;
    let (stub, hearing) = (Stub::well(), Hearing::well());
    let lines = format!("on_failed = {{ post = \"{}\" }}\nwindow = \"1h\"\n", hearing.url("/"));
    // The template does not render for these names.
    let template = "[template.t]\ncustom_metadata = { lang = \"{{ capture.lang }}\" }\n";
    let source = "hold = \"0s\"\ntemplate = \"t\"\ncapture = '(?P<lang>[a-z]{2})_'";
    let bed = Config::of(&stub).inbox(source).section(&notify(&lines)).section(template).bed();
    for n in 0..MANY {
        std::fs::write(bed.path(format!("inbox/{n:04}.wav")), format!("no sound {n}")).unwrap();
    }
    let summary = bed.once(1);
    assert_eq!(summary["failed"], MANY, "{summary}");
    let heard = hearing.heard();
    assert_eq!(heard.len(), 1);
    let said = heard[0].json();
    assert_eq!((&said["count"], &said["more"]), (&json!(MANY), &json!(0)), "{}", said["text"]);
    let of_reasons: u64 =
        said["reasons"].as_array().unwrap().iter().map(|reason| reason["jobs"].as_u64().unwrap()).sum();
    assert_eq!(of_reasons, MANY as u64);
    assert!(said["text"].as_str().unwrap().len() < 4_000, "{}", said["text"]);
}

/// A target that hangs, one that redirects and one that cannot be reached delay neither jobs nor other targets, and what
/// they were to get waits.
#[test]
fn a_target_that_hangs_or_redirects_delays_nothing_and_loses_nothing() {
    let (stub, good, hanging) = (Stub::well(), Hearing::well(), Hearing::start(Mood::Silent));
    let elsewhere = Hearing::well();
    let redirecting = Hearing::start(Mood::Redirect(elsewhere.url("/stolen")));
    let posts = [hanging.url("/"), redirecting.url("/"), "http://127.0.0.1:9/".to_owned(), good.url("/")];
    let posts = posts.map(|url| format!("{{ post = \"{url}\" }}")).join(", ");
    let bed = bed(&stub, &format!("on_written = [{posts}]\n"));
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!((good.heard().len(), redirecting.heard().len(), elsewhere.heard().len()), (1, 1, 0));
    let lists = waiting(&bed);
    let errors: Vec<&str> = lists.iter().map(|target| target["error"].as_str().unwrap_or("delivered")).collect();
    assert!(errors[0].contains("did not answer within 10 s"), "{errors:?}");
    assert!(errors[1].contains("302") && errors[1].contains("redirect"), "{errors:?}");
    assert!(errors[2].contains("could not be reached"), "{errors:?}");
    assert_eq!(errors[3], "delivered");
    assert_eq!(lists.iter().map(|target| target["waiting"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 1, 1, 0]);
}

#[test]
fn what_a_killed_daemon_had_collected_is_sent_after_a_restart() {
    let (stub, hearing) = (refusing(), Hearing::well());
    let bed = bed(&stub, &format!("on_failed = {{ post = \"{}\" }}\nwindow = \"1h\"\n", hearing.url("/")));
    let daemon = bed.daemon();
    bed.drop_in(0, "talk.wav");
    wait_until("the failure is collected", || waiting(&bed)[0]["waiting"] == 1);
    daemon.kill();
    assert!(hearing.heard().is_empty());
    bed.once(1);
    let heard = hearing.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].json()["jobs"][0]["path"], "talk.wav");
}

/// What is sent again after a crash has the same id, so that a receiver can tell.
#[test]
fn what_a_killed_daemon_was_sending_is_sent_again_with_the_same_id() {
    let (stub, hearing) = (refusing(), Hearing::start(Mood::Silent));
    let bed = bed(&stub, &format!("on_failed = {{ post = \"{}\" }}\nwindow = \"0s\"\n", hearing.url("/")));
    let daemon = bed.daemon();
    bed.drop_in(0, "talk.wav");
    hearing.wait_for(1);
    daemon.kill();
    hearing.set(Mood::Status(204));
    let daemon = bed.daemon();
    let heard = hearing.wait_for(2);
    assert_eq!(heard[0].header("webhook-id"), heard[1].header("webhook-id"));
    wait_until("the delivery is noted", || waiting(&bed)[0]["delivered"] == 1);
    stop(daemon);
    assert_eq!(hearing.heard().len(), 2);
}

#[test]
fn a_changed_configuration_notifies_the_new_target() {
    let (stub, old, new) = (refusing(), Hearing::well(), Hearing::well());
    let with = |hearing: &Hearing| {
        let lines = format!("on_failed = {{ post = \"{}\" }}\nwindow = \"0s\"\n", hearing.url("/"));
        Config::of(&stub).inbox("hold = \"0s\"").section(&notify(&lines))
    };
    let bed = with(&old).bed();
    let daemon = bed.daemon();
    bed.drop_in(0, "one.wav");
    old.wait_for(1);
    bed.configure(&with(&new));
    assert_eq!(bed.run(["reload"]).code, 0);
    bed.drop_in(1, "two.wav");
    assert_eq!(new.wait_for(1)[0].json()["jobs"][0]["path"], "two.wav");
    stop(daemon);
    assert_eq!(old.heard().len(), 1);
}

fn stop(daemon: Running) {
    daemon.signal(rustix::process::Signal::TERM);
    let ended = daemon.wait();
    assert_eq!(ended.code, 0, "{ended:?}");
}

/// As on a full disk: what cannot be stored is not sent, no job waits for it, and it is sent once it can be stored.
#[test]
fn what_cannot_be_stored_is_told_later_and_delays_no_job() {
    let (stub, hearing) = (refusing(), Hearing::well());
    let bed = bed(&stub, &format!("on_failed = {{ post = \"{}\" }}\n", hearing.url("/")));
    bed.once(0);
    let queue = std::fs::read_dir(bed.path("state/notify")).unwrap().next().unwrap().unwrap().path();
    let in_the_way = queue.with_extension("scribed-tmp");
    std::fs::create_dir(&in_the_way).unwrap();
    bed.drop_in(0, "talk.wav");
    let ran = bed.run(["once", "--json"]);
    assert_eq!((ran.code, &ran.last_object()["failed"]), (1, &json!(1)), "{ran:?}");
    assert!(ran.stderr.contains("cannot store a notification"), "{}", ran.stderr);
    assert!(hearing.heard().is_empty());
    std::fs::remove_dir(&in_the_way).unwrap();
    bed.once(1);
    assert_eq!(hearing.wait_for(1)[0].json()["jobs"][0]["path"], "talk.wav");
}
