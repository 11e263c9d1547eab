//! A person saves an output in the moment in which scribed replaces it: the save is never lost, also where
//! scribed is killed in the middle.

use crate::support::bed::{Bed, Running};
use crate::support::config::Config;
use crate::support::manifests::{self, receipt, states};
use crate::support::stub::Stub;
use std::fs;
use std::path::Path;

const SAVED: &str = "WEBVTT\n\n1\n00:00:00.000 --> 00:00:01.000\nas a person has corrected it\n";

/// How an editor saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Save {
    /// Truncates the file and writes into it.
    InPlace,
    /// Writes another file and renames it over the first.
    ByRename,
}

impl Save {
    fn save(self, file: &Path, text: &str) {
        match self {
            Self::InPlace => fs::write(file, text).unwrap(),
            Self::ByRename => {
                let beside = file.with_extension("editor");
                fs::write(&beside, text).unwrap();
                fs::rename(beside, file).unwrap();
            }
        }
    }
}

/// A recording that is written, and has other content since: its `.vtt` is about to be replaced.
fn changed(stub: &Stub, folder: &Path) -> Bed {
    let bed = Bed::on(folder, &Config::of(stub).inbox("hold = \"0s\"\noutputs = [\"vtt\"]"));
    fs::write(bed.path("inbox/talk.wav"), "one").unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    fs::write(bed.path("inbox/talk.wav"), "another").unwrap();
    bed
}

/// A pass that stands still at `stops`, while `meanwhile` happens, and is killed at `dies`.
fn pass(bed: &Bed, stops: &str, meanwhile: impl FnOnce(), dies: Option<&str>) -> i32 {
    let mut command = bed.command(["once", "--json"]);
    command.env("SCRIBED_STOP_AT", stops);
    if let Some(place) = dies {
        command.env("SCRIBED_CRASH_AT", place);
    }
    let running = Running::start(command);
    running.wait_until_suspended();
    meanwhile();
    running.resume();
    running.wait().code
}

fn assert_both_are_there(bed: &Bed) {
    let at = |name: &str| fs::read_to_string(bed.path("inbox").join(name)).unwrap_or_default();
    assert_eq!(at("talk.en.vtt"), SAVED);
    assert!(at("talk.wav.en.vtt").contains("What was said in talk.wav."), "{:?}", bed.outputs().keys());
    assert_eq!(bed.jobs()["talk.wav"]["stage"], "written");
    assert_eq!(bed.temporaries(), Vec::<std::path::PathBuf>::new());
    assert_eq!(fs::read_dir(bed.path("inbox")).unwrap().count(), 4, "the marker, the recording, and both");
}

#[test]
fn a_save_between_the_check_and_the_exchange_is_put_back() {
    for folder in [std::env::temp_dir().as_path(), Path::new("/dev/shm")] {
        for save in [Save::InPlace, Save::ByRename] {
            let stub = Stub::well();
            let bed = changed(&stub, folder);
            let file = bed.path("inbox/talk.en.vtt");
            assert_eq!(pass(&bed, "replacing", || save.save(&file, SAVED), None), 0, "{save:?}");
            assert_both_are_there(&bed);
        }
    }
}

#[test]
fn killed_after_the_exchange_a_save_is_put_back_by_the_next_pass() {
    for save in [Save::InPlace, Save::ByRename] {
        let stub = Stub::well();
        let bed = changed(&stub, &std::env::temp_dir());
        let file = bed.path("inbox/talk.en.vtt");
        assert_eq!(pass(&bed, "replacing", || save.save(&file, SAVED), Some("replaced")), -9, "{save:?}");
        bed.once(0);
        assert_both_are_there(&bed);
        assert_eq!(stub.records().creates.len(), 2);
    }
}

#[test]
fn killed_around_an_exchange_there_is_one_whole_output() {
    for place in ["replacing", "replaced", "output-named", "names-synced"] {
        let stub = Stub::well();
        let bed = changed(&stub, &std::env::temp_dir());
        let before = fs::read(bed.path("inbox/talk.en.vtt")).unwrap();
        let mut command = bed.command(["once"]);
        command.env("SCRIBED_CRASH_AT", place);
        assert_eq!(Running::start(command).wait().code, -9, "{place}");
        bed.once(0);
        assert_eq!(bed.outputs().len(), 1, "{place}: {:?}", bed.outputs().keys());
        assert_ne!(fs::read(bed.path("inbox/talk.en.vtt")).unwrap(), before, "{place}");
        assert_eq!(bed.temporaries(), Vec::<std::path::PathBuf>::new(), "{place}");
        assert_eq!(stub.records().creates.len(), 2, "{place}");
    }
}

/// What was swapped out belongs to nobody any more where its place was taken meanwhile: it is kept where
/// people see it.
#[test]
fn a_save_whose_place_was_taken_meanwhile_is_kept_under_a_visible_name() {
    let stub = Stub::well();
    let bed = changed(&stub, &std::env::temp_dir());
    let file = bed.path("inbox/talk.en.vtt");
    assert_eq!(pass(&bed, "replacing", || Save::InPlace.save(&file, SAVED), Some("replaced")), -9);
    let later = SAVED.replace("corrected", "corrected once more");
    Save::ByRename.save(&file, &later);
    let ran = bed.run(["once", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), later);
    assert_eq!(fs::read_to_string(bed.path("inbox/talk.en.vtt.recovered")).unwrap(), SAVED);
    assert!(ran.stderr.contains("talk.en.vtt.recovered"), "{ran:?}");
    assert_eq!(bed.temporaries(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_receipt_that_a_person_saves_meanwhile_stays_theirs() {
    for dies in [None, Some("replaced")] {
        let stub = Stub::well();
        let bed = manifests::bed(&stub, "");
        manifests::write(&bed, "a.wav", "a");
        manifests::write(&bed, "list.csv", "file\na.wav\nlate.wav\n");
        bed.once(0);
        manifests::write(&bed, "late.wav", "late");
        let file = bed.path("inbox/list.csv.receipt.csv");
        let noted = format!("{}seen by me", fs::read_to_string(&file).unwrap());
        let code = pass(&bed, "replacing", || Save::ByRename.save(&file, &noted), dies);
        assert_eq!(code, if dies.is_some() { -9 } else { 0 });
        bed.once(0);
        assert_eq!(fs::read_to_string(&file).unwrap(), noted, "{dies:?}");
        assert_eq!(states(&receipt(&bed, "list.csv.receipt.2.csv")), ["written", "written"], "{dies:?}");
        assert_eq!(bed.temporaries(), Vec::<std::path::PathBuf>::new(), "{dies:?}");
    }
}
