//! The service's desk by itself: what it finds when it is opened again.

use crate::service::names;
use scribed::clock::{Clock, SystemClock, Uptime};
use scribed::domain::names::{Hash, Timestamp};
use scribed::server::desk::{Desk, DeskError, Ended, Failure, Request};
use scribed::server::shelf::{Limits, ShelfError, UNUSED};
use scribed::wire::result::File;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

/// A wall clock that is set by hand.
#[derive(Default)]
struct Hand(AtomicI64);

#[async_trait::async_trait]
impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn uptime(&self) -> Uptime {
        SystemClock.uptime()
    }

    async fn sleep(&self, _: Duration) {}
}

const LIMITS: Limits = Limits { upload: 100, disk: 250 };
const OWNER: Hash = Hash([7; 32]);

fn open(root: &Path, now: i64) -> Result<Desk, DeskError> {
    Desk::open(root, LIMITS, Arc::new(Hand(now.into())))
}

async fn kept(desk: &Desk, bytes: usize) -> Uuid {
    let mut incoming = desk.shelf.begin(0).unwrap();
    incoming.write(&vec![0; bytes]).await.unwrap();
    incoming.finish().await.unwrap();
    let id = Uuid::new_v4();
    let file = File { id: Some(id.to_string()), ..File::default() };
    desk.shelf.keep(incoming, OWNER, Timestamp(0), file).unwrap();
    id
}

fn accepted(desk: &Desk, upload: Uuid) -> Option<Uuid> {
    desk.accept(Request { owner: OWNER, upload, params: json!({}), metadata: None }).unwrap()
}

const DONE: Ended = Ended { at: Timestamp(5), failure: None };

#[tokio::test]
async fn what_has_ended_is_there_again_and_what_has_not_is_queued() {
    let root = TempDir::new().unwrap();
    let desk = open(root.path(), 0).unwrap();
    let uploads = [kept(&desk, 10).await, kept(&desk, 10).await, kept(&desk, 10).await];
    let ids = uploads.map(|upload| accepted(&desk, upload).unwrap());
    let [first, second] = [desk.take().unwrap(), desk.take().unwrap()];
    assert_eq!([first.id, second.id], ids[..2]);
    desk.end(&first, DONE, Some("{\"a\": 1.0}")).unwrap();
    let failure = Failure { code: 422, message: "no sound".to_owned() };
    desk.end(&second, Ended { at: Timestamp(6), failure: Some(failure.clone()) }, None).unwrap();
    let id = desk.id();
    drop(desk);

    let desk = open(root.path(), 0).unwrap();
    assert_eq!(desk.id(), id);
    let standing = |n: usize| desk.read(ids[n], &OWNER).unwrap().unwrap();
    assert_eq!(standing(0).result.unwrap().get(), "{\"a\": 1.0}");
    assert_eq!(standing(1).head.ended.unwrap().failure, Some(failure));
    assert_eq!(standing(2).status.as_str(), "queued");
    assert!(desk.read(ids[0], &Hash([8; 32])).unwrap().is_none(), "another owner's");
    assert_eq!(desk.take().unwrap().id, ids[2]);
    assert!(desk.take().is_none());
    assert_eq!(desk.shelf.bytes(), 10, "only the upload that is still needed");
}

#[tokio::test]
async fn what_was_cut_short_is_cleared_away() {
    let root = TempDir::new().unwrap();
    let desk = open(root.path(), 0).unwrap();
    let whole = kept(&desk, 10).await;
    let fileless = kept(&desk, 10).await;
    let ended = kept(&desk, 10).await;
    accepted(&desk, ended).unwrap();
    let label = fs::read(root.path().join(format!("uploads/{ended}.json"))).unwrap();
    desk.end(&desk.take().unwrap(), DONE, Some("{}")).unwrap();
    drop(desk);
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

    let desk = open(root.path(), 0).unwrap();
    let mut left = names(root.path(), "uploads");
    left.sort();
    assert_eq!(left, [whole.to_string(), format!("{whole}.json")]);
    assert_eq!(desk.shelf.bytes(), 10);
    let left = names(root.path(), "transcriptions");
    assert!(left.len() == 2 && left.contains(&format!("{damaged}.damaged")), "{left:?}");
    assert_eq!(names(root.path(), "results").len(), 1);
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
async fn an_upload_that_nobody_used_goes_after_a_day() {
    let root = TempDir::new().unwrap();
    let desk = open(root.path(), 0).unwrap();
    let [unused, used] = [kept(&desk, 10).await, kept(&desk, 10).await];
    accepted(&desk, used).unwrap();
    desk.shelf.sweep(Timestamp(0).after(UNUSED));
    assert_eq!(desk.shelf.bytes(), 20);
    desk.shelf.sweep(Timestamp(1).after(UNUSED));
    assert_eq!(desk.shelf.bytes(), 10);
    assert_eq!(accepted(&desk, unused), None);
    assert!(accepted(&desk, used).is_some());
}

#[tokio::test]
async fn uploads_are_bounded_one_by_one_and_together() {
    let root = TempDir::new().unwrap();
    let desk = open(root.path(), 0).unwrap();
    assert!(matches!(desk.shelf.begin(101), Err(ShelfError::TooLarge { limit: 100 })));
    let mut one = desk.shelf.begin(100).unwrap();
    one.write(&[0; 100]).await.unwrap();
    assert!(matches!(one.write(&[0]).await, Err(ShelfError::TooLarge { .. })));
    let mut two = desk.shelf.begin(100).unwrap();
    two.write(&[0; 100]).await.unwrap();
    let mut three = desk.shelf.begin(0).unwrap();
    assert!(matches!(three.write(&[0; 51]).await, Err(ShelfError::Full { limit: 250 })));
    assert!(matches!(desk.shelf.begin(51), Err(ShelfError::Full { .. })));
    drop(one);
    three.write(&[0; 51]).await.unwrap();
    drop((two, three));
    assert_eq!(desk.shelf.bytes(), 0);
    assert!(names(root.path(), "uploads").is_empty());
}

#[tokio::test]
async fn a_clock_that_is_set_back_disturbs_no_order() {
    let root = TempDir::new().unwrap();
    let desk = open(root.path(), 1000).unwrap();
    let upload = kept(&desk, 10).await;
    let first = accepted(&desk, upload).unwrap();
    drop(desk);
    let desk = open(root.path(), 10).unwrap();
    let second = accepted(&desk, upload).unwrap();
    let [older, newer] = [first, second].map(|id| desk.head(id).unwrap().created);
    assert_eq!((older, newer), (Timestamp(1000), Timestamp(1001)));
    assert_eq!(desk.list(&OWNER, &Default::default()).ids, [second, first]);
}
