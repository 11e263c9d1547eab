//! A recording is replaced while its old content is being transcribed: what came is looked at when that
//! transcription ends, not at the next full scan.

use crate::support::bed::{Bed, Running, eventually};
use crate::support::config::Config;
use crate::support::manifests;
use crate::support::s3::S3;
use crate::support::stub::{Act, Endpoint, Stub};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

fn bed(stub: &Stub, hold: &str) -> Bed {
    Config::of(stub).limits(4, 8).inbox(&format!("scan = \"12h\"\n{hold}")).bed()
}

/// As programs do that save with care.
fn replace(bed: &Bed, name: &str, content: &str) {
    fs::write(bed.path("new"), content).unwrap();
    fs::rename(bed.path("new"), bed.path("inbox").join(name)).unwrap();
}

/// What the system tells of changes comes in its order: with this file, all before it was taken in.
fn told_of(bed: &Bed, name: &str) {
    fs::write(bed.path("inbox").join(name), name).unwrap();
    eventually("the changes are heard of", || bed.jobs().contains_key(name));
}

fn job(bed: &Bed, name: &str) -> Value {
    bed.jobs().get(name).cloned().unwrap_or(Value::Null)
}

fn accepted(stub: &Stub, name: &str) -> usize {
    stub.book().accepted().get(name).copied().unwrap_or(0)
}

fn content(bed: &Bed, output: &str) -> String {
    let text = fs::read(bed.path("inbox").join(output)).unwrap_or_default();
    let json: Value = serde_json::from_slice(&text).unwrap_or_default();
    json["scribed"]["content_hash"].as_str().unwrap_or_default().to_owned()
}

fn hash(text: &str) -> String {
    scribed::testing::domain::names::Hash::of(text.as_bytes()).to_string()
}

#[test]
fn what_replaced_a_recording_is_transcribed_when_the_old_content_is_written() {
    let (stub, over) = Stub::slow();
    let bed = bed(&stub, "hold = \"0s\"");
    fs::write(bed.path("inbox/talk.wav"), "old").unwrap();
    let _daemon = Running::start(bed.command(["run"]));
    eventually("it is submitted", || job(&bed, "talk.wav")["stage"] == "submitted");
    // One buys what the other one gets too.
    fs::write(bed.path("inbox/copy.wav"), "old").unwrap();
    eventually("it waits for the other", || job(&bed, "copy.wav")["stage"] == "following");
    replace(&bed, "talk.wav", "new content");
    replace(&bed, "copy.wav", "other content");
    told_of(&bed, "mark.wav");
    over.store(true, Ordering::SeqCst);
    eventually("the new content is written", || content(&bed, "talk.en.json") == hash("new content"));
    eventually("that of the copy too", || content(&bed, "copy.en.json") == hash("other content"));
    assert_eq!((accepted(&stub, "talk.wav"), accepted(&stub, "copy.wav")), (2, 1));
    let shown = bed.run(["show", "inbox/talk.wav"]).stdout;
    let numbers: Vec<&str> =
        shown.lines().filter(|line| line.contains("  cost ")).filter_map(|line| line.split(", ").last()).collect();
    assert_eq!(numbers, ["purchase 1", "purchase 2"], "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("  service ") && line.ends_with(", purchase 2")), "{shown}");
    assert_eq!(bed.outputs().len(), 3 * 4, "{:?}", bed.outputs().keys());
}

#[test]
fn a_recording_that_comes_back_as_it_was_is_billed_once() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    let first = bed.run(["once"]);
    assert!(first.stderr.contains("billed_seconds=1.5 took_seconds="), "{first:?}");
    fs::remove_file(bed.path("inbox/talk.wav")).unwrap();
    bed.once(0);
    replace(&bed, "talk.wav", "talk");
    let again = bed.run(["once"]);
    let line = again.stderr.lines().find(|line| line.contains("done")).unwrap_or_else(|| panic!("{again:?}"));
    assert!(line.contains("billed_seconds=0") && !line.contains("took_seconds"), "{line}");
    assert_eq!(accepted(&stub, "talk.wav"), 1);
}

