//! Sources that are scanned by a cron line: by the real binary, under a wall clock that the test sets.

use crate::support::bed::{Bed, Ran, Running, wait_until};
use crate::support::config::Config;
use crate::support::stub::Stub;
use crate::support::wall::Wall;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::process::Command;

/// A folder whose source has these lines, and its wall clock.
struct Days {
    bed: Bed,
    stub: Stub,
    wall: Wall,
}

fn config(stub: &Stub, lines: &str) -> Config {
    Config::of(stub).limits(2, 20).inbox(&format!("outputs = [\"txt\"]\n{lines}"))
}

const NIGHTLY: &str = "scan = \"0 22 * * *\"";

impl Days {
    fn new(lines: &str) -> Self {
        let stub = Stub::well();
        let bed = config(&stub, lines).bed();
        Self { wall: Wall::of(&bed), bed, stub }
    }

    fn configure(&self, lines: &str) {
        self.bed.configure(&config(&self.stub, lines));
    }

    fn set(&self, moment: &str) {
        self.wall.set(moment);
    }

    fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        self.wall.command(&self.bed, arguments)
    }

    fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        let ran = Running::start(self.command(arguments)).wait();
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    }

    fn daemon(&self) -> Running {
        Running::daemon(self.command(["run", "--json"]))
    }

    fn is_written(&self, stem: &str) -> bool {
        self.bed.path(format!("inbox/{stem}.en.txt")).is_file()
    }

    fn written(&self, stem: &str) {
        wait_until(&format!("{stem} is written"), || self.is_written(stem));
    }

    /// Something comes, and is heard of: what the start has to do is done by then. What comes before the folder is
    /// watched is known by its date, which is not by the clock of this test.
    fn heard_of(&self, n: usize, stem: &str) {
        let name = format!("{stem}.wav");
        wait_until(&format!("{stem} is heard of"), || {
            self.bed.drop_in(n, &name);
            self.run(["jobs", "--json"]).objects().iter().any(|job| job["path"] == name)
        });
        self.written(stem);
    }

    fn scan(&self) -> Value {
        self.run(["status", "--json"]).last_object()["scans"][0].clone()
    }

    fn explain(&self, path: &str) -> Value {
        self.run(["explain", "--json", path]).last_object()
    }

    /// It is in the folder, and no scan has seen it.
    fn assert_waits(&self, stem: &str, until: &str) {
        let said = self.explain(&format!("inbox/{stem}.wav"));
        assert_eq!((&said["verdict"], &said["when"]), (&json!("taken"), &json!(until)), "{said}");
    }

    /// The source was scanned a first time, and no daemon runs.
    fn after_the_first_scan(self) -> Self {
        let daemon = self.daemon();
        wait_until("a scan is over", || !self.scan()["ended"].is_null());
        stop(daemon);
        self
    }
}

fn stop(daemon: Running) {
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code, 0);
}

#[test]
fn a_slot_is_run_once_over_restarts_and_what_was_missed_is_made_up_once() {
    let days = Days::new(NIGHTLY);
    days.set("2027-01-10T21:00:00Z");
    days.bed.drop_in(0, "a.wav");
    let before = days.scan();
    assert_eq!((&before["begun"], &before["next"], &before["missed"]), (&Value::Null, &Value::Null, &json!("once")));
    let daemon = days.daemon();
    days.written("a");
    stop(daemon);

    days.bed.drop_in(1, "b.wav");
    days.set("2027-01-10T21:10:00Z");
    let daemon = days.daemon();
    days.heard_of(2, "c");
    days.assert_waits("b", "2027-01-10T22:00:00.000Z");
    drop(daemon); // killed

    days.set("2027-01-12T09:00:00Z");
    let told = days.run(["status"]).stdout;
    assert!(
        told.contains("the scan of 2027-01-10 22:00 (UTC) was missed; scribed scans once when a daemon starts"),
        "{told}"
    );
    let daemon = days.daemon();
    days.written("b");
    wait_until("the scan is over", || !days.scan()["ended"].is_null());
    let scan = days.scan();
    assert!(scan["begun"].as_str().unwrap().starts_with("2027-01-12T09:00:"), "{scan}");
    assert_eq!(scan["next"], "2027-01-12T22:00:00.000Z", "{scan}");
    stop(daemon);

    days.bed.drop_in(3, "d.wav");
    days.set("2027-01-12T21:59:57Z");
    let daemon = days.daemon();
    days.written("d");
    wait_until("the scan is over", || !days.scan()["ended"].is_null());
    let begun = days.scan()["begun"].as_str().unwrap().to_owned();
    assert!(begun.as_str() >= "2027-01-12T22:00:00" && begun.as_str() < "2027-01-12T22:01", "{begun}");
    stop(daemon);
}

