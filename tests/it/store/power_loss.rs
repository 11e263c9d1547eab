//! The halves of `tests/power-loss.sh`, of the store and of the service's ledger; of no use without it.

use super::durability;
use crate::service::transcription_log;
use scribed::testing::store::sled;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

fn told(name: &str) -> PathBuf {
    std::env::var_os(name).unwrap_or_else(|| panic!("{name} is set by tests/power-loss.sh")).into()
}

/// Works on a store, and says what was acknowledged in a file that the shim sees.
#[test]
#[ignore = "run by tests/power-loss.sh"]
fn work() {
    let dir = told("POWER_LOSS_WORK");
    let acks = Mutex::new(OpenOptions::new().create(true).append(true).open(dir.join("acks")).unwrap());
    let say = move |line: &str| acks.lock().unwrap().write_all(line.as_bytes()).unwrap();
    durability::work_on(&dir.join("state"), Arc::new(say), 400);
}

/// Opens what was left and looks for what was acknowledged.
#[test]
#[ignore = "run by tests/power-loss.sh"]
fn look() {
    let acks = std::fs::read_to_string(told("POWER_LOSS_ACKS")).unwrap();
    let mut acknowledged = BTreeMap::new();
    for (id, stage) in acks.lines().filter_map(durability::parse) {
        let best = acknowledged.entry(id).or_insert(stage);
        *best = stage.max(*best);
    }
    let store = sled::open(&told("POWER_LOSS_LOOK").join("state"));
    let store = store.unwrap_or_else(|error| panic!("does not open: {error}"));
    tokio::runtime::Runtime::new().unwrap().block_on(durability::look(&store, &acknowledged));
}

/// As [`work`], on the ledger.
#[test]
#[ignore = "run by tests/power-loss.sh"]
fn ledger_work() {
    let dir = told("POWER_LOSS_WORK");
    let acks = Mutex::new(OpenOptions::new().create(true).append(true).open(dir.join("acks")).unwrap());
    let say = move |line: &str| acks.lock().unwrap().write_all(line.as_bytes()).unwrap();
    transcription_log::work_together(&dir.join("ledger"), Arc::new(say));
}

/// As [`look`], on the ledger.
#[test]
#[ignore = "run by tests/power-loss.sh"]
fn ledger_look() {
    let acks = std::fs::read_to_string(told("POWER_LOSS_ACKS")).unwrap();
    transcription_log::look(&told("POWER_LOSS_LOOK").join("ledger"), &acks);
}
