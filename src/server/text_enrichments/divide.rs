//! Divides a text into segments of similar words: Utiyama and Isahara, "A Statistical Model for Domain-Independent Text
//! Segmentation", 2001. Each segment has a probability of its own for each word; the segments are those that together make
//! the text most probable, with a price for each. Words that are everywhere have nearly the same probability in each segment,
//! so that no list of them is needed.
//!
//! The settings were chosen on one half of the texts that accuracy was measured on. With those of the paper, a text about one
//! thing is divided into four.

use super::stems::NumberedStems;

/// The price of a segment, in logarithms of the number of words; 1 in the paper.
const PRICE: f64 = 48.0;

/// How often a word counts as used in a segment beside its uses, so that no word is impossible; 1 in the paper.
const UNSEEN: f64 = 0.3;

/// The fewest words of a segment: less than a minute of speech is no chapter.
const LEAST_WORDS: usize = 100;

/// The most pieces that a text is divided between: a longer text is divided between groups of its pieces. Each piece is
/// compared with all words behind it, so that the longest texts have fewer.
const PIECES: std::ops::RangeInclusive<usize> = 200..=1_500;
const STEPS: usize = 60_000_000;

/// Returns the numbers of the texts, without the first one, at which a segment begins.
pub(super) fn divide(stems: &NumberedStems) -> Vec<usize> {
    let words: usize = stems.texts.iter().map(Vec::len).sum();
    let most = (STEPS / words.max(1)).clamp(*PIECES.start(), *PIECES.end());
    let group = stems.texts.len().div_ceil(most).max(1);
    let pieces: Vec<Vec<usize>> = stems.texts.chunks(group).map(<[Vec<usize>]>::concat).collect();
    most_probable(&pieces, stems.different()).into_iter().map(|piece| piece * group).collect()
}

/// Returns the first pieces of the segments, without 0.
fn most_probable(pieces: &[Vec<usize>], different: usize) -> Vec<usize> {
    let words: usize = pieces.iter().map(Vec::len).sum();
    let price = PRICE * (words.max(1) as f64).ln();
    let weights = Weights::new(words);
    // The cost of the best division of the pieces before each, and where its last segment begins.
    let mut best = vec![(f64::INFINITY, 0); pieces.len() + 1];
    best[0] = (0.0, 0);
    let mut counts = vec![0; different];
    for begin in 0..pieces.len() {
        let before = best[begin].0;
        if before.is_infinite() {
            continue;
        }
        counts.fill(0);
        let (mut length, mut repeated) = (0, 0.0);
        for end in begin + 1..=pieces.len() {
            for word in &pieces[end - 1] {
                repeated += weights.gain(counts[*word]);
                counts[*word] += 1;
            }
            length += pieces[end - 1].len();
            let is_whole = begin == 0 && end == pieces.len();
            let cost = before + price + length as f64 * (length as f64 + UNSEEN * different as f64).ln() - repeated;
            if (length >= LEAST_WORDS || is_whole) && cost < best[end].0 {
                best[end] = (cost, begin);
            }
        }
    }
    let mut begins = Vec::new();
    let mut at = pieces.len();
    while at > 0 {
        at = best[at].1;
        begins.push(at);
    }
    begins.into_iter().rev().filter(|begin| *begin > 0).collect()
}

/// What a further use of a word adds to `n ln(n + UNSEEN)`, which stands for a word that is used `n` times.
struct Weights(Vec<f64>);

impl Weights {
    fn new(words: usize) -> Self {
        let sum = |uses: usize| uses as f64 * (uses as f64 + UNSEEN).ln();
        Self((0..words).map(|uses| sum(uses + 1) - sum(uses)).collect())
    }

    fn gain(&self, uses: usize) -> f64 {
        self.0.get(uses).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns texts of ten words each: `topics` has for each text the words that it chooses from.
    fn texts(topics: &[&str]) -> Vec<String> {
        let text = |(number, topic): (usize, &&str)| {
            let words: Vec<&str> = topic.split(' ').collect();
            let word = |at: usize| words[(number * 7 + at * at) % words.len()];
            (0..10).map(word).collect::<Vec<_>>().join(" ")
        };
        topics.iter().enumerate().map(text).collect()
    }

    fn divided(texts: &[String]) -> Vec<usize> {
        divide(&NumberedStems::of(texts.iter().map(String::as_str)))
    }

    const SEA: &str = "the of ship harbour sailor anchor tide captain storm rope";
    const BREAD: &str = "the of flour oven baker dough yeast crust kneading salt";
    const STARS: &str = "the of planet orbit comet galaxy telescope moon eclipse sky";

    #[test]
    fn a_segment_begins_where_the_words_change() {
        let topics: Vec<&str> = [[SEA; 60], [BREAD; 60], [STARS; 60], [SEA; 60]].concat();
        assert_eq!(divided(&texts(&topics)), [60, 120, 180]);
        assert!(divided(&texts(&[SEA; 60])).is_empty());
    }

    #[test]
    fn a_short_text_is_one_segment() {
        let fifty_words_each = texts(&[[SEA; 5], [BREAD; 5]].concat());
        for short in [Vec::new(), texts(&[SEA]), fifty_words_each, vec![String::new(); 9]] {
            assert!(divided(&short).is_empty(), "{short:?}");
        }
    }

    #[test]
    fn a_text_of_many_pieces_is_divided_between_groups_of_them() {
        let topics: Vec<&str> = [[SEA; 1_000], [BREAD; 1_000], [STARS; 1_000]].concat();
        assert_eq!(divided(&texts(&topics)), [1_000, 2_000]);
    }

    proptest! {
        #[test]
        fn segments_begin_in_order_and_have_words_enough(
            texts in prop::collection::vec("([a-d]{1,2} ){0,30}", 0..60)
        ) {
            let stems = NumberedStems::of(texts.iter().map(String::as_str));
            let begins = divide(&stems);
            let bounds: Vec<usize> = [0].into_iter().chain(begins.iter().copied()).chain([texts.len()]).collect();
            if !begins.is_empty() {
                for bound in bounds.windows(2) {
                    prop_assert!(bound[0] < bound[1]);
                    let words: usize = stems.texts[bound[0]..bound[1]].iter().map(Vec::len).sum();
                    prop_assert!(words >= LEAST_WORDS, "{} words in {:?}", words, bound);
                }
            }
            prop_assert_eq!(begins, divide(&stems));
        }
    }
}
