//! Decodes one track of an open file to one channel, for looking at its sound as a whole.

use super::decode::{DecodeError, INACTIVITY, check_regular};
use super::ffmpeg::{FfmpegInput, Mix};
use super::sound_reader::{First, SoundReader};
use crate::review::UnreadSound;
use std::fs::File;

/// The part of a file's sound that is decoded.
#[derive(Debug, Clone, Default)]
pub struct SoundPart {
    /// The number of the track among all tracks, from 0; `None`: the first track with sound.
    pub track: Option<u32>,
    /// The channels that count, from 1; empty: all.
    pub only: Vec<u32>,
    /// The length in seconds, if it is known: more processor time than it can need is not spent.
    pub seconds: f64,
}

/// A running decoder. Dropping it ends ffmpeg or the decoding thread.
pub struct MixedSound {
    sound: SoundReader,
    /// The channels that are mixed; empty: all.
    only: Vec<u32>,
}

impl MixedSound {
    /// Starts to decode, with ffmpeg where it is installed: a recogniser on this machine may have used the decoder of this
    /// process, and what that one does not hear must be found. The file is read from its beginning, and a file that has
    /// replaced it at its path is not read.
    ///
    /// # Errors
    /// Fails as [`super::decode::probe`] does.
    pub async fn open(file: File, part: &SoundPart) -> Result<Self, DecodeError> {
        check_regular(&file.metadata()?)?;
        let only = part.only.clone();
        let input = FfmpegInput { file, track: part.track, mix: Mix::One(only.clone()), seconds: part.seconds };
        Ok(Self { sound: SoundReader::open(input, First::Ffmpeg, INACTIVITY).await?, only })
    }

    /// Returns the next 16 kHz samples, usually at most two seconds; `None` at the end.
    ///
    /// # Errors
    /// Fails as [`super::decode::Decoder::next`] does, except that a file without a sample is no error.
    pub async fn next(&mut self) -> Result<Option<Vec<i16>>, DecodeError> {
        Ok(self.sound.next().await?.map(|planes| mix(planes, &self.only)))
    }

    /// Returns what was not read, once the sound has ended.
    pub fn unread(&self) -> &UnreadSound {
        self.sound.unread()
    }
}

/// Mixes the channels that count. A single one is mixed already.
fn mix(mut planes: Vec<Vec<i16>>, only: &[u32]) -> Vec<i16> {
    if planes.len() > 1 {
        let counts = |number: usize| only.is_empty() || only.iter().any(|one| *one as usize == number + 1);
        let counted = planes.into_iter().enumerate().filter(|(number, _)| counts(*number));
        planes = counted.map(|(_, plane)| plane).collect();
    }
    if planes.len() < 2 {
        return planes.pop().unwrap_or_default();
    }
    let length = planes.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |at: usize| planes.iter().map(|plane| i32::from(plane[at])).sum::<i32>() / planes.len() as i32;
    (0..length).map(|at| mean(at) as i16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_mixed_equally() {
        let planes = vec![vec![100, -100], vec![300, 300], vec![i16::MAX, i16::MIN]];
        assert_eq!(mix(planes.clone(), &[1, 2]), [200, 100]);
        assert_eq!(mix(planes.clone(), &[3]), [i16::MAX, i16::MIN]);
        assert_eq!(mix(planes, &[]), [11_055, -10_856]);
        assert_eq!(mix(vec![vec![7]], &[2]), [7], "ffmpeg has mixed it");
        assert_eq!(mix(Vec::new(), &[]), Vec::<i16>::new());
    }
}
