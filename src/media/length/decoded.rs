//! How long the sound of a recording is once it is decoded: what a header says can be wrong.

use crate::media::decode::{DecodeError, SAMPLE_RATE};
use crate::media::mixed_sound::{MixedSound, SoundPart};
use std::fs::File;

/// Returns the seconds of sound in a track of an open file, by decoding all of it with ffmpeg. `track` is its number among
/// all tracks, from 0; `None`: the first track with sound. `declared` is the longest length in seconds that anything
/// gives: ffmpeg gets no more processor time than that can need.
///
/// # Errors
/// Fails as [`crate::media::decode::probe`] does, and if ffmpeg cannot read the file to its end.
pub async fn decoded_seconds(file: File, track: Option<u32>, declared: f64) -> Result<f64, DecodeError> {
    let part = SoundPart { track, only: Vec::new(), seconds: declared };
    let mut sound = MixedSound::open(file, &part).await?;
    let mut samples = 0;
    while let Some(piece) = sound.next().await? {
        samples += piece.len();
    }
    Ok(samples as f64 / f64::from(SAMPLE_RATE))
}
