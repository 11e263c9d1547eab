use super::encoding::*;
use super::failure::{FirstFailure, Flaw};
use super::open::{copy_files, make_private, open, open_copy, open_rebuilt};
use super::rows::job_key;
use crate::domain::job::{JobKey, Stamp};
use crate::domain::names::{Hash, SourceName, TranscriptionId};
use crate::domain::names::{JobId, ServiceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::stage::{AudioAmount, AudioAt, Intent, JobEvent, StageKind};
use crate::domain::token::PurchaseKey;
use crate::domain::token::Token;
use crate::store::contract::StoreError;
use crate::store::contract::{
    ALL, Budgets, ClaimLimit, Claimed, Claims, HistoryEntry, Hold, Jobs, Lifecycle, Purchases, Queries,
};
use crate::store::journal::HistoryFiles;
use crate::store::process_lock::ProcessLock;
use crate::store::queue::QueueStore;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const NOW: Timestamp = Timestamp(1_795_000_000_000);

fn service() -> ServiceName {
    ServiceName::new(ServiceName::DEFAULT)
}

fn key(path: &[u8]) -> JobKey {
    JobKey { source: SourceName::new("s"), path: RelPath::new(path) }
}

fn stamp(size: u64) -> Stamp {
    Stamp { size, mtime_ns: 1, ctime_ns: 2, inode: 3 }
}

fn with_jobs(dir: &Path, n: u64) {
    let store = open(dir).unwrap();
    let runtime = Runtime::new().unwrap();
    for i in 0..n {
        runtime.block_on(store.admit(&key(&i.to_be_bytes()), stamp(i), NOW, NOW)).unwrap();
    }
}

fn raw(dir: &Path) -> ::sled::Db {
    let config = ::sled::Config::new().path(dir.join("queue"));
    for _ in 0..100 {
        match config.open() {
            Ok(db) => return db,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    config.open().unwrap()
}

fn complaint(dir: &Path) -> String {
    match open(dir) {
        Err(StoreError::Damaged(words)) => words.replace(&dir.display().to_string(), "<dir>"),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("opened"),
    }
}

#[test]
fn the_bytes_of_a_value_stay_as_they_are() {
    let sealed = seal(&"value").ok().unwrap();
    assert_eq!(sealed, b"\x01\xb3\x4c\x30\x03\x5d\xbd\x08\x35\"value\"".as_slice(), "{sealed:02x?}");
}

#[test]
fn long_values_are_packed_and_come_back() {
    let path = "shelf/".repeat(680);
    let sealed = seal(&path).ok().unwrap();
    assert!(sealed.len() < 200 && sealed[9] == 0x78);
    assert_eq!(unseal::<String>(&sealed).ok().unwrap(), path);
}

#[test]
fn a_path_of_the_greatest_length_in_bytes_that_are_no_text_fits() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).unwrap();
    let bytes: Vec<u8> = (0u32..128).flat_map(|i| *blake3::hash(&i.to_be_bytes()).as_bytes()).collect();
    let admitted = Runtime::new().unwrap().block_on(store.admit(&key(&bytes), stamp(1), NOW, NOW));
    admitted.unwrap();
}

#[test]
fn a_second_opener_is_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let _first = open(dir.path()).unwrap();
    let Err(StoreError::Locked(words)) = open(dir.path()) else { panic!("not locked") };
    assert!(words.contains(&format!("in use by another scribed, process {}", std::process::id())), "{words}");
    assert!(matches!(open_rebuilt(dir.path(), NOW), Err(StoreError::Locked(_))));
}

#[test]
fn what_another_has_just_begun_to_make_is_neither_opened_nor_copied_nor_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let _inside = ProcessLock::enter(dir.path()).unwrap();
    let queue = dir.path().join("queue");
    make_private(&queue).unwrap();
    // As sled leaves them for a moment: before its own lock is taken.
    std::fs::write(queue.join("conf"), "half of its sett").unwrap();
    std::fs::write(queue.join("db"), "").unwrap();
    assert!(matches!(open(dir.path()), Err(StoreError::Locked(_))));
    assert!(matches!(open_copy(dir.path()), Err(StoreError::Locked(_))));
    assert!(matches!(open_rebuilt(dir.path(), NOW), Err(StoreError::Locked(_))));
    assert_eq!(std::fs::read(queue.join("conf")).unwrap(), b"half of its sett");
}

#[test]
fn many_who_make_a_queue_at_once_all_come_to_it_one_after_the_other() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let open_and_leave = || match open(dir.path()) {
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(open_and_leave))));
    }
}

