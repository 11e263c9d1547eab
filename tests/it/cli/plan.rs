//! `scribed plan` and `scribed explain`, by the real binary: they report and change nothing.

use crate::support::bed::{Bed, QUICK, Running, ffmpeg, files, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Every file with its bytes and when it was written; without what plans keep of lengths.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let read = |path: PathBuf| {
        let written = path.metadata().unwrap().modified().unwrap();
        let bytes = fs::read(&path).unwrap();
        (path, (written, bytes))
    };
    files(folder).into_iter().filter(|path| !path.ends_with("measured")).map(read).collect()
}

fn plan(bed: &Bed) -> Value {
    let ran = bed.run(["plan", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.last_object()
}

#[test]
fn a_plan_tells_what_once_would_do_and_changes_nothing() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    bed.drop_in(1, "shelf/other.wav");
    fs::write(bed.path("inbox/empty.wav"), "").unwrap();
    fs::write(bed.path("inbox/broken.wav"), "no recording").unwrap();
    fs::write(bed.path("inbox/notes.txt"), "text").unwrap();
    fs::write(bed.path("inbox/.talk.wav.a8Xk2P"), "half").unwrap();
    let before = plan(&bed);
    assert_eq!(contents(&bed.path("state")), BTreeMap::new(), "no queue is made");
    let numbers = ["files", "new", "done", "unknown_length", "bytes"].map(|name| before[name].as_u64().unwrap());
    let bytes = 2 * fs::metadata(bed.path("inbox/talk.wav")).unwrap().len() + 12;
    assert_eq!(numbers, [3, 3, 0, 1, bytes]);
    assert_eq!(before["audio_seconds"], 2.8);
    assert_eq!(before["skipped"], json!({"the file is empty (0 bytes)": 1}));
    assert_eq!(before["passed_over"].as_object().unwrap().len(), 2, "{before}");

    fs::remove_file(bed.path("inbox/broken.wav")).unwrap();
    bed.once(0);
    bed.drop_in(2, "later.wav");
    bed.drop_in(3, "subtitled.wav");
    fs::write(bed.path("inbox/subtitled.srt"), "1\n00:00:00,000 --> 00:00:01,000\na person's own\n").unwrap();
    ffmpeg(["-i", bed.path("inbox/talk.wav").to_str().unwrap()], &bed.path("inbox/talk.flac"));
    let state = contents(&bed.path("state"));
    let after = plan(&bed);
    assert_eq!(contents(&bed.path("state")), state);
    assert_eq!((&after["files"], &after["new"], &after["done"]), (&json!(2), &json!(2), &json!(2)), "{after}");
    let skipped: Vec<_> = after["skipped"].as_object().unwrap().keys().collect();
    assert!(skipped.iter().any(|why| why.contains("subtitle")), "{after}");
    let listed = bed.run(["plan", "--list"]).stdout;
    for line in ["new             inbox/later.wav", "done            inbox/talk.wav", "would be sent: 2 files"] {
        assert!(listed.lines().any(|said| said.starts_with(line)), "{line}: {listed}");
    }

    let running = bed.daemon();
    wait_until("the daemon knows them all", || plan(&bed)["done"] == 4);
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, 0);
    fs::remove_dir_all(bed.path("inbox")).unwrap();
    let away = bed.run(["plan"]);
    assert!(away.code == 1 && away.stdout.contains("does not exist"), "{away:?}");
}

#[test]
fn a_plan_that_is_interrupted_or_was_killed_leaves_no_copy_of_the_queue() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    let copies = || {
        let names = fs::read_dir(bed.path("state")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".plan-")).count()
    };
    for n in 0..2_000 {
        fs::write(bed.path(format!("inbox/{n}.wav")), "no recording").unwrap();
    }
    for (signal, left) in [(Signal::KILL, 1), (Signal::INT, 0)] {
        let running = Running::start(bed.command(["plan", "--list", "--json"]));
        running.first_line();
        assert_eq!(copies(), 1, "what was left before is gone, and there is one of its own");
        running.signal(signal);
        running.wait();
        assert_eq!(copies(), left);
    }
    fs::create_dir(bed.path("state/.plan-left")).unwrap();
    let running = bed.daemon();
    wait_until("the daemon removes what was left", || copies() == 0);
    drop(running);
}

