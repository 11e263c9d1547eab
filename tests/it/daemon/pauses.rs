//! `scribed pause`, `resume` and `drain`: of everything, of one source, for a time, and until nothing is at the
//! service.

use crate::support::bed::{Bed, Ran, Running, wait_until};
use crate::support::config::Config;
use crate::support::stub::Stub;
use serde_json::json;
use std::fs;
use std::sync::atomic::Ordering;

fn two_sources(stub: &Stub) -> Bed {
    let config = Config::of(stub).limits(2, 20).inbox("outputs = [\"txt\"]");
    let bed = config.folder("other", "outputs = [\"txt\"]").bed();
    fs::create_dir(bed.path("other")).unwrap();
    bed
}

fn put(bed: &Bed, n: usize, place: &str) {
    fs::rename(bed.drop_in(n, "put.wav"), bed.path(place)).unwrap();
}

#[test]
fn one_source_rests_and_the_others_go_on() {
    let stub = Stub::well();
    let bed = two_sources(&stub);
    put(&bed, 0, "inbox/a.wav");
    put(&bed, 1, "other/b.wav");
    let said = bed.run(["pause", "--source", "other", "--json"]).last_object();
    assert_eq!((&said["paused"], &said["pauses"][0]["source"]), (&json!(false), &json!("other")));
    let summary = bed.once(1);
    assert_eq!((&summary["done"], &summary["waiting_for"]), (&json!(1), &json!({ "pause": 1 })));
    let told = bed.run(["show", "other/b.wav"]).stdout;
    assert!(told.contains("nothing during the pause"), "{told}");
    let unknown = bed.run(["pause", "--source", "othr"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("the sources are inbox, other"), "{unknown:?}");
    // What everything is ordered to do, one source cannot be freed from.
    assert_eq!(bed.run(["pause"]).code, 0);
    assert_eq!(bed.run(["resume", "--source", "other"]).code, 0);
    assert_eq!(bed.once(1)["waiting_for"], json!({ "pause": 1 }));
    assert_eq!(bed.run(["resume", "--json"]).last_object(), json!({ "paused": false, "pauses": [] }));
    assert_eq!(bed.once(0)["done"], 1);
}

/// The daemon goes on by itself when the time is over, and after a restart no sooner.
#[test]
fn a_pause_for_a_time_ends_by_itself() {
    let stub = Stub::well();
    let bed = two_sources(&stub);
    assert_eq!(bed.run(["pause", "--for", "1h"]).code, 0);
    let running = bed.daemon();
    put(&bed, 0, "inbox/a.wav");
    wait_until("it rests", || {
        let status = bed.run(["status", "--json"]).last_object();
        status["waiting_for"] == json!({ "pause": 1 }) && status["pauses"][0]["until"].is_string()
    });
    drop(running);
    let running = bed.daemon();
    assert_eq!(bed.run(["pause", "--for", "700ms"]).code, 0, "in the place of the longer one");
    wait_until("it goes on", || bed.jobs().values().all(|job| job["stage"] == "written"));
    drop(running);
    let nonsense = bed.run(["pause", "--for", "soon"]);
    assert_eq!(nonsense.code, 2);
}

#[test]
fn draining_sees_to_the_end_what_was_submitted_and_begins_nothing() {
    let (stub, ended) = Stub::slow();
    let bed = two_sources(&stub);
    put(&bed, 0, "inbox/a.wav");
    let daemon = bed.daemon();
    wait_until("it is at the service", || bed.jobs().values().any(|job| job["stage"] == "submitted"));
    let mut draining = Running::start(bed.command(["drain", "--json"]));
    wait_until("it rests", || bed.run(["status", "--json"]).last_object()["paused"] == true);
    put(&bed, 1, "inbox/b.wav");
    wait_until("the new one waits", || bed.jobs().len() == 2);
    assert!(!draining.has_ended(), "the first one has not ended");
    ended.store(true, Ordering::SeqCst);
    let drained = draining.wait();
    assert_eq!((drained.code, drained.last_object()), (0, json!({ "drained": true, "left": 0, "asks": 0 })));
    let jobs = bed.jobs();
    assert_eq!(jobs["a.wav"]["stage"], "written");
    assert_ne!(jobs["b.wav"]["stage"], "written");
    assert_eq!(stub.records().accepted().len(), 1);
    drop(daemon);
}

#[test]
fn without_a_daemon_draining_does_the_work_itself() {
    let (stub, ended) = Stub::slow();
    let bed = two_sources(&stub);
    put(&bed, 0, "inbox/a.wav");
    let mut pass = Running::start(bed.command(["once"]));
    wait_until("it is at the service", || !stub.records().accepted().is_empty());
    assert!(!pass.has_ended());
    pass.kill();
    put(&bed, 1, "inbox/b.wav");
    let gave_up = bed.run(["drain", "--patience", "300ms", "--json"]);
    assert_eq!((gave_up.code, &gave_up.last_object()["drained"]), (1, &json!(false)), "{gave_up:?}");
    ended.store(true, Ordering::SeqCst);
    let drained = bed.run(["drain", "--json"]);
    assert_eq!((drained.code, &drained.last_object()["drained"]), (0, &json!(true)), "{drained:?}");
    assert_eq!(bed.jobs().len(), 1, "nothing is looked for");
    assert_eq!(bed.run(["resume"]).code, 0);
    assert_eq!(bed.once(0)["done"], 1);
}

/// Three recordings at a slow service, and a daemon that is killed at this point.
fn killed_at(place: &str, bed: &Bed) -> Running {
    (0..3).for_each(|n| put(bed, n, &format!("inbox/{n}.wav")));
    let mut command = bed.command(["run", "--json"]);
    command.env("SCRIBED_CRASH_AT", place);
    Running::start(command)
}

/// What is drained is drained, the rest is bought afterwards, and each of the three recordings once.
fn assert_drained_and_the_rest_is_bought_once(drained: &Ran, bed: &Bed, stub: &Stub, place: &str) {
    assert_eq!((drained.code, &drained.last_object()["drained"]), (0, &json!(true)), "{place}: {drained:?}");
    assert_eq!(bed.run(["resume"]).code, 0, "{place}");
    bed.once(0);
    let jobs = bed.jobs();
    assert!(jobs.len() == 3 && jobs.values().all(|job| job["stage"] == "written"), "{place}: {jobs:?}");
    let accepted = stub.records();
    let accepted = accepted.accepted();
    assert!(accepted.len() == 3 && accepted.values().all(|times| *times == 1), "{place}: {accepted:?}");
}

#[test]
fn draining_after_and_beside_a_daemon_that_is_killed_ends_what_was_submitted_and_buys_nothing_twice() {
    let before = ["create-answered:2", "committing-submitted:1", "committed-submitted:2"];
    let beside = ["committing-fetched:1", "committed-fetched:2", "output-named:1", "committing-written:2"];
    std::thread::scope(|scope| {
        for place in before.into_iter().chain(beside) {
            scope.spawn(move || {
                let (stub, ended) = Stub::slow();
                let bed = two_sources(&stub);
                let daemon = killed_at(place, &bed);
                if before.contains(&place) {
                    assert_eq!(daemon.wait().code, -9, "{place}");
                    ended.store(true, Ordering::SeqCst);
                    // The drain is killed, too.
                    let mut command = bed.command(["drain", "--json"]);
                    command.env("SCRIBED_CRASH_AT", "committing-fetched:1");
                    assert_eq!(Running::start(command).wait().code, -9, "{place}");
                    let drained = bed.run(["drain", "--json"]);
                    return assert_drained_and_the_rest_is_bought_once(&drained, &bed, &stub, place);
                }
                let is_submitted = |job: &serde_json::Value| job["stage"] == "submitted";
                wait_until("all are at the service", || {
                    bed.jobs().values().filter(|job| is_submitted(job)).count() == 3
                });
                let drain = Running::start(bed.command(["drain", "--json"]));
                wait_until("it rests", || bed.run(["status", "--json"]).last_object()["paused"] == true);
                ended.store(true, Ordering::SeqCst);
                assert_eq!(daemon.wait().code, -9, "{place}");
                assert_drained_and_the_rest_is_bought_once(&drain.wait(), &bed, &stub, place);
            });
        }
    });
}

#[test]
fn draining_beside_a_daemon_that_is_killed_and_started_again_waits_for_whichever_process_has_the_queue() {
    let (stub, ended) = Stub::slow();
    let bed = two_sources(&stub);
    let mut daemon = killed_at("never", &bed);
    wait_until("all are at the service", || stub.records().accepted().len() == 3);
    let drain = Running::start(bed.command(["drain", "--json"]));
    wait_until("it rests", || bed.run(["status", "--json"]).last_object()["paused"] == true);
    for _ in 0..6 {
        daemon.kill();
        daemon = Running::start(bed.command(["run", "--json"]));
        wait_until("it runs, or has left the queue to the drain", || daemon.has_spoken() || daemon.has_ended());
        if daemon.has_ended() {
            break;
        }
    }
    ended.store(true, Ordering::SeqCst);
    let drained = drain.wait();
    if !daemon.has_ended() {
        daemon.signal(rustix::process::Signal::TERM);
    }
    let last = daemon.wait();
    assert!([0, 4].contains(&last.code), "it ran, or the drain had the queue: {last:?}");
    assert_drained_and_the_rest_is_bought_once(&drained, &bed, &stub, "killed again and again");
}
