//! How long the service keeps uploads: for several creates, for those who read them, and no longer than it may.

use crate::support::manual_clock::ManualClock;
use crate::support::store_rules::{OWNER, store_rules, take_for_recognition};
use crate::support::test_service::{Canned, Mood, TestService, answer, names, options, speech};
use reqwest::{Method, StatusCode};
use scribed::testing::clock::Clock;
use scribed::testing::domain::names::{Hash, Timestamp};
use scribed::testing::server::storage::transcriptions::{
    Acceptance, CreateAudio, CreateOrder, DeleteResult, StoreRules, TranscriptionEnd, TranscriptionStore,
};
use scribed::testing::server::storage::uploads::{A_DAY, UploadLimits, UploadRetention, UploadRules, UploadStoreError};
use scribed::testing::wire::result::File;
use serde_json::json;
use serde_json::value::RawValue;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use uuid::Uuid;

async fn service() -> (TestService, TempDir) {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    options.uploads = UploadRetention::for_span(A_DAY);
    (TestService::with(options, Canned::new(Mood::Hear)).await, data)
}

impl TestService {
    async fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let response = self.ask(Method::GET, path).send().await.unwrap();
        match response.status() {
            StatusCode::OK => Some(response.bytes().await.unwrap().to_vec()),
            status => {
                assert_eq!(status, StatusCode::NOT_FOUND);
                None
            }
        }
    }

    async fn delete(&self, id: &str) -> StatusCode {
        self.ask(Method::DELETE, &format!("/v2/pre-recorded/{id}")).send().await.unwrap().status()
    }
}

#[tokio::test]
async fn one_upload_serves_several_creates_and_is_there_after_their_end() {
    let (service, _data) = service().await;
    let audio_url = service.uploaded().await;
    let own = audio_url.strip_prefix(&service.base).unwrap().to_owned();
    let mut ids = Vec::new();
    for n in 0..3 {
        let (status, created) = service.create(&json!({ "audio_url": audio_url, "custom_metadata": { "n": n } })).await;
        assert_eq!(status, StatusCode::CREATED, "the create number {n}: {created}");
        let id = created["id"].as_str().unwrap().to_owned();
        assert_eq!(service.ended(&id).await["status"], "done");
        assert_eq!(service.bytes(&format!("/v2/pre-recorded/{id}/file")).await, Some(speech()));
        ids.push(id);
    }
    assert_eq!(service.bytes(&own).await, Some(speech()));
    // The other key learns nothing of it, and creates nothing from it.
    let theirs = service.ask_as_other(Method::GET, &own).send().await.unwrap();
    assert_eq!(theirs.status(), StatusCode::NOT_FOUND);
    let theirs = service.ask_as_other(Method::POST, "/v2/pre-recorded").json(&json!({ "audio_url": audio_url }));
    assert_eq!(answer(theirs.send().await.unwrap()).await.0, StatusCode::BAD_REQUEST);

    // What is deleted takes the audio along when nobody else has it.
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(service.bytes(&own).await, Some(speech()), "before the deletion number {n}");
        assert_eq!(service.delete(id).await, StatusCode::ACCEPTED);
    }
    assert_eq!(service.bytes(&own).await, None);
    let (status, refused) = service.create(&json!({ "audio_url": audio_url })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(refused["validation_errors"][0].as_str().unwrap().contains("upload the file again"), "{refused}");
}

const OTHER: Hash = Hash([8; 32]);
const HOUR: u64 = 3600;

fn seconds(seconds: u64) -> Timestamp {
    Timestamp(i64::try_from(seconds).unwrap() * 1000)
}

/// A desk that may be opened again.
struct Bed {
    root: TempDir,
    clock: ManualClock,
    disk: u64,
    keys: usize,
}

impl Bed {
    fn new(disk: u64, keys: usize) -> Self {
        Self { root: TempDir::new().unwrap(), clock: ManualClock::default(), disk, keys }
    }

    fn open(&self) -> Arc<TranscriptionStore> {
        let rules = StoreRules {
            limits: UploadLimits { upload: 1_000_000, disk: self.disk },
            uploads: UploadRetention::for_span(A_DAY),
            ..store_rules()
        };
        let store = TranscriptionStore::open(self.root.path(), rules, Arc::new(self.clock.clone())).unwrap();
        store.upload_store.set_rules(UploadRules { keys: self.keys, ..UploadRules::default() });
        Arc::new(store)
    }

