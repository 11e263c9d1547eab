//! Traces in the JSON of OTLP/HTTP 1.x. Pure.

use super::job_trace::{JobTrace, StageSpan};
use crate::domain::job::Job;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::stage::{Stage, StageKind};
use serde_json::{Value, json};

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;

/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// A trace, and the row of its job, if there is one.
pub struct EndedJob {
    pub trace: JobTrace,
    pub row: Option<Job>,
}

/// Returns the body of an export. `place` tells installations apart whose jobs have the same numbers.
pub fn export_request(jobs: &[EndedJob], place: &str) -> Value {
    let spans: Vec<Value> = jobs.iter().flat_map(|job| spans(job, place)).collect();
    let resource = [text("service.name", "scribed"), text("service.version", env!("CARGO_PKG_VERSION"))];
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": { "name": "scribed.jobs" }, "spans": spans }],
    }]})
}

/// Returns the span of the job and those of its stages below it. Ids follow from the job, so that a trace that is sent
/// twice is one.
fn spans(job: &EndedJob, place: &str) -> Vec<Value> {
    let JobTrace { job: id, spans, .. } = &job.trace;
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return Vec::new() };
    let trace = Hash::of(format!("{place}\0{id}\0{}", first.from.0).as_bytes()).to_string();
    let (trace_id, span_id) =
        (&trace[..32], |n: usize| Hash::of(format!("{trace}{n}").as_bytes()).to_string()[..16].to_owned());
    let root = span_id(0);
    let of_job = json!({
        "traceId": trace_id, "spanId": root, "name": "job", "kind": INTERNAL,
        "startTimeUnixNano": nanos(first.from), "endTimeUnixNano": nanos(last.until),
        "attributes": attributes(job), "status": status(job),
    });
    let of_stage = |(n, StageSpan { name, from, until }): (usize, &StageSpan)| {
        json!({
            "traceId": trace_id, "spanId": span_id(n + 1), "parentSpanId": root, "name": name, "kind": INTERNAL,
            "startTimeUnixNano": nanos(*from), "endTimeUnixNano": nanos(*until),
        })
    };
    std::iter::once(of_job).chain(spans.iter().enumerate().map(of_stage)).collect()
}

/// No path: names of recordings may be confidential, and the collector may be elsewhere.
fn attributes(EndedJob { trace, row }: &EndedJob) -> Vec<Value> {
    let mut attributes = vec![
        number("scribed.job", trace.job.0),
        number("scribed.purchase", u64::from(trace.purchase_number)),
        text("scribed.stage", trace.end.name()),
    ];
    attributes.extend(trace.transcription.as_ref().map(|id| text("scribed.transcription", id.as_str())));
    if let Some(row) = row {
        attributes.push(text("scribed.source", row.key.source.as_str()));
        let service = row.stage.purchase_key().map(|purchase_key| purchase_key.service.as_str());
        attributes.extend(service.map(|service| text("scribed.service", service)));
    }
    attributes
}

/// The kind of the fault only: its words may name the recording.
fn status(EndedJob { trace, row }: &EndedJob) -> Value {
    let fault = match row.as_ref().map(|row| &row.stage) {
        Some(Stage::Failed { fault, .. }) => fault.kind.name(),
        _ if trace.end == StageKind::Failed => "",
        _ => return json!({}),
    };
    json!({ "code": ERROR, "message": fault })
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Numbers of 64 bits are strings in the JSON of protobuf.
fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn nanos(at: Timestamp) -> String {
    (i128::from(at.0.max(0)) * 1_000_000).to_string()
}
