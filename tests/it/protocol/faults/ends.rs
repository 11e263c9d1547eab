//! Accepted transcriptions with unknown statuses, with failures, and with records that are lost.

use crate::protocol::faults::row::{BAD, Outcome, Row, run};
use crate::support::stub::{Act, Endpoint, refusal};
use serde_json::{Value, json};

type Change = fn(&mut Value);

fn word(answer: &mut Value, status: &str) {
    answer["status"] = json!(status);
    answer["result"] = Value::Null;
}

const PAUSED: Change = |answer| word(answer, "paused");
const QUEUED: Change = |answer| word(answer, "queued");
const PROCESSING: Change = |answer| word(answer, "processing");
const EMPTY: Change = |answer| answer["result"] = Value::Null;
const NO_RESULT: Change = |answer| {
    answer.as_object_mut().unwrap().remove("result");
};

/// Each read of a file is answered by the next of these; then as it should be.
fn reads(name: &str, changes: &'static [Change]) -> Row {
    Row::new(name, move |request, _| match changes.get(request.before_of_file) {
        Some(change) if request.endpoint == Endpoint::Read => Act::Change(*change),
        _ => Act::Well,
    })
}

fn always(name: &str, change: Change) -> Row {
    let row = Row::new(name, move |request, _| match request.endpoint {
        Endpoint::Read if request.file == BAD => Act::Change(change),
        _ => Act::Well,
    });
    row.running(3)
}

#[test]
fn odd_words_are_named_and_never_trusted_into_an_end() {
    fn tells(outcome: &Outcome, words: &str) {
        let history = outcome.bed.run(["show", "--json", "inbox/bad.wav"]).last_object()["history"].to_string();
        assert!(history.contains(words), "{history}");
    }
    let rows = vec![
        reads("paused, then done", &[PAUSED, PAUSED]).check(|row| tells(row, "the unknown status `paused`")),
        reads("queued, processing, queued, processing, done", &[QUEUED, PROCESSING, QUEUED, PROCESSING])
            .check(|row| tells(row, "queued again, although the transcription was being processed")),
        reads("done without its result, then with it", &[EMPTY, NO_RESULT, PROCESSING])
            .check(|row| tells(row, "the unknown status `done, but without a result`")),
        reads("queued, processing, done", &[QUEUED, QUEUED, PROCESSING, PROCESSING]).check(|row| {
            let history = row.bed.run(["show", "--json", "inbox/bad.wav"]).last_object()["history"].to_string();
            assert!(!history.contains("polls again"), "{history}");
        }),
    ];
    insta::assert_snapshot!("faults_odd_words", run(rows));
}

#[test]
fn what_does_not_end_is_a_named_wait() {
    let names_it = |outcome: &Outcome| {
        let reason = outcome.jobs[BAD]["reason"].as_str().unwrap();
        assert!(reason.starts_with("the transcription is still paused at the service after "), "{reason}");
        assert_eq!(outcome.jobs[BAD]["stage"], "submitted");
        // The alarm: once in the log, and in `status` as long as it lasts.
        assert_eq!(outcome.ran.stderr.matches("a transcription does not end").count(), 1, "{:?}", outcome.ran);
        let status = outcome.bed.run(["status", "--json"]).last_object();
        assert_eq!(status["waiting_for_a_person"], 1, "{status}");
    };
    let row = always("paused for ever", PAUSED).give_up("1s").check(names_it);
    insta::assert_snapshot!("faults_paused", run(vec![row]));
}

fn dead(name: &str, change: Change) -> Row {
    always(name, change)
}

#[test]
fn a_dead_transcription_is_bought_again_or_fails() {
    fn error(answer: &mut Value, code: Value) {
        word(answer, "error");
        answer["error_code"] = code;
        answer["request_id"] = json!("G-dead");
    }
    let rows = vec![
        dead("error 400", |answer| error(answer, json!(400))),
        dead("error 500, always", |answer| error(answer, json!(500))),
        dead("error without a code, always", |answer| error(answer, Value::Null)),
        reads("error 500, then done", &[|answer| error(answer, json!(500))]),
    ];
    insta::assert_snapshot!("faults_dead", run(rows));
}

/// It was paid for: it is looked for by its token, and never bought again by itself.
#[test]
fn what_is_gone_is_looked_for_and_never_bought_again() {
    let lost = Row::new("all that was accepted is lost", |request, records| {
        if request.endpoint == Endpoint::Read {
            records.lose_all();
        }
        Act::Well
    });
    let late = Row::new("the first reads say 404, then it is there", |request, _| {
        let is_it = request.endpoint == Endpoint::Read && request.before_of_file < 2;
        if is_it { Act::Say(refusal(404, "no such transcription")) } else { Act::Well }
    });
    let moved = Row::new("it is there under another id", |request, records| {
        if request.endpoint == Endpoint::Read && request.before_of_file == 0 {
            records.rename();
        }
        Act::Well
    });
    let mut gone = false;
    let unlisted = Row::new("lost, and the list cannot be read at first", move |request, records| {
        if request.endpoint == Endpoint::Read {
            gone = true;
            records.lose_all();
        }
        let is_it = gone && request.endpoint == Endpoint::List && request.before < 8;
        if is_it { Act::Say(refusal(500, "not now")) } else { Act::Well }
    });
    let mut gone = false;
    let no_list = Row::new("lost, and there is no list any more", move |request, records| {
        if request.endpoint == Endpoint::Read {
            gone = true;
            records.lose_all();
        }
        if gone && request.endpoint == Endpoint::List { Act::Say(refusal(404, "no list here")) } else { Act::Well }
    });
    let one_create_each = |outcome: &Outcome| {
        let accepted = outcome.stub.records().accepted().into_values().collect::<Vec<_>>();
        assert_eq!(accepted, [1, 1, 1]);
    };
    let rows = [lost, late, moved, unlisted, no_list].map(|row| row.check(one_create_each));
    insta::assert_snapshot!("faults_gone", run(rows.into()));
}
