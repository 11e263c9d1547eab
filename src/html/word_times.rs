//! When each word of a line is spoken, in a short form for the page's script. Pure.
//!
//! The form has four whole numbers a word: the characters since the end of the word before, the characters of the word,
//! the hundredths of a second since the end of the word before (negative if they overlap), and those that the word
//! lasts. Characters are UTF-16 code units, as scripts count them. The first word counts from the start of the line. A
//! page with 80,000 words so needs about 10 bytes a word instead of an element for each.

use crate::domain::escape::is_harmful;
use crate::domain::transcript::Word;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The most bytes of a line that may be between two words: a word that is not in the line is not searched for in the
/// rest of it.
const LONGEST_GAP: usize = 80;

/// Returns a text without characters that change how the text around them is shown; control characters are spaces.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let kept = |c: char| match c {
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => Some(' '),
        c if is_harmful(c) => None,
        c => Some(c),
    };
    Cow::Owned(text.chars().filter_map(kept).collect())
}

/// Returns the times of the words of a line in the form above. `text` is the line as shown, `start` its start in
/// seconds. Words that are not in the line are left out.
pub fn word_times(text: &str, start: f64, words: &[Word]) -> String {
    let mut form = String::new();
    let (mut at, mut last_end) = (0, hundredths(start));
    for word in words {
        let shown = plain(&word.text);
        let shown = shown.trim();
        let Some(gap) = text[at..].find(shown).filter(|gap| *gap <= LONGEST_GAP && !shown.is_empty()) else { continue };
        let (begin, end) = (hundredths(word.start), hundredths(word.end).max(hundredths(word.start)));
        let blanks = utf16_len(&text[at..at + gap]);
        let separator = if form.is_empty() { "" } else { " " };
        // Writing into a string cannot fail.
        let _ = write!(form, "{separator}{blanks} {} {} {}", utf16_len(shown), begin - last_end, end - begin);
        at += gap + shown.len();
        last_end = end;
    }
    form
}

/// The conversion saturates; NaN becomes 0.
fn hundredths(seconds: f64) -> i64 {
    ((seconds * 100.0).round() as i64).clamp(0, LATEST)
}

/// A thousand hours.
const LATEST: i64 = 360_000_000;

fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(text: &str, start: f64, end: f64) -> Word {
        Word { text: text.to_owned(), start, end, confidence: 0.5 }
    }

    /// Reads the form as the page's script does: text, start and end of each word.
    fn read(text: &str, start: f64, form: &str) -> Vec<(String, f64, f64)> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let numbers: Vec<i64> = form.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let (mut at, mut time) = (0, hundredths(start));
        let mut words = Vec::new();
        for four in numbers.chunks(4) {
            let [blanks, length, pause, lasts] = four else { break };
            let first = at + usize::try_from(*blanks).unwrap_or_default();
            at = first + usize::try_from(*length).unwrap_or_default();
            let begin = time + pause;
            time = begin + lasts;
            words.push((String::from_utf16_lossy(&units[first..at]), begin as f64 / 100.0, time as f64 / 100.0));
        }
        words
    }

    #[test]
    fn words_are_where_they_are_shown() {
        let text = "Où est 😀 Anna, Anna?";
        let words = [
            word("Où", 1.0, 1.2),
            word(" est", 1.15, 1.5),
            word(" nobody", 1.5, 1.6),
            word(" 😀", 1.6, 1.7),
            word(" Anna,", 1.7, 2.0),
            word(" Anna?", 2.5, 2.4),
        ];
        let form = word_times(text, 0.5, &words);
        assert_eq!(form, "0 2 50 20 1 3 -5 35 1 2 10 10 1 5 0 30 1 5 50 0");
        let shown: Vec<String> = read(text, 0.5, &form).into_iter().map(|(word, ..)| word).collect();
        assert_eq!(shown, ["Où", "est", "😀", "Anna,", "Anna?"]);
        assert_eq!(word_times("", 0.0, &words), "");
        assert_eq!(word_times("a", f64::NAN, &[word("a", f64::INFINITY, -1.0)]), format!("0 1 {LATEST} 0"));
    }

    #[test]
    fn what_changes_the_text_around_it_is_left_out() {
        assert_eq!(plain("a\u{202e}b\nc\u{0}d \u{feff}e"), "ab c d e");
        let words = [word("x\u{202e}y", 0.0, 1.0), word(" z", 1.0, 2.0)];
        assert_eq!(word_times("xy z", 0.0, &words), "0 2 0 100 1 1 0 100");
    }

    proptest! {
        #[test]
        fn every_word_of_a_line_is_found_at_its_time(texts in prop::collection::vec("[a-zä😀.]{1,6}", 0..20)) {
            let words: Vec<Word> = (0_u32..)
                .zip(&texts)
                .map(|(at, text)| word(&format!(" {text}"), f64::from(at) * 0.3, f64::from(at) * 0.3 + 0.25))
                .collect();
            let line = texts.join(" ");
            let found = read(&line, 0.0, &word_times(&line, 0.0, &words));
            prop_assert_eq!(found.len(), texts.len());
            for ((shown, start, _), (text, word)) in found.iter().zip(texts.iter().zip(&words)) {
                prop_assert_eq!(shown, text);
                prop_assert!((start - word.start).abs() < 0.006);
            }
        }
    }
}
