//! `scribed explain` reports what keeps a file: one test for each fact.

use crate::support::bed::{Bed, QUICK, Running, Share, files, wait_until};
use crate::support::manifests;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

fn explain(bed: &Bed, path: &str) -> Value {
    let mut command = bed.command(["explain", "--json", path]);
    command.env("SCRIBED_KEY", "k");
    let ran = Running::start(command).wait();
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.last_object()
}

fn fact(said: &Value, kind: &str) -> Value {
    let facts = said["facts"].as_array().unwrap();
    facts.iter().find(|fact| fact["kind"] == kind).unwrap_or_else(|| panic!("no {kind} in {said}")).clone()
}

#[test]
fn a_pause_is_named_with_the_command_that_ends_it() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.run(["pause", "--source", "inbox"]).code, 0);
    assert_eq!(bed.once(1)["waiting_for"], json!({"pause": 1}));
    let said = explain(&bed, "inbox/talk.wav");
    assert_eq!(fact(&said, "pause")["can"], "`scribed resume --source inbox`", "{said}");
    assert!(said["next"].as_str().unwrap().contains("`scribed resume --source inbox`"), "{said}");
    assert_eq!((&said["where"], &said["when"]), (&json!("probed"), &Value::Null), "{said}");
    assert_eq!(bed.run(["pause", "--for", "2h"]).code, 0);
    let said = explain(&bed, "inbox/talk.wav");
    assert_eq!(fact(&said, "pause")["until"], Value::Null, "that of the source lasts longer: {said}");
    let told = bed.run(["explain", "inbox/talk.wav"]).stdout;
    for part in ["  stage    probed since", "  next     nothing during the pause", "  you can  "] {
        assert!(told.lines().any(|line| line.starts_with(part)), "{part}: {told}");
    }
}

#[test]
fn a_budget_says_when_it_opens() {
    let bed = Bed::new(&format!("[budget]\nday = \"2s\"\n{QUICK}"));
    bed.drop_in(0, "a.wav");
    bed.drop_in(1, "b.wav");
    assert_eq!(bed.once(0)["waiting_for"], json!({"budget": 1}));
    let waits = bed.jobs().into_iter().find(|(_, row)| row["stage"] == "probed").unwrap().0;
    let said = explain(&bed, &format!("inbox/{waits}"));
    let budget = fact(&said, "budget");
    assert!(budget["until"].as_str().unwrap().contains("T00:00:00"), "{said}");
    assert!(said["next"].as_str().unwrap().contains("budget.day"), "{said}");
    assert!(fact(&said, "no_daemon")["can"].as_str().unwrap().contains("scribed run"), "{said}");
}

#[test]
fn a_window_says_when_it_opens() {
    let bed = Bed::new(&QUICK.replace("settle", "submit = { from = \"0 3 1 1 *\", for = \"1h\" }\nsettle"));
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.once(0)["waiting_for"], json!({"window": 1}));
    let said = explain(&bed, "inbox/talk.wav");
    let window = fact(&said, "window");
    assert!(window["until"].as_str().unwrap().contains("-01-01T03:00:00"), "{said}");
}

#[test]
fn what_is_said_beside_a_file_is_named() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    fs::write(bed.path("inbox/talk.toml"), "language = \"en\"\n").unwrap();
    let said = explain(&bed, "inbox/talk.wav");
    assert!(fact(&said, "sidecar")["words"].as_str().unwrap().contains("talk.toml"), "{said}");
    assert!(fact(&said, "no_daemon")["holds"].as_bool().unwrap(), "{said}");
}

#[test]
fn a_folder_that_is_away_keeps_what_needs_it() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.run(["pause"]).code, 0);
    bed.once(1);
    fs::rename(bed.path("inbox"), bed.path("gone")).unwrap();
    let said = explain(&bed, "inbox/talk.wav");
    assert!(fact(&said, "frozen")["words"].as_str().unwrap().contains("does not exist"), "{said}");
}

