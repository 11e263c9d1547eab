//! Complete answers that refuse: the file, or the key.

use crate::protocol::faults::row::{BAD, Row, run};
use crate::support::scripted::{Step, http, json};
use crate::support::stub::{Act, Endpoint, refusal};
use std::time::{Duration, Instant};

fn refuses(endpoint: Endpoint, status: u16) -> Row {
    Row::new(format!("{status} to the {endpoint:?} of one file"), move |request, _| {
        let is_it = request.endpoint == endpoint && request.file == BAD;
        if is_it { Act::Say(refusal(status, "this file will not do")) } else { Act::Well }
    })
}

#[test]
fn a_refused_file_fails_with_the_services_words_and_the_line_goes_on() {
    let statuses = [400, 404, 405, 413, 415, 422];
    let both = [Endpoint::Upload, Endpoint::Create];
    let rows = both.into_iter().flat_map(|endpoint| statuses.map(|status| refuses(endpoint, status)));
    insta::assert_snapshot!("faults_refused", run(rows.collect()));
}

fn refuses_all(endpoint: Endpoint) -> Row {
    let row = Row::new(format!("422 to the {endpoint:?} of all 30 files"), move |request, _| {
        if request.endpoint == endpoint { Act::Say(refusal(422, "no such parameter")) } else { Act::Well }
    });
    row.files(30).said(0)
}

#[test]
fn the_same_refusal_of_every_file_stops_the_line_and_asks() {
    let rows = vec![refuses_all(Endpoint::Upload), refuses_all(Endpoint::Create)];
    insta::assert_snapshot!("faults_refused_all", run(rows));
}

/// Everything but the lists: an account without money can still look at what it has.
fn barred(endpoint: Endpoint, status: u16) -> Row {
    let row = Row::new(format!("{status} to every {endpoint:?}"), move |request, _| {
        if request.endpoint == endpoint { Act::Say(refusal(status, "not like this")) } else { Act::Well }
    });
    row.outage().said(1)
}

fn barred_everywhere() -> Row {
    Row::new("401 to everything", |_, _| Act::Say(refusal(401, "unknown key"))).outage().said(1)
}

/// For a second, from the third upload on.
fn barred_for_a_while() -> Row {
    let mut until = None;
    let row = Row::new("401 in the middle of a run, for a second", move |request, _| {
        if until.is_none() && request.endpoint == Endpoint::Upload && request.before == 2 {
            until = Some(Instant::now() + Duration::from_secs(1));
        }
        let now = until.is_some_and(|until| Instant::now() < until);
        if now { Act::Say(refusal(401, "unknown key")) } else { Act::Well }
    });
    row.files(6).said(1)
}

#[test]
fn a_refused_key_holds_everything_and_is_said_once() {
    let mut rows = vec![barred_everywhere(), barred_for_a_while()];
    for endpoint in [Endpoint::Upload, Endpoint::Create] {
        rows.extend([401, 402, 403].map(|status| barred(endpoint, status)));
    }
    insta::assert_snapshot!("faults_barred", run(rows));
}

/// Made by something before the service that does not know the path: not one word about this file.
#[test]
fn a_web_page_says_nothing_about_a_file() {
    let page = |status| Step::Answer(http(status, "content-type: text/html\r\n", "<html>nginx</html>"));
    let row = |endpoint, status| {
        let name = format!("{status} as a web page to every {endpoint:?}");
        let row = Row::new(
            name,
            move |request, _| if request.endpoint == endpoint { Act::Say(page(status)) } else { Act::Well },
        );
        row.outage()
    };
    let rows = vec![
        row(Endpoint::Upload, 404),
        row(Endpoint::Upload, 200),
        row(Endpoint::Create, 404),
        row(Endpoint::Create, 200),
        row(Endpoint::Read, 200),
    ];
    insta::assert_snapshot!("faults_web_pages", run(rows));
}

/// A wrong path in `url`, before a server that has other words for it than the interface's.
#[test]
fn an_upload_to_a_path_that_nobody_knows_is_no_files_fault() {
    let row = |name: &str, answer: Step| {
        let row = Row::new(name, move |request, _| match request.endpoint {
            Endpoint::Upload => Act::Say(answer.clone()),
            _ => Act::Well,
        });
        row.files(30).outage().said(1)
    };
    let rows = vec![
        row("404 with nothing to every upload", Step::Answer(http(404, "", ""))),
        row("404 of a framework to every upload", json(404, r#"{"detail":"Not Found"}"#)),
        row("405 of another one", json(405, r#"{"statusCode":405,"message":"Method Not Allowed"}"#)),
        row("404 of the interface's own router", refusal(404, "Cannot POST /v3/v2/upload")),
    ];
    insta::assert_snapshot!("faults_wrong_place", run(rows));
}
