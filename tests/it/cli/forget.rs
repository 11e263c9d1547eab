//! Jobs of files that are gone can be forgotten; what was bought stays known, and a share that is away is no deletion.

use crate::support::bed::{Bed, Ran, Running, Share, wait_until};
use crate::support::config::Config;
use crate::support::manifests;
use crate::support::stub::{Act, Endpoint, Stub};
use rustix::process::Signal;
use std::fs;

fn config(stub: &Stub) -> Config {
    Config::of(stub).inbox("outputs = [\"txt\"]")
}

fn bed(stub: &Stub) -> Bed {
    config(stub).bed()
}

fn bought(stub: &Stub) -> usize {
    stub.records().moments(Endpoint::Create).len()
}

fn total(bed: &Bed) -> u64 {
    bed.run(["status", "--json"]).last_object()["total"].as_u64().unwrap()
}

fn forgotten(ran: &Ran) -> usize {
    ran.objects().iter().filter(|row| row["result"] == "forgotten").count()
}

#[test]
fn jobs_of_vanished_files_are_forgotten_and_their_content_is_never_bought_again() {
    let stub = Stub::well();
    let bed = bed(&stub);
    for n in 0..3 {
        bed.drop_in(n, format!("talk{n}.wav"));
    }
    bed.once(0);
    let content = fs::read(bed.path("inbox/talk0.wav")).unwrap();
    let id = bed.jobs()["talk0.wav"]["id"].to_string();
    for name in ["talk0.wav", "talk0.en.txt", "talk1.wav"] {
        fs::remove_file(bed.path("inbox").join(name)).unwrap();
    }
    let dry = bed.run(["forget", "--vanished", "--dry-run"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    assert!(
        dry.stdout.contains("talk0.wav: would be removed from the queue") && dry.stdout.contains("2 jobs would be"),
        "{dry:?}"
    );
    assert_eq!(total(&bed), 3, "nothing was changed");
    let young = bed.run(["forget", "--vanished", "--older-than", "30d", "--json"]);
    assert_eq!((young.code, forgotten(&young)), (0, 0), "{young:?}");
    let ran = bed.run(["forget", "--vanished", "--json"]);
    assert_eq!((ran.code, forgotten(&ran)), (0, 2), "{ran:?}");
    let left: Vec<String> = bed.jobs().into_keys().collect();
    assert_eq!((left, total(&bed)), (vec!["talk2.wav".to_owned()], 1));
    let shown = bed.run(["show", &id]);
    assert!(
        shown.stdout.contains("a person removed the job (`scribed forget`)"),
        "the number still tells what became of it: {shown:?}"
    );
    assert_eq!(bed.run(["forget", &id]).code, 1, "it is forgotten already");
    let cost = bed.run(["cost", "--json"]);
    assert!(cost.stdout.contains("\"bought\":3"), "what was spent is spent: {cost:?}");

    // It comes back: at its old place, and at another one; under a template that asks for something else.
    fs::write(bed.path("inbox/talk0.wav"), &content).unwrap();
    bed.once(0);
    fs::write(bed.path("inbox/again.wav"), &content).unwrap();
    bed.once(0);
    assert!(bed.path("inbox/talk0.en.txt").exists() && bed.path("inbox/again.en.txt").exists());
    assert_eq!(bought(&stub), 3, "nothing was bought again");
    assert_eq!(bed.jobs()["talk0.wav"]["stage"], "written");
    let reconciled = bed.run(["reconcile", "--json"]);
    assert_eq!(reconciled.code, 0, "what was bought for a forgotten job is no stray: {reconciled:?}");
}

#[test]
fn what_is_there_or_not_over_is_not_forgotten() {
    let stub = Stub::well();
    let bed = bed(&stub);
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    let there = bed.run(["forget", "inbox/talk.wav"]);
    assert!(there.code == 1 && there.stderr.contains("its recording exists"), "{there:?}");
    stub.set(|request, _| if request.endpoint == Endpoint::Read { Act::still_running() } else { Act::Well });
    bed.drop_in(1, "long.wav");
    let running = Running::start(bed.command(["run"]));
    wait_until("it is being transcribed", || bed.jobs().get("long.wav").is_some_and(|row| row["stage"] == "submitted"));
    fs::remove_file(bed.path("inbox/long.wav")).unwrap();
    // Beside the daemon.
    let open = bed.run(["forget", &bed.jobs()["long.wav"]["id"].to_string()]);
    assert!(open.code == 1 && open.stderr.contains("has not ended"), "{open:?}");
    let ran = bed.run(["forget", "--vanished", "--json"]);
    assert_eq!((ran.code, forgotten(&ran)), (0, 0), "{ran:?}");
    fs::remove_file(bed.path("inbox/talk.wav")).unwrap();
    let ran = bed.run(["forget", "--vanished", "--json"]);
    assert_eq!((ran.code, forgotten(&ran)), (0, 1), "{ran:?}");
    assert_eq!(bed.jobs().len(), 1);
    running.signal(Signal::TERM);
    running.wait();
    assert_eq!(bed.run(["forget"]).code, 2);
    assert_eq!(bed.run(["forget", "--vanished", "--source", "nobody"]).code, 2);
}

#[test]
fn a_share_that_is_away_is_no_deletion() {
    let stub = Stub::well();
    let bed = config(&stub).folder("other", "outputs = [\"txt\"]").bed();
    fs::create_dir_all(bed.path("inbox/below")).unwrap();
    fs::create_dir(bed.path("other")).unwrap();
    let whole = Share::mount(&bed.path("disk"), &bed.path("other"));
    let below = Share::mount(&bed.path("disk2"), &bed.path("inbox/below"));
    bed.drop_in(0, "below/a.wav");
    bed.drop_in(1, "b.wav");
    fs::rename(bed.drop_in(2, "c.wav"), bed.path("disk/c.wav")).unwrap();
    bed.once(0);
    assert_eq!(total(&bed), 3);
    whole.goes();
    below.goes();
    let ran = bed.run(["forget", "--vanished", "--json"]);
    assert_eq!((ran.code, forgotten(&ran), total(&bed)), (1, 0, 3), "{ran:?}");
    assert!(ran.stdout.contains("scribed changes nothing until it is back"), "{ran:?}");
    assert!(ran.stdout.contains("may be the mount point") || ran.stdout.contains("is not mounted now"), "{ran:?}");
    assert_eq!(bed.run(["forget", "other/c.wav"]).code, 1);
    whole.back();
    below.back();
    fs::remove_file(bed.path("other/c.wav")).unwrap();
    let ran = bed.run(["forget", "--vanished", "--json"]);
    assert_eq!((ran.code, forgotten(&ran), total(&bed)), (0, 1, 2), "{ran:?}");
}

#[test]
fn a_row_keeps_the_job_of_a_vanished_file_until_it_is_removed() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    bed.drop_in(0, "a.wav");
    bed.drop_in(1, "b.wav");
    manifests::write(&bed, "may.csv", "file\na.wav\nb.wav\n");
    bed.once(0);
    fs::remove_file(bed.path("inbox/a.wav")).unwrap();
    let kept = bed.run(["forget", "--vanished"]);
    assert!(kept.stdout.contains("row 2 of may.csv names it: remove the row"), "{kept:?}");
    manifests::write(&bed, "may.csv", "file\nb.wav\n");
    let ran = bed.run(["forget", "--vanished", "--json"]);
    assert_eq!((ran.code, forgotten(&ran)), (0, 1), "{ran:?}");
    assert_eq!(bed.jobs().into_keys().collect::<Vec<_>>(), ["b.wav"]);
}

fn job_with(bed: &Bed, end: &str) -> (String, String) {
    let jobs = bed.jobs();
    let (name, row) = jobs.iter().find(|(name, _)| name.contains(end)).unwrap_or_else(|| panic!("no {end}: {jobs:?}"));
    (name.clone(), row["id"].to_string())
}

#[test]
fn a_job_is_held_only_by_a_row_that_makes_this_job() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    bed.drop_in(0, "a.wav");
    manifests::write(&bed, "may.csv", "file,language\na.wav,en\na.wav,de\n");
    bed.once(0);
    let (other, id) = job_with(&bed, "#may.csv");
    manifests::write(&bed, "may.csv", "file,language\na.wav,en\n");
    let held = bed.run(["forget", "lists/a.wav"]);
    assert!(held.code == 1 && held.stderr.contains("row 2 of may.csv requests it"), "{held:?}");
    let ran = bed.run(["forget", &id, "--json"]);
    assert_eq!((ran.code, forgotten(&ran)), (0, 1), "{other}: {ran:?}");
    bed.once(0);
    assert_eq!(bed.jobs().into_keys().collect::<Vec<_>>(), ["a.wav"]);
    assert_eq!(bought(&stub), 2);
}

