//! What was said as numbered lines: an utterance is a line, and a very long one is several. Pure.

use super::prompt::plain;
use crate::domain::transcript::Transcript;
use std::fmt::Write;
use std::ops::Range;

/// A line: an utterance, or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedLine {
    /// The place of its utterance in the transcript.
    pub utterance: usize,
    pub text: String,
    speaker: Option<u32>,
}

/// The lines of a transcript. Their numbers begin with 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedLines(Vec<NumberedLine>);

/// Bytes of a line beside its text: its number and its speaker.
const BESIDE: usize = 24;

/// The bytes of the longest line, at most: models lose their way in longer ones.
const LONGEST: usize = 2_000;

/// How a line begins in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineHead {
    /// With its number: an answer refers to it.
    Number,
    /// With its speaker, if the speakers were told apart.
    Speaker,
}

impl NumberedLines {
    /// Makes the lines of a transcript, such that one fits into `bytes` of text.
    pub fn of(transcript: &Transcript, bytes: usize) -> Self {
        let most = bytes.saturating_sub(BESIDE).clamp(1, LONGEST);
        let mut lines = Vec::new();
        for (utterance, said) in transcript.utterances.iter().enumerate() {
            let text = plain(&said.text, usize::MAX, false);
            lines.extend(pieces(&text, most).map(|piece| NumberedLine {
                utterance,
                text: piece.to_owned(),
                speaker: said.speaker,
            }));
        }
        Self(lines)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the line of this number.
    pub fn get(&self, number: usize) -> Option<&NumberedLine> {
        self.0.get(number.checked_sub(1)?)
    }

    /// Returns all lines with their numbers.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (usize, &NumberedLine)> {
        self.0.iter().enumerate().map(|(at, line)| (at + 1, line))
    }

    /// Cuts lines of these numbers into parts of at most so many bytes, in order; each has at least one line.
    pub fn parts(&self, numbers: impl IntoIterator<Item = usize>, bytes: usize) -> Vec<Vec<usize>> {
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let mut left = 0;
        for number in numbers {
            let needed = self.get(number).map_or(0, |line| line.text.len() + BESIDE);
            match parts.last_mut().filter(|_| needed <= left) {
                Some(part) => part.push(number),
                None => {
                    parts.push(vec![number]);
                    left = bytes;
                }
            }
            left = left.saturating_sub(needed);
        }
        parts
    }

    /// Writes lines as a prompt has them.
    pub fn written(&self, numbers: &[usize], head: LineHead) -> String {
        let mut text = String::new();
        for number in numbers {
            let Some(line) = self.get(*number) else { continue };
            // A `String` takes everything.
            let _ = match (head, line.speaker) {
                (LineHead::Number, _) => write!(text, "{number}: "),
                (LineHead::Speaker, Some(speaker)) => write!(text, "Speaker {speaker}: "),
                (LineHead::Speaker, None) => Ok(()),
            };
            text.push_str(&line.text);
            text.push('\n');
        }
        text
    }

    /// Returns the numbers of the lines of the same utterance, in order.
    pub fn of_utterance(&self, utterance: usize) -> Range<usize> {
        let begin = self.0.partition_point(|line| line.utterance < utterance);
        let end = self.0.partition_point(|line| line.utterance <= utterance);
        begin + 1..end + 1
    }
}

/// Cuts a text into pieces of at most `most` bytes: at the last space that fits, or within a word that is longer. An
/// empty text has none.
pub fn pieces(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, behind) = rest.split_at(cut(rest, most));
        rest = behind.trim_start();
        Some(piece.trim_end())
    })
}

fn cut(text: &str, most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    let fits = text.floor_char_boundary(most);
    let first = text.chars().next().map_or(0, char::len_utf8);
    let fits = fits.max(first);
    text[..fits].rfind(' ').filter(|at| *at > 0).unwrap_or(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::language_model::enrichments::testing::transcript;
    use proptest::prelude::*;

    #[test]
    fn utterances_are_numbered_lines_in_parts() {
        let said = transcript(&["Hello there.", "", "It is\nlate.", "Good night."]);
        let lines = NumberedLines::of(&said, 1_000);
        assert_eq!(lines.len(), 3);
        let all: Vec<usize> = (1..=3).collect();
        assert_eq!(lines.written(&all, LineHead::Number), "1: Hello there.\n2: It is late.\n3: Good night.\n");
        assert_eq!(lines.written(&[2], LineHead::Speaker), "It is late.\n");
        assert_eq!(lines.parts(1..=3, 75), [vec![1, 2], vec![3]]);
        assert_eq!(lines.parts(1..=3, 1), [vec![1], vec![2], vec![3]]);
        assert_eq!((lines.of_utterance(2), lines.of_utterance(1).len()), (2..3, 0));
        assert_eq!(lines.get(2).unwrap().utterance, 2);
        assert!(lines.get(0).is_none() && lines.get(4).is_none());
    }

    #[test]
    fn ten_megabytes_of_one_word_are_pieces() {
        let lines = NumberedLines::of(&transcript(&[&"é".repeat(5 << 20)]), 600);
        assert!(lines.len() > 10_000 && lines.iter().all(|(_, line)| line.text.len() <= 600));
        assert_eq!(lines.iter().map(|(_, line)| line.text.len()).sum::<usize>(), 10 << 20);
    }

    proptest! {
        #[test]
        fn pieces_are_short_and_lose_no_letter(text in "[a-zé ]{0,80}", most in 2_usize..20) {
            let all: Vec<&str> = pieces(&text, most).collect();
            prop_assert!(all.iter().all(|piece| !piece.is_empty() && piece.len() <= most));
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&all.concat()), letters(&text));
        }
    }
}
