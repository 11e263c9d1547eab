//! Measures the time from a finished copy to the upload's first byte at the service, with `settle = "1s"`: `scribed
//! run` watches a folder, and files are copied into it one after the other, in place and by rename.
//!
//! `cargo bench --bench drop -- [FILES] [BACKLOG]`: FILES files are measured (20), while BACKLOG other files (0) wait
//! in a second source, `archive/`, and are sent meanwhile.

use axum::extract::{Path as UrlPath, Request, State};
use axum::response::Json;
use axum::routing::{get, post};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<usize>().ok());
    let (count, backlog) = (numbers.next().unwrap_or(20), numbers.next().unwrap_or(0));
    let place = tempfile::tempdir()?;
    let (said, heard) = mpsc::channel();
    let address = serve(said)?;
    fs::create_dir(place.path().join("inbox"))?;
    fill(&place.path().join("archive"), backlog)?;
    let archive = "[[source]]\nfolder = \"archive\"\nlane = \"backlog\"\n";
    let config = format!(
        "[service]\nurl = \"http://{address}\"\nkey = \"env:BENCH_KEY\"\nlag = \"0s\"\n\
         [[source]]\nfolder = \"inbox\"\nsettle = \"1s\"\n{}",
        if backlog > 0 { archive } else { "" }
    );
    fs::write(place.path().join("jobs.toml"), config)?;
    let daemon = Daemon::start(place.path())?;
    // The first file is not counted, because the daemon starts meanwhile.
    first_byte(place.path(), &heard, usize::MAX)?;
    let mut took: Vec<Duration> = (0..count).map(|n| first_byte(place.path(), &heard, n)).collect::<Result<_>>()?;
    drop(daemon);
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part).round() as usize];
    println!(
        "{count} files of 4 MiB, one after the other, settle = \"1s\": from the end of the copy to the upload's first byte"
    );
    println!(
        "  least {:.2?}, median {:.2?}, 95 of 100 {:.2?}, most {:.2?} (wanted: below 2.5 s)",
        at(0.0),
        at(0.5),
        at(0.95),
        at(1.0)
    );
    Ok(())
}

/// Writes the backlog, which is sent meanwhile; each file has its own content.
fn fill(archive: &Path, count: usize) -> Result<()> {
    for n in 0..count {
        let folder = archive.join((n / 1_000).to_string());
        if n % 1_000 == 0 {
            fs::create_dir_all(&folder)?;
        }
        fs::write(folder.join(format!("{n}.wav")), format!("{n} ").repeat(100 + n % 50))?;
    }
    Ok(())
}

/// Copies a file slowly into the inbox and waits for its upload.
fn first_byte(place: &Path, heard: &Receiver<Instant>, n: usize) -> Result<Duration> {
    let name = place.join(format!("inbox/talk {n}.wav"));
    let temporary = place.join(format!("inbox/.talk {n}.wav.a1B2c3"));
    let mut file = fs::File::create(if n.is_multiple_of(2) { &name } else { &temporary })?;
    for piece in 0..64 {
        file.write_all(&[u8::try_from(piece)?; 1 << 16])?;
        file.write_all(n.to_string().as_bytes())?;
        std::thread::sleep(Duration::from_millis(fastrand::u64(1..12)));
    }
    drop(file);
    if !n.is_multiple_of(2) {
        fs::rename(&temporary, &name)?;
    }
    let whole = Instant::now();
    let first = heard.recv_timeout(Duration::from_secs(60))?;
    Ok(first.saturating_duration_since(whole))
}

struct Daemon(Child);

impl Daemon {
    fn start(place: &Path) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scribed"));
        command.args(["run", "-q", "--config"]).arg(place.join("jobs.toml")).env("BENCH_KEY", "k");
        Ok(Self(command.spawn()?))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A service that reports the first byte of each upload, and whose transcriptions all end in error.
fn serve(said: Sender<Instant>) -> Result<String> {
    let (ready, address) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let create = || async { (axum::http::StatusCode::CREATED, Json(json!({"id": id(), "result_url": ""}))) };
            let routes = axum::Router::new()
                .route("/v2/upload", post(upload))
                .route("/v2/pre-recorded", post(create).get(list))
                .route("/v2/pre-recorded/{id}", get(read))
                .with_state(said);
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            ready.send(listener.local_addr().expect("an address").to_string()).expect("somebody waits");
            axum::serve(listener, routes).await.expect("to serve");
        });
    });
    Ok(address.recv()?)
}

fn id() -> String {
    format!("t{}", fastrand::u64(..))
}

async fn upload(State(said): State<Sender<Instant>>, request: Request) -> Json<Value> {
    let length = request.headers().get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let mut body = request.into_body().into_data_stream();
    body.next().await;
    // Uploads of the backlog are small and not reported.
    if length.is_none_or(|length| length > 1 << 20) {
        said.send(Instant::now()).ok();
    }
    while body.next().await.is_some() {}
    let id = id();
    Json(json!({"audio_url": format!("http://127.0.0.1/file/{id}"),
        "audio_metadata": {"id": id, "audio_duration": 1.0, "number_of_channels": 1}}))
}

async fn list() -> Json<Value> {
    Json(json!({"first": "", "current": "", "next": null, "items": []}))
}

async fn read(UrlPath(id): UrlPath<String>) -> Json<Value> {
    Json(json!({"id": id, "status": "error", "version": 2, "kind": "pre-recorded", "error_code": 400,
        "created_at": "2026-01-01T00:00:00.000Z"}))
}
