//! Measures what a durable step costs, compared with the least that it can cost: one record and one fdatasync, on the
//! same disk in the same run. The record is appended, which makes the file system store a new length each time, and
//! written over existing data, as sled does within its segments. Then measures memory and opening with a large backlog.
//!
//! `cargo bench --bench store -- [--jobs N] [--dir DIR] [--only-backlog | --only-verify]`; DIR is on the disk to be
//! measured. A separate process opens the backlog again and prints wall and processor time and its peak memory.
//! `verify` checks one output of each written job, then restores every tenth from its kept result.
#![allow(clippy::unwrap_used, missing_docs)]

use scribed::testing::domain::job::{Job, JobKey, Output, Stamp};
use scribed::testing::domain::names::{Hash, JobId, ServiceName, SourceName, Timestamp, TranscriptionId, UploadId};
use scribed::testing::domain::path::RelPath;
use scribed::testing::domain::stage::{AudioAmount, AudioAt, Intent, JobEvent, StageKind, UploadedAudio};
use scribed::testing::domain::token::{PurchaseKey, Token};
use scribed::testing::output::results::Results;
use scribed::testing::store::contract::{ALL, ClaimLimit, Claimed, Claims, Hold, Jobs, Lease, Lifecycle};
use scribed::testing::store::queue::QueueStore;
use scribed::testing::store::sled;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const NOW: Timestamp = Timestamp(1_795_000_000_000);
const FAR: Timestamp = Timestamp(i64::MAX);
/// A disk's sync can be ten times slower a minute later, so the compared loops alternate in slices.
const SLICE: Duration = Duration::from_millis(250);
const TURNS: u32 = 16;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    if let Some(dir) = value("--open") {
        return open_again(Path::new(dir));
    }
    let jobs: u64 = value("--jobs").map_or(100_000, |text| text.parse().expect("--jobs takes a number"));
    let dir = value("--dir").map_or_else(std::env::temp_dir, PathBuf::from);
    let syncs = Arc::new(Syncs::default());
    tracing::subscriber::set_global_default(CountSyncs(Arc::clone(&syncs))).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();

    if args.iter().any(|arg| arg == "--only-backlog") {
        let state = tempfile::tempdir_in(&dir).unwrap();
        return backlog(&runtime, state.path(), jobs);
    }
    if args.iter().any(|arg| arg == "--only-verify") {
        let dir = tempfile::tempdir_in(&dir).unwrap();
        return verify(&runtime, dir.path(), jobs);
    }
    println!("waiting    durable steps   per sync   append+fdatasync   overwrite+fdatasync");
    for waiting in [1, 16, 256] {
        let state = tempfile::tempdir_in(&dir).unwrap();
        let (mut append, mut over) = (Bare::new(state.path(), false), Bare::new(state.path(), true));
        let mut walk = runtime.block_on(Walk::new(&state.path().join("state"), waiting));
        let before = syncs.count();
        for _ in 0..TURNS {
            append.turn();
            over.turn();
            runtime.block_on(walk.turn());
        }
        let per_sync = f64::from(walk.rate.done) / (syncs.count() - before) as f64;
        let (steps, append, over) = (walk.rate.per_second(), append.rate.per_second(), over.rate.per_second());
        println!("{waiting:>7} {steps:>14.0}/s {per_sync:>10.1} {append:>16.0}/s {over:>19.0}/s");
        // The store syncs too, so it cannot sync more often than a loop that does nothing else.
        if steps / per_sync > 1.2 * append.max(over) {
            println!(
                "        not comparable: the bare loops were held up by something else; measure on a quiet machine"
            );
        }
    }
    let state = tempfile::tempdir_in(&dir).unwrap();
    backlog(&runtime, state.path(), jobs);
}

/// A count and the time that it took.
#[derive(Default)]
struct Rate {
    done: u32,
    spent: Duration,
}

impl Rate {
    fn per_second(&self) -> f64 {
        f64::from(self.done) / self.spent.as_secs_f64()
    }

    fn add(&mut self, done: u32, begin: Instant) {
        self.done += done;
        self.spent += begin.elapsed();
    }
}

/// Writes and syncs the bytes of one record repeatedly.
struct Bare {
    file: File,
    rate: Rate,
}

impl Bare {
    fn new(dir: &Path, over: bool) -> Self {
        let mut file = File::create(dir.join(if over { "over" } else { "append" })).unwrap();
        if over {
            file.write_all(&vec![0; 64 << 20]).unwrap();
            file.sync_all().unwrap();
            file.rewind().unwrap();
        }
        Self { file, rate: Rate::default() }
    }

    fn turn(&mut self) {
        let (begin, mut done) = (Instant::now(), 0);
        while begin.elapsed() < SLICE {
            self.file.write_all(&[b'x'; 900]).unwrap();
            self.file.sync_data().unwrap();
            done += 1;
        }
        self.rate.add(done, begin);
    }
}

