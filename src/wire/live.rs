//! The record of a live transcription, with the rules for importing one (interface, "Job (transcription record)" and
//! "Live request parameters").

use crate::domain::names::Timestamp;
use crate::wire::parameter_check::{
    Field, FieldKind, SPOKEN_LANGUAGES, TARGET_LANGUAGES, TEXTS, VOCABULARY, inspect_fields, optional, required,
};
use crate::wire::record::Status;
use crate::wire::timestamps;
use serde_json::{Map, Value, json};

/// A live record that was read from a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    /// The id, which need not be a UUID.
    pub id: String,
    pub created: Timestamp,
    pub status: Status,
    /// The metadata that was given when the session began.
    pub metadata: Option<Value>,
    /// The text of the record, unchanged except that missing keys were added.
    pub text: String,
}

/// Reads a record, which is one JSON object, and checks it.
///
/// # Errors
/// Everything that is wrong with it: "field must …".
pub fn read(text: &str) -> Result<Live, Vec<String>> {
    let record: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| vec![format!("the line must be one JSON object: {error}")])?;
    let wrong = check(&record);
    match live(text, &record) {
        Some(live) if wrong.is_empty() => Ok(live),
        _ => Err(wrong),
    }
}

/// Reads a record that this release or an older one has checked before; takes from it only what lists need.
pub fn read_stored(text: &str) -> Option<Live> {
    live(text, &serde_json::from_str(text).ok()?)
}

fn live(text: &str, record: &Map<String, Value>) -> Option<Live> {
    let text_of = |key: &str| record.get(key).and_then(Value::as_str);
    let id = text_of("id")?;
    Some(Live {
        id: id.to_owned(),
        created: timestamps::parse(text_of("created_at")?)?,
        status: Status::parse(text_of("status")?),
        metadata: record.get("custom_metadata").filter(|given| !given.is_null()).cloned(),
        text: fill_missing_keys(text, id, record),
    })
}

/// Adds the keys that every record has and this one lacks, before the first key. The text is not serialized again, so
/// its numbers stay as they are written.
fn fill_missing_keys(text: &str, id: &str, record: &Map<String, Value>) -> String {
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
    let missing = defaults.iter().filter(|(key, _)| !record.contains_key(*key));
    let missing: String = missing.map(|(key, value)| format!("\"{key}\":{value},")).collect();
    format!("{{{missing}{}", text.trim().trim_start_matches('{'))
}

fn check(record: &Map<String, Value>) -> Vec<String> {
    let complaints = inspect_fields(RECORD, "", &Value::Object(record.clone()));
    let mut wrong: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    let mut must = |holds: bool, words: &str| {
        if !holds {
            wrong.push(words.to_owned());
        }
    };
    let text = |key: &str| record.get(key).and_then(Value::as_str);
    let is_id =
        |id: &str| (1..=200).contains(&id.len()) && id.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_".contains(&c));
    let is_date = |key| text(key).is_none_or(|date| timestamps::parse(date).is_some());
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
    required("id", FieldKind::Text),
    optional("request_id", FieldKind::Text),
    optional("version", FieldKind::Integer(1, 2)),
    required("status", FieldKind::Choice(&["queued", "processing", "done", "error"])),
    required("created_at", FieldKind::Text),
    optional("post_session_metadata", ANY_OBJECT),
    optional("kind", FieldKind::Choice(&["live"])),
    optional("completed_at", FieldKind::Text),
    optional("custom_metadata", ANY_OBJECT),
    optional("error_code", FieldKind::Integer(400, 599)),
    optional("file", ANY_OBJECT),
    optional("request_params", FieldKind::Object(PARAMS)),
    optional("result", ANY_OBJECT),
];

const PARAMS: &[Field] = &[
    optional("encoding", FieldKind::Choice(&["wav/pcm", "wav/alaw", "wav/ulaw"])),
    optional("bit_depth", FieldKind::Integer(8, 32)),
    optional("sample_rate", FieldKind::Integer(8_000, 48_000)),
    optional("channels", FieldKind::Integer(1, 8)),
    optional("model", FieldKind::Text),
    optional("endpointing", FieldKind::Number(0.01, 10.0)),
    optional("maximum_duration_without_endpointing", FieldKind::Number(5.0, 60.0)),
    optional(
        "language_config",
        FieldKind::Object(&[optional("languages", SPOKEN_LANGUAGES), optional("code_switching", FieldKind::Flag)]),
    ),
    optional(
        "pre_processing",
        FieldKind::Object(&[
            optional("audio_enhancer", FieldKind::Flag),
            optional("speech_threshold", FieldKind::Number(0.0, 1.0)),
        ]),
    ),
    optional("realtime_processing", FieldKind::Object(REALTIME)),
    optional(
        "post_processing",
        FieldKind::Object(&[
            optional("summarization", FieldKind::Flag),
            optional(
                "summarization_config",
                FieldKind::Object(&[optional("type", FieldKind::Choice(&["general", "bullet_points", "concise"]))]),
            ),
            optional("chapterization", FieldKind::Flag),
        ]),
    ),
    optional("messages_config", FieldKind::Object(MESSAGES)),
    optional("callback", FieldKind::Flag),
    optional("callback_config", FieldKind::Object(CALLBACK)),
];

const REALTIME: &[Field] = &[
    optional("custom_vocabulary", FieldKind::Flag),
    optional(
        "custom_vocabulary_config",
        FieldKind::Object(&[
            optional("vocabulary", FieldKind::List(0, &FieldKind::TextOr(VOCABULARY))),
            optional("default_intensity", FieldKind::Number(0.0, 1.0)),
        ]),
    ),
    optional("custom_spelling", FieldKind::Flag),
    optional(
        "custom_spelling_config",
        FieldKind::Object(&[optional("spelling_dictionary", FieldKind::Dictionary(&TEXTS))]),
    ),
    optional("translation", FieldKind::Flag),
    optional(
        "translation_config",
        FieldKind::Object(&[
            optional("target_languages", FieldKind::List(0, &FieldKind::Choice(TARGET_LANGUAGES))),
            optional("model", FieldKind::Choice(&["base", "enhanced", "batch"])),
            optional("match_original_utterances", FieldKind::Flag),
            optional("lipsync", FieldKind::Flag),
            optional("context_adaptation", FieldKind::Flag),
            optional("context", FieldKind::Text),
            optional("informal", FieldKind::Flag),
        ]),
    ),
    optional("named_entity_recognition", FieldKind::Flag),
    optional("sentiment_analysis", FieldKind::Flag),
];

/// The fields that choose which messages are sent, without the URL of a callback.
const MESSAGES: &[Field] = match CALLBACK {
    [_url, choices @ ..] => choices,
    [] => &[],
};

const CALLBACK: &[Field] = &[
    optional("url", FieldKind::Url),
    optional("receive_partial_transcripts", FieldKind::Flag),
    optional("receive_final_transcripts", FieldKind::Flag),
    optional("receive_speech_events", FieldKind::Flag),
    optional("receive_pre_processing_events", FieldKind::Flag),
    optional("receive_realtime_processing_events", FieldKind::Flag),
    optional("receive_post_processing_events", FieldKind::Flag),
    optional("receive_acknowledgments", FieldKind::Flag),
    optional("receive_errors", FieldKind::Flag),
    optional("receive_lifecycle_events", FieldKind::Flag),
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
