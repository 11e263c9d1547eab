//! The text of one voice: its utterances one after the other, and where each word and each token is in it.

use crate::domain::transcript::Utterance;
use std::collections::BTreeMap;
use std::ops::Range;

/// A longer pause of a voice, in seconds, ends its text: what was said before and after it does not belong together. It
/// leaves room for a number that is read in parts, each of which somebody confirms.
const LONGEST_PAUSE: f64 = 15.0;

/// The most bytes of one text: memory grows with it. It is cut between two utterances only.
const MOST_BYTES: usize = 2 << 20;

/// A word of the transcript in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlacedWord {
    /// The number of the utterance in the transcript.
    pub(super) utterance: usize,
    /// The number of the word in the utterance.
    pub(super) word: usize,
    /// Bytes of the text.
    pub(super) range: Range<usize>,
}

/// What stands between two spaces, without the punctuation around it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextToken {
    /// Bytes of the text.
    pub(super) range: Range<usize>,
    /// In lower case, without a possessive `'s`.
    pub(super) plain: String,
    /// When it was said, in seconds.
    pub(super) start: f64,
    /// Whether it begins with a capital.
    pub(super) is_capital: bool,
    /// Whether a sentence or an utterance begins with it.
    pub(super) begins_sentence: bool,
    pub(super) begins_utterance: bool,
}

/// The speech of one voice without a long pause.
#[derive(Debug, Clone, Default)]
pub(super) struct VoiceText {
    pub(super) text: String,
    pub(super) words: Vec<PlacedWord>,
    pub(super) tokens: Vec<TextToken>,
    /// Whether names have capitals in this text: the recogniser writes case.
    pub(super) is_cased: bool,
}

impl VoiceText {
    /// Returns the plain text of a token; empty behind the end.
    pub(super) fn plain(&self, token: usize) -> &str {
        self.tokens.get(token).map_or("", |token| &token.plain)
    }

    /// Whether these words stand at this token.
    pub(super) fn has_at(&self, token: usize, phrase: &str) -> Option<usize> {
        let mut at = token;
        for word in phrase.split(' ') {
            if self.plain(at) != word {
                return None;
            }
            at += 1;
        }
        Some(at)
    }

    /// Whether nothing but spaces stands between this token and the next one.
    pub(super) fn is_open_after(&self, token: usize) -> bool {
        match (self.tokens.get(token), self.tokens.get(token + 1)) {
            (Some(one), Some(next)) => {
                self.text[one.range.end..next.range.start].chars().all(|c| c.is_whitespace() || c == '\'')
            }
            _ => false,
        }
    }

    /// Returns the token that contains this byte, or the next one.
    pub(super) fn token_at(&self, byte: usize) -> usize {
        self.tokens.partition_point(|token| token.range.end <= byte)
    }

    /// Returns the bytes of these tokens.
    pub(super) fn bytes(&self, tokens: Range<usize>) -> Range<usize> {
        self.tokens[tokens.start].range.start..self.tokens[tokens.end - 1].range.end
    }

    fn add(&mut self, number: usize, utterance: &Utterance) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        let begin = self.text.len();
        let mut starts = Vec::new();
        for (word, one) in utterance.words.iter().enumerate() {
            let start = self.text.len();
            self.text.push_str(&one.text);
            starts.push((start, one.start));
            self.words.push(PlacedWord { utterance: number, word, range: start..self.text.len() });
        }
        self.tokenize(begin, &starts);
    }

    fn tokenize(&mut self, begin: usize, starts: &[(usize, f64)]) {
        let (mut at, mut word, mut begins_sentence, mut is_first) = (begin, 0, true, true);
        let text = std::mem::take(&mut self.text);
        for piece in text[begin..].split_inclusive(char::is_whitespace) {
            let range = core(&text, at..at + piece.len());
            if !range.is_empty() {
                while starts.get(word + 1).is_some_and(|(start, _)| *start <= range.start) {
                    word += 1;
                }
                let start = starts.get(word).map_or(0.0, |(_, start)| *start);
                let (range, plain) = plain(&text, range);
                let is_capital = text[range.clone()].starts_with(char::is_uppercase);
                let mark = piece.trim_end().trim_end_matches(['"', '\'', ')', '”']);
                let is_short = plain.len() == 1 || ABBREVIATED.contains(&plain.as_str());
                let begins_utterance = std::mem::take(&mut is_first);
                self.tokens.push(TextToken { range, plain, start, is_capital, begins_sentence, begins_utterance });
                begins_sentence = mark.ends_with(['?', '!', ':']) || (mark.ends_with('.') && !is_short);
            }
            at += piece.len();
        }
        self.text = text;
    }
}

