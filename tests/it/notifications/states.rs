//! Outages, budgets, idle times and the dead man's switch.

use super::hearing::Hearing;
use crate::support::bed::Bed;
use crate::support::config::Config;
use crate::support::receiver::Mood;
use crate::support::scripted::json;
use crate::support::stub::{Act, Stub};

fn bed(stub: &Stub, hearing: &Hearing, event: &str, more: &str) -> Bed {
    let lines = format!("[notify]\n{event} = {{ post = \"{}\" }}\n{more}", hearing.url("/"));
    Config::of(stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&lines).bed()
}

fn texts(hearing: &Hearing) -> Vec<String> {
    hearing.heard().iter().map(|heard| heard.json()["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_outage_is_told_and_its_end() {
    let (stub, hearing) = (Stub::start(|_, _| Act::Say(json(503, "{}"))), Hearing::well());
    let bed = bed(&stub, &hearing, "on_outage", "");
    bed.drop_in(0, "talk.wav");
    let out = || bed.run(["once", "--patience", "1s", "--json"]);
    assert_eq!(out().code, 3);
    assert_eq!(out().code, 3);
    let told = texts(&hearing);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("service `default`"), "{told:?}");
    stub.set(|_, _| Act::Well);
    assert_eq!(bed.run(["once", "--json"]).code, 0);
    assert_eq!(texts(&hearing)[1..], ["over: service default"]);
}

#[test]
fn a_missing_folder_is_told_as_an_outage() {
    let (stub, hearing) = (Stub::well(), Hearing::well());
    let bed = bed(&stub, &hearing, "on_outage", "");
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    std::fs::rename(bed.path("inbox"), bed.path("away")).unwrap();
    bed.once(1);
    let told = texts(&hearing);
    assert!(told.len() == 1 && told[0].contains("source inbox"), "{told:?}");
    std::fs::rename(bed.path("away"), bed.path("inbox")).unwrap();
    bed.once(0);
    assert_eq!(texts(&hearing)[1..], ["over: source inbox"]);
}

#[test]
fn a_used_up_budget_is_told_once() {
    let (stub, hearing) = (Stub::well(), Hearing::well());
    let more = "[budget]\ntotal = \"1500ms\"\n";
    let bed = bed(&stub, &hearing, "on_budget", more);
    bed.drop_in(0, "one.wav");
    bed.once(0);
    bed.once(0);
    let told = texts(&hearing);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("budget.total") && told[0].contains("is used up"), "{told:?}");
}

#[test]
fn the_end_of_all_work_is_told_once() {
    let (stub, hearing) = (Stub::well(), Hearing::well());
    let bed = bed(&stub, &hearing, "on_idle", "");
    bed.drop_in(0, "one.wav");
    bed.drop_in(1, "two.wav");
    bed.once(0);
    bed.once(0);
    assert_eq!(texts(&hearing), ["all work is done: 2 written, 0 failed"]);
}

#[test]
fn a_dead_mans_switch_is_called_after_each_pass_and_by_a_daemon() {
    let (stub, hearing) = (Stub::well(), Hearing::well());
    let lines = format!("[notify]\nping = \"{}\"\nping_every = \"1s\"\n", hearing.url("/uuid"));
    let bed = Config::of(&stub).inbox("").section(&lines).bed();
    bed.once(0);
    let heard = hearing.heard();
    assert_eq!((heard.len(), heard[0].path.as_str(), heard[0].method.as_str()), (1, "/uuid", "GET"));
    let daemon = bed.daemon();
    hearing.wait_for(3);
    // A receiver that is away changes nothing else.
    hearing.set(Mood::Status(500));
    bed.drop_in(0, "one.wav");
    crate::support::bed::wait_until("the job is written", || bed.path("inbox/one.en.txt").exists());
    daemon.kill();
}
