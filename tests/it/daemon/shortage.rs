//! A process without file descriptors waits, says what is short, and continues: nothing fails, no folder counts as away,
//! and nobody is asked to correct anything.

use crate::support::bed::{Bed, Running, wait_until};
use crate::support::config::Config;
use crate::support::stub::Stub;
use rustix::process::Signal;
use std::fs;
use std::process::Command;

/// What the log says of it.
const SHORT: &str = "scribed has no file descriptors left: the limit of its process is ";

/// What must not be concluded from it.
const WRONG: [&str; 6] = [
    "is not available",
    "not available for a moment",
    "cannot use a manifest",
    "until that is fixed",
    "attempt",
    "failed for good",
];

fn assert_nothing_was_concluded(log: &str) {
    assert!(log.contains(SHORT) && log.contains("LimitNOFILE="), "{log}");
    for wrong in WRONG {
        assert!(!log.contains(wrong), "{wrong}: {log}");
    }
}

/// The shortage begins after each step of a job and lasts until it was reported.
#[test]
fn a_pass_without_file_descriptors_waits_at_every_stage_and_ends_every_job() {
    std::thread::scope(|scope| {
        for place in ["admitted", "committed-settled", "committed-probed", "committed-uploaded", "committed-fetched"] {
            scope.spawn(move || {
                let stub = Stub::well();
                let bed = Config::of(&stub).inbox("").bed();
                fs::create_dir(bed.path("inbox/deep")).unwrap();
                for n in 0..3 {
                    bed.drop_in(n, format!("deep/{n}.wav"));
                    fs::write(bed.path(format!("inbox/deep/{n}.toml")), "priority = 1\n").unwrap();
                }
                let mut command = bed.command(["once", "--json"]);
                command.env("SCRIBED_STOP_AT", place);
                let pass = Running::start(command);
                pass.wait_until_suspended();
                pass.limit_descriptors(Some(1));
                pass.resume();
                wait_until("the shortage is reported", || pass.log().contains(SHORT));
                pass.limit_descriptors(None);
                let ran = pass.wait();
                assert_eq!(ran.code, 0, "{place}: {ran:?}");
                let summary = ran.last_object();
                assert_eq!((&summary["done"], &summary["failed"]), (&3.into(), &0.into()), "{place}: {ran:?}");
                assert_nothing_was_concluded(&ran.stderr);
                assert_eq!(stub.records().ids().len(), 3, "{place}: each is bought once");
                assert!(bed.jobs().values().all(|job| job["attempts"].as_u64().unwrap_or(0) == 0), "{place}");
            });
        }
    });
}

/// Folders, sidecars and manifests that appear while the daemon can open nothing are read when it can.
#[test]
fn a_daemon_without_file_descriptors_misses_nothing_and_judges_no_row() {
    let stub = Stub::well();
    let config = Config::of(&stub)
        .inbox("")
        .source("name = \"lists\"\nmanifest = \"lists/*.csv\"\nsettle = \"20ms\"\nscan = \"1s\"");
    let bed = config.bed();
    fs::create_dir(bed.path("lists")).unwrap();
    bed.drop_in(0, "first.wav");
    fs::copy(bed.path("inbox/first.wav"), bed.path("lists/of-a-row.wav")).unwrap();
    let daemon = Running::start(bed.command(["run"]));
    wait_until("the first recording is transcribed", || bed.path("inbox/first.en.srt").exists());
    daemon.limit_descriptors(Some(1));
    fs::create_dir(bed.path("inbox/new")).unwrap();
    for n in 1..4 {
        bed.drop_in(n, format!("new/{n}.wav"));
        fs::write(bed.path(format!("inbox/new/{n}.toml")), "priority = 1\n").unwrap();
    }
    fs::write(bed.path("lists/may.csv"), "file\nof-a-row.wav\n").unwrap();
    wait_until("the shortage is reported", || daemon.log().contains(SHORT));
    daemon.limit_descriptors(None);
    wait_until("all are transcribed", || {
        (1..4).all(|n| bed.path(format!("inbox/new/{n}.en.srt")).exists()) && bed.path("lists/of-a-row.en.srt").exists()
    });
    daemon.signal(Signal::TERM);
    let ran = daemon.wait();
    assert_nothing_was_concluded(&ran.stderr);
    assert_eq!(bed.once(0)["failed"], 0);
}

/// Few descriptors for many recordings at once: they are short again and again.
#[test]
fn a_pass_with_few_descriptors_ends_every_job() {
    let stub = Stub::well();
    let bed = Config::of(&stub).limits(16, 32).inbox("").bed();
    for n in 0..24 {
        bed.drop_in(n % 8, format!("{n}.wav"));
        fs::write(bed.path(format!("inbox/{n}.toml")), "priority = 1\n").unwrap();
    }
    let ran = Running::start(limited(&bed, FEW, &["once", "--json"])).wait();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.last_object()["done"], 24, "{ran:?}");
}

/// A process that cannot even start names the limit, and `check` warns of a small one.
#[test]
fn a_small_limit_of_descriptors_is_named() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("").bed();
    let ran = Running::start(limited(&bed, 12, &["once"])).wait();
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains(&format!("{SHORT}12; raise it with `ulimit -n`")), "{ran:?}");
    let warns = |limit| {
        let ran = Running::start(limited(&bed, limit, &["check"])).wait();
        ran.stdout.contains(&format!("scribed may have {limit} files open at once"))
    };
    assert_eq!([255, 256].map(warns), [true, false]);
}

/// A limit with which scribed starts, and with which not everything can be done at once.
const FEW: u64 = 48;

/// The command, with this limit of open files, which it cannot raise.
fn limited(bed: &Bed, limit: u64, arguments: &[&str]) -> Command {
    let own = bed.command(arguments);
    let mut command = Command::new("bash");
    command.args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &limit.to_string()]);
    command.arg(own.get_program()).args(own.get_args());
    command.current_dir(own.get_current_dir().unwrap());
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}
