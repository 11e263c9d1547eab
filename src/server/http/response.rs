//! Renders the records that the service answers with.

use crate::server::http::streamed::StreamedJson;
use crate::server::storage::transcriptions::{
    Callee, DeliveryState, RecordMeta, TranscriptionEnd, TranscriptionFailure, TranscriptionState,
};
use crate::wire::published;
use crate::wire::record::{Record, Status};
use crate::wire::timestamps;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io;
use uuid::Uuid;

/// A transcription's record, as the interface shows it.
type RenderedRecord = Record<Box<RawValue>, Box<RawValue>>;

/// Renders the record of a transcription (interface, "Job (transcription record)"; null and absent fields as in service
/// notes, 3).
pub fn render_record(state: TranscriptionState) -> io::Result<StreamedJson> {
    let TranscriptionState { id, head, status, result } = state;
    StreamedJson::from_result(result, |result| serde_json::to_vec(&to_record(id, head, status, result)))
}

fn to_record(id: Uuid, head: RecordMeta, status: Status, result: Option<Box<RawValue>>) -> RenderedRecord {
    let (completed_at, failure) = match head.ended {
        Some(TranscriptionEnd { at, failure }) => (Some(timestamps::format(at)), failure),
        None => (None, None),
    };
    let callback = head.calls.iter().find(|call| call.to != Callee::Webhook).and_then(failed_callback);
    Record {
        id: id.to_string(),
        request_id: Some(request_id(id)),
        version: Some(2),
        status,
        created_at: Some(timestamps::format(head.created)),
        kind: Some("pre-recorded".to_owned()),
        completed_at,
        custom_metadata: head.metadata,
        error_code: failure.as_ref().map(|failure| failure.code),
        // Nothing is known of the audio before it is fetched.
        file: head.file.id.is_some().then_some(head.file),
        request_params: Some(published::with_defaults(&head.params)),
        // Always an object, as the interface requires.
        post_session_metadata: Some(failure.map(reason).into_iter().chain(callback).collect()),
        result,
        error: None,
        error_message: None,
    }
}

/// Returns the reason of a failure for `post_session_metadata`. The interface has no field for it; this one is "data
/// meant to help identify issues".
fn reason(failure: TranscriptionFailure) -> (String, Value) {
    ("error".to_owned(), Value::String(failure.message))
}

/// Returns what `post_session_metadata` says about a callback that was not received: how often it was tried, why the
/// last attempt failed, and when the next one is, if there is one.
fn failed_callback(call: &DeliveryState) -> Option<(String, Value)> {
    let error = call.error.as_ref()?;
    let next = call.due.map(timestamps::format);
    Some(("callback".to_owned(), json!({ "attempts": call.failed, "error": error, "next_attempt_at": next })))
}

/// Returns the debug id: `G-` and the first eight characters of the id.
pub fn request_id(id: Uuid) -> String {
    let id = id.to_string();
    format!("G-{}", &id[..8])
}
