//! A folder that is renamed, or goes away, while its recordings are transcribed: its jobs end by themselves, nothing is
//! lost, and what was bought is written at the new path at no cost. A share that is not mounted is no such folder.

use crate::support::bed::{Bed, Ran, Running, Share, ffmpeg, set_mode, speech_piece};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub};
use scribed::testing::crash_points::Point;
use scribed::testing::domain::stage::StageKind;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Does something to this machine right before the service delivers its first result. It delivers none before so many
/// transcriptions are bought.
fn before_results(stub: &Stub, creates: usize, act: impl FnOnce() + Send + 'static) {
    let mut act = Some(act);
    stub.set(move |request, records| {
        if request.endpoint != Endpoint::Read {
            return Act::Well;
        }
        if records.creates.iter().filter(|create| create.accepted).count() < creates {
            return Act::still_running();
        }
        act.take().into_iter().for_each(|act| act());
        Act::Well
    });
}

fn bed(stub: &Stub, more: &str) -> Bed {
    Config::of(stub).inbox(more).bed()
}

fn bought(stub: &Stub) -> usize {
    stub.records().moments(Endpoint::Create).len()
}

fn rename(bed: &Bed, from: &str, to: &str) -> impl FnOnce() + Send + use<> {
    let (from, to) = (bed.path("inbox").join(from), bed.path("inbox").join(to));
    move || fs::rename(from, to).unwrap()
}

fn reason(job: &Value) -> &str {
    job["reason"].as_str().unwrap()
}

/// What the outputs of a recording are called, with its own name.
fn with_outputs(name: &str) -> Vec<String> {
    let mut names: Vec<String> = ["json", "srt", "txt", "vtt"].map(|ending| format!("{name}.en.{ending}")).into();
    names.push(format!("{name}.wav"));
    names
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.filter(|name| name != ".scribed").collect();
    names.sort();
    names
}

#[test]
fn a_folder_that_is_renamed_while_it_is_transcribed_is_written_at_its_new_path_and_its_old_jobs_end() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    let talks: Vec<String> = (0..3).map(|n| format!("talk{n}")).collect();
    for (n, talk) in talks.iter().enumerate() {
        bed.drop_in(n, format!("old/{talk}.wav"));
    }
    before_results(&stub, 3, rename(&bed, "old", "new"));
    assert_eq!(bed.once(0)["skipped"], 3, "the pass that meets it does not fail");
    let ended = bed.jobs();
    for job in ended.values() {
        assert_eq!((&job["stage"], &job["attempts"]), (&json!("skipped"), &json!(0)), "{job}");
        assert!(reason(job).contains("keeps the result"), "{job}");
    }
    assert_eq!(bed.once(0)["done"], 3);
    let jobs = bed.jobs();
    assert_eq!(jobs.len(), 6, "{:?}", jobs.keys());
    assert_eq!(names(&bed.path("inbox/new")), talks.iter().flat_map(|talk| with_outputs(talk)).collect::<Vec<_>>());
    assert!(!bed.path("inbox/old").exists(), "nothing brings the old folder back");
    assert_eq!((bought(&stub), stub.records().moments(Endpoint::Upload).len()), (3, 3));
    assert_eq!(bed.once(0)["done"], 0);
    assert_eq!(bed.run(["status", "--check"]).code, 0);

    let id = jobs["old/talk0.wav"]["id"].to_string();
    let shown = bed.run(["show", &id]);
    assert!(shown.stdout.contains("inbox/new/talk0.wav") && shown.stdout.contains("its new path"), "{shown:?}");
    let old = bed.path("inbox/old/talk0.wav");
    let explained = bed.run([Path::new("explain"), &old]);
    assert!(explained.stdout.contains("moved, renamed or removed after it was sent"), "{explained:?}");
    let retried = bed.run(["retry", &id]);
    assert!(retried.stderr.contains("until its file is back"), "{retried:?}");
    let forgotten = bed.run(["forget", "--vanished", "--json"]);
    assert_eq!((forgotten.code, bed.jobs().len()), (0, 3), "{forgotten:?}");
}

#[test]
fn a_folder_that_comes_back_is_written_from_the_kept_result_whatever_the_template_says_by_then() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    bed.drop_in(0, "old/talk.wav");
    before_results(&stub, 1, rename(&bed, "old", ".away"));
    bed.once(0);
    assert_eq!(bed.jobs()["old/talk.wav"]["stage"], "skipped");
    stub.set(|request, _| match request.endpoint {
        Endpoint::Read => Act::Say(crate::support::stub::refusal(404, "it was deleted")),
        _ => Act::Well,
    });
    bed.configure(&Config::of(&stub).inbox("language = \"de\""));
    rename(&bed, ".away", "old")();
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(names(&bed.path("inbox/old")), with_outputs("talk"));
    assert_eq!((bought(&stub), bed.jobs().len()), (1, 1));
}

