//! Measures the requests a second of the embedded service, compared with an empty axum handler: reads of a record, and
//! creates, each durable before it is answered. Also prints the processor time of each on this side, and how many syncs
//! the disk allows: there cannot be more creates than connections times the syncs that a single thread gets done.
//!
//! `cargo bench --bench serve`, with `wrk` (the package of this name) as the load. It is the same for all and
//! alternates between them; the best of each counts. `wrk` is a separate process on the same processors. The goal is
//! half of the empty handler's rate.
#![allow(missing_docs)]

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use scribed::testing::clock::SystemClock;
use scribed::testing::server::fetch::ssrf_guard::AddressPolicy;
use scribed::testing::server::http::auth::ApiKey;
use scribed::testing::server::http::listener::ListenerLimits;
use scribed::testing::server::http::request_body::BodyLimits;
use scribed::testing::server::recognition::dispatcher::SLICE;
use scribed::testing::server::recognition::lazy::LazyRecogniser;
use scribed::testing::server::recognition::recogniser::{RecognisedWord, Recogniser, RecogniserError};
use scribed::testing::server::recognition::transcribe::LONGEST;
use scribed::testing::server::service::{REQUESTS, RunningService, ServiceOptions, start};
use scribed::testing::server::webhooks::policy::DeliveryRetries;
use scribed::testing::wire::enrichment::Shapes;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROUNDS: usize = 3;
const SPAN_SECONDS: u64 = 3;
const SPAN: Duration = Duration::from_secs(SPAN_SECONDS);
const CONNECTIONS: [usize; 3] = [32, 128, 400];
const KEY: &str = "a-key";

/// A recogniser that hears nothing, or never ends: then the service only handles creates.
#[derive(Default)]
struct Deaf(AtomicBool);

impl Recogniser for Deaf {
    fn languages(&self) -> &[&'static str] {
        &["en"]
    }

    fn recognise(&self, _: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        while self.0.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Vec::new())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let deaf = Arc::new(Deaf::default());
    let service = service(folder.path(), &deaf).await?;
    let empty = empty().await?;
    let (audio_url, id) = prepared(&service).await?;
    deaf.0.store(true, Ordering::SeqCst);
    let read = LoadRequest { method: "GET", path: format!("/v2/pre-recorded/{id}"), body: String::new() };
    let body = json!({ "audio_url": audio_url }).to_string();
    let create = LoadRequest { method: "POST", path: "/v2/pre-recorded".to_owned(), body };
    for connections in CONNECTIONS {
        compare("read", folder.path(), connections, service.address, empty, &read).await?;
        compare("create", folder.path(), connections, service.address, empty, &create).await?;
    }
    for threads in [1, 4] {
        println!("16 KiB appended and synced by {threads} at once: {:>6.0} syncs/s", syncs(folder.path(), threads)?);
    }
    deaf.0.store(false, Ordering::SeqCst);
    std::fs::remove_dir_all(folder.path())?;
    // Thousands of transcriptions are still queued; they are abandoned.
    std::process::exit(0);
}

async fn compare(
    what: &str,
    folder: &Path,
    connections: usize,
    service: SocketAddr,
    empty: SocketAddr,
    request: &LoadRequest,
) -> Result<()> {
    let (mut ours, mut theirs) = (Load::default(), Load::default());
    for _ in 0..ROUNDS {
        ours = ours.better(load(folder, service, connections, request).await?);
        theirs = theirs.better(load(folder, empty, connections, request).await?);
    }
    println!(
        "{what:<6} {connections:>3} connections: {:>6.0}/s at {:>3.0} µs, empty handler {:>6.0}/s at {:>3.0} µs, ratio {:.2}",
        ours.per_second,
        ours.cost,
        theirs.per_second,
        theirs.cost,
        ours.per_second / theirs.per_second
    );
    Ok(())
}

#[derive(Default, Clone, Copy)]
struct Load {
    per_second: f64,
    /// The processor time of each request on this side, in microseconds.
    cost: f64,
}

impl Load {
    fn better(self, other: Self) -> Self {
        if other.per_second > self.per_second { other } else { self }
    }
}

/// Runs `wrk` in a separate process and returns its throughput.
async fn load(folder: &Path, address: SocketAddr, connections: usize, request: &LoadRequest) -> Result<Load> {
    let script = folder.join("ask.lua");
    std::fs::write(&script, request.script()?)?;
    let used = processor_time()?;
    let mut wrk = tokio::process::Command::new("wrk");
    wrk.args(["--threads", "1", "--connections", &connections.to_string(), "--duration", &format!("{SPAN_SECONDS}s")]);
    let output = wrk.arg("--script").arg(&script).arg(format!("http://{address}{}", request.path)).output().await;
    let output = output.context("`wrk` does not run: install the package `wrk`")?;
    let used = processor_time()? - used;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && !text.contains("Non-2xx"), "wrk: {text}");
    let number = |name: &str| -> Result<f64> {
        let line =
            text.lines().find_map(|line| line.trim().strip_prefix(name)).with_context(|| format!("{name} {text}"))?;
        Ok(line.trim().parse()?)
    };
    let per_second = number("Requests/sec:")?;
    Ok(Load { per_second, cost: used * 1e6 / (per_second * SPAN_SECONDS as f64) })
}

