//! Extracts the sound track of a recording with ffmpeg: unchanged if the service accepts its codec, otherwise encoded
//! without loss. A lossy encoder is never used: it could make equal channels differ, which would be paid twice, or make
//! different ones equal.

use super::decode::{DecodeError, INACTIVITY, PLAYLISTS};
use super::ffmpeg::{answer, file_command, spawn_error, timed};
use super::ffmpeg_log::last_line;
use super::sandbox::{self, FfmpegUse};
use super::sound_reader::read_layout;
use crate::domain::language_codes::LanguageCode;
use crate::domain::sent_audio::Codec;
use crate::domain::split::{CutWindow, PartRange};
use crate::domain::track_selection::{ChannelSelection, TrackChoice, TrackSelection};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Child;

/// The result of looking for a sound track to send.
#[derive(Debug, Clone, PartialEq)]
pub enum SoundTracks {
    /// A sound track to send alone: the selected one, or one that is smaller than the file.
    Sound(Sound),
    /// Sending anything other than the file gains nothing or is impossible; with the reason.
    Nothing(&'static str),
    /// The container lists all its tracks, and none is sound.
    NoSound,
    /// The file has sound, but not the selected track or channel; the text lists what it has.
    Lacks(String),
}

/// A sound track in a file: the selected one, or the one that players choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Sound {
    /// The index among all tracks of the file, from 0.
    pub track: u32,
    /// The number of channels.
    pub channels: u32,
    /// The channels to send, from 1, in this order; empty: all of them unchanged.
    pub channel_numbers: Vec<u32>,
    /// The seconds from the file's first picture or sound to the track's first sound; never negative.
    pub start: f64,
    /// The seconds from its first to its last sound, if the file declares that.
    pub seconds: Option<f64>,
    /// The seconds of the whole file, if it declares them.
    pub container_seconds: Option<f64>,
    /// Whether `container_seconds` is a guess from the first bytes, which may be a quarter of the real length.
    is_guess: bool,
    /// ffmpeg's name of the codec.
    codec: String,
    /// The sample rate in Hz.
    rate: u32,
    /// The bits a second, if the file declares them.
    bit_rate: Option<u64>,
    /// Whether samples have more than 16 significant bits.
    is_deep: bool,
    /// Why the track is not smaller than the file, if that is so.
    pub gains_nothing: Option<&'static str>,
}

/// One way to write an extracted track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractionMethod {
    pub codec: Codec,
    /// Whether the bytes are copied from the file; otherwise the sound is encoded.
    pub copied: bool,
}

/// Why a sound track was not extracted.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The extracted track has more bytes than the limit.
    #[error("the audio track is larger than {0} bytes")]
    Larger(u64),
    #[error("ffmpeg could not extract the audio track: {words}")]
    Failed {
        /// The last line of ffmpeg's error output.
        words: String,
    },
    /// The spool's disk is full.
    #[error("no space left on the disk")]
    DiskFull,
}

/// Returns the reason if the beginning of a file shows that extracting its sound gains nothing; such a file is not
/// probed.
pub fn rule_out_by_header(head: &[u8]) -> Option<&'static str> {
    let plainly = match head {
        [b'f', b'L', b'a', b'C', ..] | [b'I', b'D', b'3', ..] | [b'#', b'!', b'A', b'M', b'R', ..] => true,
        [0x0B, 0x77, ..] | [0xFF, 0xE0..=0xFF, ..] => true,
        [_, _, _, _, b'f', b't', b'y', b'p', b'M', b'4', b'A' | b'B', b' ', ..] => true,
        [b'O', b'g', b'g', b'S', ..] => {
            head.get(28..).is_some_and(|codec| codec.starts_with(b"OpusHead") || codec.starts_with(b"\x01vorbis"))
        }
        _ => false,
    };
    plainly.then_some(SOUND_ONLY)
}

const SOUND_ONLY: &str = "the file contains only compressed audio";

const JOINED: &str = "the file consists of several recordings";

/// When a sound track is sent in place of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtractionNeed {
    /// If that is smaller, or a track is selected.
    IfSmaller,
    /// In any case: the file is too long or too large to be sent as it is.
    Always,
}

