//! The file of `scribed state export`: a header, then one JSON object a line, each with the kind of the record and its
//! value as the queue stores it. The last line counts the others, so that a file that was cut off is noticed.

use crate::domain::job::{Job, JobKey};
use crate::domain::names::{Hash, JobId, ServiceName};
use crate::domain::output_text::AcceptedText;
use crate::domain::pause::Pauses;
use crate::domain::token::PurchaseKey;
use crate::output::accepted::{AcceptedTexts, KeptText};
use crate::store::contract::{KnownPurchase, StoreError};
use crate::store::params::ParamFiles;
use crate::store::queue::{QueueStore, StoredRow, follows, services_of};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write};

/// What the header names the format.
const FORMAT: &str = "scribed-state";

/// The version that this release writes, and the newest that it reads.
pub const VERSION: u64 = 1;

/// The longest line that is written and read, in bytes: a job with its row and outputs is far shorter, and so is nearly
/// every accepted text.
const LONGEST_LINE: u64 = 64 << 20;

/// How many unknown fields are named.
const NAMED: usize = 20;

/// Why a state cannot be exported or imported.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not what an import can read.
    #[error("line {line}: {what}")]
    Invalid { line: u64, what: String },
    #[error("the file was written by a newer scribed (version {0}; this one reads versions up to {VERSION})")]
    Newer(u64),
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u64,
    program: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    record: String,
    value: Value,
}

#[derive(Serialize, Deserialize)]
struct PurchaseRecord {
    #[serde(rename = "order")]
    purchase_key: PurchaseKey,
    purchase: KnownPurchase,
}

/// The parameters of requests, as they are stored.
#[derive(Serialize, Deserialize)]
struct ParamsRecord {
    hash: Hash,
    json: String,
}

/// A text that a person accepted.
#[derive(Debug, Serialize, Deserialize)]
pub struct AcceptedRecord {
    job: JobKey,
    text: KeptText,
}

/// How many records of each kind a file has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordCounts {
    pub jobs: u64,
    pub purchases: u64,
    /// Different parameters of requests.
    pub params: u64,
    /// Accepted texts; none in the files of earlier releases.
    #[serde(default)]
    pub texts: u64,
}

/// What an export wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    pub counts: RecordCounts,
    /// The jobs whose accepted texts are not in the file: they cannot be read, or are too long for a line.
    pub without_text: Vec<JobId>,
}

/// Writes all of a queue, and the texts that people accepted. Blocks.
///
/// # Errors
/// See [`StateFileError`].
pub fn export(store: &QueueStore, params: &ParamFiles, to: &mut dyn Write) -> Result<Exported, StateFileError> {
    let program = format!("scribed {}", env!("CARGO_PKG_VERSION"));
    put(to, &Header { format: FORMAT.to_owned(), version: VERSION, program })?;
    let mut counts = RecordCounts::default();
    let mut accepted = Vec::new();
    store.export_rows(&mut |row| -> Result<(), StateFileError> {
        let (record, value) = match row {
            StoredRow::Job(job) => {
                counts.jobs += 1;
                accepted.extend(job.accepted.clone().map(|accepted| (job.id, job.key.clone(), accepted)));
                ("job", json!(job))
            }
            StoredRow::Purchase(purchase) => {
                counts.purchases += 1;
                let (purchase_key, purchase) = *purchase;
                ("purchase", json!(PurchaseRecord { purchase_key, purchase }))
            }
            StoredRow::Pauses(pauses) => ("pauses", json!(pauses)),
        };
        Ok(put(to, &Line { record: record.to_owned(), value })?)
    })?;
    for (hash, json) in params.all()? {
        counts.params += 1;
        put(to, &Line { record: "params".to_owned(), value: json!(ParamsRecord { hash, json }) })?;
    }
    let texts = accepted_texts(params);
    let mut without_text = Vec::new();
    for (id, key, accepted) in accepted {
        match accepted_line(&texts, key, &accepted) {
            Some(line) => {
                counts.texts += 1;
                to.write_all(&line)?;
            }
            None => without_text.push(id),
        }
    }
    put(to, &Line { record: "end".to_owned(), value: json!(counts) })?;
    Ok(Exported { counts, without_text })
}