#[test]
fn a_row_with_a_job_of_its_own_keeps_it_when_the_first_job_of_its_recording_is_forgotten() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    bed.drop_in(0, "a.wav");
    manifests::write(&bed, "april.csv", "file\na.wav\n");
    bed.once(0);
    manifests::write(&bed, "may.csv", "file,language\na.wav,de\n");
    bed.once(0);
    let (name, _) = job_with(&bed, "#may.csv");
    fs::remove_file(bed.path("inbox/april.csv")).unwrap();
    let ran = bed.run(["forget", "lists/a.wav", "--json"]);
    assert_eq!((ran.code, forgotten(&ran)), (0, 1), "{ran:?}");
    manifests::write(&bed, "may.csv", "file,language,note\na.wav,de,read again\n");
    bed.once(0);
    assert_eq!(bed.jobs().into_keys().collect::<Vec<_>>(), [name]);
    assert_eq!(bought(&stub), 2);
}

#[test]
fn a_job_without_its_row_is_forgotten_though_its_recording_exists() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    bed.drop_in(0, "a.wav");
    fs::create_dir(bed.path("elsewhere")).unwrap();
    fs::rename(bed.drop_in(1, "b.wav"), bed.path("elsewhere/b.wav")).unwrap();
    manifests::write(&bed, "may.csv", "file\na.wav\n../elsewhere/b.wav\n");
    bed.once(1);
    let outside = job_with(&bed, "b.wav").1;
    assert_eq!(bed.run(["cancel", &outside]).code, 0);
    let held = bed.run(["forget", &outside]);
    assert!(held.code == 1 && held.stderr.contains("row 3 of may.csv requests it"), "{held:?}");
    manifests::write(&bed, "may.csv", "file\n");
    for wanted in [outside.as_str(), "lists/a.wav"] {
        let ran = bed.run(["forget", wanted, "--json"]);
        assert_eq!((ran.code, forgotten(&ran)), (0, 1), "{wanted}: {ran:?}");
    }
    bed.once(0);
    assert_eq!((total(&bed), bought(&stub)), (0, 1));
}
