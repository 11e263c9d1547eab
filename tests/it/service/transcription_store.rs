//! The store of transcriptions without a service: what it finds when it is opened again.

use crate::support::manual_clock::ManualClock;
use crate::support::store_rules::{OWNER, store_rules, take_for_recognition};
use crate::support::test_service::names;
use scribed::testing::domain::names::{Hash, Timestamp};
use scribed::testing::server::storage::index::{DeliveryKind, Due, NextCall};
use scribed::testing::server::storage::log::framing;
use scribed::testing::server::storage::transcriptions::{
    Acceptance, CreateAudio, CreateCommand, DeleteResult, StoreOpenError, StoreRules, TakenTranscription,
    TranscriptionEnd, TranscriptionFailure, TranscriptionStore,
};
use scribed::testing::server::storage::uploads::{UploadLimits, UploadRules, UploadStoreError};
use scribed::testing::server::webhooks::policy::DeliveryFailure;
use scribed::testing::wire::result::File;
use serde_json::json;
use serde_json::value::RawValue;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

const LIMITS: UploadLimits = UploadLimits { upload: 100, disk: 250 };
const OTHER: Hash = Hash([8; 32]);
const DAY: i64 = 24 * 3600 * 1000;

fn rules() -> StoreRules {
    StoreRules { limits: LIMITS, retention: Duration::from_secs(30 * 24 * 3600), ..store_rules() }
}

fn open(root: &Path, now: i64) -> Result<Arc<TranscriptionStore>, StoreOpenError> {
    open_with(root, now, rules())
}

fn open_with(root: &Path, now: i64, rules: StoreRules) -> Result<Arc<TranscriptionStore>, StoreOpenError> {
    TranscriptionStore::open(root, rules, Arc::new(ManualClock::at(Timestamp(now)))).map(Arc::new)
}

async fn kept(store: &TranscriptionStore, bytes: usize) -> Uuid {
    kept_for(store, bytes, OWNER).await
}

async fn kept_for(store: &TranscriptionStore, bytes: usize, owner: Hash) -> Uuid {
    kept_since(store, bytes, owner, Timestamp(0)).await
}

async fn kept_since(store: &TranscriptionStore, bytes: usize, owner: Hash, since: Timestamp) -> Uuid {
    let mut incoming = store.upload_store.begin(owner, 0).unwrap();
    incoming.write(&vec![0; bytes]).await.unwrap();
    incoming.finish().await.unwrap();
    let id = Uuid::new_v4();
    let file = File { id: Some(id.to_string()), ..File::default() };
    store.upload_store.store(incoming, since, file).unwrap();
    id
}

async fn accepted(store: &Arc<TranscriptionStore>, upload: Uuid) -> Option<Uuid> {
    match accepted_for(store, upload, OWNER).await {
        Acceptance::Accepted(id) => Some(id),
        _ => None,
    }
}

async fn accepted_for(store: &Arc<TranscriptionStore>, upload: Uuid, owner: Hash) -> Acceptance {
    let (audio, params) = (CreateAudio::Upload(upload), RawValue::from_string("{}".to_owned()).unwrap());
    store.accept(CreateCommand { owner, audio, params, metadata: None, callback: None }, ()).await.unwrap()
}

/// Accepts one and ends it well; its id.
async fn ended(store: &Arc<TranscriptionStore>, at: i64, result: &str) -> Uuid {
    ended_for(store, at, result, OWNER).await
}

async fn ended_for(store: &Arc<TranscriptionStore>, at: i64, result: &str, owner: Hash) -> Uuid {
    let upload = kept_for(store, 10, owner).await;
    let Acceptance::Accepted(id) = accepted_for(store, upload, owner).await else { panic!("it is accepted") };
    let taken: TakenTranscription = take_for_recognition(store).unwrap();
    assert_eq!(taken.id, id);
    store.end(&taken, TranscriptionEnd { at: Timestamp(at), failure: None }, Some(result)).unwrap();
    id
}

fn listed(store: &TranscriptionStore) -> Vec<Uuid> {
    store.list(&OWNER, &Default::default(), usize::MAX).into_iter().map(|(_, id)| id).collect()
}

const DONE: TranscriptionEnd = TranscriptionEnd { at: Timestamp(5), failure: None };

