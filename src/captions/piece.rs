//! A text as pieces that no break may divide, with what the division needs to know of each.

use super::layout::{Breaks, Layout};
use super::phrases::{Boundary, boundary};
use super::timed_tokens::TimedToken;

/// A word, or characters of a script without spaces that stay together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    /// As it is shown.
    pub text: String,
    /// As it is written, with markup; `None`: as it is shown.
    pub written: Option<String>,
    /// Its length in units of the layout.
    pub width: u32,
    /// Whether a space precedes it within a row.
    pub spaced: bool,
    /// In milliseconds.
    pub start: u64,
    /// In milliseconds; never before `start`.
    pub end: u64,
    /// How good it is to break after it.
    pub after: Boundary,
}

impl Piece {
    pub fn of(token: TimedToken, layout: &Layout) -> Self {
        let ms = |seconds: f64| (seconds * 1000.0).round() as u64;
        let width = layout.unit.measure(&token.text);
        let (start, end) = (ms(token.start), ms(token.end));
        Self { width, written: None, spaced: token.spaced, start, end, after: Boundary::Sentence, text: token.text }
    }

    /// Whether a word that is said begins here.
    pub fn is_word(&self) -> bool {
        self.spaced && self.text.chars().any(char::is_alphanumeric)
    }

    fn written(&self) -> &str {
        self.written.as_deref().unwrap_or(&self.text)
    }
}

/// Says of each piece how good it is to break after it. After the last one a text ends.
pub(super) fn mark_boundaries(pieces: &mut [Piece], layout: &Layout) {
    let english = layout.breaks == Breaks::Phrases { english: true };
    for i in 1..pieces.len() {
        let (left, right) = pieces.split_at_mut(i);
        if let (Some(left), Some(right)) = (left.last_mut(), right.first()) {
            left.after = boundary(&left.text, &right.text, english);
        }
    }
}

/// Returns the number of words.
pub(super) fn count_words(pieces: &[Piece]) -> usize {
    pieces.iter().filter(|piece| piece.is_word()).count()
}

/// Returns the length of the pieces in one row, in units.
pub(super) fn row_width(pieces: &[Piece]) -> u32 {
    let with_spaces: u32 = pieces.iter().map(|piece| piece.width + u32::from(piece.spaced)).sum();
    with_spaces - pieces.first().map_or(0, |piece| u32::from(piece.spaced))
}

/// Returns the pieces as the text of one row, as it is written.
pub(super) fn row_text(pieces: &[Piece]) -> String {
    let mut row = String::new();
    for piece in pieces {
        if piece.spaced && !row.is_empty() {
            row.push(' ');
        }
        row.push_str(piece.written());
    }
    row
}
