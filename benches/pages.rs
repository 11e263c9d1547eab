//! Measures how long the pages of a large queue take: the real program with `[web]` over a queue of a million jobs, each
//! view again and again, beside the limit of 100 ms. A view is the time from a request on this machine to the end of its
//! answer.
//!
//! `cargo bench --bench pages`, or with the number of jobs; 0, 1 and 50 are of interest too.

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

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What a view may take.
const LIMIT: Duration = Duration::from_millis(100);

/// How often each view is asked for.
const TIMES: usize = 40;

const SOURCES: [&str; 4] = ["interviews", "parliament", "radio", "oral-history"];

const VIEWS: [(&str, &str); 12] = [
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
    ("sources and services", "/sources"),
];

fn main() -> Result<()> {
    let jobs: u64 = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let place = tempfile::tempdir()?;
    let sources = SOURCES.map(|name| format!("[[source]]\nname = \"{name}\"\nfolder = \"{name}\"\nsettle = \"1h\"\n"));
    for name in SOURCES {
        std::fs::create_dir(place.path().join(name))?;
    }
    let config = format!(
        "[web]\nlisten = \"127.0.0.1:0\"\n[service]\nurl = \"http://127.0.0.1:9\"\nkey = \"env:HOME\"\n{}",
        sources.concat()
    );
    std::fs::write(place.path().join("jobs.toml"), config)?;
    let begun = Instant::now();
    fill(&place.path().join("state"), jobs)?;
    println!("{jobs} jobs stored in {:.1?}", begun.elapsed());
    let begun = Instant::now();
    let served = Served::start(place.path())?;
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
    let mut job = Job::found(JobId(n), key, seen, at, at);
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
    fn start(place: &Path) -> Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scribed"));
        command.args(["web", "--json", "-q", "--config"]).arg(place.join("jobs.toml")).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let said: serde_json::Value = serde_json::from_str(&line)?;
        let address = said["address"].as_str().ok_or("no address")?.to_owned();
        Ok(Self { child, address })
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
