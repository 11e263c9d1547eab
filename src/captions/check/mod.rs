//! Compares caption files with the rules of a layout.

use super::file_text::{FileText, avoidable_faults};
use super::layout::{Layout, ReadingSpeed, millis};
use super::line_advice::{describe_crowded, describe_fault};
use super::measure::words;
use super::parse::{CaptionFile, Unread};
use super::speakers::is_dialogue;

/// A rule for captions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaptionRule {
    Unreadable,
    Order,
    Overlap,
    Empty,
    ControlCharacters,
    CharactersPerLine,
    Lines,
    SpeakersPerLine,
    MinimumDuration,
    MaximumDuration,
    ReadingSpeed,
    Gap,
    Orphan,
    /// A warning.
    UnbalancedLines,
    /// A warning.
    BrokenPhrase,
}

impl CaptionRule {
    pub const ALL: [Self; 15] = [
        Self::Unreadable,
        Self::Order,
        Self::Overlap,
        Self::Empty,
        Self::ControlCharacters,
        Self::CharactersPerLine,
        Self::Lines,
        Self::SpeakersPerLine,
        Self::MinimumDuration,
        Self::MaximumDuration,
        Self::ReadingSpeed,
        Self::Gap,
        Self::Orphan,
        Self::UnbalancedLines,
        Self::BrokenPhrase,
    ];

    /// The name in JSON. In messages it has spaces instead of underscores.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::Order => "order",
            Self::Overlap => "overlap",
            Self::Empty => "empty",
            Self::ControlCharacters => "control_characters",
            Self::CharactersPerLine => "characters_per_line",
            Self::Lines => "lines",
            Self::SpeakersPerLine => "speakers_per_line",
            Self::MinimumDuration => "minimum_duration",
            Self::MaximumDuration => "maximum_duration",
            Self::ReadingSpeed => "reading_speed",
            Self::Gap => "gap",
            Self::Orphan => "orphan",
            Self::UnbalancedLines => "unbalanced_lines",
            Self::BrokenPhrase => "broken_phrase",
        }
    }

    /// Whether it is a recommendation.
    pub fn only_warns(self) -> bool {
        matches!(self, Self::UnbalancedLines | Self::BrokenPhrase)
    }
}

/// What in a file is not as a rule demands.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    pub rule: CaptionRule,
    /// The number of the cue in the file, from 1; 0 where no cue was read.
    pub cue: usize,
    /// The line of its times, from 1.
    pub line: usize,
    /// When the cue begins, in milliseconds.
    pub at: u64,
    /// What was found and what the rule allows, in words.
    pub words: String,
    /// The measured value, if the rule has a number, in the unit of the limit.
    pub measured: Option<f64>,
    pub limit: Option<f64>,
}

/// Times are written in whole milliseconds, and frames are none: a millisecond less is no violation.
const ROUNDING: u64 = 1;

/// A gap that is longer by up to a frame (24 a second) than the closed one counts as closed: frame rates differ.
const FRAME: u64 = 42;

/// Returns what is not as the layout demands, in the file's order. The layout counts as the guides do.
pub fn check(file: &CaptionFile, layout: &Layout) -> Vec<Violation> {
    let mut found: Vec<Violation> = file.unread.iter().map(unreadable).collect();
    if file.is_silent() {
        return found;
    }
    let texts = FileText::of(file, layout);
    for (i, text) in texts.iter().enumerate() {
        let mut checker = Checker { found: &mut found, text, number: i + 1, layout };
        checker.text();
        checker.duration();
        if let Some(before) = i.checked_sub(1).and_then(|before| texts.get(before)) {
            checker.order(before);
        }
    }
    neighbours(&texts, layout, &mut found);
    found.sort_by_key(|violation| (violation.line, violation.rule));
    found
}

/// Compares each cue with the one that begins next, wherever it is in the file.
fn neighbours(texts: &[FileText], layout: &Layout, found: &mut Vec<Violation>) {
    let mut by_start: Vec<usize> = (0..texts.len()).collect();
    by_start.sort_by_key(|i| texts[*i].start);
    for pair in by_start.windows(2) {
        let (text, next) = (&texts[pair[0]], &texts[pair[1]]);
        Checker { found, text, number: pair[0] + 1, layout }.gap(next.start);
    }
}

fn unreadable(unread: &Unread) -> Violation {
    let words = unread.why.to_owned();
    Violation { rule: CaptionRule::Unreadable, cue: 0, line: unread.line, at: 0, words, measured: None, limit: None }
}

/// Checks one cue.
struct Checker<'a> {
    found: &'a mut Vec<Violation>,
    text: &'a FileText,
    number: usize,
    layout: &'a Layout,
}