/// Asks ffprobe for the tracks of `file` and returns what to send. With `pick`, the selected track is sent even if that
/// gains nothing.
///
/// # Errors
/// Fails as [`super::decode::probe`] does.
pub async fn probe_tracks(
    file: File,
    pick: Option<&TrackSelection>,
    need: ExtractionNeed,
) -> Result<SoundTracks, DecodeError> {
    // ffmpeg would take the sound of the first recording alone.
    if pick.is_none() && need == ExtractionNeed::IfSmaller && read_layout(&file).await?.links.len() > 1 {
        return Ok(SoundTracks::Nothing(JOINED));
    }
    let second_reader = reopened(&file)?;
    let json = ask(file, &["-show_entries", STREAMS]).await?;
    let answer: Answer = serde_json::from_slice(&json).map_err(unreadable_answer)?;
    let first = match answer.picked(pick) {
        Ok(Some((track, _))) if answer.has_picture() => first_packet(second_reader, track.index).await?,
        _ => None,
    };
    Ok(sound_tracks(&answer, pick, first, need))
}

/// Returns the time of a track's first packet, in seconds. If a track begins later than ffprobe looks, its stream entry
/// wrongly says that it begins with the file.
async fn first_packet(file: File, track: u32) -> Result<Option<f64>, DecodeError> {
    let track = track.to_string();
    let first = ["-select_streams", &track, "-show_entries", "packet=pts_time", "-read_intervals", "%+#1"];
    let answer: Packets = serde_json::from_slice(&ask(file, &first).await?).map_err(unreadable_answer)?;
    Ok(answer.packets.first().and_then(|packet| seconds(packet.pts_time.as_ref())))
}

const STREAMS: &str = "format=format_name,start_time,duration:stream=index,codec_type,codec_name,channels,sample_rate,\
                       sample_fmt,start_time,duration,bit_rate:stream_disposition=default,attached_pic:\
                       stream_tags=DURATION,language";

async fn ask(file: File, what: &[&str]) -> Result<Vec<u8>, DecodeError> {
    let _permit = sandbox::permit(FfmpegUse::Look).await?;
    let mut command = file_command("ffprobe", file, &[]);
    let spawned = sandbox::spawn(command.args(what).args(["-of", "json"]), sandbox::LOOK);
    let mut child = spawned.map_err(|error| spawn_error("ffprobe", error))?;
    let tail = tokio::spawn(last_line(child.stderr.take()));
    let (status, json) = timed("ffprobe", INACTIVITY, answer(&mut child)).await?;
    let words = tail.await.unwrap_or_default();
    if status.success() { Ok(json) } else { Err(DecodeError::NotMedia { words }) }
}

fn unreadable_answer(error: serde_json::Error) -> DecodeError {
    DecodeError::NotMedia { words: format!("cannot read the answer of ffprobe: {error}") }
}

/// Containers that list every track at their beginning or in their index.
const LISTS_ALL_TRACKS: [&str; 4] = ["mp4", "matroska", "avi", "asf"];

fn sound_tracks(
    answer: &Answer,
    pick: Option<&TrackSelection>,
    first: Option<f64>,
    need: ExtractionNeed,
) -> SoundTracks {
    if answer.is_format(&PLAYLISTS) {
        return SoundTracks::Nothing("the file is a playlist");
    }
    let has_picture = answer.has_picture();
    let (track, only) = match answer.picked(pick) {
        Ok(Some(picked)) => picked,
        Ok(None) if has_picture && answer.is_format(&LISTS_ALL_TRACKS) => return SoundTracks::NoSound,
        Ok(None) => return SoundTracks::Nothing("ffprobe finds no audio track in the file"),
        Err(words) => return SoundTracks::Lacks(words),
    };
    let gains_nothing = (!has_picture && !is_uncompressed(&track.codec_name)).then_some(SOUND_ONLY);
    if pick.is_none() && gains_nothing.is_some() && need == ExtractionNeed::IfSmaller {
        return SoundTracks::Nothing(SOUND_ONLY);
    }
    match sound(track, answer, first) {
        Some(sound) => SoundTracks::Sound(Sound { channel_numbers: only, gains_nothing, ..sound }),
        None => SoundTracks::Nothing("ffprobe cannot determine when the audio track starts"),
    }
}

