//! Decides whether speech was understood, by the recogniser's confidence in its words. Pure.
//!
//! A recogniser that knows one language makes words of that language out of any speech. Only their confidences show
//! whether they are the words that were said. Measured (`docs/explanation/accuracy.md`): the mean confidence of clear
//! English is above 0.55; that of other languages, and of English whose words are mostly wrong, is below 0.45. The
//! confidences do not tell which of these two it is.

use crate::domain::transcript::Utterance;
use serde::Serialize;
use std::collections::BTreeMap;

/// The mean confidence from which words count as understood.
pub const UNDERSTOOD: f64 = 0.5;

/// How many words of one channel are judged together: some ten seconds. The confidence of a single word says little.
const TOGETHER: usize = 40;

/// The fewest words of a channel whose mean is meaningful. Measured: of eight words of clear English in a row one mean
/// in a hundred is below [`UNDERSTOOD`], of ten none; of five one in ten.
pub const ENOUGH: usize = 10;

/// A stretch of speech that was not understood.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Doubtful {
    /// Seconds.
    pub start: f64,
    /// Seconds.
    pub end: f64,
    /// The mean confidence of its words.
    pub confidence: f64,
    /// Counted from 0.
    pub channel: u32,
}

/// Returns for each utterance, in order, whether it was not understood, judged with the words around it. Channels with
/// fewer words than `enough` are not judged.
pub fn find_doubtful(utterances: &[Utterance], enough: usize) -> Vec<bool> {
    let mut channels: BTreeMap<u32, Channel> = BTreeMap::new();
    for utterance in utterances {
        channels.entry(utterance.channel).or_default().add(utterance);
    }
    let mut before: BTreeMap<u32, usize> = BTreeMap::new();
    let judged = utterances.iter().map(|utterance| {
        let first = before.entry(utterance.channel).or_default();
        let words = *first..*first + utterance.words.len();
        *first = words.end;
        let channel = channels.get(&utterance.channel).filter(|channel| channel.words() >= enough);
        let mean = channel.and_then(|channel| channel.mean_around(words));
        mean.is_some_and(|mean| mean < UNDERSTOOD)
    });
    judged.collect()
}

/// Joins consecutive utterances of a channel that were not understood.
pub fn doubtful_stretches(utterances: &[Utterance], doubtful: &[bool]) -> Vec<Doubtful> {
    let mut open: BTreeMap<u32, (Doubtful, usize)> = BTreeMap::new();
    let mut ended = Vec::new();
    for (utterance, is_doubtful) in utterances.iter().zip(doubtful) {
        if !is_doubtful {
            ended.extend(open.remove(&utterance.channel).map(|(stretch, _)| stretch));
            continue;
        }
        let Utterance { start, end, channel, .. } = *utterance;
        let none = (Doubtful { start, end, confidence: 0.0, channel }, 0);
        let (stretch, words) = open.entry(channel).or_insert(none);
        let sum = utterance.words.iter().map(|word| word.confidence).sum::<f64>();
        let all = *words + utterance.words.len();
        stretch.confidence = (stretch.confidence * *words as f64 + sum) / all.max(1) as f64;
        (stretch.end, *words) = (end, all);
    }
    ended.extend(open.into_values().map(|(stretch, _)| stretch));
    ended.iter_mut().for_each(|stretch| stretch.confidence = (stretch.confidence * 100.0).round() / 100.0);
    ended.sort_by(|one, other| one.start.total_cmp(&other.start));
    ended
}

/// The confidences of a channel's words.
#[derive(Default)]
struct Channel {
    /// The sum of the confidences before each word, and the sum of all.
    sums: Vec<f64>,
}

impl Channel {
    fn add(&mut self, utterance: &Utterance) {
        if self.sums.is_empty() {
            self.sums.push(0.0);
        }
        for word in &utterance.words {
            self.sums.push(self.sums.last().copied().unwrap_or_default() + word.confidence);
        }
    }

    fn words(&self) -> usize {
        self.sums.len().saturating_sub(1)
    }

