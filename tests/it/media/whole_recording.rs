//! The whole of a recording is decoded: files that are joined byte after byte, cut, padded, or have a wrong header, for each
//! container and codec. No cell may be short without a warning.

use crate::support::bed::ffmpeg;
use scribed::testing::media::decode::{DecodeError, Decoder, INACTIVITY, SAMPLE_RATE};
use scribed::testing::media::mixed_sound::{MixedSound, SoundPart};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file's ending, and how its sound is coded.
const MADE: [(&str, &[&str]); 23] = [
    ("wav", &[]),
    ("8.wav", &["-c:a", "pcm_u8"]),
    ("w64", &["-f", "w64"]),
    ("rf64.wav", &["-rf64", "always"]),
    ("aiff", &[]),
    ("caf", &["-c:a", "pcm_s16be"]),
    ("flac", &[]),
    ("mp3", &["-b:a", "64k"]),
    ("vbr.mp3", &["-q:a", "4", "-write_xing", "0"]),
    ("ogg", &["-c:a", "libvorbis"]),
    ("opus", &["-c:a", "libopus"]),
    ("m4a", &["-c:a", "aac"]),
    ("fragments.mp4", &["-c:a", "aac", "-movflags", "+frag_keyframe+empty_moov", "-frag_duration", "500000"]),
    ("alac.m4a", &["-c:a", "alac"]),
    ("aac", &["-c:a", "aac", "-f", "adts"]),
    ("mka", &["-c:a", "libopus"]),
    ("webm", &["-c:a", "libopus"]),
    ("wma", &["-c:a", "wmav2"]),
    ("wv", &[]),
    ("avi", &["-c:a", "mp3"]),
    ("ts", &["-c:a", "mp2"]),
    ("mpg", &["-c:a", "mp2"]),
    ("ac3", &["-c:a", "ac3", "-ar", "32000"]),
];

/// Frames that a decoder adds or leaves out at a join, in seconds.
const JOIN: f64 = 0.13;

/// What was decoded of a file.
struct Read {
    seconds: f64,
    unread: u64,
}

/// Decodes a file for the recogniser.
async fn decoded(path: &Path) -> Result<Read, DecodeError> {
    let mut decoder = Decoder::open(path, INACTIVITY).await?;
    let mut samples = 0;
    while let Some(planes) = decoder.next().await? {
        samples += planes[0].len();
    }
    Ok(Read { seconds: samples as f64 / f64::from(SAMPLE_RATE), unread: decoder.unread().bytes })
}

/// Decodes a file for the check of a result.
async fn checked(path: &Path) -> Result<Read, DecodeError> {
    let mut sound = MixedSound::open(File::open(path).unwrap(), &SoundPart::default()).await?;
    let mut samples = 0;
    while let Some(piece) = sound.next().await? {
        samples += piece.len();
    }
    Ok(Read { seconds: samples as f64 / f64::from(SAMPLE_RATE), unread: sound.unread().bytes })
}

async fn length(path: &Path) -> f64 {
    checked(path).await.unwrap().seconds
}

struct Scene {
    folder: TempDir,
    problems: Vec<String>,
}

impl Scene {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), problems: Vec::new() }
    }

    /// Makes a recording of a swept tone, which has other bytes at every place.
    fn record(&self, name: &str, seconds: &str, source: &[&str], coding: &[&str]) -> PathBuf {
        let path = self.folder.path().join(name);
        let tone = format!("aevalsrc='0.4*sin(2*PI*(200+300*t)*t)':d={seconds}:s=48000");
        ffmpeg(["-f", "lavfi", "-i", tone.as_str()].iter().chain(source).chain(coding).copied(), &path);
        path
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Has both decoders read a file that has so many seconds of sound.
    async fn expect(&mut self, case: &str, path: &Path, seconds: f64, tolerance: f64) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        for (who, read) in [("the recogniser's", decoded(path).await), ("the check's", checked(path).await)] {
            match read {
                Ok(read) if (read.seconds - seconds).abs() <= tolerance => {}
                // What is named may be missing.
                Ok(Read { unread, .. }) if unread > 0 => {}
                Ok(Read { seconds: found, .. }) => {
                    self.problems.push(format!("{case} {name}: {who} decoder reads {found:.3} s of {seconds:.3} s"));
                }
                Err(error) => self.problems.push(format!("{case} {name}: {who} decoder: {error}")),
            }
        }
    }

    /// Joins recordings byte after byte, and has both decoders read as much as there is in all of them.
    async fn expect_whole(&mut self, case: &str, ending: &str, parts: &[&Path]) {
        let mut whole = 0.0;
        for part in parts {
            whole += length(part).await;
        }
        let bytes: Vec<Vec<u8>> = parts.iter().map(|part| fs::read(part).unwrap()).collect();
        let joined = self.file(&format!("joined.{ending}"), &bytes.concat());
        self.expect(case, &joined, whole, parts.len() as f64 * JOIN).await;
    }

    fn end(self) {
        assert!(self.problems.is_empty(), "{}", self.problems.join("\n"));
    }
}