impl Answer {
    fn is_format(&self, names: &[&str]) -> bool {
        self.format.format_name.split(',').any(|name| names.contains(&name))
    }

    fn has_picture(&self) -> bool {
        self.streams.iter().any(|track| track.codec_type == "video" && track.disposition.attached_pic == 0)
    }

    /// Returns the selected track and the channels to send, empty for all of them unchanged; `None` if there is no
    /// sound. If the selection does not exist, the error lists the tracks.
    fn picked(&self, pick: Option<&TrackSelection>) -> Result<Option<(&Track, Vec<u32>)>, String> {
        let sounds: Vec<&Track> = self.streams.iter().filter(|track| track.codec_type == "audio").collect();
        if sounds.is_empty() {
            return Ok(None);
        }
        let by_language = |language: &LanguageCode| {
            let is_meant =
                |track: &&&Track| track.tags.language.as_deref().is_some_and(|tag| language.matches_tag(tag));
            sounds.iter().find(is_meant)
        };
        let track = match pick.and_then(TrackSelection::track) {
            None => sounds.iter().find(|track| track.disposition.default == 1).or(sounds.first()),
            Some(TrackChoice::Number(number)) => sounds.get(number.get() as usize - 1),
            Some(TrackChoice::Language(language)) => by_language(language),
        };
        let track = *track.ok_or_else(|| describe_tracks(&sounds))?;
        let channels = pick.and_then(TrackSelection::channels).map(ChannelSelection::numbers).unwrap_or_default();
        if channels.iter().any(|channel| *channel > track.channels) {
            return Err(describe_tracks(&sounds));
        }
        let is_all = channels.iter().copied().eq(1..=track.channels);
        Ok(Some((track, if is_all { Vec::new() } else { channels.to_vec() })))
    }
}

/// Describes the tracks: `the audio tracks are 1 (eng, 2 channels), 2 (6 channels)`.
fn describe_tracks(sounds: &[&Track]) -> String {
    let one = |(number, track): (usize, &&Track)| {
        let plural = if track.channels == 1 { "" } else { "s" };
        let language = track.tags.language.as_deref().map(|tag| format!("{tag}, ")).unwrap_or_default();
        format!("{} ({language}{} channel{plural})", number + 1, track.channels)
    };
    let all: Vec<String> = sounds.iter().enumerate().map(one).collect();
    match all.as_slice() {
        [one] => format!("the only audio track is {one}"),
        all => format!("the audio tracks are {}", all.join(", ")),
    }
}

/// Containers that declare where each track ends, but not its length.
const STATES_TRACK_END: [&str; 1] = ["matroska"];

/// Streams of frames without an index: ffprobe guesses their length from the bit rate of the first frames.
const GUESSES_DURATION: [&str; 2] = ["mp3", "aac"];

/// Containers that declare the length of each track; others declare that of the whole file, or guess.
const STATES_TRACK_DURATION: [&str; 7] = ["mp4", "avi", "wav", "w64", "aiff", "caf", "au"];

fn sound(track: &Track, answer: &Answer, first: Option<f64>) -> Option<Sound> {
    // Without a picture, the track cannot begin later than the file.
    let said = seconds(track.start_time.as_ref()).or((!answer.has_picture()).then_some(0.0));
    let begins = match (said, first) {
        (Some(said), Some(first)) => said.max(first),
        (said, first) => said.or(first)?,
    };
    let start = (begins - seconds(answer.format.start_time.as_ref()).unwrap_or(0.0)).max(0.0);
    let lasts = match answer.is_format(&STATES_TRACK_END) {
        true => track.tags.duration.as_deref().and_then(clock).map(|end| end - begins),
        false => seconds(track.duration.as_ref()).filter(|_| answer.is_format(&STATES_TRACK_DURATION)),
    };
    Some(Sound {
        track: track.index,
        channels: track.channels,
        channel_numbers: Vec::new(),
        start,
        seconds: lasts.filter(|seconds| *seconds > 0.0),
        container_seconds: seconds(answer.format.duration.as_ref()),
        is_guess: answer.is_format(&GUESSES_DURATION),
        rate: track.sample_rate.as_deref()?.parse().ok()?,
        bit_rate: track.bit_rate.as_deref().and_then(|rate| rate.parse().ok()),
        is_deep: is_lossless(&track.codec_name) && !matches!(track.sample_fmt.as_str(), "u8" | "u8p" | "s16" | "s16p"),
        gains_nothing: None,
        codec: track.codec_name.clone(),
    })
}

