//! Repairs caption files as far as that is possible without changing a word.
//!
//! In this order: cues are sorted, people who share a line separated, overlaps removed, long cues divided, cues too short
//! to read joined with the rest of their sentence, lines broken again where they break a rule, and the ends moved. Starts
//! stay, except where two cues overlap: captions stay with the speech. What is as the rules demand stays as it is.

use super::check::{is_forbidden, words_of};
use super::file_text::{avoidable_faults, pieces, units_of};
use super::layout::{Layout, millis};
use super::markup_spans::SpanCarrier;
use super::parse::{CaptionFile, CaptionFormat, FileCue, shown};
use super::phrases::ends_sentence;
use super::piece::{Piece, row_text};
use super::speakers::{RowSpeakers, has_several_speakers, is_dialogue, read_speakers, turns};
use super::timing::{CueSpan, Timed, separate, settle};
use super::{rows, segment};

/// Returns the repaired file. Applied to its result it changes nothing more. Cues without text are left out, unless
/// the file has no others; a file with parts that could not be read must not be repaired, since they would be lost.
pub fn fix(file: &CaptionFile, layout: &Layout) -> CaptionFile {
    /// A division can make another one possible, as where a dash comes to the start of a line.
    const MOST: usize = 8;
    let mut fixed = fix_once(file, layout);
    for _ in 1..MOST {
        let next = fix_once(&fixed, layout);
        if next == fixed {
            break;
        }
        fixed = next;
    }
    fixed
}

fn fix_once(file: &CaptionFile, layout: &Layout) -> CaptionFile {
    let mut trailer = Vec::new();
    let mut drafts = drafts(file, &mut trailer, layout);
    if drafts.is_empty() {
        return file.clone();
    }
    separate(&mut drafts);
    let mut drafts: Vec<Draft> = drafts.into_iter().flat_map(|draft| draft.divide(layout)).collect();
    separate(&mut drafts);
    let mut drafts = joined(drafts, layout);
    drafts.iter_mut().for_each(|draft| draft.break_again(layout));
    settle(&mut drafts, layout);
    trailer.extend(file.trailer.iter().cloned());
    let cues = drafts.into_iter().map(Draft::into_cue).collect();
    CaptionFile { format: file.format, header: file.header.clone(), cues, trailer, unread: file.unread.clone() }
}

/// Returns the cues with text by start. Comments before one without text go to the next.
fn drafts(file: &CaptionFile, trailer: &mut Vec<String>, layout: &Layout) -> Vec<Draft> {
    let mut drafts = Vec::with_capacity(file.cues.len());
    let mut comments = Vec::new();
    for cue in &file.cues {
        comments.extend(cue.before.iter().cloned());
        let rows = clean(&cue.rows, file.format);
        let rows = separate_speakers(&rows, file.format, layout).unwrap_or(rows);
        let cue = FileCue { rows, line: 0, ..cue.clone() };
        if !cue.rows.is_empty() {
            drafts.push(Draft::of(FileCue { before: std::mem::take(&mut comments), ..cue }, file.format, layout));
        }
    }
    *trailer = comments;
    drafts.sort_by_key(|draft| draft.span.start);
    drafts
}

/// Returns the rows that show something, without control characters.
fn clean(rows: &[String], format: CaptionFormat) -> Vec<String> {
    let cleaned = rows.iter().map(|row| row.replace(is_forbidden, ""));
    cleaned.filter(|row| !shown(row, format).trim().is_empty()).collect()
}

/// Returns the rows with lines of their own for each speaker; `None` if nobody shares a line, or if there are not enough
/// lines.
fn separate_speakers(rows: &[String], format: CaptionFormat, layout: &Layout) -> Option<Vec<String>> {
    let speakers = read_speakers(rows, format);
    // In a line of its own an arrow could look like times.
    let has_arrow = rows.iter().any(|row| row.contains("-->"));
    if has_arrow || speakers.iter().all(|row| row.later.is_empty()) {
        return None;
    }
    let mut separated = Vec::new();
    for turn in turns(rows, &speakers, format) {
        let pieces = pieces(&turn, 0, 0, format, layout);
        let lines = texts(&pieces, layout);
        if !is_faithful(&lines, &pieces, format) {
            return None;
        }
        separated.extend(lines);
    }
    (separated.len() <= layout.rows()).then_some(separated)
}

