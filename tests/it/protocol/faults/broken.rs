//! Broken answers: cut connections, and bodies that do not follow the interface.

use crate::protocol::faults::row::{Row, run};
use crate::support::scripted::{Step, http};
use crate::support::stub::{Act, Endpoint, JSON};
use serde_json::json;

/// What comes instead of an answer.
fn instead() -> Vec<(&'static str, Step)> {
    let good = r#"{"id":"t-1","audio_url":"http://h/file/u-1","items":[],"status":"done"}"#;
    let cut = format!("HTTP/1.1 200 X\r\n{JSON}content-length: 500\r\n\r\n{good}");
    let chunked = format!("HTTP/1.1 200 X\r\n{JSON}transfer-encoding: chunked\r\n\r\nff\r\n{{\"id\"");
    let padded = format!("{{\"pad\":\"{}\"}}", "x".repeat(2 << 20));
    vec![
        ("a reset", Step::ResetAfter),
        ("a closed connection", Step::CloseAfter),
        ("a body cut short", Step::AnswerAndClose(cut.into())),
        ("a chunk cut short", Step::AnswerAndClose(chunked.into())),
        ("malformed JSON", Step::Answer(http(200, JSON, "{\"id\": \"t-1\""))),
        ("JSON of another kind", Step::Answer(http(200, JSON, "[1, 2]"))),
        ("a web page", Step::Answer(http(200, "content-type: text/html\r\n", "<html>welcome</html>"))),
        ("an empty body", Step::Answer(http(200, JSON, ""))),
        ("an empty object", Step::Answer(http(201, JSON, "{}"))),
        ("204", Step::Answer("HTTP/1.1 204 X\r\n\r\n".to_owned())),
        ("no HTTP", Step::AnswerAndClose(b"\x15\x03\x01\x00\x02\x02\x0a".to_vec())),
        ("a redirect", Step::Answer(http(302, "location: http://192.0.2.1/\r\n", ""))),
        ("two megabytes", Step::Answer(http(200, JSON, &padded))),
    ]
}

#[test]
fn what_is_no_answer_is_the_services_fault() {
    let row = |(what, step): (&str, Step)| {
        Row::new(format!("{what} for the first of every kind of request"), move |request, _| {
            if request.before == 0 { Act::Say(step.clone()) } else { Act::Well }
        })
    };
    insta::assert_snapshot!("faults_broken", run(instead().into_iter().map(row).collect()));
}

#[test]
fn what_is_no_answer_to_an_accepted_create_is_found_out() {
    let row = |(what, step): (&str, Step)| {
        Row::new(format!("{what} for every create, all accepted"), move |request, _| {
            if request.endpoint == Endpoint::Create { Act::After(step.clone()) } else { Act::Well }
        })
    };
    insta::assert_snapshot!("faults_broken_accepted", run(instead().into_iter().map(row).collect()));
}

#[test]
fn an_upload_that_disagrees_with_what_was_sent_is_void() {
    fn shorter(answer: &mut serde_json::Value) {
        answer["audio_metadata"]["size"] = json!(99);
    }
    let once = Row::new("a wrong size in the first upload's answer", |request, _| {
        let is_it = request.endpoint == Endpoint::Upload && request.before == 0;
        if is_it { Act::Change(shorter) } else { Act::Well }
    });
    let always = Row::new("a wrong size in every upload's answer", |request, _| {
        if request.endpoint == Endpoint::Upload { Act::Change(shorter) } else { Act::Well }
    });
    let odd = Row::new("lengths of audio that cannot be", |request, _| {
        let odd: [fn(&mut serde_json::Value); 3] = [
            |answer| answer["audio_metadata"]["audio_duration"] = json!(-5),
            |answer| answer["audio_metadata"]["audio_duration"] = json!(1e300),
            |answer| answer["audio_metadata"] = json!({}),
        ];
        if request.endpoint == Endpoint::Upload { Act::Change(odd[request.before % 3]) } else { Act::Well }
    });
    insta::assert_snapshot!("faults_void", run(vec![once, always.outage(), odd]));
}

#[test]
fn the_body_counts_and_not_its_declared_type() {
    let row = Row::new("everything right, but as text/plain", |_, _| Act::As("text/plain"));
    insta::assert_snapshot!("faults_type", run(vec![row]));
}
