//! Reads from a record whose it is: the token in its `custom_metadata`, and how long its audio is. A service that mixes up
//! its records answers with another recording's text under the right id.

use crate::client::contract::{RecordEvidence, RecordMark};
use crate::domain::token::RESERVED_KEY;
use crate::wire::bounded_value::BoundedValue;
use crate::wire::record::Record;
use crate::wire::result::{ResultHead, length_millis};
use serde_json::Value;

/// Reads what a record says.
pub fn evidence(record: &Record<ResultHead, BoundedValue>) -> RecordEvidence {
    let of_file = record.file.as_ref().and_then(|file| file.audio_duration).map(length_millis);
    let of_result = record.result.as_ref().map(|result| result.audio().millis);
    let lengths = of_file.into_iter().chain(of_result).filter(|length| *length > 0).collect();
    let metadata = record.custom_metadata.as_ref().and_then(|BoundedValue(value)| value.as_ref());
    RecordEvidence { mark: metadata.map(mark).unwrap_or_default(), lengths }
}

/// Finds the mark in whatever form the service returns the metadata: as the object that it was, as JSON text, or nested in
/// something else.
fn mark(metadata: &Value) -> RecordMark {
    if let Some(Value::String(text)) = metadata.get(RESERVED_KEY) {
        return RecordMark::Text(text.clone());
    }
    let text = match metadata {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match metadata {
        _ if text.contains(RESERVED_KEY) => RecordMark::Text(text),
        Value::Object(fields) if !fields.is_empty() => RecordMark::Missing,
        // Nothing, or a form that scribed never sends: it says nothing.
        _ => RecordMark::Unstated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(record: Value) -> RecordEvidence {
        evidence(&Record::of_kept(record.to_string().as_bytes()).unwrap())
    }

    #[test]
    fn the_mark_is_found_in_every_form_of_the_metadata() {
        let mark = |metadata: Value| read(json!({ "id": "t", "custom_metadata": metadata })).mark;
        let token = || RecordMark::Text("1.c.p.j.0".to_owned());
        assert_eq!(mark(json!({ "scribed": "1.c.p.j.0", "shelf": "A1" })), token());
        for odd in [json!(r#"{"scribed":"1.c.p.j.0"}"#), json!([{ "name": "scribed", "value": "1.c.p.j.0" }])] {
            assert!(matches!(mark(odd), RecordMark::Text(text) if text.contains("1.c.p.j.0")));
        }
        assert_eq!(mark(json!({ "scribed": 7 })), RecordMark::Text(r#"{"scribed":7}"#.to_owned()));
        assert_eq!(mark(json!({ "shelf": "A1" })), RecordMark::Missing);
        for silent in [json!(null), json!({}), json!([]), json!(""), json!("n/a"), json!([1]), json!(true)] {
            assert_eq!(mark(silent.clone()), RecordMark::Unstated, "{silent}");
        }
    }

    #[test]
    fn a_record_gives_the_lengths_of_its_file_and_of_its_result() {
        let record = json!({
            "id": "t", "file": { "audio_duration": 2.0 },
            "result": { "metadata": { "audio_duration": 1.5 }, "transcription": {} },
        });
        assert_eq!(read(record).lengths, [2_000, 1_500]);
        assert_eq!(read(json!({ "id": "t", "file": { "audio_duration": 0 }, "result": null })).lengths, [0; 0]);
    }
}