fn is_uncompressed(codec: &str) -> bool {
    codec.starts_with("pcm_") && !matches!(codec, "pcm_alaw" | "pcm_mulaw" | "pcm_vidc")
}

fn is_lossless(codec: &str) -> bool {
    codec.starts_with("pcm_") || matches!(codec, "flac" | "alac" | "truehd" | "mlp" | "wavpack" | "tta" | "ape" | "tak")
}

impl Sound {
    /// Returns the number of channels to send.
    pub fn sent(&self) -> u32 {
        if self.channel_numbers.is_empty() { self.channels } else { self.channel_numbers.len() as u32 }
    }

    /// Returns the ways to write a part of the track, best first. FLAC is encoded again: a copy would declare the length of
    /// the whole.
    pub fn part_methods(&self) -> Vec<ExtractionMethod> {
        self.methods().into_iter().filter(|method| !(method.copied && method.codec == Codec::Flac)).collect()
    }

    /// Returns the length in seconds, if the file does not only guess it.
    pub fn known_seconds(&self) -> Option<f64> {
        self.seconds.or(self.container_seconds.filter(|_| !self.is_guess))
    }

    /// Returns the most seconds that the track may have; `None` if the file says nothing.
    pub fn most_seconds(&self) -> Option<f64> {
        let most = self.seconds.or(self.container_seconds)?;
        Some(if self.is_guess && self.seconds.is_none() { most * MOST_OF_A_GUESS } else { most })
    }

    /// Returns the ways to write the track, best first. Selected channels are always encoded.
    pub fn methods(&self) -> Vec<ExtractionMethod> {
        // The limits of FLAC; ffmpeg writes at most 24 bits.
        let fits = (1..=8).contains(&self.sent()) && (1..=655_350).contains(&self.rate);
        let copy = Codec::parse(&self.codec).filter(|_| self.channel_numbers.is_empty());
        let copy = copy.map(|codec| ExtractionMethod { codec, copied: true });
        let encode = fits.then_some(ExtractionMethod { codec: Codec::Flac, copied: false });
        copy.into_iter().chain(encode).collect()
    }

    /// Estimates the most bytes that the extracted track may have; `None` if the length is unknown.
    pub fn estimate(&self, way: ExtractionMethod) -> Option<u64> {
        Some(self.estimate_of(way, self.most_seconds()?))
    }

    /// Estimates the most bytes that so many seconds of the track may have.
    pub fn estimate_of(&self, way: ExtractionMethod, seconds: f64) -> u64 {
        const FRAMES: u64 = 1 << 20;
        (self.most_bytes_a_second(way) * seconds) as u64 + FRAMES
    }

    /// Estimates the most bytes of a second.
    pub fn most_bytes_a_second(&self, way: ExtractionMethod) -> f64 {
        match (way.copied, self.bit_rate) {
            // The new container adds a little for each frame.
            (true, Some(rate)) => rate as f64 * 1.1 / 8.0,
            // The highest usual bit rate of coded speech or music, for each channel.
            (true, None) => f64::from(self.channels.max(1)) * 320_000.0 / 8.0,
            (false, _) => f64::from(self.rate) * f64::from(self.sent()) * if self.is_deep { 3.1 } else { 2.1 },
        }
    }

