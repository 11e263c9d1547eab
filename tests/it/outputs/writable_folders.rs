//! Nothing is bought that could not be written: the folder of the outputs is tried before the upload, and before the
//! create. And `existing = "skip"` holds for copies of known content.

use crate::support::bed::{Bed, Running, SmallDisk, eventually};
use crate::support::config::Config;
use crate::support::manifests;
use crate::support::s3::{Fate, Front, S3};
use crate::support::stub::{Endpoint, Stub};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn config(stub: &Stub) -> Config {
    Config::of(stub).limits(4, 8)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn asked(stub: &Stub, endpoint: Endpoint) -> usize {
    stub.book().moments(endpoint).len()
}

fn assert_nothing_was_sent(stub: &Stub) {
    assert_eq!((asked(stub, Endpoint::Upload), asked(stub, Endpoint::Create)), (0, 0));
}

fn reason(bed: &Bed, name: &str) -> String {
    bed.jobs()[name]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn a_folder_that_may_not_be_written_is_said_once_and_holds_up_nothing_else() {
    let stub = Stub::well();
    let bed = Bed::unprivileged(&config(&stub).inbox(""));
    let upload_store = bed.path("inbox/shelf");
    fs::create_dir(&upload_store).unwrap();
    for n in 0..100 {
        fs::write(upload_store.join(format!("{n}.wav")), format!("shelf {n}")).unwrap();
    }
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    set_mode(&upload_store, 0o555);
    let daemon = Running::start(bed.command(["run"]));
    let waits = || bed.jobs().values().filter(|job| job["fault"]["kind"] == "unwritable").count();
    eventually("the others wait", || waits() == 100);
    eventually("the writable one is written", || bed.jobs()["talk.wav"]["stage"] == "written");
    let words = reason(&bed, "shelf/7.wav");
    assert!(words.contains("inbox/shelf") && words.contains("permission"), "{words}");
    assert_eq!((asked(&stub, Endpoint::Upload), asked(&stub, Endpoint::Create)), (1, 1));
    set_mode(&upload_store, 0o777);
    eventually("all are written", || bed.jobs().values().all(|job| job["stage"] == "written"));
    daemon.signal(Signal::TERM);
    let ran = daemon.wait();
    assert_eq!(ran.stderr.matches("cannot write outputs to a folder; ").count(), 1, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("scribed can write outputs to the folder again").count(), 1, "{}", ran.stderr);
}

#[test]
fn a_full_or_read_only_disk_is_found_before_the_upload() {
    let stub = Stub::well();
    let bed = config(&stub).inbox("place = \"out\"").bed();
    fs::create_dir(bed.path("out")).unwrap();
    let disk = SmallDisk::mount(&bed.path("out"), 1_024);
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    let filler = disk.fill();
    assert_eq!(bed.once(1)["waiting_for"], json!({"disk": 1}));
    assert_nothing_was_sent(&stub);
    assert!(reason(&bed, "talk.wav").contains("space"), "{}", reason(&bed, "talk.wav"));
    fs::remove_file(filler).unwrap();
    let remount = |how: &str| {
        let status = std::process::Command::new("mount").args(["-o", how]).arg(bed.path("out")).status();
        assert!(status.unwrap().success());
    };
    remount("remount,ro");
    assert_eq!(bed.once(1)["waiting_for"], json!({"disk": 1}));
    assert_nothing_was_sent(&stub);
    assert!(reason(&bed, "talk.wav").contains("read-only"), "{}", reason(&bed, "talk.wav"));
    remount("remount,rw");
    assert_eq!(bed.once(0)["done"], 1);
}

#[test]
fn a_folder_that_can_be_made_is_no_hindrance_and_one_that_cannot_is() {
    let stub = Stub::well();
    let bed = config(&stub).inbox("place = \"out/deep\"").bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    assert_eq!(bed.once(1)["waiting_for"], json!({"disk": 1}), "only its last folder is made");
    assert_nothing_was_sent(&stub);
    fs::create_dir(bed.path("out")).unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    assert!(bed.path("out/deep/talk.en.srt").is_file());
}

#[test]
fn the_folder_of_a_row_is_tried_before_anything_is_sent_for_it() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "roots = [\".\"]");
    manifests::write(&bed, "a.wav", "a");
    manifests::write(&bed, "b.wav", "b");
    let there = bed.path("there");
    let row = |name: &str, folder: &Path| format!("{name},{}/\n", folder.display());
    let list = format!("file,output\n{}{}", row("a.wav", &there), row("b.wav", Path::new("subs")));
    manifests::write(&bed, "list.csv", list);
    let sum = bed.once(1);
    assert_eq!((&sum["done"], &sum["waiting_for"]), (&json!(1), &json!({"disk": 1})));
    assert_eq!(asked(&stub, Endpoint::Create), 1);
    let url = "https://media.example.org/far.wav";
    manifests::write(&bed, "urls.csv", format!("url,output\n{url},{}/\n", there.display()));
    assert_eq!(bed.once(1)["waiting_for"], json!({"disk": 2}));
    assert_eq!(asked(&stub, Endpoint::Create), 1);
    fs::create_dir(&there).unwrap();
    assert_eq!(bed.once(0)["done"], 2);
    assert!(there.join("a.en.srt").is_file() && there.join("far.en.srt").is_file());
}