#[test]
fn every_path_is_explained() {
    let bed = Bed::new(&QUICK.replace("settle", "exclude = [\"rushes/**\"]\nsettle"));
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    bed.drop_in(1, "new.wav");
    bed.drop_in(1, "rushes/raw.wav");
    fs::write(bed.path("inbox/notes.txt"), "text").unwrap();
    fs::write(bed.path("inbox/.hidden.wav"), "").unwrap();
    fs::write(bed.path("outside.wav"), "").unwrap();
    fs::create_dir(bed.path("behind")).unwrap();
    fs::write(bed.path("behind/talk.wav"), "").unwrap();
    for (to, link) in [("talk.wav", "inbox/link.wav"), ("../behind", "inbox/linked"), ("inbox", "by-a-link")] {
        std::os::unix::fs::symlink(to, bed.path(link)).unwrap();
    }
    let expected = [
        ("inbox/talk.wav", "job", ""),
        ("by-a-link/talk.wav", "job", ""),
        ("behind/../inbox/talk.wav", "job", ""),
        ("inbox/new.wav", "taken", "no scan has found it"),
        ("inbox/rushes/raw.wav", "passed_over", "exclude"),
        ("inbox/notes.txt", "passed_over", "include"),
        ("inbox/.hidden.wav", "passed_over", "ignored"),
        ("inbox/link.wav", "passed_over", "symbolic link"),
        ("inbox/linked/talk.wav", "passed_over", "symbolic link"),
        ("inbox/nothing.wav", "missing", "there is no file at this path"),
        ("inbox", "taken", "the folder of a source"),
        ("by-a-link", "taken", "the folder of a source"),
        ("outside.wav", "outside", "is not below the folder of a source"),
        ("state/queue/db", "outside", "is not below the folder of a source"),
    ];
    for beside in [false, true] {
        // Without files that a daemon would take: the same answers either way.
        let skip = |path: &str| beside && path == "inbox/new.wav";
        let running = beside.then(|| bed.daemon());
        for (path, result, words) in expected.iter().filter(|(path, ..)| !skip(path)) {
            let ran = bed.run(["explain", "--json", path]);
            assert_eq!(ran.code, 0, "{ran:?}");
            let said = ran.last_object();
            assert_eq!(said["verdict"], *result, "{said}");
            assert!(said["words"].as_str().unwrap().contains(words), "{said}");
        }
        drop(running);
    }
    let said = bed.run(["explain", "inbox/talk.wav"]).stdout;
    assert!(said.contains("stage    written since") && said.contains("nothing: it has ended"), "{said}");
    fs::remove_file(bed.path("inbox/talk.wav")).unwrap();
    assert!(bed.run(["explain", "inbox/talk.wav"]).stdout.contains("why      there is no file at this path"));
}

#[test]
fn what_was_skipped_for_a_subtitle_is_planned_as_it_stands_now() {
    let bed = Bed::new(QUICK);
    for name in ["a", "b"] {
        bed.drop_in(0, format!("{name}.wav"));
        fs::write(bed.path(format!("inbox/{name}.en.srt")), "1\n00:00:00,000 --> 00:00:01,000\ntheirs\n").unwrap();
    }
    assert_eq!(bed.once(0)["skipped"], 2);
    assert_eq!(plan(&bed)["files"], 0);
    fs::remove_file(bed.path("inbox/a.en.srt")).unwrap();
    assert_eq!(plan(&bed)["files"], 1);
    assert_eq!(bed.run(["retry", "inbox/a.wav"]).code, 0);
    assert_eq!(bed.once(0)["done"], 1);
    bed.configure(&QUICK.replace("settle", "existing = \"transcribe\"\nsettle"));
    assert_eq!(plan(&bed)["twins"], 1, "its content was bought for the other");
    let said = bed.run(["explain", "inbox/b.wav"]).stdout;
    assert!(said.contains("next     the next scan continues it"), "{said}");
    assert_eq!(bed.once(0)["done"], 1);
}

