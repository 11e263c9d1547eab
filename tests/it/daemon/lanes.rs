//! The order of jobs: live before backlog, with slots kept for live ones, and `scribed bump` before all others.

use crate::support::bed::{Bed, Running, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub};
use serde_json::json;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn bed(stub: &Stub, limits: (usize, usize), inbox: &str, other: &str) -> Bed {
    let bed = config(stub, limits, inbox, other).bed();
    fs::create_dir(bed.path("other")).unwrap();
    bed
}

fn config(stub: &Stub, (uploads, running): (usize, usize), inbox: &str, other: &str) -> Config {
    let txt = |more| format!("outputs = [\"txt\"]\n{more}");
    Config::of(stub).limits(uploads, running).inbox(&txt(inbox)).folder("other", &txt(other))
}

/// As many recordings as one likes, each of its own content.
fn put(bed: &Bed, n: usize, place: &str) {
    let mut sound = crate::support::bed::speech_piece(n % 8);
    sound.extend(std::iter::repeat_n(0_u8, 2 * (n + 1)));
    fs::write(bed.path(place), sound).unwrap();
}

/// Transcriptions of files named `old…` end when they are told to.
fn slow() -> (Stub, Arc<AtomicBool>) {
    let ended = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&ended);
    let stub = Stub::start(move |request, _| match request.endpoint {
        Endpoint::Read if request.file.starts_with("old") && !over.load(Ordering::SeqCst) => Act::still_running(),
        _ => Act::Well,
    });
    (stub, ended)
}

fn at(bed: &Bed, stage: &str) -> usize {
    bed.jobs().values().filter(|job| job["stage"] == stage).count()
}

#[test]
fn what_stands_beside_a_recording_says_how_urgent_it_is() {
    let stub = Stub::well();
    let bed = bed(&stub, (1, 1), "", "");
    (0..6).for_each(|n| put(&bed, n, &format!("inbox/old-{n}.wav")));
    fs::write(bed.path("inbox/old-4.toml"), "priority = 10\n").unwrap();
    assert_eq!(bed.run(["pause"]).code, 0);
    assert_eq!(bed.once(1)["waiting"], 6);
    let told = bed.run(["explain", "inbox/old-4.wav"]).stdout;
    assert!(told.contains("oldest first, priority 10"), "{told}");
    assert_eq!(bed.run(["resume"]).code, 0);
    assert_eq!(bed.once(0)["done"], 6);
    assert_eq!(stub.records().creates[0].file, "old-4.wav");
}

#[test]
fn a_backlog_leaves_room_for_a_clip() {
    let (stub, ended) = slow();
    let bed = bed(&stub, (2, 4), "lane = \"backlog\"", "");
    (0..12).for_each(|n| put(&bed, n, &format!("inbox/old-{n}.wav")));
    let daemon = Running::start(bed.command(["run"]));
    wait_until("the backlog has what it may have", || at(&bed, "submitted") == 3 && at(&bed, "uploaded") == 3);
    put(&bed, 20, "other/clip.wav");
    wait_until("the clip is written", || bed.jobs().get("clip.wav").is_some_and(|job| job["stage"] == "written"));
    assert_eq!((at(&bed, "submitted"), at(&bed, "written")), (3, 1), "the backlog has no more than it may have");
    let lanes = || bed.run(["status", "--json"]).last_object()["lanes"].clone();
    let empty = json!({ "lane": "live", "waiting": 0, "in_flight": 0 });
    assert_eq!(lanes(), json!([empty, { "lane": "backlog", "waiting": 9, "in_flight": 3 }]));
    let told = bed.run(["status"]).stdout;
    assert!(told.contains("lane backlog: 9 waiting, 3 in flight"), "{told}");
    let told = bed.run(["explain", "inbox/old-9.wav"]).stdout;
    assert!(told.contains("backlog, oldest first"), "{told}");
    ended.store(true, Ordering::SeqCst);
    wait_until("all is written", || at(&bed, "written") == 13);
    drop(daemon);
}

/// What rests uploaded, because its window is shut, is in nobody's way.
#[test]
fn a_closed_window_holds_up_no_other_source() {
    let (stub, ended) = slow();
    let limits = (2, 2);
    let bed = bed(&stub, limits, "", "");
    (0..6).for_each(|n| put(&bed, n, &format!("inbox/old-{n}.wav")));
    let daemon = Running::start(bed.command(["run"]));
    wait_until("some wait uploaded", || at(&bed, "submitted") == 2 && at(&bed, "uploaded") == 2);
    drop(daemon);
    ended.store(true, Ordering::SeqCst);
    let never = "submit = { from = \"0 0 0 1 1 * 2020\", for = \"1h\" }";
    bed.configure(&config(&stub, limits, never, ""));
    put(&bed, 7, "other/clip.wav");
    let summary = bed.once(1);
    assert_eq!((&summary["done"], &summary["waiting_for"]), (&json!(3), &json!({ "window": 4 })));
    assert_eq!(bed.jobs()["clip.wav"]["stage"], "written");
}

#[test]
fn what_a_person_bumps_comes_first_with_a_daemon_and_without() {
    let stub = Stub::well();
    let bed = bed(&stub, (1, 1), "lane = \"backlog\"", "priority = 10");
    let names = ["inbox/a.wav", "inbox/b.wav", "inbox/c.wav", "other/d.wav"];
    names.iter().enumerate().for_each(|(n, name)| put(&bed, n, name));
    assert_eq!(bed.run(["pause"]).code, 0);
    assert_eq!(bed.once(1)["waiting_for"], json!({ "pause": 4 }));
    let bumped = bed.run(["bump", "inbox/c.wav", "inbox/b.wav", "--json"]);
    assert_eq!((bumped.code, bumped.objects().len()), (0, 2), "{bumped:?}");
    let unknown = bed.run(["bump", "inbox/nothing.wav"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert_eq!(bed.run(["resume"]).code, 0);
    assert_eq!(bed.once(0)["done"], 4);
    let created: Vec<String> = stub.records().creates.iter().map(|create| create.file.clone()).collect();
    assert_eq!(created, ["c.wav", "b.wav", "d.wav", "a.wav"]);
    let over = bed.run(["bump", "inbox/c.wav"]);
    assert!(over.code == 1 && over.stderr.contains("has ended"), "{over:?}");
    assert_eq!(bed.run(["pause"]).code, 0);
    put(&bed, 4, "inbox/e.wav");
    let daemon = bed.daemon();
    wait_until("it is known", || bed.jobs().contains_key("e.wav"));
    assert_eq!(bed.run(["bump", "inbox/e.wav"]).code, 0);
    assert!(bed.run(["explain", "inbox/e.wav"]).stdout.contains("before all others"));
    drop(daemon);
}
