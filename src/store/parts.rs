//! A record of which a part is kept in files (`store/large.rs`): how it is divided, and what it means when such a
//! file is lost. That costs the job that it belongs to, and no other.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::Hash;
use crate::store::large::LargeValues;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;

/// The fields of a job that may become files: the largest field of the first group first, then the next group if that
/// is not enough. What decides about money comes last.
pub const OF_A_JOB: [&[&str]; 4] = [
    &["row", "placed_by", "making", "outputs", "earlier", "placing", "sent", "review"],
    &["charges", "fault", "made_from", "language", "missing", "parts", "bought_at"],
    &["key"],
    &["stage"],
];

/// A field that is not longer is not worth a file.
const SHORTEST: usize = 200;

/// The longest name of a manifest that stays in the record of its row.
const LONGEST_NAME: usize = 1_000;

/// A record, and the files that hold the rest of it.
#[derive(Debug, Serialize, Deserialize)]
pub struct SplitRecord {
    value: Map<String, Value>,
    pub files: BTreeMap<String, Hash>,
}

/// A field that is to become a file.
pub struct SplitField {
    field: String,
    pub json: Vec<u8>,
}

impl SplitRecord {
    /// Creates a record of which no field is in a file yet. A value that is no object has no fields.
    pub fn whole(value: Value) -> Self {
        let value = match value {
            Value::Object(value) => value,
            _ => Map::new(),
        };
        Self { value, files: BTreeMap::new() }
    }

    /// Returns the next field that becomes a file; `None` if only short ones are left.
    pub fn largest(&self, groups: &[&[&str]]) -> Option<SplitField> {
        groups.iter().find_map(|group| {
            let fields = group.iter().filter(|field| !self.files.contains_key(**field));
            let parts = fields.filter_map(|field| Some(SplitField::of(field, self.value.get(*field)?)));
            parts.filter(|part| part.json.len() > SHORTEST).max_by_key(|part| part.json.len())
        })
    }

    /// Notes that a field has become the file of this hash.
    pub fn took(&mut self, part: SplitField, hash: Hash) {
        let remainder = self.value.remove(&part.field).and_then(|value| remainder(&part.field, &value));
        self.value.extend(remainder.map(|remainder| (part.field.clone(), remainder)));
        self.files.insert(part.field, hash);
    }
}

impl SplitField {
    fn of(field: &str, value: &Value) -> Self {
        Self { field: field.to_owned(), json: value.to_string().into_bytes() }
    }
}

/// Returns what stays in the record in place of a field: of a row, where it stands, so that its manifest can order it
/// again; of the requested and of the missing parts, their names and outcomes.
fn remainder(field: &str, value: &Value) -> Option<Value> {
    match field {
        "row" => Some(row_remainder(value)),
        "missing" => Some(missing_remainder(value)),
        "parts" => Some(parts_remainder(value)),
        _ => None,
    }
}

fn missing_remainder(value: &Value) -> Value {
    let named = |part: &Value| json!({ "enrichment": part["enrichment"], "language": part["language"] });
    value.as_array().into_iter().flatten().map(named).collect()
}

fn parts_remainder(value: &Value) -> Value {
    let named = |part: &Value| json!({ "enrichment": part["enrichment"], "language": part["language"], "outcome": part["outcome"] });
    value.as_array().into_iter().flatten().map(named).collect()
}

fn row_remainder(value: &Value) -> Value {
    let manifest = value.get("manifest").filter(|manifest| manifest.to_string().len() <= LONGEST_NAME);
    let (manifest, number) = (manifest.cloned().unwrap_or_else(|| json!("")), value.get("number"));
    json!({ "manifest": manifest, "number": number, "media": { "file": "" }, "lost": true })
}

/// Builds a job from its record. If one of its files is lost or damaged, the job waits for a person, and its fault
/// names the file.
///
/// # Errors
/// The record itself is invalid.
pub fn job(divided: SplitRecord, large: &LargeValues) -> Result<Job, String> {
    let SplitRecord { mut value, files } = divided;
    let mut lost = Vec::new();
    for (field, hash) in files {
        match load(large, &hash) {
            Ok(part) => drop(value.insert(field, part)),
            Err(error) => {
                lost.push(format!("{} ({error})", large.path(&hash).display()));
                value.extend(without(&field, value.get("id")).map(|instead| (field, instead)));
            }
        }
    }
    let job = serde_json::from_value(Value::Object(value));
    let job: Job = job.map_err(|error| format!("a record is invalid: {error}"))?;
    if lost.is_empty() || job.stage.is_end() {
        return Ok(job);
    }
    let fault = Fault::new(FaultKind::Asks, words(&job, &lost), job.since);
    Ok(job.deferred(None, Some(fault)))
}

fn words(job: &Job, lost: &[String]) -> String {
    let does = match &job.row {
        Some(row) if row.lost => {
            "if nothing was bought for the row yet, scribed orders it again when it next reads the manifest".to_owned()
        }
        _ => format!("`scribed retry {}` continues without it: scribed renders the lost part again", job.id),
    };
    format!(
        "a part of the job's record is missing or damaged: {}. scribed does nothing for the job until then: \
         restore the file from a backup and restart scribed; otherwise, {does}",
        lost.join(", ")
    )
}

/// Returns what replaces a lost field; `None` if the field may be absent.
fn without(field: &str, id: Option<&Value>) -> Option<Value> {
    match field {
        "outputs" => Some(json!([])),
        "fault" => Some(Value::Null),
        "key" => Some(json!({ "source": "?", "path": format!("lost path of job {}", id.unwrap_or(&Value::Null)) })),
        "stage" => {
            let fault = Fault::new(
                FaultKind::Asks,
                "the job's record is missing or damaged",
                crate::domain::names::Timestamp(0),
            );
            Some(json!({ "failed": { "from": "found", "fault": fault } }))
        }
        _ => None,
    }
}

/// Builds another value from its record; `None` if one of its files is lost or damaged.
pub fn value<T: DeserializeOwned>(divided: SplitRecord, large: &LargeValues) -> Option<T> {
    let SplitRecord { mut value, files } = divided;
    for (field, hash) in files {
        let part = load(large, &hash).ok()?;
        value.insert(field, part);
    }
    serde_json::from_value(Value::Object(value)).ok()
}

fn load(large: &LargeValues, hash: &Hash) -> io::Result<Value> {
    Ok(serde_json::from_slice(&large.load(hash)?)?)
}
