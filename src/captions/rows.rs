//! Divides the text of a cue into rows: as few as hold it, broken at phrases, of about equal length, none with a lone
//! word. One row is kept where one is enough (Netflix: "text should usually be kept to one line").

use super::layout::Layout;
use super::phrases::Boundary;
use super::piece::{Piece, row_width};
use std::ops::Range;

/// Counts the rows that pieces need if each row is filled as far as possible.
pub(super) struct RowCounter {
    limit: u32,
    /// The rows so far.
    pub rows: usize,
    column: u32,
    /// The units of all rows so far.
    pub units: u32,
}

impl RowCounter {
    pub fn new(limit: u32) -> Self {
        Self { limit, rows: 0, column: 0, units: 0 }
    }

    /// Adds a piece. A piece longer than a row gets a row of its own.
    pub fn add(&mut self, piece: &Piece) {
        let space = u32::from(piece.spaced);
        if self.rows == 0 || self.column.saturating_add(piece.width + space) > self.limit {
            (self.rows, self.column) = (self.rows + 1, piece.width);
            self.units = self.units.saturating_add(piece.width);
        } else {
            self.column += piece.width + space;
            self.units = self.units.saturating_add(piece.width + space);
        }
    }
}

/// Returns the number of rows that the pieces need.
pub(super) fn rows_needed(pieces: &[Piece], layout: &Layout) -> usize {
    let mut counter = RowCounter::new(layout.row_limit());
    pieces.iter().for_each(|piece| counter.add(piece));
    counter.rows
}

/// Returns the rows of a cue: consecutive ranges of the pieces. The time grows with the square of the pieces of one
/// cue, which its limits bound.
pub(super) fn divide(pieces: &[Piece], layout: &Layout) -> Vec<Range<usize>> {
    let limit = layout.row_limit();
    let rows = rows_needed(pieces, layout);
    if rows < 2 || pieces.len() > MOST {
        return fill(pieces, limit);
    }
    best(pieces, rows, limit).unwrap_or_else(|| fill(pieces, limit))
}

/// A text of more pieces is filled row by row: only one without width, or a limit that nobody sets, has so many.
const MOST: usize = 300;

/// Fills each row as far as possible.
fn fill(pieces: &[Piece], limit: u32) -> Vec<Range<usize>> {
    let mut counter = RowCounter::new(limit);
    let mut rows: Vec<Range<usize>> = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        counter.add(piece);
        let is_new = counter.rows > rows.len();
        match rows.last_mut() {
            Some(row) if !is_new => row.end = i + 1,
            _ => rows.push(i..i + 1),
        }
    }
    rows
}

/// Returns the division into exactly this many rows that costs least; `None` if there is none.
fn best(pieces: &[Piece], rows: usize, limit: u32) -> Option<Vec<Range<usize>>> {
    let count = pieces.len();
    let ideal = row_width(pieces) / u32::try_from(rows).unwrap_or(u32::MAX).max(1);
    // For each number of rows and of pieces in them: the least cost, and where its last row begins.
    let mut table = vec![vec![None::<(u64, usize)>; count + 1]; rows + 1];
    table[0][0] = Some((0, 0));
    for row in 1..=rows {
        for start in row - 1..count {
            let Some((before, _)) = table[row - 1][start] else { continue };
            let mut counter = RowCounter::new(limit);
            for end in start + 1..=count {
                counter.add(&pieces[end - 1]);
                if counter.rows > 1 {
                    break;
                }
                let cost = before + row_cost(&pieces[start..end], counter.units, ideal, end == count);
                if table[row][end].is_none_or(|(least, _)| cost < least) {
                    table[row][end] = Some((cost, start));
                }
            }
        }
    }
    let mut end = count;
    let mut ranges = Vec::with_capacity(rows);
    for row in (1..=rows).rev() {
        let (_, start) = table[row][end]?;
        ranges.push(start..end);
        end = start;
    }
    ranges.reverse();
    Some(ranges)
}

/// What a row costs: the square of its distance from the ideal length in percent of that, and where it ends.
fn row_cost(row: &[Piece], width: u32, ideal: u32, is_last: bool) -> u64 {
    let off = u64::from(width.abs_diff(ideal)) * 100 / u64::from(ideal.max(1));
    let lone = if row.len() == 1 && row.iter().all(Piece::is_word) { 3000 } else { 0 };
    let end = match row.last().map(|piece| piece.after) {
        _ if is_last => 0,
        Some(Boundary::Sentence) | None => 0,
        Some(Boundary::Clause) => 200,
        Some(Boundary::BeforePhrase) => 500,
        Some(Boundary::Words) => 900,
        Some(Boundary::WithinPhrase) => 4000,
    };
    off.min(1000).pow(2) + lone + end
}

#[cfg(test)]
mod tests {
    use super::super::guided::tests::{layout, pieces};
    use super::super::piece::row_text;
    use super::*;
    use crate::captions::Profile;

    fn rows(text: &str, profile: Profile, language: &str) -> Vec<String> {
        let layout = layout(profile, language);
        let pieces = pieces(text, &layout);
        divide(&pieces, &layout).into_iter().map(|row| row_text(&pieces[row])).collect()
    }

    #[test]
    fn rows_break_at_phrases() {
        let netflix = |text| rows(text, Profile::Netflix, "en");
        assert_eq!(
            netflix("We had no idea that it was raining outside."),
            ["We had no idea", "that it was raining outside."]
        );
        assert_eq!(
            netflix("He would not tell me where he went, but I knew it was the theatre."),
            ["He would not tell me where he went,", "but I knew it was the theatre."]
        );
        assert_eq!(netflix("It fits into one row as it is."), ["It fits into one row as it is."]);
    }

    #[test]
    fn no_row_has_a_lone_word_if_another_division_fits() {
        let shown = rows("This sentence would just leave one word alone.", Profile::Netflix, "en");
        assert!(shown.iter().all(|row| row.contains(' ')), "{shown:?}");
    }

    #[test]
    fn japanese_rows_hold_13_full_width_characters() {
        let shown = rows("これは日本語の字幕です。十三文字で折り返します。", Profile::Netflix, "ja");
        assert_eq!(shown, ["これは日本語の字幕です。", "十三文字で折り返します。"]);
    }

    #[test]
    fn right_to_left_text_stays_in_logical_order() {
        let text = "שלום לכולם, זהו משפט ארוך מאוד שנכתב מימין לשמאל.";
        let shown = rows(text, Profile::Netflix, "he");
        assert_eq!(shown.join(" "), text, "no marks are added");
        assert_eq!(shown.len(), 2);
    }
}
