//! Measures `scribed render` with jobs whose outputs are mostly as they are wanted, beside two limits: reading and hashing
//! the same files with as many threads, and writing as many files in batches without anything else.
//!
//! `cargo bench --bench render -- [JOBS]`: 20,000 jobs unless given, each with four outputs.

use anyhow::{Context, Result};
use scribed::testing::domain::job::{Job, JobKey, Output, Stamp};
use scribed::testing::domain::names::{Hash, JobId, ServiceName, SourceName, Timestamp, TranscriptionId};
use scribed::testing::domain::path::RelPath;
use scribed::testing::domain::stage::{AudioAmount, Stage};
use scribed::testing::domain::token::PurchaseKey;
use scribed::testing::output::results::Results;
use scribed::testing::store::contract::{ALL, ClaimLimit, Claims, Hold, Jobs, Lifecycle};
use scribed::testing::store::queue::QueueStore;
use scribed::testing::store::sled;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const RAW: &[u8] = include_bytes!("../tests/data/service/job_done.vercel_fixture_2025.json");
const NOW: Timestamp = Timestamp(1_795_000_000_000);
const CONFIG: &str = "[[source]]\nname = \"interviews\"\nfolder = \"inbox\"\n";
const FOLDERS: u64 = 100;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let jobs: u64 = arguments.next().map_or(Ok(20_000), |count| count.parse())?;
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("jobs.toml"), CONFIG)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(fill(dir.path(), jobs))?;
    println!("{jobs} written jobs, in {FOLDERS} folders");
    // The first run writes all outputs: none is there.
    report("write all outputs", jobs, || render(dir.path(), &["--restore"]))?;
    report("nothing to change", jobs, || render(dir.path(), &[]))?;
    let files = outputs(dir.path());
    for file in files.iter().step_by(400) {
        std::fs::remove_file(file)?;
    }
    report("one output of a hundred jobs is missing", jobs, || render(dir.path(), &["--restore"]))?;
    std::fs::write(dir.path().join("jobs.toml"), format!("{CONFIG}name_as = \"{{{{ stem }}}}.{{{{ ext }}}}\"\n"))?;
    report("all names change: four files a job move", jobs, || render(dir.path(), &[]))?;
    let files = outputs(dir.path());
    report("limit: the same files, read and hashed", jobs, || hash_all(&files))?;
    report("limit: as many files written and renamed", jobs, || write_in_batches(dir.path(), jobs * 4))?;
    Ok(())
}

fn report(what: &str, jobs: u64, run: impl FnOnce() -> Result<()>) -> Result<()> {
    let begun = Instant::now();
    run()?;
    let took: Duration = begun.elapsed();
    println!("{what:<42} {:>8.2} s {:>9.0} jobs/s", took.as_secs_f64(), jobs as f64 / took.as_secs_f64());
    Ok(())
}

fn render(dir: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scribed"));
    let output = command.arg("render").args(arguments).args(["--json", "--quiet"]).current_dir(dir).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().context("no summary")?;
    anyhow::ensure!(output.status.success(), "{last}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("    {last}");
    Ok(())
}

fn outputs(dir: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(dir.join("inbox")).sort_by_file_name().into_iter().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path);
    files.filter(|path| path.extension().is_some_and(|ext| ext != "wav")).collect()
}

/// How many files share a sync, as the outputs of jobs that are rendered together do.
const BATCH: u64 = 1_024;

/// Writes files and renames them, with a sync before and one after the renames of each batch.
fn write_in_batches(dir: &Path, count: u64) -> Result<()> {
    let folder = dir.join("limit");
    std::fs::create_dir(&folder)?;
    let open = std::fs::File::open(&folder)?;
    let content = [b'x'; 2_000];
    for first in (0..count).step_by(usize::try_from(BATCH)?) {
        let batch = first..count.min(first + BATCH);
        for n in batch.clone() {
            std::fs::write(folder.join(format!("{n}.new")), content)?;
        }
        rustix::fs::syncfs(&open)?;
        for n in batch {
            std::fs::rename(folder.join(format!("{n}.new")), folder.join(format!("{n}.srt")))?;
        }
        rustix::fs::syncfs(&open)?;
    }
    Ok(())
}

fn hash_all(files: &[PathBuf]) -> Result<()> {
    let threads = std::thread::available_parallelism()?.get();
    let part = files.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let hash =
            |file: &PathBuf| std::fs::read(file).map(|bytes| drop(std::hint::black_box(Hash::of(&bytes).to_string())));
        let parts: Vec<_> =
            files.chunks(part).map(|part| scope.spawn(move || part.iter().try_for_each(hash))).collect();
        parts.into_iter().try_for_each(|part| Ok(part.join().map_err(|_| anyhow::anyhow!("a thread failed"))??))
    })
}

/// Fills the queue with written jobs whose outputs are missing.
async fn fill(dir: &Path, jobs: u64) -> Result<()> {
    let results = Results::new(dir.join("state/results/default"));
    let store = sled::open(&dir.join("state"))?;
    for folder in 0..FOLDERS {
        std::fs::create_dir_all(dir.join(format!("inbox/{folder:02}")))?;
    }
    for n in 0..jobs {
        let path = format!("{:02}/talk-{n:06}.wav", n % FOLDERS);
        std::fs::write(dir.join("inbox").join(&path), b"sound")?;
        let key = JobKey { source: SourceName::new("interviews"), path: RelPath::new(path) };
        let seen = Stamp { size: 5, mtime_ns: 0, ctime_ns: 0, inode: n };
        store.admit(&key, seen, NOW, NOW).await?;
        results.save(&id(JobId(n + 1)), RAW)?;
    }
    write_all(&store).await?;
    store.flush().await?;
    Ok(())
}

fn id(job: JobId) -> TranscriptionId {
    TranscriptionId::new(uuid::Uuid::from_u128(job.0.into()).to_string())
}

async fn write_all(store: &QueueStore) -> Result<()> {
    let until = NOW.saturating_add(Duration::from_secs(3_600));
    loop {
        let claimed = store
            .claim(&[scribed::testing::domain::stage::StageKind::Found], ALL, NOW, until, ClaimLimit::of(256))
            .await?;
        if claimed.is_empty() {
            return Ok(());
        }
        let each = claimed.into_iter().map(|claimed| {
            let job = written(claimed.job);
            async move { store.commit(&claimed.lease, &job, Hold::Release).await }
        });
        futures_util::future::try_join_all(each).await?;
    }
}

fn written(job: Job) -> Job {
    let stem = job.key.path.to_string();
    let stem = Path::new(&stem).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let output =
        |ext: &str| Output { name: RelPath::new(format!("{stem}.en.{ext}")), hash: Hash::of(ext.as_bytes()), at: None };
    let content = Hash::of(&job.id.0.to_le_bytes());
    let purchase_key =
        PurchaseKey { service: ServiceName::new(ServiceName::DEFAULT), content, params: Hash::of(b"{}"), part: None };
    let stage = Stage::Written { purchase_key, transcription: id(job.id), audio: AudioAmount::default() };
    let outputs = ["txt", "srt", "vtt", "json"].map(output).to_vec();
    Job { stage, outputs, due: None, ..job }
}
