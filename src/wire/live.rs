//! The record of a live transcription: what one must look like to be taken in (interface, "Job
//! (transcription record)" and "Live request parameters"; bounds: service notes, 4).

use crate::domain::names::Timestamp;
use crate::wire::fields::{Field, FieldKind, SPOKEN, TARGET_LANGUAGES, TEXTS, VOCABULARY, inspect_other, may, must};
use crate::wire::record::Status;
use crate::wire::timestamps;
use serde_json::{Map, Value, json};

/// The live record of one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    /// Not necessarily a UUID.
    pub id: String,
    /// When it was created.
    pub created: Timestamp,
    /// Where it is.
    pub status: Status,
    /// As it was given when the session began.
    pub metadata: Option<Value>,
    /// The record to the letter, with the keys that it lacked.
    pub text: String,
}

/// Reads a record, one JSON object.
///
/// # Errors
/// Everything that is wrong with it: "field must …".
pub fn read(text: &str) -> Result<Live, Vec<String>> {
    let record: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| vec![format!("the line must be one JSON object: {error}")])?;
    let wrong = wrong(&record);
    match live(text, &record) {
        Some(live) if wrong.is_empty() => Ok(live),
        _ => Err(wrong),
    }
}

/// A record that was read before, by this release or an older one: nothing but what lists need.
pub fn read_again(text: &str) -> Option<Live> {
    live(text, &serde_json::from_str(text).ok()?)
}

fn live(text: &str, record: &Map<String, Value>) -> Option<Live> {
    let known = |key: &str| record.get(key).and_then(Value::as_str);
    let id = known("id")?;
    Some(Live {
        id: id.to_owned(),
        created: timestamps::read(known("created_at")?)?,
        status: Status::from_word(known("status")?),
        metadata: record.get("custom_metadata").filter(|given| !given.is_null()).cloned(),
        text: completed(text, id, record),
    })
}

/// Puts the keys that every record has before those that this one has. The text itself is not
/// written anew: numbers too large for a float stay as they are.
fn completed(text: &str, id: &str, record: &Map<String, Value>) -> String {
    let short: String = id.chars().take(8).collect();
    let defaults = [
        ("request_id", json!(format!("G-{short}"))),
        ("version", json!(2)),
        ("kind", json!("live")),
        ("completed_at", Value::Null),
        ("custom_metadata", Value::Null),
        ("error_code", Value::Null),
        ("file", Value::Null),
        ("request_params", Value::Null),
        ("result", Value::Null),
    ];
    let lacking = defaults.iter().filter(|(key, _)| !record.contains_key(*key));
    let lacking: String = lacking.map(|(key, value)| format!("\"{key}\":{value},")).collect();
    format!("{{{lacking}{}", text.trim().trim_start_matches('{'))
}

fn wrong(record: &Map<String, Value>) -> Vec<String> {
    let complaints = inspect_other(RECORD, "", &Value::Object(record.clone()));
    let mut wrong: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    let mut must = |holds: bool, words: &str| {
        if !holds {
            wrong.push(words.to_owned());
        }
    };
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    let is_id =
        |id: &str| (1..=200).contains(&id.len()) && id.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_".contains(&c));
    let is_date = |key| text(key).is_none_or(|date| timestamps::read(date).is_some());
    must(text("id").is_none_or(is_id), "id must be 1 to 200 letters, digits, - and _");
    must(is_date("created_at"), "created_at must be an ISO 8601 date-time");
    must(is_date("completed_at"), "completed_at must be an ISO 8601 date-time");
    let ended = matches!(text("status"), Some("done" | "error"));
    must(!ended || text("completed_at").is_some(), "completed_at must be given when the status is done or error");
    let has_result = record.get("result").is_some_and(Value::is_object);
    must(text("status") != Some("done") || has_result, "result must be an object when the status is done");
    wrong
}

const ANY_OBJECT: FieldKind = FieldKind::Object(&[]);

const RECORD: &[Field] = &[
    must("id", FieldKind::Text),
    may("request_id", FieldKind::Text),
    may("version", FieldKind::Integer(1, 2)),
    must("status", FieldKind::Choice(&["queued", "processing", "done", "error"])),
    must("created_at", FieldKind::Text),
    may("post_session_metadata", ANY_OBJECT),
    may("kind", FieldKind::Choice(&["live"])),
    may("completed_at", FieldKind::Text),
    may("custom_metadata", ANY_OBJECT),
    may("error_code", FieldKind::Integer(400, 599)),
    may("file", ANY_OBJECT),
    may("request_params", FieldKind::Object(PARAMS)),
    may("result", ANY_OBJECT),
];