/// In the folder of its job, the result is written although the recording itself is gone.
#[test]
fn a_recording_that_goes_alone_is_written_where_it_was() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    let talk = bed.drop_in(0, "old/talk.wav");
    bed.drop_in(1, "old/other.wav");
    before_results(&stub, 2, move || fs::remove_file(talk).unwrap());
    assert_eq!(bed.once(0)["done"], 2);
    assert!(bed.path("inbox/old/talk.en.srt").exists());
}

#[test]
fn outputs_that_go_elsewhere_are_written_although_the_folder_of_the_recording_was_renamed() {
    let stub = Stub::well();
    let bed = bed(&stub, "place = \"out\"");
    bed.drop_in(0, "old/talk.wav");
    before_results(&stub, 1, rename(&bed, "old", "new"));
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(bed.once(0)["done"], 1);
    let outputs = &with_outputs("talk")[..4];
    assert_eq!((names(&bed.path("out/old")).as_slice(), names(&bed.path("out/new")).as_slice()), (outputs, outputs));
    assert_eq!(bought(&stub), 1);
}

/// The share is below the source's folder: the marker is there, and all of the recordings look deleted.
#[test]
fn a_share_below_the_folder_that_is_not_mounted_any_more_ends_nothing_and_gets_no_file() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    fs::create_dir(bed.path("inbox/share")).unwrap();
    let share = Share::mount(&bed.path("disk"), &bed.path("inbox/share"));
    for (n, name) in ["share/talk.wav", "share/day/talk.wav", "local/talk.wav"].into_iter().enumerate() {
        bed.drop_in(n, name);
    }
    let at = bed.path("inbox/share");
    let goes = move || assert!(std::process::Command::new("umount").arg("--lazy").arg(at).status().unwrap().success());
    before_results(&stub, 3, goes);
    assert_eq!(bed.once(1)["waiting"], 2);
    let waits = |bed: &Bed| {
        let jobs = bed.jobs();
        for path in ["share/talk.wav", "share/day/talk.wav"] {
            assert_eq!((&jobs[path]["stage"], &jobs[path]["attempts"]), (&json!("fetched"), &json!(0)), "{jobs:?}");
            assert!(reason(&jobs[path]).contains("is not mounted now"), "{}", jobs[path]);
        }
        assert_eq!(jobs["local/talk.wav"]["stage"], "written");
    };
    waits(&bed);
    // The next process knows of the share, too, and stray files in the mount point make no difference.
    fs::write(bed.path("inbox/share/stray.txt"), "stray").unwrap();
    assert_eq!(bed.once(1)["waiting"], 2);
    waits(&bed);
    assert_eq!(share.left_behind(), [bed.path("inbox/share/stray.txt")]);
    let forgotten = bed.run(["forget", "--vanished", "--json"]);
    assert_eq!(bed.jobs().len(), 3, "{forgotten:?}");
    share.back();
    assert_eq!(bed.once(0)["done"], 2);
    assert_eq!(names(&bed.path("disk/day")), with_outputs("talk"));
    assert_eq!(bought(&stub), 3);
}

#[test]
fn a_recording_below_a_share_that_goes_before_it_is_sent_is_waited_for() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    fs::create_dir(bed.path("inbox/share")).unwrap();
    let share = Share::mount(&bed.path("disk"), &bed.path("inbox/share"));
    bed.drop_in(0, "share/talk.wav");
    let mut command = bed.command(["once", "--json"]);
    command.env("SCRIBED_STOP_AT", "committed-probed");
    let running = Running::start(command);
    running.wait_until_suspended();
    share.goes();
    running.resume();
    let ran = running.wait();
    assert_eq!(ran.code, 1, "{ran:?}");
    let job = &bed.jobs()["share/talk.wav"];
    assert_eq!((&job["stage"], &job["attempts"]), (&json!("probed"), &json!(0)), "{job}");
    share.back();
    assert_eq!((bed.once(0)["done"].clone(), bought(&stub)), (json!(1), 1));
}

