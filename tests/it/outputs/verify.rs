//! Outputs that were deleted are noticed and written again at no cost; edited ones are reported and not changed.

use crate::support::bed::{Bed, Ran, Share};
use crate::support::config::Config;
use crate::support::stub::{Endpoint, Stub};
use rustix::process::Signal;
use std::fs;

fn bed(stub: &Stub, more: &str) -> Bed {
    Config::of(stub).inbox(more).bed()
}

/// Exit code, unchanged, edited, restored, missing.
fn counts(ran: &Ran) -> (i32, [u64; 4]) {
    let sum = ran.last_object();
    (ran.code, ["unchanged", "edited", "restored", "missing"].map(|key| sum[key].as_u64().unwrap()))
}

fn verify(bed: &Bed, arguments: &[&str]) -> (i32, [u64; 4]) {
    counts(&bed.run([&["verify", "--json"], arguments].concat()))
}

fn bought(stub: &Stub) -> usize {
    stub.records().moments(Endpoint::Create).len()
}

#[test]
fn deleted_outputs_are_noticed_and_restored_at_no_cost_and_edited_ones_left_alone() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    for n in 0..3 {
        bed.drop_in(n, format!("talk{n}.wav"));
    }
    bed.once(0);
    assert_eq!(verify(&bed, &[]), (0, [12, 0, 0, 0]));
    let before = bed.outputs();
    for name in ["talk0.en.srt", "talk0.en.json", "talk1.en.txt"] {
        fs::remove_file(bed.path("inbox").join(name)).unwrap();
    }
    fs::write(bed.path("inbox/talk2.en.txt"), "as a person heard it\n").unwrap();
    let ran = bed.run(["verify"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("talk0.en.srt: missing") && ran.stdout.contains("talk2.en.txt: edited"), "{ran:?}");
    assert_eq!(verify(&bed, &[]), (1, [8, 1, 0, 3]));
    assert_eq!(verify(&bed, &["inbox/talk1.wav"]), (1, [3, 0, 0, 1]));
    assert_eq!(
        verify(&bed, &[&bed.jobs()["talk2.wav"]["id"].to_string()]),
        (0, [3, 1, 0, 0]),
        "what a person edited is no fault"
    );
    assert_eq!(verify(&bed, &["--repair"]), (0, [8, 1, 3, 0]));
    let after = bed.outputs();
    let edited = bed.path("inbox/talk2.en.txt");
    assert!(after.iter().all(|(path, bytes)| *path == edited || before[path] == *bytes));
    assert_eq!((after.len(), fs::read(edited).unwrap()), (12, b"as a person heard it\n".to_vec()));
    assert_eq!((verify(&bed, &[]), bought(&stub)), ((0, [11, 1, 0, 0]), 3));
    bed.once(0);
    assert_eq!(bed.outputs().len(), 12);
}

#[test]
fn beside_a_daemon_and_without_the_kept_result_outputs_are_restored_too() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    for with_daemon in [false, true] {
        fs::remove_dir_all(bed.path("state/results")).unwrap();
        fs::remove_file(bed.path("inbox/talk.en.vtt")).unwrap();
        let running = with_daemon.then(|| bed.daemon());
        assert_eq!(verify(&bed, &[]), (1, [3, 0, 0, 1]));
        assert_eq!(verify(&bed, &["--repair"]), (0, [3, 0, 1, 0]), "with a daemon: {with_daemon}");
        assert!(bed.path("inbox/talk.en.vtt").exists());
        if let Some(running) = running {
            running.signal(Signal::TERM);
            assert_eq!(running.wait().code, 0);
        }
    }
    // The service does not have it any more either: that is said, and nothing is bought.
    fs::remove_dir_all(bed.path("state/results")).unwrap();
    fs::remove_file(bed.path("inbox/talk.en.vtt")).unwrap();
    stub.records().lose_all();
    let ran = bed.run(["verify", "--repair"]);
    assert!(ran.code == 1 && ran.stdout.contains("buys nothing by itself"), "{ran:?}");
    assert_eq!(bought(&stub), 1);
}

#[test]
fn what_moved_or_was_deleted_with_its_recording_is_not_missing_and_is_never_brought_back() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    bed.drop_in(0, "shelf/talk.wav");
    bed.drop_in(1, "kept.wav");
    bed.once(0);
    fs::rename(bed.path("inbox/shelf"), bed.path("inbox/moved")).unwrap();
    bed.once(0);
    // Recordings may be deleted when they are done: their outputs are what is kept of them.
    fs::remove_file(bed.path("inbox/kept.wav")).unwrap();
    fs::remove_file(bed.path("inbox/kept.en.srt")).unwrap();
    let ran = bed.run(["verify", "--repair", "--json"]);
    assert_eq!(counts(&ran), (0, [7, 0, 1, 0]), "{ran:?}");
    assert_eq!(ran.last_object()["gone"], 1, "{ran:?}");
    assert!(!bed.path("inbox/shelf").exists());
    assert!(bed.path("inbox/kept.en.srt").exists());
}

#[test]
fn a_folder_that_is_away_is_not_verified_and_nothing_is_written_into_its_mount_point() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    let share = Share::mount(&bed.path("disk"), &bed.path("inbox"));
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    share.goes();
    let ran = bed.run(["verify", "--repair", "--json"]);
    assert_eq!(counts(&ran), (1, [0, 0, 0, 0]), "{ran:?}");
    assert_eq!(ran.last_object()["problems"], 1, "{ran:?}");
    assert!(share.left_behind().is_empty());
    share.back();
    assert_eq!(verify(&bed, &[]), (0, [4, 0, 0, 0]));
}