const PARAMS: &[Field] = &[
    may("encoding", FieldKind::Choice(&["wav/pcm", "wav/alaw", "wav/ulaw"])),
    may("bit_depth", FieldKind::Integer(8, 32)),
    may("sample_rate", FieldKind::Integer(8_000, 48_000)),
    may("channels", FieldKind::Integer(1, 8)),
    may("model", FieldKind::Text),
    may("endpointing", FieldKind::Number(0.01, 10.0)),
    may("maximum_duration_without_endpointing", FieldKind::Number(5.0, 60.0)),
    may("language_config", FieldKind::Object(&[may("languages", SPOKEN), may("code_switching", FieldKind::Flag)])),
    may(
        "pre_processing",
        FieldKind::Object(&[
            may("audio_enhancer", FieldKind::Flag),
            may("speech_threshold", FieldKind::Number(0.0, 1.0)),
        ]),
    ),
    may("realtime_processing", FieldKind::Object(REALTIME)),
    may(
        "post_processing",
        FieldKind::Object(&[
            may("summarization", FieldKind::Flag),
            may(
                "summarization_config",
                FieldKind::Object(&[may("type", FieldKind::Choice(&["general", "bullet_points", "concise"]))]),
            ),
            may("chapterization", FieldKind::Flag),
        ]),
    ),
    may("messages_config", FieldKind::Object(MESSAGES)),
    may("callback", FieldKind::Flag),
    may("callback_config", FieldKind::Object(CALLBACK)),
];

const REALTIME: &[Field] = &[
    may("custom_vocabulary", FieldKind::Flag),
    may(
        "custom_vocabulary_config",
        FieldKind::Object(&[
            may("vocabulary", FieldKind::List(0, &FieldKind::TextOr(VOCABULARY))),
            may("default_intensity", FieldKind::Number(0.0, 1.0)),
        ]),
    ),
    may("custom_spelling", FieldKind::Flag),
    may("custom_spelling_config", FieldKind::Object(&[may("spelling_dictionary", FieldKind::Dictionary(&TEXTS))])),
    may("translation", FieldKind::Flag),
    may(
        "translation_config",
        FieldKind::Object(&[
            may("target_languages", FieldKind::List(0, &FieldKind::Choice(TARGET_LANGUAGES))),
            may("model", FieldKind::Choice(&["base", "enhanced", "batch"])),
            may("match_original_utterances", FieldKind::Flag),
            may("lipsync", FieldKind::Flag),
            may("context_adaptation", FieldKind::Flag),
            may("context", FieldKind::Text),
            may("informal", FieldKind::Flag),
        ]),
    ),
    may("named_entity_recognition", FieldKind::Flag),
    may("sentiment_analysis", FieldKind::Flag),
];

/// What a callback may be told of, without where it is told.
const MESSAGES: &[Field] = match CALLBACK {
    [_url, told @ ..] => told,
    [] => &[],
};

const CALLBACK: &[Field] = &[
    may("url", FieldKind::Url),
    may("receive_partial_transcripts", FieldKind::Flag),
    may("receive_final_transcripts", FieldKind::Flag),
    may("receive_speech_events", FieldKind::Flag),
    may("receive_pre_processing_events", FieldKind::Flag),
    may("receive_realtime_processing_events", FieldKind::Flag),
    may("receive_post_processing_events", FieldKind::Flag),
    may("receive_acknowledgments", FieldKind::Flag),
    may("receive_errors", FieldKind::Flag),
    may("receive_lifecycle_events", FieldKind::Flag),
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_is_filled_in_and_the_rest_stays_to_the_letter() {
        let text = r#" {"id":"0a1b2c3d4e","status":"queued","created_at":"2026-11-20","custom_metadata":{"n":1e400}} "#;
        assert!(read(text).is_err(), "no JSON number of serde's");
        let text = r#" {"id":"0a1b2c3d4e","status":"queued","created_at":"2026-11-20","custom_metadata":{"n":1.50}} "#;
        let live = read(text).unwrap();
        assert!(live.text.contains("1.50"), "{}", live.text);
        let record: Value = serde_json::from_str(&live.text).unwrap();
        assert_eq!((&record["kind"], &record["version"]), (&json!("live"), &json!(2)));
        assert_eq!(record["request_id"], "G-0a1b2c3d");
        assert_eq!(record.get("result"), Some(&Value::Null));
    }

    #[test]
    fn everything_wrong_at_once() {
        let record = json!({ "id": "../x", "status": "ended", "created_at": "yesterday", "kind": "pre-recorded",
            "error_code": 200, "request_params": { "sample_rate": 1, "messages_config": { "receive_errors": 3 } } });
        insta::assert_snapshot!(read(&record.to_string()).unwrap_err().join("\n"), @r"
        error_code must be an integer from 400 to 599
        kind must be one of: live
        request_params.messages_config.receive_errors must be true or false
        request_params.sample_rate must be an integer from 8000 to 48000
        status must be one of: queued, processing, done, error
        id must be 1 to 200 letters, digits, - and _
        created_at must be an ISO 8601 date-time
        ");
        let done = json!({ "id": "x", "status": "done", "created_at": "2026-11-20", "kind": "live" });
        assert_eq!(read(&done.to_string()).unwrap_err().len(), 2);
        assert_eq!(read("[1]").unwrap_err().len(), 1);
    }
}
