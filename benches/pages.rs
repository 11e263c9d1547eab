//! Measures how long the pages of a large queue take: the real program with `[web]` over a queue of a million jobs, each
//! view again and again, beside the limit of 100 ms. A view is the time from a request on this machine to the end of its
//! answer.
//!
//! `cargo bench --bench pages`, or with the number of jobs; 0, 1 and 50 are of interest too. `-- --chromium` does in Chromium
//! what a person does with that queue, and says how long each view takes until it is painted; it fails if something in a
//! page is not as it should be. `-- --open 30` leaves the overview open for 30 minutes, and compares the daemon with one that
//! nobody looks at. Both need `deploy/install.sh --pages`.

use scribed::testing::domain::charge::{Charge, State};
use scribed::testing::domain::fault::{Fault, FaultKind};
use scribed::testing::domain::job::{Job, JobKey, Output, Stamp};
use scribed::testing::domain::names::{Hash, JobId, ServiceName, SourceName, Timestamp, TranscriptionId};
use scribed::testing::domain::path::RelPath;
use scribed::testing::domain::stage::{AudioAmount, Stage};
use scribed::testing::domain::token::PurchaseKey;
use scribed::testing::store::queue::StoredRow;
use scribed::testing::store::sled;
use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What a view may take.
const LIMIT: Duration = Duration::from_millis(100);

/// How often each view is asked for.
const TIMES: usize = 40;

const SOURCES: [&str; 4] = ["interviews", "parliament", "radio", "oral-history"];

const VIEWS: [(&str, &str); 14] = [
    ("overview", "/"),
    ("jobs, newest first", "/jobs"),
    ("jobs by name", "/jobs?sort=name"),
    ("jobs by length", "/jobs?sort=length"),
    ("jobs by cost, oldest first", "/jobs?sort=cost&order=asc"),
    ("failed jobs", "/jobs?stage=failed"),
    ("failed jobs of one kind", "/jobs?stage=failed&fault=refused&sort=since"),
    ("a word in the name", "/jobs?text=evening"),
    ("three words in the name, rare", "/jobs?text=shelf-017+box-003+000"),
    ("no job matches", "/jobs?text=xylophone"),
    ("one source, written, since a day", "/jobs?source=radio&stage=written&since=2026-01-01"),
    ("a job whose recording is gone", "/jobs/5"),
    ("a failed job", "/jobs/100"),
    ("sources and services", "/sources"),
];

/// What is measured.
struct Options {
    jobs: u64,
    /// Whether the views are used in Chromium.
    in_chromium: bool,
    /// For how many minutes the overview is left open in Chromium.
    open: Option<u64>,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut read = Self { jobs: 1_000_000, in_chromium: false, open: None };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--bench" => {} // cargo says so
                "--chromium" => read.in_chromium = true,
                "--open" => read.open = Some(arguments.next().ok_or("--open needs a number of minutes")?.parse()?),
                jobs => {
                    let wrong = |_| format!("neither an option nor a number of jobs: {jobs}");
                    read.jobs = jobs.parse().map_err(wrong)?;
                }
            }
        }
        Ok(read)
    }
}

fn main() -> Result<()> {
    let options = Options::read(std::env::args().skip(1))?;
    match options.open {
        Some(minutes) => leave_open(options.jobs, minutes),
        None if options.in_chromium => use_in_chromium(options.jobs),
        None => measure_answers(options.jobs),
    }
}

/// Makes a folder with a configuration and a queue.
fn place_with(jobs: u64) -> Result<TempDir> {
    let place = tempfile::tempdir()?;
    let sources = SOURCES.map(|name| format!("[[source]]\nname = \"{name}\"\nfolder = \"{name}\"\nsettle = \"1h\"\n"));
    for name in SOURCES {
        std::fs::create_dir(place.path().join(name))?;
        // The folder is not empty, so that it is not taken for that of a share that is not mounted.
        std::fs::write(place.path().join(name).join("catalogue.txt"), "")?;
    }
    // The index of transcripts has a benchmark of its own, and is not to be built while this one measures.
    let config = format!(
        "[search]\nenabled = false\n[web]\nlisten = \"127.0.0.1:0\"\n[service]\nurl = \"http://127.0.0.1:9\"\nkey = \"env:HOME\"\n{}",
        sources.concat()
    );
    std::fs::write(place.path().join("jobs.toml"), config)?;
    let begun = Instant::now();
    fill(&place.path().join("state"), jobs)?;
    println!("{jobs} jobs stored in {:.1?}", begun.elapsed());
    Ok(place)
}

/// Measures how long the answers take.
fn measure_answers(jobs: u64) -> Result<()> {
    let place = place_with(jobs)?;
    let begun = Instant::now();
    let served = Served::start(place.path(), "web")?;
    println!("served after {:.1?}, memory {} MB", begun.elapsed(), served.memory()?);
    let begun = Instant::now();
    while served.view("/jobs")?.1.contains("scribed reads the jobs") {
        std::thread::sleep(Duration::from_millis(50));
    }
    println!(
        "the list of jobs is ready {:.1?} after it was first asked for, memory {} MB",
        begun.elapsed(),
        served.memory()?
    );
    println!("{:<36} {:>10} {:>10} {:>10}", "view", "median", "slowest", "bytes");
    let mut is_within = true;
    for (name, path) in VIEWS {
        let mut times = Vec::with_capacity(TIMES);
        let mut bytes = 0;
        for _ in 0..TIMES {
            let (took, answer) = served.view(path)?;
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer:.300}");
            bytes = answer.len();
            times.push(took);
        }
        times.sort_unstable();
        let (median, slowest) = (times[TIMES / 2], times[TIMES - 1]);
        is_within &= median < LIMIT;
        println!("{name:<36} {median:>10.1?} {slowest:>10.1?} {bytes:>10}");
    }
    let before = served.processor()?;
    for _ in 0..TIMES {
        served.view("/")?;
    }
    let each = (served.processor()? - before) / TIMES as f64;
    println!(
        "a page that is left open: {:.1} ms of processor time a minute, {:.3} % of a core",
        each * 1e3,
        each / 0.6
    );
    println!(
        "every median is {} the limit of {LIMIT:?}; memory {} MB",
        if is_within { "below" } else { "NOT below" },
        served.memory()?
    );
    Ok(())
}