/// Each of several concurrent workers takes a job through the three durable steps, repeatedly.
struct Walk {
    store: Arc<QueueStore>,
    claimed: Vec<Claimed>,
    rate: Rate,
}

impl Walk {
    async fn new(dir: &Path, waiting: usize) -> Self {
        let store = Arc::new(sled::open(dir).unwrap());
        for n in 0..waiting as u64 {
            store.admit(&key(n), stamp(n), NOW, NOW).await.unwrap();
        }
        let claimed = store.claim(&[StageKind::Found], ALL, NOW, FAR, ClaimLimit::of(waiting)).await.unwrap();
        Self { store, claimed, rate: Rate::default() }
    }

    async fn turn(&mut self) {
        let begin = Instant::now();
        let workers: Vec<_> = self
            .claimed
            .iter()
            .map(|claimed| tokio::spawn(walk(Arc::clone(&self.store), claimed.clone(), begin)))
            .collect();
        let mut done = 0;
        for (worker, claimed) in workers.into_iter().zip(&mut self.claimed) {
            let (steps, lease) = worker.await.unwrap();
            done += steps;
            claimed.lease = lease;
        }
        self.rate.add(done, begin);
    }
}

async fn walk(store: Arc<QueueStore>, claimed: Claimed, begin: Instant) -> (u32, Lease) {
    let (round, mut lease, mut done) = (round(&claimed.job, Vec::new()), claimed.lease, 0);
    while begin.elapsed() < SLICE {
        for job in &round {
            store.commit(&lease, job, Hold::Keep).await.unwrap();
            lease = lease.seeing(job);
            done += 1;
        }
    }
    (done, lease)
}

fn backlog(runtime: &tokio::runtime::Runtime, dir: &Path, jobs: u64) {
    let (begin, before) = (Instant::now(), processor());
    let store = sled::open(dir).unwrap();
    runtime.block_on(fill(&store, jobs));
    let (wall, used) = (begin.elapsed().as_secs_f64(), processor() - before);
    println!("{jobs} jobs: admitted at {:.0}/s ({used:.1} s of processor), then {}", jobs as f64 / wall, memory());
    drop(store);
    let this = std::env::current_exe().unwrap();
    for _ in 0..3 {
        assert!(std::process::Command::new(&this).arg("--open").arg(dir).status().unwrap().success());
    }
    println!("on disk: {} MB", size_of(dir) >> 20);
}

fn open_again(dir: &Path) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let begin = Instant::now();
    let store = sled::open(dir).unwrap();
    let opened = begin.elapsed().as_secs_f64();
    let claimed = runtime.block_on(store.claim(&StageKind::ALL, ALL, NOW, FAR, ClaimLimit::of(256))).unwrap();
    println!(
        "opened in {opened:.2} s, first claim of {} after {:.2} s (wanted: 3 s), {:.2} s of processor, {} (wanted: 500 MB)",
        claimed.len(),
        begin.elapsed().as_secs_f64(),
        processor(),
        memory()
    );
}

/// Measures `scribed verify` with this number of written jobs.
fn verify(runtime: &tokio::runtime::Runtime, dir: &Path, jobs: u64) {
    const CONFIG: &str = "[[source]]\nname = \"interviews\"\nfolder = \"inbox\"\noutputs = [\"txt\"]\n";
    std::fs::write(dir.join("jobs.toml"), CONFIG).unwrap();
    let store = sled::open(&dir.join("state")).unwrap();
    runtime.block_on(fill(&store, jobs));
    let outputs = runtime.block_on(written(&store, dir));
    drop(store);
    command(dir, &["verify"]);
    outputs.iter().step_by(10).for_each(|output| std::fs::remove_file(output).unwrap());
    command(dir, &["verify", "--repair"]);
}

/// Takes all jobs of the store to written: each recording with an output, and every tenth with a kept result.
async fn written(store: &QueueStore, dir: &Path) -> Vec<PathBuf> {
    let raw = include_bytes!("../tests/data/service/job_done.vercel_fixture_2025.json");
    let results = Results::new(dir.join("state/results/default"));
    let mut all = Vec::new();
    loop {
        let claimed = store.claim(&[StageKind::Found], ALL, NOW, FAR, ClaimLimit::of(256)).await.unwrap();
        if claimed.is_empty() {
            return all;
        }
        let each = claimed.into_iter().map(|claimed| {
            let recording = dir.join("inbox").join(claimed.job.key.path.to_string());
            let output = recording.with_extension("en.txt");
            std::fs::create_dir_all(recording.parent().unwrap()).unwrap();
            std::fs::write(&recording, b"sound").unwrap();
            let text = format!("{}\n", "what was said in the evening ".repeat(100));
            std::fs::write(&output, &text).unwrap();
            let name = RelPath::new(output.file_name().unwrap().as_encoded_bytes());
            let round = round(&claimed.job, vec![Output { name, hash: Hash::of(text.as_bytes()), at: None }]);
            if all.len() % 10 == 0 {
                let JobId(n) = claimed.job.id;
                results.save(&TranscriptionId::new(uuid::Uuid::from_u128(n.into()).to_string()), raw).unwrap();
            }
            all.push(output);
            async move {
                let mut lease = claimed.lease;
                for job in &round {
                    store.commit(&lease, job, Hold::Keep).await.unwrap();
                    lease = lease.seeing(job);
                }
            }
        });
        futures_util::future::join_all(each.collect::<Vec<_>>()).await;
    }
}

