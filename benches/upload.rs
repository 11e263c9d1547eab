//! Compares upload throughput with curl's: one file to one sink on loopback, which reads and discards it.
//!
//! `cargo bench --bench upload`, or with `-- --size 4GiB`. The sink is a separate process, so that the peak memory
//! shown is the client's. The clients alternate, so that other load on the machine affects all; the best run of each
//! counts. Copies through loopback are the limit here; over a network, the network is.
#![allow(missing_docs)]

use axum::Router;
use axum::body::Body;
use axum::http::HeaderMap;
use axum::routing::post;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use scribed::testing::client::contract::{Client, Identity, UploadFile};
use scribed::testing::client::http::{ClientOptions, HttpClient, ServiceKey, Timeouts};
use scribed::testing::clock::SystemClock;
use scribed::testing::domain::names::ServiceName;
use scribed::testing::pipeline::stages::upload::stream::UploadStream;
use scribed::testing::rooted_path::RootedPath;
use scribed::testing::source::mount::disk::Disk;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 3;
const PIECE: usize = 256 << 10;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--sink") {
        return sink().await;
    }
    let asked = arguments.iter().position(|argument| argument == "--size").and_then(|at| arguments.get(at + 1));
    let size = asked.map_or(Ok(1 << 30), |text| bytes_of(text))?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("talk.wav");
    write_random(&path, size)?;
    let sink = Sink::start()?;
    compare(&path, size, &sink.url).await
}

/// `512MiB`, `4GiB`, or bytes.
fn bytes_of(text: &str) -> Result<u64> {
    let (number, unit) = match text.split_at(text.trim_end_matches(char::is_alphabetic).len()) {
        (number, "GiB") => (number, 1 << 30),
        (number, "MiB") => (number, 1 << 20),
        (number, "") => (number, 1),
        _ => return Err(format!("--size {text}: neither bytes nor MiB nor GiB").into()),
    };
    Ok(number.parse::<u64>()? * unit)
}

async fn compare(path: &Path, size: u64, url: &str) -> Result<()> {
    let client = client(url)?;
    let before = peak_mib()?;
    let (mut plain, mut hashed, mut curl) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        plain = plain.min(upload(&client, path, size, false).await?);
        curl = curl.min(with_curl(path, url)?);
        hashed = hashed.min(upload(&client, path, size, true).await?);
    }
    let speed = |took: Duration| size as f64 / 1e6 / took.as_secs_f64();
    println!("{size} bytes, best of {ROUNDS}");
    println!("scribed, the move only: {:>6.0} MB/s", speed(plain));
    println!("scribed, hashing too:   {:>6.0} MB/s", speed(hashed));
    println!("curl:                   {:>6.0} MB/s", speed(curl));
    println!(
        "scribed / curl: the move only {:.2}, hashing too {:.2}",
        speed(plain) / speed(curl),
        speed(hashed) / speed(curl)
    );
    println!("peak memory of scribed: {before:.1} MiB before, {:.1} MiB after", peak_mib()?);
    Ok(())
}

fn client(url: &str) -> Result<HttpClient> {
    let identity =
        Identity { service: ServiceName::new("sink"), origin: url.to_owned(), key: String::new(), is_own: false };
    let options = ClientOptions {
        identity,
        base: url.parse()?,
        key: ServiceKey::new("none"),
        key_header: "x-service-key".to_owned(),
        authorities: Default::default(),
        requests_per_second: f64::INFINITY,
        clock: Arc::new(SystemClock),
        timeouts: Timeouts::default(),
        plain_http: scribed::testing::wire::address::PlainHttp::Refused,
    };
    Ok(HttpClient::new(options)?)
}

async fn upload(client: &HttpClient, path: &Path, size: u64, hash: bool) -> Result<Duration> {
    let stamp = Disk::Local.stamp(&path.metadata()?);
    let upload_stream = UploadStream::new(RootedPath::whole(path), Disk::Local, stamp, Arc::default());
    let path = path.to_owned();
    let plain = UploadFile { name: "talk.wav".to_owned(), size, open: Arc::new(move || pieces(path.clone()).boxed()) };
    let file = if hash { upload_stream.file() } else { plain };
    let begun = Instant::now();
    let sent = client.upload(file).await;
    let took = begun.elapsed();
    let sent = sent.map_err(|fault| fault.words)?;
    if hash && upload_stream.progress().hash.is_none() {
        return Err("not all of it was hashed".into());
    }
    (sent.size >= Some(size)).then_some(took).ok_or_else(|| "the sink got too little".into())
}

/// Streams the file without a hash: what the transfer itself costs.
fn pieces(path: std::path::PathBuf) -> impl futures_util::Stream<Item = std::io::Result<Bytes>> + Send {
    stream::try_unfold(None, move |file| {
        let path = path.clone();
        async move { tokio::task::spawn_blocking(move || next(file, &path)).await? }
    })
}

fn next(file: Option<File>, path: &Path) -> std::io::Result<Option<(Bytes, Option<File>)>> {
    let mut file = match file {
        Some(file) => file,
        None => File::open(path)?,
    };
    let mut piece = vec![0; PIECE];
    let n = file.read(&mut piece)?;
    piece.truncate(n);
    Ok((n > 0).then(|| (Bytes::from(piece), Some(file))))
}

/// Measures by curl's own clock, which excludes its start.
fn with_curl(path: &Path, url: &str) -> Result<Duration> {
    let form = format!("audio=@{}", path.display());
    let arguments = ["--silent", "--show-error", "--fail", "--output", "/dev/null", "--write-out", "%{time_total}"];
    let mut curl = Command::new("curl");
    let output = curl.args(arguments).args(["-H", "Expect:", "-F", &form]).arg(format!("{url}/v2/upload")).output()?;
    if !output.status.success() {
        return Err(format!("curl: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(Duration::from_secs_f64(String::from_utf8(output.stdout)?.trim().parse()?))
}

/// Writes random bytes, which no layer can compress or share.
fn write_random(path: &Path, size: u64) -> Result<()> {
    let mut random = blake3::Hasher::new_derive_key("bench upload").finalize_xof();
    let mut file = File::create(path)?;
    let mut piece = vec![0; 1 << 20];
    let mut left = size;
    while left > 0 {
        let n = left.min(piece.len() as u64);
        random.fill(&mut piece[..n as usize]);
        file.write_all(&piece[..n as usize])?;
        left -= n;
    }
    Ok(file.sync_all()?)
}

/// Returns the peak memory of this process in MiB.
fn peak_mib() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

/// The sink in its own process.
struct Sink {
    child: Child,
    url: String,
}

impl Sink {
    fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?).arg("--sink").stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut url)?;
        Ok(Self { child, url: url.trim().to_owned() })
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Killing fails if the process has ended; waiting is needed in both cases.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn sink() -> Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, Router::new().route("/v2/upload", post(swallow))).await?;
    Ok(())
}

async fn swallow(headers: HeaderMap, body: Body) -> String {
    let size = body.into_data_stream().try_fold(0, |sum, piece| async move { Ok(sum + piece.len()) }).await;
    let host = headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
    let size = size.unwrap_or_default();
    format!(r#"{{"audio_url":"http://{host}/file/1","audio_metadata":{{"size":{size}}}}}"#)
}