    /// Whether `measured` seconds agree with the length that the file declares for its track, or with that of the part.
    pub fn lasts(&self, measured: f64, part: Option<PartRange>) -> bool {
        const NEAR: f64 = 0.25;
        let near = |wanted: f64| NEAR + wanted * 0.002;
        if let Some(part) = part {
            let wanted = part.millis() as f64 / 1e3;
            return (measured - wanted).abs() <= near(wanted);
        }
        match (self.seconds, self.container_seconds) {
            (Some(wanted), _) => (measured - wanted).abs() <= near(wanted),
            (None, Some(whole)) if !self.is_guess => measured > 0.0 && measured <= whole + near(whole),
            (None, _) => measured > 0.0,
        }
    }
}

/// How much longer a track may be than ffprobe guesses.
const MOST_OF_A_GUESS: f64 = 4.0;

/// Extracts a sound track of `from`, or a `part` of it, and writes it into the empty file `into`: at most `limit` bytes.
///
/// The start of a part that is copied may be off by a frame of its codec, 64 ms at most.
///
/// The output begins with the track's first sound, however late that is in the file. If the sound is encoded, gaps are
/// filled with silence. Dropping the future ends ffmpeg.
///
/// # Errors
/// Returns an [`ExtractError`]; the content of `into` is then useless.
pub async fn extract(
    from: File,
    sound: &Sound,
    way: ExtractionMethod,
    part: Option<PartRange>,
    into: &File,
    limit: u64,
) -> Result<(), ExtractError> {
    let earlier = format!("{:.6}", -sound.start);
    let mut ffmpeg = file_command("ffmpeg", from, &["-itsoffset", &earlier]);
    ffmpeg.args(["-map", &format!("0:{}", sound.track), "-map_metadata", "-1", "-map_chapters", "-1"]);
    ffmpeg.args(["-vn", "-sn", "-dn", "-fflags", "+bitexact", "-flags", "+bitexact"]);
    match way.copied {
        true => ffmpeg.args(["-c:a", "copy"]),
        false => ffmpeg.args([
            "-c:a",
            "flac",
            "-sample_fmt",
            if sound.is_deep { "s32" } else { "s16" },
            "-af",
            &encode_filter(sound),
        ]),
    };
    if let Some(part) = part {
        // Behind the input: ffmpeg reads from the beginning, and the cut is exact in formats without an index too.
        ffmpeg.args(["-ss", &seconds_text(part.from_ms), "-t", &seconds_text(part.millis())]);
    }
    // The output is ffmpeg's standard output, opened as a file so that ffmpeg can seek in it.
    ffmpeg.args(["-f", container(way.codec), "-y", "file:/proc/self/fd/1"]).stdout(into.try_clone().map_err(io)?);
    let _permit = sandbox::permit(FfmpegUse::Read).await?;
    let cpu_limit = sandbox::decode_cpu_limit(sound.container_seconds.or(sound.seconds).unwrap_or(0.0), 0);
    let mut child = sandbox::spawn(&mut ffmpeg, cpu_limit).map_err(|error| spawn_error("ffmpeg", error))?;
    limit_child(&child, limit);
    let tail = tokio::spawn(last_line(child.stderr.take()));
    let status = wait_for_end(&mut child, into, limit).await;
    let words = tail.await.unwrap_or_default();
    match status {
        Ok(_) if ["No space left", "quota exceeded"].iter().any(|full| words.contains(full)) => {
            Err(ExtractError::DiskFull)
        }
        // ffmpeg may report that it could not write, and still exit with success.
        Ok(true) if !words.starts_with("Error ") => Ok(()),
        Ok(_) if words.is_empty() => Err(ExtractError::Failed { words: "it ended without a message".to_owned() }),
        Ok(_) => Err(ExtractError::Failed { words }),
        Err(error) => Err(error),
    }
}

fn seconds_text(millis: u64) -> String {
    format!("{}.{:03}", millis / 1_000, millis % 1_000)
}