/// A plan that is kept.
fn save(bed: &Bed) -> Value {
    let ran = bed.run(["plan", "--json", "--save", "today.plan"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.last_object()
}

fn once_plan(bed: &Bed, code: i32) -> Value {
    let ran = bed.run(["once", "--json", "--plan", "today.plan"]);
    assert_eq!(ran.code, code, "{ran:?}");
    ran.last_object()
}

#[test]
fn a_plan_that_is_kept_is_carried_out_and_nothing_else() {
    let bed = Bed::new(QUICK);
    for (n, name) in ["a.wav", "b.wav", "changes.wav", "goes.wav"].into_iter().enumerate() {
        bed.drop_in(n, name);
    }
    assert_eq!(save(&bed)["files"], 4);
    // It comes to the queue before the plan is carried out, and is none of its business.
    bed.drop_in(4, "later.wav");
    assert_eq!(bed.run(["pause"]).code, 0);
    assert_eq!(bed.once(1)["waiting"], 5);
    assert_eq!(bed.run(["resume"]).code, 0);
    bed.drop_in(5, "changes.wav");
    fs::remove_file(bed.path("inbox/goes.wav")).unwrap();
    bed.drop_in(6, "later still.wav");
    let done = once_plan(&bed, 1);
    assert_eq!((&done["done"], &done["left_out"]), (&json!(2), &json!(2)), "{done}");
    let left: BTreeMap<&str, &str> = done["left_out_files"].as_array().unwrap().iter().map(named).collect();
    assert!(
        left["changes.wav"].contains("changed") && left["goes.wav"].contains("does not exist any more"),
        "{left:?}"
    );
    assert_eq!(bed.store().bought(), 2, "nothing is bought that nobody planned");
    assert_eq!(bed.jobs()["later.wav"]["stage"], "probed");
    assert!(!bed.jobs().contains_key("later still.wav"), "it was not even looked for");
    bed.assert_written("a.wav");
    bed.assert_written("b.wav");
    // The rest is as if nobody had looked.
    fs::remove_file(bed.path("today.plan")).unwrap();
    assert_eq!(bed.once(0)["done"], 3);
    assert_eq!(bed.store().bought(), 5);
}

fn named(row: &Value) -> (&str, &str) {
    (row["path"].as_str().unwrap(), row["why"].as_str().unwrap())
}

#[test]
fn a_plan_of_something_else_is_refused() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    save(&bed);
    let refused = |words: &str| {
        let ran = bed.run(["once", "--plan", "today.plan"]);
        assert!(ran.code == 2 && ran.stderr.contains(words) && ran.stderr.contains("nothing was started"), "{ran:?}");
    };
    bed.configure(&format!("# A remark changes nothing.\n{QUICK}"));
    let kept = fs::read_to_string(bed.path("today.plan")).unwrap();
    bed.configure(&QUICK.replace("200ms", "300ms"));
    refused("another configuration");
    bed.configure(&format!("[state]\nstore = \"sled:elsewhere\"\n{QUICK}"));
    refused("another queue");
    bed.configure(QUICK);
    for (text, words) in [
        (kept.lines().take(2).collect::<Vec<_>>().join("\n") + "\n", "is incomplete"),
        (kept.replace("talk.wav", "tall.wav"), "was edited"),
        ("{}\n".to_owned(), "is not a plan of scribed"),
        (kept.replace("\"scribed_plan\":2", "\"scribed_plan\":3"), "newer release"),
    ] {
        fs::write(bed.path("today.plan"), text).unwrap();
        refused(words);
    }
    assert!(!bed.path("state/queue").exists());
    fs::write(bed.path("today.plan"), kept).unwrap();
    bed.configure(&format!("# A remark changes nothing.\n{QUICK}"));
    assert_eq!(once_plan(&bed, 0)["done"], 1);
    assert_eq!(bed.run(["once", "--plan", "nowhere.plan"]).code, 2);
}

#[test]
fn copies_are_taken_out_and_each_source_is_told_with_its_price() {
    let second = "[[source]]\nfolder = \"second\"\nsettle = \"200ms\"\n";
    let bed = Bed::new(&format!("[service]\nprice_per_hour = 3600\n{QUICK}{second}"));
    fs::create_dir(bed.path("second")).unwrap();
    bed.drop_in(0, "talk.wav");
    bed.drop_in(0, "shelf/copy.wav");
    bed.drop_in(1, "other.wav");
    fs::copy(bed.path("inbox/talk.wav"), bed.path("second/talk.wav")).unwrap();
    let planned = plan(&bed);
    assert_eq!((&planned["files"], &planned["twins"], &planned["new"]), (&json!(2), &json!(2), &json!(4)), "{planned}");
    assert_eq!((&planned["audio_seconds"], &planned["price"]), (&json!(2.8), &json!(2.8)), "{planned}");
    let sources = planned["sources"].as_array().unwrap();
    let of = |n: usize, what: &str| &sources[n][what];
    assert_eq!((of(0, "source"), of(0, "twins"), of(1, "twins")), (&json!("inbox"), &json!(1), &json!(1)), "{planned}");
    assert!(planned["assumed"].to_string().contains("8 positions"), "{planned}");
    assert_eq!(save(&bed)["files"], 2);
    let done = once_plan(&bed, 0);
    assert_eq!((&done["done"], bed.store().bought()), (&json!(4), 2), "{done}");
    // What was bought is known by its content, whatever is new beside it.
    fs::copy(bed.path("inbox/talk.wav"), bed.path("second/again.wav")).unwrap();
    let planned = plan(&bed);
    assert_eq!((&planned["files"], &planned["twins"]), (&json!(0), &json!(1)), "{planned}");
    let said = bed.run(["plan"]).stdout;
    assert!(said.contains("1  of these is a duplicate"), "{said}");
}

#[test]
fn the_end_is_foretold_and_what_holds_it_up() {
    let bed = Bed::new(&format!("[budget]\nday = \"2s\"\n{QUICK}"));
    for n in 0..4 {
        bed.drop_in(n, format!("{n}.wav"));
    }
    let planned = plan(&bed);
    let at = planned["finish"]["at"].as_str().unwrap();
    let today = bed.run(["plan", "--json"]).last_object()["finish"]["at"].as_str().unwrap().to_owned();
    assert_eq!(at[..10], today[..10], "the same question has the same answer");
    assert_eq!(planned["finish"]["held_up_by"], "`budget.day`", "{planned}");
    assert!(planned["assumed"].to_string().contains("needs is not known yet"), "{planned}");
    assert_eq!(bed.run(["pause", "--for", "3h"]).code, 0);
    let paused = plan(&bed);
    assert_eq!(paused["paused"], true);
    assert!(paused["finish"]["at"].as_str().unwrap() >= at, "{paused}");
    assert_eq!(bed.run(["pause"]).code, 0);
    assert_eq!(plan(&bed)["finish"]["at"], Value::Null);
    let said = bed.run(["plan"]).stdout;
    assert!(said.contains("limited by source inbox, which may not submit"), "{said}");
    assert_eq!(bed.run(["resume"]).code, 0);
    bed.configure(&QUICK.replace("settle", "submit = { from = \"0 3 1 1 *\", for = \"1h\" }\nsettle"));
    let yearly = plan(&bed)["finish"]["at"].as_str().unwrap().to_owned();
    assert!(yearly[4..].starts_with("-01-01T03:"), "on the next New Year's night, after three: {yearly}");
}

#[test]
fn what_was_measured_once_is_known_without_any_tool() {
    let bed = Bed::new(QUICK);
    ffmpeg(["-f", "lavfi", "-i", "sine=duration=2"], &bed.path("inbox/only.aac"));
    bed.drop_in(0, "talk.wav");
    let without_tools = || {
        let mut command = bed.command(["plan", "--json"]);
        command.env("PATH", bed.path("inbox"));
        Running::start(command).wait().last_object()
    };
    let told = without_tools();
    assert_eq!((&told["files"], &told["unknown_length"]), (&json!(2), &json!(1)), "a header needs no tool: {told}");
    let by_tool = plan(&bed);
    assert_eq!(by_tool["unknown_length"], 0);
    assert_eq!(without_tools()["audio_seconds"], by_tool["audio_seconds"]);
    // Another state is another file.
    ffmpeg(["-f", "lavfi", "-i", "sine=duration=3"], &bed.path("inbox/only.aac"));
    assert_eq!(without_tools()["unknown_length"], 1);
    // What is kept may be lost, or damaged.
    fs::write(bed.path("state/measured"), vec![0xAA; 100_000]).unwrap();
    assert!(plan(&bed)["audio_seconds"].as_f64().unwrap() > 4.0);
}

#[test]
fn settings_that_have_to_be_fixed_are_reported_before_anything_is_sent() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    bed.drop_in(1, "shelf/other.wav");
    fs::write(bed.path("inbox/shelf/.scribed.toml"), "track = 0\n").unwrap();
    let ran = bed.run(["plan", "--json"]);
    let planned = ran.last_object();
    assert_eq!((ran.code, &planned["files"]), (1, &json!(1)), "{ran:?}");
    let (words, count) = planned["mended_first"].as_object().unwrap().iter().next().unwrap();
    assert!(words.starts_with("shelf/.scribed.toml, line 1: `track` must be") && count == 1, "{planned}");
    let text = bed.run(["plan", "--list"]).stdout;
    assert!(text.contains("to fix before they can be sent:") && text.contains("other.wav"), "{text}");
    fs::write(bed.path("inbox/shelf/.scribed.toml"), "track = 1\n").unwrap();
    assert_eq!(plan(&bed)["files"], 2);
}

