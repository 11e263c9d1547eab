//! Finds the words that two texts have in common, in bounded time. Pure.

use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::HashMap;
use std::ops::Range;

/// The longest parts that are compared word by word: the product of their numbers of words. Longer parts are divided at
/// words that both have once; what is still longer counts as different.
const LONGEST_COMPARED: usize = 1 << 22;

/// Parts of two texts that belong together. Every word is in one run, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// The same words; both parts are equally long.
    Equal { old: Range<usize>, new: Range<usize> },
    /// The new words stand for the old ones; one part may be empty.
    Other { old: Range<usize>, new: Range<usize> },
}

/// Compares two texts word by word.
pub fn runs(old: &[&str], new: &[&str]) -> Vec<Run> {
    let mut runs = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    let anchors = if old.len().saturating_mul(new.len()) > LONGEST_COMPARED { anchors(old, new) } else { Vec::new() };
    for (old_anchor, new_anchor) in anchors.into_iter().chain([(old.len(), new.len())]) {
        compare(old, new, old_at..old_anchor, new_at..new_anchor, &mut runs);
        (old_at, new_at) = (old_anchor, new_anchor);
    }
    runs
}

/// Compares two parts, of which the words at both ends are often the same.
fn compare(old: &[&str], new: &[&str], old_part: Range<usize>, new_part: Range<usize>, runs: &mut Vec<Run>) {
    let (o, n) = (&old[old_part.clone()], &new[new_part.clone()]);
    let first = o.iter().zip(n).take_while(|(old, new)| old == new).count();
    let last = o[first..].iter().rev().zip(n[first..].iter().rev()).take_while(|(old, new)| old == new).count();
    let old_middle = old_part.start + first..old_part.end - last;
    let new_middle = new_part.start + first..new_part.end - last;
    if first > 0 {
        runs.push(Run::Equal { old: old_part.start..old_middle.start, new: new_part.start..new_middle.start });
    }
    compare_middle(old, new, &old_middle, &new_middle, runs);
    if last > 0 {
        runs.push(Run::Equal { old: old_middle.end..old_part.end, new: new_middle.end..new_part.end });
    }
}

fn compare_middle(old: &[&str], new: &[&str], o: &Range<usize>, n: &Range<usize>, runs: &mut Vec<Run>) {
    if o.is_empty() && n.is_empty() {
        return;
    }
    if o.is_empty() || n.is_empty() || o.len().saturating_mul(n.len()) > LONGEST_COMPARED {
        runs.push(Run::Other { old: o.clone(), new: n.clone() });
        return;
    }
    let (mut old_at, mut new_at) = (o.start, n.start);
    for op in capture_diff_slices(Algorithm::Myers, &old[o.clone()], &new[n.clone()]) {
        // Where one part is empty, its position is not always that of its neighbours.
        let (_, old_range, new_range) = op.as_tag_tuple();
        let (old, new) = (old_at..old_at + old_range.len(), new_at..new_at + new_range.len());
        (old_at, new_at) = (old.end, new.end);
        runs.push(match op {
            DiffOp::Equal { .. } => Run::Equal { old, new },
            _ => Run::Other { old, new },
        });
    }
}

/// Returns the places of words that both texts have once, as many as are in the same order.
fn anchors(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let (in_old, in_new) = (unique(old), unique(new));
    let mut pairs: Vec<(usize, usize)> =
        in_old.iter().filter_map(|(word, at)| Some((*at, *in_new.get(word)?))).collect();
    pairs.sort_unstable();
    longest_rising(&pairs)
}

fn unique<'w>(words: &[&'w str]) -> HashMap<&'w str, usize> {
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        counts.entry(word).or_insert((at, 0)).1 += 1;
    }
    counts.into_iter().filter(|(_, (_, count))| *count == 1).map(|(word, (at, _))| (word, at)).collect()
}

/// Returns the longest part of the pairs in which the second numbers rise (patience sorting).
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The index of the pair with the least end of each length, and before each pair the one that precedes it.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::with_capacity(pairs.len()));
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut rising: Vec<(usize, usize)> =
        std::iter::successors(ends.last().copied(), |at| before[*at]).map(|at| pairs[at]).collect();
    rising.reverse();
    rising
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(old: &[&str], new: &[&str]) -> usize {
        let (mut old_at, mut new_at, mut equal) = (0, 0, 0);
        for run in runs(old, new) {
            let (o, n) = match run {
                Run::Equal { old: o, new: n } => {
                    assert_eq!(old[o.clone()], new[n.clone()]);
                    equal += o.len();
                    (o, n)
                }
                Run::Other { old, new } => (old, new),
            };
            assert_eq!((o.start, n.start), (old_at, new_at));
            (old_at, new_at) = (o.end, n.end);
        }
        assert_eq!((old_at, new_at), (old.len(), new.len()));
        equal
    }

    #[test]
    fn long_texts_are_compared_between_the_words_that_they_have_once() {
        let words: Vec<String> = (0..30_000).map(|n| format!("w{}", if n % 7 == 0 { n } else { n % 50 })).collect();
        let old: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut new = old.clone();
        for at in (100..30_000).step_by(1_000).rev() {
            new.remove(at);
            new.insert(at - 50, "corrected");
        }
        assert!(check(&old, &new) >= 29_900);
        let other = vec!["other"; 1_000_000];
        assert_eq!(check(&old, &other), 0);
    }

    proptest! {
        #[test]
        fn every_word_is_in_one_run(
            old in prop::collection::vec("[a-c]", 0..30), new in prop::collection::vec("[a-c]", 0..30),
        ) {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let equal = check(&old, &new);
            prop_assert!(old != new || equal == old.len());
            let pairs = anchors(&old, &new);
            prop_assert!(pairs.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        }
    }
}
