//! What an older release has written stays readable for ever. These files are never changed; a new format gets a folder
//! of its own beside them.

use crate::support::jobs::{START, at, fault, key, outputs, stamp, taken_to};
use scribed::testing::domain::charge::{Charge, State};
use scribed::testing::domain::fault::FaultKind;
use scribed::testing::domain::job::Job;
use scribed::testing::domain::names::JobId;
use scribed::testing::domain::path::RelPath;
use scribed::testing::domain::stage::StageKind;
use scribed::testing::store::contract::{HistoryEntry, KnownPurchase};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/v1")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What the files say.
fn expected(kind: StageKind) -> Job {
    let n = kind as u64;
    let job = Job::found(JobId(n + 1), key(n), stamp(4096 + n), START, at(60));
    let mut job = taken_to(job, kind, n, at(5));
    // Were not written down.
    (job.bought_at, job.sent_millis) = (None, None);
    match kind {
        StageKind::Found => job.key.path = RelPath::new(b"bad \xff bytes \\ and\nline.wav".as_slice()),
        StageKind::Submitting => job = job.deferred(None, Some(fault(FaultKind::Asks, "the service has no list"))),
        StageKind::Submitted => {
            let mut throttled = fault(FaultKind::Throttled { retry_after_ms: Some(1500) }, "429: slow down");
            throttled.request_id = Some("G-1".into());
            job = job.deferred(Some(at(65)), Some(throttled));
            job.purchase_number = 2;
        }
        StageKind::Written => job.outputs = outputs(),
        _ => {}
    }
    job
}

#[test]
fn jobs_of_format_1_at_every_stage() {
    for kind in StageKind::ALL {
        let job: Job = serde_json::from_str(&read(&format!("job-{}.json", kind.name()))).unwrap();
        assert_eq!(job, expected(kind), "{}", kind.name());
    }
}

/// What a later release adds to a row is not in older ones, and comes back from its own.
#[test]
fn a_row_says_what_could_not_be_read_and_an_older_one_says_nothing_of_it() {
    let old = read("job-written.json");
    assert!(!old.contains("unread"));
    let mut job: Job = serde_json::from_str(&old).unwrap();
    assert_eq!((job.unread(), job.is_incomplete()), (None, false));
    assert!(!serde_json::to_string(&job).unwrap().contains("unread"), "an older release reads it as it was");
    job.unread = Some("languages".to_owned());
    let again: Job = serde_json::from_str(&serde_json::to_string(&job).unwrap()).unwrap();
    assert_eq!((again.unread(), again.is_incomplete(), &again), (Some("languages"), true, &job));
}

#[test]
fn charges_of_format_1() {
    let charges: Vec<Charge> = serde_json::from_str(&read("charges.json")).unwrap();
    let amounts: Vec<_> = charges.iter().map(|charge| (charge.state, charge.amount(), charge.excess())).collect();
    let expected = [(State::Spent, Some(62_000), 500), (State::Held, Some(61_500), 0), (State::Shared, Some(0), 0)];
    assert_eq!(amounts, expected);
    assert_eq!(charges[0].transcription, Some(crate::support::jobs::transcription(8)));
    let job: Job = serde_json::from_str(&read("job-written.json")).unwrap();
    assert!(job.has_unknown_cost(), "what was bought before charges were kept");
}

#[test]
fn a_purchase_of_format_1() {
    let bought: KnownPurchase = serde_json::from_str(&read("bought.json")).unwrap();
    assert_eq!(
        bought,
        KnownPurchase {
            transcription: crate::support::jobs::transcription(5),
            purchase_number: 3,
            by: None,
            origin: None,
            sighted: None,
            confirmed: false,
        }
    );
}

#[test]
fn a_history_of_format_1() {
    let notes: Vec<HistoryEntry> =
        read("history.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let words: Vec<_> = notes.iter().map(|note| (note.stage.name(), note.words.as_deref())).collect();
    assert_eq!(words, [("found", None), ("submitted", Some("429: slow down"))]);
}

#[test]
fn a_configuration_of_the_first_release_is_read() {
    let path = folder().join("jobs.toml");
    let env = |_: &str| Some("a-key".into());
    let config = scribed::testing::config::load::read::load_with(&path, &env).unwrap();
    assert_eq!(config.sources[0].name.as_str(), "interviews");
    assert_eq!(config.retry.attempts, 5);
}