#[test]
fn only_its_owner_may_look_into_it() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    drop(open(&state).unwrap());
    for dir in [state.clone(), state.join("queue"), state.join("history")] {
        assert_eq!(std::fs::metadata(dir).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn a_flipped_bit_is_found_when_opening() {
    let dir = tempfile::tempdir().unwrap();
    with_jobs(dir.path(), 3);
    let db = raw(dir.path());
    let mut value = db.get(job_key(JobId(2))).unwrap().unwrap().to_vec();
    value[40] ^= 4;
    db.insert(job_key(JobId(2)), value).unwrap();
    drop(db);
    let words = complaint(dir.path());
    assert!(words.contains("checksum") && words.contains("--rebuild") && words.contains("paid for twice"), "{words}");
}

#[test]
fn a_lost_row_is_found_when_opening() {
    let dir = tempfile::tempdir().unwrap();
    with_jobs(dir.path(), 3);
    raw(dir.path()).remove(job_key(JobId(1))).unwrap();
    assert!(complaint(dir.path()).contains("the row of job 1 is missing"));
}

#[test]
fn a_newer_format_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    with_jobs(dir.path(), 1);
    let db = raw(dir.path());
    let mut value = db.get(job_key(JobId(1))).unwrap().unwrap().to_vec();
    value[0] = 3;
    db.insert(job_key(JobId(1)), value.clone()).unwrap();
    drop(db);
    let words = complaint(dir.path());
    assert!(words.contains("newer scribed") && !words.contains("--rebuild"), "{words}");
    assert_eq!(*raw(dir.path()).get(job_key(JobId(1))).unwrap().unwrap(), *value);
}

#[test]
fn a_broken_snapshot_is_set_aside_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    with_jobs(dir.path(), 50);
    let runtime = Runtime::new().unwrap();
    // sled writes its snapshot when it opens what is not empty.
    runtime.block_on(open(dir.path()).unwrap().trust(&service())).unwrap();
    let queue = dir.path().join("queue");
    let snapshot = std::fs::read_dir(&queue).unwrap().map(|entry| entry.unwrap().path());
    let snapshot = snapshot.filter(|path| path.to_str().unwrap().contains("/snap.")).max().unwrap();
    std::fs::write(&snapshot, b"garbage that is no snapshot at all").unwrap();
    let store = open(dir.path()).unwrap();
    assert_eq!(runtime.block_on(store.counts()).unwrap().total(), 50);
    assert!(runtime.block_on(store.is_suspect(&service())).unwrap(), "what was repaired is not believed");
    assert!(runtime.block_on(store.may_have_lost(&service())).unwrap());
}

/// A purchase, as the engine commits it.
async fn buy(store: &QueueStore, name: &[u8], id: &str) {
    let JobId(number) = store.admit(&key(name), stamp(1), NOW, NOW).await.unwrap().id();
    let purchase_key = PurchaseKey { service: service(), content: Hash::of(name), params: Hash::of(b"p"), part: None };
    let until = NOW.saturating_add(Duration::from_secs(60));
    let claimed = store.claim(&[StageKind::Found], ALL, NOW, until, ClaimLimit::of(9)).await.unwrap();
    let Claimed { lease, mut job } = claimed.into_iter().find(|claimed| claimed.job.id.0 == number).unwrap();
    let charge = crate::domain::charge::Charge {
        at: NOW,
        service_date: None,
        fetched: false,
        rest: 0,
        limits: Vec::new(),
        run: NOW,
        purchase_number: 0,
        service: service(),
        template: None,
        state: crate::domain::charge::State::Held,
        reserved: Some(1),
        billed: None,
        transcription: None,
    };
    store.reserve(&lease, &charge, &[]).await.unwrap().unwrap();
    let (audio, transcription) = (AudioAmount { millis: 1, channels: 1, billed: None }, TranscriptionId::new(id));
    let upload = AudioAt::Remote { remote_since: NOW };
    let token = Token::new(&purchase_key, job.key.tag(), 0);
    let intent = Intent { token, origin: "o".into(), key: "k".into(), service_date: None, sent_at: NOW };
    job = job.apply(JobEvent::Settled, NOW).unwrap();
    job =
        job.apply(JobEvent::Probed { params: purchase_key.params, content: None, request_record: None }, NOW).unwrap();
    job = job.apply(JobEvent::Uploaded { purchase_key, audio, upload, sent: None }, NOW).unwrap();
    job = job.apply(JobEvent::Intended { intent }, NOW).unwrap();
    store.commit(&lease, &job, Hold::Keep).await.unwrap();
    let intended = job.clone();
    job = job.apply(JobEvent::Created { transcription }, NOW).unwrap();
    store.commit(&lease.seeing(&intended), &job, Hold::Release).await.unwrap();
}

