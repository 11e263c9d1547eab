//! The layout by published rules: cues at phrases, one speaker a cue, times that leave enough to read.

use super::cue::Cue;
use super::layout::Layout;
use super::piece::{Piece, count_words, mark_boundaries, row_text, row_width};
use super::timing::{CueSpan, Timed, separate, settle};
use super::{rows, segment, timed_tokens};
use crate::domain::transcript::{Transcript, Utterance};
use std::time::Duration;

/// Speech of one speaker continues in the same cue after a shorter silence, in milliseconds. The BBC lets a caption
/// lead or hang by at most 1.5 s.
const TOGETHER: u64 = 1500;

/// See [`super::lay_out`].
pub(super) fn lay_out(transcript: &Transcript, layout: &Layout) -> Vec<Cue> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut run = Run::default();
    let mut after = 0.0;
    for utterance in &transcript.utterances {
        let tokens = timed_tokens::pieces(utterance, after);
        let Some(last) = tokens.last() else { continue };
        after = last.end;
        let pieces: Vec<Piece> = tokens.into_iter().map(|token| Piece::of(token, layout)).collect();
        if !run.continues_with(utterance, &pieces) {
            let next = pieces.first().map_or(u64::MAX, |piece| piece.start);
            std::mem::take(&mut run).divide(next, layout, &mut drafts);
        }
        run.add(utterance, pieces, layout, &mut drafts);
    }
    run.divide(u64::MAX, layout, &mut drafts);
    // The utterances of several channels may come channel by channel.
    drafts.sort_by_key(|draft| draft.span.start);
    separate(&mut drafts);
    settle(&mut drafts, layout);
    drafts.into_iter().map(Draft::into_cue).collect()
}

/// Speech of one speaker without a long silence.
#[derive(Default)]
struct Run {
    speaker: Option<u32>,
    channel: u32,
    pieces: Vec<Piece>,
}

impl Run {
    fn continues_with(&self, utterance: &Utterance, pieces: &[Piece]) -> bool {
        let (Some(last), Some(first)) = (self.pieces.last(), pieces.first()) else { return self.pieces.is_empty() };
        let same = self.speaker == utterance.speaker && self.channel == utterance.channel;
        same && first.start >= last.end && first.start - last.end < TOGETHER
    }

    /// Adds an utterance. A long silence within it ends the run.
    fn add(&mut self, utterance: &Utterance, pieces: Vec<Piece>, layout: &Layout, drafts: &mut Vec<Draft>) {
        (self.speaker, self.channel) = (utterance.speaker, utterance.channel);
        for piece in pieces {
            if self.pieces.last().is_some_and(|last| piece.start.saturating_sub(last.end) >= TOGETHER) {
                let next = Self { pieces: Vec::new(), ..*self };
                std::mem::replace(self, next).divide(piece.start, layout, drafts);
            }
            self.pieces.push(piece);
        }
    }

    /// Divides the speech into cues. `next`: when somebody speaks again, in milliseconds; earlier than the end where
    /// two people speak at once, or on another channel.
    fn divide(mut self, next: u64, layout: &Layout, drafts: &mut Vec<Draft>) {
        mark_boundaries(&mut self.pieces, layout);
        let room = |end: u64| next.checked_sub(end).map_or(TOGETHER, |room| room.min(TOGETHER));
        let until = self.pieces.last().map_or(0, |last| last.end + room(last.end));
        for cue in segment::divide(&self.pieces, until, layout) {
            drafts.push(Draft::of(&self.pieces[cue], self.speaker, layout));
        }
    }
}

/// A cue whose times are not final.
struct Draft {
    span: CueSpan,
    rows: Vec<String>,
    speaker: Option<u32>,
}

impl Draft {
    fn of(pieces: &[Piece], speaker: Option<u32>, layout: &Layout) -> Self {
        let rows = rows::divide(pieces, layout);
        let units = rows.iter().map(|row| row_width(&pieces[row.clone()])).sum();
        let rows = rows.into_iter().map(|row| row_text(&pieces[row])).collect();
        let (start, end) = (pieces.first().map(|p| p.start), pieces.last().map(|p| p.end));
        let (start, end) = (start.unwrap_or_default(), end.unwrap_or_default());
        Self { span: CueSpan { start, end, units, words: count_words(pieces) }, rows, speaker }
    }

    fn into_cue(self) -> Cue {
        let (start, end) = (Duration::from_millis(self.span.start), Duration::from_millis(self.span.end));
        Cue { start, end, rows: self.rows, speaker: self.speaker }
    }
}

impl Timed for Draft {
    fn span(&mut self) -> &mut CueSpan {
        &mut self.span
    }
}

#[cfg(test)]
pub(super) mod tests;
