//! Records of any length: what a row or a service says of one recording is never too long for the queue, and a lost
//! part of a record costs its own job alone.

use crate::support::manifests::{bed, receipt, write};
use crate::support::stub::Stub;
use proptest::prelude::*;
use scribed::testing::domain::fault::{Fault, FaultKind};
use scribed::testing::domain::format::Format;
use scribed::testing::domain::job::{Job, JobKey, Output, Stamp};
use scribed::testing::domain::manifest_row::{ManifestRow, RowMedia, RowSight};
use scribed::testing::domain::names::{Hash, JobId, SourceName, Timestamp};
use scribed::testing::domain::path::RelPath;
use scribed::testing::domain::request_record::RequestRecord;
use scribed::testing::domain::stage::StageKind;
use scribed::testing::store::contract::{Admission, ClaimLimit, Claims, Hold, Jobs, Lifecycle, Queries};
use scribed::testing::store::queue::QueueStore;
use scribed::testing::store::sled;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const NOW: Timestamp = Timestamp(1_795_000_000_000);

/// Text that does not compress.
fn noise(n: u64, length: usize) -> String {
    let mut chance = fastrand::Rng::with_seed(n);
    (0..length).map(|_| chance.alphanumeric()).collect()
}

fn words(count: u64) -> String {
    (0..count).map(|n| noise(n, 12)).collect::<Vec<_>>().join(";")
}

#[test]
fn rows_of_any_length_are_taken_or_told_and_never_end_the_program() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    for name in ["a.wav", "b.wav", "c.wav"] {
        write(&bed, name, name);
    }
    let long = noise(1, 60_000);
    write(&bed, "words.csv", format!("file,vocabulary\na.wav,{}\nb.wav,{}\n{long}.wav,\n", words(999), words(100_000)));
    let names: Vec<String> = (0..5_000).map(|n| format!("column {n}")).collect();
    let cells: Vec<String> = (0..5_000).map(|n| noise(n, 30)).collect();
    write(&bed, "columns.csv", format!("file,{}\nc.wav,{}\n", names.join(","), cells.join(",")));
    for _ in 0..2 {
        let ran = bed.run(["once", "--json"]);
        assert_eq!(ran.code, 1, "rows that order nothing are told: {}", ran.stderr);
    }
    for name in ["a.en.txt", "c.en.txt"] {
        assert!(bed.path("inbox").join(name).exists(), "{name}");
    }
    let rows = receipt(&bed, "words.csv.receipt.csv");
    assert_eq!(rows[0]["scribed_state"], "written", "{:?}", rows[0]["scribed_reason"]);
    assert!(rows[1]["scribed_reason"].contains("more than 1000 words"), "{}", rows[1]["scribed_reason"]);
    assert!(rows[2]["scribed_reason"].contains("a path of more than"), "{}", rows[2]["scribed_reason"]);
    let create = stub.book().creates.iter().find(|create| create.file == "a.wav").map(|create| create.body.to_string());
    assert!(create.unwrap().contains(&noise(998, 12)), "the last word is sent too");
}

fn key(path: &str) -> JobKey {
    JobKey { source: SourceName::new("lists"), path: RelPath::new(path) }
}

fn row(path: &str, words: u64) -> ManifestRow {
    ManifestRow {
        vocabulary: (0..words).map(|n| noise(n, 20)).collect(),
        ..ManifestRow::minimal(RelPath::new("a.csv"), 2, RowMedia::File(RelPath::new(path)))
    }
}

const STAMP: Stamp = Stamp { size: 1, mtime_ns: 0, ctime_ns: 0, inode: 1 };

async fn admitted(store: &QueueStore, path: &str, row: &ManifestRow) -> (JobId, Admission) {
    let admission = store.admit_row(&key(path), row, RowSight::File(STAMP), NOW, NOW).await.unwrap();
    (admission.id(), admission)
}

fn large_files(state: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(state.join("queue/large")).unwrap().map(|folder| folder.unwrap().path());
    folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|file| file.unwrap().path())).collect()
}

