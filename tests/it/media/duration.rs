//! How long recordings are: what their headers say against what ffprobe finds.

use crate::support::bed::ffmpeg;
use scribed::testing::media::decode::{probe, probe_open};
use scribed::testing::media::length::length;
use std::fs::File;
use tempfile::TempDir;

/// A name, how it is made of two seconds of a tone, and whether its header alone must say so.
const MADE: [(&str, &[&str], bool); 19] = [
    ("plain.wav", &[], true),
    ("stereo.wav", &["-ac", "2", "-c:a", "pcm_s24le"], true),
    ("six.wav", &["-ac", "6", "-c:a", "pcm_f32le"], true),
    ("adpcm.wav", &["-c:a", "adpcm_ima_wav"], false),
    ("plain.flac", &["-ac", "2"], true),
    ("variable.mp3", &["-q:a", "4"], true),
    ("constant.mp3", &["-ac", "2", "-b:a", "96k"], true),
    ("bare.mp3", &["-write_xing", "0", "-id3v2_version", "0"], false),
    ("vorbis.ogg", &["-ac", "2", "-c:a", "libvorbis"], true),
    ("opus.opus", &["-c:a", "libopus"], true),
    ("mono.m4a", &["-c:a", "aac"], true),
    ("stereo.m4a", &["-ac", "2", "-c:a", "aac", "-movflags", "+faststart"], true),
    ("lossless.m4a", &["-ac", "2", "-c:a", "alac"], true),
    ("pieces.mp4", &["-c:a", "aac", "-movflags", "+frag_keyframe+empty_moov"], false),
    ("pcm.mov", &["-ac", "2", "-c:a", "pcm_s16le"], true),
    ("stereo.mkv", &["-ac", "2", "-c:a", "aac"], true),
    ("mono.webm", &["-c:a", "libopus"], true),
    ("only.aac", &["-c:a", "aac"], false),
    ("old.wmv", &["-c:a", "wmav2"], false),
];

#[tokio::test]
async fn a_header_says_what_ffprobe_finds() {
    let folder = TempDir::new().unwrap();
    for (name, how, certain) in MADE {
        let path = folder.path().join(name);
        let tone = ["-f", "lavfi", "-i", "sine=duration=2.05:sample_rate=48000"];
        ffmpeg(tone.into_iter().chain(how.iter().copied()), &path);
        let file = File::open(&path).unwrap();
        let said = length(&file, file.metadata().unwrap().len()).unwrap();
        let found = probe(&path).await.unwrap();
        assert_eq!(said.is_some(), certain, "{name}: {said:?} {found:?}");
        let Some(said) = said else { continue };
        assert_eq!((said.channels, said.has_audio), (found.channels, true), "{name}");
        assert!((said.duration - found.duration).abs() < 0.1, "{name}: {said:?} {found:?}");
        // No less is put by in a budget than what is there.
        assert!(said.duration > 2.0, "{name}: {said:?}");
    }
}

#[tokio::test]
async fn a_program_is_given_the_open_file_and_not_its_path() {
    let folder = TempDir::new().unwrap();
    for (name, how, _) in MADE {
        let path = folder.path().join(name);
        let tone = ["-f", "lavfi", "-i", "sine=duration=2.05:sample_rate=48000"];
        ffmpeg(tone.into_iter().chain(how.iter().copied()), &path);
        let (by_path, file) = (probe(&path).await.unwrap(), File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "another file").unwrap();
        assert_eq!(probe_open(file).await.unwrap(), by_path, "{name}");
    }
}

#[tokio::test]
async fn a_video_is_as_long_as_its_pictures_and_one_without_sound_says_so() {
    let folder = TempDir::new().unwrap();
    for name in ["film.mp4", "film.mkv"] {
        let path = folder.path().join(name);
        let pictures = ["-f", "lavfi", "-i", "color=size=64x64:rate=10:duration=3"];
        for sound in [&["-f", "lavfi", "-i", "sine=duration=2", "-ac", "2"][..], &[]] {
            ffmpeg(pictures.into_iter().chain(sound.iter().copied()), &path);
            let file = File::open(&path).unwrap();
            let said = length(&file, file.metadata().unwrap().len()).unwrap().unwrap();
            let found = probe(&path).await.unwrap();
            assert_eq!((said.channels, said.has_audio), (found.channels, !sound.is_empty()), "{name}");
            assert!((said.duration - found.duration).abs() < 0.1, "{name}: {said:?} {found:?}");
        }
    }
}
