//! A source that has another name in `jobs.toml`: its jobs are moved if its folder is the same, and otherwise reported
//! with what to do. Nothing is stuck, nothing is lost, nothing is bought again.

use crate::support::bed::{Bed, Running, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub};
use rustix::process::Signal;
use std::fs;

fn config(stub: &Stub, name: &str, folder: &str) -> Config {
    Config::of(stub).folder(folder, &format!("name = \"{name}\"\noutputs = [\"txt\"]"))
}

fn slow(stub: &Stub) {
    stub.set(|request, _| if request.endpoint == Endpoint::Read { Act::still_running() } else { Act::Well });
}

/// One recording is written, one is at the service.
fn under_way(stub: &Stub) -> Bed {
    let bed = config(stub, "before", "inbox").bed();
    bed.drop_in(0, "done.wav");
    bed.once(0);
    slow(stub);
    bed.drop_in(1, "open.wav");
    let running = Running::start(bed.command(["run"]));
    wait_until("it is being transcribed", || bed.jobs().get("open.wav").is_some_and(|row| row["stage"] == "submitted"));
    running.signal(Signal::TERM);
    running.wait();
    bed
}

fn bought(stub: &Stub) -> usize {
    stub.records().moments(Endpoint::Create).len()
}

fn assert_all_is_written_once(bed: &Bed, stub: &Stub) {
    let jobs = bed.jobs();
    assert_eq!(jobs.len(), 2, "{jobs:?}");
    assert!(jobs.values().all(|row| row["stage"] == "written" && row["source"] == "after"), "{jobs:?}");
    let ids: Vec<u64> = jobs.values().map(|row| row["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [1, 2], "they are the same jobs");
    assert_eq!(bought(stub), 2);
    let total = bed.run(["status", "--json"]).last_object();
    assert_eq!((total["total"].as_u64(), total["removed_sources"].as_array().map(Vec::len)), (Some(2), Some(0)));
    assert_eq!(bed.run(["reconcile"]).code, 0);
}

#[test]
fn a_renamed_source_takes_its_jobs_along_at_the_next_start() {
    let stub = Stub::well();
    let bed = under_way(&stub);
    bed.configure(&config(&stub, "after", "inbox"));
    stub.set(|_, _| Act::Well);
    let checked = bed.run(["check"]);
    assert!(checked.stdout.contains("the source was called before:"), "{checked:?}");
    bed.once(0);
    assert_all_is_written_once(&bed, &stub);
    bed.once(0);
    assert_all_is_written_once(&bed, &stub);
}

#[test]
fn a_source_whose_folder_was_moved_too_is_known_again_by_its_marker() {
    let stub = Stub::well();
    let bed = under_way(&stub);
    fs::rename(bed.path("inbox"), bed.path("elsewhere")).unwrap();
    bed.configure(&config(&stub, "after", "elsewhere"));
    stub.set(|_, _| Act::Well);
    bed.once(0);
    assert_all_is_written_once(&bed, &stub);
    assert!(bed.path("elsewhere/open.en.txt").exists());
}

/// An older release has not written down which folder a source had.
#[test]
fn the_state_of_an_older_release_is_carried_over_too() {
    let stub = Stub::well();
    let bed = under_way(&stub);
    fs::remove_file(bed.path("state/sources.json")).unwrap();
    bed.configure(&config(&stub, "after", "inbox"));
    stub.set(|_, _| Act::Well);
    bed.once(0);
    assert_all_is_written_once(&bed, &stub);
}

#[test]
fn a_renamed_source_takes_its_jobs_along_while_the_daemon_runs() {
    let stub = Stub::well();
    let bed = under_way(&stub);
    let running = bed.daemon();
    bed.configure(&config(&stub, "after", "inbox"));
    let ran = bed.run(["reload"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("the source before is now called after"), "{ran:?}");
    stub.set(|_, _| Act::Well);
    wait_until("it is written", || bed.jobs()["open.wav"]["stage"] == "written");
    assert_all_is_written_once(&bed, &stub);
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, 0);
}

#[test]
fn a_crash_while_jobs_are_carried_over_loses_none_of_them() {
    let stub = Stub::well();
    let bed = under_way(&stub);
    bed.configure(&config(&stub, "after", "inbox"));
    stub.set(|_, _| Act::Well);
    for place in ["source-renaming", "source-renamed"] {
        let mut command = bed.command(["once"]);
        command.env("SCRIBED_CRASH_AT", place);
        let died = Running::start(command).wait();
        assert!(died.code < 0, "{place}: {died:?}");
    }
    bed.once(0);
    assert_all_is_written_once(&bed, &stub);
}

#[test]
fn a_source_that_is_gone_with_work_in_progress_is_named_with_what_to_do() {
    let stub = Stub::well();
    let bed = under_way(&stub);
    fs::create_dir(bed.path("other")).unwrap();
    bed.configure(&config(&stub, "other", "other"));
    stub.set(|_, _| Act::Well);
    let named = |words: &str| words.contains("no source \"before\" any more, but 1 of its jobs has not ended");
    let status = bed.run(["status"]);
    assert!(named(&status.stdout), "{status:?}");
    let checked = bed.run(["check"]);
    assert!(checked.code == 1 && named(&checked.stdout), "{checked:?}");
    let listed = bed.run(["jobs", "--source", "before", "--json"]);
    assert_eq!(listed.objects().len(), 2, "{listed:?}");
    // Beside a daemon: what is at the service is fetched.
    let running = bed.daemon();
    wait_until("it is fetched", || bed.jobs()["open.wav"]["stage"] == "fetched");
    let checked = bed.run(["check"]);
    assert!(named(&checked.stdout), "{checked:?}");
    // It comes back under a third name.
    bed.configure(&config(&stub, "after", "inbox"));
    let ran = bed.run(["reload"]);
    assert!(ran.stdout.contains("the source before is now called after"), "{ran:?}");
    wait_until("it is written", || bed.jobs()["open.wav"]["stage"] == "written");
    running.signal(Signal::TERM);
    running.wait();
    assert_all_is_written_once(&bed, &stub);
}

fn two(stub: &Stub, folders: [(&str, &str); 2]) -> String {
    let [(one, its), (other, others)] = folders;
    format!(
        "{}[[source]]\nname = \"{other}\"\nfolder = \"{others}\"\nsettle = \"20ms\"\noutputs = [\"txt\"]\n",
        config(stub, one, its)
    )
}

/// Each job with its source, by the folder that its recording lies in.
fn sources(bed: &Bed) -> Vec<(String, String)> {
    let jobs = bed.run(["jobs", "--json"]).objects();
    let mut all: Vec<_> = jobs.iter().map(|row| (row["id"].to_string(), row["source"].to_string())).collect();
    all.sort();
    all
}

#[test]
fn sources_that_swap_their_names_are_refused_and_swapped_by_a_third_name() {
    let stub = Stub::well();
    let bed = Bed::new(&two(&stub, [("a", "inbox"), ("b", "other")]));
    fs::create_dir(bed.path("other")).unwrap();
    bed.drop_in(0, "of-inbox.wav");
    fs::write(bed.path("other/of-other.wav"), crate::support::bed::speech_piece(1)).unwrap();
    bed.once(0);
    let before = sources(&bed);
    // A daemon goes on with the names that it has.
    let running = bed.daemon();
    bed.configure(&two(&stub, [("a", "other"), ("b", "inbox")]));
    let ran = bed.run(["reload"]);
    assert!(ran.code != 0 && ran.stderr.contains("To swap the names"), "{ran:?}");
    running.signal(Signal::TERM);
    running.wait();
    for arguments in [&["once"][..], &["run"], &["forget", "--vanished"], &["verify"], &["verify", "--repair"]] {
        let ran = bed.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?} {ran:?}");
        let is_told = ran.stderr.contains("the source \"a\" has the folder that the source \"b\" had");
        assert!(is_told && ran.stderr.contains("To swap the names"), "{arguments:?} {ran:?}");
    }
    let checked = bed.run(["check"]);
    assert!(checked.code == 1 && checked.stdout.contains("To swap the names"), "{checked:?}");
    assert_eq!(sources(&bed), before, "nothing was carried over");
    // As the message says.
    for folders in
        [[("c", "inbox"), ("b", "other")], [("c", "inbox"), ("a", "other")], [("b", "inbox"), ("a", "other")]]
    {
        bed.configure(&two(&stub, folders));
        bed.once(0);
    }
    let jobs = bed.jobs();
    assert_eq!(
        (jobs["of-inbox.wav"]["source"].as_str(), jobs["of-other.wav"]["source"].as_str()),
        (Some("b"), Some("a"))
    );
    assert_eq!((jobs.len(), bought(&stub)), (2, 2), "{jobs:?}");
}

#[test]
fn a_plan_from_before_a_source_was_renamed_names_it_and_what_to_do() {
    let stub = Stub::well();
    let bed = config(&stub, "before", "inbox").bed();
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.run(["plan", "--save", "old.plan"]).code, 0);
    bed.configure(&config(&stub, "after", "inbox"));
    let ran = bed.run(["once", "--plan", "old.plan"]);
    assert_eq!((ran.code, bought(&stub)), (2, 0), "{ran:?}");
    for words in
        ["has files of \"before\"", "no source with that name any more", "scribed plan --save", "nothing was started"]
    {
        assert!(ran.stderr.contains(words), "{words} is not in {ran:?}");
    }
    assert_eq!(bed.run(["plan", "--save", "new.plan"]).code, 0);
    let ran = bed.run(["once", "--plan", "new.plan"]);
    assert_eq!((ran.code, bought(&stub)), (0, 1), "{ran:?}");
}

