//! Runs ffmpeg and ffprobe as child processes that never hang, never ask for input, and read one file only.

use super::decode::{DecodeError, SAMPLE_RATE};
use super::sandbox::{self, FfmpegUse};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::SemaphorePermit;
use tokio::task::JoinHandle;

/// An ffmpeg process that decodes a file. Dropping it ends the process.
pub(super) struct Ffmpeg {
    child: Child,
    stdout: ChildStdout,
    error_line: JoinHandle<String>,
    /// The first bytes of a frame (one sample of every channel) that is not complete yet.
    partial_frame: Vec<u8>,
    _permit: SemaphorePermit<'static>,
}

impl Ffmpeg {
    /// Starts ffmpeg. `seconds` is the length that the file declares; the limit of processor time depends on it.
    pub(super) async fn start(path: &Path, channels: u32, seconds: f64) -> Result<Self, DecodeError> {
        let mut command = command("ffmpeg", path);
        command.args(["-map", "0:a:0", "-vn", "-sn", "-dn", "-ac", &channels.to_string()]);
        Self::run(command, seconds).await
    }

    /// Starts ffmpeg on an open file, for one track (from 0 among all tracks; `None`: the first one with sound) mixed
    /// to one channel: of those that `only` names, from 1, or of all if it is empty.
    pub(super) async fn start_mixed(
        file: File,
        track: Option<u32>,
        only: &[u32],
        seconds: f64,
    ) -> Result<Self, DecodeError> {
        let mut command = file_command("ffmpeg", file, &[]);
        let track = track.map_or("0:a:0".to_owned(), |track| format!("0:{track}"));
        command.args(["-map", &track, "-vn", "-sn", "-dn"]);
        if !only.is_empty() {
            let share = 1.0 / only.len() as f64;
            let parts: Vec<String> = only.iter().map(|one| format!("{share}*c{}", one.saturating_sub(1))).collect();
            command.args(["-af", &format!("pan=mono|c0={}", parts.join("+"))]);
        }
        command.args(["-ac", "1"]);
        Self::run(command, seconds).await
    }

    async fn run(mut command: Command, seconds: f64) -> Result<Self, DecodeError> {
        let permit = sandbox::permit(FfmpegUse::Read).await?;
        command.args(["-ar", &SAMPLE_RATE.to_string(), "-f", "s16le", "-"]);
        let started = sandbox::spawn(&mut command, sandbox::decode_cpu_limit(seconds));
        let mut child = started.map_err(|error| spawn_error("ffmpeg", error))?;
        let stdout = child.stdout.take().ok_or_else(no_pipe)?;
        let error_line = tokio::spawn(last_line(child.stderr.take()));
        Ok(Self { child, stdout, error_line, partial_frame: Vec::new(), _permit: permit })
    }

    pub(super) async fn next(
        &mut self,
        channels: usize,
        inactivity: Duration,
    ) -> Result<Option<Vec<Vec<i16>>>, DecodeError> {
        let mut bytes = vec![0_u8; 2 * 2 * SAMPLE_RATE as usize];
        loop {
            let read = timed("ffmpeg", inactivity, self.stdout.read(&mut bytes)).await?;
            if read == 0 {
                return self.end(inactivity).await.map(|()| None);
            }
            self.partial_frame.extend_from_slice(&bytes[..read]);
            let planes = self.take_frames(channels);
            if planes.first().is_some_and(|plane| !plane.is_empty()) {
                return Ok(Some(planes));
            }
        }
    }

    /// Returns the complete frames as samples of each channel. A read from a pipe may end anywhere, even inside a
    /// sample.
    fn take_frames(&mut self, channels: usize) -> Vec<Vec<i16>> {
        let whole = self.partial_frame.len() - self.partial_frame.len() % (2 * channels);
        let bytes: Vec<u8> = self.partial_frame.drain(..whole).collect();
        let (samples, _) = bytes.as_chunks::<2>();
        let plane = |channel| samples.iter().skip(channel).step_by(channels);
        (0..channels).map(|channel| plane(channel).map(|pair| i16::from_le_bytes(*pair)).collect()).collect()
    }

    async fn end(&mut self, inactivity: Duration) -> Result<(), DecodeError> {
        let status = timed("ffmpeg", inactivity, self.child.wait()).await?;
        let words = (&mut self.error_line).await.unwrap_or_default();
        if !status.success() {
            let words = sandbox::ended_by_limit(status).map_or(words, ToOwned::to_owned);
            return Err(DecodeError::Damaged { words });
        }
        if !words.is_empty() {
            tracing::warn!(words, "ffmpeg read over damage in the file");
        }
        Ok(())
    }
}

/// Returns a command that reads the file at `path`. `file:` before the path keeps a leading dash from being an option
/// and a colon from being a protocol; `-nostdin` keeps ffmpeg from reading the parent's input.
pub(super) fn command(program: &'static str, path: &Path) -> Command {
    input_command(program, path, Stdio::null(), &[])
}

/// Returns a command that reads an open file: a file that has replaced it at its path is not read, and the path appears
/// in no process list. `input_options` go before the input.
pub(super) fn file_command(program: &'static str, file: File, input_options: &[&str]) -> Command {
    input_command(program, Path::new("/proc/self/fd/0"), Stdio::from(file), input_options)
}

fn input_command(program: &'static str, path: &Path, stdin: Stdio, input_options: &[&str]) -> Command {
    let mut url = OsString::from("file:");
    url.push(path);
    let mut command = Command::new(program);
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    if program == "ffmpeg" {
        command.arg("-nostdin");
    }
    command.args(["-v", "error"]).args(sandbox::OPTIONS).args(input_options).arg("-i").arg(url);
    command
}

/// Reads ffprobe's whole answer, of at most 1 MiB: a file may declare any number of tracks.
pub(super) async fn answer(child: &mut Child) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut json = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(1 << 20).read_to_end(&mut json).await?;
    }
    Ok((child.wait().await?, json))
}

pub(super) fn spawn_error(program: &'static str, error: io::Error) -> DecodeError {
    match error.kind() {
        io::ErrorKind::NotFound => DecodeError::ToolMissing { program, package: "ffmpeg" },
        _ => DecodeError::Io(error),
    }
}

fn no_pipe() -> DecodeError {
    DecodeError::Io(io::Error::other("the decoder's output is not connected"))
}

pub(super) async fn timed<T>(
    program: &'static str,
    after: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> Result<T, DecodeError> {
    let done = tokio::time::timeout(after, work).await;
    Ok(done.map_err(|_| DecodeError::TimedOut { program, after })??)
}

/// Reads a child's standard error to its end, so that the child never blocks on a full pipe, and returns the last line.
/// Only the last few kilobytes are kept in memory.
pub(super) async fn last_line(stderr: Option<impl AsyncRead + Unpin>) -> String {
    const TAIL_BYTES: usize = 4096;
    let Some(mut stderr) = stderr else { return String::new() };
    let mut tail = Vec::new();
    let mut chunk = [0_u8; TAIL_BYTES];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        tail.extend_from_slice(&chunk[..read]);
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
    }
    let text = String::from_utf8_lossy(&tail);
    if text.contains(" Format not on whitelist ") {
        return "it is a list of other files, or has a form that is not read here".to_owned();
    }
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    without_path(line).to_owned()
}

/// Removes the path from `file:/srv/…/x: Invalid data …`: only the service may know it.
fn without_path(line: &str) -> &str {
    let rest = line.strip_prefix("file:").and_then(|named| named.rsplit_once(": "));
    rest.map_or(line, |(_, words)| words)
}