#[test]
fn without_the_marker_of_the_source_a_missing_folder_is_waited_for() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    bed.drop_in(0, "old/talk.wav");
    let (inbox, away) = (bed.path("inbox"), bed.path("away"));
    let (from, to) = (inbox.clone(), away.clone());
    before_results(&stub, 1, move || {
        fs::rename(&from, to).unwrap();
        fs::create_dir(from).unwrap();
    });
    bed.once(1);
    assert_eq!(bed.jobs()["old/talk.wav"]["stage"], "fetched");
    assert_eq!(names(&inbox), Vec::<String>::new());
    fs::remove_dir(&inbox).unwrap();
    fs::rename(&away, &inbox).unwrap();
    assert_eq!((bed.once(0)["done"].clone(), bought(&stub)), (json!(1), 1));
}

#[test]
fn a_folder_that_cannot_be_searched_is_no_folder_that_is_gone() {
    let stub = Stub::well();
    let bed = Bed::unprivileged(&Config::of(&stub).inbox(""));
    bed.drop_in(0, "old/talk.wav");
    let old = bed.path("inbox/old");
    set_mode(&old, 0o777);
    let closed = old.clone();
    before_results(&stub, 1, move || set_mode(&closed, 0o000));
    bed.once(1);
    let job = &bed.jobs()["old/talk.wav"];
    assert_eq!(job["stage"], "fetched", "{job}");
    assert!(reason(job).contains("permission"), "{job}");
    set_mode(&old, 0o777);
    assert_eq!((bed.once(0)["done"].clone(), bought(&stub)), (json!(1), 1));
}

/// A recording of 25 s that is sent in three parts.
fn in_parts(stub: &Stub) -> Bed {
    let bed = Config::of(stub).limits(2, 4).accepts("duration = \"12s\"").inbox("").bed();
    let (speech, whole) = (bed.path("speech.wav"), bed.path("long.wav"));
    fs::write(&speech, speech_piece(0)).unwrap();
    ffmpeg(["-stream_loop", "-1", "-i", speech.to_str().unwrap(), "-t", "25"], &whole);
    fs::create_dir(bed.path("inbox/old")).unwrap();
    fs::rename(whole, bed.path("inbox/old/long.wav")).unwrap();
    bed
}

#[test]
fn parts_that_were_bought_before_their_folder_was_renamed_are_used_at_its_new_path_and_at_its_old_one() {
    for back in [false, true] {
        let stub = Stub::well();
        let bed = in_parts(&stub);
        let mut renames = Some(rename(&bed, "old", if back { ".away" } else { "new" }));
        stub.set(move |request, _| match request.endpoint {
            Endpoint::Read if request.file == "long.part-2.flac" => {
                renames.take().into_iter().for_each(|rename| rename());
                Act::Well
            }
            Endpoint::Upload => Act::Change(|answer| answer["audio_metadata"]["audio_duration"] = Value::Null),
            _ => Act::Well,
        });
        bed.once(0);
        let job = &bed.jobs()["old/long.wav"];
        assert_eq!(job["stage"], "skipped", "{job}");
        assert!(reason(job).contains("keeps the result"), "{job}");
        if back {
            rename(&bed, ".away", "old")();
        }
        assert_eq!(bed.once(0)["done"], 1, "{:?}", bed.jobs());
        let records = stub.records();
        let accepted: Vec<usize> = records.accepted().into_values().collect();
        assert_eq!(accepted, [1, 1, 1], "each part is bought once");
        drop(records);
        assert_eq!(names(&bed.path("inbox").join(if back { "old" } else { "new" })), with_outputs("long"));
    }
}

#[test]
fn what_was_kept_of_a_recording_that_is_gone_can_be_erased() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    bed.drop_in(0, "old/talk.wav");
    before_results(&stub, 1, rename(&bed, "old", ".away"));
    bed.once(0);
    let results = || crate::support::bed::files(&bed.path("state/results")).len();
    assert_eq!(results(), 1);
    let id = bed.jobs()["old/talk.wav"]["id"].to_string();
    let erased = bed.run(["erase", &id, "--yes"]);
    assert_eq!((erased.code, results()), (0, 0), "{erased:?}");
}

/// Every place at which a job can be when its folder goes: a test that is stopped there renames it.
fn places() -> Vec<Point> {
    use Point as P;
    let kinds = [
        StageKind::Settled,
        StageKind::Probed,
        StageKind::Uploaded,
        StageKind::Submitting,
        StageKind::Submitted,
        StageKind::Fetched,
    ];
    let mut places = vec![P::Admitted, P::ParamsKept, P::Uploading, P::UploadAnswered, P::Reserved, P::Intending];
    places.extend([P::Intended, P::CreateAnswered, P::ResultKept, P::Announcing, P::Announced, P::OutputBegun]);
    places.extend([P::OutputsSynced, P::OutputNamed, P::NamesSynced]);
    places.extend(kinds.into_iter().flat_map(|kind| [P::Committing(kind), P::Committed(kind)]));
    places
}