#[test]
fn what_comes_as_soon_as_a_daemon_runs_is_noticed_without_a_scan() {
    let days = Days::new("scan = \"0 0 1 1 *\"");
    days.bed.drop_in(0, "a.wav");
    let daemon = days.daemon();
    days.written("a");
    stop(daemon);
    days.bed.drop_in(1, "deep/b.wav");
    for n in 2..5 {
        let daemon = days.daemon();
        days.bed.drop_in(n, format!("deep/{n}.wav"));
        days.written(&format!("deep/{n}"));
        stop(daemon);
    }
    assert!(!days.is_written("deep/b"), "it came while nobody looked");
}

#[test]
fn what_was_missed_is_left_out_where_that_is_set() {
    let days = Days::new(&format!("{NIGHTLY}\nmissed = \"skip\""));
    days.set("2027-01-10T21:00:00Z");
    let days = days.after_the_first_scan();
    days.bed.drop_in(0, "a.wav");
    // An empty folder may be the place of a share: it is looked at again until something was in it.
    let daemon = days.daemon();
    days.written("a");
    stop(daemon);
    days.bed.drop_in(1, "b.wav");
    days.set("2027-01-12T09:00:00Z");
    let daemon = days.daemon();
    days.heard_of(2, "c");
    days.assert_waits("b", "2027-01-12T22:00:00.000Z");
    let told = days.run(["status"]).stdout;
    assert!(told.contains("the scan of 2027-01-10 22:00 (UTC) was missed and is skipped"), "{told}");
    stop(daemon);
}

#[test]
fn a_scan_that_was_killed_goes_on_at_the_next_start() {
    let days = Days::new(NIGHTLY);
    days.set("2027-01-10T12:00:00Z");
    for (n, name) in ["a.wav", "b.wav", "c.wav"].iter().enumerate() {
        days.bed.drop_in(n, name);
    }
    let mut command = days.command(["run"]);
    command.env("SCRIBED_CRASH_AT", "admitted:2");
    assert_eq!(Running::start(command).wait().code, -9);
    assert!(days.run(["status"]).stdout.contains("was interrupted; continues when a daemon starts"));
    let daemon = days.daemon();
    ["a", "b", "c"].iter().for_each(|stem| days.written(stem));
    assert_eq!(days.scan()["next"], "2027-01-10T22:00:00.000Z");
    stop(daemon);
}

#[test]
fn a_wall_clock_that_is_set_back_runs_no_slot_twice() {
    let days = Days::new(NIGHTLY);
    days.set("2027-01-10T21:59:50Z");
    days.bed.drop_in(0, "a.wav");
    let daemon = days.daemon();
    days.written("a");
    days.set("2027-01-10T22:00:01Z");
    stop(daemon);
    let daemon = days.daemon();
    wait_until("the slot is run", || days.scan()["next"] == "2027-01-11T22:00:00.000Z");
    days.set("2027-01-10T21:30:00Z");
    assert_eq!(days.scan()["next"], "2027-01-11T22:00:00.000Z", "while it runs");
    stop(daemon);
    // And over a restart: the slot comes a second time.
    days.bed.drop_in(1, "b.wav");
    days.set("2027-01-10T21:59:58Z");
    let daemon = days.daemon();
    days.heard_of(2, "c");
    wait_until("it is past", || days.wall.is_past("2027-01-10T22:00:02Z"));
    days.heard_of(3, "d");
    days.assert_waits("b", "2027-01-11T22:00:00.000Z");
    stop(daemon);
}

