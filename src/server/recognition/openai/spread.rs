//! Spreads the words of a text over the times in which something was said, by the lengths of the words. Pure.

use crate::server::recognition::recogniser::ChunkWord;

/// A stretch of time, in seconds from the start of a chunk.
pub type SpokenSpan = (f64, f64);

/// Returns the words of `text` with estimated times within `spans`, which are in order and do not overlap. Without
/// spans there is no time to spread them over, and all get the time zero.
pub(crate) fn spread(text: &str, spans: &[SpokenSpan], confidence: Option<f64>) -> Vec<ChunkWord> {
    let words = split_words(text);
    let letters = |word: &&str| word.trim().chars().count().max(1);
    let all: usize = words.iter().map(letters).sum();
    let seconds: f64 = spans.iter().map(|(start, end)| (end - start).max(0.0)).sum();
    let mut before = 0;
    let mut time = |letters: usize| {
        before += letters;
        at(spans, seconds * before as f64 / all.max(1) as f64)
    };
    let mut start = spans.first().map_or(0.0, |(start, _)| *start);
    let word = |word: &str| {
        let end = time(letters(&word));
        let spread = ChunkWord { text: word.to_owned(), start, end, confidence, begins: false };
        start = end;
        spread
    };
    words.into_iter().map(word).collect()
}

/// Returns the moment before which so many seconds of the spans lie.
fn at(spans: &[SpokenSpan], mut seconds: f64) -> f64 {
    for (start, end) in spans {
        let length = (end - start).max(0.0);
        if seconds <= length {
            return start + seconds;
        }
        seconds -= length;
    }
    spans.last().map_or(0.0, |(_, end)| *end)
}

/// Splits a text into words, each with the space before it. In scripts without spaces each character is one.
pub(super) fn split_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut begin, mut has_letters) = (0, false);
    for (at, letter) in text.char_indices() {
        let begins = has_letters && (letter.is_whitespace() || is_unspaced(letter));
        if begins {
            words.push(&text[begin..at]);
            (begin, has_letters) = (at, false);
        }
        has_letters |= !letter.is_whitespace();
    }
    words.extend(has_letters.then(|| text[begin..].trim_end()));
    words
}

/// Whether this is a letter of a script that puts no spaces between words.
pub(in crate::server::recognition) fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_spread_by_their_lengths_over_what_was_said() {
        let words = spread("one three, a", &[(1.0, 2.0), (5.0, 6.0)], None);
        let told: Vec<(&str, f64, f64)> = words.iter().map(|word| (word.text.as_str(), word.start, word.end)).collect();
        assert_eq!(told, [("one", 1.0, 1.6), (" three,", 1.6, 5.8), (" a", 5.8, 6.0)]);
        assert_eq!(split_words("你好吗？ good"), ["你", "好", "吗？", " good"]);
        assert!(split_words(" \n ").is_empty() && spread("", &[(0.0, 1.0)], None).is_empty());
        assert_eq!(spread("one", &[], None)[0].end, 0.0);
    }

    proptest! {
        #[test]
        fn times_are_in_order_and_within_the_spans(
            text in ".{0,80}",
            lengths in prop::collection::vec((0.0..3.0_f64, 0.0..3.0_f64), 1..5),
        ) {
            let (mut now, mut spans) = (0.0, Vec::new());
            for (gap, length) in lengths {
                spans.push((now + gap, now + gap + length));
                now += gap + length;
            }
            let words = spread(&text, &spans, Some(0.5));
            let joined: String = words.iter().map(|word| word.text.as_str()).collect();
            prop_assert_eq!(joined.trim(), text.trim());
            let mut before = spans[0].0;
            for word in words {
                prop_assert!(before <= word.start + 1e-9 && word.start <= word.end + 1e-9 && word.end <= now + 1e-9);
                before = word.end;
            }
        }
    }
}
