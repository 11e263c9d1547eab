//! Compares `upload = "audio"` with `upload = "original"`: one film of 2 GB with recorded speech, over loopback and
//! over a slow line. Measures the bytes that are sent, and the seconds of a whole pass of the real binary.
//!
//! `cargo bench --bench extract`, or with `-- --megabytes 500 --megabits 20`. The film is made once and kept in the
//! build's folder. The service is a separate process, which reads and discards what it receives.
#![allow(missing_docs)]

use axum::Router;
use axum::body::Body;
use axum::extract::{Path as UrlPath, State};
use axum::response::Json;
use axum::routing::{get, post};
use futures_util::TryStreamExt;
use serde_json::{Value, json};
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const SPEECH: &str = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb-0870.wav";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--service") {
        return service();
    }
    let number = |name: &str, default: u64| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)).map_or(Ok(default), |text| text.parse())
    };
    let (megabytes, megabits) = (number("--megabytes", 2_000)?, number("--megabits", 100)?);
    let film = film(megabytes)?;
    let size = fs::metadata(&film)?.len();
    println!("a film of {:.0} MB, one pass of the release binary each", size as f64 / 1e6);
    for line in [None, Some(megabits)] {
        let named = line.map_or("loopback".to_owned(), |megabits| format!("{megabits} Mbit/s"));
        let mut took = Vec::new();
        for upload in ["original", "audio"] {
            let (seconds, bytes, peak) = pass(&film, upload, line)?;
            let (sent, peak) = (bytes as f64 / 1e6, peak as f64 / 1024.0);
            println!("  {named:<12} {upload:<9} {seconds:>7.1} s  {sent:>8.1} MB sent  peak {peak:>4.0} MiB");
            took.push(seconds);
        }
        println!("  {named:<12} audio is {:.1} times as fast", took[0] / took[1]);
    }
    Ok(())
}

/// Makes a film of pictures that do not compress, with recorded speech in a loop: one minute is encoded and then
/// repeated without encoding it again.
fn film(megabytes: u64) -> Result<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("film-{megabytes}.mp4"));
    if path.exists() {
        return Ok(path);
    }
    let minute = folder.join("minute.mp4");
    let pictures = "testsrc2=size=640x360:rate=25,noise=alls=40:allf=t";
    let coding = ["-c:v", "mpeg2video", "-b:v", "24M", "-minrate", "24M", "-maxrate", "24M", "-bufsize", "8M"];
    let sound = ["-c:a", "aac", "-b:a", "128k", "-ar", "48000", "-ac", "2"];
    let mut arguments = vec!["-f", "lavfi", "-t", "30", "-i", pictures, "-stream_loop", "-1", "-i", SPEECH, "-t", "30"];
    arguments.extend(coding);
    arguments.extend(sound);
    ffmpeg(&arguments, &minute)?;
    let times = (megabytes * 1_000_000 / fs::metadata(&minute)?.len()).to_string();
    let whole = folder.join("whole.mp4");
    ffmpeg(&["-stream_loop", &times, "-i", &minute.display().to_string(), "-c", "copy"], &whole)?;
    fs::rename(&whole, &path)?;
    fs::remove_file(minute)?;
    Ok(path)
}

fn ffmpeg(arguments: &[&str], to: &Path) -> Result<()> {
    let mut command = Command::new("ffmpeg");
    let status = command.args(["-nostdin", "-v", "error", "-y"]).args(arguments).arg(to).status()?;
    if status.success() { Ok(()) } else { Err("ffmpeg made no film".into()) }
}