#[tokio::test]
async fn what_has_ended_is_there_again_and_what_has_not_is_queued() {
    let root = TempDir::new().unwrap();
    let store = open(root.path(), 0).unwrap();
    let uploads = [kept(&store, 10).await, kept(&store, 10).await, kept(&store, 10).await];
    let mut ids = Vec::new();
    for upload in uploads {
        ids.push(accepted(&store, upload).await.unwrap());
    }
    let [first, second] = [take_for_recognition(&store).unwrap(), take_for_recognition(&store).unwrap()];
    assert_eq!([first.id, second.id], ids[..2]);
    store.end(&first, DONE, Some("{\"a\": 1.0}")).unwrap();
    let failure = TranscriptionFailure { code: 422, message: "no sound".to_owned() };
    store.end(&second, TranscriptionEnd { at: Timestamp(6), failure: Some(failure.clone()) }, None).unwrap();
    let id = store.id();
    drop(store);

    let store = open(root.path(), 0).unwrap();
    assert_eq!(store.id(), id);
    let standing = |n: usize| store.read(ids[n], &OWNER).unwrap().unwrap();
    assert_eq!(standing(0).result.unwrap().read().unwrap().get(), "{\"a\": 1.0}");
    assert_eq!(standing(1).head.ended.unwrap().failure, Some(failure));
    assert_eq!(standing(2).status.as_str(), "queued");
    assert!(store.read(ids[0], &OTHER).unwrap().is_none(), "another owner's");
    assert_eq!(take_for_recognition(&store).unwrap().id, ids[2]);
    assert!(take_for_recognition(&store).is_none());
    assert_eq!(store.upload_store.bytes(), 10, "only the upload that is still needed");
}

#[tokio::test]
async fn what_was_cut_short_is_cleared_away() {
    let root = TempDir::new().unwrap();
    let store = open(root.path(), 0).unwrap();
    let whole = kept(&store, 10).await;
    let fileless = kept(&store, 10).await;
    let ended = kept(&store, 10).await;
    accepted(&store, ended).await.unwrap();
    let label = fs::read(root.path().join(format!("uploads/{ended}.json"))).unwrap();
    store.end(&take_for_recognition(&store).unwrap(), DONE, Some("{}")).unwrap();
    drop(store);
    let put = |name: &str, bytes: &[u8]| fs::write(root.path().join(name), bytes).unwrap();
    fs::remove_file(root.path().join(format!("uploads/{fileless}"))).unwrap();
    put(&format!("uploads/{ended}"), b"0123456789");
    put(&format!("uploads/{ended}.json"), &label);
    put("uploads/.tmpx", b"half an upload");
    put(&format!("uploads/{}", Uuid::new_v4()), b"an upload without a label");
    put("transcriptions/.tmpx", b"half a head");
    put("results/.tmpx", b"half a result");
    let damaged = Uuid::new_v4();
    put(&format!("transcriptions/{damaged}.json"), b"{\"v\":1,");

    let store = open(root.path(), 0).unwrap();
    let mut left = names(root.path(), "uploads");
    left.sort();
    assert_eq!(left, [whole.to_string(), format!("{whole}.json")]);
    assert_eq!(store.upload_store.bytes(), 10);
    let left = names(root.path(), "transcriptions");
    assert!(left.len() == 2 && left.contains(&format!("{damaged}.damaged")), "{left:?}");
    assert_eq!(names(root.path(), "results").len(), 1);
    drop(store);
    put(&format!("results/{}.json", Uuid::new_v4()), b"{}");
    open(root.path(), 0).unwrap();
    assert_eq!(names(root.path(), "results").len(), 1, "a deletion that was cut short");
}

#[tokio::test]
async fn files_of_a_newer_release_are_left_alone() {
    for name in ["desk.json", "transcriptions/ID.json", "uploads/ID.json"] {
        let root = TempDir::new().unwrap();
        drop(open(root.path(), 0).unwrap());
        let path = root.path().join(name.replace("ID", &Uuid::new_v4().to_string()));
        let newer = json!({ "v": 2, "id": Uuid::new_v4().to_string(), "owner": OWNER, "since": 0, "file": {} });
        fs::write(&path, newer.to_string()).unwrap();
        let Err(error) = open(root.path(), 0) else { panic!("{name} was taken") };
        assert!(error.to_string().contains("newer release"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), newer.to_string());
    }
}