/// Words whose full stop ends no sentence.
const ABBREVIATED: [&str; 10] = ["mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "apt", "rev"];

/// Removes the punctuation around a piece.
fn core(text: &str, range: Range<usize>) -> Range<usize> {
    let piece = &text[range.clone()];
    let inner = piece.trim_matches(|c: char| !c.is_alphanumeric());
    if inner.is_empty() {
        return range.end..range.end;
    }
    let start = range.start + (inner.as_ptr() as usize - piece.as_ptr() as usize);
    start..start + inner.len()
}

/// Words whose `'s` is a verb.
const CONTRACTED: [&str; 11] = ["he", "she", "it", "that", "what", "who", "there", "here", "where", "how", "let"];

fn plain(text: &str, range: Range<usize>) -> (Range<usize>, String) {
    let lower = text[range.clone()].to_lowercase().replace('’', "'");
    let inner = &text[range.clone()];
    for possessive in ["'s", "’s", "'S"] {
        let before = inner.strip_suffix(possessive).filter(|before| !before.is_empty());
        let plain = lower.strip_suffix("'s").filter(|plain| !CONTRACTED.contains(plain));
        if let (Some(before), Some(plain)) = (before, plain) {
            return (range.start..range.start + before.len(), plain.to_owned());
        }
    }
    (range, lower)
}

/// Whose utterances follow each other in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextOf {
    /// Those of a speaker of a channel, or of a channel whose speakers were not told apart.
    Speaker,
    /// All of a channel: the change of speakers may be a mistake.
    Channel,
}

/// Returns the texts of all voices. `is_written` says whether the recogniser writes case.
pub(super) fn voice_texts(utterances: &[Utterance], is_written: bool, of: TextOf) -> Vec<VoiceText> {
    let mut texts = split_voices(utterances, of);
    for text in &mut texts {
        // Some write no capitals but those of sentences.
        let is_name_like = |token: &TextToken| token.is_capital && !token.begins_sentence && token.range.len() > 1;
        text.is_cased = is_written && text.tokens.iter().any(is_name_like);
    }
    texts
}

fn split_voices(utterances: &[Utterance], of: TextOf) -> Vec<VoiceText> {
    let mut open: BTreeMap<(u32, Option<u32>), (VoiceText, f64)> = BTreeMap::new();
    let mut ended = Vec::new();
    for (number, utterance) in utterances.iter().enumerate() {
        let (text, end) = open
            .entry((utterance.channel, utterance.speaker.filter(|_| of == TextOf::Speaker)))
            .or_insert_with(|| (VoiceText::default(), utterance.start));
        let is_long = text.text.len() > MOST_BYTES;
        if utterance.start - *end > LONGEST_PAUSE || is_long {
            ended.push(std::mem::take(text));
        }
        text.add(number, utterance);
        *end = utterance.end;
    }
    ended.extend(open.into_values().map(|(text, _)| text));
    ended
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::domain::transcript::Word;

    /// Returns an utterance of these words, a second each.
    pub(in crate::server::redaction) fn utterance(text: &str, start: f64) -> Utterance {
        let word = |(at, word): (usize, &str)| {
            let start = start + at as f64 * 0.4;
            Word { text: format!(" {word}"), start, end: start + 0.3, confidence: 0.75 }
        };
        let words: Vec<Word> = text.split(' ').filter(|word| !word.is_empty()).enumerate().map(word).collect();
        let base = Utterance {
            text: text.to_owned(),
            start,
            end: start,
            confidence: 0.75,
            channel: 0,
            speaker: None,
            language: "en".to_owned(),
            words: Vec::new(),
        };
        if words.is_empty() { base } else { base.with_words(words) }
    }

    #[test]
    fn tokens_have_no_punctuation_and_know_their_words() {
        let texts =
            voice_texts(&[utterance("Is it John's, (415) 555?", 0.0), utterance("Yes.", 4.0)], true, TextOf::Speaker);
        let [text] = &texts[..] else { panic!("one voice") };
        let plain: Vec<&str> = text.tokens.iter().map(|token| token.plain.as_str()).collect();
        assert_eq!(plain, ["is", "it", "john", "415", "555", "yes"]);
        assert!(text.tokens[2].is_capital && text.tokens[5].begins_sentence && !text.tokens[3].begins_sentence);
        assert_eq!((text.words[5].utterance, text.words[5].word, text.tokens[5].start), (1, 0, 4.0));
        assert_eq!(text.has_at(3, "415 555"), Some(5));
    }

    #[test]
    fn a_long_pause_and_another_voice_end_a_text() {
        let mut other = utterance("four", 1.0);
        other.channel = 1;
        let all = [utterance("one", 0.0), other, utterance("two", 10.0), utterance("three", 60.0)];
        let mut texts: Vec<String> =
            voice_texts(&all, false, TextOf::Speaker).into_iter().map(|text| text.text).collect();
        texts.sort();
        assert_eq!(texts, [" four", " one  two", " three"]);
    }
}
