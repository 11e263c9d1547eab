//! The words of the sound that two neighbouring parts share: each is kept once.

use crate::domain::transcript::{Utterance, Word};
use crate::domain::word_overlap::{JoinableWord, Overlap, covers, seam};
use std::collections::{BTreeMap, BTreeSet};

/// How far from the shared sound words are still compared, in seconds: the times of a word differ a little between two
/// recognitions.
const NEAR: f64 = 5.0;

/// A word with its utterance.
pub(super) struct UtteranceWord<'u> {
    utterance: usize,
    text: &'u str,
    times: (f64, f64),
    pub(super) speaker: Option<u32>,
}

impl JoinableWord for UtteranceWord<'_> {
    fn text(&self) -> &str {
        self.text
    }

    fn times(&self) -> (f64, f64) {
        self.times
    }
}

/// Returns the words of a channel whose time `is_near` the cut, in order of time.
fn words_of<'u>(
    utterances: &'u [Utterance],
    channel: u32,
    is_near: &dyn Fn(f64, f64) -> bool,
) -> Vec<UtteranceWord<'u>> {
    let mut words = Vec::new();
    for (at, utterance) in utterances.iter().enumerate().filter(|(_, utterance)| utterance.channel == channel) {
        let speaker = utterance.speaker;
        let of_word = |word: &'u Word| UtteranceWord { utterance: at, text: &word.text, times: word.times(), speaker };
        words.extend(utterance.words.iter().map(of_word));
    }
    words.retain(|word| is_near(word.times.0, word.times.1));
    words.sort_by(|one, other| one.times.0.total_cmp(&other.times.0));
    words
}

pub(super) fn words_before(utterances: &[Utterance], channel: u32, overlap: Overlap) -> Vec<UtteranceWord<'_>> {
    words_of(utterances, channel, &|_, end| end > overlap.from - NEAR)
}

pub(super) fn words_after(utterances: &[Utterance], channel: u32, overlap: Overlap) -> Vec<UtteranceWord<'_>> {
    words_of(utterances, channel, &|start, _| start < overlap.to + NEAR)
}

pub(super) fn channels(utterances: &[Utterance]) -> BTreeSet<u32> {
    utterances.iter().map(|utterance| utterance.channel).collect()
}

/// Leaves each word of the shared sound in one of the two.
pub(super) fn join_words(before: &mut Vec<Utterance>, after: &mut Vec<Utterance>, overlap: Overlap) {
    let both: Vec<u32> = channels(before).intersection(&channels(after)).copied().collect();
    let (mut gone_before, mut gone_after) = (BTreeMap::new(), BTreeMap::new());
    for channel in both {
        let (left, right) = (words_before(before, channel, overlap), words_after(after, channel, overlap));
        let (kept, dropped) = seam(&left, &right, overlap);
        count(&left[kept..], &mut gone_before);
        count(&right[..dropped], &mut gone_after);
    }
    drop_repeated_texts(before, after, overlap);
    shorten(before, &gone_before, |words, gone| words.truncate(words.len() - gone));
    shorten(after, &gone_after, |words, gone| drop(words.drain(..gone)));
}

/// Removes the utterances of the second that have a text alone, begin in the shared sound, and are in the first.
fn drop_repeated_texts(before: &[Utterance], after: &mut Vec<Utterance>, overlap: Overlap) {
    let is_repeated = |utterance: &Utterance| {
        let is_same = |known: &&Utterance| known.channel == utterance.channel && covers(*known, utterance);
        utterance.words.is_empty() && utterance.start < overlap.to && before.iter().any(|known| is_same(&known))
    };
    after.retain(|utterance| !is_repeated(utterance));
}

/// Counts how many words each utterance loses.
fn count(words: &[UtteranceWord<'_>], gone: &mut BTreeMap<usize, usize>) {
    for word in words {
        *gone.entry(word.utterance).or_default() += 1;
    }
}

/// Takes words from utterances. An utterance that has none left is removed.
fn shorten(utterances: &mut Vec<Utterance>, gone: &BTreeMap<usize, usize>, take: impl Fn(&mut Vec<Word>, usize)) {
    let mut at = 0;
    utterances.retain_mut(|utterance| {
        let lost = gone.get(&at).copied().unwrap_or(0);
        at += 1;
        if lost == 0 {
            return true;
        }
        let mut words = std::mem::take(&mut utterance.words);
        let left = words.len().saturating_sub(lost);
        if left > 0 {
            take(&mut words, lost);
            *utterance = utterance.with_words(words);
        }
        left > 0
    });
}
