//! The sound track of a recording, taken out by ffmpeg: as it is where a service takes its codec, else coded
//! anew without loss. Never with loss: it could make equal channels differ, which would be paid twice, or
//! different ones equal.

use super::decode::{DecodeError, INACTIVITY, PLAYLISTS};
use super::ffmpeg::{answer, file_command, last_line, spawn_error, timed};
use super::sandbox::{self, FfmpegUse};
use crate::domain::sent_audio::Codec;
use crate::domain::track_selection::{ChannelSelection, LanguageCode, TrackChoice, TrackSelection};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Child;

/// What a file has to offer.
#[derive(Debug, Clone, PartialEq)]
pub enum SoundTracks {
    /// A sound track to be sent alone: what is picked, or what is smaller than it.
    Sound(Sound),
    /// To send anything else than the file gains nothing, or is not possible; in words.
    Nothing(&'static str),
    /// Its container lists all its tracks, and none of them is sound.
    NoSound,
    /// It has sound, and not what is picked of it; in words.
    Lacks(String),
}

/// A sound track in a file: the one that is picked, or that players choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Sound {
    /// Among all tracks of the file, from 0.
    pub track: u32,
    /// From 1.
    pub channels: u32,
    /// Those of its channels that are sent, from 1, in this order; none: all as they are.
    pub channel_numbers: Vec<u32>,
    /// Seconds from the file's first picture or sound to its own first sound, never negative.
    pub start: f64,
    /// Seconds from its first to its last sound, where the file says that.
    pub seconds: Option<f64>,
    /// Seconds of the whole file, where it says that.
    pub container_seconds: Option<f64>,
    /// That is a guess by the first bytes: it may be a quarter of the truth.
    is_guess: bool,
    /// As ffmpeg names it.
    codec: String,
    /// Samples a second.
    rate: u32,
    /// Bits a second, where the file says that.
    bit_rate: Option<u64>,
    /// Whether more than 16 bits of each sample mean something.
    is_deep: bool,
}

/// One way to write a sound track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractionMethod {
    pub codec: Codec,
    /// With the bytes that it has in the file.
    pub copied: bool,
}

/// Why a sound track was not taken out.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It came to more bytes than there is room for.
    #[error("the audio track is larger than {0} bytes")]
    Larger(u64),
    #[error("ffmpeg could not extract the audio track: {words}")]
    Failed {
        /// The last line of its complaint.
        words: String,
    },
    /// The disk of the spool is full.
    #[error("no space left on the disk")]
    DiskFull,
}

/// What the beginning of a file says: whether there is anything to gain is not asked of those of which that is
/// plain. In words where there is not.
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

/// Asks ffprobe what `file` has to offer: what is picked, whether anything is gained by that or not.
///
/// # Errors
/// Those of [`super::decode::probe`].
pub async fn probe_tracks(file: File, pick: Option<&TrackSelection>) -> Result<SoundTracks, DecodeError> {
    let again = reopened(&file)?;
    let json = ask(file, &["-show_entries", STREAMS]).await?;
    let answer: Answer = serde_json::from_slice(&json).map_err(strange)?;
    let first = match answer.picked(pick) {
        Ok(Some((track, _))) if answer.has_picture() => first_packet(again, track.index).await?,
        _ => None,
    };
    Ok(found(&answer, pick, first))
}

