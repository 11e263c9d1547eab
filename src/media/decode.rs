//! Sound out of any file ffmpeg reads, as 16 kHz mono samples, without ever holding the file.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

/// Samples a second of everything a [`Decoder`] gives.
pub const SAMPLE_RATE: u32 = 16_000;

/// How long ffmpeg may give nothing before it counts as stuck: generous, because a long video on
/// a cold disk reads gigabytes between two packets of sound.
pub const INACTIVITY: Duration = Duration::from_secs(120);

/// What a file says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Media {
    /// Seconds; 0 where the container does not say.
    pub duration: f64,
    /// Of the first audio track; 0 without one.
    pub channels: u32,
    /// Whether there is an audio track at all.
    pub has_audio: bool,
}

/// Why a file gives no sound.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A program this needs is not installed.
    #[error("the program `{program}` was not found; install the package `{package}`")]
    ToolMissing {
        /// As looked for in PATH.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// Not a recording in any form ffmpeg knows.
    #[error("this is not a recording ffmpeg can read: {words}")]
    NotMedia {
        /// The last line of ffmpeg's complaint.
        words: String,
    },
    /// A video or picture without sound.
    #[error("the file has no audio track")]
    NoAudio,
    /// No bytes, or a header with nothing behind it.
    #[error("the file is empty: it holds no sound at all")]
    Empty,
    /// ffmpeg knew the form and gave up on the content.
    #[error("the file is damaged: {words}")]
    Damaged {
        /// The last line of ffmpeg's complaint.
        words: String,
    },
    /// ffmpeg stopped giving anything; it was ended.
    #[error("`{program}` gave nothing for {} s and was ended", after.as_secs())]
    TimedOut {
        /// Which program hung.
        program: &'static str,
        /// How long it was waited for.
        after: Duration,
    },
    /// The file or the child process could not be reached.
    #[error("the file could not be read: {0}")]
    Io(#[from] io::Error),
}

/// Asks ffprobe what `path` is.
///
/// # Errors
/// [`DecodeError::Empty`] for a file of no bytes, [`DecodeError::NotMedia`] for anything that is
/// no recording, a playlist among them; a file without audio is no error here.
pub async fn probe(path: &Path) -> Result<Media, DecodeError> {
    check_regular(path).await?;
    let mut child = command("ffprobe", path)
        .args(["-show_entries", "format=duration,format_name:stream=codec_type,channels,duration"])
        .args(["-of", "json"])
        .spawn()
        .map_err(|error| spawn_error("ffprobe", error))?;
    let tail = tokio::spawn(last_line(child.stderr.take()));
    let answer = timed("ffprobe", INACTIVITY, read_answer(&mut child)).await?;
    let words = tail.await.unwrap_or_default();
    match answer {
        (status, json) if status.success() => media_of(&json),
        _ => Err(DecodeError::NotMedia { words }),
    }
}

/// A running decoding. Dropping it ends ffmpeg.
pub struct Decoder {
    media: Media,
    child: Child,
    stdout: ChildStdout,
    complaint: JoinHandle<String>,
    inactivity: Duration,
    /// The first byte of a sample whose second is still to come.
    half: Option<u8>,
    any: bool,
}

impl Decoder {
    /// Probes `path` and starts to decode its first audio track, every channel mixed into one.
    ///
    /// `inactivity` is how long ffmpeg may give nothing (usually [`INACTIVITY`]); time the caller
    /// takes between two reads does not count.
    ///
    /// # Errors
    /// Those of [`probe`], and [`DecodeError::NoAudio`].
    pub async fn open(path: &Path, inactivity: Duration) -> Result<Self, DecodeError> {
        let media = probe(path).await?;
        if !media.has_audio {
            return Err(DecodeError::NoAudio);
        }
        let mut child = command("ffmpeg", path)
            .args(["-map", "0:a:0", "-vn", "-sn", "-dn"])
            .args(["-ac", "1", "-ar", &SAMPLE_RATE.to_string(), "-f", "s16le", "-"])
            .spawn()
            .map_err(|error| spawn_error("ffmpeg", error))?;
        let stdout = child.stdout.take().ok_or_else(no_pipe)?;
        let complaint = tokio::spawn(last_line(child.stderr.take()));
        Ok(Self { media, child, stdout, complaint, inactivity, half: None, any: false })
    }

    /// What the file says of itself.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// The next samples, at most two seconds of them; `None` at the end.
    ///
    /// # Errors
    /// [`DecodeError::TimedOut`], [`DecodeError::Damaged`] or [`DecodeError::Empty`] if ffmpeg
    /// hung, gave up, or ended without a sample.
    pub async fn next(&mut self) -> Result<Option<Vec<i16>>, DecodeError> {
        let mut bytes = vec![0_u8; 2 * 2 * SAMPLE_RATE as usize];
        loop {
            let kept = usize::from(self.half.is_some());
            if let Some(half) = self.half {
                bytes[0] = half;
            }
            let read = timed("ffmpeg", self.inactivity, self.stdout.read(&mut bytes[kept..])).await?;
            if read == 0 {
                return self.end().await.map(|()| None);
            }
            let samples = self.take_samples(&bytes[..kept + read]);
            if !samples.is_empty() {
                return Ok(Some(samples));
            }
        }
    }

    /// A pipe may be cut anywhere, even inside a sample.
    fn take_samples(&mut self, bytes: &[u8]) -> Vec<i16> {
        let (pairs, rest) = bytes.as_chunks::<2>();
        self.half = rest.first().copied();
        self.any |= !pairs.is_empty();
        pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect()
    }

    async fn end(&mut self) -> Result<(), DecodeError> {
        let status = timed("ffmpeg", self.inactivity, self.child.wait()).await?;
        let words = (&mut self.complaint).await.unwrap_or_default();
        match (status.success(), self.any) {
            (false, _) => Err(DecodeError::Damaged { words }),
            (true, false) => Err(DecodeError::Empty),
            (true, true) => {
                if !words.is_empty() {
                    tracing::warn!(words, "ffmpeg read over damage in the file");
                }
                Ok(())
            }
        }
    }
}

/// A FIFO would block for ever and a directory says nothing useful: ask before ffmpeg does.
async fn check_regular(path: &Path) -> Result<(), DecodeError> {
    let metadata = tokio::fs::metadata(path).await?;
    if !metadata.is_file() {
        return Err(DecodeError::NotMedia { words: "it is not a regular file".to_owned() });
    }
    if metadata.len() == 0 {
        return Err(DecodeError::Empty);
    }
    Ok(())
}

/// What both programs share. `file:` before the name keeps a leading dash from being an option
/// and a colon from being a protocol; `-nostdin` keeps ffmpeg from eating the parent's input.
fn command(program: &'static str, path: &Path) -> Command {
    let mut url = OsString::from("file:");
    url.push(path);
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    if program == "ffmpeg" {
        command.arg("-nostdin");
    }
    command.args(["-v", "error", "-protocol_whitelist", "file,pipe", "-i"]).arg(url);
    command
}

fn spawn_error(program: &'static str, error: io::Error) -> DecodeError {
    match error.kind() {
        io::ErrorKind::NotFound => DecodeError::ToolMissing { program, package: "ffmpeg" },
        _ => DecodeError::Io(error),
    }
}

fn no_pipe() -> DecodeError {
    DecodeError::Io(io::Error::other("the decoder's output is not connected"))
}

async fn timed<T>(
    program: &'static str,
    after: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> Result<T, DecodeError> {
    let done = tokio::time::timeout(after, work).await;
    Ok(done.map_err(|_| DecodeError::TimedOut { program, after })??)
}

/// ffprobe's whole answer, bounded: a file may claim any number of tracks.
async fn read_answer(child: &mut Child) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut json = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(1 << 20).read_to_end(&mut json).await?;
    }
    Ok((child.wait().await?, json))
}

