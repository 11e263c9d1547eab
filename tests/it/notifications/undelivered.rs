//! Messages that are not delivered: monitoring tells of them, and an erased job is in none of them.

use super::hearing::{Hearing, refusing};
use crate::support::bed::{Bed, Running, files, wait_until};
use crate::support::config::Config;
use crate::support::receiver::Mood;
use crate::support::stub::Stub;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

const REASON: &str = "this recording is refused";

/// A bed whose failures an address is told of.
fn bed(hearing: &Hearing) -> (Stub, Bed) {
    let stub = refusing();
    let lines = format!("[notify]\nwindow = \"1s\"\non_failed = {{ post = \"{}\" }}\n", hearing.url("/"));
    let bed = Config::of(&stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&lines).bed();
    (stub, bed)
}

/// Runs a pass with the wall clock set forward by so many minutes.
fn once_at(bed: &Bed, minutes: i64) {
    fs::write(bed.path("wall"), (minutes * 60_000).to_string()).unwrap();
    let mut command = bed.command(["once"]);
    command.env("SCRIBED_TEST_WALL", bed.path("wall"));
    let ran = Running::start(command).wait();
    assert_eq!(ran.code, 1, "{ran:?}");
}

/// What `status --check` says of notifications.
fn reasons(bed: &Bed) -> Vec<Value> {
    let checked = bed.run(["status", "--check", "--json"]).last_object();
    let all = checked["reasons"].as_array().unwrap().iter();
    all.filter(|reason| reason["kind"] == "notifications").cloned().collect()
}

#[test]
fn monitoring_warns_of_a_message_that_is_not_delivered_for_an_hour() {
    let hearing = Hearing::start(Mood::Status(500));
    for (minutes, number) in [(50, 0), (130, 1)] {
        let (_stub, bed) = bed(&hearing);
        bed.drop_in(0, "a.wav");
        once_at(&bed, -minutes);
        let told = reasons(&bed);
        assert_eq!(told.len(), number, "{minutes}: {told:?}");
        if let [reason] = &told[..] {
            let words = reason["words"].as_str().unwrap();
            assert!(words.contains("on_failed 1 (post)") && words.contains("for 2 h (1 event)"), "{words}");
            assert_eq!((&reason["level"], &reason["command"]), (&json!("warning"), &json!("scribed notify list")));
            hearing.set(Mood::Status(200));
            once_at(&bed, 0);
            assert!(reasons(&bed).is_empty(), "it is delivered");
        }
    }
}

/// The files of `notify/` that contain the reason.
fn with_reason(bed: &Bed) -> usize {
    let has = |path: &std::path::PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains(REASON));
    files(&bed.path("state/notify")).iter().filter(|path| has(path)).count()
}

fn erase(bed: &Bed) -> Value {
    let ran = bed.run(["erase", "--yes", "--json", "inbox/a.wav"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let answer = ran.last_object();
    let kinds = answer["items"].as_array().unwrap().iter().find(|item| item["kind"] == "notification");
    kinds.unwrap_or_else(|| panic!("{answer}")).clone()
}

#[test]
fn an_erased_job_waits_for_no_target_any_more() {
    for has_daemon in [false, true] {
        let hearing = Hearing::start(Mood::Status(500));
        let (_stub, bed) = bed(&hearing);
        bed.drop_in(0, "a.wav");
        let daemon = has_daemon.then(|| bed.daemon());
        match has_daemon {
            true => drop(hearing.wait_for(1)),
            false => drop(bed.once(1)),
        }
        wait_until("the failure waits", || with_reason(&bed) == 1);
        let erased = erase(&bed);
        assert_eq!((&erased["outcome"], &erased["name"]), (&json!("erased"), &json!("1 event")));
        // A daemon may have stored its own copy once more; then it reads that the job is erased.
        wait_until("nothing waits", || with_reason(&bed) == 0);
        hearing.set(Mood::Status(200));
        let before = hearing.heard().len();
        if let Some(daemon) = daemon {
            daemon.signal(Signal::TERM);
            assert_eq!(daemon.wait().code, 0);
        }
        assert_eq!(with_reason(&bed), 0);
        bed.once(0);
        assert_eq!(hearing.heard().len(), before, "there is nothing to tell");
    }
}