impl Checker<'_> {
    fn add(&mut self, rule: CaptionRule, words: String, numbers: Option<(f64, f64)>) {
        let (line, at, cue) = (self.text.line, self.text.start, self.number);
        let (measured, limit) = (numbers.map(|n| rounded(n.0)), numbers.map(|n| rounded(n.1)));
        self.found.push(Violation { rule, cue, line, at, words, measured, limit });
    }

    fn text(&mut self) {
        let (text, layout) = (self.text, self.layout);
        if text.rows.is_empty() {
            return self.add(CaptionRule::Empty, "there is no text".to_owned(), None);
        }
        if let Some(c) = text.rows.iter().flat_map(|row| row.chars()).find(|c| is_forbidden(*c)) {
            self.add(
                CaptionRule::ControlCharacters,
                format!("there is the control character U+{:04X}", u32::from(c)),
                None,
            );
        }
        let limit = f64::from(layout.row_limit()) / f64::from(layout.unit.units());
        for (i, row) in text.rows.iter().enumerate() {
            let length = layout.unit.characters(row);
            if length > limit {
                let words = format!("line {} has {length} characters, at most {limit}", i + 1);
                self.add(CaptionRule::CharactersPerLine, words, Some((length, limit)));
            }
        }
        let (rows, most) = (text.rows.len(), layout.rows());
        if rows > most {
            self.add(CaptionRule::Lines, format!("{rows} lines, at most {most}"), Some((rows as f64, most as f64)));
        }
        self.speakers();
        self.breaks();
    }

    fn speakers(&mut self) {
        let text = self.text;
        for (i, row) in text.speakers.iter().enumerate().filter(|(_, row)| !row.later.is_empty()) {
            let speakers = row.later.len() + 1;
            self.add(CaptionRule::SpeakersPerLine, describe_crowded(i, speakers), Some((speakers as f64, 1.0)));
        }
    }

    /// Checks where the lines are broken. A dialogue has a line for each person, however long it is.
    fn breaks(&mut self) {
        let (text, layout) = (self.text, self.layout);
        if text.rows.len() < 2 || is_dialogue(&text.speakers) {
            return;
        }
        for rule in avoidable_faults(&text.rows, layout) {
            self.add(rule, describe_fault(rule, &text.rows, layout), None);
        }
    }

    fn duration(&mut self) {
        let (text, layout) = (self.text, self.layout);
        let Some(shown) = text.end.checked_sub(text.start).filter(|shown| *shown > 0) else {
            return self.add(CaptionRule::Order, "it ends before it begins".to_owned(), None);
        };
        let seconds = |ms: u64| ms as f64 / 1000.0;
        let by_word = millis(layout.minimum_duration_per_word).saturating_mul(text.words as u64);
        let least = millis(layout.minimum_duration).max(by_word).min(layout.longest());
        if shown + ROUNDING < least && !text.rows.is_empty() {
            let words = format!("shown for {} s, at least {} s", seconds(shown), seconds(least));
            self.add(CaptionRule::MinimumDuration, words, Some((seconds(shown), seconds(least))));
        }
        if shown > layout.longest() + ROUNDING {
            let words = format!("shown for {} s, at most {} s", seconds(shown), seconds(layout.longest()));
            self.add(CaptionRule::MaximumDuration, words, Some((seconds(shown), seconds(layout.longest()))));
        }
        if let Some((measured, limit, unit)) = self.speed(shown) {
            self.add(
                CaptionRule::ReadingSpeed,
                format!("{measured:.1} {unit}, at most {limit}"),
                Some((measured, limit)),
            );
        }
    }

    /// Returns the reading speed, its limit and their unit if it is too high.
    fn speed(&self, shown: u64) -> Option<(f64, f64, &'static str)> {
        let (text, layout) = (self.text, self.layout);
        let (amount, limit, unit) = match layout.reading_speed? {
            ReadingSpeed::CharactersPerSecond(limit) => {
                (f64::from(text.units) / f64::from(layout.unit.units()), limit, "characters a second")
            }
            ReadingSpeed::WordsPerMinute(limit) => (text.words as f64 * 60.0, limit, "words a minute"),
        };
        let is_too_fast = amount * 1000.0 / (shown + ROUNDING) as f64 > limit;
        is_too_fast.then_some((amount * 1000.0 / shown as f64, limit, unit))
    }

    fn order(&mut self, before: &FileText) {
        if self.text.start < before.start {
            let back = (before.start - self.text.start) as f64 / 1000.0;
            self.add(CaptionRule::Order, format!("it begins {back} s before the previous cue"), None);
        }
    }

    /// `next`: when the next cue begins.
    fn gap(&mut self, next: u64) {
        let seconds = |ms: u64| ms as f64 / 1000.0;
        let Some(gap) = next.checked_sub(self.text.end) else {
            let over = seconds(self.text.end - next);
            return self.add(
                CaptionRule::Overlap,
                format!("it ends {over} s after the next cue begins"),
                Some((over, 0.0)),
            );
        };
        let (least, open) = (millis(self.layout.gap.minimum), millis(self.layout.gap.open_from));
        let is_between = gap > least + FRAME && gap + ROUNDING < open;
        if gap + ROUNDING < least {
            let words = format!("{} s to the next cue, at least {} s", seconds(gap), seconds(least));
            self.add(CaptionRule::Gap, words, Some((seconds(gap), seconds(least))));
        } else if is_between {
            let words =
                format!("{} s to the next cue, {} s or at least {} s", seconds(gap), seconds(least), seconds(open));
            self.add(CaptionRule::Gap, words, Some((seconds(gap), seconds(open))));
        }
    }
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// Whether a character is neither text nor white space.
pub(crate) fn is_forbidden(c: char) -> bool {
    c.is_control() && !c.is_whitespace()
}

/// Returns the number of words of rows.
pub(super) fn words_of(rows: &[String]) -> usize {
    rows.iter().map(|row| words(row)).sum()
}

#[cfg(test)]
mod tests;