#[tokio::test]
async fn a_ledger_of_a_newer_release_is_left_alone() {
    for line in [json!({ "v": 2, "id": QUEUED, "wings": true }), json!({ "v": 1, "id": QUEUED, "head": head_of(2) })] {
        let root = TempDir::new().unwrap();
        drop(open(root.path(), 0).unwrap());
        let path = root.path().join("ledger/00000001.log");
        let bytes = framing::encode(line.to_string().as_bytes());
        fs::write(&path, &bytes).unwrap();
        let Err(error) = open(root.path(), 0) else { panic!("{line} was taken") };
        assert!(error.to_string().contains("newer release"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

fn head_of(version: u32) -> serde_json::Value {
    json!({ "v": version, "owner": OWNER, "upload": ENDED, "created": 0, "params": {} })
}

#[tokio::test]
async fn an_upload_that_nobody_used_goes_after_a_day() {
    let root = TempDir::new().unwrap();
    let store = open(root.path(), 0).unwrap();
    let [unused, used] = [kept(&store, 10).await, kept(&store, 10).await];
    accepted(&store, used).await.unwrap();
    drop(store);
    assert_eq!(open(root.path(), DAY).unwrap().upload_store.bytes(), 20);
    let store = open(root.path(), DAY + 1).unwrap();
    assert_eq!(store.upload_store.bytes(), 10);
    assert_eq!(accepted(&store, unused).await, None);
    assert!(accepted(&store, used).await.is_some());
}

#[tokio::test]
async fn uploads_are_bounded_one_by_one_and_together() {
    let root = TempDir::new().unwrap();
    let store = open(root.path(), 0).unwrap();
    assert!(matches!(store.upload_store.begin(OWNER, 101), Err(UploadStoreError::TooLarge { limit: 100 })));
    let mut one = store.upload_store.begin(OWNER, 100).unwrap();
    one.write(&[0; 100]).await.unwrap();
    assert!(matches!(one.write(&[0]).await, Err(UploadStoreError::TooLarge { .. })));
    let mut two = store.upload_store.begin(OWNER, 100).unwrap();
    two.write(&[0; 100]).await.unwrap();
    let mut three = store.upload_store.begin(OWNER, 0).unwrap();
    assert!(matches!(three.write(&[0; 51]).await, Err(UploadStoreError::Full { limit: 250 })));
    assert!(matches!(store.upload_store.begin(OWNER, 51), Err(UploadStoreError::Full { .. })));
    drop(one);
    three.write(&[0; 51]).await.unwrap();
    drop((two, three));
    assert_eq!(store.upload_store.bytes(), 0);
    assert!(names(root.path(), "uploads").is_empty());
}

#[tokio::test]
async fn a_clock_that_is_set_back_disturbs_no_order() {
    let root = TempDir::new().unwrap();
    let store = open(root.path(), 1000).unwrap();
    let upload = kept(&store, 10).await;
    let first = accepted(&store, upload).await.unwrap();
    drop(store);
    let store = open(root.path(), 10).unwrap();
    let second = accepted(&store, upload).await.unwrap();
    let [older, newer] = [first, second].map(|id| store.record_meta(id).unwrap().created);
    assert_eq!((older, newer), (Timestamp(1000), Timestamp(1001)));
    assert_eq!(listed(&store), [second, first]);
}

#[tokio::test]
async fn owners_take_turns_and_each_has_a_limit() {
    let root = TempDir::new().unwrap();
    let store = open_with(root.path(), 0, StoreRules { running: 1, queue: 2, ..rules() }).unwrap();
    let own = kept(&store, 10).await;
    let others = kept_for(&store, 10, OTHER).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(accepted(&store, own).await.unwrap());
    }
    assert_eq!(accepted_for(&store, own, OWNER).await, Acceptance::Full(3));
    let Acceptance::Accepted(other) = accepted_for(&store, others, OTHER).await else { panic!("it has its own limit") };
    let [first, second] = [take_for_recognition(&store).unwrap(), take_for_recognition(&store).unwrap()];
    assert_eq!([first.id, second.id], [ids[0], other], "in turn, although three were there before");
    assert!(take_for_recognition(&store).is_none(), "each has one that runs");
    store.end(&first, DONE, Some("{}")).unwrap();
    assert_eq!(take_for_recognition(&store).unwrap().id, ids[1]);
    assert!(matches!(accepted_for(&store, own, OWNER).await, Acceptance::Accepted(_)), "one has ended");
    drop(store);
    let store = open_with(root.path(), 0, StoreRules { running: 1, queue: 2, ..rules() }).unwrap();
    assert_eq!(accepted_for(&store, own, OWNER).await, Acceptance::Full(3), "counted anew at the start");
}

#[tokio::test]
async fn what_has_ended_can_be_deleted_and_nothing_is_left() {
    let root = TempDir::new().unwrap();
    let store = open(root.path(), 0).unwrap();
    let upload = kept(&store, 10).await;
    let open_one = accepted(&store, upload).await.unwrap();
    assert_eq!(store.delete(open_one, &OWNER).unwrap(), DeleteResult::Open);
    let taken = take_for_recognition(&store).unwrap();
    assert_eq!(store.delete(open_one, &OWNER).unwrap(), DeleteResult::Open);
    store.end(&taken, DONE, Some("{}")).unwrap();
    assert_eq!(store.delete(open_one, &OTHER).unwrap(), DeleteResult::Unknown);
    assert_eq!(store.delete(open_one, &OWNER).unwrap(), DeleteResult::Removed);
    assert_eq!(store.delete(open_one, &OWNER).unwrap(), DeleteResult::Unknown);
    for folder in ["uploads", "transcriptions", "results"] {
        assert_eq!(names(root.path(), folder), [""; 0]);
    }
    drop(store);
    assert!(listed(&open(root.path(), 0).unwrap()).is_empty());
}

#[tokio::test]
async fn what_was_kept_long_enough_goes() {
    let root = TempDir::new().unwrap();
    let rules = StoreRules { limits: UploadLimits { upload: 100, disk: 100_000 }, ..rules() };
    let open = |root: &Path, now| open_with(root, now, rules);
    let store = open(root.path(), 0).unwrap();
    let [_old, young] = [ended(&store, 0, "{}").await, ended(&store, 5 * DAY, "{}").await];
    drop(store);
    let store = open(root.path(), 30 * DAY + 1).unwrap();
    assert_eq!(listed(&store), [young]);
    drop(store);
    assert!(listed(&open(root.path(), 36 * DAY).unwrap()).is_empty());
    assert_eq!(names(root.path(), "results"), [""; 0]);
}

/// A limit that leaves room for five of these results and their records.
#[tokio::test]
async fn old_results_make_room_and_young_ones_stay() {
    let root = TempDir::new().unwrap();
    let large = StoreRules { limits: UploadLimits { upload: 100, disk: 13_000 }, ..rules() };
    let store = open_with(root.path(), 0, large).unwrap();
    let result = format!("\"{}\"", "x".repeat(2_000));
    let mut ids = Vec::new();
    for at in 0..6 {
        ids.push(ended(&store, at, &result).await);
    }
    assert_eq!(listed(&store).len(), 6, "of the last day all stay");
    assert!(matches!(store.upload_store.begin(OWNER, 1), Err(UploadStoreError::Full { limit: 13_000 })));
    drop(store);
    let store = open_with(root.path(), 2 * DAY, large).unwrap();
    store.remove_expired();
    let left = listed(&store);
    assert!((1..6).contains(&left.len()) && left[0] == ids[5], "the oldest go first: {left:?}");
    assert!(store.upload_store.begin(OWNER, 1).is_ok());
}

/// What one key keeps does not cost another one its results.
#[tokio::test]
async fn only_keys_over_their_share_make_room() {
    let root = TempDir::new().unwrap();
    let large = StoreRules { limits: UploadLimits { upload: 3_000, disk: 16_000 }, ..rules() };
    let open = |now| {
        let store = open_with(root.path(), now, large).unwrap();
        store.upload_store.set_rules(UploadRules { keys: 2, ..UploadRules::default() });
        store
    };
    let store = open(0);
    let result = format!("\"{}\"", "x".repeat(2_000));
    let others = ended_for(&store, 0, &result, OTHER).await;
    let mut ids = Vec::new();
    for at in 1..7 {
        ids.push(ended(&store, at, &result).await);
    }
    drop(store);
    let store = open(2 * DAY);
    store.remove_expired();
    assert!(store.status_and_upload(others, &OTHER).is_some(), "the oldest of all, and less than a share");
    let left = listed(&store);
    assert!((1..6).contains(&left.len()) && left[0] == ids[5], "{left:?}");
    // Nearly full again, by uploads of one key whose creates are on their way.
    while store.upload_store.begin(OWNER, 100).is_ok() {
        kept_since(&store, 100, OWNER, Timestamp(2 * DAY)).await;
    }
    assert!(matches!(
        store.upload_store.begin(OWNER, 100),
        Err(UploadStoreError::OverShare { share: 8_000, limit: 16_000 })
    ));
    assert!(store.upload_store.begin(OTHER, 1_000).is_ok());
    assert!(store.status_and_upload(others, &OTHER).is_some());
}

/// A clock that was set back by years keeps nobody waiting for years.
#[tokio::test]
async fn a_call_is_due_although_the_clock_was_set_back() {
    let root = TempDir::new().unwrap();
    let rules = StoreRules { webhook: true, ..rules() };
    let store = open_with(root.path(), 1000 * DAY, rules).unwrap();
    let id = ended(&store, 1000 * DAY, "{}").await;
    let NextCall::Due(creation) = store.next_delivery(Timestamp(1000 * DAY)) else { panic!("it is due") };
    assert_eq!(creation, Due { id, delivery: DeliveryKind::Creation });
    assert!(!store.record_attempt(creation, &Ok(())).unwrap());
    let NextCall::Due(due) = store.next_delivery(Timestamp(1000 * DAY)) else { panic!("it is due") };
    assert_eq!((due.id, store.record_attempt(due, &no_answer()).unwrap()), (id, true));
    assert!(matches!(store.next_delivery(Timestamp(1000 * DAY)), NextCall::In(wait) if wait == rules.patience.first));
    drop(store);
    let store = open_with(root.path(), 0, rules).unwrap();
    let NextCall::Due(due) = store.next_delivery(Timestamp(0)) else { panic!("it waits for years") };
    assert!(!store.record_attempt(due, &Ok(())).unwrap());
    assert_eq!(store.next_delivery(FAR), NextCall::None);
}

/// The outcome of each attempt is stored, as those of the end are.
#[tokio::test]
async fn a_creation_that_was_received_or_given_up_is_not_reported_after_a_restart() {
    let root = TempDir::new().unwrap();
    let rules = StoreRules { webhook: true, ..rules() };
    let mut store = open_with(root.path(), 0, rules).unwrap();
    let upload = kept(&store, 10).await;
    let ids = [accepted(&store, upload).await.unwrap(), accepted(&store, upload).await.unwrap()];
    let created = ids.map(|id| Due { id, delivery: DeliveryKind::Creation });
    drop(store);
    store = open_with(root.path(), 0, rules).unwrap();
    assert_eq!(created.map(|_| store.next_delivery(FAR)), created.map(NextCall::Due), "the service was killed");
    assert_eq!(store.next_delivery(FAR), NextCall::None, "both are being delivered");
    let body = store.delivery(created[0]).unwrap().unwrap().body.into_bytes().unwrap();
    let told = format!("{{\"event\":\"transcription.created\",\"payload\":{{\"id\":\"{}\"}}}}", ids[0]);
    assert_eq!(String::from_utf8(body).unwrap(), told);
    assert!(!store.record_attempt(created[0], &Ok(())).unwrap());
    for failed in 1..=rules.patience.attempts {
        let again = store.record_attempt(created[1], &no_answer()).unwrap();
        assert_eq!(again, failed < rules.patience.attempts, "{failed}");
        drop(store);
        store = open_with(root.path(), 0, rules).unwrap();
        let next = if again { NextCall::Due(created[1]) } else { NextCall::None };
        assert_eq!(store.next_delivery(FAR), next, "{failed}");
    }
    // Their records are complete: they are recognised, and their ends are reported.
    for id in ids {
        let taken = take_for_recognition(&store).unwrap();
        assert_eq!((taken.id, store.record_meta(id).unwrap().params), (id, json!({})));
        store.end(&taken, DONE, Some("{}")).unwrap();
    }
    assert_eq!(ids.map(|_| store.next_delivery(FAR)), ids.map(|id| NextCall::Due(end_of(id))));
}

/// Also a receiver that was away hears of the creation before the end; one that refuses creations hears of the end.
#[tokio::test]
async fn a_creation_is_reported_before_each_attempt_of_the_end() {
    let root = TempDir::new().unwrap();
    let limits = UploadLimits { disk: 10_000, ..LIMITS };
    let rules = StoreRules { webhook: true, limits, ..rules() };
    let store = open_with(root.path(), 0, rules).unwrap();
    let upload = kept(&store, 10).await;
    let id = accepted(&store, upload).await.unwrap();
    let creation = Due { id, delivery: DeliveryKind::Creation };
    let end_it = |store: &Arc<TranscriptionStore>| {
        let taken = take_for_recognition(store).unwrap();
        store.end(&taken, DONE, Some("{}")).unwrap();
    };
    assert_eq!(store.next_delivery(FAR), NextCall::Due(creation));
    end_it(&store);
    assert_eq!(store.next_delivery(FAR), NextCall::None, "the creation is being reported");
    assert!(store.record_attempt(creation, &no_answer()).unwrap());
    assert_eq!(store.next_delivery(FAR), NextCall::Due(creation));
    assert_eq!(store.next_delivery(FAR), NextCall::None, "the end waits for the creation");
    drop(store);

    let store = open_with(root.path(), 0, rules).unwrap();
    assert_eq!(store.next_delivery(FAR), NextCall::Due(creation));
    assert_eq!(store.next_delivery(FAR), NextCall::None, "also after a restart");
    let refused = Err(DeliveryFailure::Refused("the receiver answered 400".to_owned()));
    assert!(store.record_attempt(creation, &refused).unwrap());
    assert_eq!(store.next_delivery(FAR), NextCall::Due(end_of(id)), "the receiver does not take the creation");
    assert!(store.record_attempt(end_of(id), &refused).unwrap());
    assert_eq!(store.next_delivery(FAR), NextCall::Due(creation), "the receiver is back, perhaps");
    assert!(!store.record_attempt(creation, &Ok(())).unwrap());
    assert_eq!(store.next_delivery(FAR), NextCall::Due(end_of(id)));
    assert!(!store.record_attempt(end_of(id), &Ok(())).unwrap());
    drop(store);
    let store = open_with(root.path(), 0, rules).unwrap();
    assert_eq!(store.next_delivery(FAR), NextCall::None);

    // The end comes while the creation waits for another attempt: it is not kept waiting for that.
    let upload = kept(&store, 10).await;
    let id = accepted(&store, upload).await.unwrap();
    let creation = Due { id, delivery: DeliveryKind::Creation };
    assert_eq!(store.next_delivery(FAR), NextCall::Due(creation));
    assert!(store.record_attempt(creation, &no_answer()).unwrap());
    assert!(matches!(store.next_delivery(Timestamp(5)), NextCall::In(_)));
    end_it(&store);
    assert_eq!(store.next_delivery(Timestamp(5)), NextCall::Due(creation));
    assert!(!store.record_attempt(creation, &Ok(())).unwrap());
    assert_eq!(store.next_delivery(Timestamp(5)), NextCall::Due(end_of(id)));
}

/// Records of releases that did not store whether the webhook had received a creation: an upgrade reports none of
/// them, and all their ends.
#[tokio::test]
async fn a_creation_without_a_stored_delivery_is_not_reported() {
    let root = TempDir::new().unwrap();
    let store = open(root.path(), 0).unwrap();
    let upload = kept(&store, 10).await;
    let id = accepted(&store, upload).await.unwrap();
    let log = fs::read(root.path().join("ledger/00000001.log")).unwrap();
    assert!(!String::from_utf8(log).unwrap().contains("creation"), "as releases wrote it that stored no delivery");
    drop(store);
    let store = open_with(root.path(), 0, StoreRules { webhook: true, ..rules() }).unwrap();
    assert_eq!(store.next_delivery(FAR), NextCall::None);
    let taken = take_for_recognition(&store).unwrap();
    store.end(&taken, DONE, Some("{}")).unwrap();
    assert_eq!(store.next_delivery(FAR), NextCall::Due(end_of(id)));
}

/// The log is compacted all the time while records are written again.
#[tokio::test]
async fn a_received_creation_stays_so_when_the_log_is_compacted() {
    let root = TempDir::new().unwrap();
    let rules = StoreRules { webhook: true, volume: 2_000, queue: 1_000, ..rules() };
    let mut store = open_with(root.path(), 0, rules).unwrap();
    let upload = kept(&store, 10).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        for _ in 0..20 {
            ids.push(accepted(&store, upload).await.unwrap());
        }
        std::thread::scope(|scope| {
            while let NextCall::Due(due) = store.next_delivery(FAR) {
                let store = &store;
                scope.spawn(move || assert!(!store.record_attempt(due, &Ok(())).unwrap()));
            }
        });
        store.remove_expired();
        drop(store);
        store = open_with(root.path(), 0, rules).unwrap();
        assert_eq!(store.next_delivery(FAR), NextCall::None, "all were received");
    }
    let mut listed = listed(&store);
    listed.reverse();
    assert_eq!(listed, ids, "nothing is lost");
}

const FAR: Timestamp = Timestamp(i64::MAX);

fn no_answer() -> Result<(), DeliveryFailure> {
    Err(DeliveryFailure::NoAnswer("no answer".to_owned()))
}

fn end_of(id: Uuid) -> Due {
    Due { id, delivery: DeliveryKind::End(0) }
}

/// Records from before they said whose they are.
#[tokio::test]
async fn records_without_an_owner_are_the_first_keys() {
    let root = TempDir::new().unwrap();
    let store = open(root.path(), 0).unwrap();
    let upload = kept(&store, 10).await;
    let [done, queued] = [ended(&store, 0, "{}").await, accepted(&store, upload).await.unwrap()];
    // As it was written before there was a ledger.
    let head = serde_json::to_vec(&store.record_meta(queued).unwrap()).unwrap();
    drop(store);
    fs::remove_dir_all(root.path().join("ledger")).unwrap();
    fs::write(root.path().join(format!("transcriptions/{queued}.json")), head).unwrap();
    for path in [
        format!("transcriptions/{done}.json"),
        format!("transcriptions/{queued}.json"),
        format!("uploads/{upload}.json"),
    ] {
        let path = root.path().join(path);
        let mut kept: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        kept.as_object_mut().unwrap().remove("owner").unwrap();
        fs::write(&path, kept.to_string()).unwrap();
    }
    let store = open_with(root.path(), 0, StoreRules { first_owner: OTHER, ..rules() }).unwrap();
    assert!(store.read(done, &OTHER).unwrap().is_some() && store.read(done, &OWNER).unwrap().is_none());
    assert!(store.read(queued, &OTHER).unwrap().is_some());
    assert!(matches!(accepted_for(&store, upload, OTHER).await, Acceptance::Accepted(_)));
}

/// As the first release wrote them.
#[tokio::test]
async fn a_store_of_format_1() {
    let root = TempDir::new().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/v1/desk");
    for (name, to) in [("done.json", "transcriptions"), ("queued.json", "transcriptions"), ("result.json", "results")] {
        let id = if name == "queued.json" { QUEUED } else { ENDED };
        fs::create_dir_all(root.path().join(to)).unwrap();
        fs::copy(from.join(name), root.path().join(to).join(format!("{id}.json"))).unwrap();
    }
    let store = open(root.path(), DAY).unwrap();
    let standing = store.read(ENDED.parse().unwrap(), &OWNER).unwrap().unwrap();
    assert_eq!(
        (standing.status.as_str(), standing.result.unwrap().read().unwrap().get()),
        ("done", "{\"metadata\":{}}")
    );
    assert_eq!(take_for_recognition(&store).unwrap().id.to_string(), QUEUED);
}

const ENDED: &str = "6f2f9d5e-6a39-4a8e-8a0a-0d5f9a5b0c01";
const QUEUED: &str = "6f2f9d5e-6a39-4a8e-8a0a-0d5f9a5b0c02";