    /// Returns the mean confidence of these words and those around them, [`TOGETHER`] in all if there are so many.
    fn mean_around(&self, words: std::ops::Range<usize>) -> Option<f64> {
        let all = Some(self.words()).filter(|all| *all > 0)?;
        let more = TOGETHER.saturating_sub(words.len());
        let end = (words.end + more.div_ceil(2)).clamp(TOGETHER.min(all), all);
        let start = words.start.min(end.saturating_sub(TOGETHER));
        let mean = (self.sums.get(end)? - self.sums.get(start)?) / (end - start) as f64;
        Some(mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::transcript::Word;
    use proptest::prelude::*;

    fn utterance(start: f64, channel: u32, confidences: &[f64]) -> Utterance {
        let word = |confidence: &f64| Word { text: " a".to_owned(), start, end: start, confidence: *confidence };
        Utterance {
            text: "a".to_owned(),
            start,
            end: start + 1.0,
            confidence: 0.0,
            channel,
            speaker: None,
            language: "en".to_owned(),
            words: confidences.iter().map(word).collect(),
        }
    }

    /// Returns utterances of ten words each, one a second.
    fn said(confidences: &[f64]) -> Vec<Utterance> {
        confidences.iter().enumerate().map(|(at, sure)| utterance(at as f64, 0, &[*sure; 10])).collect()
    }

    #[test]
    fn what_the_recogniser_is_sure_of_was_understood() {
        assert_eq!(find_doubtful(&said(&[0.5]), ENOUGH), [false]);
        assert_eq!(find_doubtful(&said(&[0.49]), ENOUGH), [true]);
        assert!(find_doubtful(&[], ENOUGH).is_empty());
        let unsure_once = said(&[0.8, 0.7, 0.2, 0.8, 0.7]);
        assert!(!find_doubtful(&unsure_once, ENOUGH).contains(&true), "a single utterance says little");
    }

    #[test]
    fn a_few_words_are_judged_only_where_a_language_is_to_be_detected() {
        let few = [utterance(0.0, 0, &[0.1; 9])];
        assert_eq!(find_doubtful(&few, ENOUGH), [false]);
        assert_eq!(find_doubtful(&few, 1), [true]);
    }

    #[test]
    fn another_language_in_the_middle_is_found() {
        let all: Vec<f64> = [[0.7; 8], [0.3; 8], [0.7; 8]].concat();
        let (utterances, expected) = (said(&all), 7..17);
        let doubtful = find_doubtful(&utterances, 1);
        let found: Vec<usize> = (0..24).filter(|at| doubtful[*at]).collect();
        assert!(found.iter().all(|at| expected.contains(at)) && found.len() >= 8, "{found:?}");
        let [one] = doubtful_stretches(&utterances, &doubtful)[..] else { panic!("one stretch") };
        assert!((7.0..=8.0).contains(&one.start) && (16.0..=17.0).contains(&one.end), "{one:?}");
        assert!((0.25..0.4).contains(&one.confidence), "{one:?}");
    }

    #[test]
    fn channels_are_judged_one_by_one() {
        let utterances = [utterance(0.0, 0, &[0.9; 9]), utterance(0.5, 1, &[0.2; 9]), utterance(2.0, 0, &[0.9; 9])];
        let doubtful = find_doubtful(&utterances, 1);
        assert_eq!(doubtful, [false, true, false]);
        let expected = Doubtful { start: 0.5, end: 1.5, confidence: 0.2, channel: 1 };
        assert_eq!(doubtful_stretches(&utterances, &doubtful), [expected]);
    }

    proptest! {
        #[test]
        fn every_utterance_is_judged(lengths in prop::collection::vec((0..60_usize, 0..3_u32, 0.0..1.0_f64), 0..20)) {
            let utterances: Vec<Utterance> = lengths
                .iter()
                .enumerate()
                .map(|(at, (words, channel, sure))| utterance(at as f64, *channel, &vec![*sure; *words]))
                .collect();
            let doubtful = find_doubtful(&utterances, 1);
            prop_assert_eq!(doubtful.len(), utterances.len());
            let all_sure = lengths.iter().all(|(_, _, sure)| *sure >= 0.5);
            prop_assert!(!all_sure || !doubtful.contains(&true));
            let none_sure = lengths.iter().all(|(_, _, sure)| *sure < 0.5);
            for (doubtful, utterance) in doubtful.iter().zip(&utterances) {
                prop_assert!(!none_sure || *doubtful || utterance.words.is_empty());
            }
            prop_assert!(doubtful_stretches(&utterances, &doubtful).iter().all(|one| one.confidence <= 1.0));
        }
    }
}
