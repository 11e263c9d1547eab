//! A state directory is lost, and the service's list does not show which transcriptions are scribed's: it drops the
//! `custom_metadata`. Nothing is bought before a person decides, and what the person takes from the list is used.

use crate::support::bed::{Bed, Ran, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, StubRecords, StubRequest};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, SystemTime};

/// How long each recording is: each name has a length of its own, except the last two.
const LENGTHS: [(&str, u32); 5] = [("a.wav", 10), ("b.wav", 20), ("c.wav", 30), ("twin.wav", 40), ("other.wav", 40)];

fn seconds(file: &str) -> u32 {
    LENGTHS.iter().find(|(name, _)| *name == file).map_or(50, |(_, seconds)| *seconds)
}

/// Returns a silent recording of the length that its name says, with a sample that tells it from others.
fn recording(name: &str, sample: u8) -> Vec<u8> {
    let samples = seconds(name) * 8_000;
    let mut file = [&b"RIFF"[..], &(36 + samples).to_le_bytes(), b"WAVEfmt \x10\0\0\0\x01\0\x01\0"].concat();
    file.extend([8_000_u32.to_le_bytes(), 8_000_u32.to_le_bytes()].concat());
    file.extend([&b"\x01\0\x08\0data"[..], &samples.to_le_bytes()].concat());
    file.push(sample);
    file.resize(file.len() - 1 + samples as usize, 128);
    file
}

/// Answers without any `custom_metadata`, and with the names and lengths of the files.
fn bare(request: &StubRequest<'_>, records: &mut StubRecords) -> Act {
    let length = seconds(request.file);
    match request.endpoint {
        Endpoint::Upload => Act::With(Box::new(move |body| body["audio_metadata"]["audio_duration"] = json!(length))),
        Endpoint::Read => {
            let file = request.file.to_owned();
            Act::With(Box::new(move |record| {
                record["custom_metadata"] = Value::Null;
                record["result"]["metadata"]["audio_duration"] = json!(length);
                record["file"] = json!({ "filename": file, "audio_duration": length });
            }))
        }
        Endpoint::List => {
            let files = records.files();
            Act::With(Box::new(move |list| describe(list, &files)))
        }
        _ => Act::Well,
    }
}

fn describe(list: &mut Value, files: &BTreeMap<String, String>) {
    for item in list["items"].as_array_mut().unwrap() {
        item["custom_metadata"] = Value::Null;
        let file = &files[item["id"].as_str().unwrap()];
        item["file"] = json!({ "filename": file, "audio_duration": seconds(file) });
    }
}

fn config(stub: &Stub) -> Config {
    Config::of(stub).inbox("outputs = [\"txt\"]")
}

fn put(bed: &Bed, path: &str, sample: u8) {
    let path = bed.path("inbox").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, recording(path.file_name().unwrap().to_str().unwrap(), sample)).unwrap();
}

/// Transcribes these recordings; then the state directory and the outputs are lost.
fn lost(stub: &Stub, bed: &Bed, paths: &[&str]) {
    paths.iter().zip(0..).for_each(|(path, sample)| put(bed, path, sample));
    assert_eq!(bed.once(0)["done"], paths.len());
    assert_eq!(stub.records().creates.len(), paths.len());
    lose_state(bed);
    bed.outputs().keys().for_each(|output| fs::remove_file(output).unwrap());
}

fn lose_state(bed: &Bed) {
    fs::remove_dir_all(bed.path("state")).unwrap();
}

fn creates(stub: &Stub) -> usize {
    stub.records().creates.len()
}

fn adopt(bed: &Bed, more: &[&str]) -> Ran {
    bed.run(["reconcile", "--service", "default"].iter().chain(more))
}

fn names_both_commands(text: &str) -> bool {
    ["--adopt-by duration,name,date", "reconcile --service default --trust"]
        .iter()
        .all(|command| text.contains(command))
}

