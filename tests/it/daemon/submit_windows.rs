//! Sources that are sent at certain times only.

use crate::support::bed::{Bed, Running, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Endpoint, Stub};
use chrono::{TimeDelta, Timelike, Utc};
use serde_json::json;
use std::fs;
use std::sync::atomic::Ordering;

/// Two sources; `submit` is the first one's.
fn config(stub: &Stub, submit: &str) -> Config {
    let config = Config::of(stub).limits(2, 20).inbox(&format!("outputs = [\"txt\"]\n{submit}"));
    config.folder("other", "outputs = [\"txt\"]")
}

fn bed(config: &Config) -> Bed {
    let bed = config.bed();
    fs::create_dir(bed.path("other")).unwrap();
    bed
}

/// A window of an hour that is open for most of the next hour, or begins in so many hours.
fn window(in_hours: i64) -> String {
    let hour = (Utc::now() + TimeDelta::hours(in_hours)).hour();
    let begins = if in_hours == 0 { Utc::now() - TimeDelta::minutes(1) } else { Utc::now() };
    let (hour, minute) = if in_hours == 0 { (begins.hour(), begins.minute()) } else { (hour, 30) };
    format!("submit = {{ from = \"{minute} {hour} * * *\", for = \"1h\" }}")
}

#[test]
fn outside_its_window_a_source_waits_and_the_others_go_on() {
    let stub = Stub::well();
    let bed = bed(&config(&stub, &window(6)));
    bed.drop_in(0, "a.wav");
    fs::rename(bed.drop_in(1, "put.wav"), bed.path("other/b.wav")).unwrap();
    let planned = bed.run(["plan"]).stdout;
    assert!(planned.contains("the window of source inbox is closed: scribed sends nothing of it before"), "{planned}");
    let summary = bed.once(0);
    assert_eq!((&summary["done"], &summary["waiting_for"]), (&json!(1), &json!({ "window": 1 })));
    let (uploads, accepted) = {
        let records = stub.records();
        (records.moments(Endpoint::Upload).len(), records.accepted().len())
    };
    assert_eq!((uploads, accepted), (1, 1), "nothing of it was sent");
    let status = bed.run(["status", "--json"]).last_object();
    assert_eq!(status["waiting_for"], json!({ "window": 1 }));
    let windowed = &status["windows"][0];
    assert_eq!((&windowed["source"], &windowed["open"]), (&json!("inbox"), &json!(false)));
    assert!(bed.run(["status"]).stdout.contains("the window of the source inbox is closed"));
    let job = &bed.jobs()["a.wav"];
    assert_eq!((&job["fault"]["kind"], &job["due"]), (&json!("window"), &windowed["until"]));
    let told = bed.run(["explain", "inbox/a.wav"]).stdout;
    assert!(told.contains("window is closed until") && told.contains("(UTC)"), "{told}");
    // Whatever is changed in between: what waited goes at once.
    bed.configure(&config(&stub, &window(0)));
    assert_eq!(bed.once(0)["done"], 1);
}

#[test]
fn what_is_in_flight_when_the_window_shuts_is_awaited_and_written() {
    let (stub, ended) = Stub::slow();
    let bed = bed(&config(&stub, &window(0)));
    bed.drop_in(0, "a.wav");
    let daemon = Running::start(bed.command(["run"]));
    wait_until("it is at the service", || bed.jobs().values().any(|job| job["stage"] == "submitted"));
    drop(daemon);
    bed.configure(&config(&stub, &window(6)));
    bed.drop_in(1, "b.wav");
    ended.store(true, Ordering::SeqCst);
    let summary = bed.once(0);
    assert_eq!((&summary["done"], &summary["waiting_for"]), (&json!(1), &json!({ "window": 1 })));
    assert_eq!(bed.jobs()["a.wav"]["stage"], "written");
    assert_eq!(stub.records().accepted().len(), 1);
}

#[test]
fn a_window_opens_by_itself() {
    let stub = Stub::well();
    let soon = Utc::now() + TimeDelta::seconds(5);
    let from = format!("{} {} {} * * *", soon.second(), soon.minute(), soon.hour());
    let bed = bed(&config(&stub, &format!("submit = [{{ from = \"{from}\", for = \"1h\" }}]")));
    bed.drop_in(0, "a.wav");
    let _daemon = Running::start(bed.command(["run"]));
    wait_until("it is written", || bed.jobs().values().any(|job| job["stage"] == "written"));
    assert!(Utc::now() >= soon - TimeDelta::seconds(1), "not before it was open");
}
