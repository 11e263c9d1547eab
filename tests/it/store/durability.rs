//! A killed process loses nothing that was acknowledged as durable. The test starts itself again as a child that works
//! on a store and reports what was acknowledged, kills it at a random moment, opens the store and checks it; many times
//! on one directory.

use crate::support::child::test_in_child;
use crate::support::jobs::{START, key, next, stamp};
use scribed::testing::domain::job::Job;
use scribed::testing::domain::names::{JobId, Timestamp};
use scribed::testing::domain::stage::{Stage, StageKind};
use scribed::testing::store::contract::{
    ALL, ClaimLimit, Claimed, Claims, Filter, HistoryEntry, Hold, Jobs, KnownPurchase, Queries, Store, StoreError,
};
use scribed::testing::store::memory::MemoryDisk;
use scribed::testing::store::queue::{Journal, QueueStore, Rows};
use scribed::testing::store::sled;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

/// Set for the child: the state directory.
const CHILD: &str = "SCRIBED_TEST_KILL_DIR";
const ROUNDS: u64 = 20;
const WORKERS: usize = 8;
const FAR: Timestamp = Timestamp(i64::MAX);

/// How far along the way; never smaller later.
fn reached(job: &Job) -> usize {
    job.stage.kind() as usize
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    if let Some(dir) = std::env::var_os(CHILD) {
        let say = |line: &str| std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
        return work_on(Path::new(&dir), Arc::new(say), u64::MAX);
    }
    let dir = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeMap::new();
    for round in 0..ROUNDS {
        // Spread over the first half second, where opening, the first rows and the flusher all happen.
        let moment = Duration::from_millis(30 + (round * 137) % 470);
        for (id, stage) in killed_after(dir.path(), moment) {
            let best = acknowledged.entry(id).or_insert(stage);
            *best = stage.max(*best);
        }
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let store = sled::open(dir.path()).unwrap();
            look(&store, &acknowledged).await;
            // The youngest: those that the child was busy with. Each look reads the whole history.
            let youngest = store.counts().await.unwrap().total();
            for id in (1..=youngest).rev().take(WORKERS) {
                told_in_order(&store, JobId(id)).await;
            }
        });
    }
    assert!(acknowledged.len() > 100, "the children hardly did anything: {} jobs", acknowledged.len());
}

/// The steps that the child was told are durable before it died.
fn killed_after(dir: &Path, moment: Duration) -> Vec<(JobId, usize)> {
    let mut child = test_in_child(module_path!(), "what_was_acknowledged_survives_kill_9")
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        BufReader::new(said).lines().map_while(Result::ok).filter_map(|line| parse(&line)).collect()
    });
    std::thread::sleep(moment);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// A line may be torn: only one with its end counts.
pub fn parse(line: &str) -> Option<(JobId, usize)> {
    let (id, stage) = line.strip_prefix("ack ")?.strip_suffix(" .")?.split_once(' ')?;
    Some((JobId(id.parse().ok()?), stage.parse().ok()?))
}

/// Whether everything that was acknowledged is there, and all rows make sense.
pub async fn look(store: &dyn Store, acknowledged: &BTreeMap<JobId, usize>) {
    for (id, stage) in acknowledged {
        let job = store.job(*id).await.unwrap().unwrap_or_else(|| panic!("job {id} is lost"));
        assert!(reached(&job) >= *stage, "job {id} fell back to {}", job.stage.kind().name());
    }
    let jobs = store.page(&Filter { limit: usize::MAX, ..Filter::default() }).await.unwrap();
    for job in &jobs {
        whole(store, job).await;
    }
}

/// The row is one that the machine can have made, and the purchase it stands on is known.
async fn whole(store: &dyn Store, job: &Job) {
    let n = job.id.0;
    let mut again = Job::found(job.id, job.key.clone(), job.seen, START, START);
    while again.stage.kind() != job.stage.kind() {
        let event = next(&again, n).unwrap();
        again = again.apply(event, START).unwrap();
    }
    // What it cost is not the machine's: the store keeps it.
    again.charges.clone_from(&job.charges);
    assert_eq!(*job, again);
    if let (Some(purchase_key), Some(transcription)) = (job.stage.purchase_key(), job.stage.transcription()) {
        let bought = KnownPurchase {
            transcription: transcription.clone(),
            purchase_number: 0,
            by: Some(job.id),
            origin: job.bought_at.clone(),
            sighted: None,
            confirmed: false,
        };
        assert_eq!(store.purchase(purchase_key).await.unwrap(), Some(bought), "job {n} paid and nobody knows");
    }
}