#[test]
fn a_service_that_is_out_is_what_comes_next() {
    let stub = Stub::well();
    let config = format!("[service]\nurl = \"{}\"\nkey = \"file:key\"\n{QUICK}", stub.url());
    drop(stub);
    let bed = Bed::new(&config);
    bed.drop_in(0, "talk.wav");
    let running = bed.daemon();
    wait_until("the line is closed", || explain(&bed, "inbox/talk.wav")["facts"].to_string().contains("outage"));
    let said = explain(&bed, "inbox/talk.wav");
    assert!(said["next"].as_str().unwrap().starts_with("nothing until the service answers again"), "{said}");
    assert_eq!(said["when"], Value::Null, "no moment that has passed: {said}");
    let shown = bed.run(["show", "inbox/talk.wav"]).stdout;
    assert!(shown.contains("  service  default") && shown.contains("nothing until the service"), "{shown}");
    running.signal(Signal::TERM);
    running.wait();
}

fn not_yet(record: &mut Value) {
    record["status"] = "processing".into();
    record["result"] = Value::Null;
}

#[test]
fn a_limit_is_a_turn_that_is_waited_for() {
    let stub = Stub::changing_results(not_yet);
    let limits = "limits = { running = 1 }\nlag = \"1s\"";
    let config = format!("[service]\nurl = \"{}\"\nkey = \"file:key\"\n{limits}\n{QUICK}", stub.url());
    let bed = Bed::new(&config);
    bed.drop_in(0, "a.wav");
    bed.drop_in(1, "b.wav");
    let running = bed.daemon();
    let both = || ["inbox/a.wav", "inbox/b.wav"].map(|path| explain(&bed, path));
    wait_until("one runs and one waits", || both().iter().any(|said| said["facts"].to_string().contains("limit")));
    let said = both().into_iter().find(|said| said["facts"].to_string().contains("limit")).unwrap();
    assert!(fact(&said, "limit")["words"].as_str().unwrap().contains("1 at a time"), "{said}");
    assert!(said["next"].as_str().unwrap().contains("in processing order"), "{said}");
    running.signal(Signal::TERM);
    running.wait();
}

/// A service elsewhere; `lag` is how long its lists may be late.
fn hosted(stub: &Stub) -> Bed {
    Bed::new(&format!("[service]\nurl = \"{}\"\nkey = \"file:key\"\nlag = \"0s\"\n{QUICK}", stub.url()))
}

/// Explains until this fact is among what is said.
fn until(bed: &Bed, path: &str, kind: &str) -> Value {
    wait_until(kind, || {
        explain(bed, path)["facts"].as_array().unwrap().iter().any(|fact| fact["kind"] == kind && fact["holds"] == true)
    });
    explain(bed, path)
}

#[test]
fn a_share_that_is_away_freezes_what_needs_it() {
    let bed = Bed::new(QUICK);
    let share = Share::mount(&bed.path("share"), &bed.path("inbox"));
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.run(["pause"]).code, 0);
    bed.once(1);
    share.goes();
    let said = explain(&bed, "inbox/talk.wav");
    let frozen = fact(&said, "frozen");
    assert!(frozen["words"].as_str().unwrap().contains("has lost its marker"), "{said}");
    assert!(frozen["can"].as_str().unwrap().contains("mount or restore the folder"), "{said}");
    share.back();
    assert!(!explain(&bed, "inbox/talk.wav")["facts"].to_string().contains("frozen"));
}

#[test]
fn a_queue_that_does_not_know_what_was_bought_says_so() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::List => Act::Say(refusal(500, "out of order")),
        _ => Act::Well,
    });
    let bed = hosted(&stub);
    bed.drop_in(0, "talk.wav");
    let running = bed.daemon();
    let said = until(&bed, "inbox/talk.wav", "suspect");
    assert!(
        fact(&said, "suspect")["words"].as_str().unwrap().contains("scribed reads the list of service default"),
        "{said}"
    );
    assert!(stub.records().creates.is_empty(), "nothing is bought meanwhile");
    running.signal(Signal::TERM);
    running.wait();
}

#[test]
fn a_person_who_is_asked_is_told_what_and_how_to_answer() {
    let stub = Stub::start(|request, records| match request.endpoint {
        Endpoint::Create => Act::Say(refusal(500, "who knows")),
        Endpoint::List if !records.creates.is_empty() => Act::Say(refusal(404, "no list here")),
        _ => Act::Well,
    });
    let bed = hosted(&stub);
    bed.drop_in(0, "talk.wav");
    let running = bed.daemon();
    let said = until(&bed, "inbox/talk.wav", "person");
    let words = fact(&said, "person")["words"].as_str().unwrap().to_owned();
    assert!(words.contains("waiting for a person's decision: the service may have accepted the create"), "{said}");
    assert!(fact(&said, "person")["can"].as_str().unwrap().contains("scribed retry 1 --pay-again"), "{said}");
    assert_eq!(
        (&said["when"], &said["next"]),
        (&Value::Null, &json!("nothing by itself: it waits for a person's decision")),
        "{said}"
    );
    running.signal(Signal::TERM);
    running.wait();
}

