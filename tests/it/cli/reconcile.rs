//! The queue compared with the service's list, in both directions; a lost queue that is rebuilt from folders and list
//! without a purchase; and deletion at the service by a person's command.

use crate::support::bed::{Bed, Running, files, set_mode, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, StubRecords, StubRequest, refusal};
use serde_json::{Value, json};
use std::fs;

fn bed(stub: &Stub) -> Bed {
    config(stub).bed()
}

fn config(stub: &Stub) -> Config {
    Config::of(stub).limits(4, 500).inbox("outputs = [\"txt\"]")
}

/// Nothing ends.
fn slow(request: &StubRequest<'_>, _: &mut StubRecords) -> Act {
    match request.endpoint {
        Endpoint::Read => Act::still_running(),
        Endpoint::Delete => Act::Say(refusal(403, "it has not ended")),
        _ => Act::Well,
    }
}

fn reconciled(bed: &Bed, more: &[&str]) -> (i32, Value) {
    let ran = bed.run(["reconcile", "--json"].iter().chain(more));
    (ran.code, ran.last_object())
}

fn bought(stub: &Stub) -> usize {
    stub.records().accepted().values().sum()
}

#[test]
fn a_queue_that_was_deleted_adopts_all_that_was_bought_and_creates_nothing() {
    const JOBS: usize = 200;
    let stub = Stub::start(slow);
    let bed = bed(&stub);
    for n in 0..JOBS {
        fs::write(bed.path(format!("inbox/{n:03}.wav")), format!("recording {n}")).unwrap();
    }
    let running = Running::start(bed.command(["once"]));
    wait_until("all are submitted", || bought(&stub) == JOBS);
    running.kill();
    fs::remove_dir_all(bed.path("state")).unwrap();

    let (code, report) = reconciled(&bed, &[]);
    assert_eq!((code, &report["ours"]), (1, &json!(JOBS)));
    assert_eq!(report["not_in_queue"].as_array().unwrap().len(), JOBS);
    stub.set(|_, _| Act::Well);
    assert_eq!(bed.once(0)["done"], JOBS);
    assert_eq!((bought(&stub), stub.records().creates.len()), (JOBS, JOBS), "not one was asked for again");
    let (code, report) = reconciled(&bed, &[]);
    assert_eq!((code, &report["known"], &report["earlier"]), (0, &json!(JOBS), &json!(0)), "{report}");
}

#[test]
fn each_side_is_told_what_it_lacks_and_doubles_go_by_order_only() {
    let stub = Stub::well();
    let bed = bed(&stub);
    for name in ["a", "b", "c"] {
        fs::write(bed.path(format!("inbox/{name}.wav")), name).unwrap();
    }
    assert_eq!(bed.once(0)["done"], 3);
    assert_eq!(reconciled(&bed, &[]).0, 0);
    stub.records().slip_in("somebody's");
    stub.records().lose("b.wav");
    stub.records().double("c.wav");
    let daemon = bed.daemon();
    let (code, report) = reconciled(&bed, &[]);
    assert_eq!((code, &report["without_token"], &report["known"]), (1, &json!(1), &json!(2)), "{report}");
    assert_eq!(report["not_on_list"][0]["path"], "inbox/b.wav");
    let double = &report["doubles"][0];
    let again = double["others"][0].as_str().unwrap().to_owned();
    assert_eq!(again, format!("{}-again", double["kept"].as_str().unwrap()));
    assert_eq!(stub.records().ids().len(), 4, "nothing is deleted unless it was asked for");
    drop(daemon);

    let (_, report) = reconciled(&bed, &["--delete-doubles"]);
    assert_eq!(report["deleted"], json!([{ "transcription_id": again, "became": "deleted" }]));
    assert!(!stub.records().ids().contains(&again) && stub.records().ids().len() == 3);
    assert_eq!(reconciled(&bed, &[]).1["doubles"], json!([]));
    let told = bed.run(["reconcile"]);
    assert!(told.stdout.contains("in the queue, but not in the list: 1"), "{told:?}");
    stub.set(|_, _| Act::Say(refusal(401, "who are you")));
    assert_eq!(reconciled_code(&bed), 3);
}

fn reconciled_code(bed: &Bed) -> i32 {
    bed.run(["reconcile", "--json"]).code
}