/// Returns the length of a track in seconds, by reading all of it: for formats whose length is only a guess.
///
/// # Errors
/// Fails as [`super::decode::probe`] does.
pub async fn measure_track(file: File, sound: &Sound) -> Result<f64, DecodeError> {
    let _permit = sandbox::permit(FfmpegUse::Read).await?;
    let mut ffmpeg = file_command("ffmpeg", file, &[]);
    ffmpeg.args(["-map", &format!("0:{}", sound.track), "-c", "copy", "-stats_period", "10", "-progress", "pipe:1"]);
    let cpu_limit = sandbox::decode_cpu_limit(sound.most_seconds().unwrap_or(0.0), 0);
    let spawned = sandbox::spawn(ffmpeg.args(["-f", "null", "-"]), cpu_limit);
    let mut child = spawned.map_err(|error| spawn_error("ffmpeg", error))?;
    let tail = tokio::spawn(last_line(child.stderr.take()));
    let (_, report) = answer(&mut child).await?;
    let reached = |line: &str| line.strip_prefix("out_time_us=").and_then(|us| us.trim().parse::<f64>().ok());
    let last = String::from_utf8_lossy(&report).lines().filter_map(reached).next_back();
    match last.filter(|us| *us > 0.0) {
        Some(us) => Ok(us / 1e6),
        None => Err(DecodeError::Damaged { words: tail.await.unwrap_or_default() }),
    }
}

/// Samples a second of the sound in which a pause is looked for.
const LOUDNESS_RATE: usize = 8_000;

/// Returns the loudness of each tenth of a second of a window in a sound track: the mean square of its samples.
///
/// # Errors
/// Fails as [`super::decode::probe`] does.
pub async fn loudness(file: File, sound: &Sound, window: CutWindow) -> Result<Vec<f32>, DecodeError> {
    let _permit = sandbox::permit(FfmpegUse::Read).await?;
    let from = format!("{:.3}", sound.start + window.from_s as f64);
    let mut ffmpeg = file_command("ffmpeg", file, &["-ss", &from]);
    let seconds = window.to_s.saturating_sub(window.from_s);
    ffmpeg.args(["-map", &format!("0:{}", sound.track), "-vn", "-sn", "-dn", "-t", &seconds.to_string()]);
    ffmpeg.args(["-ac", "1", "-ar", &LOUDNESS_RATE.to_string(), "-f", "s16le", "pipe:1"]);
    let cpu_limit = sandbox::decode_cpu_limit(sound.most_seconds().unwrap_or(0.0), 0);
    let mut child = sandbox::spawn(&mut ffmpeg, cpu_limit).map_err(|error| spawn_error("ffmpeg", error))?;
    let tail = tokio::spawn(last_line(child.stderr.take()));
    let (status, samples) = timed("ffmpeg", INACTIVITY, answer(&mut child)).await?;
    let words = tail.await.unwrap_or_default();
    if !status.success() {
        return Err(DecodeError::Damaged { words });
    }
    let (samples, _) = samples.as_chunks::<2>();
    let square = |pair: &[u8; 2]| f32::from(i16::from_le_bytes(*pair)).powi(2);
    let mean = |tenth: &[[u8; 2]]| tenth.iter().map(square).sum::<f32>() / tenth.len() as f32;
    Ok(samples.chunks_exact(LOUDNESS_RATE / 10).map(mean).collect())
}

fn io(error: io::Error) -> ExtractError {
    DecodeError::Io(error).into()
}

/// Returns the filter for encoding. Silence replaces the gaps that a recorder left, or everything after them would come
/// too early. Channels are selected, never mixed.
fn encode_filter(sound: &Sound) -> String {
    const LAYOUTS: [&str; ChannelSelection::MOST] = ["mono", "stereo", "3.0", "quad", "5.0", "5.1", "6.1", "7.1"];
    const GAPS: &str = "aresample=async=1";
    let Some(layout) = sound.channel_numbers.len().checked_sub(1).map(|last| LAYOUTS[last]) else {
        return GAPS.to_owned();
    };
    let taken = sound.channel_numbers.iter().enumerate().map(|(place, channel)| format!("|c{place}=c{}", channel - 1));
    format!("pan={layout}{},{GAPS}", taken.collect::<String>())
}

