//! Joins pieces of speech of the same voice, the most similar ones first.

use super::speakers::SpeakerHints;
use super::stretch::Stretch;
use crate::voice::gaussian::{FrameSums, Measured};
use std::ops::Range;

/// The cost of a number of a Gaussian, for [`Measured::difference`]. This and [`DRIFT`] were chosen on mixtures of
/// synthetic voices and one reader; docs/explanation/accuracy.md has what they reach elsewhere.
const PENALTY: f64 = 2.0;

/// How much two parts of the same voice differ for each frame: people say other words, and move.
const DRIFT: f64 = 2.0;

/// The least audible frames of a piece, half a second; a shorter one gets its speaker when the borders are moved.
const LEAST_FRAMES: f64 = 50.0;

/// So many pieces, about ten minutes, are joined first, and then what they were joined to: the work grows with the square.
const BLOCK: usize = 400;

/// The most clusters that a block is joined to.
const MOST_OF_BLOCK: usize = 100;

/// A piece of a stretch of sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoicePiece {
    /// The number of the stretch.
    pub stretch: usize,
    /// Frames within the stretch.
    pub frames: Range<usize>,
}

/// Pieces of one voice.
#[derive(Clone)]
pub struct Cluster {
    pub pieces: Vec<VoicePiece>,
    measured: Measured,
}

impl Cluster {
    /// Makes a cluster of one piece; `None` if it has too few audible frames.
    pub fn of(piece: VoicePiece, stretches: &[Stretch]) -> Option<Self> {
        let sums = FrameSums::of(stretches[piece.stretch].audible_in(piece.frames.clone()));
        (sums.count >= LEAST_FRAMES).then(|| Self { pieces: vec![piece], measured: sums.into() })
    }

    /// Returns how different the voices are; below 0 if they are probably one.
    fn difference(&self, other: &Self) -> f64 {
        let [one, two] = [self.measured.sums.count, other.measured.sums.count];
        self.measured.difference(&other.measured, PENALTY) - DRIFT * one * two / (one + two)
    }

    fn absorb(&mut self, other: Self) {
        self.measured = self.measured.join(&other.measured);
        self.pieces.extend(other.pieces);
    }
}

/// Joins the clusters of the same voice. The result has as many as the hints say, if there are as many pieces.
pub fn join(mut clusters: Vec<Cluster>, hints: SpeakerHints) -> Vec<Cluster> {
    // A block may have as many speakers as all of the recording. It is always made much smaller, so that this ends.
    let least = hints.exact.or(hints.least).map(|least| least.min(MOST_OF_BLOCK));
    let in_block = SpeakerHints { exact: None, least, most: Some(MOST_OF_BLOCK) };
    while clusters.len() > BLOCK {
        let mut rest = clusters.into_iter().peekable();
        clusters = Vec::new();
        while rest.peek().is_some() {
            clusters.extend(join_block(rest.by_ref().take(BLOCK).collect(), in_block));
        }
    }
    join_block(clusters, hints)
}

fn join_block(mut clusters: Vec<Cluster>, hints: SpeakerHints) -> Vec<Cluster> {
    let mut differences: Vec<Vec<f64>> = clusters
        .iter()
        .enumerate()
        .map(|(at, cluster)| clusters[..at].iter().map(|before| cluster.difference(before)).collect())
        .collect();
    while let Some((one, other, difference)) = most_similar(&differences) {
        if !hints.joins(clusters.len(), difference) {
            break;
        }
        // The later one goes into the earlier one, so that the order stays that of their first pieces.
        let absorbed = clusters.remove(other);
        differences.remove(other);
        for row in &mut differences[other..] {
            row.remove(other);
        }
        clusters[one].absorb(absorbed);
        for at in (0..clusters.len()).filter(|at| *at != one) {
            differences[at.max(one)][at.min(one)] = clusters[one].difference(&clusters[at]);
        }
    }
    clusters
}

/// Returns the two most similar clusters, the earlier one first, and their difference.
fn most_similar(differences: &[Vec<f64>]) -> Option<(usize, usize, f64)> {
    let all = differences.iter().enumerate().flat_map(|(later, row)| {
        row.iter().enumerate().map(move |(earlier, difference)| (earlier, later, *difference))
    });
    all.min_by(|one, other| one.2.total_cmp(&other.2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voice::gaussian::tests::frames;

    /// Pieces of 100 frames of these voices.
    fn clusters(voices: &[f32]) -> Vec<Cluster> {
        let stretch = |(number, voice): (usize, &f32)| Stretch {
            first: number * 100,
            cepstra: frames(number as u64, 100, *voice),
            audible: vec![true; 100],
        };
        let stretches: Vec<Stretch> = voices.iter().enumerate().map(stretch).collect();
        let piece = |stretch| Cluster::of(VoicePiece { stretch, frames: 0..100 }, &stretches);
        (0..voices.len()).filter_map(piece).collect()
    }

    fn joined(voices: &[f32], hints: SpeakerHints) -> Vec<Vec<usize>> {
        let clusters = join(clusters(voices), hints);
        let numbers = |cluster: Cluster| {
            let mut numbers: Vec<usize> = cluster.pieces.iter().map(|piece| piece.stretch).collect();
            numbers.sort_unstable();
            numbers
        };
        clusters.into_iter().map(numbers).collect()
    }

    #[test]
    fn equal_voices_are_joined_and_hints_count() {
        let voices = [0.0, 2.0, 0.0, 2.0, -2.0, 0.0];
        let all = SpeakerHints::default();
        assert_eq!(joined(&voices, all), [vec![0, 2, 5], vec![1, 3], vec![4]]);
        let most = SpeakerHints { most: Some(2), ..all };
        assert_eq!(joined(&voices, most).len(), 2);
        let exact = SpeakerHints { exact: Some(4), ..all };
        assert_eq!(joined(&voices, exact).len(), 4);
        let least = SpeakerHints { least: Some(5), ..all };
        assert_eq!(joined(&voices, least).len(), 5);
        assert_eq!(joined(&[0.0], SpeakerHints { exact: Some(3), ..all }), [[0]]);
        assert_eq!(joined(&[], all), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn a_long_recording_is_joined_block_by_block() {
        let voices: Vec<f32> = (0..900).map(|number| if number % 3 == 0 { 0.0 } else { 2.0 }).collect();
        let found = joined(&voices, SpeakerHints::default());
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [300, 600]);
        let many = SpeakerHints { exact: Some(900), ..SpeakerHints::default() };
        assert!(joined(&voices, many).len() < BLOCK, "a hint may be anything");
    }
}
