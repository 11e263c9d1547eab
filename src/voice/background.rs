//! The background voices that a score is set against: `background.bin` has the covariances of 30 voices of recordings in
//! 13 languages. `background.md` names them with their licences.

use super::gaussian::ENTRIES;
use super::voice_model::VoiceModel;

/// Numbers of 4 bytes, the lowest byte first: for each voice its covariance.
const NUMBERS: &[u8] = include_bytes!("background.bin");

/// What a background voice counts for: more frames than are counted in a comparison.
const FRAMES: f64 = 10_000.0;

/// Returns the background voices.
pub(super) fn background() -> Vec<VoiceModel> {
    let number = |bytes: &[u8]| bytes.try_into().map_or(f64::NAN, |bytes| f64::from(f32::from_le_bytes(bytes)));
    let voices = NUMBERS.chunks_exact(4 * ENTRIES).filter_map(|voice| {
        let covariance: Vec<f64> = voice.chunks_exact(4).map(number).collect();
        VoiceModel::from_covariance(FRAMES, &covariance)
    });
    voices.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_background_voices_can_be_read() {
        assert_eq!((NUMBERS.len() % (4 * ENTRIES), background().len()), (0, NUMBERS.len() / (4 * ENTRIES)));
        assert!(background().len() >= 20);
    }
}