/// What was bought is still awaited and kept.
#[test]
fn what_was_bought_for_a_source_that_is_gone_is_kept_and_holds_up_no_other() {
    let stub = Stub::well();
    slow(&stub);
    let config =
        |name: &str, folder: &str| Config::of(&stub).limits(1, 1).folder(folder, &format!("name = \"{name}\""));
    let bed = config("before", "inbox").bed();
    fs::write(bed.path("inbox/a.wav"), b"one").unwrap();
    let running = Running::start(bed.command(["once"]));
    wait_until("it is being transcribed", || !stub.records().moments(Endpoint::Read).is_empty());
    running.signal(Signal::TERM);
    running.wait();

    // Its name is another one now, and so is its folder; only one transcription may run at a time.
    fs::create_dir(bed.path("other")).unwrap();
    fs::write(bed.path("other/b.wav"), b"two").unwrap();
    bed.configure(&config("after", "other"));
    stub.set(|_, _| Act::Well);
    wait_until("the other one is done", || bed.run(["once"]).code != 3 && bed.jobs()["b.wav"]["stage"] == "written");
    let row = &bed.jobs()["a.wav"];
    assert_eq!(row["stage"], "fetched", "{row}");
    assert!(row["reason"].as_str().unwrap().contains("jobs.toml has no source named"), "{row}");
}