#[tokio::test]
async fn a_lost_part_of_a_record_costs_its_own_job_until_the_list_is_read_again() {
    let state = tempfile::tempdir().unwrap();
    let (lost, kept) = (row("a.wav", 999), row("b.wav", 998));
    let store = sled::open(state.path()).unwrap();
    let (a, _) = admitted(&store, "a.wav", &lost).await;
    let file = large_files(state.path()).remove(0);
    let (b, _) = admitted(&store, "b.wav", &kept).await;
    store.flush().await.unwrap();
    drop(store);

    for damage in [|file: &Path| fs::write(file, "{}").unwrap(), |file: &Path| fs::remove_file(file).unwrap()] {
        damage(&file);
        let store = sled::open(state.path()).unwrap();
        let job = store.job(a).await.unwrap().unwrap();
        let fault = job.fault.clone().unwrap();
        assert_eq!((fault.kind, job.due, job.key), (FaultKind::Asks, None, key("a.wav")));
        let words = &fault.words;
        assert!(words.contains(file.to_str().unwrap()) && words.contains("next reads the manifest"), "{words}");
        assert_eq!(*store.job(b).await.unwrap().unwrap().row.unwrap(), kept);
    }
    let store = sled::open(state.path()).unwrap();
    let (id, admission) = admitted(&store, "a.wav", &lost).await;
    assert_eq!((id, admission), (a, Admission::Reopened(a)));
    let job = store.job(a).await.unwrap().unwrap();
    assert_eq!((*job.row.unwrap(), job.fault.is_none(), job.due), (lost, true, Some(NOW)));
}

#[tokio::test]
async fn large_values_that_no_record_names_are_removed_at_the_next_start() {
    let state = tempfile::tempdir().unwrap();
    let store = sled::open(state.path()).unwrap();
    for words in [990, 991, 992] {
        admitted(&store, "a.wav", &row("a.wav", words)).await;
    }
    assert_eq!(large_files(state.path()).len(), 3);
    store.flush().await.unwrap();
    drop(store);
    let store = sled::open(state.path()).unwrap();
    assert_eq!(large_files(state.path()).len(), 1);
    assert_eq!(*store.find(&key("a.wav")).await.unwrap().unwrap().row.unwrap(), row("a.wav", 992));
}

/// A job with fields of these lengths.
fn grown(job: &Job, lengths: &[usize; 6]) -> Job {
    let [metadata, outputs, placing, fault, language, path] = *lengths;
    let output = |n: usize| Output {
        name: RelPath::new(noise(n as u64, 200)),
        hash: Hash::of(&n.to_le_bytes()),
        at: Some(RelPath::new(noise(7, path))),
    };
    let metadata = [("note".to_owned(), noise(1, metadata).into())].into_iter().collect();
    let making = RequestRecord { metadata, outputs: Format::ALL.to_vec(), ..RequestRecord::default() };
    Job {
        making: Some(Box::new(making)),
        outputs: (0..outputs).map(output).collect(),
        placing: (0..placing).map(|n| Hash::of(&[n as u8])).collect(),
        fault: Some(Fault { words: noise(2, fault), ..Fault::new(FaultKind::Broken, "", NOW) }),
        language: Some(noise(3, language)),
        ..job.clone()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_long_in_a_job_it_is_stored_and_comes_back_equal(
        path in 1..12_000_usize,
        vocabulary in 0..1_500_u64,
        columns in proptest::collection::vec(0..3_000_usize, 0..40),
        lengths in proptest::array::uniform6(0..40_000_usize),
    ) {
        let mut lengths = lengths;
        lengths[1] %= 200;
        lengths[2] %= 200;
        lengths[5] %= 4_000;
        let state = tempfile::tempdir().unwrap();
        let path = noise(4, path);
        let columns: BTreeMap<String, String> =
            columns.into_iter().enumerate().map(|(n, length)| (format!("c{n}"), noise(n as u64, length))).collect();
        let row = ManifestRow { columns, ..row(&path, vocabulary) };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let store = sled::open(state.path()).unwrap();
            let (id, _) = admitted(&store, &path, &row).await;
            let claims = store.claim(&[StageKind::Found], &|_| true, NOW, Timestamp(i64::MAX), ClaimLimit::of(1));
            let claimed = claims.await.unwrap().remove(0);
            let job = grown(&claimed.job, &lengths);
            store.commit(&claimed.lease, &job, Hold::Release).await.unwrap();
            store.flush().await.unwrap();
            assert_eq!(store.job(id).await.unwrap().unwrap(), job);
            drop(store);
            let store = sled::open(state.path()).unwrap();
            assert_eq!(store.job(id).await.unwrap().unwrap(), job);
            assert_eq!(store.find(&key(&path)).await.unwrap().unwrap(), job);
        });
    }
}
