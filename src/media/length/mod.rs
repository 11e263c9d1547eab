//! Determines how much audio a file contains from its header alone, with a few small reads however long the file is. If
//! a header does not state the length for certain, the caller has to probe the file. Start reading at [`length`].

pub(crate) mod cache;
pub(crate) mod decoded;
mod matroska;
mod mp4;
mod streams;
mod wave;

use super::container::ReadAt;
use super::decode::{MAX_CHANNELS, Media, RATES};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

/// Whether the recording at `path`, for which ffprobe reports `seconds`, is longer than `limit`. For MP3 and AAC
/// without a header the reported length is a guess that may be several times too long, so they are accepted up to four
/// times the limit, and refused later if they really are longer.
pub fn is_longer(path: &Path, seconds: f64, limit: Duration) -> bool {
    let mut head = [0; 3];
    let known = File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok();
    let is_guess = known && matches!(head, [b'I', b'D', b'3'] | [0xFF, 0xE0..=0xFF, _]);
    let most = limit.as_secs_f64() * if is_guess { 4.0 } else { 1.0 };
    // The declared length may be slightly more than the real one.
    seconds > most + 1.0
}

/// Returns what the header of a file of `size` bytes declares; `None` if it does not declare everything.
pub fn length<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Option<Media>> {
    let mut head = [0; 12];
    let n = file.read_at(0, &mut head)?;
    let said = match &head[..n] {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E'] => wave::wave(file, size)?,
        [b'f', b'L', b'a', b'C', ..] => streams::flac(file)?,
        [b'O', b'g', b'g', b'S', ..] => streams::ogg(file, size)?,
        [b'I', b'D', b'3', ..] | [0xFF, 0xFA | 0xFB | 0xF2 | 0xF3, ..] => streams::mp3(file)?,
        [0x1A, 0x45, 0xDF, 0xA3, ..] => matroska::matroska(file)?,
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => mp4::mp4(file, size)?,
        _ => None,
    };
    Ok(said.filter(is_likely))
}

/// Whether the declared values are possible.
fn is_likely(media: &Media) -> bool {
    const LONGEST: f64 = 366.0 * 86_400.0;
    let channels = !media.has_audio || (1..=MAX_CHANNELS).contains(&media.channels);
    channels && media.duration.is_finite() && media.duration > 0.0 && media.duration < LONGEST
}

/// Returns audio of `samples` samples for each channel; `None` if the rate is impossible.
fn audio(samples: u64, rate: u32, channels: u32) -> Option<Media> {
    let duration = samples as f64 / f64::from(rate);
    RATES.contains(&rate).then_some(Media { duration, channels, has_audio: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wav(channels: u16, rate: u32, samples: u32, said: u32) -> Vec<u8> {
        let frame = u32::from(channels) * 2;
        let mut file = [&b"RIFF"[..], &0_u32.to_le_bytes(), b"WAVEfmt \x10\0\0\0\x01\0"].concat();
        file.extend(channels.to_le_bytes());
        file.extend(rate.to_le_bytes());
        file.extend((rate * frame).to_le_bytes());
        file.extend([channels.to_le_bytes().map(|byte| byte * 2), 16_u16.to_le_bytes()].concat());
        file.extend([b"data", &said.to_le_bytes()[..]].concat());
        file.extend(vec![0; (samples * frame) as usize]);
        file
    }

    fn of(bytes: &[u8]) -> Option<Media> {
        length(bytes, bytes.len() as u64).unwrap()
    }

    #[test]
    fn no_more_samples_than_are_there() {
        for said in [4 * 8_000, 0, u32::MAX, u32::MAX - 1] {
            let media = of(&wav(2, 8_000, 8_000, said)).unwrap();
            assert_eq!((media.duration, media.channels, media.has_audio), (1.0, 2, true), "{said}");
        }
        assert_eq!(of(&wav(0, 8_000, 8_000, 0)), None);
        assert_eq!(of(&wav(2, 8, 8_000, 0)), None, "no such rate");
        assert_eq!(of(&wav(99, 8_000, 10, 0)), None, "nobody records so");
        assert_eq!(of(&wav(2, 8_000, 0, 0)), None, "nothing in it");
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_answer(
            head in proptest::sample::select(vec![
                &b"RIFF0000WAVEfmt "[..], b"fLaC", b"OggS\0\x02", b"ID3\x04\0\0\0\0\0\x01", b"\xff\xfb\x90\x00",
                b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\xff", b"\0\0\0\x08ftyp\0\0\x01\0moov",
            ]),
            bytes in proptest::collection::vec(any::<u8>(), 0..600),
        ) {
            let file = [head, &bytes].concat();
            if let Some(media) = of(&file) {
                prop_assert!(is_likely(&media));
            }
        }
    }
}
