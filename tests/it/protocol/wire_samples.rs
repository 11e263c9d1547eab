//! Every real payload is read by our own types, and nothing of it is lost when it is written again.

use scribed::testing::wire::enrichment::{Either, Enrichments, Shapes};
use scribed::testing::wire::error::ErrorBody;
use scribed::testing::wire::event::WebhookEvent;
use scribed::testing::wire::page::RecordPage;
use scribed::testing::wire::record::{Created, Record};
use scribed::testing::wire::result::{ResultBody, Subtitles};
use scribed::testing::wire::upload::Uploaded;
use scribed::testing::wire::v1_params;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/samples")
}

/// Every payload, with the path of its file below the folder.
fn payloads() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(folder()).sort_by_file_name() {
        let entry = entry.unwrap();
        if entry.path().extension().is_none_or(|ext| ext != "json") {
            continue;
        }
        let name = entry.path().strip_prefix(folder()).unwrap().to_str().unwrap().to_owned();
        let value: Value = serde_json::from_slice(&std::fs::read(entry.path()).unwrap()).unwrap();
        match value {
            Value::Array(list) => found.extend(list.into_iter().map(|one| (name.clone(), one["body"].clone()))),
            one => found.push((name, one)),
        }
    }
    found
}

fn again<T: DeserializeOwned + Serialize>(name: &str, payload: &Value) -> Value {
    let text = payload.to_string();
    let read: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::to_value(read).unwrap()
}

/// By the type that reads such a payload from a service.
fn round_trip(name: &str, payload: &Value) -> Value {
    let file = name.rsplit('/').next().unwrap();
    let kind = file.split('.').next().unwrap();
    match kind {
        _ if name.starts_with("v2/errors/") => again::<ErrorBody>(name, payload),
        "subtitles_item" => again::<Subtitles>(name, payload),
        _ if name.starts_with("v2/addons/") => {
            let whole = json!({ "metadata": {}, kind: payload });
            let body: ResultBody = serde_json::from_value(whole.clone()).unwrap();
            assert_known(name, &body.enrichments);
            again::<ResultBody>(name, &whole)[kind].clone()
        }
        _ if kind.starts_with("job_") && payload.get("status").is_none() => again::<ResultBody>(name, payload),
        _ if kind.starts_with("job_") => again::<Record<ResultBody>>(name, payload),
        "upload_response" => again::<Uploaded>(name, payload),
        "create_response" => again::<Created>(name, payload),
        "list_page_empty" | "list_page_links" => again::<RecordPage<Record<ResultBody>>>(name, payload),
        _ if kind.starts_with("callback") || kind.starts_with("webhook") => again::<WebhookEvent>(name, payload),
        _ => panic!("{name}: nobody reads this"),
    }
}

/// The enrichment was read as what it is, not kept as something unknown.
fn assert_known(name: &str, read: &Enrichments) {
    fn known<T>(one: &Option<Either<T>>) -> usize {
        usize::from(matches!(one, Some(Either::Known(_))))
    }
    let count = known(&read.translation)
        + known(&read.summarization)
        + known(&read.named_entity_recognition)
        + known(&read.sentiment_analysis)
        + known(&read.audio_to_llm)
        + known(&read.sentences)
        + known(&read.chapterization);
    assert_eq!(count, 1, "{name}: {read:?}");
}

/// Everything of `one` that is not in `other` as well.
fn missing(one: &Value, other: &Value, at: &str, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(map), Value::Object(_)) => {
            for (key, value) in map {
                missing(value, &other[key.as_str()], &format!("{at}.{key}"), found);
            }
        }
        (Value::Array(list), Value::Array(others)) if list.len() == others.len() => {
            for (number, (value, other)) in list.iter().zip(others).enumerate() {
                missing(value, other, &format!("{at}.{number}"), found);
            }
        }
        (Value::Number(number), Value::Number(other)) if number.as_f64() == other.as_f64() => {}
        (one, other) if one == other => {}
        _ => found.push(format!("{at}: {one} became {other}")),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_nothing),
        _ => false,
    }
}