/// The wrong recording was sent: it is given up at once, and deleted as soon as the interface allows that.
#[test]
fn what_was_bought_for_a_cancelled_job_is_deleted_once_it_has_ended() {
    let stub = Stub::start(slow);
    let bed = bed(&stub);
    fs::write(bed.path("inbox/private.wav"), "private").unwrap();
    let daemon = Running::start(bed.command(["run", "--json"]));
    wait_until("it is submitted", || bed.jobs().get("private.wav").is_some_and(|job| job["stage"] == "submitted"));
    let cancel = ["cancel", "--json", "--delete", "inbox/private.wav"];
    let ran = bed.run(cancel);
    let told = ran.last_object();
    assert_eq!((ran.code, &told["stage"], &told["deleted"]), (1, &json!("cancelled"), &json!(false)), "{told}");
    assert!(told["words"].as_str().unwrap().contains("repeat the command later"), "{told}");
    assert_eq!(stub.records().ids().len(), 1);

    stub.set(|_, _| Act::Well);
    let ran = bed.run(cancel);
    assert_eq!((ran.code, &ran.last_object()["deleted"]), (0, &json!(true)), "{ran:?}");
    assert_eq!(stub.records().ids().len(), 0);
    drop(daemon);
    let ran = bed.run(cancel);
    assert!(ran.code == 0 && ran.stdout.contains("was already gone from the service"), "without a daemon: {ran:?}");
    assert_eq!(reconciled(&bed, &[]).0, 0, "nobody misses it");
    assert_eq!(bed.once(0)["done"], 0);
    assert_eq!((bought(&stub), &bed.jobs()["private.wav"]["stage"]), (1, &json!("cancelled")));
    // What is deleted is no purchase any more: a copy does not wait for it in vain.
    fs::write(bed.path("inbox/copy.wav"), "private").unwrap();
    assert_eq!((bed.once(0)["done"].clone(), bought(&stub)), (json!(1), 2));
}

/// What was fetched of it lies here, too.
#[test]
fn what_is_kept_of_a_deleted_transcription_goes_with_it() {
    let stub = Stub::start(slow);
    let bed = Bed::unprivileged(&config(&stub));
    fs::write(bed.path("inbox/private.wav"), "private").unwrap();
    let daemon = Running::start(bed.command(["run", "--json"]));
    let stage = || bed.jobs().get("private.wav").map(|job| job["stage"].as_str().unwrap().to_owned());
    wait_until("it is submitted", || stage().as_deref() == Some("submitted"));
    set_mode(&bed.path("inbox"), 0o555);
    stub.set(|_, _| Act::Well);
    wait_until("it cannot be written", || stage().as_deref() == Some("fetched"));
    let kept = || files(&bed.path("state/results")).len();
    assert_eq!(kept(), 1);
    let ran = bed.run(["cancel", "--delete", "inbox/private.wav"]);
    assert!(ran.code == 0 && ran.stdout.contains("and its kept result too"), "{ran:?}");
    assert_eq!((kept(), stub.records().ids().len()), (0, 0));
    set_mode(&bed.path("inbox"), 0o755);
    drop(daemon);
}

#[test]
fn what_others_share_or_have_been_given_is_not_deleted() {
    let stub = Stub::start(slow);
    let bed = bed(&stub);
    fs::write(bed.path("inbox/a.wav"), "the same").unwrap();
    fs::write(bed.path("inbox/b.wav"), "the same").unwrap();
    let daemon = Running::start(bed.command(["run", "--json"]));
    let stages = || {
        let jobs = bed.jobs();
        let mut stages: Vec<String> = jobs.values().map(|job| job["stage"].as_str().unwrap().to_owned()).collect();
        stages.sort();
        stages
    };
    wait_until("one buys, one follows", || stages() == ["following", "submitted"]);
    let owner = bed.jobs().into_iter().find(|(_, job)| job["stage"] == "submitted").unwrap().0;
    stub.set(|request, records| match request.endpoint {
        Endpoint::Delete => Act::Well,
        _ => slow(request, records),
    });
    let ran = bed.run(["cancel", "--json", "--delete", &format!("inbox/{owner}")]);
    assert_eq!((ran.code, &ran.last_object()["deleted"]), (1, &json!(false)), "{ran:?}");
    assert!(ran.last_object()["words"].as_str().unwrap().contains("uses it"), "{ran:?}");
    stub.set(|_, _| Act::Well);
    wait_until("the other one is written", || stages() == ["cancelled", "written"]);
    let other = bed.jobs().into_iter().find(|(_, job)| job["stage"] == "written").unwrap().0;
    let ran = bed.run(["cancel", "--delete", &format!("inbox/{other}")]);
    assert!(ran.code == 1 && ran.stderr.contains("is written"), "{ran:?}");
    assert_eq!(stub.records().ids().len(), 1);
    drop(daemon);
}