fn accepted_texts(params: &ParamFiles) -> AcceptedTexts {
    AcceptedTexts::new(params.beside("accepted"))
}

/// Returns the line of an accepted text; `None` if it cannot be read, or if no import would read such a long line.
fn accepted_line(texts: &AcceptedTexts, job: JobKey, accepted: &AcceptedText) -> Option<Vec<u8>> {
    let text = texts.open(&job, accepted).ok()?;
    let value = json!(AcceptedRecord { job, text });
    let mut line = Vec::new();
    put(&mut line, &Line { record: "accepted".to_owned(), value }).ok()?;
    (line.len() as u64 <= LONGEST_LINE).then_some(line)
}

fn put(to: &mut dyn Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

/// A record that an import stores.
#[derive(Debug)]
pub enum StateRecord {
    Row(StoredRow),
    /// The canonical bytes of request parameters.
    Params(String),
    Accepted(Box<AcceptedRecord>),
}

/// What was found out about a file by reading all of it.
#[derive(Debug, Default)]
pub struct CheckedFile {
    pub counts: RecordCounts,
    /// The services that the records name.
    pub services: BTreeSet<ServiceName>,
    /// Fields and records that this release does not know, and that it therefore leaves out; at most [`NAMED`].
    pub unknown: BTreeSet<String>,
    /// The accepted texts that jobs have and the file has not.
    pub without_text: BTreeMap<(JobKey, Hash), JobId>,
}

/// Reads a file line by line and passes its records to `take`. Returns what it contains.
///
/// # Errors
/// See [`StateFileError`]; errors of `take`.
pub fn read(
    from: &mut dyn BufRead,
    take: &mut dyn FnMut(StateRecord) -> Result<(), StateFileError>,
) -> Result<CheckedFile, StateFileError> {
    let (mut checked, mut line, mut number) = (CheckedFile::default(), Vec::new(), 0);
    let mut end: Option<RecordCounts> = None;
    loop {
        line.clear();
        number += 1;
        let invalid = |what: String| StateFileError::Invalid { line: number, what };
        let read = io::Read::take(&mut *from, LONGEST_LINE).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        if end.is_some() {
            return Err(invalid("there are lines after the last record".to_owned()));
        }
        if number == 1 {
            check_header(&line)?;
            continue;
        }
        let Line { record, value } = serde_json::from_slice(&line).map_err(|error| invalid(error.to_string()))?;
        if record == "end" {
            end = Some(serde_json::from_value(value).map_err(|error| invalid(error.to_string()))?);
            continue;
        }
        match parse(&record, &value, &mut checked).map_err(invalid)? {
            Some(parsed) => take(parsed)?,
            None => name_unknown(&mut checked.unknown, format!("records of the kind {record:?}")),
        }
    }
    let invalid = |what: &str| StateFileError::Invalid { line: number, what: what.to_owned() };
    match end {
        _ if number == 1 => Err(invalid("the file is empty")),
        None => Err(invalid("the file is incomplete: its last record is missing")),
        Some(counts) if counts != checked.counts => Err(invalid("the file lacks records: its last line counts others")),
        Some(_) => Ok(checked),
    }
}

fn check_header(line: &[u8]) -> Result<(), StateFileError> {
    let is_none = || StateFileError::Invalid {
        line: 1,
        what: "this is not a file of `scribed state export`: its header is missing".to_owned(),
    };
    let header: Header = serde_json::from_slice(line).map_err(|_| is_none())?;
    match (header.format.as_str(), header.version) {
        (FORMAT, version) if version > VERSION => Err(StateFileError::Newer(version)),
        (FORMAT, 1..) => Ok(()),
        _ => Err(is_none()),
    }
}

/// Parses a record and counts it; `None` for a kind that this release does not know.
fn parse(record: &str, value: &Value, checked: &mut CheckedFile) -> Result<Option<StateRecord>, String> {
    let words = |error: serde_json::Error| error.to_string();
    let (known, parsed) = match record {
        "job" => {
            let job: Box<Job> = Job::deserialize(value).map_err(words)?.into();
            if !follows(&job, checked.counts.jobs) {
                return Err(format!("job {} does not follow job {}: a job is missing", job.id, checked.counts.jobs));
            }
            checked.counts.jobs += 1;
            let accepted = job.accepted.iter().map(|accepted| ((job.key.clone(), accepted.hash), job.id));
            checked.without_text.extend(accepted);
            (json!(job), StateRecord::Row(StoredRow::Job(job)))
        }
        "purchase" => {
            let record = PurchaseRecord::deserialize(value).map_err(words)?;
            checked.counts.purchases += 1;
            let known = json!(record);
            (known, StateRecord::Row(StoredRow::Purchase(Box::new((record.purchase_key, record.purchase)))))
        }
        "pauses" => {
            let pauses = Pauses::deserialize(value).map_err(words)?;
            (json!(pauses), StateRecord::Row(StoredRow::Pauses(pauses)))
        }
        "params" => {
            let record = ParamsRecord::deserialize(value).map_err(words)?;
            if Hash::of(record.json.as_bytes()) != record.hash {
                return Err(format!("the parameters {} do not match their hash", record.hash));
            }
            checked.counts.params += 1;
            (json!(record), StateRecord::Params(record.json))
        }
        "accepted" => {
            let record = AcceptedRecord::deserialize(value).map_err(words)?;
            let of = (record.job.clone(), Hash::of(&record.text.file_bytes()));
            if checked.without_text.remove(&of).is_none() {
                return Err(format!("no job has the accepted text of {}", record.job));
            }
            checked.counts.texts += 1;
            (json!(record), StateRecord::Accepted(Box::new(record)))
        }
        _ => return Ok(None),
    };
    note_unknown(value, &known, record, &mut checked.unknown);
    if let StateRecord::Row(row) = &parsed {
        checked.services.extend(services_of(row));
    }
    Ok(Some(parsed))
}

/// Names the fields of a record that are not in what was read of it.
fn note_unknown(given: &Value, known: &Value, path: &str, unknown: &mut BTreeSet<String>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            for (name, value) in given {
                let path = format!("{path}.{name}");
                match known.get(name) {
                    Some(known) => note_unknown(value, known, &path, unknown),
                    None if is_nothing(value) => {}
                    None => name_unknown(unknown, path),
                }
            }
        }
        (Value::Array(given), Value::Array(known)) => {
            given.iter().zip(known).for_each(|(given, known)| note_unknown(given, known, path, unknown));
        }
        _ => {}
    }
}

