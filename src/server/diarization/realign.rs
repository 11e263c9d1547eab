//! Gives each frame of speech to the speaker whose voice fits best, where changing the speaker has its price (Viterbi).

use super::clusters::Cluster;
use super::stretch::Stretch;
use crate::voice::gaussian::{FrameSums, Gaussian};

/// The price of another speaker within speech, in logarithms of a density: nobody speaks for a few frames only.
const CHANGE: f64 = 25.0;

/// The price after a frame without speech.
const CHANGE_AT_PAUSE: f64 = 7.5;

/// So many frames without speech in a row are a pause; in a shorter gap the speaker stays the same.
const PAUSE: usize = 30;

/// With more voices the borders stay where they are.
const MOST_VOICES: usize = 100;

/// The speaker of each frame of a stretch; `None` where nobody speaks.
pub type Labels = Vec<Option<u16>>;

/// Returns the labels that the clusters have from their pieces.
pub fn labels_of(clusters: &[Cluster], stretches: &[Stretch]) -> Vec<Labels> {
    let mut labels: Vec<Labels> = stretches.iter().map(|stretch| vec![None; stretch.cepstra.len()]).collect();
    for (speaker, cluster) in (0..).zip(clusters) {
        for piece in &cluster.pieces {
            labels[piece.stretch][piece.frames.clone()].fill(Some(speaker));
        }
    }
    labels
}

/// Moves the borders between speakers. A result in which one of them says nothing any more is dropped.
pub fn realign(labels: Vec<Labels>, count: usize, stretches: &[Stretch]) -> Vec<Labels> {
    // With very many voices, which are hardly people, the work would take longer than the recognition.
    if !(2..=MOST_VOICES).contains(&count) {
        return labels;
    }
    let Some(voices) = (0..count).map(|speaker| voice(speaker, &labels, stretches)).collect::<Option<Vec<_>>>() else {
        return labels;
    };
    let moved: Vec<Labels> = stretches.iter().map(|stretch| best_labels(stretch, &voices)).collect();
    let is_heard = |speaker: &usize| moved.iter().flatten().any(|label| label.map(usize::from) == Some(*speaker));
    if (0..count).all(|speaker| is_heard(&speaker)) { moved } else { labels }
}

fn voice(speaker: usize, labels: &[Labels], stretches: &[Stretch]) -> Option<Gaussian> {
    let frames = labels.iter().zip(stretches).flat_map(|(labels, stretch)| {
        let spoken = labels.iter().zip(&stretch.audible).zip(&stretch.cepstra);
        spoken.filter(|((label, audible), _)| **audible && label.map(usize::from) == Some(speaker)).map(|(_, one)| one)
    });
    let sums = FrameSums::of(frames);
    (sums.count > 0.0).then(|| sums.gaussian())
}

/// Returns the labels of a stretch whose frames fit best, all changes paid.
fn best_labels(stretch: &Stretch, voices: &[Gaussian]) -> Labels {
    let spoken: Vec<usize> = (0..stretch.cepstra.len()).filter(|at| stretch.audible[*at]).collect();
    let mut totals: Vec<f64> = vec![0.0; voices.len()];
    // For each frame and speaker, who spoke in the frame before.
    let mut before: Vec<Vec<u16>> = Vec::with_capacity(spoken.len());
    for (number, at) in spoken.iter().enumerate() {
        let gap = number.checked_sub(1).map_or(1, |last| at - spoken[last]);
        let price = if gap > PAUSE { CHANGE_AT_PAUSE } else { CHANGE };
        let best = (0..voices.len()).max_by(|one, other| totals[*one].total_cmp(&totals[*other])).unwrap_or(0);
        let changed = totals[best] - price;
        let came_from = |(speaker, total): (usize, &f64)| if changed > *total { best as u16 } else { speaker as u16 };
        before.push(totals.iter().enumerate().map(came_from).collect());
        for (total, voice) in totals.iter_mut().zip(voices) {
            *total = total.max(changed) + voice.log_density(&stretch.cepstra[*at]);
        }
    }
    let last = (0..voices.len()).max_by(|one, other| totals[*one].total_cmp(&totals[*other])).unwrap_or(0);
    trace_back(&spoken, &before, last as u16, stretch.cepstra.len())
}

fn trace_back(spoken: &[usize], before: &[Vec<u16>], last: u16, length: usize) -> Labels {
    let mut labels: Labels = vec![None; length];
    let mut speaker = last;
    let mut next: Option<usize> = None;
    for (at, came_from) in spoken.iter().zip(before).rev() {
        let end = next.filter(|next| next - at <= PAUSE).unwrap_or(at + 1);
        labels[*at..end].fill(Some(speaker));
        (speaker, next) = (came_from[usize::from(speaker)], Some(*at));
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voice::gaussian::tests::frames;

    fn stretch(parts: &[(usize, f32)]) -> Stretch {
        let cepstra: Vec<_> =
            parts.iter().enumerate().flat_map(|(n, (count, voice))| frames(n as u64, *count, *voice)).collect();
        Stretch { first: 0, audible: vec![true; cepstra.len()], cepstra }
    }

    #[test]
    fn a_border_moves_to_where_the_voice_changes() {
        let stretches = [stretch(&[(220, 0.0), (180, 3.0)])];
        let labels = [vec![Some(0); 150], vec![Some(1); 250]].concat();
        let moved = realign(vec![labels], 2, &stretches).remove(0);
        let border = moved.iter().position(|label| *label == Some(1)).unwrap();
        assert!(border.abs_diff(220) <= 2, "{border}");
        assert!(moved[border..].iter().all(|label| *label == Some(1)));
    }

    #[test]
    fn pauses_have_no_speaker_and_nobody_is_lost() {
        let mut one = stretch(&[(100, 0.0), (50, 0.0), (100, 3.0)]);
        one.audible[100..150].fill(false);
        one.audible[20..30].fill(false);
        let labels = [vec![Some(0); 100], vec![None; 50], vec![Some(1); 100]].concat();
        let moved = realign(vec![labels.clone()], 2, std::slice::from_ref(&one)).remove(0);
        assert_eq!(moved, labels);
        // A third speaker without a frame changes nothing.
        assert_eq!(realign(vec![labels.clone()], 3, std::slice::from_ref(&one)), [labels]);
    }
}