/// When the first packet of a track comes, in seconds. What begins later than ffprobe looks is said to begin with
/// the file.
async fn first_packet(file: File, track: u32) -> Result<Option<f64>, DecodeError> {
    let track = track.to_string();
    let first = ["-select_streams", &track, "-show_entries", "packet=pts_time", "-read_intervals", "%+#1"];
    let answer: Packets = serde_json::from_slice(&ask(file, &first).await?).map_err(strange)?;
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

fn strange(error: serde_json::Error) -> DecodeError {
    DecodeError::NotMedia { words: format!("cannot read the answer of ffprobe: {error}") }
}

/// Containers that list every track at their beginning, or in their index.
const LISTS_ALL: [&str; 4] = ["mp4", "matroska", "avi", "asf"];

fn found(answer: &Answer, pick: Option<&TrackSelection>, first: Option<f64>) -> SoundTracks {
    if answer.is_format(&PLAYLISTS) {
        return SoundTracks::Nothing("the file is a playlist");
    }
    let has_picture = answer.has_picture();
    let (track, only) = match answer.picked(pick) {
        Ok(Some(picked)) => picked,
        Ok(None) if has_picture && answer.is_format(&LISTS_ALL) => return SoundTracks::NoSound,
        Ok(None) => return SoundTracks::Nothing("ffprobe finds no audio track in the file"),
        Err(words) => return SoundTracks::Lacks(words),
    };
    if pick.is_none() && !has_picture && !is_uncompressed(&track.codec_name) {
        return SoundTracks::Nothing(SOUND_ONLY);
    }
    match sound(track, answer, first) {
        Some(sound) => SoundTracks::Sound(Sound { channel_numbers: only, ..sound }),
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

    /// The track, and those of its channels that are sent where that is not all as they are; `None` where there is no
    /// sound. In words what is not there.
    fn picked(&self, pick: Option<&TrackSelection>) -> Result<Option<(&Listed, Vec<u32>)>, String> {
        let sounds: Vec<&Listed> = self.streams.iter().filter(|track| track.codec_type == "audio").collect();
        if sounds.is_empty() {
            return Ok(None);
        }
        let by_language = |tongue: &LanguageCode| {
            let is_meant = |track: &&&Listed| track.tags.language.as_deref().is_some_and(|tag| tongue.matches_tag(tag));
            sounds.iter().find(is_meant)
        };
        let track = match pick.and_then(TrackSelection::track) {
            None => sounds.iter().find(|track| track.disposition.default == 1).or(sounds.first()),
            Some(TrackChoice::Number(number)) => sounds.get(number.get() as usize - 1),
            Some(TrackChoice::Language(tongue)) => by_language(tongue),
        };
        let track = *track.ok_or_else(|| listed(&sounds))?;
        let channels = pick.and_then(TrackSelection::channels).map(ChannelSelection::numbers).unwrap_or_default();
        if channels.iter().any(|channel| *channel > track.channels) {
            return Err(listed(&sounds));
        }
        let is_all = channels.iter().copied().eq(1..=track.channels);
        Ok(Some((track, if is_all { Vec::new() } else { channels.to_vec() })))
    }
}

/// `its sound tracks are 1 (eng, 2 channels), 2 (6 channels)`.
fn listed(sounds: &[&Listed]) -> String {
    let one = |(number, track): (usize, &&Listed)| {
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

/// Containers that say where each track ends, and nothing of how long it is.
const ENDS: [&str; 1] = ["matroska"];

/// Streams of frames without an index: how long they are is guessed from the rate of the first ones.
const GUESSED: [&str; 2] = ["mp3", "aac"];

/// Containers that say of each track how long it is; others tell it of the whole file, or guess.
const EXACT: [&str; 7] = ["mp4", "avi", "wav", "w64", "aiff", "caf", "au"];

fn sound(track: &Listed, answer: &Answer, first: Option<f64>) -> Option<Sound> {
    // Without a picture there is nothing that it could begin later than.
    let said = seconds(track.start_time.as_ref()).or((!answer.has_picture()).then_some(0.0));
    let begins = match (said, first) {
        (Some(said), Some(first)) => said.max(first),
        (said, first) => said.or(first)?,
    };
    let start = (begins - seconds(answer.format.start_time.as_ref()).unwrap_or(0.0)).max(0.0);
    let lasts = match answer.is_format(&ENDS) {
        true => track.tags.duration.as_deref().and_then(clock).map(|end| end - begins),
        false => seconds(track.duration.as_ref()).filter(|_| answer.is_format(&EXACT)),
    };
    Some(Sound {
        track: track.index,
        channels: track.channels,
        channel_numbers: Vec::new(),
        start,
        seconds: lasts.filter(|seconds| *seconds > 0.0),
        container_seconds: seconds(answer.format.duration.as_ref()),
        is_guess: answer.is_format(&GUESSED),
        rate: track.sample_rate.as_deref()?.parse().ok()?,
        bit_rate: track.bit_rate.as_deref().and_then(|rate| rate.parse().ok()),
        is_deep: is_lossless(&track.codec_name) && !matches!(track.sample_fmt.as_str(), "u8" | "u8p" | "s16" | "s16p"),
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
    /// How many channels are sent.
    pub fn sent(&self) -> u32 {
        if self.channel_numbers.is_empty() { self.channels } else { self.channel_numbers.len() as u32 }
    }

    /// The ways to write it, the best first. Single channels are always coded anew.
    pub fn methods(&self) -> Vec<ExtractionMethod> {
        // What FLAC can hold; ffmpeg writes no more than 24 bits.
        let fits = (1..=8).contains(&self.sent()) && (1..=655_350).contains(&self.rate);
        let copy = Codec::parse(&self.codec).filter(|_| self.channel_numbers.is_empty());
        let copy = copy.map(|codec| ExtractionMethod { codec, copied: true });
        let anew = fits.then_some(ExtractionMethod { codec: Codec::Flac, copied: false });
        copy.into_iter().chain(anew).collect()
    }

    /// How many bytes it comes to at most, as far as that can be told.
    pub fn estimate(&self, way: ExtractionMethod) -> Option<u64> {
        const FRAMES: u64 = 1 << 20;
        let seconds = self.seconds.or(self.container_seconds)? * if self.is_guess { 4.0 } else { 1.0 };
        let rate = match (way.copied, self.bit_rate) {
            // A container of its own costs a little for each frame.
            (true, Some(rate)) => rate as f64 * 1.1 / 8.0,
            // The most that anybody codes speech or music with.
            (true, None) => f64::from(self.channels.max(1)) * 320_000.0 / 8.0,
            (false, _) => f64::from(self.rate) * f64::from(self.sent()) * if self.is_deep { 3.1 } else { 2.1 },
        };
        Some((rate * seconds) as u64 + FRAMES)
    }

    /// Whether so many seconds are what the file says of its track.
    pub fn lasts(&self, measured: f64) -> bool {
        const NEAR: f64 = 0.25;
        let near = |wanted: f64| NEAR + wanted * 0.002;
        match (self.seconds, self.container_seconds) {
            (Some(wanted), _) => (measured - wanted).abs() <= near(wanted),
            (None, Some(whole)) if !self.is_guess => measured > 0.0 && measured <= whole + near(whole),
            (None, _) => measured > 0.0,
        }
    }
}

/// Takes a sound track out of `from` and writes it `into` a file that is empty: at most `limit` bytes.
///
/// The track's own first sound comes first, however late it is in the file; a hole in it is filled with
/// silence where it is coded anew. Dropped, it ends ffmpeg.
///
/// # Errors
/// [`ExtractError`]; what is in `into` is of no use then.
pub async fn extract(
    from: File,
    sound: &Sound,
    way: ExtractionMethod,
    into: &File,
    limit: u64,
) -> Result<(), ExtractError> {
    let earlier = format!("{:.6}", -sound.start);
    let mut ffmpeg = file_command("ffmpeg", from, &["-itsoffset", &earlier]);
    ffmpeg.args(["-map", &format!("0:{}", sound.track), "-map_metadata", "-1", "-map_chapters", "-1"]);
    ffmpeg.args(["-vn", "-sn", "-dn", "-fflags", "+bitexact", "-flags", "+bitexact"]);
    match way.copied {
        true => ffmpeg.args(["-c:a", "copy"]),
        false => {
            ffmpeg.args(["-c:a", "flac", "-sample_fmt", if sound.is_deep { "s32" } else { "s16" }, "-af", &anew(sound)])
        }
    };
    // Its own standard output, but as a file that it can go back in.
    ffmpeg.args(["-f", container(way.codec), "-y", "file:/proc/self/fd/1"]).stdout(into.try_clone().map_err(io)?);
    let _permit = sandbox::permit(FfmpegUse::Read).await?;
    let processor = sandbox::decode_cpu_limit(sound.container_seconds.or(sound.seconds).unwrap_or(0.0));
    let mut child = sandbox::spawn(&mut ffmpeg, processor).map_err(|error| spawn_error("ffmpeg", error))?;
    restrain(&child, limit);
    let tail = tokio::spawn(last_line(child.stderr.take()));
    let status = ended(&mut child, into, limit).await;
    let words = tail.await.unwrap_or_default();
    match status {
        Ok(_) if ["No space left", "quota exceeded"].iter().any(|full| words.contains(full)) => {
            Err(ExtractError::DiskFull)
        }
        // It says that it could not write, and ends as if all were well.
        Ok(true) if !words.starts_with("Error ") => Ok(()),
        Ok(_) if words.is_empty() => Err(ExtractError::Failed { words: "it ended without a message".to_owned() }),
        Ok(_) => Err(ExtractError::Failed { words }),
        Err(error) => Err(error),
    }
}

fn io(error: io::Error) -> ExtractError {
    DecodeError::Io(error).into()
}

/// Where a recorder lost sound, silence takes its place, or all that follows would come too early. Channels are
/// taken as they are, never mixed.
fn anew(sound: &Sound) -> String {
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

/// Others come first, and a file cannot grow past `limit` even when nobody watches any more. Where the system
/// does not allow to say so, it is watched all the same.
fn restrain(child: &Child, limit: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit, setpriority_process};
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let _ = setpriority_process(pid, 10);
    if pid.is_some() {
        let _ = prlimit(pid, Resource::Fsize, Rlimit { current: Some(limit), maximum: Some(limit) });
    }
}

/// Whether it ended well. It is ended where it writes too much, or nothing for too long.
async fn ended(child: &mut Child, into: &File, limit: u64) -> Result<bool, ExtractError> {
    const STEP: Duration = Duration::from_millis(200);
    let (mut before, mut quiet) = (0, Duration::ZERO);
    loop {
        let waited = tokio::time::timeout(STEP, child.wait()).await;
        let length = into.metadata().map_err(io)?.len();
        let broke = match waited {
            Ok(status) if length < limit => return Ok(status.map_err(io)?.success()),
            _ if length >= limit => Some(ExtractError::Larger(limit)),
            _ => (quiet >= INACTIVITY).then(|| DecodeError::TimedOut { program: "ffmpeg", after: INACTIVITY }.into()),
        };
        if let Some(error) = broke {
            child.kill().await.map_err(io)?;
            return Err(error);
        }
        quiet = if length == before { quiet + STEP } else { Duration::ZERO };
        before = length;
    }
}

/// What there really is in a file that was written here: seconds and channels.
///
/// # Errors
/// Those of [`probe_tracks`], and [`DecodeError::NoAudio`].
pub async fn measure(file: File) -> Result<(f64, u32), DecodeError> {
    let json = ask(file, &["-show_entries", "format=duration:stream=codec_type,channels,duration"]).await?;
    let answer: Answer = serde_json::from_slice(&json).map_err(strange)?;
    let track = answer.streams.first().filter(|track| track.codec_type == "audio").ok_or(DecodeError::NoAudio)?;
    let lasts = seconds(track.duration.as_ref()).or_else(|| seconds(answer.format.duration.as_ref()));
    Ok((lasts.unwrap_or(0.0), track.channels))
}

/// Another reader of an open file, at its beginning.
///
/// # Errors
/// What the system says.
pub fn reopened(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::open(Path::new(&path)).and_then(|mut file| file.rewind().map(|()| file))
}

/// Programs of these that do not run.
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

/// `01:02:03.5` in seconds.
fn clock(text: &str) -> Option<f64> {
    let parts = text.split(':').map(|part| part.parse::<f64>().ok()).collect::<Option<Vec<_>>>()?;
    (parts.len() == 3).then(|| parts.iter().fold(0.0, |sum, part| sum * 60.0 + part))
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    streams: Vec<Listed>,
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
struct Listed {
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
        found(&serde_json::from_str(json).unwrap(), None, None)
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
        let [copy, anew] =
            [(Codec::Aac, true), (Codec::Flac, false)].map(|(codec, copied)| ExtractionMethod { codec, copied });
        assert_eq!(sound.methods(), [copy, anew]);
        assert_eq!(Sound { channels: 9, codec: "pcm_s16le".to_owned(), ..sound.clone() }.methods(), []);
        assert_eq!([3.2, 2.8, 3.3, 2.7].map(|seconds| sound.lasts(seconds)), [true, true, false, false]);
        // What a container only guesses is a bound.
        let SoundTracks::Sound(sound) = file("asf", &[PICTURE, SOUND]) else { panic!("there is sound") };
        assert_eq!([1.0, 9.2, 9.4, 0.0].map(|seconds| sound.lasts(seconds)), [true, true, false, false]);
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
        // A stream lists its tracks as it goes on: one may come yet.
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