/// Returns the user and system time of this process in seconds.
fn processor_time() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').context("a name")?.1;
    let ticks = |n: usize| -> Result<f64> { Ok(after_name.split_whitespace().nth(n).context("a field")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}

/// The request that is repeated.
struct LoadRequest {
    method: &'static str,
    path: String,
    body: String,
}

impl LoadRequest {
    fn script(&self) -> Result<String> {
        let Self { method, body, .. } = self;
        let (key, body) = (serde_json::to_string(KEY)?, serde_json::to_string(body)?);
        Ok(format!(
            "wrk.method = \"{method}\"\nwrk.body = {body}\nwrk.headers[\"x-service-key\"] = {key}\n\
             wrk.headers[\"content-type\"] = \"application/json\"\n"
        ))
    }
}

async fn service(data: &Path, deaf: &Arc<Deaf>) -> Result<RunningService> {
    let options = ServiceOptions {
        listen: "127.0.0.1:0".parse()?,
        data: data.to_owned(),
        keys: vec![ApiKey::new(KEY)],
        key_headers: vec!["x-service-key".to_owned()],
        upload_limit: 1 << 30,
        disk: 1 << 40,
        running: 1,
        queue: usize::MAX,
        retention: Duration::from_secs(1 << 30),
        uploads: scribed::testing::server::storage::uploads::UploadRetention::UNTIL_TRANSCRIBED,
        tls: None,
        authorities: Default::default(),
        reach: AddressPolicy::public(),
        webhook: None,
        patience: DeliveryRetries::default(),
        workers: 1,
        language_model: None,
        translator: None,
        voices: None,
        shapes: Shapes::Interface,
        length_limit: LONGEST,
        slice: SLICE,
        manners: ListenerLimits::SERVICE,
        requests: REQUESTS,
        bodies: BodyLimits::SERVICE,
        cors: Vec::new(),
        public_url: None,
        trusted_proxies: Vec::new(),
        shown: scribed::testing::domain::zone::Zone::UTC,
        names: std::collections::BTreeSet::new(),
    };
    let deaf_too = Arc::clone(deaf) as Arc<dyn Recogniser>;
    let recogniser = Arc::new(LazyRecogniser::new(move || Ok(Arc::clone(&deaf_too))));
    Ok(start(options, recogniser, Arc::new(SystemClock)).await?)
}

/// Starts a server that accepts any request and answers at once.
async fn empty() -> Result<SocketAddr> {
    let created = async |_: axum::body::Bytes| (StatusCode::CREATED, "{}");
    let router =
        Router::new().route("/v2/pre-recorded", post(created)).route("/v2/pre-recorded/{id}", get(async || "{}"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

/// Returns an upload that stays unused, and the id of a transcription that has ended.
async fn prepared(service: &RunningService) -> Result<(Value, String)> {
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build()?;
    let base = format!("http://{}", service.address);
    let ask = |method: reqwest::Method, path: &str| {
        client.request(method, format!("{base}{path}")).header("x-service-key", KEY)
    };
    let mut urls = Vec::new();
    for _ in 0..2 {
        let part = reqwest::multipart::Part::bytes(wav()).file_name("talk.wav");
        let form = reqwest::multipart::Form::new().part("audio", part);
        let sent = ask(reqwest::Method::POST, "/v2/upload").multipart(form).send().await?;
        urls.push(sent.json::<Value>().await?["audio_url"].clone());
    }
    let body = json!({ "audio_url": urls[0] });
    let created: Value = ask(reqwest::Method::POST, "/v2/pre-recorded").json(&body).send().await?.json().await?;
    let id = created["id"].as_str().context("an id")?.to_owned();
    loop {
        let asked = ask(reqwest::Method::GET, &format!("/v2/pre-recorded/{id}")).send().await?;
        if asked.json::<Value>().await?["status"] == "done" {
            return Ok((urls.remove(1), id));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns ten seconds of noise, so that there is sound to recognise.
fn wav() -> Vec<u8> {
    let mut random = blake3::Hasher::new_derive_key("bench serve").finalize_xof();
    let mut samples = vec![0; 320_000];
    random.fill(&mut samples);
    let mut wav = Vec::new();
    wav.extend_from_slice(b"RIFF");
    wav.extend_from_slice(&(36 + 320_000_u32).to_le_bytes());
    wav.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    wav.extend_from_slice(&16_000_u32.to_le_bytes());
    wav.extend_from_slice(&32_000_u32.to_le_bytes());
    wav.extend_from_slice(b"\x02\0\x10\0data");
    wav.extend_from_slice(&320_000_u32.to_le_bytes());
    wav.extend_from_slice(&samples);
    wav
}

/// Measures how many syncs the disk allows, without a service.
fn syncs(folder: &Path, threads: u64) -> Result<f64> {
    const LINES: [u8; 16 << 10] = [b'x'; 16 << 10];
    let (begun, path) = (Instant::now(), folder.join("syncs"));
    let one = |thread: u64| -> Result<u32> {
        let file = std::fs::File::options().create(true).truncate(false).write(true).open(&path)?;
        let mut done = 0;
        while begun.elapsed() < SPAN {
            file.write_all_at(&LINES, (u64::from(done) * threads + thread) * LINES.len() as u64)?;
            file.sync_data()?;
            done += 1;
        }
        Ok(done)
    };
    let done: Result<Vec<u32>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let one = &one;
                    move || one(thread)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow::anyhow!("it panicked"))?).collect()
    });
    std::fs::remove_file(&path)?;
    Ok(f64::from(done?.iter().sum::<u32>()) / begun.elapsed().as_secs_f64())
}
