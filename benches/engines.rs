//! Compares recognisers: word errors, real-time factor, processor time and memory. `cargo bench --bench engines` measures
//! the built-in one on the read speech of `pocketsphinx-testdata`.
//!
//! `cargo bench --bench engines -- [ENGINE…] [FOLDER…]` measures other engines and other speech:
//! * ENGINE: `openai=URL[,MODEL]` for a server with OpenAI's interface, `whisper.cpp=URL` for its server, or
//!   `whisper=FILE[,LIBRARY]` for a model file in the process. A key is read from the environment variable `BENCH_KEY`.
//! * FOLDER: recordings, with the spoken text of each in NAME.txt beside it.
//!
//! Each engine runs in a process of its own, whose processor time and memory are shown; what a server uses elsewhere is
//! not known here. Needs `ffmpeg libpocketsphinx3 pocketsphinx-en-us pocketsphinx-testdata`.
#![allow(missing_docs)]

#[path = "../tests/it/support/librivox.rs"]
mod librivox;

use anyhow::{Context, Result, bail, ensure};
use librivox::{readings, word_errors};
use rustix::time::{ClockId, clock_gettime};
use scribed::testing::clock::SystemClock;
use scribed::testing::media::decode::probe;
use scribed::testing::server::http_engine::{EngineAccess, EngineKey};
use scribed::testing::server::recognition::openai::engine::{EngineLimits, EngineOptions, OpenAiRecogniser};
use scribed::testing::server::recognition::openai::request::EngineProtocol;
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use scribed::testing::server::recognition::recogniser::Recogniser;
use scribed::testing::server::recognition::transcribe::{TranscribeOptions, transcribe};
use scribed::testing::server::recognition::whisper::{ModelLocation, WhisperOptions, WhisperRecogniser};
use scribed::testing::wire::address::PlainHttp;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BUILT_IN: &str = "pocketsphinx";

/// Names the engine that a process measures.
const CHILD: &str = "BENCH_ENGINE";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let (engines, folders): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| argument.contains('='));
    if let Ok(engine) = std::env::var(CHILD) {
        let folders: Vec<PathBuf> = folders.into_iter().map(PathBuf::from).collect();
        return tokio::runtime::Runtime::new()?.block_on(measure(&engine, &folders));
    }
    println!("| engine | recordings | seconds | words wrong | real-time factor | processor time | memory |");
    println!("|---|---|---|---|---|---|---|");
    let built_in = BUILT_IN.to_owned();
    for engine in std::iter::once(&built_in).chain(engines) {
        let mut child = Command::new(std::env::current_exe()?);
        let measured = child.args(&folders).env(CHILD, engine).status()?;
        ensure!(measured.success(), "{engine} was not measured");
    }
    println!(
        "\nreal-time factor: the time of all recordings, one after the other, in parts of their length. Processor time and \
         memory: of the measuring process, without a server elsewhere."
    );
    Ok(())
}

/// Measures an engine on all recordings, and prints its row.
async fn measure(engine: &str, folders: &[PathBuf]) -> Result<()> {
    let speech = speech(folders)?;
    let recogniser = open(engine)?;
    // The first recording is not counted: it starts the decoder.
    transcribe(&speech[0].0, Arc::clone(&recogniser), TranscribeOptions::default()).await?;
    let (begun, processor) = (Instant::now(), processor_time());
    let (mut wrong, mut said, mut seconds) = (0, 0, 0.0);
    for (path, text) in &speech {
        let heard = transcribe(path, Arc::clone(&recogniser), TranscribeOptions::default()).await;
        let heard = heard.with_context(|| path.display().to_string())?.transcript.text();
        let (errors, words) = word_errors(&plain(text), &plain(&heard));
        (wrong, said) = (wrong + errors, said + words);
        seconds += probe(path).await?.duration;
    }
    let took = begun.elapsed().as_secs_f64();
    let processor = (processor_time() - processor).as_secs_f64();
    println!(
        "| {engine} | {} | {seconds:.0} | {wrong} of {said} ({:.1} %) | {:.2} | {:.0} % | {} |",
        speech.len(),
        100.0 * wrong as f64 / said.max(1) as f64,
        took / seconds,
        100.0 * processor / seconds,
        peak_memory()
    );
    Ok(())
}

fn open(engine: &str) -> Result<Arc<dyn Recogniser>> {
    let Some((kind, address)) = engine.split_once('=') else {
        return Ok(Arc::new(PocketSphinx::open(Settings::default())?));
    };
    let (url, model) = address.split_once(',').map_or((address, None), |(url, model)| (url, Some(model.to_owned())));
    let protocol = match kind {
        "openai" => EngineProtocol::OpenAi,
        "whisper.cpp" => EngineProtocol::WhisperCpp,
        "whisper" => return open_model(url.into(), model.map(PathBuf::from)),
        other => {
            bail!("{other} is no kind of engine: write openai=URL[,MODEL], whisper.cpp=URL or whisper=FILE[,LIBRARY]")
        }
    };
    let options = EngineOptions {
        name: engine.to_owned(),
        protocol,
        access: EngineAccess {
            url: url.parse().with_context(|| format!("{url} is no address"))?,
            key: std::env::var("BENCH_KEY").ok().map(EngineKey::new),
            plain_http: PlainHttp::Direct,
            authorities: Default::default(),
        },
        model,
        languages: Vec::new(),
        concurrency: 1,
        chunk: Duration::from_secs(30),
        limits: EngineLimits::default(),
    };
    Ok(Arc::new(OpenAiRecogniser::open(options, Arc::new(SystemClock))?))
}

fn open_model(model: PathBuf, library: Option<PathBuf>) -> Result<Arc<dyn Recogniser>> {
    let options = WhisperOptions {
        name: format!("whisper={}", model.file_name().unwrap_or_default().display()),
        model: ModelLocation::Path(model),
        library,
        languages: Vec::new(),
        concurrency: 1,
        threads: None,
        chunk: Duration::from_secs(300),
    };
    Ok(Arc::new(WhisperRecogniser::open(options)?))
}

/// Returns the recordings with what is said in them.
fn speech(folders: &[PathBuf]) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    if folders.is_empty() {
        found.extend(readings().into_iter().map(|reading| (reading.path, reading.text)));
    }
    for folder in folders {
        let files = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        for path in files.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()? {
            let text = std::fs::read_to_string(path.with_extension("txt"));
            if let Some(text) = text.ok().filter(|_| is_recording(&path)) {
                found.push((path, text));
            }
        }
    }
    found.sort();
    ensure!(!found.is_empty(), "no recording has its text in NAME.txt beside it");
    Ok(found)
}

fn is_recording(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    ["wav", "mp3", "flac", "ogg", "opus", "m4a", "mp4"].contains(&ending.as_str())
}

/// Returns the words without case and punctuation: engines differ in both, and references have neither.
fn plain(text: &str) -> String {
    let is_of_word = |letter: &char| letter.is_alphanumeric() || letter.is_whitespace() || *letter == '\'';
    text.to_lowercase().chars().filter(is_of_word).collect()
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Returns the most memory that this process has used.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    peak.map_or("unknown".to_owned(), |kib| format!("{} MiB", kib / 1024))
}