#[test]
fn what_replaced_a_recording_waits_until_it_has_been_quiet_for_hold() {
    let (stub, over) = Stub::slow();
    let bed = bed(&stub, "");
    fs::write(bed.path("inbox/talk.wav"), "old").unwrap();
    let _daemon = Running::start(bed.command(["run"]));
    eventually("it is submitted", || job(&bed, "talk.wav")["stage"] == "submitted");
    replace(&bed, "talk.wav", "new content");
    told_of(&bed, "mark.wav");
    over.store(true, Ordering::SeqCst);
    eventually("it is held", || job(&bed, "talk.wav")["fault"]["kind"] == "held");
    assert_eq!(content(&bed, "talk.en.json"), hash("old"), "what was paid for is written");
    assert_eq!(accepted(&stub, "talk.wav"), 1);
}

#[test]
fn what_replaced_a_recording_whose_transcription_failed_is_transcribed() {
    let (stub, _) = Stub::slow();
    let bed = bed(&stub, "hold = \"0s\"");
    fs::write(bed.path("inbox/talk.wav"), "old").unwrap();
    let _daemon = Running::start(bed.command(["run"]));
    eventually("it is submitted", || job(&bed, "talk.wav")["stage"] == "submitted");
    replace(&bed, "talk.wav", "new content");
    told_of(&bed, "mark.wav");
    stub.set(|asked, book| {
        let creates = book.creates.iter().filter(|create| create.file == "talk.wav").count();
        match asked.endpoint {
            Endpoint::Read if asked.file == "talk.wav" && creates == 1 => Act::Change(|record| {
                (record["status"], record["error_code"], record["result"]) = (json!("error"), json!(400), Value::Null);
            }),
            _ => Act::Well,
        }
    });
    eventually("the new content is written", || content(&bed, "talk.en.json") == hash("new content"));
    assert_eq!(accepted(&stub, "talk.wav"), 2);
}

#[test]
fn a_touch_during_its_transcription_costs_nothing() {
    let (stub, over) = Stub::slow();
    let bed = bed(&stub, "");
    fs::write(bed.path("inbox/talk.wav"), "old").unwrap();
    let pass = Running::start(bed.command(["once", "--json"]));
    eventually("it is submitted", || job(&bed, "talk.wav")["stage"] == "submitted");
    replace(&bed, "talk.wav", "old");
    over.store(true, Ordering::SeqCst);
    let ran = pass.wait();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((job(&bed, "talk.wav")["stage"].clone(), accepted(&stub, "talk.wav")), (json!("written"), 1));
    assert_eq!(bed.outputs().len(), 4);
}

#[test]
fn the_file_of_a_row_is_looked_at_when_its_transcription_ends() {
    let (stub, over) = Stub::slow();
    let bed = manifests::bed(&stub, "scan = \"12h\"\nhold = \"0s\"");
    manifests::write(&bed, "talk.wav", "old");
    manifests::write(&bed, "list.csv", "file\ntalk.wav\n");
    let pass = Running::start(bed.command(["once", "--json"]));
    eventually("it is submitted", || bed.jobs().values().any(|job| job["stage"] == "submitted"));
    replace(&bed, "talk.wav", "new content");
    over.store(true, Ordering::SeqCst);
    let ran = pass.wait();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(accepted(&stub, "talk.wav"), 2);
    assert!(Path::new(&bed.path("inbox/talk.en.srt")).is_file());
}

#[test]
fn an_object_is_looked_at_when_its_transcription_ends() {
    let (s3, (stub, over)) = (S3::start(), Stub::slow());
    s3.put("tapes/talk.wav", "old");
    let bed = Config::of(&stub).section(&format!("{}hold = \"0s\"", s3.source("tapes", s3.port))).bed();
    for (name, text) in [("s3-key", &s3.key_id), ("s3-secret", &s3.secret)] {
        fs::write(bed.path(name), text).unwrap();
    }
    let pass = Running::start(bed.command(["once", "--json"]));
    eventually("it is submitted", || job(&bed, "talk.wav")["stage"] == "submitted");
    s3.put("tapes/talk.wav", "new content");
    over.store(true, Ordering::SeqCst);
    let ran = pass.wait();
    assert_eq!((ran.code, accepted(&stub, "talk.wav")), (0, 2), "{ran:?}");
}
