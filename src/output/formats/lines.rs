//! Text and times as all formats write them.

use crate::domain::transcript::{Utterance, Word};

/// The latest time that is written, in seconds: later ones are not of a recording.
const LATEST: f64 = 1e7;

/// Joins the words of a text with single spaces; control characters separate words.
pub(super) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Like [`one_line`], and removes what XML cannot hold and what changes the direction of the text after it.
pub(super) fn plain_line(text: &str) -> String {
    one_line(&text.replace(is_removed, ""))
}

/// Returns the lines of a text, each as [`plain_line`] gives it; several empty lines become one.
pub(super) fn plain_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().map(plain_line) {
        if !line.is_empty() || lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(line);
        }
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Whether a character is left out: embeddings, overrides and isolates of the text's direction (Unicode UAX 9, "Explicit
/// Directional"), byte order marks, and what is not a character. The marks that right-to-left scripts need stay.
pub(crate) fn is_removed(c: char) -> bool {
    let is_no_character = u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}');
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || is_no_character
}

/// Returns the time, if it is one that a recording can have.
pub(super) fn seconds(time: f64) -> Option<f64> {
    (time.is_finite() && (0.0..=LATEST).contains(&time)).then_some(time)
}

/// Returns when an utterance starts; `None` if the service gave no time.
pub(super) fn start_of(utterance: &Utterance) -> Option<f64> {
    let is_timed = seconds(utterance.end).is_some_and(|end| end > 0.0);
    let of_utterance = seconds(utterance.start).filter(|start| is_timed || *start > 0.0);
    of_utterance.or_else(|| utterance.words.iter().find_map(span_of).map(|(start, _)| start))
}

/// Returns when an utterance ends; `None` if the service gave no time.
pub(super) fn end_of(utterance: &Utterance) -> Option<f64> {
    let start = start_of(utterance)?;
    let of_words = utterance.words.iter().filter_map(|word| seconds(word.end)).fold(start, f64::max);
    Some(seconds(utterance.end).filter(|end| *end > start).unwrap_or(of_words))
}

/// Returns when a word is spoken, if the service gave both times.
pub(super) fn span_of(word: &Word) -> Option<(f64, f64)> {
    let (start, end) = (seconds(word.start)?, seconds(word.end)?);
    (end > 0.0).then_some((start, end.max(start)))
}

/// Formats `HH:MM:SS`; from 100 hours on, the hours have more digits.
pub(super) fn clock(time: f64) -> String {
    let seconds = millis(time) / 1_000;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Returns whole milliseconds.
pub(super) fn millis(time: f64) -> u64 {
    (time.clamp(0.0, LATEST) * 1_000.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_text_is_left_out() {
        assert_eq!(plain_line(" a\u{202e}b\u{0}c\u{fffe}\u{200f}\n\td "), "ab c\u{200f} d");
        assert_eq!(plain_lines("\n\n a \n\n\nb\u{7}\n\n"), ["a", "", "b"]);
    }

    #[test]
    fn times_have_hours() {
        assert_eq!((clock(3_599.999_4).as_str(), clock(3_599.999_6).as_str()), ("00:59:59", "01:00:00"));
        assert_eq!((clock(f64::NAN).as_str(), clock(400_000.0).as_str()), ("00:00:00", "111:06:40"));
        assert_eq!([f64::NAN, -1.0, f64::INFINITY, 1e300].map(seconds), [None; 4]);
    }
}
