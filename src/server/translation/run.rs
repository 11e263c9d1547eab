//! Runs the program `apertium`: one run for all texts of a direction. A run takes less than a second to start, and needs
//! no memory afterwards, so none is kept for the next transcription.

use super::stream_format;
use crate::clock::Clock;
use crate::domain::time_span::time_span;
use crate::media::sandbox;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// The program, and how long it may be silent.
#[derive(Debug, Clone)]
pub struct ApertiumOptions {
    /// Its path, or its name if it is in `PATH`.
    pub program: PathBuf,
    /// How long a text of two thousand bytes at most may take. The slowest pair of Debian takes a tenth of a second.
    pub patience: Duration,
}

impl Default for ApertiumOptions {
    fn default() -> Self {
        Self { program: PathBuf::from("apertium"), patience: Duration::from_secs(60) }
    }
}

/// Why texts were not translated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApertiumError {
    #[error("the program `{program}` cannot be run: {reason}; install the package `apertium` again")]
    Missing { program: String, reason: String },
    #[error("Apertium ended before `{mode}` was done{words}")]
    Ended { mode: String, words: String },
    #[error("Apertium said nothing for {after} while it translated by `{mode}`, and was ended")]
    Silent { mode: String, after: String },
    #[error("what Apertium wrote by `{mode}` is no translation of what it got")]
    NotAnAnswer { mode: String },
}

/// The most bytes that are read of the translation of a text.
const LARGEST: u64 = 1 << 16;

/// The processor time of each program of a run: an hour of speech takes some seconds.
const CPU_LIMIT: Duration = Duration::from_secs(1_800);

/// Translates texts by a mode of the program. Returns as many, in the same order. When this future is dropped, the program
/// and all that it has started are killed.
///
/// # Errors
/// See [`ApertiumError`].
pub async fn translate(
    options: &ApertiumOptions,
    mode: &str,
    texts: &[String],
    clock: &dyn Clock,
) -> Result<Vec<String>, ApertiumError> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let missing = |error: io::Error| ApertiumError::Missing {
        program: options.program.display().to_string(),
        reason: error.to_string(),
    };
    let mut run = ApertiumRun::start(options, mode).map_err(missing)?;
    let (input, output) = run.pipes.take().ok_or_else(|| missing(io::Error::other("it has no pipes")))?;
    let read = async {
        let mut output = BufReader::new(output);
        let mut translations = Vec::with_capacity(texts.len());
        for (number, text) in texts.iter().enumerate() {
            let answer = tokio::select! {
                answer = read_answer(&mut output) => answer,
                () = clock.sleep(options.patience) => Err(NoAnswer::Silent),
            };
            let answer = answer.and_then(|answer| {
                stream_format::read(number, text, &answer).map_err(|stream_format::NotAnAnswer| NoAnswer::Other)
            });
            translations.push(answer?);
        }
        Ok(translations)
    };
    // If the program takes no more texts, it says nothing more either.
    let write_and_wait = async {
        let _ = write_all(input, texts).await;
        std::future::pending::<Result<Vec<String>, NoAnswer>>().await
    };
    let translated = tokio::select! {
        translated = read => translated,
        translated = write_and_wait => translated,
    };
    let last_line = run.end().await;
    translated.map_err(|why| why.in_mode(mode, options.patience, &last_line))
}

/// Why a text has no translation.
enum NoAnswer {
    Ended,
    Silent,
    Other,
}

impl NoAnswer {
    fn in_mode(self, mode: &str, patience: Duration, last_line: &str) -> ApertiumError {
        let mode = mode.to_owned();
        match self {
            Self::Ended => {
                let words = if last_line.is_empty() { String::new() } else { format!(": {last_line}") };
                ApertiumError::Ended { mode, words }
            }
            Self::Silent => ApertiumError::Silent { mode, after: time_span(patience) },
            Self::Other => ApertiumError::NotAnAnswer { mode },
        }
    }
}

async fn write_all(mut input: ChildStdin, texts: &[String]) -> io::Result<()> {
    for (number, text) in texts.iter().enumerate() {
        input.write_all(stream_format::write(number, text).as_bytes()).await?;
    }
    input.shutdown().await
}

async fn read_answer(output: &mut BufReader<ChildStdout>) -> Result<Vec<u8>, NoAnswer> {
    let mut answer = Vec::new();
    let read = output.take(LARGEST).read_until(stream_format::END, &mut answer).await;
    match (read, answer.pop()) {
        (Ok(_), Some(stream_format::END)) => Ok(answer),
        (Ok(read), _) if read as u64 == LARGEST => Err(NoAnswer::Other),
        _ => Err(NoAnswer::Ended),
    }
}

/// The running program. It is a shell that starts a dozen others: they are one group, which is killed as a whole.
struct ApertiumRun {
    // Dropped first: the number of a group is free for others once its first process is reaped.
    group: ProcessGroup,
    child: Child,
    pipes: Option<(ChildStdin, ChildStdout)>,
    last_line: Option<JoinHandle<String>>,
    /// The program leaves a file here when it is killed.
    _folder: TempDir,
}

impl ApertiumRun {
    fn start(options: &ApertiumOptions, mode: &str) -> io::Result<Self> {
        let folder = TempDir::with_prefix("scribed-apertium-")?;
        let mut command = Command::new(&options.program);
        command.args(["-u", "-z", "-f", "none", mode]);
        // The program only works with UTF-8, whatever the language of this process is.
        command.env("LC_ALL", "C.UTF-8").env("TMPDIR", folder.path()).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = sandbox::spawn(&mut command, CPU_LIMIT)?;
        let group = ProcessGroup(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
        let pipes = child.stdin.take().zip(child.stdout.take());
        let last_line = child.stderr.take().map(|errors| tokio::spawn(last_line(errors)));
        Ok(Self { group, child, pipes, last_line, _folder: folder })
    }

    /// Ends the program, which has done its work or failed. Returns the last line of its errors.
    async fn end(mut self) -> String {
        self.group.kill();
        // It ends now that nobody writes errors any more; one that is not in the group may.
        let reading = self.last_line.take();
        let words = async { if let Some(task) = reading { task.await.unwrap_or_default() } else { String::new() } };
        let words = tokio::time::timeout(Duration::from_secs(1), words).await.unwrap_or_default();
        let _ = self.child.wait().await;
        words
    }
}

/// The number of a group of processes that is to be killed once.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads errors to their end, and returns the last line.
async fn last_line(mut errors: ChildStderr) -> String {
    const TAIL: usize = 1024;
    let mut tail = Vec::new();
    let mut chunk = [0_u8; TAIL];
    while let Ok(read @ 1..) = errors.read(&mut chunk).await {
        tail.extend_from_slice(&chunk[..read]);
        tail.drain(..tail.len().saturating_sub(TAIL));
    }
    let text = String::from_utf8_lossy(&tail);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}
