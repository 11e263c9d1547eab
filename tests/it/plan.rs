//! `scribed plan` and `scribed explain`, by the real binary: they tell, and change nothing.

use crate::support::bed::{Bed, QUICK, Running, eventually, ffmpeg, files};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Every file with its bytes and when it was written.
fn contents(folder: &Path) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let read = |path: PathBuf| {
        let written = path.metadata().unwrap().modified().unwrap();
        let bytes = fs::read(&path).unwrap();
        (path, (written, bytes))
    };
    files(folder).into_iter().map(read).collect()
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
    assert!(!bed.path("state").exists(), "no queue is made");
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

    let running = daemon(&bed);
    eventually("the daemon knows them all", || plan(&bed)["done"] == 4);
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, 0);
    fs::remove_dir_all(bed.path("inbox")).unwrap();
    let away = bed.run(["plan"]);
    assert!(away.code == 1 && away.stdout.contains("is not there"), "{away:?}");
}

fn daemon(bed: &Bed) -> Running {
    let running = Running::start(bed.command(["run", "--json"]));
    running.first_line();
    running
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
    let running = daemon(&bed);
    eventually("the daemon removes what was left", || copies() == 0);
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
        ("inbox/new.wav", "taken", "no scan has seen it"),
        ("inbox/rushes/raw.wav", "passed_over", "exclude"),
        ("inbox/notes.txt", "passed_over", "include"),
        ("inbox/.hidden.wav", "passed_over", "passed over"),
        ("inbox/link.wav", "passed_over", "symbolic link"),
        ("inbox/linked/talk.wav", "passed_over", "symbolic link"),
        ("inbox/nothing.wav", "missing", "nothing is there"),
        ("outside.wav", "outside", "below no source's folder"),
        ("state/queue/db", "outside", "below no source's folder"),
    ];
    for beside in [false, true] {
        // Without files that a daemon would take: the same answers either way.
        let skip = |path: &str| beside && path == "inbox/new.wav";
        let running = beside.then(|| daemon(&bed));
        for (path, verdict, words) in expected.iter().filter(|(path, ..)| !skip(path)) {
            let ran = bed.run(["explain", "--json", path]);
            assert_eq!(ran.code, 0, "{ran:?}");
            let said = ran.last_object();
            assert_eq!(said["verdict"], *verdict, "{said}");
            assert!(said["words"].as_str().unwrap().contains(words), "{said}");
        }
        drop(running);
    }
    let said = bed.run(["explain", "inbox/talk.wav"]).stdout;
    assert!(said.contains("reason   done") && said.contains("nothing: it has ended"), "{said}");
    fs::remove_file(bed.path("inbox/talk.wav")).unwrap();
    assert!(bed.run(["explain", "inbox/talk.wav"]).stdout.contains("now      nothing is there"));
}