/// Reads a child's complaints to their end, so that it never blocks on a full pipe, and keeps the
/// last line of the last few kilobytes.
async fn last_line(stderr: Option<impl AsyncRead + Unpin>) -> String {
    const KEPT: usize = 4096;
    let Some(mut stderr) = stderr else { return String::new() };
    let mut tail = Vec::new();
    let mut chunk = [0_u8; KEPT];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        tail.extend_from_slice(&chunk[..read]);
        tail.drain(..tail.len().saturating_sub(KEPT));
    }
    let text = String::from_utf8_lossy(&tail);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    without_path(line).to_owned()
}

/// `file:/srv/…/x: Invalid data …` without its beginning: the path is the service's own, and nobody
/// else's business.
fn without_path(line: &str) -> &str {
    let told = line.strip_prefix("file:").and_then(|named| named.rsplit_once(": "));
    told.map_or(line, |(_, words)| words)
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    streams: Vec<Track>,
    #[serde(default)]
    format: Format,
}

#[derive(Deserialize)]
struct Track {
    #[serde(default)]
    codec_type: String,
    #[serde(default)]
    channels: u32,
    duration: Option<String>,
}

#[derive(Deserialize, Default)]
struct Format {
    #[serde(default)]
    format_name: String,
    duration: Option<String>,
}

/// Forms that are lists of other files: whoever hands one in could have any file of this machine
/// read out to them.
const PLAYLISTS: [&str; 5] = ["hls", "dash", "concat", "sdp", "imf"];

fn media_of(json: &[u8]) -> Result<Media, DecodeError> {
    let answer: Answer = serde_json::from_slice(json)
        .map_err(|error| DecodeError::NotMedia { words: format!("ffprobe answered {error}") })?;
    if answer.format.format_name.split(',').any(|name| PLAYLISTS.contains(&name)) {
        let words = "it is a list of other files, not a recording".to_owned();
        return Err(DecodeError::NotMedia { words });
    }
    let audio = answer.streams.iter().find(|track| track.codec_type == "audio");
    let seconds = |text: &Option<String>| text.as_ref()?.parse::<f64>().ok().filter(|s| s.is_finite());
    Ok(Media {
        duration: seconds(&answer.format.duration).or_else(|| seconds(&audio?.duration)).unwrap_or(0.0).max(0.0),
        channels: audio.map_or(0, |track| track.channels),
        has_audio: audio.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        let error = spawn_error("ffprobe", io::ErrorKind::NotFound.into()).to_string();
        assert!(error.contains("`ffprobe`") && error.contains("package `ffmpeg`"), "{error}");
    }

    #[test]
    fn a_duration_the_container_does_not_say_is_the_tracks_or_0() {
        let media = |json: &str| media_of(json.as_bytes()).unwrap();
        let track = r#"{"streams":[{"codec_type":"audio","channels":2,"duration":"2.5"}]}"#;
        assert_eq!(media(track), Media { duration: 2.5, channels: 2, has_audio: true });
        let silent = r#"{"streams":[{"codec_type":"video"}],"format":{"duration":"N/A"}}"#;
        assert_eq!(media(silent), Media { duration: 0.0, channels: 0, has_audio: false });
    }

    #[tokio::test]
    async fn of_a_long_complaint_the_last_line_is_kept() {
        let complaint = format!("{}the end \n\n", "much too long\n".repeat(10_000));
        assert_eq!(last_line(Some(complaint.as_bytes())).await, "the end");
        assert_eq!(last_line(None::<&[u8]>).await, "");
    }
}