#[test]
fn another_line_does_not_fire_when_it_is_taken_up() {
    let days = Days::new(NIGHTLY);
    days.set("2027-01-10T14:00:00Z");
    days.bed.drop_in(0, "a.wav");
    let daemon = days.daemon();
    days.written("a");
    stop(daemon);
    days.bed.drop_in(1, "b.wav");
    days.set("2027-01-11T15:00:00Z");
    days.configure("scan = { at = \"0 12 * * *\", timezone = \"Europe/Paris\" }");
    // Over a start, and over a reload.
    let daemon = days.daemon();
    days.heard_of(2, "c");
    days.assert_waits("b", "2027-01-12T11:00:00.000Z");
    days.configure("scan = \"0 13 * * *\"");
    days.run(["reload"]);
    days.heard_of(3, "d");
    days.assert_waits("b", "2027-01-12T13:00:00.000Z");
    // A length of time scans at once, as it always did.
    days.configure("scan = \"1h\"");
    days.run(["reload"]);
    days.written("b");
    stop(daemon);
}

#[test]
fn a_pass_is_a_scan_that_need_not_be_made_up() {
    let days = Days::new(NIGHTLY);
    days.set("2027-01-10T14:00:00Z");
    days.bed.drop_in(0, "a.wav");
    days.run(["once"]);
    days.set("2027-01-11T09:00:00Z");
    days.run(["once"]);
    let scan = days.scan();
    assert!(scan["begun"].as_str().unwrap().starts_with("2027-01-11T09:00"), "{scan}");
    assert_eq!(scan["next"], "2027-01-11T22:00:00.000Z", "{scan}");
}

#[test]
fn what_is_scanned_by_a_length_of_time_says_when_too() {
    let days = Days::new("scan = \"30m\"");
    days.set("2027-01-10T14:00:00Z");
    days.bed.drop_in(0, "a.wav");
    let daemon = days.daemon();
    days.written("a");
    wait_until("the scan is over", || !days.scan()["next"].is_null());
    let (scan, told) = (days.scan(), days.run(["status"]).stdout);
    assert!(scan["next"].as_str().unwrap().starts_with("2027-01-10T14:3"), "{scan}");
    assert_eq!((&scan["scan"], &scan["missed"]), (&json!("30m"), &Value::Null));
    assert!(told.contains("source inbox: last scan at 2027-01-10 14:00 (UTC)"), "{told}");
    stop(daemon);
    assert!(days.run(["status"]).stdout.contains("next scan with `scribed once`, or when a daemon starts"));
    assert!(days.run(["explain", "inbox/a.wav"]).stdout.contains("last scan at 2027-01-10 14:00 (UTC)"));
}

#[test]
fn a_window_is_open_when_the_wall_says_so_also_a_second_time() {
    let days = Days::new("submit = { from = \"0 22 * * *\", for = \"1h\" }");
    let waits = |stem: &str| {
        let jobs = days.run(["jobs", "--json"]).objects();
        let job = jobs.into_iter().find(|job| job["path"] == format!("{stem}.wav"));
        job.is_some_and(|job| job["fault"]["kind"] == "window")
    };
    days.set("2027-01-10T22:58:00Z");
    days.bed.drop_in(0, "a.wav");
    let daemon = days.daemon();
    days.written("a");
    days.set("2027-01-10T23:05:00Z");
    days.bed.drop_in(1, "b.wav");
    wait_until("it waits", || waits("b"));
    assert!(!days.is_written("b"));
    // The clock was wrong: it is not eleven yet.
    days.set("2027-01-10T22:30:00Z");
    days.heard_of(2, "c");
    days.written("b");
    assert_eq!(days.stub.records().creates.len(), 3, "and nothing is bought twice");
    stop(daemon);
}
