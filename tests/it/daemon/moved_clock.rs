//! The wall clock is moved while a daemon runs: back by a day, ahead by a year, into the night in which 02:30 comes twice,
//! and into the night in which it never comes. By the real binary; a release build with the feature `test-clock` has to
//! pass too.

use crate::daemon::budget::tone;
use crate::support::bed::{Bed, Ran, Running, files, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Endpoint, Stub};
use crate::support::wall::{Wall, parse};
use chrono::TimeDelta;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// A folder, a service, and the wall clock that both sides of a test see.
struct Moved {
    bed: Bed,
    stub: Stub,
    wall: Wall,
}

impl Moved {
    fn new(stub: Stub, build: impl FnOnce(Config) -> Config) -> Self {
        let bed = build(Config::of(&stub).limits(2, 20)).bed();
        Self { wall: Wall::of(&bed), bed, stub }
    }

    /// A source that is scanned by this cron line, in Paris.
    fn scanned_at(line: &str) -> Self {
        let scan = format!("outputs = [\"txt\"]\nscan = {{ at = \"{line}\", timezone = \"Europe/Paris\" }}");
        Self::new(Stub::well(), |config| config.inbox(&scan))
    }

    /// A source that buys one recording of [`Moved::record`] a day, by the days of this zone.
    fn one_a_day(stub: Stub, zone: &str) -> Self {
        let budget = format!("[budget]\nday = \"2s\"\ntimezone = \"{zone}\"");
        Self::new(stub, |config| config.section(&budget).inbox("outputs = [\"txt\"]"))
    }

    fn daemon(&self) -> Running {
        Running::daemon(self.wall.command(&self.bed, ["run", "--json"]))
    }

    fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        let ran = Running::start(self.wall.command(&self.bed, arguments)).wait();
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    }

    fn jobs(&self) -> BTreeMap<String, Value> {
        let rows = self.run(["jobs", "--json"]).objects();
        rows.into_iter().map(|row| (row["path"].as_str().unwrap().to_owned(), row)).collect()
    }

    /// Puts a recording of 1.5 s into the folder; each number is another content.
    fn record(&self, number: u32) {
        tone(&self.bed.path(format!("inbox/{number}.wav")), number, 1_500, 1);
    }

    /// Puts a recording into the folder whose sound nobody can check: its result raises no doubts, and may be removed.
    fn record_words(&self, number: u32) {
        fs::write(self.bed.path(format!("inbox/{number}.wav")), format!("the words of recording {number}")).unwrap();
    }

    fn is_written(&self, number: u32) -> bool {
        self.bed.path(format!("inbox/{number}.en.txt")).is_file()
    }

    fn wait_until_written(&self, number: u32) {
        wait_until(&format!("recording {number} is written"), || self.is_written(number));
    }

    /// Waits until all these jobs wait for this reason until this moment.
    fn wait_until_waiting(&self, numbers: &[u32], kind: &str, due: &str) {
        wait_until(&format!("{numbers:?} wait for the {kind} until {due}"), || {
            let jobs = self.jobs();
            numbers.iter().all(|number| {
                jobs.get(&format!("{number}.wav")).is_some_and(|job| job["fault"]["kind"] == kind && job["due"] == due)
            })
        });
    }

    /// Puts a recording into the watched folder and waits until it is a job. The daemon then looks at the clock again: it
    /// would otherwise notice a move within a minute.
    fn notice(&self, number: u32) {
        self.record(number);
        let name = format!("{number}.wav");
        wait_until(&format!("recording {number} is noticed"), || self.jobs().contains_key(&name));
    }

    fn scan(&self) -> Value {
        self.run(["status", "--json"]).last_object()["scans"][0].clone()
    }

    /// Waits until a scan that began at this moment, or after it, is over; returns when the next one is due.
    fn wait_until_scanned(&self, moment: &str) -> Value {
        let mut next = Value::Null;
        wait_until(&format!("the scan of {moment} is over"), || {
            let scan = self.scan();
            next = scan["next"].clone();
            let is_begun = scan["begun"].as_str().is_some_and(|begun| parse(begun) >= parse(moment));
            is_begun && !scan["ended"].is_null()
        });
        next
    }

    fn accepted(&self) -> usize {
        self.stub.records().accepted().values().sum()
    }

    /// Waits until this many recordings were bought. The last one was bought at this moment or after it.
    fn wait_until_bought(&self, number: usize, moment: &str) {
        wait_until(&format!("{number} recordings are bought"), || self.accepted() >= number);
        let last = *self.stub.records().moments(Endpoint::Create).last().unwrap();
        assert!(self.wall.at(last) >= parse(moment), "bought at {}, before {moment}", self.wall.at(last));
        assert_eq!(self.accepted(), number);
    }

    fn wait_until_past(&self, moment: &str) {
        wait_until(&format!("the clock shows {moment}"), || self.wall.is_past(moment));
    }
}

