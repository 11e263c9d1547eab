//! A job as `--json` and the HTTP API show it. Fields are added, not renamed or removed.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, Output};
use crate::domain::missing_enrichment::{MissingPart, RequestedPart};
use crate::domain::reason::reason;
use crate::domain::review::Review;
use crate::domain::split::Part;
use crate::domain::stage::Stage;
use crate::wire::timestamps;
use base64::Engine;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// A job: one recording of one source. Times are UTC, in the form of RFC 3339.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Job")]
pub struct JobObject {
    /// The number of the job.
    pub id: u64,
    /// The name of its source.
    pub source: String,
    /// The path of the recording below the source; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// `found`, `settled`, `probed`, `uploaded`, `submitting`, `submitted`, `fetched`, `following`, `written`, `skipped`,
    /// `failed` or `cancelled`.
    pub stage: String,
    /// The number of the purchase, from 0.
    pub round: u32,
    /// Failed attempts since the job last made progress.
    pub attempts: u32,
    /// The service at which it is bought, once that is known.
    pub service: Option<String>,
    pub transcription_id: Option<String>,
    /// The service's id of the request that failed.
    pub request_id: Option<String>,
    /// Names of the outputs beside the recording, or whole paths.
    pub outputs: Vec<String>,
    /// Why the job is where it is, for people.
    pub reason: String,
    pub fault: Option<FaultObject>,
    /// When the job reached its stage.
    pub since: String,
    /// The time of the next step; null if there is none without a person, or if the job has ended.
    pub due: Option<String>,
    /// What was requested and is missing in the result.
    pub missing: Vec<MissingObject>,
    /// What became of each requested part.
    pub parts: Vec<PartObject>,
    /// What of the service's answer could not be read.
    pub unread: Option<String>,
    /// When a person acknowledged how the job ended. Absent where there is nothing to acknowledge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Option<String>>,
    /// What the check of the result found. Absent where no result was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Value>,
    /// How many further warnings there were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_warnings: Option<Value>,
    /// Whether the result was checked without its recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_audio: Option<Value>,
    /// Files that earlier outputs of the job left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier_outputs: Vec<String>,
    /// The text that a person accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Value>,
    /// The parts in which the recording is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Vec<SentPartObject>>,
    /// What was sent, if it was not the file itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<Value>,
    /// The exact bytes of a path that is not UTF-8, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_b64: Option<String>,
}

/// What went wrong last, or what the job waits for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Fault")]
pub struct FaultObject {
    /// The kind of the fault, with its details.
    #[schemars(with = "Value")]
    pub kind: FaultKind,
    pub words: String,
    pub request_id: Option<String>,
    pub at: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "MissingPart")]
pub struct MissingObject {
    pub enrichment: Value,
    pub language: Option<String>,
    /// What the service said.
    pub words: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "RequestedPart")]
pub struct PartObject {
    pub enrichment: Value,
    pub language: Option<String>,
    pub outcome: Value,
    pub words: Option<String>,
}

/// A part in which a recording is sent. Times are seconds from the start of its sound track.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "SentPart")]
pub struct SentPartObject {
    pub start: f64,
    pub end: f64,
    pub transcription_id: Option<String>,
}

impl JobObject {
    pub fn of(job: &Job) -> Self {
        let fault = fault(job);
        let review = job.review().map(Review::as_json);
        let of_review = |key: &str| review.as_ref().map(|review| review[key].clone());
        let is_exact = job.key.path.is_utf8();
        Self {
            id: job.id.0,
            source: job.key.source.to_string(),
            path: job.key.path.lossy().into_owned(),
            stage: job.stage.kind().name().to_owned(),
            round: job.purchase_number,
            attempts: job.attempts,
            service: job.stage.purchase_key().map(|key| key.service.to_string()),
            transcription_id: job.stage.transcription().map(ToString::to_string),
            request_id: fault.and_then(|fault| fault.request_id.clone()),
            outputs: job.outputs.iter().map(output).collect(),
            reason: reason(job),
            fault: fault.map(FaultObject::of),
            since: timestamps::format(job.since),
            due: job.due.map(timestamps::format),
            missing: job.missing_parts().map(MissingObject::of).collect(),
            parts: job.requested_parts().iter().map(PartObject::of).collect(),
            unread: job.unread().map(str::to_owned),
            acknowledged: job.may_be_acknowledged().then(|| job.acknowledged.map(timestamps::format)),
            warnings: of_review("warnings"),
            more_warnings: of_review("more"),
            without_audio: of_review("without_audio"),
            earlier_outputs: job.earlier.iter().map(output).collect(),
            accepted: accepted(job),
            split: job.split.as_ref().map(|split| split.parts.iter().map(SentPartObject::of).collect()),
            sent: job.sent.as_ref().map(|sent| json!(sent)),
            path_b64: (!is_exact).then(|| base64::engine::general_purpose::STANDARD.encode(job.key.path.as_bytes())),
        }
    }
}

impl FaultObject {
    fn of(fault: &Fault) -> Self {
        let Fault { kind, words, request_id, at, .. } = fault.clone();
        Self { kind, words, request_id, at: timestamps::format(at) }
    }
}

impl MissingObject {
    fn of(part: &MissingPart) -> Self {
        let MissingPart { enrichment, language, words } = part.clone();
        Self { enrichment: json!(enrichment), language, words }
    }
}

impl PartObject {
    fn of(part: &RequestedPart) -> Self {
        let RequestedPart { enrichment, language, outcome, words } = part.clone();
        Self { enrichment: json!(enrichment), language, outcome: json!(outcome), words }
    }
}

impl SentPartObject {
    fn of(part: &Part) -> Self {
        let seconds = |millis: u64| millis as f64 / 1e3;
        let transcription_id = part.bought.as_ref().map(|bought| bought.transcription.to_string());
        Self { start: seconds(part.range.from_ms), end: seconds(part.range.to_ms), transcription_id }
    }
}

/// Returns the fault that made a job fail, or what it waits for.
pub fn fault(job: &Job) -> Option<&Fault> {
    match &job.stage {
        Stage::Failed { fault, .. } => Some(fault),
        _ => job.fault.as_ref(),
    }
}

fn accepted(job: &Job) -> Option<Value> {
    let accepted = job.accepted.as_ref()?;
    Some(json!({
        "output": accepted.output.as_ref().map(output), "format": accepted.format, "at": timestamps::format(accepted.at),
        "by": accepted.by, "in_use": job.accepted_text().is_some(),
    }))
}

/// Returns the name of an output beside its recording, or the whole path of one in another folder.
fn output(output: &Output) -> String {
    match &output.at {
        Some(folder) => format!("{}/{}", folder.lossy(), output.name.lossy()),
        None => output.name.lossy().into_owned(),
    }
}