#[test]
fn a_new_queue_says_when_the_list_is_scanned() {
    let stub = Stub::well();
    let service = format!("[service]\nurl = \"{}\"\nkey = \"file:key\"\nlag = \"1h\"\n", stub.url());
    let bed = Bed::new(&format!("{service}{QUICK}"));
    bed.drop_in(0, "talk.wav");
    let running = bed.daemon();
    let waits = "before it submits anything, scribed reads the list of service default (the queue is new, repaired or restored): scribed starts to read it in ";
    wait_until("it is told", || explain(&bed, "inbox/talk.wav")["next"].to_string().contains(waits));
    let said = fact(&explain(&bed, "inbox/talk.wav"), "suspect")["words"].to_string();
    let (_, left) = said.split_once(waits).unwrap();
    assert!(left.starts_with("1 h") || left.starts_with("59 min"), "{said}");
    running.signal(Signal::TERM);
    running.wait();
}

#[test]
fn a_service_that_was_taken_out_keeps_what_it_has() {
    let stub = Stub::changing_results(not_yet);
    let site = format!("[services.site]\nurl = \"{}\"\nkey = \"file:key\"\nlag = \"0s\"\n", stub.url());
    let bed = Bed::new(&format!("{site}{QUICK}service = \"site\"\n"));
    bed.drop_in(0, "talk.wav");
    let running = bed.daemon();
    wait_until("it is at the service", || explain(&bed, "inbox/talk.wav")["where"] == "submitted");
    running.signal(Signal::TERM);
    running.wait();
    bed.configure(QUICK);
    let said = explain(&bed, "inbox/talk.wav");
    let removed = fact(&said, "removed");
    assert!(removed["words"].as_str().unwrap().contains("jobs.toml has no service `site` any more"), "{said}");
    assert!(removed["can"].as_str().unwrap().contains("add [services.site] to jobs.toml again"), "{said}");
}

#[test]
fn what_looks_unfinished_says_how_long_it_is_waited_for() {
    let bed = Bed::new(QUICK);
    let sound = crate::support::bed::speech_piece(0);
    fs::write(bed.path("inbox/half.wav"), &sound[..sound.len() / 2]).unwrap();
    let running = bed.daemon();
    let said = until(&bed, "inbox/half.wav", "hold");
    let hold = fact(&said, "hold");
    assert!(hold["until"].is_string() && hold["can"].as_str().unwrap().contains("scribed retry"), "{said}");
    running.signal(Signal::TERM);
    running.wait();
}

#[test]
fn what_a_person_put_in_an_outputs_place_is_not_called_ours() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    let words = |path: &str| explain(&bed, path)["words"].as_str().unwrap().to_owned();
    assert!(words("inbox/talk.en.srt").ends_with("an output that scribed wrote"));
    fs::write(bed.path("inbox/talk.en.srt"), "1\n00:00:00,000 --> 00:00:01,000\nmine\n").unwrap();
    assert!(words("inbox/talk.en.srt").contains("but other content"), "{}", words("inbox/talk.en.srt"));
    fs::write(bed.path("inbox/talk.en.new.srt"), "1\n").unwrap();
    assert!(!words("inbox/talk.en.new.srt").contains("scribed wrote"), "{}", words("inbox/talk.en.new.srt"));
    assert!(files(&bed.path("inbox")).len() > 4);
}