/// Runs a pass in which the folder `inbox/old` gets another name at this place.
fn once_renamed_at(bed: &Bed, place: Point) -> Ran {
    let mut command = bed.command(["once", "--json", "-vv"]);
    command.env("SCRIBED_STOP_AT", place.name());
    let mut running = Running::start(command);
    let stat = format!("/proc/{}/stat", running.pid());
    let is_stopped = || fs::read_to_string(&stat).is_ok_and(|stat| stat.rsplit(") ").next().unwrap().starts_with('T'));
    crate::support::bed::wait_until("the pass is stopped, or ends", || is_stopped() || running.has_ended());
    if !running.has_ended() {
        rename(bed, "old", "new")();
        running.resume();
    }
    running.wait()
}

/// An error of the system names its path wherever it is shown.
fn assert_no_error_without_its_path(ran: &Ran, place: &str) {
    for line in ran.stderr.lines().filter(|line| line.contains("(os error ")) {
        let words = line.split("(os error ").next().unwrap();
        assert!(words.contains("/inbox") || words.contains("/state"), "{place}: {line}");
    }
}

fn assert_renamed_at_every_place(make: impl Fn(&Stub) -> Bed, creates: usize) {
    let mut unmet = Vec::new();
    for place in places() {
        let name = place.name();
        let stub = Stub::well();
        let bed = make(&stub);
        let ran = once_renamed_at(&bed, place);
        assert_no_error_without_its_path(&ran, &name);
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        if bed.path("inbox/old").exists() {
            unmet.push(name);
            continue;
        }
        bed.once(0);
        assert_eq!(bed.once(0)["done"], 0, "{name}");
        let jobs = bed.jobs();
        for (path, job) in &jobs {
            let ends = if path.starts_with("old/") { ["skipped", "written"] } else { ["written"; 2] };
            assert!(ends.contains(&job["stage"].as_str().unwrap()), "{name}: {job}");
            assert_eq!(job["attempts"], 0, "{name}: {job}");
        }
        assert!(jobs.contains_key("new/talk.wav"), "{name}: {:?}", jobs.keys());
        assert_eq!(names(&bed.path("inbox/new")), with_outputs("talk"), "{name}");
        assert!(!bed.path("inbox/old").exists(), "{name}");
        assert_eq!(bought(&stub), creates, "{name}");
    }
    assert!(places().len() - unmet.len() >= 10, "most places are met: {unmet:?}");
}

#[test]
fn a_folder_that_is_renamed_at_any_place_of_a_job_costs_no_attempt_fails_nothing_and_is_written_once() {
    let make = |stub: &Stub| {
        let bed = bed(stub, "");
        bed.drop_in(0, "old/talk.wav");
        bed
    };
    assert_renamed_at_every_place(make, 1);
}

/// Their result is bought already: existing subtitles are looked for right before it is written, too.
#[test]
fn a_duplicate_whose_folder_is_renamed_at_any_place_costs_no_attempt_and_fails_nothing() {
    let make = |stub: &Stub| {
        let bed = bed(stub, "");
        bed.drop_in(0, "first/talk.wav");
        bed.once(0);
        bed.drop_in(0, "old/talk.wav");
        bed
    };
    assert_renamed_at_every_place(make, 1);
}

/// The template reads the tags of the file.
#[test]
fn a_folder_that_is_renamed_while_tags_and_tracks_are_read_costs_no_attempt_and_fails_nothing() {
    let make = |stub: &Stub| {
        let template = "[template.tags]\ncustom_metadata = { seconds = \"{{ media.duration }}\" }\n";
        let config = Config::of(stub).service("upload = \"audio\"").section(template);
        let bed = config.inbox("template = \"tags\"").bed();
        bed.drop_in(0, "old/talk.wav");
        bed
    };
    assert_renamed_at_every_place(make, 1);
}

/// Removing is as renaming, where nothing is found at another path.
#[test]
fn a_folder_that_is_removed_while_it_is_transcribed_ends_its_jobs_and_keeps_what_was_bought() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    let talk: PathBuf = bed.drop_in(0, "old/talk.wav");
    let folder = talk.parent().unwrap().to_owned();
    before_results(&stub, 1, move || fs::remove_dir_all(folder).unwrap());
    assert_eq!(bed.once(0)["skipped"], 1);
    bed.drop_in(0, "elsewhere/speech.wav");
    assert_eq!((bed.once(0)["done"].clone(), bought(&stub)), (json!(1), 1));
    assert_eq!(stub.records().moments(Endpoint::Upload).len(), 1, "not even sent again");
}
