//! Decodes the sound of any recording to 16 kHz samples of each channel, without holding the file in memory: in this
//! process where possible (`native`), otherwise with ffmpeg.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::Duration;

use super::ffmpeg::{FfmpegInput, answer, command, file_command, spawn_error, timed};
use super::ffmpeg_log::last_line;
use super::mix::Mix;
use super::native::Native;
use super::sandbox::{self, FfmpegUse};
use super::sound_reader::{First, SoundReader, open_in_time};
use crate::blocking;
use crate::domain::stage::AudioAmount;
use crate::review::UnreadSound;
use serde::Deserialize;
use tokio::process::Child;

/// The sample rate of everything that a [`Decoder`] returns, in Hz.
pub const SAMPLE_RATE: u32 = 16_000;

/// The most channels that a decoded file may have.
pub const MAX_CHANNELS: u32 = 8;

/// The accepted sample rates of recordings, in Hz.
pub const RATES: std::ops::RangeInclusive<u32> = 1_000..=400_000;

/// How long ffmpeg may return nothing before it counts as stuck. The limit is generous, because a long video on a cold
/// disk reads gigabytes between two packets of sound.
pub const INACTIVITY: Duration = Duration::from_secs(120);

/// The length and the tracks that a file declares.
#[derive(Debug, Clone, PartialEq)]
pub struct Media {
    /// The length in seconds; 0 if the container declares none.
    pub duration: f64,
    /// The number of channels of the first audio track; 0 if there is none.
    pub channels: u32,
    /// Whether there is an audio track at all.
    pub has_audio: bool,
}

impl Media {
    /// Returns how much audio the file contains; `None` if it contains none or declares no length.
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

/// Why a file cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A required program is not installed.
    #[error("the program `{program}` was not found; install the package `{package}`")]
    ToolMissing {
        /// The name that was looked up in PATH.
        program: &'static str,
        /// The Debian package that contains the program.
        package: &'static str,
    },
    /// The file is not a recording in a format that ffmpeg knows.
    #[error("this is not a recording ffmpeg can read: {words}")]
    NotMedia {
        /// The last line of ffmpeg's error output.
        words: String,
    },
    /// A video or picture without sound.
    #[error("the file has no audio track")]
    NoAudio,
    /// The file has more channels than are transcribed.
    #[error("the file has {found} channels; at most {MAX_CHANNELS} are transcribed: mix or split them before")]
    TooManyChannels {
        /// The number that the file declares.
        found: u32,
    },
    /// The file has no bytes, or a header with nothing behind it.
    #[error("the file is empty: it holds no sound at all")]
    Empty,
    /// ffmpeg recognised the format and could not read the content.
    #[error("the file is damaged: {words}")]
    Damaged {
        /// The last line of ffmpeg's error output.
        words: String,
    },
    /// ffmpeg returned nothing for too long and was ended.
    #[error("`{program}` gave nothing for {} s and was ended", after.as_secs())]
    TimedOut {
        program: &'static str,
        /// How long scribed waited.
        after: Duration,
    },
    /// The file or the child process could not be reached.
    #[error("the file could not be read: {0}")]
    Io(#[from] io::Error),
}

/// Asks ffprobe for the length and the tracks of `path`.
///
/// # Errors
/// Returns [`DecodeError::Empty`] for a file of no bytes, and [`DecodeError::NotMedia`] for anything that is not a
/// recording, including a playlist. A file without audio is not an error here.
pub async fn probe(path: &Path) -> Result<Media, DecodeError> {
    check_regular(&tokio::fs::metadata(path).await?)?;
    let _permit = sandbox::permit(FfmpegUse::Look).await?;
    match sandbox::spawn(command("ffprobe", path).args(PROBE_ARGS), sandbox::LOOK) {
        Ok(child) => answered(child).await,
        // Without ffprobe, the native decoder may still read the file.
        Err(error) => {
            let path = path.to_owned();
            let native = open_in_time(move || Native::of(File::open(&path).ok()?)).await;
            media_of_native(native).ok_or_else(|| spawn_error("ffprobe", error))
        }
    }
}

/// Probes an open file like [`probe`]: a file that has replaced it at its path is not read.
///
/// # Errors
/// Fails as [`probe`] does.
pub async fn probe_open(file: File) -> Result<Media, DecodeError> {
    check_regular(&file.metadata()?)?;
    let spare = file.try_clone()?;
    let _permit = sandbox::permit(FfmpegUse::Look).await?;
    match sandbox::spawn(file_command("ffprobe", file, &[]).args(PROBE_ARGS), sandbox::LOOK) {
        Ok(child) => answered(child).await,
        Err(error) => {
            let native = open_in_time(move || Native::of(spare)).await;
            media_of_native(native).ok_or_else(|| spawn_error("ffprobe", error))
        }
    }
}

const PROBE_ARGS: [&str; 4] =
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

fn media_of_native(native: Option<Native>) -> Option<Media> {
    let native = native?;
    let channels = u32::try_from(native.channels()).unwrap_or(u32::MAX);
    Some(Media { duration: native.seconds()?, channels, has_audio: true })
}

/// A running decoder. Dropping it ends ffmpeg or the decoding thread.
pub struct Decoder {
    media: Media,
    sound: SoundReader,
    channels: usize,
    any: bool,
}

impl Decoder {
    /// Probes `path` and starts to decode its first audio track, each channel separately.
    ///
    /// `inactivity` is how long the decoder may return nothing (usually [`INACTIVITY`]). The time that the caller takes
    /// between two reads does not count.
    ///
    /// # Errors
    /// Fails as [`probe`] does, and with [`DecodeError::NoAudio`] and [`DecodeError::TooManyChannels`].
    pub async fn open(path: &Path, inactivity: Duration) -> Result<Self, DecodeError> {
        let media = probe(path).await?;
        if !media.has_audio {
            return Err(DecodeError::NoAudio);
        }
        let channels = media.channels.max(1);
        if channels > MAX_CHANNELS {
            return Err(DecodeError::TooManyChannels { found: channels });
        }
        let own = path.to_owned();
        let file = blocking::blocking(move || File::open(own)).await?;
        let input = FfmpegInput { file, track: None, mix: Mix::Separate(channels), seconds: media.duration };
        let sound = SoundReader::open(input, First::Native, inactivity).await?;
        Ok(Self { media, sound, channels: channels as usize, any: false })
    }

    /// Returns what the file declares about itself.
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// Returns the number of channels of the decoded track, at least 1.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Returns the next samples, the same number for every channel, usually at most two seconds; `None` at the end.
    ///
    /// # Errors
    /// Returns [`DecodeError::TimedOut`], [`DecodeError::Damaged`] or [`DecodeError::Empty`] if the decoder hung, gave
    /// up, or ended without a sample.
    pub async fn next(&mut self) -> Result<Option<Vec<Vec<i16>>>, DecodeError> {
        match self.sound.next().await? {
            Some(planes) => {
                self.any = true;
                Ok(Some(planes))
            }
            None if self.any => Ok(None),
            None => Err(DecodeError::Empty),
        }
    }

    /// Returns what was not read, once the sound has ended.
    pub fn unread(&self) -> &UnreadSound {
        self.sound.unread()
    }
}

/// Checks the file before ffmpeg opens it: a FIFO would block for ever, and a directory gives no useful error.
pub(super) fn check_regular(metadata: &Metadata) -> Result<(), DecodeError> {
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

/// Formats that are lists of other files: a person who sends one could otherwise read any file of this machine.
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
        // A wrong rate would turn seconds of sound into days.
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
}
