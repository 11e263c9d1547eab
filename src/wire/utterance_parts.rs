//! Divides an utterance that is longer than what can be laid out at once. Nobody speaks so long without a pause: such
//! an utterance comes from a service that does not find pauses, or from one that has failed.

use crate::domain::transcript::{Utterance, Word};

/// Divides an utterance into parts whose text has at most `most` bytes, at spaces where it has any. The words go with
/// their text. Words whose text in one part has more than `most` bytes are dropped; the second value is their number.
pub(super) fn in_parts(utterance: Utterance, most: usize) -> (Vec<Utterance>, u64) {
    let word_bytes: usize = utterance.words.iter().map(|word| word.text.len()).sum();
    if utterance.text.len().max(word_bytes) <= most {
        return (vec![utterance], 0);
    }
    let Utterance { text, words, start, end, .. } = utterance;
    let whole = Utterance { text: String::new(), words: Vec::new(), language: utterance.language, ..utterance };
    let total = text.len();
    let words: Vec<Word> = words.into_iter().flat_map(|word| word_in_parts(word, most)).collect();
    let mut words = Shares { words, next: 0, bytes: 0, total: word_bytes };
    let (mut parts, mut dropped, mut begin) = (Vec::new(), 0, 0);
    for part in texts(&text, most) {
        let reached = part.as_ptr().addr() - text.as_ptr().addr() + part.len();
        let at = |bytes: usize| start + (end - start) * bytes as f64 / total as f64;
        let mut own = words.up_to(reached, total);
        dropped += keep(&mut own, most);
        let first = own.first().map_or_else(|| at(begin), |word| word.start);
        let last = own.last().map_or_else(|| at(reached), |word| word.end);
        begin = reached;
        parts.push(Utterance { text: part.trim().to_owned(), start: first, end: last, words: own, ..whole.clone() });
    }
    parts.retain(|part| !part.text.is_empty());
    (parts, dropped)
}

/// Words that are given out with their share of the text.
struct Shares {
    words: Vec<Word>,
    next: usize,
    /// The bytes of the words that were given out, of `total`.
    bytes: usize,
    total: usize,
}

impl Shares {
    /// Returns the next words, up to the share that `reached` bytes of a text of `whole` bytes have.
    fn up_to(&mut self, reached: usize, whole: usize) -> Vec<Word> {
        let from = self.next;
        let share = if reached == whole { f64::INFINITY } else { reached as f64 / whole as f64 * self.total as f64 };
        // A word goes where its middle is.
        let has_part = |word: &&Word, bytes: usize| bytes as f64 + word.text.len() as f64 / 2.0 < share;
        while let Some(word) = self.words.get(self.next).filter(|word| has_part(word, self.bytes)) {
            self.bytes += word.text.len();
            self.next += 1;
        }
        self.words[from..self.next].to_vec()
    }
}

/// Keeps the first words that have at most `most` bytes together. Returns how many it drops.
fn keep(words: &mut Vec<Word>, most: usize) -> u64 {
    let mut bytes = 0;
    let kept = words.iter().take_while(|word| {
        bytes += word.text.len();
        bytes <= most
    });
    let kept = kept.count();
    let dropped = words.len() - kept;
    words.truncate(kept);
    dropped.try_into().unwrap_or(u64::MAX)
}

/// Divides a word that is longer than `most` bytes; its parts share its time.
fn word_in_parts(word: Word, most: usize) -> Vec<Word> {
    if word.text.len() <= most {
        return vec![word];
    }
    let whole = word.text.len() as f64;
    let mut reached = 0;
    let part = |text: &str| {
        let at = |bytes: usize| word.start + (word.end - word.start) * bytes as f64 / whole;
        let (start, end) = (at(reached), at(reached + text.len()));
        reached += text.len();
        Word { text: text.to_owned(), start, end, confidence: word.confidence }
    };
    texts(&word.text, most).map(part).collect()
}

/// Divides a text into parts of at most `most` bytes, after a space if there is one, else between characters.
fn texts(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.floor_char_boundary(most.max(4));
        let start = &rest[..end];
        let space = start.rfind(char::is_whitespace).filter(|at| end < rest.len() && *at > 0);
        let end = space.map_or(end, |at| at + start[at..].chars().next().map_or(0, char::len_utf8));
        let part;
        (part, rest) = rest.split_at(end);
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn utterance(text: &str, words: Vec<Word>) -> Utterance {
        Utterance {
            text: text.into(),
            start: 0.0,
            end: 10.0,
            confidence: 1.0,
            channel: 2,
            speaker: Some(3),
            language: "en".into(),
            words,
        }
    }

    fn word(text: &str, start: f64, end: f64) -> Word {
        Word { text: text.into(), start, end, confidence: 1.0 }
    }

    #[test]
    fn an_utterance_is_divided_at_spaces_and_its_words_go_with_their_text() {
        let words = vec![word("aaa", 0.0, 2.0), word("bbb", 2.0, 4.0), word("ccc", 6.0, 9.0)];
        let (parts, dropped) = in_parts(utterance("aaa bbb ccc", words), 8);
        let shown: Vec<_> = parts.iter().map(|part| (&*part.text, part.start, part.end, part.words.len())).collect();
        assert_eq!((shown, dropped), (vec![("aaa bbb", 0.0, 4.0, 2), ("ccc", 6.0, 9.0, 1)], 0));
        assert!(parts.iter().all(|part| (part.channel, part.speaker, &*part.language) == (2, Some(3), "en")));
    }

    #[test]
    fn one_word_is_divided_between_characters_and_its_parts_share_the_time() {
        let (parts, dropped) = in_parts(utterance("ääää", vec![word("ääää", 1.0, 5.0)]), 4);
        let shown: Vec<_> = parts.iter().map(|part| (&*part.text, part.start, part.end)).collect();
        assert_eq!((shown, dropped), (vec![("ää", 1.0, 3.0), ("ää", 3.0, 5.0)], 0));
        let (parts, _) = in_parts(utterance("ääää", Vec::new()), 4);
        assert_eq!((parts[0].end, parts[1].start), (5.0, 5.0));
    }

    #[test]
    fn words_that_have_no_place_in_the_text_are_dropped_and_counted() {
        let words = vec![word("aaaa", 0.0, 1.0), word("bbbb", 1.0, 2.0), word("cccc", 2.0, 3.0)];
        let (parts, dropped) = in_parts(utterance("a", words), 8);
        assert_eq!((parts.len(), parts[0].words.len(), dropped), (1, 2, 1));
    }

    proptest! {
        #[test]
        fn no_text_is_lost_and_no_part_is_too_long(text in "[a-zé 語]{0,60}", count in 0_usize..6, most in 4_usize..20) {
            let words = (0..count).map(|n| word("wé", n as f64, n as f64 + 0.5)).collect();
            let (parts, _) = in_parts(utterance(&text, words), most);
            let solid = |text: &str| text.split_whitespace().collect::<String>();
            let all: String = parts.iter().map(|part| part.text.as_str()).collect();
            prop_assert_eq!(solid(&all), solid(&text));
            prop_assert!(parts.iter().all(|part| part.text.len() <= most || parts.len() == 1 && text.len() <= most));
        }
    }
}
