//! The service's own faults: they pass, and cost no job anything.

use crate::protocol::faults::row::{BAD, Row, run};
use crate::support::scripted::Step;
use crate::support::stub::{Act, Endpoint, refusal};
use std::collections::BTreeSet;

const WRONG: [u16; 8] = [408, 409, 425, 429, 500, 502, 503, 504];
const ENDPOINTS: [Endpoint; 4] = [Endpoint::Upload, Endpoint::Create, Endpoint::Read, Endpoint::List];

#[test]
fn a_fault_that_passes_costs_nothing() {
    let row = |status| {
        Row::new(format!("{status} to the first of every kind of request"), move |asked, _| {
            if asked.before == 0 { Act::Say(refusal(status, "not now")) } else { Act::Well }
        })
    };
    insta::assert_snapshot!("faults_passing", run(WRONG.map(row).into()));
}

/// A create that was accepted all the same is found in the list.
#[test]
fn a_fault_after_acceptance_is_found_out() {
    let row = |status| {
        Row::new(format!("{status} to the first create, which was accepted"), move |asked, _| {
            let is_it = asked.endpoint == Endpoint::Create && asked.before == 0;
            if is_it { Act::After(refusal(status, "not now")) } else { Act::Well }
        })
    };
    let uncertain = [408, 409, 425, 500, 502, 503, 504];
    insta::assert_snapshot!("faults_accepted", run(uncertain.map(row).into()));
}

#[test]
fn a_service_that_stays_out_fails_nothing_and_is_left_in_time() {
    let row = |endpoint| {
        let row = Row::new(format!("500 to every {endpoint:?}"), move |asked, _| {
            if asked.endpoint == endpoint { Act::Say(refusal(500, "out of order")) } else { Act::Well }
        });
        row.outage()
    };
    let mut rows: Vec<Row> = ENDPOINTS.map(row).into();
    rows.push(Row::new("every connection is reset", |_, _| Act::Say(Step::ResetAfter)).outage());
    rows.push(Row::new("503 to everything", |_, _| Act::Say(refusal(503, "back soon"))).outage());
    insta::assert_snapshot!("faults_out", run(rows));
}

/// One file always meets what others do not. From the sixth on the others are let through when it has
/// met it in vain: otherwise chance might have it that it comes last, when no others get through.
fn poison(endpoint: Endpoint) -> Row {
    let (mut met, mut others, mut is_first) = (0, BTreeSet::new(), endpoint == Endpoint::Upload);
    let enough = if endpoint == Endpoint::Create { 2 } else { 5 };
    let row = Row::new(format!("500 to every {endpoint:?} of one file"), move |asked, _| {
        // It is uploaded before the others: those that wait for their create would leave it no room.
        if asked.endpoint == Endpoint::Upload && !is_first {
            is_first = asked.file == BAD;
            return if is_first { Act::Well } else { Act::Say(refusal(429, "slower")) };
        }
        if asked.endpoint != endpoint {
            return Act::Well;
        }
        if asked.file == BAD {
            met += 1;
            return Act::Say(refusal(500, "out of order"));
        }
        others.insert(asked.file.to_owned());
        if met < enough && others.len() > 5 { Act::Say(refusal(429, "slower")) } else { Act::Well }
    });
    row.files(12).running(3)
}

#[test]
fn a_poisonous_file_fails_by_itself_and_the_others_are_done() {
    let rows = [Endpoint::Upload, Endpoint::Create, Endpoint::Read].map(poison);
    insta::assert_snapshot!("faults_poison", run(rows.into()));
}

/// Nobody listens: nothing was ever sent.
#[test]
fn a_service_that_is_down_all_the_while_loses_nothing() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let row = Row::new("nobody listens", |_, _| Act::Well).at(format!("http://127.0.0.1:{port}"));
    insta::assert_snapshot!("faults_down", run(vec![row.outage().said(1)]));
}
