//! The voice of one speaker, and how alike two of them are.

use super::gaussian::{ENTRIES, FrameSums, log_determinant};

/// The least frames of speech that a voice is made of: three seconds.
pub const LEAST_FRAMES: f64 = 300.0;

/// More frames than these, 25 s, count no more when two voices are compared: what is said then hardly matters.
const MOST_FRAMES: f64 = 2_500.0;

/// The voice of one speaker: 190 numbers, from which nothing that was said can be restored.
#[derive(Debug, Clone, PartialEq)]
pub struct VoiceModel {
    /// Frames of speech, at least [`LEAST_FRAMES`]; a second has 100.
    frames: f64,
    /// Row by row up to the diagonal; all are finite.
    covariance: Box<[f64; ENTRIES]>,
    log_determinant: f64,
}

impl VoiceModel {
    /// Makes a model of the frames of one speaker; `None` if there is too little speech.
    pub fn of(sums: &FrameSums) -> Option<Self> {
        (sums.count >= LEAST_FRAMES).then(|| Self::from_covariance(sums.count, &sums.covariance())).flatten()
    }

    /// Makes a model of stored numbers; `None` if no speech can have them.
    pub fn from_covariance(frames: f64, covariance: &[f64]) -> Option<Self> {
        /// No cepstrum is further from its mean.
        const MOST: f64 = 1e6;
        let covariance: [f64; ENTRIES] = covariance.try_into().ok()?;
        // Stored texts of numbers are read back with an error in their last digit.
        let covariance = covariance.map(|entry| f64::from(entry as f32));
        let is_possible = covariance.iter().all(|entry| entry.abs() < MOST);
        let has_enough = (LEAST_FRAMES..=1e12).contains(&frames);
        let log_determinant = log_determinant(&covariance);
        (is_possible && has_enough && log_determinant.is_finite()).then(|| Self {
            frames,
            covariance: Box::new(covariance),
            log_determinant,
        })
    }

    /// Returns the seconds of speech that it was made of.
    pub fn seconds(&self) -> f64 {
        self.frames / 100.0
    }

    /// Returns the numbers that [`Self::from_covariance`] reads, after the number of frames.
    pub fn covariance(&self) -> (f64, &[f64; ENTRIES]) {
        (self.frames, &self.covariance)
    }

    /// Returns the voice of somebody of whom there are two models of one recording.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let frames = self.frames + other.frames;
        let pooled = |(one, two): (&f64, &f64)| (self.frames * one + other.frames * two) / frames;
        let covariance: Vec<f64> = self.covariance.iter().zip(other.covariance.iter()).map(pooled).collect();
        Self::from_covariance(frames, &covariance).unwrap_or_else(|| self.clone())
    }

    /// Returns how alike the voices are, at most 0: the logarithm of the likelihood of one Gaussian against two, for
    /// each frame. It depends on what is said and on the noise, too: [`super::voice_match`] sets it against others.
    pub(super) fn likeness(&self, other: &Self) -> f64 {
        let [one, two] = [self.frames, other.frames].map(|frames| frames.min(MOST_FRAMES));
        let both = one + two;
        let mixed = |(one_entry, other_entry): (&f64, &f64)| (one * one_entry + two * other_entry) / both;
        let mut entries = self.covariance.iter().zip(other.covariance.iter()).map(mixed);
        let joined: [f64; ENTRIES] = std::array::from_fn(|_| entries.next().unwrap_or_default());
        let gain = both * log_determinant(&joined) - one * self.log_determinant - two * other.log_determinant;
        -0.5 * gain * both / (one * two)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::super::gaussian::tests::frames;
    use super::*;
    use proptest::prelude::*;

    /// A voice of the seeded generator: `kind` is the voice, `seed` what it says.
    pub fn voice(seed: u64, count: usize, kind: f32) -> VoiceModel {
        VoiceModel::of(&FrameSums::of(&frames(seed, count, kind))).unwrap()
    }

    #[test]
    fn a_voice_is_more_like_itself_than_like_others_and_a_microphone_changes_nothing() {
        let (one, same, other) = (voice(1, 800, 0.0), voice(2, 400, 0.0), voice(3, 400, 0.4));
        assert!(one.likeness(&same) > one.likeness(&other));
        assert!((one.likeness(&same) - same.likeness(&one)).abs() < 1e-9);
        assert!(one.likeness(&one).abs() < 1e-9);
        let shifted: Vec<_> = frames(2, 400, 0.0).into_iter().map(|frame| frame.map(|value| value + 3.0)).collect();
        let shifted = VoiceModel::of(&FrameSums::of(&shifted)).unwrap();
        assert!((one.likeness(&shifted) - one.likeness(&same)).abs() < 1e-3);
    }

    #[test]
    fn two_models_of_one_person_are_one_of_all_that_was_said() {
        let (one, other) = (voice(1, 800, 0.0), voice(2, 400, 0.0));
        let both = one.join(&other);
        assert_eq!(both.seconds(), 12.0);
        let near = |(joined, (one, other)): (&f64, (&f64, &f64))| (joined - (2.0 * one + other) / 3.0).abs() < 1e-3;
        assert!(both.covariance.iter().zip(one.covariance.iter().zip(other.covariance.iter())).all(near));
    }

    #[test]
    fn too_little_speech_is_no_voice() {
        assert_eq!(VoiceModel::of(&FrameSums::of(&frames(1, 299, 0.0))), None);
        assert!(VoiceModel::of(&FrameSums::of(&frames(1, 300, 0.0))).is_some());
        assert_eq!(VoiceModel::of(&FrameSums::of(&[])), None);
    }

    proptest! {
        #[test]
        fn whatever_is_stored_is_a_voice_that_can_be_compared_or_none(
            frames in prop_oneof![Just(500.0), any::<f64>()],
            covariance in prop_oneof![
                proptest::collection::vec(any::<f64>(), 0..200),
                proptest::collection::vec(-1e5..1e5, ENTRIES),
            ],
        ) {
            if let Some(read) = VoiceModel::from_covariance(frames, &covariance) {
                prop_assert!(read.likeness(&voice(1, 300, 0.0)).is_finite());
                let (frames, covariance) = read.covariance();
                prop_assert_eq!(&VoiceModel::from_covariance(frames, covariance), &Some(read.clone()));
            }
        }
    }
}
