//! `[state] keep_results`: old kept results are removed, what still depends on one keeps it, and what is lost is told. By
//! the real binary, under a wall clock that the test sets.

use crate::support::bed::{Bed, Ran, Running, files, wait_until};
use crate::support::config::Config;
use crate::support::manifests::write;
use crate::support::stub::Stub;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const KEPT_A_YEAR: &str = "[state]\nkeep_results = \"365d\"";

/// Runs a command with the wall clock set forward by so many days.
fn run_at(bed: &Bed, days: i64, arguments: &[&str]) -> Ran {
    Running::start(command_at(bed, days, arguments)).wait()
}

fn command_at(bed: &Bed, days: i64, arguments: &[&str]) -> std::process::Command {
    fs::write(bed.path("wall"), (days * 24 * 3_600_000).to_string()).unwrap();
    let mut command = bed.command(arguments);
    command.env("SCRIBED_TEST_WALL", bed.path("wall"));
    command
}

fn once_at(bed: &Bed, days: i64) {
    let ran = run_at(bed, days, &["once"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

fn results(bed: &Bed) -> Vec<PathBuf> {
    let mut results = files(&bed.path("state/results"));
    results.retain(|file| file.extension() == Some(OsStr::new("gz")));
    results
}

/// The job of a recording.
fn show(bed: &Bed, name: &str) -> Value {
    let ran = bed.run(["show", "--json", &format!("inbox/{name}")]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.last_object()
}

/// An old recording; another one, of which there is a young copy; and a young one.
fn bed_with_old_results(stub: &Stub) -> (Bed, Config) {
    let config = Config::of(stub).inbox("outputs = [\"txt\"]");
    let bed = config.bed();
    write(&bed, "old.wav", "old");
    write(&bed, "shared.wav", "the same");
    once_at(&bed, -1_000);
    write(&bed, "copy.wav", "the same");
    write(&bed, "young.wav", "young");
    once_at(&bed, 0);
    assert_eq!((results(&bed).len(), stub.records().creates.len()), (3, 3));
    (bed, config.section(KEPT_A_YEAR))
}

#[test]
fn an_old_result_that_no_job_needs_is_removed_and_everything_says_so() {
    let stub = Stub::well();
    let (bed, config) = bed_with_old_results(&stub);
    let [old, shared, young] = ["old.wav", "shared.wav", "young.wav"].map(|name| show(&bed, name));
    let is_kept = |job: &Value| {
        let id = format!("{}.json.gz", job["transcription_id"].as_str().unwrap());
        results(&bed).iter().any(|file| file.file_name() == Some(OsStr::new(&id)))
    };
    assert!(is_kept(&old) && old["result_removed"].is_null(), "{old}");
    bed.configure(&config);
    for file in results(&bed) {
        let stored = SystemTime::now() - Duration::from_secs(400 * 24 * 3600);
        fs::File::options().append(true).open(file).unwrap().set_modified(stored).unwrap();
    }
    let size = bed.run(["state", "size", "--json"]).last_object();
    assert_eq!(size["old_results"]["files"], 3, "{size}");
    assert!(bed.run(["state", "size"]).stdout.contains("3 kept results ("));

    once_at(&bed, 0);
    assert_eq!([&old, &shared, &young].map(is_kept), [false, true, true]);
    let checked = bed.run(["state", "check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let shown = show(&bed, "old.wav");
    assert!(shown["result_removed"].as_str().is_some_and(|at| at.starts_with("20")), "{shown}");
    assert_eq!(shown["stage"], "written");
    let said = bed.run(["show", "inbox/old.wav"]).stdout;
    assert!(said.contains("result   removed on 20") && said.contains("`keep_results`"), "{said}");
    assert_eq!(bed.run(["search", "old.wav"]).code, 0, "the index has the text until it is built again");
    assert_eq!(bed.run(["search", "--rebuild"]).code, 0);
    assert_eq!(["old.wav", "young.wav"].map(|word| bed.run(["search", word]).code), [1, 0]);

    // With another format each job has to be rendered again.
    let formats = config.to_string().replace("[\"txt\"]", "[\"txt\", \"srt\"]");
    bed.configure(&formats);
    let rendered = bed.run(["render", "--json"]).objects();
    let of = |name: &str| rendered.iter().find(|job| job["path"] == name).unwrap_or(&Value::Null).clone();
    let problem = of("old.wav")["problem"].as_str().unwrap_or_default().to_owned();
    assert!(problem.contains("its kept result was removed on 20"), "{rendered:?}");
    assert_eq!(of("old.wav")["result_removed"], json!(true));
    assert!(of("young.wav")["problem"].is_null() && bed.path("inbox/young.en.srt").exists(), "{rendered:?}");
    assert!(bed.path("inbox/old.en.txt").exists() && !bed.path("inbox/old.en.srt").exists());
}

#[test]
fn a_removed_result_is_read_from_the_service_again_and_never_bought_again() {
    for has_it in [true, false] {
        let stub = Stub::well();
        let (bed, config) = bed_with_old_results(&stub);
        bed.configure(&config);
        once_at(&bed, 0);
        assert_eq!(results(&bed).len(), 2);
        if !has_it {
            stub.records().lose("old.wav");
        }
        fs::remove_file(bed.path("inbox/old.en.txt")).unwrap();
        let verified = bed.run(["verify", "--repair"]);
        assert_eq!(verified.stdout.contains("its kept result was removed on 20"), !has_it, "{verified:?}");
        assert_eq!(bed.path("inbox/old.en.txt").exists(), has_it);
        write(&bed, "later.wav", "old");
        bed.once(i32::from(!has_it));
        let later = show(&bed, "later.wav");
        let why = later["reason"].as_str().unwrap();
        assert_eq!(why.contains("its kept result was removed on 20"), !has_it, "{later}");
        assert_eq!((results(&bed).len(), stub.records().creates.len()), (2 + usize::from(has_it), 3), "{later}");
    }
}

#[test]
fn a_pass_that_is_killed_goes_on_the_next_time() {
    let stub = Stub::well();
    let (bed, config) = bed_with_old_results(&stub);
    bed.configure(&config);
    let mut command = command_at(&bed, 0, &["once"]);
    command.env("SCRIBED_CRASH_AT", "removal-recorded");
    assert_eq!(Running::start(command).wait().code, -9);
    assert_eq!(results(&bed).len(), 3, "it is recorded, and still there");
    assert!(show(&bed, "old.wav")["result_removed"].is_null(), "what is there is used");
    assert_eq!(bed.run(["state", "check"]).code, 0);
    once_at(&bed, 0);
    assert_eq!(results(&bed).len(), 2);
    assert_eq!(bed.run(["state", "check"]).code, 0);
    assert_eq!(stub.records().creates.len(), 3);
}

#[test]
fn a_daemon_removes_old_results_and_a_clock_that_is_ahead_removes_no_others() {
    let stub = Stub::well();
    let (bed, config) = bed_with_old_results(&stub);
    bed.configure(&config);
    let daemon = Running::start(command_at(&bed, 0, &["run"]));
    wait_until("the old result is removed", || bed.path("state/last-retention.json").exists());
    assert_eq!(results(&bed).len(), 2);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code, 0);
    once_at(&bed, 4_000);
    assert_eq!(results(&bed).len(), 2, "the clock is ahead by ten years");
    once_at(&bed, 0);
    assert_eq!(results(&bed).len(), 2);
}