const STEREO: [&str; 4] = ["-ar", "48000", "-ac", "2"];
const MONO: [&str; 4] = ["-ar", "24000", "-ac", "1"];

#[tokio::test]
async fn joined_recordings_are_read_to_the_end_of_the_last_one() {
    let mut scene = Scene::new();
    for (ending, coding) in MADE {
        let first = scene.record(&format!("first.{ending}"), "3", &STEREO, coding);
        scene.expect("plain", &first, length(&first).await, 0.05).await;
        let second = scene.record(&format!("second.{ending}"), "2", &STEREO, coding);
        scene.expect_whole("joined", ending, &[&first, &second, &first]).await;
    }
    scene.end();
}

#[tokio::test]
async fn a_join_with_another_rate_and_other_channels_is_no_end() {
    let mut scene = Scene::new();
    for (ending, coding) in MADE {
        let first = scene.record(&format!("stereo.{ending}"), "2", &STEREO, coding);
        let second = scene.record(&format!("mono.{ending}"), "3", &MONO, coding);
        scene.expect_whole("joined with other parameters", ending, &[&first, &second]).await;
    }
    scene.end();
}

#[tokio::test]
async fn recordings_of_different_formats_are_read_one_after_the_other() {
    let mut scene = Scene::new();
    let parts =
        [("wav", &[][..]), ("m4a", &["-c:a", "aac"]), ("aiff", &[]), ("mka", &["-c:a", "libopus"]), ("flac", &[])];
    let made = parts.map(|(ending, coding)| scene.record(&format!("part.{ending}"), "2", &MONO, coding));
    scene.expect_whole("different formats", "bin", &made.each_ref().map(PathBuf::as_path)).await;
    scene.end();
}

#[tokio::test]
async fn a_cut_or_padded_recording_gives_all_that_is_there() {
    let mut scene = Scene::new();
    for (ending, coding) in MADE {
        let path = scene.record(&format!("whole.{ending}"), "4", &MONO, coding);
        let whole = length(&path).await;
        let bytes = fs::read(&path).unwrap();
        // ffmpeg refuses a W64 with padding by name.
        if ending != "w64" {
            let padded = scene.file(&format!("padded.{ending}"), &[&bytes[..], &[0; 20_000]].concat());
            scene.expect("padded", &padded, whole, 0.05).await;
        }
        let tagged = scene.file(&format!("tagged.{ending}"), &[&bytes[..], b"TAG", &[b' '; 125]].concat());
        scene.expect("tagged", &tagged, whole, 0.05).await;
        // An MP4 whose index comes last is nothing without its end.
        if ["m4a", "alac.m4a"].contains(&ending) {
            continue;
        }
        let cut = scene.file(&format!("cut.{ending}"), &bytes[..bytes.len() * 3 / 5]);
        match checked(&cut).await {
            // A page of Ogg has a second or two.
            Ok(Read { seconds, .. }) if seconds > 0.2 * whole => scene.expect("cut", &cut, seconds, 0.05).await,
            Ok(Read { seconds, .. }) => scene.problems.push(format!("cut {ending}: {seconds:.3} s of {whole:.3} s")),
            Err(error) => scene.problems.push(format!("cut {ending}: {error}")),
        }
    }
    scene.end();
}

#[tokio::test]
async fn a_wrong_header_ends_nothing() {
    let mut scene = Scene::new();
    let wave = fs::read(scene.record("whole.wav", "6", &MONO, &["-bitexact"])).unwrap();
    let whole = length(&scene.folder.path().join("whole.wav")).await;
    for declared in [0_u32, u32::MAX, 48_000, 2_000_000] {
        let mut file = wave.clone();
        file[4..8].copy_from_slice(&declared.wrapping_add(36).to_le_bytes());
        file[40..44].copy_from_slice(&declared.to_le_bytes());
        let path = scene.file(&format!("declares-{declared}.wav"), &file);
        scene.expect("wrong header", &path, whole, 0.05).await;
    }
    // The header of the first part counts the frames of that part only.
    let mp3 = scene.record("whole.mp3", "6", &MONO, &["-q:a", "4"]);
    let whole = length(&mp3).await;
    let mut file = fs::read(&mp3).unwrap();
    let at = file.windows(4).position(|four| four == b"Xing" || four == b"Info").unwrap();
    file[at + 8..at + 12].copy_from_slice(&30_u32.to_be_bytes());
    let path = scene.file("few-frames.mp3", &file);
    scene.expect("wrong header", &path, whole, 0.1).await;
    // A loud part after a quiet one, at other bit rates: an estimate by the first frames is far off.
    let loud = fs::read(scene.record("loud.mp3", "2", &STEREO, &["-b:a", "320k", "-write_xing", "0"])).unwrap();
    let quiet = fs::read(scene.record("quiet.mp3", "6", &STEREO, &["-b:a", "32k", "-write_xing", "0"])).unwrap();
    for (name, parts) in [("loud-first.mp3", [&loud, &quiet]), ("quiet-first.mp3", [&quiet, &loud])] {
        let path = scene.file(name, &parts.map(Vec::as_slice).concat());
        scene.expect("bit rates", &path, 8.05, JOIN).await;
    }
    scene.end();
}
