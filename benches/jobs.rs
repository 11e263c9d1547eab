//! Measures whole jobs a second: `scribed once` against a service that answers at once, compared with the script that
//! one would write instead (`jobs_peer.py`: aiohttp, the same concurrency and keep-alive, no queue, no sync). Run it
//! with `benches/jobs.sh`.
//!
//! A job is three requests (upload, create, read) and four outputs. Both clients use the same service, which is a
//! separate process. The disk's own fdatasync rate is printed too, because every durable step depends on it.

use axum::extract::{Path as UrlPath, Request, State};
use axum::response::Json;
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CONCURRENCY: usize = 32;
const ROUNDS: usize = 3;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.first().map(String::as_str) {
        Some("--service") => serve(),
        first => compare(first.and_then(|count| count.parse().ok()).unwrap_or(2_000)),
    }
}

#[derive(Default)]
struct Ledger {
    uploads: AtomicU64,
    creates: AtomicU64,
}

/// A service that answers at once and keeps only counts.
fn serve() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let ledger = Arc::new(Ledger::default());
        let routes = axum::Router::new()
            .route("/v2/upload", post(upload))
            .route("/v2/pre-recorded", post(create).get(list))
            .route("/v2/pre-recorded/{id}", get(read))
            .route("/counts", get(counts))
            .with_state(ledger);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{}", listener.local_addr().expect("an address"));
        axum::serve(listener, routes).await.expect("to serve");
    });
}

async fn upload(State(ledger): State<Arc<Ledger>>, request: Request) -> Json<Value> {
    let body = axum::body::to_bytes(request.into_body(), 1 << 24).await.expect("a body");
    assert!(!body.is_empty());
    let n = ledger.uploads.fetch_add(1, Ordering::Relaxed);
    Json(json!({"audio_url": format!("http://127.0.0.1/file/f{n}"),
        "audio_metadata": {"id": format!("f{n}"), "audio_duration": 1.0, "number_of_channels": 1}}))
}

async fn create(State(ledger): State<Arc<Ledger>>, Json(body): Json<Value>) -> (axum::http::StatusCode, Json<Value>) {
    assert!(body["audio_url"].is_string());
    let n = ledger.creates.fetch_add(1, Ordering::Relaxed);
    (axum::http::StatusCode::CREATED, Json(json!({"id": format!("t{n}"), "result_url": ""})))
}

async fn read(UrlPath(id): UrlPath<String>) -> Json<Value> {
    let words = ["one", " two", " three", " four"];
    let words: Vec<Value> = words
        .iter()
        .enumerate()
        .map(|(n, word)| json!({"word": word, "start": n, "end": n + 1, "confidence": 0.9}))
        .collect();
    Json(
        json!({"id": id, "status": "done", "version": 2, "kind": "pre-recorded", "created_at": "2026-01-01T00:00:00.000Z",
        "result": {"metadata": {"audio_duration": 4.0, "number_of_distinct_channels": 1, "billing_time": 4.0, "transcription_time": 0.0},
        "transcription": {"full_transcript": "one two three four", "languages": ["en"], "utterances": [
            {"text": "one two three four", "start": 0.0, "end": 4.0, "confidence": 0.9, "channel": 0, "language": "en", "words": words}
        ]}}}),
    )
}

async fn list() -> Json<Value> {
    Json(json!({"first": "", "current": "", "next": null, "items": []}))
}

async fn counts(State(ledger): State<Arc<Ledger>>) -> Json<Value> {
    Json(json!({"uploads": ledger.uploads.load(Ordering::Relaxed), "creates": ledger.creates.load(Ordering::Relaxed)}))
}

fn compare(count: usize) {
    let place = tempfile::tempdir_in(std::env::current_dir().expect("here")).expect("a folder");
    println!("{count} jobs of 1 KiB, {CONCURRENCY} at once, 3 requests and 4 outputs each; {ROUNDS} rounds");
    let mut best = (0.0_f64, 0.0_f64);
    for round in 0..ROUNDS {
        let ours = measure(place.path(), round, count, "scribed");
        let theirs = measure(place.path(), round, count, "aiohttp");
        best = (best.0.max(ours), best.1.max(theirs));
    }
    println!(
        "best: scribed {:.0} jobs/s, aiohttp script {:.0} jobs/s, ratio {:.2} (wanted: 2)",
        best.0,
        best.1,
        best.0 / best.1
    );
    println!(
        "scribed's jobs are durable (three synced steps each, grouped) and its outputs synced; the script's are neither"
    );
}