fn container(codec: Codec) -> &'static str {
    match codec {
        Codec::Aac => "ipod",
        Codec::Opus | Codec::Vorbis => "ogg",
        other => other.name(),
    }
}

/// Lowers the priority of ffmpeg and limits the size of its files, so that the output cannot exceed `limit` even if
/// this process dies. If the system refuses the limits, [`wait_for_end`] still watches the size.
fn limit_child(child: &Child, limit: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit, setpriority_process};
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let _ = setpriority_process(pid, 10);
    if pid.is_some() {
        let _ = prlimit(pid, Resource::Fsize, Rlimit { current: Some(limit), maximum: Some(limit) });
    }
}

/// Waits for ffmpeg and returns whether it succeeded. Ends it if it writes too much, or nothing for too long.
async fn wait_for_end(child: &mut Child, into: &File, limit: u64) -> Result<bool, ExtractError> {
    const STEP: Duration = Duration::from_millis(200);
    let (mut last_length, mut idle) = (0, Duration::ZERO);
    loop {
        let waited = tokio::time::timeout(STEP, child.wait()).await;
        let length = into.metadata().map_err(io)?.len();
        let failure = match waited {
            Ok(status) if length < limit => return Ok(status.map_err(io)?.success()),
            _ if length >= limit => Some(ExtractError::Larger(limit)),
            _ => (idle >= INACTIVITY).then(|| DecodeError::TimedOut { program: "ffmpeg", after: INACTIVITY }.into()),
        };
        if let Some(error) = failure {
            child.kill().await.map_err(io)?;
            return Err(error);
        }
        idle = if length == last_length { idle + STEP } else { Duration::ZERO };
        last_length = length;
    }
}

/// Returns the seconds and the channels that an extracted file really has.
///
/// # Errors
/// Fails as [`probe_tracks`] does, and with [`DecodeError::NoAudio`].
pub async fn measure(file: File) -> Result<(f64, u32), DecodeError> {
    let json = ask(file, &["-show_entries", "format=duration:stream=codec_type,channels,duration"]).await?;
    let answer: Answer = serde_json::from_slice(&json).map_err(unreadable_answer)?;
    let track = answer.streams.first().filter(|track| track.codec_type == "audio").ok_or(DecodeError::NoAudio)?;
    let lasts = seconds(track.duration.as_ref()).or_else(|| seconds(answer.format.duration.as_ref()));
    Ok((lasts.unwrap_or(0.0), track.channels))
}

/// Opens an open file once more, at its beginning.
pub fn reopened(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::open(Path::new(&path)).and_then(|mut file| file.rewind().map(|()| file))
}