/// Refuses to hear of a step that is already kept.
struct HearsFirst(MemoryDisk);

impl Journal for HearsFirst {
    fn note(&self, note: &HistoryEntry) -> Result<(), StoreError> {
        let kept = self.0.load(note.job)?;
        assert_ne!(kept.map(|job| job.stage.kind()), Some(note.stage), "killed here, nobody would have heard of it");
        Journal::note(&self.0, note)
    }

    fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError> {
        self.0.history(job)
    }

    fn erase(&self, job: JobId) -> Result<u64, StoreError> {
        self.0.erase(job)
    }
}

#[tokio::test]
async fn history_hears_of_a_step_before_it_is_kept() {
    let disk = MemoryDisk::default();
    let hears = Arc::new(HearsFirst(disk.clone()));
    let store = QueueStore::open(Box::new(disk.clone()), hears, Box::new(disk)).unwrap();
    store.admit(&key(1), stamp(1), START, START).await.unwrap();
    for claimed in store.claim(&StageKind::ALL, ALL, START, FAR, ClaimLimit::of(1)).await.unwrap() {
        let silent: Say = Arc::new(|_: &str| ());
        walk(&store, claimed, &silent).await.unwrap();
    }
    assert!(store.history(JobId(1)).await.unwrap().len() > 5, "the way was not told");
}

/// The history may have heard of steps that were not yet kept; those were taken again.
async fn told_in_order(store: &dyn Store, n: JobId) {
    let steps: Vec<_> = store.history(n).await.unwrap().iter().map(|note| place(note.stage)).collect();
    assert_eq!(steps.first(), Some(&0));
    assert!(steps.windows(2).all(|pair| pair[1] <= pair[0] + 1), "job {n} jumped: {steps:?}");
}

/// On the straight way.
fn place(kind: StageKind) -> usize {
    let way: Vec<_> = StageKind::ALL.into_iter().filter(|kind| *kind != StageKind::Following).collect();
    way.iter().position(|step| *step == kind).unwrap()
}

/// Says what was acknowledged.
type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Walks jobs along their way until there are so many.
pub fn work_on(dir: &Path, say: Say, jobs: u64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let store = Arc::new(sled::open(dir).unwrap_or_else(|error| panic!("the store does not open: {error}")));
    runtime.block_on(async {
        let work = || tokio::spawn(work(Arc::clone(&store), Arc::clone(&say), jobs));
        for worker in (0..WORKERS).map(|_| work()).collect::<Vec<_>>() {
            worker.await.unwrap().unwrap();
        }
    });
}

async fn work(store: Arc<impl Store>, say: Say, jobs: u64) -> Result<(), StoreError> {
    loop {
        let n = store.counts().await?.total();
        if n >= jobs {
            return Ok(());
        }
        store.admit(&key(n), stamp(n), START, START).await?;
        for claimed in store.claim(&StageKind::ALL, ALL, START, FAR, ClaimLimit::of(2)).await? {
            walk(&*store, claimed, &say).await?;
        }
    }
}

async fn walk(store: &impl Store, claimed: Claimed, say: &Say) -> Result<(), StoreError> {
    let Claimed { mut lease, mut job } = claimed;
    while let Some(event) = next(&job, job.id.0) {
        job = job.apply(event, START).unwrap();
        store.commit(&lease, &job, Hold::Keep).await?;
        lease = lease.seeing(&job);
        if matches!(job.stage, Stage::Submitting { .. } | Stage::Submitted { .. } | Stage::Written { .. }) {
            say(&format!("ack {} {} .\n", job.id, reached(&job)));
        }
    }
    Ok(())
}