/// A cue that is being repaired.
#[derive(Clone)]
struct Draft {
    span: CueSpan,
    cue: FileCue,
    shown: Vec<String>,
    speakers: Vec<RowSpeakers>,
    pieces: Vec<Piece>,
    format: CaptionFormat,
}

impl Timed for Draft {
    fn span(&mut self) -> &mut CueSpan {
        &mut self.span
    }
}

impl Draft {
    fn of(cue: FileCue, format: CaptionFormat, layout: &Layout) -> Self {
        let (start, end) = (cue.start, cue.end.max(cue.start));
        let shown: Vec<String> = cue.rows.iter().map(|row| shown(row, format)).collect();
        let span = CueSpan { start, end, units: units_of(&shown, layout), words: words_of(&shown) };
        let speakers = read_speakers(&cue.rows, format);
        let pieces = pieces(&cue.rows, start, end, format, layout);
        Self { span, cue, shown, speakers, pieces, format }
    }

    /// Returns a part of the cue with these rows and times.
    fn part(&self, rows: Vec<String>, (start, end): (u64, u64), is_first: bool, layout: &Layout) -> Self {
        let rest = FileCue { settings: self.cue.settings.clone(), ..FileCue::default() };
        let base = if is_first { self.cue.clone() } else { rest };
        Self::of(FileCue { rows, start, end, ..base }, self.format, layout)
    }

    fn into_cue(self) -> FileCue {
        FileCue { start: self.span.start, end: self.span.end, ..self.cue }
    }

    fn rows_fit(&self, layout: &Layout) -> bool {
        let limit = layout.row_limit();
        self.shown.len() <= layout.rows() && self.shown.iter().all(|row| layout.unit.measure(row) <= limit)
    }

    /// Divides a cue whose text does not fit, or that is shown for too long with more than one line.
    fn divide(self, layout: &Layout) -> Vec<Self> {
        if !is_dialogue(&self.speakers) {
            return self.divide_text(layout);
        }
        let is_readable = layout.reading_time(self.span.units, self.span.words) <= layout.longest();
        if self.rows_fit(layout) && is_readable {
            return vec![self];
        }
        self.divide_dialogue(layout).into_iter().flat_map(|part| part.divide_text(layout)).collect()
    }

    /// Gives each person of a dialogue a cue of their own; they share the time by length.
    fn divide_dialogue(&self, layout: &Layout) -> Vec<Self> {
        let mut carrier = SpanCarrier::default();
        let mut parts: Vec<Self> = Vec::new();
        let all = u64::from(self.span.units.max(1));
        let length = u128::from(self.span.end - self.span.start);
        let at = |units: u64| self.span.start + (length * u128::from(units) / u128::from(all)) as u64;
        let (mut from, mut before) = (0, 0);
        for to in 1..=self.shown.len() {
            if self.speakers.get(to).is_some_and(|row| !row.begins()) {
                continue;
            }
            let rows = carrier.close(self.cue.rows[from..to].to_vec(), self.format);
            let after = before + u64::from(units_of(&self.shown[from..to], layout));
            parts.push(self.part(rows, (at(before), at(after)), from == 0, layout));
            (from, before) = (to, after);
        }
        parts
    }

    fn divide_text(self, layout: &Layout) -> Vec<Self> {
        let is_long = self.span.end - self.span.start > layout.longest() && rows::rows_needed(&self.pieces, layout) > 1;
        if segment::fits_one_cue(&self.pieces, layout) && !is_long {
            return vec![self];
        }
        let mut carrier = SpanCarrier::default();
        let mut parts = Vec::new();
        for cue in segment::divide(&self.pieces, self.span.end, layout) {
            let pieces = &self.pieces[cue.clone()];
            let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { continue };
            let rows = carrier.close(texts(pieces, layout), self.format);
            if !is_faithful(&rows, pieces, self.format) {
                return vec![self];
            }
            parts.push(self.part(rows, (first.start, last.end), cue.start == 0, layout));
        }
        parts
    }

