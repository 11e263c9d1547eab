//! The words of a text, as the divisions and summaries of a transcript count them.

use crate::domain::transcript::Transcript;
use std::collections::HashMap;

/// The letters of a word that count: "transcribe" and "transcription" are one word. Measured with Porter's rules instead,
/// chapters were no better.
const LETTERS: usize = 5;

/// Returns the words of a text as they stand, without the punctuation around them. What the redaction has written is none.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_redaction = |word: &&str| word.contains(['[', ']', '#']);
    let edge = |letter: char| !letter.is_alphanumeric();
    text.split(|c: char| c.is_whitespace() || matches!(c, '-' | '–' | '—' | '/'))
        .filter(move |word| !is_redaction(word))
        .map(move |word| word.trim_matches(edge))
        .filter(|word| !word.is_empty())
}

/// Returns the beginning of a word, in lower case.
pub(super) fn stem(word: &str) -> String {
    word.to_lowercase().replace('’', "'").chars().take(LETTERS).collect()
}

/// The words of some texts as numbers, in order of their first use.
#[derive(Debug, Default)]
pub(super) struct NumberedStems {
    numbers: HashMap<String, usize>,
    /// The numbers of the words of each text.
    pub(super) texts: Vec<Vec<usize>>,
}

impl NumberedStems {
    pub(super) fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut all = Self::default();
        for text in texts {
            let text = words(text).map(|word| all.number(stem(word))).collect();
            all.texts.push(text);
        }
        all
    }

    /// Returns how many different words there are.
    pub(super) fn different(&self) -> usize {
        self.numbers.len()
    }

    fn number(&mut self, stem: String) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(stem).or_insert(next)
    }
}

/// Whether most of the words are said in English.
pub(super) fn is_english(transcript: &Transcript) -> bool {
    let count = |is_counted: fn(&str) -> bool| -> usize {
        let utterances = transcript.utterances.iter().filter(|said| is_counted(&said.language));
        utterances.map(|said| words(&said.text).count()).sum()
    };
    count(|language| language == "en") * 2 >= count(|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_no_punctuation_and_no_redaction() {
        let all: Vec<&str> = words("\"Well—it's (almost) nine,\" said [NAME_1], ### … and so-called").collect();
        assert_eq!(all, ["Well", "it's", "almost", "nine", "said", "and", "so", "called"]);
    }

    #[test]
    fn forms_of_a_word_have_one_number() {
        let all = NumberedStems::of(["Transcribe it", "transcription, TRANSCRIBED", ""]);
        assert_eq!(all.texts, [vec![0, 1], vec![0, 0], vec![]]);
        assert_eq!(all.different(), 2);
    }
}
