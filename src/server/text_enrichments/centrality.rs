//! How much a text resembles the other ones: Erkan and Radev, "LexRank: Graph-based Lexical Centrality as Salience in Text
//! Summarization", 2004, in its form without a threshold. Texts are compared by the cosine of their words, where a word counts
//! the more the fewer texts have it. A text is central if central texts resemble it.

use super::stems::NumberedStems;
use std::collections::BTreeMap;

/// How much of its rank a text gives to those that resemble it; the rest goes to all.
const DAMPING: f64 = 0.85;

/// So many times the ranks are passed on. They hardly change in the end.
const ROUNDS: usize = 60;

/// A text that resembles others less than this resembles none: the rest is rounding.
const NONE: f64 = 1e-9;

/// The words of a text with their weights; the squares of these sum up to 1, unless no word distinguishes it.
type WeighedWords = Vec<(usize, f64)>;

/// The texts of a transcript by their words.
pub(super) struct WeighedTexts {
    texts: Vec<WeighedWords>,
    different: usize,
}

impl WeighedTexts {
    pub(super) fn of(stems: &NumberedStems) -> Self {
        let counted: Vec<BTreeMap<usize, f64>> = stems.texts.iter().map(|text| counts(text)).collect();
        let mut having = vec![0_usize; stems.different()];
        counted.iter().flat_map(BTreeMap::keys).for_each(|word| having[*word] += 1);
        let all = counted.len() as f64;
        let weigh = |text: BTreeMap<usize, f64>| {
            let weight = |(word, uses): (usize, f64)| (word, uses * (all / having[word] as f64).ln());
            let words: WeighedWords = text.into_iter().map(weight).collect();
            let length = words.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
            let unit = |(word, weight): (usize, f64)| (word, if length > 0.0 { weight / length } else { 0.0 });
            words.into_iter().map(unit).collect()
        };
        Self { texts: counted.into_iter().map(weigh).collect(), different: stems.different() }
    }

    /// Returns the rank of each text; they sum up to 1 at most.
    pub(super) fn centralities(&self) -> Vec<f64> {
        let even = 1.0 / self.texts.len().max(1) as f64;
        let degrees = self.resemblances(&vec![1.0; self.texts.len()]);
        let mut ranks = vec![even; self.texts.len()];
        for _ in 0..ROUNDS {
            let share = |(rank, degree): (&f64, &f64)| if *degree > NONE { rank / degree } else { 0.0 };
            let shares: Vec<f64> = ranks.iter().zip(&degrees).map(share).collect();
            let passed = self.resemblances(&shares);
            ranks = passed.into_iter().map(|sum| (1.0 - DAMPING) * even + DAMPING * sum).collect();
        }
        ranks
    }

    /// Returns for each text the sum of its resemblances to the other ones, each of which counts by its share. The matrix of
    /// resemblances is the product of the words with themselves, and is never written out.
    fn resemblances(&self, shares: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.different];
        for (text, share) in self.texts.iter().zip(shares) {
            text.iter().for_each(|(word, weight)| sums[*word] += weight * share);
        }
        let of_text = |(text, share): (&WeighedWords, &f64)| {
            let others = |(word, weight): &(usize, f64)| weight * (sums[*word] - weight * share);
            text.iter().map(others).sum::<f64>().max(0.0)
        };
        self.texts.iter().zip(shares).map(of_text).collect()
    }

    /// Returns how much two texts resemble each other, from 0 to 1.
    pub(super) fn resemblance(&self, one: usize, other: usize) -> f64 {
        let (Some(one), Some(other)) = (self.texts.get(one), self.texts.get(other)) else { return 0.0 };
        let in_other = |word: usize| other.binary_search_by_key(&word, |(word, _)| *word).ok().map(|at| other[at].1);
        one.iter().filter_map(|(word, weight)| Some(weight * in_other(*word)?)).sum()
    }
}

fn counts(text: &[usize]) -> BTreeMap<usize, f64> {
    let mut counts = BTreeMap::new();
    text.iter().for_each(|word| *counts.entry(*word).or_insert(0.0) += 1.0);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn weighed(texts: &[&str]) -> WeighedTexts {
        WeighedTexts::of(&NumberedStems::of(texts.iter().copied()))
    }

    #[test]
    fn what_others_resemble_is_central() {
        let texts = weighed(&["a red boat", "the red boat sails", "a boat sails home", "green tea", "", "..."]);
        let ranks = texts.centralities();
        assert!(ranks[..3].iter().all(|rank| *rank > 2.0 * ranks[3]), "{ranks:?}");
        assert!((ranks[3], ranks[4]) == (ranks[4], ranks[5]), "{ranks:?}");
    }

    #[test]
    fn resemblance_is_that_of_the_words() {
        let texts = weighed(&["a red harbour", "red harbours: a red harbour", "green tea", "black coffee"]);
        assert!(texts.resemblance(0, 0) > 0.999 && texts.resemblance(0, 1) > 0.8);
        assert_eq!((texts.resemblance(0, 2), texts.resemblance(0, 9)), (0.0, 0.0));
    }

    proptest! {
        #[test]
        fn ranks_are_positive_and_share_one(texts in prop::collection::vec("([a-e]{1,2} ){0,8}", 1..30)) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let ranks = weighed(&texts).centralities();
            prop_assert!(ranks.iter().all(|rank| *rank > 0.0 && rank.is_finite()), "{:?}", ranks);
            prop_assert!(ranks.iter().sum::<f64>() < 1.0 + 1e-6);
        }
    }
}
