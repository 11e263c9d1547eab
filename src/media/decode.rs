//! Sound out of any recording, as 16 kHz samples of each channel, without ever holding the file: decoded in
//! this process where it can be (`native`), else by ffmpeg.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::Duration;

use super::ffmpeg::{Ffmpeg, answer, command, file_command, last_line, spawn_error, timed};
use super::native::Native;
use super::sandbox::{self, FfmpegUse};
use crate::blocking;
use crate::domain::stage::AudioAmount;
use serde::Deserialize;
use tokio::process::Child;
use tokio::sync::mpsc;

/// Samples a second of everything a [`Decoder`] gives.
pub const SAMPLE_RATE: u32 = 16_000;

/// Most channels of a file that is decoded.
pub const MAX_CHANNELS: u32 = 8;

/// Sample rates that anybody records at.
pub const RATES: std::ops::RangeInclusive<u32> = 1_000..=400_000;

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

impl Media {
    /// How much audio it holds; `None` where it does not say, or holds none.
    pub fn audio(&self) -> Option<AudioAmount> {
        let seconds = Some(self.duration).filter(|seconds| self.has_audio && seconds.is_finite() && *seconds > 0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating is what is meant")]
        seconds.map(|seconds| AudioAmount {
            millis: (seconds * 1e3).ceil() as u64,
            channels: self.channels.max(1),
            billed: None,
        })
    }
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
    /// More channels than anybody speaks into.
    #[error("the file has {found} channels; at most {MAX_CHANNELS} are transcribed: mix or split them before")]
    TooManyChannels {
        /// As the file says.
        found: u32,
    },
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
    check_regular(&tokio::fs::metadata(path).await?)?;
    let _permit = sandbox::permit(FfmpegUse::Look).await?;
    match sandbox::spawn(command("ffprobe", path).args(ASKED), sandbox::LOOK) {
        Ok(child) => answered(child).await,
        // What can be read without it needs it for nothing.
        Err(error) => of_native(native(path).await).ok_or_else(|| spawn_error("ffprobe", error)),
    }
}

/// As [`probe`], of a file that is open: what stands at its path by now is not looked at.
///
/// # Errors
/// As [`probe`].
pub async fn probe_open(file: File) -> Result<Media, DecodeError> {
    check_regular(&file.metadata()?)?;
    let spare = file.try_clone()?;
    let _permit = sandbox::permit(FfmpegUse::Look).await?;
    match sandbox::spawn(file_command("ffprobe", file, &[]).args(ASKED), sandbox::LOOK) {
        Ok(child) => answered(child).await,
        Err(error) => {
            let native = within(move || Native::of(spare)).await;
            of_native(native).ok_or_else(|| spawn_error("ffprobe", error))
        }
    }
}

const ASKED: [&str; 4] =
    ["-show_entries", "format=duration,format_name:stream=codec_type,channels,duration,sample_rate", "-of", "json"];

async fn answered(mut child: Child) -> Result<Media, DecodeError> {
    let tail = tokio::spawn(last_line(child.stderr.take()));
    let answered = timed("ffprobe", INACTIVITY, answer(&mut child)).await?;
    let words = tail.await.unwrap_or_default();
    match answered {
        (status, json) if status.success() => media_of(&json),
        (status, _) => {
            let words = sandbox::ended_by_limit(status).map_or(words, ToOwned::to_owned);
            Err(DecodeError::NotMedia { words })
        }
    }
}

fn of_native(native: Option<Native>) -> Option<Media> {
    let native = native?;
    let channels = u32::try_from(native.channels()).unwrap_or(u32::MAX);
    Some(Media { duration: native.seconds()?, channels, has_audio: true })
}

/// A running decoding. Dropping it ends ffmpeg, or the thread that decodes.
pub struct Decoder {
    media: Media,
    sound: Sound,
    inactivity: Duration,
    channels: usize,
    any: bool,
}

/// Where the samples come from.
enum Sound {
    Ffmpeg(Box<Ffmpeg>),
    Native(mpsc::Receiver<Planes>),
}

/// The samples of every channel, as many of each, `None` at the end; or the decoder's words.
type Planes = Result<Option<Vec<Vec<i16>>>, String>;

impl Decoder {
    /// Probes `path` and starts to decode its first audio track, every channel for itself.
    ///
    /// `inactivity` is how long the decoder may give nothing (usually [`INACTIVITY`]); time the caller
    /// takes between two reads does not count.
    ///
    /// # Errors
    /// Those of [`probe`], [`DecodeError::NoAudio`] and [`DecodeError::TooManyChannels`].
    pub async fn open(path: &Path, inactivity: Duration) -> Result<Self, DecodeError> {
        let media = probe(path).await?;
        if !media.has_audio {
            return Err(DecodeError::NoAudio);
        }
        let channels = media.channels.max(1);
        if channels > MAX_CHANNELS {
            return Err(DecodeError::TooManyChannels { found: channels });
        }
        let (sound, channels) = match native(path).await {
            // Who counts them otherwise decodes them otherwise.
            Some(native) if native.channels() == channels as usize => (Sound::Native(pump(native)), channels),
            _ => (Sound::Ffmpeg(Box::new(Ffmpeg::start(path, channels, media.duration).await?)), channels),
        };
        Ok(Self { media, sound, inactivity, channels: channels as usize, any: false })
    }