#[test]
fn changed_rows_changed_files_and_output_folders_say_what_comes() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "place = \"texts\"");
    bed.drop_in(0, "a.wav");
    bed.drop_in(1, "b.wav");
    manifests::write(&bed, "may.csv", "file,language\na.wav,en\nb.wav,en\n");
    bed.once(0);
    let next = |path: &str| explain(&bed, path)["next"].as_str().unwrap().to_owned();
    fs::write(bed.path("inbox/a.wav"), "another content").unwrap();
    fs::remove_file(bed.path("inbox/b.wav")).unwrap();
    assert!(fact(&explain(&bed, "inbox/a.wav"), "row").to_string().contains("its file has changed since"));
    assert!(fact(&explain(&bed, "inbox/b.wav"), "row").to_string().contains("its file does not exist"));
    manifests::write(&bed, "may.csv", "file,language\na.wav,de\n");
    assert!(next("inbox/a.wav").contains("the next `scribed once` reads the manifest"), "{}", next("inbox/a.wav"));
    let output = explain(&bed, "texts/a.en.txt");
    assert!(output.to_string().contains("the folder of the outputs of source lists (`place`)"), "{output}");
}

#[test]
fn a_recording_that_was_replaced_waits_for_the_next_scan() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    assert!(!explain(&bed, "inbox/talk.wav").to_string().contains("has changed"));
    bed.drop_in(1, "talk.wav");
    let said = explain(&bed, "inbox/talk.wav");
    assert!(
        said["next"]
            .as_str()
            .unwrap()
            .contains("the next scan, or the next reading of its manifest, sees that the file has changed"),
        "{said}"
    );
}

#[test]
fn an_edited_output_and_its_recording_name_the_command_that_accepts_it() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    bed.drop_in(0, "a.wav");
    manifests::write(&bed, "may.csv", "file\na.wav\n");
    bed.once(0);
    assert!(explain(&bed, "inbox/a.wav")["facts"].as_array().unwrap().iter().all(|fact| fact["kind"] != "edited"));
    fs::write(bed.path("inbox/a.en.srt"), "1\n00:00:00,000 --> 00:00:01,000\nother words\n").unwrap();
    let output = bed.run(["explain", "inbox/a.en.srt"]).stdout;
    let path = bed.path("inbox/a.en.srt").display().to_string();
    assert!(output.contains("an edited output") && output.contains(&format!("`scribed accept {path}`")), "{output}");
    let recording = bed.run(["explain", "inbox/a.wav"]).stdout;
    assert!(recording.contains("a.en.srt is edited: scribed leaves it as it is"), "{recording}");
    assert!(recording.contains("makes it the text of the job"), "{recording}");
}

#[test]
fn a_manifest_is_named_with_its_source_its_rows_and_its_receipt() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    bed.drop_in(0, "a.wav");
    manifests::write(&bed, "may.csv", "file\na.wav\nftp://h.example/b.wav\n");
    let before = explain(&bed, "inbox/may.csv");
    assert_eq!(before["words"], "the manifest of the source lists: 2 rows, 1 wrong; it has no receipt yet", "{before}");
    bed.once(1);
    let told = bed.run(["explain", "inbox/may.csv"]).stdout;
    let receipt = bed.path("inbox/may.csv.receipt.csv").display().to_string();
    assert!(told.contains(&format!("its receipt is {receipt}")) && !told.contains("ignored"), "{told}");
}

#[test]
fn a_failed_row_says_that_a_corrected_one_goes_on() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    bed.drop_in(0, "a.wav");
    manifests::write(&bed, "may.csv", format!("file,sha256\na.wav,{}\n", "0".repeat(64)));
    let ran = bed.run(["once"]);
    let words =
        "unless you replace the recording or correct row 2 of may.csv (then the job starts again without a command)";
    assert!(ran.code == 1 && ran.stderr.contains(words), "{ran:?}");
    let said = explain(&bed, "inbox/a.wav");
    assert!(said["next"].as_str().unwrap().contains(words), "{said}");
    manifests::write(&bed, "may.csv", "file\na.wav\n");
    bed.once(0);
    assert_eq!(bed.jobs()["a.wav"]["stage"], "written", "and it does");
}

#[test]
fn a_receipt_says_that_the_window_is_closed() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "submit = { from = \"0 3 1 1 *\", for = \"1h\" }");
    bed.drop_in(0, "a.wav");
    manifests::write(&bed, "may.csv", "file\na.wav\n");
    bed.once(0);
    let row = &manifests::receipt(&bed, "may.csv.receipt.csv")[0];
    assert_eq!(bed.jobs()["a.wav"]["reason"], row["scribed_reason"].as_str());
    assert!(row["scribed_reason"].starts_with("the source's window is closed until "), "{row:?}");
    assert_eq!(row["scribed_fault"], "window");
}