fn measure(place: &Path, round: usize, count: usize, who: &str) -> f64 {
    let folder = place.join(format!("{who}{round}"));
    let inbox = folder.join("inbox");
    fs::create_dir_all(&inbox).expect("a folder");
    for n in 0..count {
        let mut bytes = format!("{who} {round} {n} ").into_bytes();
        bytes.resize(1024, b'.');
        fs::write(inbox.join(format!("r{n:06}.wav")), bytes).expect("a file");
    }
    let _ = Command::new("sync").status();
    let syncs = sync_rate(&folder);
    let service = Service::start();
    let mut client = if who == "scribed" { scribed(&folder, &service.address) } else { peer(&inbox, &service.address) };
    let started = Instant::now();
    let mut child = client.stdout(Stdio::null()).spawn().expect("the client");
    let peak = watch(&mut child);
    let seconds = started.elapsed().as_secs_f64();
    let names = fs::read_dir(&inbox).expect("the folder").map(|entry| entry.expect("a file").file_name());
    let outputs = names.filter(|name| !name.as_encoded_bytes().starts_with(b".")).count() - count;
    assert_eq!(outputs, count * 4, "{who} wrote all outputs");
    drop(service);
    let rate = count as f64 / seconds;
    println!(
        "  {who:<8} {rate:>7.0} jobs/s  {seconds:>6.2} s  peak {:>4} MiB  disk {syncs:>5.0} fdatasync/s",
        peak >> 10
    );
    rate
}

fn scribed(folder: &Path, address: &str) -> Command {
    let config = format!(
        "[service]\nurl = \"http://{address}\"\nkey = \"env:BENCH_KEY\"\nlag = \"0s\"\n\
         limits = {{ uploads = {CONCURRENCY}, running = {CONCURRENCY}, requests_per_second = 1000000 }}\n\
         poll = {{ min = \"1ms\", max = \"1s\", give_up = \"1h\" }}\n\
         [[source]]\nfolder = \"inbox\"\nsettle = \"1ms\"\n"
    );
    fs::write(folder.join("jobs.toml"), config).expect("a configuration");
    let mut command = Command::new(env!("CARGO_BIN_EXE_scribed"));
    command.args(["once", "-q", "--config"]).arg(folder.join("jobs.toml")).env("BENCH_KEY", "k");
    command
}

fn peer(inbox: &Path, address: &str) -> Command {
    let python = std::env::var_os("BENCH_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let mut command = Command::new(python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/jobs_peer.py"));
    command.arg(inbox).arg(format!("http://{address}")).arg(CONCURRENCY.to_string());
    command
}

struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start() -> Self {
        let this = std::env::current_exe().expect("this program");
        let mut child = Command::new(this).arg("--service").stdout(Stdio::piped()).spawn().expect("the service");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("its address");
        Self { child, address: line.trim().to_owned() }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Killing fails if the process has ended; waiting is needed in both cases.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for the end of the process and returns its peak memory in KiB.
fn watch(child: &mut Child) -> u64 {
    let mut peak = 0;
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        if let Some(status) = child.try_wait().expect("the client") {
            assert!(status.success(), "the client failed: {status}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns how many appends of 4 KiB with fdatasync the disk currently takes a second.
fn sync_rate(folder: &Path) -> f64 {
    const PROBES: u32 = 200;
    let mut file = File::create(folder.join("probe")).expect("a file");
    let started = Instant::now();
    for _ in 0..PROBES {
        file.write_all(&[7; 4096]).expect("a write");
        file.sync_data().expect("a sync");
    }
    f64::from(PROBES) / started.elapsed().as_secs_f64()
}
