//! Which voices are one person's, and how certain that is.

use super::background::background;
use super::voice_model::VoiceModel;

/// So many of the background voices that are most like a voice say how alike other people sound.
const NEAREST: usize = 12;

/// The confidence from which on two voices count as one person's.
pub const SURE: f64 = 0.9;

/// The confidence grows with the score as the logistic function does, with these two numbers. They were fitted to the
/// voices that the background is made of (`cargo bench --bench voices`): a pair of one voice counted as much as all
/// pairs of different ones.
const SLOPE: f64 = 0.78;
const CENTRE: f64 = -0.69;

/// Compares voices.
pub struct VoiceComparison {
    background: Vec<VoiceModel>,
}

/// A voice with its place among the background voices.
pub struct PlacedVoice {
    model: VoiceModel,
    /// The mean likeness of the background voices that are most like it.
    mean: f64,
    /// Their standard deviation, above 0.
    spread: f64,
}

/// That a voice is a known one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VoiceMatch {
    /// The number of the known voice.
    pub known: usize,
    /// From [`SURE`] to 1: the probability that it is this person, if that was as likely as not before.
    pub confidence: f64,
}

impl Default for VoiceComparison {
    fn default() -> Self {
        Self { background: background() }
    }
}

impl VoiceComparison {
    /// Makes a comparison with other background voices, at least two.
    pub fn with_background(background: Vec<VoiceModel>) -> Self {
        Self { background }
    }

    pub fn place(&self, model: VoiceModel) -> PlacedVoice {
        let mut all: Vec<f64> = self.background.iter().map(|other| model.likeness(other)).collect();
        all.sort_unstable_by(|one, other| other.total_cmp(one));
        all.truncate(NEAREST);
        let count = all.len().max(1) as f64;
        let mean = all.iter().sum::<f64>() / count;
        let variance = all.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        PlacedVoice { model, mean, spread: variance.sqrt().max(1e-6) }
    }

    /// Matches each voice found with the known voice that is its person's, if that is certain. No two are the same.
    pub fn match_voices(&self, found: Vec<VoiceModel>, known: Vec<VoiceModel>) -> Vec<Option<VoiceMatch>> {
        one_to_one(&self.confidences(found, known))
    }

    /// Returns for each voice found the confidence that it is each of the known ones.
    pub fn confidences(&self, found: Vec<VoiceModel>, known: Vec<VoiceModel>) -> Vec<Vec<f64>> {
        let placed = |voices: Vec<VoiceModel>| voices.into_iter().map(|one| self.place(one)).collect::<Vec<_>>();
        let (found, known) = (placed(found), placed(known));
        found.iter().map(|one| known.iter().map(|other| one.confidence(other)).collect()).collect()
    }
}

impl PlacedVoice {
    /// Returns how much more alike two voices are than others are to them, in standard deviations.
    pub fn score(&self, other: &Self) -> f64 {
        let likeness = self.model.likeness(&other.model);
        0.5 * ((likeness - self.mean) / self.spread + (likeness - other.mean) / other.spread)
    }

    /// Returns the probability that both are one person's, if that was as likely as not before.
    pub fn confidence(&self, other: &Self) -> f64 {
        1.0 / (1.0 + (-SLOPE * (self.score(other) - CENTRE)).exp())
    }
}

/// Gives each row the column of its confidence, the most certain first; nothing below [`SURE`], and no column twice.
pub(super) fn one_to_one(confidences: &[Vec<f64>]) -> Vec<Option<VoiceMatch>> {
    let rows = confidences.iter().enumerate();
    let mut all: Vec<(usize, VoiceMatch)> = rows
        .flat_map(|(row, columns)| {
            columns
                .iter()
                .enumerate()
                .map(move |(known, confidence)| (row, VoiceMatch { known, confidence: *confidence }))
        })
        .filter(|(_, one)| one.confidence >= SURE)
        .collect();
    all.sort_by(|(_, one), (_, other)| other.confidence.total_cmp(&one.confidence));
    let mut matches: Vec<Option<VoiceMatch>> = vec![None; confidences.len()];
    for (row, one) in all {
        let is_taken = matches.iter().flatten().any(|other| other.known == one.known);
        if matches[row].is_none() && !is_taken {
            matches[row] = Some(one);
        }
    }
    matches
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::voice_model::tests::voice;
    use super::*;
    use proptest::prelude::*;

    /// A comparison with voices of the seeded generator.
    pub fn comparison() -> VoiceComparison {
        let kinds = (0..24_u8).map(|n| voice(100 + u64::from(n), 800, f32::from(n) * 0.05 - 0.6));
        VoiceComparison::with_background(kinds.collect())
    }

    #[test]
    fn a_known_voice_is_found_and_an_unknown_one_is_not() {
        let known = vec![voice(1, 900, 2.0), voice(2, 900, -2.0)];
        let found = vec![voice(3, 500, -2.0), voice(4, 500, 0.0), voice(5, 500, 2.0)];
        let matches = comparison().match_voices(found, known);
        let known: Vec<Option<usize>> = matches.iter().map(|one| one.map(|one| one.known)).collect();
        assert_eq!(known, [Some(1), None, Some(0)]);
        assert!(matches.iter().flatten().all(|one| (SURE..=1.0).contains(&one.confidence)));
    }

    #[test]
    fn of_two_voices_that_are_like_a_known_one_the_more_alike_gets_it() {
        let matches = one_to_one(&[vec![0.95, 0.91], vec![0.99, 0.2], vec![0.5, 0.89]]);
        let found: Vec<_> = matches.iter().map(|one| one.map(|one| (one.known, one.confidence))).collect();
        assert_eq!(found, [Some((1, 0.91)), Some((0, 0.99)), None]);
    }

    #[test]
    fn without_known_voices_nobody_is_known() {
        assert_eq!(VoiceComparison::default().match_voices(vec![voice(1, 400, 0.0)], Vec::new()), [None]);
        assert!(VoiceComparison::default().match_voices(Vec::new(), vec![voice(1, 400, 0.0)]).is_empty());
    }

    proptest! {
        #[test]
        fn nobody_is_two_and_no_two_are_one(
            confidences in proptest::collection::vec(proptest::collection::vec(0.0..=1.0, 4), 0..6),
        ) {
            let matches = one_to_one(&confidences);
            prop_assert_eq!(matches.len(), confidences.len());
            let mut known: Vec<usize> = matches.iter().flatten().map(|one| one.known).collect();
            prop_assert!(matches.iter().flatten().all(|one| one.confidence >= SURE));
            known.sort_unstable();
            let count = known.len();
            known.dedup();
            prop_assert_eq!(known.len(), count);
        }
    }
}