    /// Breaks the lines again if they are too long, too many, or worse than need be.
    fn break_again(&mut self, layout: &Layout) {
        if is_dialogue(&self.speakers) {
            return;
        }
        if self.rows_fit(layout) && avoidable_faults(&self.shown, layout).is_empty() {
            return;
        }
        let rows = texts(&self.pieces, layout);
        if !is_faithful(&rows, &self.pieces, self.format) {
            return;
        }
        self.cue.rows = rows;
        self.shown = self.cue.rows.iter().map(|row| shown(row, self.format)).collect();
        self.speakers = read_speakers(&self.cue.rows, self.format);
        (self.span.units, self.span.words) = (units_of(&self.shown, layout), words_of(&self.shown));
    }

    /// Returns the voice tag at the start.
    fn voice(&self) -> &str {
        let row = self.cue.rows.first().map_or("", String::as_str);
        let end = row.find('>').filter(|_| row.starts_with("<v"));
        end.map_or("", |end| &row[..=end])
    }

    /// Returns this cue and the next as one, if this one has too little time to be read alone and both are parts of one
    /// sentence, or of one person's speech.
    fn join(&self, next: &Self, layout: &Layout) -> Option<Self> {
        let room = next.span.start - self.span.start;
        let wanted = millis(layout.minimum_duration).saturating_add(millis(layout.gap.minimum));
        let has_dash = [self, next].iter().any(|draft| draft.speakers.first().is_some_and(|row| row.has_dash));
        let same_voice = self.voice() == next.voice();
        let goes_on = !self.shown.last().is_some_and(|row| ends_sentence(row.trim_end())) || !self.voice().is_empty();
        let is_plain = next.cue.before.is_empty() && next.cue.settings == self.cue.settings;
        let is_named = !next.cue.id.is_empty() && next.cue.id.parse::<u64>().is_err();
        if room >= wanted || has_dash || !same_voice || !goes_on || !is_plain || is_named {
            return None;
        }
        let rows = [self.cue.rows.as_slice(), next.cue.rows.as_slice()].concat();
        let end = next.span.end.min(self.span.start.saturating_add(layout.longest()));
        let both = Self::of(FileCue { rows, start: self.span.start, end, ..self.cue.clone() }, self.format, layout);
        if has_several_speakers(&both.speakers) {
            return None;
        }
        let text = |pieces: &[Piece]| pieces.iter().map(|piece| piece.text.as_str()).collect::<String>();
        let is_whole = text(&both.pieces) == text(&self.pieces) + &text(&next.pieces);
        (is_whole && segment::fits_one_cue(&both.pieces, layout)).then_some(both)
    }
}

/// Returns the rows of a cue as they are written.
fn texts(pieces: &[Piece], layout: &Layout) -> Vec<String> {
    rows::divide(pieces, layout).into_iter().map(|row| row_text(&pieces[row])).collect()
}

/// Whether the rows show the text of the pieces. In SubRip, which has no escapes, a stray `<` at the end of a line can
/// become markup if the next line follows it; such a cue stays as it is.
fn is_faithful(rows: &[String], pieces: &[Piece], format: CaptionFormat) -> bool {
    let rows: String = rows.iter().map(|row| shown(row, format)).collect();
    let text = pieces.iter().flat_map(|piece| piece.text.chars());
    let visible = |c: &char| !c.is_whitespace();
    rows.chars().filter(visible).eq(text.filter(visible))
}

fn joined(drafts: Vec<Draft>, layout: &Layout) -> Vec<Draft> {
    let mut out: Vec<Draft> = Vec::with_capacity(drafts.len());
    for draft in drafts {
        match out.last().and_then(|last| last.join(&draft, layout)) {
            Some(both) => out.splice(out.len() - 1.., [both]).for_each(drop),
            None => out.push(draft),
        }
    }
    out
}

#[cfg(test)]
mod tests;
