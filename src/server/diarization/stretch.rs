//! A stretch of sound, of which it is known which frames are of a voice.

use crate::voice::cepstrum::Cepstrum;
use crate::voice::voice_frames::VoiceFrames;
use std::ops::Range;

/// Frames that are so many decibels softer than the loud ones of the recording are of no voice: they are echo, breath or
/// background.
const AUDIBLE: f32 = 25.0;

/// The share of the frames that are louder than the level that [`AUDIBLE`] counts from.
const LOUD: f64 = 0.05;

#[derive(Debug, Default)]
pub struct Stretch {
    /// The number of the first frame in the recording.
    pub first: usize,
    pub cepstra: Vec<Cepstrum>,
    /// Whether the frame is loud enough to be of a voice.
    pub audible: Vec<bool>,
}

impl Stretch {
    /// Returns the audible frames among those with these numbers within the stretch.
    pub fn audible_in(&self, range: Range<usize>) -> impl Iterator<Item = &Cepstrum> {
        self.cepstra[range.clone()]
            .iter()
            .zip(&self.audible[range])
            .filter(|(_, audible)| **audible)
            .map(|(one, _)| one)
    }
}

/// Finds the audible frames of a recording.
pub fn stretches(all: Vec<VoiceFrames>) -> Vec<Stretch> {
    let mut levels: Vec<f32> = all.iter().flat_map(|stretch| stretch.frames.iter().map(|(_, level)| *level)).collect();
    levels.sort_unstable_by(|one, other| other.total_cmp(one));
    let loud = levels.get((levels.len() as f64 * LOUD) as usize).copied().unwrap_or_default();
    let one = |VoiceFrames { first, frames }: VoiceFrames| Stretch {
        first,
        audible: frames.iter().map(|(_, level)| *level > loud - AUDIBLE).collect(),
        cepstra: frames.into_iter().map(|(cepstrum, _)| cepstrum).collect(),
    };
    all.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_much_softer_than_the_voices_is_not_audible() {
        let stretch = |first, levels: &[f32]| VoiceFrames {
            first,
            frames: levels.iter().map(|level| (Cepstrum::default(), *level)).collect(),
        };
        let found = stretches(vec![stretch(0, &[60.0, 58.0, 30.0]), stretch(9, &[33.0, 36.0])]);
        let audible: Vec<&[bool]> = found.iter().map(|stretch| stretch.audible.as_slice()).collect();
        assert_eq!(audible, [&[true, true, false][..], &[false, true]]);
        assert_eq!((found[1].first, found[1].audible_in(0..2).count()), (9, 1));
        assert!(stretches(Vec::new()).is_empty());
    }
}
