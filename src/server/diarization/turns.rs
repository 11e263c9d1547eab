//! Cuts speech where the voice seems to change.

use super::stretch::Stretch;
use crate::voice::gaussian::{FrameSums, Measured};
use std::ops::Range;

/// A voice is compared with that of up to 2 s before and after.
const WINDOW: usize = 200;
/// The least frames on each side of a change.
const EDGE: usize = 60;
/// Changes are looked for every 100 ms.
const STEP: usize = 10;
/// The least audible frames on each side of a comparison.
const LEAST_AUDIBLE: usize = 40;
/// A pause of 300 ms is a cut.
const PAUSE: usize = 30;
/// A longer piece is cut into equal ones: two people who speak alternately without a pause may sound like a third.
const LONGEST: usize = 400;
/// A shorter stretch says too little of a voice.
const SHORTEST: usize = 20;
/// The cost of a number of a Gaussian, as the method has it.
const PENALTY: f64 = 1.0;

/// Returns the pieces of a stretch in each of which probably only one voice speaks, in order; frames are counted within
/// the stretch.
pub fn pieces(frames: &Stretch) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    for speech in stretches_of_speech(&frames.audible) {
        let mut cuts = vec![speech.start];
        cuts.extend(changes(frames, &speech));
        cuts.push(speech.end);
        for pair in cuts.windows(2) {
            pieces.extend(equal_parts(pair[0]..pair[1]));
        }
    }
    pieces
}

/// Returns what lies between pauses.
fn stretches_of_speech(audible: &[bool]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for at in audible.iter().enumerate().filter(|(_, audible)| **audible).map(|(at, _)| at) {
        match found.last_mut() {
            Some(last) if at - last.end < PAUSE => last.end = at + 1,
            _ => found.push(at..at + 1),
        }
    }
    found.retain(|speech| speech.len() >= SHORTEST);
    found
}

/// Returns the frames at which the voices before and after differ most, if they differ.
fn changes(frames: &Stretch, speech: &Range<usize>) -> Vec<usize> {
    let measured = |range: Range<usize>| {
        let sums = FrameSums::of(frames.audible_in(range));
        (sums.count >= LEAST_AUDIBLE as f64).then(|| Measured::from(sums))
    };
    let candidates = (speech.start + EDGE..speech.end.saturating_sub(EDGE)).step_by(STEP);
    let scored: Vec<(usize, f64)> = candidates
        .filter_map(|at| {
            let before = measured(at.saturating_sub(WINDOW).max(speech.start)..at)?;
            let after = measured(at..(at + WINDOW).min(speech.end))?;
            Some((at, before.difference(&after, PENALTY)))
        })
        .collect();
    let is_peak = |(at, score): &(usize, f64)| {
        let around = scored.iter().filter(|(other, _)| other.abs_diff(*at) <= EDGE);
        *score > 0.0 && around.clone().all(|(_, other)| other <= score)
    };
    scored.iter().filter(|one| is_peak(one)).map(|(at, _)| *at).collect()
}

fn equal_parts(piece: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let parts = ((piece.len() + LONGEST / 2) / LONGEST).max(1);
    let cut = move |number: usize| piece.start + piece.len() * number / parts;
    (0..parts).map(move |number| cut(number)..cut(number + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voice::gaussian::tests::frames;

    fn voices(parts: &[(usize, f32)]) -> Stretch {
        let cepstra: Vec<_> =
            parts.iter().enumerate().flat_map(|(n, (count, voice))| frames(n as u64, *count, *voice)).collect();
        let audible = vec![true; cepstra.len()];
        Stretch { first: 0, cepstra, audible }
    }

    #[test]
    fn a_change_is_found_where_it_is() {
        let found = pieces(&voices(&[(300, 0.0), (250, 2.0)]));
        assert!(found.iter().any(|piece| piece.start.abs_diff(300) <= STEP), "{found:?}");
        assert!(found.windows(2).all(|pair| pair[0].end == pair[1].start), "{found:?}");
        assert!(found.iter().all(|piece| piece.len() <= LONGEST + LONGEST / 2), "{found:?}");
    }

    #[test]
    fn pauses_are_cuts_and_clicks_are_none() {
        let mut stretch = voices(&[(140, 0.0), (140, 0.0), (5, 0.0)]);
        for at in (140..170).chain(275..282) {
            stretch.audible[at] = false;
        }
        assert_eq!(pieces(&stretch), [0..140, 170..285]);
        stretch.audible[0..240].fill(false);
        stretch.audible[260..].fill(false);
        assert_eq!((pieces(&stretch).len(), pieces(&stretch)[0].clone()), (1, 240..260));
        assert!(pieces(&Stretch::default()).is_empty());
    }
}
