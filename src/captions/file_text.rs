//! The texts of a caption file, as they are shown and measured.

use super::check::{CaptionRule, words_of};
use super::layout::{Breaks, Layout};
use super::parse::{CaptionFile, CaptionFormat, FileCue, atoms, is_closing};
use super::phrases::{Boundary, divides_phrase};
use super::piece::{Piece, mark_boundaries, row_text, row_width};
use super::rows;
use super::speakers::{RowSpeakers, read_speakers};
use super::timed_tokens::{breaks_anywhere, separates, stay_together};

/// The text of a cue.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FileText {
    pub line: usize,
    /// In milliseconds.
    pub start: u64,
    pub end: u64,
    /// As they are shown; none is blank.
    pub rows: Vec<String>,
    /// Who speaks in each row.
    pub speakers: Vec<RowSpeakers>,
    /// The length of all rows in units of the layout.
    pub units: u32,
    pub words: usize,
}

impl FileText {
    pub fn of(file: &CaptionFile, layout: &Layout) -> Vec<Self> {
        file.cues.iter().map(|cue| Self::of_cue(cue, file, layout)).collect()
    }

    fn of_cue(cue: &FileCue, file: &CaptionFile, layout: &Layout) -> Self {
        let speakers = read_speakers(&cue.rows, file.format);
        let rows = file.shown_rows(cue).into_iter().zip(speakers);
        let (rows, speakers): (Vec<_>, Vec<_>) = rows.filter(|(row, _)| !row.trim().is_empty()).unzip();
        let units = units_of(&rows, layout);
        let words = words_of(&rows);
        Self { line: cue.line, start: cue.start, end: cue.end, rows, speakers, units, words }
    }
}

pub(super) fn units_of(rows: &[String], layout: &Layout) -> u32 {
    rows.iter().fold(0, |sum: u32, row| sum.saturating_add(layout.unit.measure(row)))
}

/// Returns the rules of rows that are worse than need be: a line of one word, lines of very different length, a line
/// that ends within a phrase. Only what the layout's own division avoids is a fault.
pub(super) fn avoidable_faults(rows: &[String], layout: &Layout) -> Vec<CaptionRule> {
    let widths: Vec<u32> = rows.iter().map(|row| layout.unit.measure(row)).collect();
    let words: Vec<usize> = rows.iter().map(|row| row.split_whitespace().count()).collect();
    let suspect = fault_of(&widths, &words);
    let divided = divided_phrases(rows, layout);
    if suspect.is_none() && divided == 0 {
        return Vec::new();
    }
    // Times do not matter for the division of one cue into rows.
    let pieces = pieces(rows, 0, 0, CaptionFormat::Ttml, layout);
    let best = rows::divide(&pieces, layout);
    let widths: Vec<u32> = best.iter().map(|row| row_width(&pieces[row.clone()])).collect();
    let words_in = |row: &[Piece]| row.iter().enumerate().filter(|(i, piece)| *i == 0 || piece.spaced).count();
    let words: Vec<usize> = best.iter().map(|row| words_in(&pieces[row.clone()])).collect();
    let suspect = suspect.filter(|suspect| fault_of(&widths, &words) != Some(*suspect));
    let best: Vec<String> = best.into_iter().map(|row| row_text(&pieces[row])).collect();
    let is_broken = divided_phrases(&best, layout) < divided;
    suspect.into_iter().chain(is_broken.then_some(CaptionRule::BrokenPhrase)).collect()
}

/// Returns the number of rows that end within a phrase. The phrases of English only are known.
fn divided_phrases(rows: &[String], layout: &Layout) -> usize {
    let is_word = |word: &&str| !word.is_empty();
    let divides = |pair: &&[String]| {
        let last = pair[0].rsplit(separates).find(is_word);
        let first = pair[1].split(separates).find(is_word);
        last.zip(first).is_some_and(|(last, first)| divides_phrase(last, first))
    };
    match layout.breaks {
        Breaks::Phrases { english: true } => rows.windows(2).filter(divides).count(),
        Breaks::Phrases { english: false } | Breaks::Filled => 0,
    }
}