/// Whether a value is what a field has when it is left out.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn name_unknown(unknown: &mut BTreeSet<String>, name: String) {
    if unknown.len() < NAMED {
        unknown.insert(name);
    }
}

/// Stores a record.
pub fn import(store: &QueueStore, params: &ParamFiles, record: &StateRecord) -> Result<(), StateFileError> {
    match record {
        StateRecord::Row(row) => Ok(store.import_row(row)?),
        StateRecord::Params(json) => Ok(params.keep(json.as_bytes()).map(drop)?),
        StateRecord::Accepted(accepted) => Ok(accepted_texts(params).save(&accepted.job, &accepted.text)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::names::{JobId, SourceName, Timestamp, TranscriptionId};
    use crate::domain::path::RelPath;
    use crate::store::sled;
    use proptest::prelude::*;

    fn exported(store: &QueueStore, params: &ParamFiles) -> String {
        let mut text = Vec::new();
        export(store, params, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn imported(text: &str, state: &std::path::Path) -> (QueueStore, ParamFiles) {
        let (store, params) = (sled::open(state).unwrap(), ParamFiles::new(state.join("params")));
        read(&mut text.as_bytes(), &mut |record| import(&store, &params, &record)).unwrap();
        (store, params)
    }

    fn error_of(text: &str) -> String {
        read(&mut text.as_bytes(), &mut |_| Ok(())).unwrap_err().to_string()
    }

    fn queue(jobs: &[(Vec<u8>, bool, u32)]) -> (tempfile::TempDir, QueueStore, ParamFiles) {
        let dir = tempfile::tempdir().unwrap();
        let (store, params) = (sled::open(dir.path()).unwrap(), ParamFiles::new(dir.path().join("params")));
        let hash = params.keep(br#"{"diarization":true}"#).unwrap();
        for (number, (path, is_bought, purchase_number)) in (1..).zip(jobs) {
            let key = JobKey {
                source: SourceName::new("s"),
                path: RelPath::new([path, number.to_string().as_bytes()].concat()),
            };
            let found = Job::found(JobId(number), key, Stamp::default(), Timestamp(5), Timestamp(6));
            let job =
                Job { purchase_number: *purchase_number, acknowledged: is_bought.then_some(Timestamp(9)), ..found };
            store.import_row(&StoredRow::Job(Box::new(job))).unwrap();
            if *is_bought {
                let purchase_key =
                    PurchaseKey { service: ServiceName::new("x"), content: Hash::of(path), params: hash, part: None };
                let transcription = TranscriptionId::new(format!("t-{number}"));
                let bought = KnownPurchase {
                    transcription,
                    purchase_number: *purchase_number,
                    by: Some(JobId(number)),
                    origin: None,
                    sighted: None,
                    confirmed: *purchase_number > 1,
                };
                store.import_row(&StoredRow::Purchase(Box::new((purchase_key, bought)))).unwrap();
            }
        }
        (dir, store, params)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn what_was_imported_is_exported_as_it_was(
            jobs in proptest::collection::vec((proptest::collection::vec(1..255_u8, 1..40), any::<bool>(), 0..4_u32), 0..8),
        ) {
            let (_dir, store, params) = queue(&jobs);
            let first = exported(&store, &params);
            let other = tempfile::tempdir().unwrap();
            let (store, params) = imported(&first, other.path());
            prop_assert_eq!(&exported(&store, &params), &first);
        }
    }

    #[test]
    fn a_file_that_was_cut_off_or_is_newer_is_refused() {
        let (_dir, store, params) = queue(&[(b"a".to_vec(), true, 0), (b"b".to_vec(), false, 1)]);
        let text = exported(&store, &params);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 2 + 1 + 1 + 1 + 1);
        for kept in 1..lines.len() {
            assert!(error_of(&(lines[..kept].join("\n") + "\n")).contains("incomplete"), "{kept}");
        }
        assert!(error_of("").contains("empty"));
        assert!(error_of("{}\n").contains("not a file of `scribed state export`"));
        let without = |left_out: usize| {
            let kept = lines.iter().enumerate().filter(|(number, _)| *number != left_out).map(|(_, line)| *line);
            kept.collect::<Vec<_>>().join("\n")
        };
        assert!(error_of(&without(1)).contains("a job is missing"));
        assert!(error_of(&without(3)).contains("lacks records"));
        let newer = text.replacen("\"version\":1", "\"version\":2", 1);
        assert!(error_of(&newer).contains("newer scribed (version 2"));
        let half = text.replacen("diarization", "diarisation", 1);
        assert!(error_of(&half).contains("do not match their hash"));
    }

    #[test]
    fn what_this_release_does_not_know_is_named() {
        let (_dir, store, params) = queue(&[(b"a".to_vec(), false, 0)]);
        let text = exported(&store, &params);
        let more = text.replacen("\"round\":0", "\"round\":0,\"mood\":\"good\",\"idle\":null", 1);
        let more =
            more.replacen("{\"record\":\"pauses\"", "{\"record\":\"omens\",\"value\":{}}\n{\"record\":\"pauses\"", 1);
        let checked = read(&mut more.as_bytes(), &mut |_| Ok(())).unwrap();
        let unknown: Vec<&str> = checked.unknown.iter().map(String::as_str).collect();
        assert_eq!(unknown, ["job.mood", "records of the kind \"omens\""]);
        let plain = read(&mut text.as_bytes(), &mut |_| Ok(())).unwrap();
        assert!(plain.unknown.is_empty(), "{:?}", plain.unknown);
    }
}
