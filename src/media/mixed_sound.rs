//! Decodes one track of an open file to one channel, for looking at its sound as a whole.

use super::decode::{DecodeError, INACTIVITY, check_regular};
use super::ffmpeg::FfmpegInput;
use super::mix::Mix;
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
        let mix = Mix::One(part.only.clone());
        let input = FfmpegInput { file, track: part.track, mix, seconds: part.seconds };
        Ok(Self { sound: SoundReader::open(input, First::Ffmpeg, INACTIVITY).await? })
    }

    /// Returns the next 16 kHz samples, usually at most two seconds; `None` at the end.
    ///
    /// # Errors
    /// Fails as [`super::decode::Decoder::next`] does, except that a file without a sample is no error.
    pub async fn next(&mut self) -> Result<Option<Vec<i16>>, DecodeError> {
        Ok(self.sound.next().await?.and_then(|mut planes| planes.pop()))
    }

    /// Returns what was not read, once the sound has ended.
    pub fn unread(&self) -> &UnreadSound {
        self.sound.unread()
    }
}
