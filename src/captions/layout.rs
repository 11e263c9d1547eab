//! How captions are laid out: the numbers, and the two ways of meeting them.

use super::cue::Cue;
use super::measure::LineUnit;
use super::{filled, guided};
use crate::domain::transcript::Transcript;
use std::time::Duration;

/// How captions are laid out. The defaults are what the hosted service was observed to do; [`super::Profile`] has the
/// numbers that others publish.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layout {
    /// The most characters in a row, at least 1; only a single word can be longer. 42 is the usual limit of
    /// broadcasters.
    pub maximum_characters_per_row: usize,
    /// The most rows shown at once, at least 1.
    pub maximum_rows_per_caption: usize,
    /// A shorter cue is extended to this, as far as the next cue leaves room.
    pub minimum_duration: Duration,
    /// The longest time that a cue is shown; at least a millisecond.
    pub maximum_duration: Duration,
    /// What characters are.
    pub unit: LineUnit,
    /// How fast a cue may have to be read.
    pub reading_speed: Option<ReadingSpeed>,
    /// The least time for each word of a cue (the BBC's rule); zero where there is none.
    pub minimum_duration_per_word: Duration,
    /// The time between two cues.
    pub gap: GapRule,
    /// How texts are divided.
    pub breaks: Breaks,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            maximum_characters_per_row: 42,
            maximum_rows_per_caption: 2,
            minimum_duration: Duration::from_millis(700),
            maximum_duration: Duration::from_secs(7),
            unit: LineUnit::CodePoints,
            reading_speed: None,
            minimum_duration_per_word: Duration::ZERO,
            gap: GapRule::NONE,
            breaks: Breaks::Filled,
        }
    }
}

/// The fastest that a viewer has to read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReadingSpeed {
    /// Counted in the layout's unit; more than 0.
    CharactersPerSecond(f64),
    /// More than 0.
    WordsPerMinute(f64),
}

/// The time between the end of a cue and the start of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapRule {
    /// The shortest gap.
    pub minimum: Duration,
    /// A longer gap than `minimum` that is shorter than this is closed to `minimum`: a gap is closed or clearly open.
    pub open_from: Duration,
}

impl GapRule {
    /// Cues must not overlap; nothing else.
    pub const NONE: Self = Self { minimum: Duration::ZERO, open_from: Duration::ZERO };
}

/// How texts are divided into cues and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaks {
    /// Each cue is filled, with a preference for punctuation: the layout of the embedded service.
    Filled,
    /// At phrases. In `English` also never after an article or a preposition.
    Phrases { english: bool },
}

impl Layout {
    /// Returns the same numbers counted and divided as the guides do. For files that somebody else laid out.
    pub fn as_guides_count(self) -> Self {
        let unit = if self.unit == LineUnit::CodePoints { LineUnit::Graphemes } else { self.unit };
        let breaks = if self.breaks == Breaks::Filled { Breaks::Phrases { english: false } } else { self.breaks };
        Self { unit, breaks, ..self }
    }

    /// The most units in a row, at least 1.
    pub(super) fn row_limit(&self) -> u32 {
        let limit = u32::try_from(self.maximum_characters_per_row).unwrap_or(u32::MAX);
        limit.max(1).saturating_mul(self.unit.units())
    }

    /// The most rows, at least 1.
    pub(super) fn rows(&self) -> usize {
        self.maximum_rows_per_caption.max(1)
    }

    /// The longest time in milliseconds, at least 1.
    pub(super) fn longest(&self) -> u64 {
        millis(self.maximum_duration).max(1)
    }

    /// The least time in milliseconds that a text of `units` and `words` must be shown, whatever the maximum is.
    pub(super) fn reading_time(&self, units: u32, words: usize) -> u64 {
        let read = match self.reading_speed {
            Some(ReadingSpeed::CharactersPerSecond(speed)) => {
                f64::from(units) / f64::from(self.unit.units()) / speed.max(0.001)
            }
            Some(ReadingSpeed::WordsPerMinute(speed)) => words as f64 * 60.0 / speed.max(0.001),
            None => 0.0,
        };
        let by_word = millis(self.minimum_duration_per_word).saturating_mul(words as u64);
        ((read * 1000.0).ceil() as u64).max(by_word)
    }

    /// The time in milliseconds that a text should be shown: its reading time, at least the minimum and at most the
    /// maximum duration.
    pub(super) fn wanted_time(&self, units: u32, words: usize) -> u64 {
        self.reading_time(units, words).max(millis(self.minimum_duration)).clamp(1, self.longest())
    }
}

/// Returns whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Lays a transcript out as cues: in order of time, without overlaps, none empty. The result is valid whatever times
/// the service sent (not numbers, negative, out of order).
pub fn lay_out(transcript: &Transcript, layout: &Layout) -> Vec<Cue> {
    match layout.breaks {
        Breaks::Filled => filled::lay_out(transcript, layout),
        Breaks::Phrases { .. } => guided::lay_out(transcript, layout),
    }
}
