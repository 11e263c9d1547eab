//! The rows of a busy and of a new queue.

use super::*;
use serde_json::{Value, json};

fn status(more: &Value) -> QueueStatus {
    let mut whole = json!({
        "jobs": {}, "total": 0, "running": 0, "waiting_for_a_person": 0, "pauses": { "all": null, "sources": {} },
        "daemon": {
            "pid": 123, "since": 0, "millis": 11_000_000, "trouble": null, "done": 1204, "failed": 2, "skipped": 20,
            "audio_millis": 1_123_200_000_u64, "sent_bytes": 0,
        },
    });
    whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn text(status: &QueueStatus, waiting: &Waiting, width: usize) -> String {
    let throughput = Some(MeasuredSpeed {
        seconds: 300.0,
        files_per_hour: 142.0,
        audio_hours_per_hour: 38.24,
        bytes_per_second: 12.9e6,
    });
    let shown = ShownQueue { status, waiting, throughput, now: Timestamp(0), zone: Zone::UTC };
    let rows = rows(&shown, width);
    assert!(rows.iter().all(|row| row.name.len() < NAMES), "a name leaves a space");
    rows.iter().map(|row| format!("{:<NAMES$}{}  <{:?}>\n", row.name, row.text, row.tone)).collect()
}

#[test]
fn everything_that_a_person_asks_at_night_has_a_row() {
    let status = status(&json!({
        "jobs": { "probed": 300, "submitted": 8, "written": 12000, "failed": 7 }, "total": 12315,
        "unhandled_failures": 5, "incomplete": 2, "unhandled_incomplete": 2,
        "services": [
            { "service": "default", "open": 308, "on_their_way": 8, "running": 8, "suspect": false, "trouble": null, "bears": null },
            { "service": "second", "open": 1, "running": 0, "suspect": false, "bears": null,
              "trouble": "it does not answer since 03:12; scribed asks again at 03:20\u{1b}[31m" },
        ],
        "budget": [
            { "source": null, "period": "day", "allowed": 144_000_000, "used": 90_000_000, "until": 86_400_000 },
            { "source": "talks", "period": "month", "allowed": 3_600_000, "used": 3_600_000, "until": null },
        ],
        "frozen": [{ "source": "nas", "reason": "its folder is empty, and was not before" }],
    }));
    let waiting = Waiting {
        waiting_for: [("budget".to_owned(), 290), ("turn".to_owned(), 10)].into(),
        reasons: [(
            "budget".to_owned(),
            "it needs 1.0 h of billed audio, and `budget.month` of talks has 0.0 s left".to_owned(),
        )]
        .into(),
        next: None,
    };
    insta::assert_snapshot!(text(&status, &waiting, 80));
    assert!(text(&status, &waiting, 80).lines().count() <= 22, "a busy queue fits 80 columns and 24 rows");
    assert!(text(&status, &waiting, 1).lines().count() > 22, "no width is too small");
}

#[test]
fn a_new_queue_is_short() {
    insta::assert_snapshot!(text(&status(&json!({})), &Waiting::default(), 80));
}
