#![allow(clippy::unwrap_used)]

use super::*;
use crate::clock::SystemClock;
use crate::domain::names::{Hash, Timestamp};
use crate::server::recognition::recogniser::ChunkWord;
use crate::server::storage::transcriptions::StoreRules;
use crate::server::storage::uploads::{UploadLimits, UploadRetention};
use crate::server::webhooks::policy::DeliveryRetries;
use proptest::prelude::*;
use std::fs;
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const OWNER: Hash = Hash([7; 32]);
const ID: Uuid = Uuid::from_u128(5);

fn store(root: &TempDir) -> TranscriptionStore {
    let rules = StoreRules {
        limits: UploadLimits { upload: 1_000, disk: 1_000_000 },
        first_owner: OWNER,
        running: 1,
        queue: 1,
        retention: Duration::from_secs(9),
        uploads: UploadRetention::UNTIL_TRANSCRIBED,
        webhook: false,
        patience: DeliveryRetries::default(),
        volume: 4096,
    };
    TranscriptionStore::open(root.path(), rules, Arc::new(SystemClock)).unwrap()
}

fn taken() -> TakenTranscription {
    let created = Timestamp(1);
    TakenTranscription {
        id: ID,
        owner: OWNER,
        upload: Uuid::from_u128(6),
        cancelled: CancellationToken::new(),
        created,
    }
}

fn segment(number: u64) -> Segment {
    Segment { start_sample: number * 1_000, samples: vec![number as i16; 900], shared: 0 }
}

fn chunk(text: &str) -> RecognisedChunk {
    let word =
        ChunkWord { text: text.to_owned(), start: 0.1 + 0.2, end: 1.0 / 3.0, confidence: Some(0.7), begins: true };
    let words = vec![word.clone(), ChunkWord { confidence: None, begins: false, ..word }];
    RecognisedChunk { words, language: Some("en".to_owned()), is_written: true, has_estimated_times: false }
}

/// Keeps three chunks and returns the bytes of the file.
fn filled(store: &TranscriptionStore) -> Vec<u8> {
    let log = ChunkLog::open(store, &taken(), "as set");
    (0..3).for_each(|number| log.append(0, &segment(number), &chunk(&format!("{number}\n"))));
    fs::read(store.chunk_logs.path(ID)).unwrap()
}

fn found(store: &TranscriptionStore, settings: &str) -> Vec<bool> {
    let log = ChunkLog::open(store, &taken(), settings);
    (0..3).map(|number| log.find(0, &segment(number)) == Some(chunk(&format!("{number}\n")))).collect()
}

#[test]
fn what_was_kept_is_found_exactly_and_only_for_the_same_sound() {
    let root = TempDir::new().unwrap();
    let store = store(&root);
    let bytes = filled(&store);
    assert_eq!(store.upload_store.usage().used, bytes.len() as u64, "it counts");
    let log = ChunkLog::open(&store, &taken(), "as set");
    assert_eq!(log.find(0, &segment(1)), Some(chunk("1\n")));
    assert_eq!(log.find(1, &segment(1)), None, "another channel");
    let other_sound = Segment { samples: vec![9; 900], ..segment(1) };
    assert_eq!(log.find(0, &other_sound), None);
    log.append(0, &segment(3), &chunk("3"));
    drop(log);
    assert_eq!(found(&store, "as set"), [true; 3]);
    store.chunk_logs.remove(ID);
    assert_eq!(store.upload_store.usage().used, 0);
    assert!(!store.chunk_logs.path(ID).exists());
}

#[test]
fn what_was_recognised_otherwise_is_recognised_again() {
    let root = TempDir::new().unwrap();
    let store = store(&root);
    filled(&store);
    assert_eq!(found(&store, "otherwise"), [false; 3]);
    assert_eq!(found(&store, "as set"), [false; 3], "the file was begun again");
}

#[test]
fn what_has_ended_is_removed_at_the_next_start() {
    let root = TempDir::new().unwrap();
    let one = store(&root);
    filled(&one);
    let stranger = one.chunk_logs.path(ID).with_file_name("stranger");
    fs::write(&stranger, "").unwrap();
    drop(one);
    let other = store(&root);
    assert!(!other.chunk_logs.path(ID).exists() && !stranger.exists());
    assert_eq!(other.upload_store.usage().used, 0);
}

#[test]
fn what_is_neither_a_log_nor_a_file_keeps_no_store_from_opening() {
    let root = TempDir::new().unwrap();
    let one = store(&root);
    let folder = one.chunk_logs.path(ID).with_file_name("folder");
    fs::create_dir(&folder).unwrap();
    drop(one);
    filled(&store(&root));
    assert!(folder.exists());
}

/// A DELETE may end the transcription while its log is being opened.
#[test]
fn the_log_of_a_cancelled_transcription_does_not_stay() {
    let root = TempDir::new().unwrap();
    let store = store(&root);
    let cancelled = taken();
    cancelled.cancelled.cancel();
    store.chunk_logs.remove(ID);
    drop(ChunkLog::open(&store, &cancelled, "as set"));
    assert!(!store.chunk_logs.path(ID).exists());
    // The end of the transcription comes between: the file is not counted any more when it is created.
    fs::write(store.chunk_logs.path(ID), "created late").unwrap();
    store.chunk_logs.remove(ID);
    assert!(!store.chunk_logs.path(ID).exists());
    assert_eq!(store.upload_store.usage().used, 0);
}

#[test]
fn a_line_that_cannot_be_written_costs_only_itself() {
    let root = TempDir::new().unwrap();
    let store = store(&root);
    let mut log = ChunkLog::open(&store, &taken(), "as set");
    log.append(0, &segment(0), &chunk("0\n"));
    let writable = log.file.replace(File::open(store.chunk_logs.path(ID)).unwrap());
    log.append(0, &segment(1), &chunk("1\n"));
    log.file = writable;
    log.append(0, &segment(2), &chunk("2\n"));
    drop(log);
    assert_eq!(found(&store, "as set"), [true, false, true]);
}

#[test]
fn a_folder_that_is_away_keeps_nothing_and_fails_nothing() {
    let root = TempDir::new().unwrap();
    let store = store(&root);
    fs::remove_dir(root.path().join("recognition")).unwrap();
    let log = ChunkLog::open(&store, &taken(), "as set");
    log.append(0, &segment(1), &chunk("1"));
    assert_eq!(log.find(0, &segment(1)), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever happens to the file: what is found is what was kept, up to the damage, and the log can be used.
    #[test]
    fn what_is_damaged_is_recognised_again(at in any::<prop::sample::Index>(), value in any::<u8>(), torn in any::<bool>()) {
        let root = TempDir::new().unwrap();
        let store = store(&root);
        let whole = filled(&store);
        let at = at.index(whole.len());
        let mut bytes = whole.clone();
        if torn { bytes.truncate(at) } else { bytes[at] = value }
        fs::write(store.chunk_logs.path(ID), &bytes).unwrap();
        let lines: Vec<usize> = memchr::memchr_iter(b'\n', &whole).collect();
        let untouched = lines.iter().filter(|end| **end < at).count();
        let found = found(&store, "as set");
        for (number, found) in found.iter().enumerate() {
            prop_assert!(*found || untouched < number + 2, "{number} {at}");
        }
        let log = ChunkLog::open(&store, &taken(), "as set");
        log.append(0, &segment(7), &chunk("7"));
        drop(log);
        let log = ChunkLog::open(&store, &taken(), "as set");
        prop_assert_eq!(log.find(0, &segment(7)), Some(chunk("7")));
    }
}
