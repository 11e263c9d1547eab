//! The state of every earlier version opens, is checked, works, and goes through a backup. `tests/data` has a folder for
//! each version; none of its files is ever changed.

use crate::support::bed::Bed;
use crate::support::config::Config;
use crate::support::jobs::{purchase_key, transcription};
use crate::support::stub::Stub;
use scribed::testing::domain::stage::StageKind;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn data(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(version)
}

fn bed(stub: &Stub) -> Bed {
    Config::of(stub).folder("inbox", "name = \"tests\"").bed()
}

/// Puts the rows, the history and the service's records of format 1 into the state directory.
fn put_format_1(bed: &Bed) {
    let read =
        |name: &str| -> Value { serde_json::from_str(&fs::read_to_string(data("v1").join(name)).unwrap()).unwrap() };
    let line = |record: &str, value: Value| json!({ "record": record, "value": value });
    let jobs = StageKind::ALL.into_iter().map(|kind| read(&format!("job-{}.json", kind.name())));
    let mut lines = vec![json!({ "format": "scribed-state", "version": 1, "program": "scribed" })];
    lines.extend(jobs.map(|job| line("job", job)));
    let n = StageKind::Written as u64;
    assert_eq!(read("bought.json")["transcription"], json!(transcription(5)));
    lines.push(line("purchase", json!({ "order": purchase_key(n), "purchase": read("bought.json") })));
    lines.push(line("end", json!({ "jobs": StageKind::ALL.len(), "purchases": 1, "params": 0 })));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(bed.path("queue.jsonl"), text).unwrap();
    let imported = bed.run(["state", "import", "queue.jsonl"]);
    assert_eq!(imported.code, 0, "{imported:?}");
    fs::copy(data("v1/history.jsonl"), bed.path("state/history/2026-11.jsonl")).unwrap();
    for (name, to) in [("done", "transcriptions"), ("queued", "transcriptions"), ("result", "results")] {
        let folder = bed.path("state/service").join(to);
        fs::create_dir_all(&folder).unwrap();
        let id = if name == "queued" { QUEUED } else { ENDED };
        fs::copy(data("v1/desk").join(format!("{name}.json")), folder.join(format!("{id}.json"))).unwrap();
    }
}

const ENDED: &str = "6f2f9d5e-6a39-4a8e-8a0a-0d5f9a5b0c01";
const QUEUED: &str = "6f2f9d5e-6a39-4a8e-8a0a-0d5f9a5b0c02";

/// Fails unless the state can be read, and one pass works on it. Its jobs have no recordings, so nothing is bought.
fn assert_works(bed: &Bed, stub: &Stub) {
    let checked = bed.run(["state", "check", "--json"]);
    let problems = checked.last_object()["problems"].clone();
    let is_missing = |problem: &Value| problem.as_str().unwrap().starts_with("missing: ");
    assert!(problems.as_array().unwrap().iter().all(is_missing), "no row and no file is damaged: {problems}");
    let jobs = || bed.run(["jobs", "--json"]).objects();
    assert_eq!(jobs().len(), StageKind::ALL.len());
    let pass = bed.run(["once", "--json"]);
    assert!([0, 1].contains(&pass.code), "{pass:?}");
    assert_eq!((stub.records().creates.len(), jobs().len()), (0, StageKind::ALL.len()), "nothing was bought");
    assert_eq!(bed.run(["show", "1"]).code, 0);
}

#[test]
fn a_state_of_format_1_opens_works_and_is_backed_up() {
    let stub = Stub::well();
    let bed = bed(&stub);
    put_format_1(&bed);
    if let Some(to) = std::env::var_os("WRITE_BACKUP_OF_FORMAT_1") {
        assert_eq!(bed.run(["state".as_ref(), "backup".as_ref(), to.as_os_str()]).code, 0);
    }
    assert_works(&bed, &stub);
    assert_eq!(bed.run(["state", "backup", "state.tar"]).code, 0);
    let jobs = bed.run(["jobs", "--json"]).stdout;
    fs::rename(bed.path("state"), bed.path("before")).unwrap();
    let restored = bed.run(["state", "restore", "state.tar"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert_eq!(bed.run(["jobs", "--json"]).stdout, jobs);
    assert_works(&bed, &stub);
}

/// A backup is read by every later release.
#[test]
fn a_backup_of_format_1_is_restored() {
    let stub = Stub::well();
    let bed = bed(&stub);
    fs::copy(data("v1/backup.tar.gz"), bed.path("backup.tar.gz")).unwrap();
    let restored = bed.run(["state", "restore", "backup.tar.gz"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert!(bed.path("state/history/2026-11.jsonl").exists());
    assert!(bed.path(format!("state/service/results/{ENDED}.json")).exists());
    assert_works(&bed, &stub);
}
