//! Makes words of the tokens of the library. A token is a part of a word, and may be a part of a letter. Pure.

use crate::server::recognition::recogniser::ChunkWord;
use crate::server::recognition::token_words::{in_order, joined_tokens, with_first_spaces};

/// A token of a segment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelToken {
    /// UTF-8, but for a letter that goes on in the next token.
    pub text: Vec<u8>,
    /// Seconds from the start of the chunk; below 0 if it is not known.
    pub start: f64,
    /// Seconds from the start of the chunk; below 0 if it is not known.
    pub end: f64,
    /// From 0 to 1.
    pub probability: f64,
}

/// Returns the words of the segments of a chunk of so many seconds.
pub(super) fn words(segments: Vec<Vec<ModelToken>>, seconds: f64) -> Vec<ChunkWord> {
    let mut now = 0.0;
    let segment = |tokens: Vec<ModelToken>| {
        let mut words = joined_tokens(whole_letters(tokens, &mut now));
        words.retain(|word| !word.text.trim().is_empty());
        words.iter_mut().take(1).for_each(|first| first.begins = true);
        words
    };
    let words = segments.into_iter().flat_map(segment).collect();
    in_order(with_first_spaces(words), seconds)
}

/// Joins tokens until their letters are whole. `now` is the end of the last token.
fn whole_letters(tokens: Vec<ModelToken>, now: &mut f64) -> Vec<ChunkWord> {
    let mut whole: Vec<ChunkWord> = Vec::new();
    let mut open: Option<ModelToken> = None;
    for token in tokens {
        let token = match open.take() {
            Some(before) => followed_by(before, token),
            None => token,
        };
        match std::str::from_utf8(&token.text) {
            // A letter has four bytes at most.
            Err(error) if error.error_len().is_none() && token.text.len() - error.valid_up_to() < 4 => {
                open = Some(token);
            }
            _ => whole.push(word(&token, now)),
        }
    }
    whole.extend(open.map(|token| word(&token, now)));
    whole
}

fn followed_by(before: ModelToken, next: ModelToken) -> ModelToken {
    ModelToken {
        text: [before.text, next.text].concat(),
        start: before.start,
        end: next.end,
        probability: before.probability.min(next.probability),
    }
}

/// A token without times follows the one before it.
fn word(token: &ModelToken, now: &mut f64) -> ChunkWord {
    let start = if token.start >= 0.0 { token.start } else { *now };
    let end = token.end.max(start);
    *now = end;
    ChunkWord {
        text: String::from_utf8_lossy(&token.text).into_owned(),
        start,
        end,
        confidence: Some(token.probability.clamp(0.0, 1.0)),
        begins: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token(text: &[u8], start: f64, end: f64) -> ModelToken {
        ModelToken { text: text.to_vec(), start, end, probability: 0.5 }
    }

    #[test]
    fn tokens_are_joined_to_words_with_their_punctuation() {
        let hello = vec![token(b" Hell", 0.1, 0.3), token(b"o", 0.3, 0.4), token(b",", 0.4, 0.4)];
        let world = vec![token(b" world", 0.5, 0.9), token(b".", 0.9, 1.0)];
        let words = words(vec![hello, world], 2.0);
        let seen: Vec<_> = words.iter().map(|one| (one.text.as_str(), one.start, one.end, one.begins)).collect();
        assert_eq!(seen, [(" Hello,", 0.1, 0.4, true), (" world.", 0.5, 1.0, true)]);
        assert_eq!(words[0].confidence, Some(0.5));
    }

    #[test]
    fn a_letter_in_two_tokens_is_whole() {
        let parts = vec![token(b" caf\xc3", 0.0, 0.2), token(b"\xa9", 0.2, 0.3)];
        assert_eq!(words(vec![parts], 1.0)[0].text, " café");
        let broken = vec![token(b" caf\xc3", 0.0, 0.2), token(b" x", 0.2, 0.3)];
        let seen: Vec<_> = words(vec![broken], 1.0).into_iter().map(|word| word.text).collect();
        assert_eq!(seen.concat(), " caf\u{fffd} x");
    }

    #[test]
    fn a_token_without_times_follows_the_one_before_it() {
        let words = words(vec![vec![token(b" a", 0.2, 0.4), token(b" b", -0.01, -0.01)]], 1.0);
        assert_eq!((words[1].start, words[1].end), (0.4, 0.4));
    }

    proptest! {
        #[test]
        fn no_letter_is_lost_and_times_are_in_order(
            texts in prop::collection::vec(("[a-zé你 ,]{0,6}", -1.0..20.0_f64, -1.0..20.0_f64), 0..20),
            cut in 1..4_usize,
        ) {
            let all: String = texts.iter().map(|(text, ..)| text.as_str()).collect();
            // Tokens are cut anywhere, also within a letter.
            let tokens = texts.iter().flat_map(|(text, start, end)| {
                text.as_bytes().chunks(cut).map(|part| token(part, *start, *end)).collect::<Vec<_>>()
            });
            let words = words(vec![tokens.collect()], 10.0);
            let letters = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
            let heard: String = words.iter().map(|word| word.text.as_str()).collect();
            prop_assert_eq!(letters(&heard), letters(&all));
            prop_assert!(words.is_sorted_by(|one, next| one.start <= next.start && one.end <= next.end.max(next.start)));
            prop_assert!(words.iter().all(|word| 0.0 <= word.start && word.start <= word.end && word.end <= 10.0));
        }
    }
}