    fn root(&self) -> &Path {
        self.root.path()
    }

    /// An upload of so many bytes, now.
    async fn upload(&self, store: &TranscriptionStore, bytes: usize, owner: Hash) -> Result<Uuid, UploadStoreError> {
        let mut incoming = store.upload_store.begin(owner, bytes as u64)?;
        incoming.write(&vec![0; bytes]).await?;
        incoming.finish().await.unwrap();
        let id = Uuid::new_v4();
        let file = File { id: Some(id.to_string()), ..File::default() };
        store.upload_store.store(incoming, self.clock.now(), file).unwrap();
        Ok(id)
    }

    /// Creates and ends one of this upload now; its id.
    async fn transcribed(&self, store: &Arc<TranscriptionStore>, upload: Uuid, owner: Hash) -> Option<Uuid> {
        let id = created(store, upload, owner).await?;
        let taken = take_for_recognition(store).unwrap();
        assert_eq!(taken.id, id);
        store.end(&taken, TranscriptionEnd { at: self.clock.now(), failure: None }, Some("{}")).unwrap();
        Some(id)
    }
}

async fn created(store: &Arc<TranscriptionStore>, upload: Uuid, owner: Hash) -> Option<Uuid> {
    let params = RawValue::from_string("{}".to_owned()).unwrap();
    let request = CreateOrder { owner, audio: CreateAudio::Upload(upload), params, metadata: None, callback: None };
    match store.accept(request, ()).await.unwrap() {
        Acceptance::Accepted(id) => Some(id),
        _ => None,
    }
}

fn is_kept(store: &TranscriptionStore, upload: Uuid) -> bool {
    store.upload_store.media_path(upload).exists() && store.upload_store.find_owned(upload, &OWNER).is_some()
}

#[tokio::test]
async fn an_upload_goes_a_day_after_its_last_use_also_when_the_service_is_started_again() {
    let bed = Bed::new(1_000_000_000, 1);
    let store = bed.open();
    let [unused, transcribed, read, outlived] =
        futures_util::future::join_all((0..4).map(|_| bed.upload(&store, 100, OWNER)))
            .await
            .try_into()
            .unwrap_or_else(|_| panic!());
    let [unused, transcribed, read, outlived] = [unused, transcribed, read, outlived].map(Result::unwrap);
    bed.clock.set(seconds(10 * HOUR));
    bed.transcribed(&store, transcribed, OWNER).await.unwrap();
    let one = bed.transcribed(&store, outlived, OWNER).await.unwrap();
    bed.transcribed(&store, outlived, OWNER).await.unwrap();
    bed.clock.set(seconds(20 * HOUR));
    store.upload_store.mark_used(read);
    let last = bed.transcribed(&store, outlived, OWNER).await.unwrap();
    for id in [last, one] {
        assert_eq!(store.delete(id, &OWNER).unwrap(), DeleteResult::Removed);
    }
    let all = [unused, transcribed, read, outlived];
    let mut store = store;
    for (at, left) in [
        (24 * HOUR, [true; 4]),
        (24 * HOUR + 1, [false, true, true, true]),
        (34 * HOUR, [false, true, true, true]),
        (34 * HOUR + 1, [false, false, true, true]),
        (44 * HOUR, [false, false, true, true]),
        (44 * HOUR + 1, [false; 4]),
    ] {
        bed.clock.set(seconds(at));
        store.remove_expired();
        assert_eq!(all.map(|id| is_kept(&store, id)), left, "after {at} s");
        drop(store);
        store = bed.open();
        assert_eq!(all.map(|id| is_kept(&store, id)), left, "after {at} s and a restart");
    }
    assert_eq!((store.upload_store.bytes(), names(bed.root(), "uploads")), (0, Vec::new()));
}

#[tokio::test]
async fn an_upload_that_a_transcription_waits_for_stays() {
    let bed = Bed::new(1_000_000_000, 1);
    let store = bed.open();
    let upload = bed.upload(&store, 100, OWNER).await.unwrap();
    bed.transcribed(&store, upload, OWNER).await.unwrap();
    created(&store, upload, OWNER).await.unwrap();
    drop(store);
    bed.clock.set(seconds(100 * HOUR));
    let store = bed.open();
    store.remove_expired();
    assert!(is_kept(&store, upload));
    store
        .end(
            &take_for_recognition(&store).unwrap(),
            TranscriptionEnd { at: bed.clock.now(), failure: None },
            Some("{}"),
        )
        .unwrap();
    bed.clock.set(seconds(124 * HOUR + 1));
    store.remove_expired();
    assert!(!is_kept(&store, upload));
}