/// Returns the seconds, the bytes that the service received, and the peak memory in KiB.
fn pass(film: &Path, upload: &str, megabits: Option<u64>) -> Result<(f64, u64, u64)> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    fs::create_dir(folder.path().join("inbox"))?;
    fs::hard_link(film, folder.path().join("inbox/film.mp4"))?;
    // Read the film once, so that both runs find the same page cache.
    std::io::copy(&mut fs::File::open(film)?, &mut std::io::sink())?;
    let service = Service::start()?;
    let address = match megabits {
        Some(megabits) => slow_line(&service.address, megabits * 125_000)?,
        None => service.address.clone(),
    };
    let config = format!(
        "[service]\nurl = \"http://{address}\"\nkey = \"env:BENCH_KEY\"\nlag = \"0s\"\nupload = \"{upload}\"\n\
         poll = {{ min = \"10ms\", max = \"1s\", give_up = \"1h\" }}\n[[source]]\nfolder = \"inbox\"\nsettle = \"1ms\"\n"
    );
    fs::write(folder.path().join("jobs.toml"), config)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_scribed"));
    command.args(["once", "-q", "--config"]).arg(folder.path().join("jobs.toml")).env("BENCH_KEY", "k");
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn()?;
    let mut peak = 0;
    let status = loop {
        peak = peak.max(memory(child.id()));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let seconds = begun.elapsed().as_secs_f64();
    let written = folder.path().join("inbox/film.en.srt").exists();
    if !status.success() || !written {
        return Err(format!("the pass did not end well: {status}").into());
    }
    Ok((seconds, service.bytes()?, peak))
}

fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// Starts a proxy to `address` with this bandwidth and returns its address.
fn slow_line(address: &str, bytes_per_second: u64) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let own = listener.local_addr()?.to_string();
    let address = address.to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(service) = TcpStream::connect(&address) else { continue };
            let (Ok(back_from), Ok(back_to)) = (service.try_clone(), client.try_clone()) else { continue };
            std::thread::spawn(move || lead(back_from, back_to, None));
            std::thread::spawn(move || lead(client, service, Some(bytes_per_second)));
        }
    });
    Ok(own)
}

fn lead(mut from: TcpStream, mut to: TcpStream, bytes_per_second: Option<u64>) {
    let (mut piece, mut passed, begun) = ([0; 16 << 10], 0_u64, Instant::now());
    while let Ok(n @ 1..) = from.read(&mut piece) {
        if to.write_all(&piece[..n]).is_err() {
            break;
        }
        passed += n as u64;
        if let Some(rate) = bytes_per_second {
            let due = Duration::from_secs_f64(passed as f64 / rate as f64);
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}

/// The service in its own process.
struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?).arg("--service").stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
        Ok(Self { child, address: line.trim().to_owned() })
    }

    fn bytes(&self) -> Result<u64> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.write_all(b"GET /bytes HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.rsplit('\n').next().unwrap_or_default().trim().parse()?)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Killing fails if the process has ended; waiting is needed in both cases.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn service() -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let routes = Router::new()
            .route("/v2/upload", post(upload))
            .route("/v2/pre-recorded", post(create).get(list))
            .route("/v2/pre-recorded/{id}", get(read))
            .route("/bytes", get(bytes))
            .with_state(Arc::new(AtomicU64::new(0)));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        Ok(axum::serve(listener, routes).await?)
    })
}

async fn upload(State(sum): State<Arc<AtomicU64>>, body: Body) -> Json<Value> {
    let counted = body.into_data_stream().try_fold(0, |sum, piece| async move { Ok(sum + piece.len() as u64) });
    sum.fetch_add(counted.await.unwrap_or_default(), Ordering::Relaxed);
    Json(json!({"audio_url": "http://127.0.0.1/file/f1", "audio_metadata": {"id": "f1"}}))
}

async fn bytes(State(sum): State<Arc<AtomicU64>>) -> String {
    format!("\n{}", sum.load(Ordering::Relaxed))
}

async fn create() -> (axum::http::StatusCode, Json<Value>) {
    (axum::http::StatusCode::CREATED, Json(json!({"id": "t1", "result_url": ""})))
}

async fn read(UrlPath(id): UrlPath<String>) -> Json<Value> {
    Json(json!({"id": id, "status": "done", "result": {"metadata": {"audio_duration": 30.0}, "transcription": {
        "full_transcript": "one", "languages": ["en"], "utterances": [
            {"text": "one", "start": 0.0, "end": 4.0, "confidence": 0.9, "channel": 0, "language": "en", "words": []}]}}}))
}

async fn list() -> Json<Value> {
    Json(json!({"first": "", "current": "", "next": null, "items": []}))
}