#[test]
fn after_the_state_is_lost_a_list_without_metadata_has_a_person_decide_and_nothing_is_bought() {
    let stub = Stub::start(bare);
    let bed = config(&stub).bed();
    lost(&stub, &bed, &["a.wav", "b.wav", "c.wav"]);
    let ran = bed.run(["once", "--json"]);
    assert_eq!((ran.code, creates(&stub)), (1, 3), "{ran:?}");
    let reasons = &ran.last_object()["exit_reasons"];
    assert!(names_both_commands(&reasons.to_string()) && reasons[0]["kind"] == "question", "{reasons}");
    assert!(names_both_commands(&ran.stderr), "the log: {}", ran.stderr);
    let status = bed.run(["status"]);
    assert!(names_both_commands(&status.stdout), "without a daemon: {status:?}");
    let checked = bed.run(["status", "--check"]);
    assert!(checked.code == 2 && names_both_commands(&checked.stdout), "{checked:?}");
    assert_eq!((bed.once(1)["done"].clone(), creates(&stub)), (json!(0), 3), "nor in the next pass");

    let trusted = adopt(&bed, &["--trust"]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
    let status = bed.run(["status"]);
    assert!(!status.stdout.contains("--adopt-by"), "a person has decided: {status:?}");
    assert_eq!((bed.once(0)["done"].clone(), creates(&stub)), (json!(3), 6));
}

#[test]
fn what_a_person_takes_from_the_list_is_written_and_nothing_is_bought() {
    let stub = Stub::start(bare);
    // Two recordings are uploaded ahead, the third is only measured here.
    let bed = config(&stub).limits(1, 2).bed();
    lost(&stub, &bed, &["a.wav", "b.wav", "sub/c.wav"]);
    bed.once(1);
    let shown = adopt(&bed, &["--adopt-by", "duration,name,date"]);
    assert_eq!(shown.code, 2, "{shown:?}");
    assert!(shown.stderr.contains("nothing was changed") && shown.stderr.contains("--yes"), "{shown:?}");
    assert!(shown.stdout.contains("3 transcriptions of its list fit one recording each"), "{shown:?}");
    assert!(shown.stdout.contains("a.wav, 10 s") && shown.stdout.contains("inbox/sub/c.wav, 30 s"), "{shown:?}");
    let stages: Vec<Value> = bed.jobs().into_values().map(|job| job["stage"].clone()).collect();
    assert!(stages.iter().all(|stage| stage == "uploaded" || stage == "probed"), "{stages:?}");
    assert!(stages.iter().any(|stage| stage == "probed"), "{stages:?}");
    let shown = adopt(&bed, &["--adopt-by", "duration", "--json"]);
    assert_eq!((shown.code, shown.last_object()["pairs"].as_array().unwrap().len()), (2, 3), "{shown:?}");

    let taken = adopt(&bed, &["--adopt-by", "duration,name,date", "--yes"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(taken.stdout.contains("--trust"), "the queue is not trusted yet: {taken:?}");
    assert_eq!(bed.once(0)["done"], 3);
    assert_eq!(creates(&stub), 3);
    for name in ["a.wav", "b.wav", "sub/c.wav"] {
        let text = fs::read_to_string(bed.path("inbox").join(name).with_extension("en.txt")).unwrap();
        let file = name.rsplit('/').next().unwrap();
        assert!(text.contains(&format!("What was said in {file}.")), "{name}: {text}");
    }
    // What is new waits, until the person says that the queue is complete.
    put(&bed, "new.wav", 9);
    assert_eq!((bed.once(1)["done"].clone(), creates(&stub)), (json!(0), 3));
    let none = adopt(&bed, &["--adopt-by", "duration,name", "--yes", "--json"]);
    let shown = &none.objects()[0];
    assert_eq!((none.code, shown["unmatched"].as_array().unwrap().len()), (1, 1), "{none:?}");
    assert_eq!(shown["transcriptions_left"], 0, "what a job has is not proposed again: {none:?}");
    assert_eq!(adopt(&bed, &["--trust"]).code, 0);
    assert_eq!((bed.once(0)["done"].clone(), creates(&stub)), (json!(1), 4));
}

#[test]
fn what_was_bought_under_the_name_of_a_copy_is_found() {
    let stub = Stub::start(bare);
    let bed = config(&stub).bed();
    lost(&stub, &bed, &["m.wav"]);
    let bought = bed.path("inbox/m.wav");
    // Any of them may be the one that would buy; the others wait for it. None has a name with a length of its own.
    ["k.wav", "l.wav", "n.wav", "z.wav"]
        .iter()
        .for_each(|copy| fs::copy(&bought, bed.path("inbox").join(copy)).map(drop).unwrap());
    bed.once(1);
    let jobs = bed.jobs();
    assert!(jobs.values().any(|job| job["stage"] == "following"), "{jobs:?}");
    let taken = adopt(&bed, &["--adopt-by", "duration,name,date", "--yes", "--trust"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    assert_eq!((bed.once(0)["done"].clone(), creates(&stub)), (json!(5), 1));
}

#[test]
fn what_is_ambiguous_stays_and_one_call_takes_the_rest_and_lets_purchases_continue() {
    let stub = Stub::start(bare);
    let bed = config(&stub).bed();
    lost(&stub, &bed, &["a.wav", "twin.wav", "other.wav"]);
    stub.records().slip_in("of somebody else");
    put(&bed, "copies/a.wav", 0); // the same content as a.wav: one purchase
    bed.once(1);
    let ran = adopt(&bed, &["--adopt-by", "duration", "--yes", "--json"]);
    let shown = &ran.objects()[0];
    assert_eq!((ran.code, shown["ambiguous"].as_array().unwrap().len()), (1, 2), "two of 40 s: {shown}");
    assert_eq!((shown["pairs"].as_array().unwrap().len(), &shown["transcriptions_left"]), (1, &json!(3)), "{shown}");
    assert_eq!(bed.once(1)["done"], 2, "a.wav and its copy");

    // With the names nothing is ambiguous; one recording is no longer at the service.
    stub.records().lose("other.wav");
    let ran = adopt(&bed, &["--adopt-by", "duration,name", "--trust", "--yes", "--json"]);
    assert_eq!((ran.code, &ran.last_object()["trusted"]), (0, &json!(true)), "{ran:?}");
    assert_eq!(bed.once(0)["done"], 2);
    let accepted = |file: &str| stub.records().accepted()[file];
    assert_eq!((accepted("a.wav"), accepted("twin.wav"), accepted("other.wav")), (1, 1, 2));
}

#[test]
fn a_failed_transcription_is_not_taken_and_a_date_alone_is_no_criterion() {
    let stub = Stub::start(|request, records| match bare(request, records) {
        Act::With(change) if request.endpoint == Endpoint::List => Act::With(Box::new(move |list| {
            change(list);
            for item in list["items"].as_array_mut().unwrap() {
                if item["file"]["filename"] == "b.wav" {
                    item["status"] = json!("error");
                }
            }
        })),
        act => act,
    });
    let bed = config(&stub).bed();
    lost(&stub, &bed, &["a.wav", "b.wav", "c.wav"]);
    // A recording that was changed since cannot be what was transcribed.
    let later = SystemTime::now() + Duration::from_secs(600);
    fs::File::options().write(true).open(bed.path("inbox/c.wav")).unwrap().set_modified(later).unwrap();
    bed.once(1);
    let ran = adopt(&bed, &["--adopt-by", "date", "--yes"]);
    assert!(ran.code == 2 && ran.stderr.contains("a date alone fits too much"), "{ran:?}");
    let ran = adopt(&bed, &["--adopt-by", "name,date", "--yes", "--json"]);
    let shown = &ran.objects()[0];
    assert_eq!((&shown["pairs"][0]["path"], shown["pairs"].as_array().unwrap().len()), (&json!("inbox/a.wav"), 1));
    let path = |job: &Value| job["path"].as_str().unwrap().to_owned();
    let unmatched: BTreeSet<String> = shown["unmatched"].as_array().unwrap().iter().map(path).collect();
    assert_eq!(unmatched, ["inbox/b.wav", "inbox/c.wav"].map(str::to_owned).into(), "{shown}");
    assert_eq!((bed.once(1)["done"].clone(), creates(&stub)), (json!(1), 3));
}

#[test]
fn a_running_daemon_takes_what_a_person_decides() {
    let stub = Stub::start(bare);
    let bed = config(&stub).bed();
    lost(&stub, &bed, &["a.wav", "b.wav"]);
    let daemon = bed.daemon();
    let status = || bed.run(["status", "--json"]).last_object();
    wait_until("the daemon asks", || {
        let trouble = status()["services"][0]["trouble"].as_str().unwrap_or_default().to_owned();
        names_both_commands(&trouble)
    });
    wait_until("the recordings are examined", || {
        bed.jobs().values().filter(|job| job["stage"] == "uploaded").count() == 2
    });
    let checked = bed.run(["status", "--check"]);
    assert!(checked.code == 2 && names_both_commands(&checked.stdout), "{checked:?}");
    put(&bed, "new.wav", 9);
    wait_until("the new one waits too", || bed.jobs().get("new.wav").is_some_and(|job| job["stage"] == "uploaded"));
    let ran = adopt(&bed, &["--adopt-by", "duration,name,date", "--yes"]);
    assert_eq!(ran.code, 1, "one waits: {ran:?}");
    let is_written = |name: &str| bed.jobs()[name]["stage"] == "written";
    wait_until("what was taken is written", || is_written("a.wav") && is_written("b.wav"));
    assert_eq!((creates(&stub), &bed.jobs()["new.wav"]["stage"]), (2, &json!("uploaded")));
    let history = bed.run(["show", "inbox/a.wav"]).stdout;
    assert!(history.contains("a person took the transcription"), "{history}");
    assert_eq!(adopt(&bed, &["--trust"]).code, 0);
    wait_until("the rest is bought", || is_written("new.wav"));
    assert_eq!(creates(&stub), 3);
    drop(daemon);
}

/// The probe of a recording with subtitles waits for the list.
#[test]
fn a_pass_ends_with_the_question_where_outputs_lie_beside_the_recordings() {
    let stub = Stub::start(bare);
    let bed = Config::of(&stub).inbox("").bed();
    ["a.wav", "b.wav"].iter().zip(0..).for_each(|(name, sample)| put(&bed, name, sample));
    assert_eq!(bed.once(0)["done"], 2);
    lose_state(&bed);
    put(&bed, "c.wav", 9);
    assert_eq!((bed.once(1)["done"].clone(), creates(&stub)), (json!(0), 2));
    assert_eq!(adopt(&bed, &["--trust"]).code, 0);
    bed.once(0);
    assert_eq!(stub.records().accepted()["c.wav"], 1);
}

#[test]
fn a_list_that_says_no_more_than_ids_is_read_one_by_one() {
    let stub = Stub::start(|request, records| match bare(request, records) {
        Act::With(change) if request.endpoint == Endpoint::List => Act::With(Box::new(move |list| {
            change(list);
            list["items"].as_array_mut().unwrap().iter_mut().for_each(|item| item["file"] = Value::Null);
        })),
        act => act,
    });
    let bed = config(&stub).bed();
    lost(&stub, &bed, &["a.wav", "b.wav"]);
    bed.once(1);
    assert_eq!(adopt(&bed, &["--adopt-by", "duration,name,date", "--yes"]).code, 0);
    assert_eq!((bed.once(0)["done"].clone(), creates(&stub)), (json!(2), 2));
}

#[test]
fn an_empty_list_waits_for_nobody_and_a_new_queue_at_a_used_account_does() {
    let stub = Stub::start(bare);
    let bed = config(&stub).bed();
    put(&bed, "a.wav", 0);
    assert_eq!((bed.once(0)["done"].clone(), creates(&stub)), (json!(1), 1), "an empty list");
    let newcomer = config(&stub).bed();
    put(&newcomer, "b.wav", 1);
    assert_eq!((newcomer.once(1)["done"].clone(), creates(&stub)), (json!(0), 1));
    let shown = adopt(&newcomer, &["--adopt-by", "duration,name,date", "--trust", "--yes"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert_eq!((newcomer.once(0)["done"].clone(), creates(&stub)), (json!(1), 2));
}