#[tokio::test]
async fn when_the_disk_is_short_the_upload_whose_last_use_is_the_oldest_goes_first() {
    // Eight tenths of it are eight uploads and their records.
    let bed = Bed::new(10_100_000, 1);
    let store = bed.open();
    let mut uploads = Vec::new();
    for hour in 0..8 {
        bed.clock.set(seconds(hour * HOUR));
        uploads.push(bed.upload(&store, 1_000_000, OWNER).await.unwrap());
        if hour < 6 {
            bed.transcribed(&store, uploads[hour as usize], OWNER).await.unwrap();
        }
    }
    // The first one is used again, the second one is waited for.
    bed.clock.set(seconds(8 * HOUR));
    bed.transcribed(&store, uploads[0], OWNER).await.unwrap();
    let waits = created(&store, uploads[1], OWNER).await.unwrap();
    assert!(uploads.iter().all(|upload| is_kept(&store, *upload)), "eight tenths may be used");
    bed.clock.set(seconds(9 * HOUR));
    let mut came = Vec::new();
    for _ in 0..6 {
        came.push(bed.upload(&store, 1_000_000, OWNER).await.unwrap());
    }
    let left: Vec<bool> = uploads.iter().map(|upload| is_kept(&store, *upload)).collect();
    // Those from 2 to 5 by their use; what was never used went before them only if it was older.
    assert_eq!(left, [true, true, false, false, false, false, true, true]);
    assert!(came.iter().all(|upload| is_kept(&store, *upload)), "what has just come waits for its create");
    for _ in 0..2 {
        bed.upload(&store, 1_000_000, OWNER).await.ok();
    }
    let left = [0, 1, 6, 7].map(|n| is_kept(&store, uploads[n]));
    assert_eq!(left, [true, true, false, false]);
    bed.upload(&store, 1_000_000, OWNER).await.unwrap();
    assert!(!is_kept(&store, uploads[0]));
    let full = bed.upload(&store, 1_000_000, OWNER).await;
    assert!(matches!(full, Err(UploadStoreError::Full { .. })), "what is waited for stays: {full:?}");
    assert!(is_kept(&store, uploads[1]) && store.status_and_upload(waits, &OWNER).is_some());
}

#[tokio::test]
async fn announcing_an_upload_removes_nothing() {
    let bed = Bed::new(2_000_000, 1);
    let store = bed.open();
    let upload = bed.upload(&store, 1_000_000, OWNER).await.unwrap();
    bed.transcribed(&store, upload, OWNER).await.unwrap();
    let mut incoming = store.upload_store.begin(OWNER, 1_000_000).unwrap();
    assert!(is_kept(&store, upload));
    incoming.write(&[0; 1_000_000]).await.unwrap();
    assert!(!is_kept(&store, upload), "its bytes have come");
}

#[tokio::test]
async fn a_key_over_its_share_costs_others_no_upload() {
    let bed = Bed::new(10_000_000, 2);
    let store = bed.open();
    let theirs = bed.upload(&store, 1_000_000, OTHER).await.unwrap();
    bed.transcribed(&store, theirs, OTHER).await.unwrap();
    bed.clock.set(seconds(HOUR));
    let mut own = Vec::new();
    for hour in 1..20 {
        bed.clock.set(seconds(hour * HOUR));
        own.push(bed.upload(&store, 1_000_000, OWNER).await.unwrap());
        bed.transcribed(&store, own[own.len() - 1], OWNER).await.unwrap();
    }
    assert!(store.upload_store.find_owned(theirs, &OTHER).is_some(), "the oldest of all, and less than a share");
    let kept = own.iter().filter(|upload| is_kept(&store, **upload)).count();
    assert!((5..9).contains(&kept), "{kept}");
    // Whoever holds less than a share gets room from the one that holds more.
    for _ in 0..3 {
        bed.upload(&store, 1_000_000, OTHER).await.unwrap();
    }
    assert!(store.upload_store.find_owned(theirs, &OTHER).is_some());
}
