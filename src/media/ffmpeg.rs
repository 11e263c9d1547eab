//! Runs ffmpeg and ffprobe as child processes that never hang, never ask for input, and read one file only.

use super::container::Extent;
use super::decode::{DecodeError, SAMPLE_RATE};
use super::ffmpeg_log::read_report;
use super::mix::Mix;
use super::sandbox::{self, FfmpegUse};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::SemaphorePermit;
use tokio::task::JoinHandle;

/// The sound that ffmpeg decodes: of one track of an open file.
pub(super) struct FfmpegInput {
    pub file: File,
    /// The number of the track among all tracks, from 0; `None`: the first one with sound.
    pub track: Option<u32>,
    pub mix: Mix,
    /// The length that the file declares, in seconds: the limit of processor time depends on it.
    pub seconds: f64,
}

/// A recording of a file. By default, all of the file is one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Link {
    /// `None`: the whole file.
    pub bytes: Option<Extent>,
    /// Whether the sound of a WAVE goes on to the end, whatever its header declares.
    pub ignores_length: bool,
}

/// What ffmpeg read of a link.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FfmpegReport {
    /// The bytes of the packets of the track; `None` if ffmpeg did not say.
    pub bytes: Option<u64>,
    /// The last error that it read over; empty if there was none.
    pub words: String,
}

/// An ffmpeg process that decodes a file. Dropping it ends the process.
pub(super) struct Ffmpeg {
    child: Child,
    stdout: ChildStdout,
    report: JoinHandle<FfmpegReport>,
    /// The number of channels that it writes.
    channels: usize,
    /// Samples of each channel that are still to be left out.
    skip: u64,
    /// The first bytes of a frame (one sample of every channel) that is not complete yet.
    partial_frame: Vec<u8>,
    _permit: SemaphorePermit<'static>,
}

impl FfmpegInput {
    /// Starts ffmpeg on a link, and leaves out its first `skip` samples.
    ///
    /// # Errors
    /// Returns [`DecodeError::ToolMissing`] and errors of starting a process.
    pub(super) async fn start(&self, link: &Link, skip: u64) -> Result<Ffmpeg, DecodeError> {
        let permit = sandbox::permit(FfmpegUse::Read).await?;
        let file = self.file.try_clone()?;
        let size = file.metadata()?.len();
        let mut command = self.command(file, link);
        let started = sandbox::spawn(&mut command, sandbox::decode_cpu_limit(self.seconds, size));
        let mut child = started.map_err(|error| spawn_error("ffmpeg", error))?;
        let stdout = child.stdout.take().ok_or_else(no_pipe)?;
        let report = tokio::spawn(read_report(child.stderr.take()));
        let channels = self.mix.channels();
        Ok(Ffmpeg { child, stdout, report, channels, skip, partial_frame: Vec::new(), _permit: permit })
    }

    fn command(&self, file: File, link: &Link) -> Command {
        let options: &[&str] = if link.ignores_length { &["-ignore_length", "1"] } else { &[] };
        let mut command = match &link.bytes {
            None => file_command("ffmpeg", file, options),
            Some(bytes) => part_command(file, bytes, options),
        };
        let track = self.track.map_or("0:a:0".to_owned(), |track| format!("0:{track}"));
        command.args(["-map", &track, "-vn", "-sn", "-dn"]);
        if let Some(filter) = self.mix.filter() {
            command.args(["-af", &filter]);
        }
        // What it read is said at the end, for which the level of the messages is in each of them.
        command.args(["-v", "level+verbose", "-nostats", "-ac", &self.mix.channels().to_string()]);
        command.args(["-ar", &SAMPLE_RATE.to_string(), "-f", "s16le", "-"]);
        command
    }
}

impl Ffmpeg {
    /// Returns the next samples of each channel; `None` at the end.
    ///
    /// # Errors
    /// Returns [`DecodeError::TimedOut`] and errors of the pipe.
    pub(super) async fn next(&mut self, inactivity: Duration) -> Result<Option<Vec<Vec<i16>>>, DecodeError> {
        let mut bytes = vec![0_u8; 2 * 2 * SAMPLE_RATE as usize];
        loop {
            let read = timed("ffmpeg", inactivity, self.stdout.read(&mut bytes)).await?;
            if read == 0 {
                return Ok(None);
            }
            self.partial_frame.extend_from_slice(&bytes[..read]);
            let planes = self.take_frames();
            if planes.first().is_some_and(|plane| !plane.is_empty()) {
                return Ok(Some(planes));
            }
        }
    }

    /// Returns the complete frames as samples of each channel. A read from a pipe may end anywhere, even inside a
    /// sample.
    fn take_frames(&mut self) -> Vec<Vec<i16>> {
        let frame = 2 * self.channels;
        let whole = self.partial_frame.len() / frame;
        let left_out = usize::try_from(self.skip).unwrap_or(usize::MAX).min(whole);
        self.skip -= left_out as u64;
        let bytes: Vec<u8> = self.partial_frame.drain(..whole * frame).skip(left_out * frame).collect();
        let (samples, _) = bytes.as_chunks::<2>();
        let plane = |channel| samples.iter().skip(channel).step_by(self.channels);
        (0..self.channels).map(|channel| plane(channel).map(|pair| i16::from_le_bytes(*pair)).collect()).collect()
    }

    /// Returns what ffmpeg read, once it has ended.
    ///
    /// # Errors
    /// Returns [`DecodeError::Damaged`] if it failed.
    pub(super) async fn report(mut self, inactivity: Duration) -> Result<FfmpegReport, DecodeError> {
        let status = timed("ffmpeg", inactivity, self.child.wait()).await?;
        let report = self.report.await.unwrap_or_default();
        if !status.success() {
            let words = sandbox::ended_by_limit(status).map_or(report.words, ToOwned::to_owned);
            return Err(DecodeError::Damaged { words });
        }
        Ok(report)
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

/// As [`file_command`], for a part of the file that is a recording of its own.
fn part_command(file: File, bytes: &Extent, input_options: &[&str]) -> Command {
    let url = format!("subfile,,start,{},end,{},,:file:/proc/self/fd/0", bytes.start, bytes.end);
    let options = [&["-protocol_whitelist", "file,pipe,subfile"], input_options].concat();
    command_of_url("ffmpeg", url.into(), Stdio::from(file), &options)
}

fn input_command(program: &'static str, path: &Path, stdin: Stdio, input_options: &[&str]) -> Command {
    let mut url = OsString::from("file:");
    url.push(path);
    command_of_url(program, url, stdin, input_options)
}

fn command_of_url(program: &'static str, url: OsString, stdin: Stdio, input_options: &[&str]) -> Command {
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
