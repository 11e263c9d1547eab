//! Divides continuous speech into cues that keep a layout's limits, with the fewest bad breaks.

use super::layout::{Layout, millis};
use super::phrases::Boundary;
use super::piece::{Piece, count_words};
use super::rows::RowCounter;
use std::ops::Range;

/// A cue of more pieces is divided whatever its limits allow, so that the time stays in proportion to the text.
const MOST: usize = 300;

/// A silence of this many milliseconds makes any break between two words a good one.
const PAUSE: u64 = 500;

/// Returns the cues: consecutive ranges of the pieces. Each keeps the rows and the maximum duration, unless it is a
/// single piece. `until`: when the last one has to disappear, in milliseconds.
pub(super) fn divide(pieces: &[Piece], until: u64, layout: &Layout) -> Vec<Range<usize>> {
    let count = pieces.len();
    // For each number of pieces: the least cost of dividing them, and where their last cue begins.
    let mut best = vec![(u64::MAX, 0); count + 1];
    best[0] = (0, 0);
    for start in 0..count {
        let before = best[start].0;
        let mut cue = Candidate::new(&pieces[start..], layout);
        for end in start + 1..=count.min(start + MOST) {
            if !cue.add(&pieces[end - 1], layout) {
                break;
            }
            let next = pieces.get(end).map_or(until, |piece| piece.start);
            let cost = before.saturating_add(cue.cost(&pieces[start..end], next, end == count, layout));
            if cost < best[end].0 {
                best[end] = (cost, start);
            }
        }
    }
    let mut cues = Vec::new();
    let mut end = count;
    while end > 0 {
        cues.push(best[end].1..end);
        end = best[end].1;
    }
    cues.reverse();
    cues
}

/// A cue that grows piece by piece.
struct Candidate {
    start: u64,
    rows: RowCounter,
    pieces: usize,
    words: usize,
}

impl Candidate {
    fn new(pieces: &[Piece], layout: &Layout) -> Self {
        let start = pieces.first().map_or(0, |piece| piece.start);
        Self { start, rows: RowCounter::new(layout.row_limit()), pieces: 0, words: 0 }
    }

    /// Adds a piece; false if it does not fit any more. The first one always fits.
    fn add(&mut self, piece: &Piece, layout: &Layout) -> bool {
        self.rows.add(piece);
        self.pieces += 1;
        self.words += usize::from(piece.is_word());
        let too_long = piece.end.saturating_sub(self.start) > layout.longest()
            || layout.reading_time(self.rows.units, self.words) > layout.longest();
        self.pieces == 1 || (self.rows.rows <= layout.rows() && !too_long)
    }

    /// What it costs to show `cue` until `next`.
    fn cost(&self, cue: &[Piece], next: u64, is_last: bool, layout: &Layout) -> u64 {
        const EACH_CUE: u64 = 100;
        const HURRY: u64 = 300;
        let Some(last) = cue.last() else { return 0 };
        let break_after = if is_last { 0 } else { break_cost(last.after) };
        let pause = next.saturating_sub(last.end);
        let break_after = if pause >= PAUSE { break_after / 2 } else { break_after };
        let wanted = layout.wanted_time(self.rows.units, self.words);
        let room = next.saturating_sub(self.start).saturating_sub(millis(layout.gap.minimum));
        let missing = wanted.saturating_sub(room);
        // A break between two words costs less than a cue that cannot be read in time; one within a phrase costs more.
        let hurry = if missing == 0 { 0 } else { HURRY + missing * 400 / wanted.max(1) };
        let lone = self.pieces == 1 && last.after > Boundary::Sentence && last.is_word();
        let short = self.rows.units < layout.row_limit() / 3 && last.after > Boundary::Clause;
        EACH_CUE + break_after + hurry + if lone { 150 } else { 0 } + if short { 80 } else { 0 }
    }
}

fn break_cost(after: Boundary) -> u64 {
    match after {
        Boundary::Sentence => 0,
        Boundary::Clause => 30,
        Boundary::BeforePhrase => 70,
        Boundary::Words => 120,
        Boundary::WithinPhrase => 400,
    }
}

/// Whether the pieces can be one cue, whatever their times are.
pub(super) fn fits_one_cue(pieces: &[Piece], layout: &Layout) -> bool {
    let mut rows = RowCounter::new(layout.row_limit());
    pieces.iter().for_each(|piece| rows.add(piece));
    let is_readable = layout.reading_time(rows.units, count_words(pieces)) <= layout.longest();
    pieces.len() <= 1 || (pieces.len() <= MOST && rows.rows <= layout.rows() && is_readable)
}
