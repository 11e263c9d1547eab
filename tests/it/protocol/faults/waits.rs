//! `Retry-After` in its forms, and services that answer late.

use crate::protocol::faults::row::{Outcome, Row, run};
use crate::support::scripted::{Step, http};
use crate::support::stub::{Act, Endpoint, JSON, refusal_with};
use std::time::{Duration, SystemTime};

fn asks(endpoint: Endpoint, status: u16, what: &str, value: impl Fn() -> String + Send + 'static) -> Row {
    Row::new(format!("{status} to the first {endpoint:?}, Retry-After: {what}"), move |request, _| {
        let header = format!("retry-after: {}\r\n", value());
        let is_it = request.endpoint == endpoint && request.before == 0;
        if is_it { Act::Say(refusal_with(status, &header, "slower")) } else { Act::Well }
    })
}

fn in_two_seconds() -> String {
    httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3))
}

fn upload_waited(outcome: &Outcome) {
    assert!(outcome.gap(Endpoint::Upload, 0) > 1.9, "{}", outcome.gap(Endpoint::Upload, 0));
}

fn create_waited(outcome: &Outcome) {
    assert!(outcome.gap(Endpoint::Create, 0) > 1.9, "{}", outcome.gap(Endpoint::Create, 0));
}

#[test]
fn retry_after_is_obeyed_where_it_makes_sense() {
    let mut rows = vec![
        asks(Endpoint::Upload, 429, "2", || "2".to_owned()).check(upload_waited),
        asks(Endpoint::Upload, 429, "a date in three seconds", in_two_seconds).check(upload_waited),
        asks(Endpoint::Create, 429, "2", || "2".to_owned()).check(create_waited),
        asks(Endpoint::Create, 429, "a date in three seconds", in_two_seconds).check(create_waited),
        asks(Endpoint::Upload, 503, "2", || "2".to_owned()).check(upload_waited),
    ];
    for nonsense in ["-5", "soon", "31536000", "99999999999999999999", "", "Fri, 20 Nov 2099 19:00:00 GMT"] {
        rows.push(asks(Endpoint::Upload, 429, nonsense, move || nonsense.to_owned()));
        rows.push(asks(Endpoint::Create, 429, nonsense, move || nonsense.to_owned()));
    }
    insta::assert_snapshot!("faults_retry_after", run(rows));
}

/// An hour is more than a pass waits for.
#[test]
fn whoever_is_asked_to_wait_for_long_leaves_in_time() {
    // A job that met it itself would wait for an hour, in the next pass too.
    let row = Row::new("429 to every list, Retry-After: 3600", |request, _| {
        let is_it = request.endpoint == Endpoint::List;
        if is_it { Act::Say(refusal_with(429, "retry-after: 3600\r\n", "slower")) } else { Act::Well }
    });
    insta::assert_snapshot!("faults_an_hour", run(vec![row.outage()]));
}

#[test]
fn a_service_that_hangs_is_not_waited_for_for_ever() {
    let hangs = |endpoint| {
        let row = Row::new(format!("the first {endpoint:?} hangs"), move |request, _| {
            if request.endpoint == endpoint && request.before == 0 { Act::Say(Step::Hang) } else { Act::Well }
        });
        row.timeout("700ms")
    };
    let accepted = Row::new("the first Create hangs when it was accepted", |request, _| {
        let is_it = request.endpoint == Endpoint::Create && request.before == 0;
        if is_it { Act::After(Step::Hang) } else { Act::Well }
    });
    let always = Row::new("everything hangs", |_, _| Act::Say(Step::Hang)).outage().timeout("200ms");
    let mut rows: Vec<Row> = [Endpoint::Upload, Endpoint::Create, Endpoint::Read, Endpoint::List].map(hangs).into();
    rows.extend([accepted.timeout("700ms"), always]);
    insta::assert_snapshot!("faults_hangs", run(rows));
}

/// A byte at a time: in time, and never in time.
#[test]
fn a_slow_body_is_read_as_long_as_it_comes() {
    let slow = |name: &str, endpoint, pause| {
        let row = Row::new(name, move |request, _| {
            let answer = http(500, JSON, r#"{"message":"slow","request_id":"G-slow"}"#);
            let is_it = request.endpoint == endpoint && request.before == 0;
            if is_it { Act::After(Step::Drip(answer, Duration::from_millis(pause))) } else { Act::Well }
        });
        row.timeout("1500ms")
    };
    let rows = vec![
        slow("an upload's fault comes a byte at a time", Endpoint::Upload, 2),
        slow("a create's fault comes a byte at a time, after it was accepted", Endpoint::Create, 2),
        slow("a read's fault comes a byte at a time, too slowly", Endpoint::Read, 50),
        slow("a create's fault comes a byte at a time, too slowly, after it was accepted", Endpoint::Create, 50),
    ];
    insta::assert_snapshot!("faults_slow", run(rows));
}