/// Does in Chromium what a person does with a daemon's queue.
fn use_in_chromium(jobs: u64) -> Result<()> {
    let place = place_with(jobs)?;
    let served = Served::start(place.path(), "run")?;
    let count = |which: fn(u64) -> bool| (1..=jobs).filter(|n| which(*n)).count();
    let expected = serde_json::json!({
        "jobs": jobs,
        "failed": count(|n| n.is_multiple_of(100)),
        "refused": count(|n| n.is_multiple_of(100) && !n.is_multiple_of(300)),
    });
    script(&["use", &served.url(), &expected.to_string()])
}

/// Leaves the overview of one daemon open in Chromium, beside a daemon with the same queue that nobody looks at.
fn leave_open(jobs: u64, minutes: u64) -> Result<()> {
    let (place, other) = (place_with(jobs)?, place_with(jobs)?);
    let (seen, unseen) = (Served::start(place.path(), "run")?, Served::start(other.path(), "run")?);
    let pids = [seen.child.id().to_string(), unseen.child.id().to_string()];
    script(&["open", &seen.url(), &pids[0], &pids[1], &minutes.to_string()])
}

/// Runs the script that uses Chromium. Pictures of the pages are below target/tmp after it.
fn script(arguments: &[&str]) -> Result<()> {
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("large-queue-pages");
    std::fs::create_dir_all(&pictures)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/large_queue.py");
    let status = Command::new("python3").arg(script).arg(&pictures).args(arguments).status()?;
    println!("pictures of the pages: {}", pictures.display());
    if status.success() { Ok(()) } else { Err("the pages are not as they should be".into()) }
}

/// Stores jobs as an archive has them: most are written, some wait, one in a hundred has failed.
fn fill(state: &Path, jobs: u64) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64;
    let store = sled::open(state)?;
    for n in 1..=jobs {
        store.import_row(&StoredRow::Job(Box::new(job(n, now))))?;
    }
    Ok(())
}

fn job(n: u64, now: i64) -> Job {
    let source = SOURCES[(n % 4) as usize];
    let path = format!("shelf-{:03}/box-{:03}/Recording of the evening {n:07}.wav", n % 997, n % 101);
    let key = JobKey { source: SourceName::new(source), path: RelPath::new(path) };
    let at = Timestamp(now - (n.wrapping_mul(2_654_435_761) % 5_000_000_000) as i64);
    let seen = Stamp { size: 1_000_000 + n, mtime_ns: at.0 * 1_000_000, ctime_ns: at.0 * 1_000_000, inode: n };
    let service = ServiceName::new("default");
    let purchase_key = PurchaseKey {
        service: service.clone(),
        content: Hash::of(&n.to_be_bytes()),
        params: Hash::of(b"p"),
        part: None,
    };
    let millis = 60_000 + n.wrapping_mul(40_503) % 7_200_000;
    // What waits is not due while somebody measures.
    let mut job = Job::found(JobId(n), key, seen, at, Timestamp(now + 30 * 86_400_000));
    match n % 100 {
        0 => {
            let kind = if n.is_multiple_of(300) { FaultKind::Template } else { FaultKind::Refused { status: 422 } };
            let words = format!("the service refused it: reason {}", n % 1_700 / 100);
            let fault = Fault::new(kind, words, at);
            (job.stage, job.due) = (Stage::Failed { from: Box::new(Stage::Settled), fault }, None);
        }
        1..5 => {}
        _ => {
            let transcription = TranscriptionId::new(uuid::Uuid::from_u128(n.into()).to_string());
            job.stage = Stage::Written {
                purchase_key,
                transcription: transcription.clone(),
                audio: AudioAmount { millis, channels: 1, billed: Some(millis) },
            };
            job.due = None;
            job.outputs = vec![Output {
                name: RelPath::new(format!("Recording of the evening {n:07}.en.srt")),
                hash: Hash::of(b"o"),
                at: None,
            }];
            job.charges = vec![Charge {
                at,
                service_date: None,
                run: at,
                purchase_number: 0,
                service,
                template: None,
                state: State::Spent,
                reserved: Some(millis),
                billed: Some(millis),
                transcription: Some(transcription),
                fetched: false,
                rest: 0,
                limits: Vec::new(),
            }];
        }
    }
    job
}

struct Served {
    child: Child,
    address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    /// Starts `scribed web`, or the daemon.
    fn start(place: &Path, name: &str) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scribed"));
        command.args([name, "--json", "-q", "--config"]).arg(place.join("jobs.toml")).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let said: serde_json::Value = serde_json::from_str(&line)?;
        let url = said["web"].as_str().ok_or("no address")?;
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Ok(Self { child, address })
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns how long a view took, and the answer.
    fn view(&self, path: &str) -> Result<(Duration, String)> {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok((begun.elapsed(), String::from_utf8_lossy(&answer).into_owned()))
    }

    /// Returns the user and system time of the program, in seconds.
    fn processor(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().ok_or("no fields")?.split_whitespace().collect();
        Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
    }

    /// Returns the resident memory in MB.
    fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.split_whitespace().nth(1).ok_or("no value")?.parse::<u64>()? / 1000)
    }
}