    /// What the file says of itself.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// Of the track that is decoded; from 1.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The next samples of every channel, as many of each, at most two seconds; `None` at the end.
    ///
    /// # Errors
    /// [`DecodeError::TimedOut`], [`DecodeError::Damaged`] or [`DecodeError::Empty`] if the decoder
    /// hung, gave up, or ended without a sample.
    pub async fn next(&mut self) -> Result<Option<Vec<Vec<i16>>>, DecodeError> {
        let planes = match &mut self.sound {
            Sound::Ffmpeg(ffmpeg) => ffmpeg.next(self.channels, self.inactivity).await?,
            Sound::Native(pieces) => {
                let piece = timed(HERE, self.inactivity, async { Ok(pieces.recv().await) }).await?;
                // The thread says when it has come to the end: without that it broke off.
                let piece =
                    piece.unwrap_or_else(|| Err("the decoder broke off; this is a fault in scribed".to_owned()));
                piece.map_err(|words| DecodeError::Damaged { words })?
            }
        };
        match planes {
            Some(planes) => {
                self.any = true;
                Ok(Some(planes))
            }
            None if self.any => Ok(None),
            None => Err(DecodeError::Empty),
        }
    }
}

/// What decodes where no program does.
const HERE: &str = "the decoder";

/// A file at which this takes too long is left to ffmpeg, which can be ended.
async fn native(path: &Path) -> Option<Native> {
    let path = path.to_owned();
    within(move || Native::of(File::open(&path).ok()?)).await
}

async fn within(open: impl FnOnce() -> Option<Native> + Send + 'static) -> Option<Native> {
    tokio::time::timeout(OPENING, blocking::spawn(open)).await.ok()?.ok().flatten()
}

/// How long it may take to find out what is in a file.
const OPENING: Duration = Duration::from_secs(60);

/// Decodes on a thread of its own, a little ahead of who listens.
fn pump(mut native: Native) -> mpsc::Receiver<Planes> {
    let (sender, receiver) = mpsc::channel(4);
    blocking::spawn(move || {
        let mut held: Vec<Vec<i16>> = vec![Vec::new(); native.channels()];
        // Nobody listens any more: also where a file gives packets without any sound.
        while !sender.is_closed() {
            let (planes, ended) = match native.next() {
                Ok(Some(planes)) => (planes, false),
                Ok(None) => (Vec::new(), true),
                Err(words) => {
                    let _ = sender.blocking_send(Err(words));
                    return;
                }
            };
            held.iter_mut().zip(planes).for_each(|(held, new)| held.extend(new));
            // Packets are small; a second of sound at a time is cheaper to hand over.
            let long = held.first().map_or(0, Vec::len);
            if long >= SAMPLE_RATE as usize || (ended && long > 0) {
                let whole = held.iter_mut().map(std::mem::take).collect();
                if sender.blocking_send(Ok(Some(whole))).is_err() {
                    return;
                }
            }
            if ended {
                let _ = sender.blocking_send(Ok(None));
                return;
            }
        }
    });
    receiver
}

/// A FIFO would block for ever and a directory says nothing useful: ask before ffmpeg does.
fn check_regular(metadata: &Metadata) -> Result<(), DecodeError> {
    if !metadata.is_file() {
        return Err(DecodeError::NotMedia { words: "it is not a regular file".to_owned() });
    }
    if metadata.len() == 0 {
        return Err(DecodeError::Empty);
    }
    Ok(())
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
    sample_rate: Option<String>,
}

#[derive(Deserialize, Default)]
struct Format {
    #[serde(default)]
    format_name: String,
    duration: Option<String>,
}

/// Forms that are lists of other files: whoever hands one in could have any file of this machine
/// read out to them.
pub(super) const PLAYLISTS: [&str; 5] = ["hls", "dash", "concat", "sdp", "imf"];

fn media_of(json: &[u8]) -> Result<Media, DecodeError> {
    let answer: Answer = serde_json::from_slice(json)
        .map_err(|error| DecodeError::NotMedia { words: format!("ffprobe answered {error}") })?;
    if answer.format.format_name.split(',').any(|name| PLAYLISTS.contains(&name)) {
        let words = "it is a list of other files, not a recording".to_owned();
        return Err(DecodeError::NotMedia { words });
    }
    let audio = answer.streams.iter().find(|track| track.codec_type == "audio");
    let rate = audio.and_then(|track| track.sample_rate.as_deref()?.parse::<u32>().ok());
    if let Some(rate) = rate.filter(|rate| !RATES.contains(rate)) {
        // A header that lies so would make days of sound out of seconds.
        return Err(DecodeError::NotMedia { words: format!("its sample rate of {rate} Hz cannot be") });
    }
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