#[test]
fn a_folder_that_cannot_be_written_any_more_is_found_before_the_create() {
    let stub = Stub::well();
    let bed = Bed::unprivileged(&config(&stub).inbox(""));
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    let mut command = bed.command(["run"]);
    command.env("SCRIBED_STOP_AT", "committed-uploaded");
    let daemon = Running::start(command);
    daemon.stands_still();
    set_mode(&bed.path("inbox"), 0o555);
    // What was found out before holds for so long.
    std::thread::sleep(scribed::testing::pipeline::stages::output_folders::FRESH);
    daemon.goes_on();
    let job = || bed.jobs()["talk.wav"].clone();
    eventually("it waits", || job()["fault"]["kind"] == "unwritable");
    assert_eq!((job()["stage"].clone(), asked(&stub, Endpoint::Create)), (json!("uploaded"), 0));
    set_mode(&bed.path("inbox"), 0o755);
    eventually("it is written", || job()["stage"] == "written");
    assert_eq!((asked(&stub, Endpoint::Upload), asked(&stub, Endpoint::Create)), (1, 1));
}

#[test]
fn a_bucket_that_may_not_be_put_to_is_found_before_the_upload() {
    let s3 = S3::start();
    s3.put("tapes/a.wav", "a");
    let front = Front::to(s3.port, |line| match line.starts_with("PUT") {
        true => Fate::Answer(403, "AccessDenied"),
        false => Fate::Pass,
    });
    let stub = Stub::well();
    let bed = config(&stub).section(&s3.source("tapes", front.port)).bed();
    fs::write(bed.path("s3-key"), &s3.key_id).unwrap();
    fs::write(bed.path("s3-secret"), &s3.secret).unwrap();
    assert_eq!(bed.once(1)["waiting_for"], json!({"disk": 1}));
    assert_nothing_was_sent(&stub);
    assert!(reason(&bed, "a.wav").contains("right to put objects"), "{}", reason(&bed, "a.wav"));
    bed.configure(&config(&stub).section(&s3.source("tapes", s3.port)));
    assert_eq!(bed.once(0)["done"], 1);
}

const THEIRS: &str = "1\n00:00:00,000 --> 00:00:01,000\nby hand\n";

#[test]
fn a_copy_of_known_content_with_a_subtitle_by_someone_else_is_skipped() {
    let stub = Stub::well();
    let bed = config(&stub).inbox("existing = \"skip\"").bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    for name in ["copy.wav", "plain.wav"] {
        fs::write(bed.path("inbox").join(name), "talk").unwrap();
    }
    fs::write(bed.path("inbox/copy.srt"), THEIRS).unwrap();
    let sum = bed.once(0);
    assert_eq!((&sum["done"], &sum["skipped"]), (&json!(1), &json!(1)), "{sum}");
    assert_eq!((bed.jobs()["copy.wav"]["stage"].clone(), asked(&stub, Endpoint::Create)), (json!("skipped"), 1));
    assert!(reason(&bed, "copy.wav").contains("subtitles that scribed did not write"), "{}", reason(&bed, "copy.wav"));
    assert_eq!(bed.outputs().len(), 2 * 4 + 1, "{:?}", bed.outputs().keys());
    assert_eq!(fs::read_to_string(bed.path("inbox/copy.srt")).unwrap(), THEIRS);
    fs::remove_file(bed.path("inbox/copy.srt")).unwrap();
    assert_eq!(bed.once(0)["done"], 1, "it is gone");
    assert_eq!((bed.outputs().len(), asked(&stub, Endpoint::Create)), (3 * 4, 1));
}

#[test]
fn a_copy_in_a_bucket_with_a_subtitle_by_someone_else_is_skipped() {
    let s3 = S3::start();
    let stub = Stub::well();
    s3.put("tapes/talk.wav", "talk");
    let bed = config(&stub).section(&s3.source("tapes", s3.port)).bed();
    fs::write(bed.path("s3-key"), &s3.key_id).unwrap();
    fs::write(bed.path("s3-secret"), &s3.secret).unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    s3.put("tapes/copy.wav", "talk");
    s3.put("tapes/copy.srt", THEIRS);
    assert_eq!(bed.once(0)["skipped"], 1);
    assert_eq!(s3.keys().len(), 2 + 4 + 1, "{:?}", s3.keys());
}

#[test]
fn a_queue_that_was_lost_knows_its_own_subtitles_by_what_is_in_them() {
    let stub = Stub::well();
    let bed = config(&stub).inbox("outputs = [\"srt\"]").bed();
    for name in ["talk.wav", "copy.wav"] {
        fs::write(bed.path("inbox").join(name), "talk").unwrap();
    }
    assert_eq!(bed.once(0)["done"], 2);
    fs::remove_dir_all(bed.path("state")).unwrap();
    let sum = bed.once(0);
    assert_eq!((&sum["done"], &sum["skipped"]), (&json!(2), &json!(0)), "{sum} {:?}", bed.jobs());
    assert_eq!((bed.outputs().len(), asked(&stub, Endpoint::Create)), (2, 1));
    let outputs = |name: &str| bed.jobs()[name]["outputs"] != Value::Null;
    assert!(outputs("talk.wav") && outputs("copy.wav"));
    fs::remove_dir_all(bed.path("state")).unwrap();
    fs::write(bed.path("inbox/copy.en.srt"), THEIRS).unwrap();
    let sum = bed.once(0);
    assert_eq!((&sum["done"], &sum["skipped"]), (&json!(1), &json!(1)), "{sum} {:?}", bed.jobs());
    assert_eq!((bed.outputs().len(), asked(&stub, Endpoint::Create)), (2, 1));
}