/// A closed queue that is trusted, with one job.
fn trusted_with_one_job() -> (TempDir, Runtime) {
    let (dir, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    let store = open(dir.path()).unwrap();
    runtime.block_on(async {
        store.trust(&service()).await.unwrap();
        store.admit(&key(b"a"), stamp(1), NOW, NOW).await.unwrap();
        store.flush().await.unwrap();
    });
    (dir, runtime)
}

/// sled may return an earlier version of a row without an error.
#[test]
fn a_row_that_comes_back_as_it_was_before_its_purchase_makes_the_queue_suspect() {
    let (dir, runtime) = trusted_with_one_job();
    let before = raw(dir.path()).get(job_key(JobId(1))).unwrap().unwrap();
    let store = open(dir.path()).unwrap();
    runtime.block_on(async {
        buy(&store, b"a", "t-1").await;
        buy(&store, b"b", "t-2").await;
        assert!(!store.is_suspect(&service()).await.unwrap());
    });
    drop(store);
    let store = open(dir.path()).unwrap();
    assert!(!runtime.block_on(store.is_suspect(&service())).unwrap(), "nothing is wrong with it");
    drop(store);
    raw(dir.path()).insert(job_key(JobId(1)), before).unwrap();
    let store = open(dir.path()).unwrap();
    assert!(runtime.block_on(store.is_suspect(&service())).unwrap(), "it does not know a purchase");
    runtime.block_on(store.trust(&service())).unwrap();
    drop(store);
    let log = std::fs::read_to_string(dir.path().join("history/purchases.log")).unwrap();
    assert_eq!(log, "+ t-2\n", "it is compared with what it knows");
    let store = open(dir.path()).unwrap();
    assert!(!runtime.block_on(store.is_suspect(&service())).unwrap(), "said once");
}

#[test]
fn a_history_that_is_newer_than_the_rows_makes_the_queue_suspect() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = Runtime::new().unwrap();
    let store = open(dir.path()).unwrap();
    runtime.block_on(store.trust(&service())).unwrap();
    drop(store);
    let aside = tempfile::tempdir().unwrap();
    copy_files(&dir.path().join("queue"), &aside.path().join("queue")).unwrap();
    runtime.block_on(async {
        let store = open(dir.path()).unwrap();
        buy(&store, b"a", "t-1").await;
        let later = NOW.saturating_add(Duration::from_secs(61));
        store.admit(&key(b"later"), stamp(1), later, later).await.unwrap();
    });
    std::fs::remove_dir_all(dir.path().join("queue")).unwrap();
    copy_files(&aside.path().join("queue"), &dir.path().join("queue")).unwrap();
    std::fs::remove_file(dir.path().join("history/purchases.log")).unwrap();
    let store = open(dir.path()).unwrap();
    assert!(runtime.block_on(store.is_suspect(&service())).unwrap());
    runtime.block_on(store.trust(&service())).unwrap();
    drop(store);
    assert!(!runtime.block_on(open(dir.path()).unwrap().is_suspect(&service())).unwrap(), "it is told once");
}

/// A process that is killed leaves the line of a step whose row was not durable yet.
#[test]
fn the_last_line_of_a_killed_process_makes_nothing_suspect() {
    let (dir, runtime) = trusted_with_one_job();
    let at = NOW.saturating_add(Duration::from_secs(600));
    let note = HistoryEntry {
        at,
        job: JobId(1),
        stage: StageKind::Submitting,
        purchase_number: 0,
        words: None,
        transcription: None,
    };
    crate::store::queue::Journal::note(&HistoryFiles::open(dir.path().join("history")).unwrap(), &note).unwrap();
    assert!(!runtime.block_on(open(dir.path()).unwrap().is_suspect(&service())).unwrap());
}

#[test]
fn rebuilt_is_empty_and_suspect_and_the_old_one_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    with_jobs(dir.path(), 3);
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let store = open(dir.path()).unwrap();
        store.trust(&service()).await.unwrap();
        drop(store);
        let store = open_rebuilt(dir.path(), NOW).unwrap();
        assert!(store.is_suspect(&service()).await.unwrap());
        assert_eq!(store.counts().await.unwrap().total(), 0);
        assert_eq!(store.history(JobId(1)).await.unwrap(), []);
    });
    assert!(dir.path().join("damaged-1795000000/queue/db").is_file());
    assert!(dir.path().join("damaged-1795000000/history/2026-11.jsonl").is_file());
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let process_lock = Arc::new(ProcessLock::enter(dir.path()).ok().unwrap());
    let first_failure = FirstFailure { dir: dir.path().into(), failed: OnceLock::new(), _process_lock: process_lock };
    first_failure.check().unwrap();
    let told = first_failure.fail(Flaw::Io(io::ErrorKind::StorageFull.into()));
    assert!(told.to_string().contains("Free space"), "{told}");
    assert_eq!(first_failure.check().unwrap_err().to_string(), told.to_string());
    let again = first_failure.fail(Flaw::Io(io::Error::other("later")));
    assert_eq!(again.to_string(), told.to_string());
}