#[test]
fn every_second_version_payload_survives() {
    let payloads: Vec<_> = payloads().into_iter().filter(|(name, _)| name.starts_with("v2/")).collect();
    assert!(payloads.len() > 40, "{}", payloads.len());
    for (name, payload) in payloads {
        let written = round_trip(&name, &payload);
        let mut lost = Vec::new();
        missing(&payload, &written, "", &mut lost);
        lost.retain(|line| !line.contains("requestId") && !line.contains("validationErrors"));
        assert!(lost.is_empty(), "{name}: {lost:#?}");
        if !name.starts_with("v2/errors/") {
            let mut made_up = Vec::new();
            missing(&written, &payload, "", &mut made_up);
            made_up.retain(|line| !line.ends_with("became null") || !is_said_nothing(line));
            assert!(made_up.is_empty(), "{name}: {made_up:#?}");
        }
    }
}

/// A line whose first value says nothing: null, or empty.
fn is_said_nothing(line: &str) -> bool {
    let said = line.split_once(": ").and_then(|(_, rest)| rest.strip_suffix(" became null")).unwrap_or_default();
    is_nothing(&serde_json::from_str(said).unwrap())
}

/// Every value of a table's field in a first-version result is in the second-version one, and the rest is
/// named.
#[test]
fn every_first_version_payload_is_upgraded() {
    let mut results = 0;
    for (name, payload) in payloads().into_iter().filter(|(name, _)| name.starts_with("v1/")) {
        if name.contains("webhook_ack") {
            assert!(!v1_params::is_result(&payload));
            continue;
        }
        assert!(v1_params::is_result(&payload), "{name}");
        results += 1;
        let upgraded = v1_params::upgrade_result(&payload);
        let inner = payload.get("payload").unwrap_or(&payload);
        let old =
            inner["prediction"].as_array().or_else(|| inner["prediction_raw"]["transcription"].as_array()).unwrap();
        let record: Record<ResultBody> = serde_json::from_value(upgraded.value.clone()).unwrap();
        let transcription = record.result.unwrap().transcription.unwrap();
        assert_eq!(transcription.utterances.len(), old.len(), "{name}");
        for (old, new) in old.iter().zip(&transcription.utterances) {
            assert_eq!(old["transcription"], new.text);
            assert_eq!((old["time_begin"].as_f64(), old["time_end"].as_f64()), (Some(new.start), Some(new.end)));
            assert_eq!(old["words"].as_array().unwrap().len(), new.words.len());
            assert_eq!(old["speaker"].as_u64(), new.speaker.as_ref().and_then(Value::as_u64), "{name}");
        }
        if let Some(shown) = inner["prediction"].as_str() {
            assert_eq!(transcription.subtitles.unwrap()[0].subtitles, shown);
        }
        assert!(!upgraded.removed.iter().any(|path| path.contains("time_begin")), "{:?}", upgraded.removed);
    }
    assert_eq!(results, 3);
}

/// What differs between the interface and the public service is read in both shapes.
#[test]
fn both_shapes_are_read() {
    assert_eq!(Shapes::default(), Shapes::Interface);
    let envelope = |key: &str, value: Value| json!({ "success": true, "is_empty": false, "exec_time": 1.0, "error": null, key: value });
    let both = [
        ("named_entity_recognition", envelope("entity", json!("Amy"))),
        (
            "named_entity_recognition",
            envelope("results", json!([{ "entity_type": "NAME", "text": "Amy", "start": 0.0, "end": 1.0 }])),
        ),
        ("sentences", envelope("results", json!(["One.", "Two."]))),
        ("sentences", envelope("results", json!([{ "sentence": "One.", "start": 0.0 }]))),
        ("sentiment_analysis", envelope("results", json!("neutral"))),
        ("sentiment_analysis", envelope("results", json!([{ "text": "One.", "sentiment": "neutral" }]))),
        ("chapterization", envelope("results", json!({ "a": 1 }))),
        ("chapterization", envelope("results", json!([{ "a": 1 }]))),
        (
            "diarization",
            json!({ "success": false, "is_empty": true, "exec_time": 0, "error": { "status_code": 501, "exception": "X", "message": "y" }, "results": null }),
        ),
        ("translation", json!({ "surprising": ["shape"] })),
    ];
    for (key, value) in both {
        let whole = json!({ "metadata": {}, "transcription": {}, key: value });
        let mut lost = Vec::new();
        missing(&whole, &again::<ResultBody>(key, &whole), "", &mut lost);
        assert!(lost.is_empty(), "{key}: {lost:#?}");
    }
}