/// Returns which of ffmpeg and ffprobe cannot be run.
pub fn missing_programs() -> Vec<&'static str> {
    let runs = |program: &str| {
        let mut command = std::process::Command::new(program);
        let quiet = command.arg("-version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    ["ffmpeg", "ffprobe"].into_iter().filter(|program| !runs(program)).collect()
}

fn seconds(text: Option<&String>) -> Option<f64> {
    text?.parse::<f64>().ok().filter(|seconds| seconds.is_finite())
}

/// Parses `01:02:03.5` and returns the seconds.
fn clock(text: &str) -> Option<f64> {
    let parts = text.split(':').map(|part| part.parse::<f64>().ok()).collect::<Option<Vec<_>>>()?;
    (parts.len() == 3).then(|| parts.iter().fold(0.0, |sum, part| sum * 60.0 + part))
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    streams: Vec<Track>,
    #[serde(default)]
    format: Format,
}

#[derive(Deserialize)]
struct Packets {
    #[serde(default)]
    packets: Vec<Packet>,
}

#[derive(Deserialize)]
struct Packet {
    pts_time: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Format {
    format_name: String,
    start_time: Option<String>,
    duration: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Track {
    index: u32,
    codec_type: String,
    codec_name: String,
    channels: u32,
    sample_rate: Option<String>,
    sample_fmt: String,
    start_time: Option<String>,
    duration: Option<String>,
    bit_rate: Option<String>,
    disposition: Disposition,
    tags: Tags,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Disposition {
    default: u8,
    attached_pic: u8,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tags {
    #[serde(rename = "DURATION")]
    duration: Option<String>,
    #[serde(alias = "LANGUAGE")]
    language: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> SoundTracks {
        sound_tracks(&serde_json::from_str(json).unwrap(), None, None, ExtractionNeed::IfSmaller)
    }

    const SOUND: &str = r#"{"index": 1, "codec_type": "audio", "codec_name": "aac", "channels": 2, "sample_rate": "48000",
        "sample_fmt": "fltp", "start_time": "1.476009", "duration": "3.0"}"#;
    const PICTURE: &str = r#"{"index": 0, "codec_type": "video", "codec_name": "h264", "disposition": {"default": 1}}"#;

    fn file(format: &str, streams: &[&str]) -> SoundTracks {
        let streams = streams.join(", ");
        of(&format!(
            r#"{{"format": {{"format_name": "{format}", "start_time": "-0.5", "duration": "9"}}, "streams": [{streams}]}}"#
        ))
    }

    #[test]
    fn sound_begins_so_long_after_the_file_and_is_copied_where_it_can_be() {
        let SoundTracks::Sound(sound) = file("mov,mp4", &[PICTURE, SOUND]) else { panic!("there is sound") };
        assert!((sound.start - 1.976_009).abs() < 1e-9 && sound.track == 1, "{sound:?}");
        let [copy, encoded] =
            [(Codec::Aac, true), (Codec::Flac, false)].map(|(codec, copied)| ExtractionMethod { codec, copied });
        assert_eq!(sound.methods(), [copy, encoded]);
        assert_eq!(Sound { channels: 9, codec: "pcm_s16le".to_owned(), ..sound.clone() }.methods(), []);
        assert_eq!([3.2, 2.8, 3.3, 2.7].map(|seconds| sound.lasts(seconds, None)), [true, true, false, false]);
        // A guessed length is only an upper bound.
        let SoundTracks::Sound(sound) = file("asf", &[PICTURE, SOUND]) else { panic!("there is sound") };
        assert_eq!([1.0, 9.2, 9.4, 0.0].map(|seconds| sound.lasts(seconds, None)), [true, true, false, false]);
    }

    #[test]
    fn what_cannot_gain_or_cannot_be_placed_is_left_as_it_is() {
        let cover = PICTURE.replace("\"default\": 1", "\"attached_pic\": 1");
        assert_eq!(file("mov,mp4", &[SOUND, &cover]), SoundTracks::Nothing(SOUND_ONLY));
        let timeless = SOUND.replace("1.476009", "N/A");
        assert!(
            matches!(file("matroska", &[PICTURE, &timeless]), SoundTracks::Nothing(why) if why.contains("when the audio track"))
        );
        let plain = timeless.replace("aac", "pcm_s24le").replace("fltp", "s32");
        assert!(matches!(file("wav", &[&plain]), SoundTracks::Sound(Sound { is_deep: true, .. })));
        assert!(matches!(file("concat", &[PICTURE, SOUND]), SoundTracks::Nothing(why) if why.contains("playlist")));
        assert_eq!(file("mov,mp4", &[PICTURE]), SoundTracks::NoSound);
        // A stream lists its tracks as it goes on: a sound track may still follow.
        assert!(matches!(file("mpegts", &[PICTURE]), SoundTracks::Nothing(_)));
    }

    #[test]
    fn nobody_is_asked_about_what_plainly_gains_nothing() {
        let ogg = |codec: &[u8]| [&b"OggS"[..], &[0; 24], codec].concat();
        for head in [&b"fLaC"[..], b"ID3\x04", b"\xff\xfb\x90", b"\x0b\x77", b"\0\0\0\x20ftypM4A ", &ogg(b"OpusHead")] {
            assert!(rule_out_by_header(head).is_some(), "{head:?}");
        }
        for head in [&b""[..], b"RIFF", b"\0\0\0\x20ftypisom", b"\x1a\x45\xdf\xa3", &ogg(b"\x80theora"), b"G@\0"] {
            assert_eq!(rule_out_by_header(head), None, "{head:?}");
        }
    }
}