/// A line of one word among at least four, or one that is less than half as long as another.
fn fault_of(widths: &[u32], words: &[usize]) -> Option<CaptionRule> {
    let (shortest, longest) = (widths.iter().min()?, widths.iter().max()?);
    if words.len() < 2 {
        None
    } else if words.contains(&1) && words.iter().sum::<usize>() >= 4 {
        Some(CaptionRule::Orphan)
    } else {
        (shortest * 2 < *longest).then_some(CaptionRule::UnbalancedLines)
    }
}

/// Returns the text of written rows as pieces, which share the time in proportion to their length.
pub(super) fn pieces(rows: &[String], start: u64, end: u64, format: CaptionFormat, layout: &Layout) -> Vec<Piece> {
    let text = rows.join("\n");
    let mut builder = Builder::default();
    for atom in atoms(&text, format) {
        // A stray mark is escaped: on another line it could begin markup, or `-->` could look like times.
        let written = match (format, atom.written) {
            (CaptionFormat::Vtt, "<") => "&lt;",
            (CaptionFormat::Vtt, ">") => "&gt;",
            (CaptionFormat::Vtt, "&") => "&amp;",
            (_, written) => written,
        };
        match atom.shown {
            Some(c) => builder.shown(c, written),
            None => builder.markup(atom.written),
        }
    }
    let mut pieces = builder.finish(layout);
    share_out(&mut pieces, start, end);
    mark_boundaries(&mut pieces, layout);
    pieces
}

#[derive(Default)]
struct Builder {
    /// The shown and the written text of each piece, and whether a space precedes it.
    pieces: Vec<(String, String, bool)>,
    /// Markup that precedes the next character.
    markup: String,
    last: Option<char>,
    separated: Option<char>,
}

impl Builder {
    fn shown(&mut self, c: char, written: &str) {
        if separates(c) {
            // Of several separators a line break counts least: in Japanese it is no space.
            self.separated = if c == '\n' && self.separated.is_none_or(|s| s == '\n') { Some('\n') } else { Some(' ') };
            return;
        }
        let is_space = match (self.separated.take(), self.last) {
            (None, Some(_)) => false,
            (Some('\n'), Some(last)) => !(breaks_anywhere(last) && breaks_anywhere(c)),
            _ => true,
        };
        let stays = !is_space && self.last.is_some_and(|last| stay_together(last, c));
        let markup = std::mem::take(&mut self.markup);
        match self.pieces.last_mut() {
            Some((shown, all, _)) if stays => {
                shown.push(c);
                all.extend([markup.as_str(), written]);
            }
            _ => self.pieces.push((c.to_string(), markup + written, is_space)),
        }
        self.last = Some(c);
    }

    fn markup(&mut self, written: &str) {
        match self.pieces.last_mut() {
            Some((_, all, _)) if is_closing(written) && self.markup.is_empty() => all.push_str(written),
            _ => self.markup.push_str(written),
        }
    }

    fn finish(mut self, layout: &Layout) -> Vec<Piece> {
        if let Some((_, all, _)) = self.pieces.last_mut() {
            all.push_str(&self.markup);
        }
        let piece = |(text, written, spaced): (String, String, bool)| Piece {
            width: layout.unit.measure(&text),
            written: (written != text).then_some(written),
            text,
            spaced,
            start: 0,
            end: 0,
            after: Boundary::Sentence,
        };
        self.pieces.into_iter().map(piece).collect()
    }
}

fn share_out(pieces: &mut [Piece], start: u64, end: u64) {
    let all: u64 = pieces.iter().map(|piece| u64::from(piece.width)).sum();
    let length = u128::from(end.saturating_sub(start));
    let mut before = 0;
    let at = |before: u64| start + (length * u128::from(before) / u128::from(all.max(1))) as u64;
    for piece in pieces {
        piece.start = at(before);
        before += u64::from(piece.width);
        piece.end = at(before);
    }
}