/// Runs scribed as a separate process and prints its time and peak memory.
fn command(dir: &Path, arguments: &[&str]) {
    let begin = Instant::now();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_scribed"));
    let mut child = command.args(arguments).current_dir(dir).stdout(std::process::Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut highest = String::new();
    let ended = loop {
        let now = std::fs::read_to_string(&status).unwrap_or_default();
        highest = now.lines().find(|line| line.starts_with("VmHWM")).map_or(highest, str::to_owned);
        match child.try_wait().unwrap() {
            Some(ended) => break ended,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let (what, took) = (arguments.join(" "), begin.elapsed().as_secs_f64());
    println!("scribed {what}: {took:.1} s, {highest}, ended with {ended}");
}

/// Returns the user and system time of all threads, in seconds.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

async fn fill(store: &QueueStore, jobs: u64) {
    for n in 0..jobs {
        store.admit(&key(n), stamp(n), NOW, NOW).await.unwrap();
    }
    store.flush().await.unwrap();
}

/// Returns the current and the peak memory, as the kernel reports them.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
    };
    format!("memory {} MB (highest {} MB)", of("VmRSS"), of("VmHWM"))
}

fn size_of(dir: &Path) -> u64 {
    let files = walkdir::WalkDir::new(dir).into_iter().filter_map(Result::ok);
    files.filter_map(|file| file.metadata().ok()).filter(std::fs::Metadata::is_file).map(|data| data.len()).sum()
}

fn key(n: u64) -> JobKey {
    let path = format!("shelf-{:03}/box-{:03}/recording of the evening {n:07}.wav", n % 997, n % 101);
    JobKey { source: SourceName::new("interviews"), path: RelPath::new(path) }
}

fn stamp(n: u64) -> Stamp {
    Stamp { size: 1_000_000 + n, mtime_ns: NOW.0 * 1_000_000, ctime_ns: NOW.0 * 1_000_000, inode: n }
}

/// Returns the job at each of the stages that have to be durable.
fn round(job: &Job, outputs: Vec<Output>) -> Vec<Job> {
    let JobId(n) = job.id;
    let params = Hash::of(b"parameters");
    let purchase_key =
        PurchaseKey { service: ServiceName::new("default"), content: Hash::of(&n.to_be_bytes()), params, part: None };
    let audio = AudioAmount { millis: 3_600_000, channels: 1, billed: None };
    let intent = Intent {
        token: Token::new(&purchase_key, job.key.tag(), 0),
        origin: "https://stt.example.org".into(),
        key: "0123456789abcdef".into(),
        service_date: Some(NOW),
        sent_at: NOW,
    };
    let upload = AudioAt::Upload(UploadedAudio {
        id: UploadId::new(uuid::Uuid::from_u128(n.into()).to_string()),
        at: NOW,
        origin: None,
    });
    let way = [
        JobEvent::Settled,
        JobEvent::Probed { params, content: None, request_record: None },
        JobEvent::Uploaded { purchase_key, audio, upload, sent: None },
        JobEvent::Intended { intent },
        JobEvent::Created { transcription: TranscriptionId::new(uuid::Uuid::from_u128(n.into()).to_string()) },
        JobEvent::Fetched { audio },
        JobEvent::Written {
            outputs,
            earlier: Vec::new(),
            rendered_as: None,
            language: None,
            missing: Vec::new(),
            parts: Vec::new(),
            unread: None,
            review: None,
        },
    ];
    let mut job = job.clone();
    let mut at_each = Vec::new();
    for event in way {
        job = job.apply(event, NOW).unwrap();
        at_each.push(job.clone());
    }
    let durable = [StageKind::Submitting, StageKind::Submitted, StageKind::Written];
    at_each.retain(|job| durable.contains(&job.stage.kind()));
    at_each
}

/// Counts syncs, which the store reports as trace events.
#[derive(Default)]
struct Syncs(AtomicU64);

impl Syncs {
    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct CountSyncs(Arc<Syncs>);

impl tracing::Subscriber for CountSyncs {
    fn enabled(&self, of: &tracing::Metadata<'_>) -> bool {
        of.target() == "scribed::store::sync"
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}