#[test]
fn a_recording_that_no_day_of_the_budget_can_pay_is_to_be_fixed_and_not_promised() {
    let bed = Bed::new(&format!("[budget]\nday = \"3s\"\n{QUICK}"));
    ffmpeg(["-f", "lavfi", "-i", "sine=duration=2"], &bed.path("inbox/short.wav"));
    ffmpeg(["-f", "lavfi", "-i", "sine=duration=9"], &bed.path("inbox/long.wav"));
    let ran = bed.run(["plan", "--json"]);
    let planned = ran.last_object();
    assert_eq!((ran.code, &planned["files"]), (1, &json!(1)), "{ran:?}");
    let (words, count) = planned["mended_first"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(
        (words.as_str(), count),
        ("longer than `budget.day` ever allows (3.0 s): raise that setting", &json!(1))
    );
    assert!(bed.run(["plan", "--list"]).stdout.contains("to be fixed     inbox/long.wav: longer than"), "{ran:?}");
    assert_eq!(bed.once(1)["waiting_for"], json!({"budget": 1}), "a pass does what the plan says");
}

#[test]
fn a_budget_of_a_run_is_foretold_in_passes() {
    let bed = Bed::new(&format!("[budget]\nrun = \"3s\"\n{QUICK}"));
    for n in 0..4 {
        bed.drop_in(n, format!("{n}.wav"));
    }
    let passes = plan(&bed)["finish"]["passes"].as_u64().unwrap();
    let told = bed.run(["plan"]).stdout;
    let words =
        format!("not all of them in one pass: `budget.run` ends each pass of `scribed once`, and about {passes}");
    assert!(passes > 1 && told.contains(&words), "{passes}: {told}");
    assert!(told.contains("; the next `scribed once`, or a daemon that is started, continues"), "{told}");
    for pass in 1..=passes {
        let left = bed.once(0)["waiting"].as_u64().unwrap();
        assert_eq!(left == 0, pass == passes, "{left} are left after pass {pass} of {passes}");
    }
}
