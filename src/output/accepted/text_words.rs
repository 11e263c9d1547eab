//! Splits a text into the words that are aligned: at white space, and between the characters of scripts that put no
//! spaces between words (Chinese, Japanese, Thai, …), where a whole line would be one word. Pure.

use crate::captions::{breaks_anywhere, clings_to_next};
use unicode_segmentation::UnicodeSegmentation;

/// A word of a text, or a character of a script without spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextWord<'a> {
    /// Never empty; contains no white space.
    pub text: &'a str,
    /// Whether a space precedes it.
    pub is_spaced: bool,
}

impl TextWord<'_> {
    /// Returns the text as a transcript has it: with the space that precedes it.
    pub fn with_space(&self) -> String {
        let space = if self.is_spaced { " " } else { "" };
        format!("{space}{}", self.text)
    }
}

/// Returns the words of a line.
pub fn line_words(line: &str) -> Vec<TextWord<'_>> {
    let mut words = Vec::new();
    add_line(&mut words, line);
    words
}

/// Adds the words of the next line of a text. The line break is a space, but not between two characters of scripts
/// without spaces.
pub fn add_line<'a>(words: &mut Vec<TextWord<'a>>, line: &'a str) {
    for (number, run) in line.split_whitespace().enumerate() {
        let is_spaced = number > 0 || is_space_between(words.last(), run);
        let first = words.len();
        words.extend(units(run).into_iter().map(|text| TextWord { text, is_spaced: false }));
        words[first].is_spaced = is_spaced;
    }
}

/// Returns the text of words.
pub fn join(words: &[TextWord<'_>]) -> String {
    words.iter().map(TextWord::with_space).collect::<String>().trim_start().to_owned()
}

fn is_space_between(before: Option<&TextWord<'_>>, after: &str) -> bool {
    let is_unspaced_before = before.is_none_or(|word| word.text.ends_with(breaks_anywhere));
    !(is_unspaced_before && after.starts_with(breaks_anywhere))
}

/// Divides a text without white space before each character of a script without spaces, and behind it. Opening marks
/// stay with what follows, all other marks with what precedes them. There is at least one unit if there is a text.
fn units(run: &str) -> Vec<&str> {
    if !run.contains(breaks_anywhere) {
        return vec![run];
    }
    let (mut units, mut begin) = (Vec::new(), 0);
    // Whether the last letter of the unit is of a script without spaces, and where opening marks behind it begin.
    let (mut last, mut opening): (Option<bool>, Option<usize>) = (None, None);
    for (at, cluster) in run.grapheme_indices(true) {
        if cluster.contains(char::is_alphanumeric) {
            let is_unspaced = cluster.contains(breaks_anywhere);
            if last.is_some_and(|last| last || is_unspaced) {
                let end = opening.unwrap_or(at);
                units.push(&run[begin..end]);
                begin = end;
            }
            (last, opening) = (Some(is_unspaced), None);
        } else if cluster.chars().all(clings_to_next) {
            opening = opening.or(Some(at));
        } else {
            opening = None;
        }
    }
    units.push(&run[begin..]);
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn scripts_without_spaces_are_divided_by_characters() {
        let of = |text: &'static str| line_words(text).into_iter().map(|word| word.text).collect::<Vec<_>>();
        assert_eq!(of("今天天气。"), ["今", "天", "天", "气。"]);
        assert_eq!(of("コーヒーを「飲む」。"), ["コ", "ー", "ヒ", "ー", "を", "「飲", "む」。"]);
        assert_eq!(of("用Python写 (3.11)"), ["用", "Python", "写", "(3.11)"]);
        assert_eq!(of("ที่นี่"), ["ที่", "นี่"]);
        assert_eq!(of("don't re-open “it”."), ["don't", "re-open", "“it”."]);
        assert_eq!(of("안녕하세요 여러분"), ["안녕하세요", "여러분"], "Korean has spaces");
    }

    #[test]
    fn a_line_break_is_a_space_but_not_in_scripts_without_spaces() {
        let of = |lines: [&'static str; 2]| {
            let mut words = Vec::new();
            lines.into_iter().for_each(|line| add_line(&mut words, line));
            join(&words)
        };
        assert_eq!(of(["今天", "天气 很好"]), "今天天气 很好");
        assert_eq!(of(["one", "two"]), "one two");
        assert_eq!(of(["用", "Python"]), "用 Python");
        assert_eq!([line_words("今")[0].with_space(), line_words("one")[0].with_space()], ["今", " one"]);
    }

    proptest! {
        #[test]
        fn the_words_of_a_line_are_the_line(line in "[ab1今あー「」。,.(กิ่\u{301}\u{3000} ]{0,30}") {
            let words = line_words(&line);
            prop_assert_eq!(join(&words), line.split_whitespace().collect::<Vec<_>>().join(" "));
            prop_assert!(words.iter().all(|word| !word.text.is_empty()));
        }
    }
}