fn stop(daemon: Running) {
    daemon.signal(Signal::TERM);
    let ran = daemon.wait();
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// The processor time that a process has used.
fn processor_time(process: &Running) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

#[test]
fn a_scan_at_half_past_two_comes_once_where_that_time_comes_twice_and_once_where_it_never_comes() {
    let nights = [
        // The evening before, the slot, the next one, and where the time comes a second time.
        ("2026-10-24T20:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00.000Z", Some("2026-10-25T01:30:00Z")),
        // At three, when it would be half past two.
        ("2026-03-28T20:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00.000Z", None),
    ];
    for (evening, slot, next, second) in nights {
        let moved = Moved::scanned_at("30 2 * * *");
        moved.wall.set(evening);
        let daemon = moved.daemon();
        moved.wait_until_scanned(evening);
        moved.wall.move_by(parse(slot) - TimeDelta::seconds(3) - chrono::Utc::now());
        moved.notice(1);
        assert_eq!(moved.wait_until_scanned(slot), next);
        let begun = moved.scan()["begun"].clone();
        if let Some(second) = second {
            moved.wall.move_by(parse(second) - TimeDelta::seconds(3) - chrono::Utc::now());
            moved.notice(2);
            moved.wait_until_past(second);
            moved.notice(3);
            moved.wait_until_written(3);
        }
        let scan = moved.scan();
        assert_eq!((&scan["begun"], &scan["next"]), (&begun, &json!(next)), "{scan}");
        stop(daemon);
    }
}

#[test]
fn a_window_at_half_past_two_opens_once_in_the_nights_in_which_clocks_change() {
    let nights = [
        // Before it, when it opens, when it is over, and when it opens next.
        ("2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:31:00Z", "2026-10-26T01:30:00.000Z"),
        ("2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:31:00Z", "2026-03-30T00:30:00.000Z"),
    ];
    for (before, opens, over, next) in nights {
        let window = "submit = { from = \"30 2 * * *\", for = \"30m\", timezone = \"Europe/Paris\" }";
        let moved = Moved::new(Stub::well(), |config| config.inbox(&format!("outputs = [\"txt\"]\n{window}")));
        moved.wall.set(before);
        let daemon = moved.daemon();
        moved.notice(1);
        moved.wait_until_waiting(&[1], "window", &opens.replace('Z', ".000Z"));
        moved.wall.move_by(parse(opens) - TimeDelta::seconds(3) - chrono::Utc::now());
        moved.notice(2);
        moved.wait_until_bought(2, opens);
        (1..=2).for_each(|number| moved.wait_until_written(number));
        moved.wall.set(over);
        moved.notice(3);
        moved.wait_until_waiting(&[3], "window", next);
        assert_eq!(moved.accepted(), 2);
        stop(daemon);
    }
}

#[test]
fn a_budget_of_a_day_lasts_for_the_23_and_for_the_25_hours_of_the_days_on_which_clocks_change() {
    let days = [
        // In the day, in it although 24 hours are over, its end, and the end of the next one.
        (["2026-03-28T23:10:00Z", "2026-03-29T20:00:00Z", "2026-03-29T22:00:00Z"], "2026-03-30T22:00:00.000Z"),
        (["2026-10-24T22:10:00Z", "2026-10-25T22:30:00Z", "2026-10-25T23:00:00Z"], "2026-10-26T23:00:00.000Z"),
    ];
    for ([morning, late, end], next) in days {
        let due = end.replace('Z', ".000Z");
        let moved = Moved::one_a_day(Stub::well(), "Europe/Paris");
        moved.wall.set(morning);
        let daemon = moved.daemon();
        moved.notice(1);
        moved.wait_until_written(1);
        moved.notice(2);
        moved.wait_until_waiting(&[2], "budget", &due);
        moved.wall.set(late);
        moved.notice(3);
        moved.wait_until_waiting(&[2, 3], "budget", &due);
        assert_eq!(moved.accepted(), 1);
        moved.wall.move_by(parse(end) - TimeDelta::seconds(3) - chrono::Utc::now());
        moved.notice(4);
        moved.wait_until_bought(2, end);
        moved.notice(5);
        moved.wait_until_waiting(&[5], "budget", next);
        assert_eq!(moved.accepted(), 2);
        stop(daemon);
    }
}

#[test]
fn a_clock_that_goes_back_by_a_day_spends_the_budget_of_a_day_once() {
    let moved = Moved::one_a_day(Stub::well(), "UTC");
    moved.wall.set("2026-03-10T12:00:00Z");
    let daemon = moved.daemon();
    moved.notice(1);
    moved.wait_until_written(1);
    moved.notice(2);
    moved.wait_until_waiting(&[2], "budget", "2026-03-11T00:00:00.000Z");

    moved.wall.set("2026-03-09T12:00:00Z");
    moved.notice(3);
    moved.wait_until_waiting(&[2, 3], "budget", "2026-03-11T00:00:00.000Z");
    assert_eq!(moved.accepted(), 1, "while the daemon runs");
    drop(daemon); // killed

    let summary = moved.run(["once", "--json"]).last_object();
    assert_eq!((&summary["done"], &summary["waiting_for"]), (&json!(0), &json!({"budget": 2})));
    // The day comes again.
    moved.wall.set("2026-03-09T23:59:57Z");
    let daemon = moved.daemon();
    moved.notice(4);
    moved.wait_until_past("2026-03-10T00:00:01Z");
    moved.notice(5);
    moved.wait_until_waiting(&[5], "budget", "2026-03-11T00:00:00.000Z");
    assert_eq!(moved.accepted(), 1, "after a restart");
    moved.wall.set("2026-03-10T23:59:57Z");
    moved.notice(6);
    moved.wait_until_bought(2, "2026-03-11T00:00:00Z");
    stop(daemon);
}

/// The service has a clock of its own, which is right.
#[test]
fn a_clock_that_was_ahead_by_a_year_uses_up_the_budget_of_its_day_and_not_of_a_year() {
    let stub = Stub::well();
    stub.records().tells_date = true;
    let moved = Moved::one_a_day(stub, "UTC");
    let noon = format!("{}T12:00:00Z", chrono::Utc::now().format("%Y-%m-%d"));
    let days = |number: i64| moved.wall.move_by(parse(&noon) + TimeDelta::days(number) - chrono::Utc::now());
    days(0);
    let daemon = moved.daemon();
    moved.notice(1);
    moved.wait_until_written(1);
    days(365);
    moved.notice(2);
    moved.wait_until_written(2);
    days(0);
    moved.notice(3);
    wait_until("the next one waits for the budget", || moved.jobs()["3.wav"]["fault"]["kind"] == "budget");
    drop(daemon); // killed
    let summary = moved.run(["once", "--json"]).last_object();
    assert_eq!((&summary["done"], &summary["waiting_for"]), (&json!(0), &json!({"budget": 1})), "today");

    days(1);
    let daemon = moved.daemon();
    moved.wait_until_written(3);
    moved.notice(4);
    wait_until("a fourth one waits for the budget", || moved.jobs()["4.wav"]["fault"]["kind"] == "budget");
    assert_eq!(moved.accepted(), 3, "tomorrow");
    stop(daemon);
}

#[test]
fn a_daemon_polls_at_its_pace_and_ends_its_work_wherever_the_clock_is_moved() {
    const FEWEST: Duration = Duration::from_millis(100);
    let (stub, ended) = Stub::slow();
    let poll = "min = \"200ms\", max = \"300ms\"";
    let moved = Moved::new(stub, |config| config.poll(poll).inbox("outputs = [\"txt\"]"));
    moved.wall.set("2026-03-10T12:00:00Z");
    let daemon = moved.daemon();
    moved.notice(1);
    let reads = || moved.stub.records().moments(Endpoint::Read).len();
    for moment in ["2026-03-09T12:00:00Z", "2027-03-09T12:00:00Z", "2026-03-10T12:00:00Z", "1970-01-02T00:00:00Z"] {
        moved.wall.set(moment);
        let (before, spent, begun) = (reads(), processor_time(&daemon), Instant::now());
        wait_until(&format!("it is polled under the clock of {moment}"), || reads() >= before + 4);
        let (polls, took) = (reads() - before, begun.elapsed());
        let most = 4 + took.as_millis() / FEWEST.as_millis();
        assert!(polls as u128 <= most, "{moment}: {polls} polls in {took:?}");
        let spent = processor_time(&daemon) - spent;
        assert!(spent < took / 2 + Duration::from_millis(500), "{moment}: {spent:?} of processor time in {took:?}");
    }
    ended.store(true, Ordering::SeqCst);
    moved.wait_until_written(1);
    moved.notice(2);
    moved.wait_until_written(2);
    assert_eq!(moved.accepted(), 2);
    stop(daemon);
}

#[test]
fn an_hourly_scan_goes_on_within_the_hour_when_a_clock_that_was_ahead_is_right_again() {
    let moved = Moved::scanned_at("0 * * * *");
    moved.wall.set("2026-03-10T12:30:00Z");
    let daemon = moved.daemon();
    moved.wait_until_scanned("2026-03-10T12:30:00Z");
    for (number, days) in [1, 365].into_iter().enumerate() {
        let right = parse("2026-03-09T13:00:00Z") + TimeDelta::hours(number as i64);
        let number = 10 * (number as u32 + 1);
        let ahead = right + TimeDelta::days(days) - TimeDelta::minutes(30);
        moved.wall.move_by(ahead - chrono::Utc::now());
        moved.notice(number);
        moved.wait_until_written(number);
        // What was missed while the clock jumped ahead is made up for, if a slot was.
        wait_until("no scan is due", || moved.scan()["next"].as_str().is_some_and(|next| parse(next) > ahead));
        moved.wall.move_by(right - TimeDelta::seconds(3) - chrono::Utc::now());
        moved.notice(number + 1);
        let slot = |scan: &Value| {
            let begun = scan["begun"].as_str().map(parse);
            !scan["ended"].is_null()
                && begun.is_some_and(|begun| (right..right + TimeDelta::minutes(5)).contains(&begun))
        };
        wait_until(&format!("it is scanned at {right}"), || slot(&moved.scan()));
    }
    stop(daemon);
}

const KEPT_A_YEAR: &str = "[state]\nkeep_results = \"365d\"\nkeep_history = \"365d\"";

/// The number of kept results, and the months of the history.
fn kept(bed: &Bed) -> (usize, Vec<PathBuf>) {
    let ends_with = |folder: &str, ending: &str| {
        let mut found = files(&bed.path(folder));
        found.retain(|file| file.extension() == Some(OsStr::new(ending)));
        found.sort();
        found
    };
    (ends_with("state/results", "gz").len(), ends_with("state/history", "jsonl"))
}

/// Dates the history as a machine whose clock is ahead by this much does.
fn date_history(bed: &Bed, ahead: Duration) {
    let newest = kept(bed).1.pop().unwrap();
    fs::File::options().append(true).open(newest).unwrap().set_modified(SystemTime::now() + ahead).unwrap();
}

#[test]
fn a_clock_that_is_ahead_by_a_year_removes_no_kept_result_and_no_history() {
    const AHEAD: TimeDelta = TimeDelta::days(400);
    let moved = Moved::new(Stub::well(), |config| config.inbox("outputs = [\"txt\"]"));
    moved.record_words(1);
    moved.wall.move_by(TimeDelta::days(-300));
    moved.run(["once"]);
    moved.record_words(2);
    moved.wall.move_by(TimeDelta::zero());
    moved.run(["once"]);
    assert_eq!((kept(&moved.bed).0, kept(&moved.bed).1.len()), (2, 2));
    let config = || Config::of(&moved.stub).limits(2, 20).inbox("outputs = [\"txt\"]");
    moved.bed.configure(&config().section(KEPT_A_YEAR));

    // The first passes that look for old ones, and a new recording in each of them.
    moved.wall.move_by(AHEAD);
    for number in 3..5 {
        moved.record_words(number);
        moved.run(["once"]);
        date_history(&moved.bed, AHEAD.to_std().unwrap());
        assert_eq!((kept(&moved.bed).0, kept(&moved.bed).1.len()), (number as usize, 3), "{number}");
    }
    let daemon = moved.daemon();
    moved.record_words(5);
    moved.wait_until_written(5);
    stop(daemon);
    moved.wall.move_by(TimeDelta::zero());
    moved.run(["once"]);
    assert_eq!((kept(&moved.bed).0, kept(&moved.bed).1.len()), (5, 3));
    let shown = moved.run(["show", "--json", "inbox/1.wav"]).last_object();
    assert!(shown["result_removed"].is_null() && !shown["history"].as_array().unwrap().is_empty(), "{shown}");
    assert_eq!(moved.run(["state", "check"]).code, 0);
}

#[test]
fn a_daemon_whose_clock_was_ahead_removes_by_the_clock_that_is_right_again() {
    let moved = Moved::new(Stub::well(), |config| config.inbox("outputs = [\"txt\"]"));
    moved.record_words(1);
    moved.wall.move_by(TimeDelta::days(-300));
    moved.run(["once"]);
    moved.record_words(2);
    moved.wall.move_by(TimeDelta::zero());
    moved.run(["once"]);
    let daemon = moved.daemon();
    moved.wall.move_by(TimeDelta::days(400));
    moved.record_words(3);
    moved.wait_until_written(3);
    moved.wall.move_by(TimeDelta::zero());
    let config = Config::of(&moved.stub).limits(2, 20).inbox("outputs = [\"txt\"]");
    moved.bed.configure(&config.section("[state]\nkeep_results = \"365d\""));
    moved.run(["reload"]);
    wait_until("old results are looked for", || moved.bed.path("state/last-retention.json").exists());
    assert_eq!(kept(&moved.bed).0, 3);
    stop(daemon);
    // The old one goes in its time: 65 days later.
    for weeks in 1..=10 {
        moved.wall.move_by(TimeDelta::days(7 * weeks));
        moved.run(["once"]);
        assert_eq!(kept(&moved.bed).0, if weeks < 10 { 3 } else { 2 }, "{weeks} weeks later");
    }
}
