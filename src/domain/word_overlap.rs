//! Joins the words of two stretches of sound that were recognised apart: both contain the sound around the cut. Near its
//! own edge a recogniser mishears, so the words of the first stretch end, and those of the second begin, at a place
//! between the edges where both agree.

/// A word, or a whole text, with its times.
pub trait JoinableWord {
    /// Its text as displayed.
    fn text(&self) -> &str;
    /// Its start and its end, in seconds.
    fn times(&self) -> (f64, f64);
}

/// The sound that two stretches share, in seconds of the recording: from the start of the second to the end of the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlap {
    pub from: f64,
    pub to: f64,
    /// Whether times of words are estimated: then only their texts say which words are the same.
    pub is_estimated: bool,
}

/// How far apart the two times of one word may be, in seconds.
const TOLERANCE: f64 = 0.3;

/// A word that is so near to the edge of its stretch may be the rest of one that was cut.
const EDGE: f64 = 0.1;

/// The most words of each stretch that are compared.
const MOST_COMPARED: usize = 40;

/// The most words that are said in a second. Where times are estimated, it says how far from the edges the words of the
/// overlap can be: words that are equal farther away are said twice.
const MOST_A_SECOND: f64 = 8.0;

/// What a place costs, in words that are lost or said twice.
const LOST: f64 = 1.0;
/// How much less a place costs if the words on one side of it are the same in both stretches.
const AGREEMENT: f64 = 0.4;
/// What each second costs that a place is away from the middle.
const DISTANCE: f64 = 0.3;

/// Removes the words of each stretch that the other one has better. Both are in order of time, with times of the
/// recording.
pub fn join<W: JoinableWord>(before: &mut Vec<W>, after: &mut Vec<W>, overlap: Overlap) {
    let (kept, dropped) = seam(before, after, overlap);
    before.truncate(kept);
    after.drain(..dropped);
}

/// Returns how many words of `before` stay, and how many of `after` do not. Both are as for [`join`].
pub fn seam<W: JoinableWord>(before: &[W], after: &[W], overlap: Overlap) -> (usize, usize) {
    let by_texts = if overlap.is_estimated { by_texts(before, after, overlap) } else { None };
    by_texts.unwrap_or_else(|| by_times(before, after, overlap))
}

fn by_times<W: JoinableWord>(before: &[W], after: &[W], overlap: Overlap) -> (usize, usize) {
    let left = before.iter().rposition(|word| end(word) <= overlap.from).map_or(0, |at| at + 1);
    let right = after.iter().position(|word| start(word) >= overlap.to).unwrap_or(after.len());
    let (left, right) = (left.max(before.len().saturating_sub(MOST_COMPARED)), right.min(MOST_COMPARED));
    let (kept, dropped) = best_place(&before[left..], &after[..right], overlap);
    (left + kept, dropped)
}

/// As [`by_times`], if both have the same words where the overlap is.
fn by_texts<W: JoinableWord>(before: &[W], after: &[W], overlap: Overlap) -> Option<(usize, usize)> {
    let most = ((overlap.to - overlap.from) * MOST_A_SECOND).ceil() as usize;
    let (left, right) = (before.len().saturating_sub(most), after.len().min(most));
    let (kept, dropped) = same_run(&before[left..], &after[..right])?;
    Some((left + kept, dropped))
}

/// Returns where the two meet with the least harm: how many words of `one` stay, and how many of `other` do not.
fn best_place<W: JoinableWord>(one: &[W], other: &[W], overlap: Overlap) -> (usize, usize) {
    let places = (0..=one.len()).flat_map(|kept| (0..=other.len()).map(move |dropped| (kept, dropped)));
    let cost = |&(kept, dropped): &(usize, usize)| cost(one.split_at(kept), other.split_at(dropped), overlap);
    places.min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or_default()
}

/// What it costs to keep the first words of one chunk and the last ones of the other.
fn cost<W: JoinableWord>(one: (&[W], &[W]), other: (&[W], &[W]), overlap: Overlap) -> f64 {
    let (kept, left_out) = one;
    let (dropped, taken) = other;
    // Only its own edge cuts the words of a stretch: the end of the first, the start of the second.
    let is_before_edge = |word: &&W| end(*word) <= overlap.to - EDGE;
    let is_behind_edge = |word: &&W| start(*word) >= overlap.from + EDGE;
    let is_covered = |word: &W, by: &[W]| by.iter().any(|other| covers(other, word));
    let lost = left_out.iter().filter(|word| !is_covered(word, taken)).filter(is_before_edge).count()
        + dropped.iter().filter(|word| !is_covered(word, kept)).filter(is_behind_edge).count();
    let twice = taken.iter().filter(|word| is_covered(word, kept)).count();
    let agree = |a: Option<&W>, b: Option<&W>| a.zip(b).is_some_and(|(a, b)| is_same(a, b));
    let agreements =
        usize::from(agree(kept.last(), dropped.last())) + usize::from(agree(left_out.first(), taken.first()));
    let middle = f64::midpoint(overlap.from, overlap.to);
    let place = match (kept.last(), taken.first()) {
        (Some(last), Some(first)) => f64::midpoint(end(last), start(first)),
        (Some(last), None) => end(last).max(middle),
        (None, Some(first)) => start(first).min(middle),
        (None, None) => middle,
    };
    LOST * (lost + twice) as f64 - AGREEMENT * agreements as f64 + DISTANCE * (place - middle).abs()
}

fn start(word: &impl JoinableWord) -> f64 {
    word.times().0
}

fn end(word: &impl JoinableWord) -> f64 {
    word.times().1
}

/// Whether one word takes up at least half of the time of the other.
pub fn covers<W: JoinableWord>(one: &W, other: &W) -> bool {
    let common = end(one).min(end(other)) - start(one).max(start(other));
    let shorter = (end(one) - start(one)).min(end(other) - start(other));
    common > 0.0 && common >= shorter / 2.0
}

fn is_same<W: JoinableWord>(one: &W, other: &W) -> bool {
    (start(one) - start(other)).abs() <= TOLERANCE
        && (end(one) - end(other)).abs() <= TOLERANCE
        && has_same_text(one, other)
}

fn has_same_text<W: JoinableWord>(one: &W, other: &W) -> bool {
    let letters = |word: &W| -> String {
        word.text().chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

/// Returns the middle of the longest run of equal texts, at least two words: how many words of `one` stay, and how many
/// of `other` do not.
fn same_run<W: JoinableWord>(one: &[W], other: &[W]) -> Option<(usize, usize)> {
    let length = |at: usize, beside: usize| {
        one[at..].iter().zip(&other[beside..]).take_while(|(a, b)| has_same_text(*a, *b)).count()
    };
    let runs = (0..one.len()).flat_map(|at| (0..other.len()).map(move |beside| (at, beside)));
    let longest = runs.map(|(at, beside)| (length(at, beside), at, beside)).max_by_key(|(length, ..)| *length);
    let (length, at, beside) = longest.filter(|(length, ..)| *length >= 2)?;
    Some((at + length / 2, beside + length / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::transcript::Word;
    use proptest::prelude::*;

    const OVERLAP: Overlap = Overlap { from: 10.0, to: 12.0, is_estimated: false };

    fn word(text: &str, start: f64, end: f64) -> Word {
        Word { text: text.to_owned(), start, end, confidence: 1.0 }
    }

    fn joined(mut before: Vec<Word>, mut after: Vec<Word>, overlap: Overlap) -> Vec<String> {
        join(&mut before, &mut after, overlap);
        before.into_iter().chain(after).map(|word| word.text).collect()
    }

    #[test]
    fn words_that_both_have_are_said_once() {
        let before =
            vec![word("he", 9.0, 9.4), word("was", 10.3, 10.6), word("not", 10.7, 11.0), word("uh", 11.8, 12.0)];
        let after =
            vec![word("us", 10.0, 10.2), word("Was", 10.32, 10.6), word("not,", 10.7, 11.02), word("an", 11.6, 12.1)];
        assert_eq!(joined(before, after, OVERLAP), ["he", "was", "not,", "an"]);
    }

    #[test]
    fn what_only_one_of_them_heard_is_kept() {
        let before = vec![word("one", 9.0, 9.5), word("two", 10.8, 11.4)];
        assert_eq!(joined(before.clone(), vec![], OVERLAP), ["one", "two"]);
        let after = vec![word("two", 10.8, 11.4), word("three", 12.5, 12.9)];
        assert_eq!(joined(vec![], after, OVERLAP), ["two", "three"]);
        assert_eq!(joined(vec![], vec![], OVERLAP), Vec::<String>::new());
    }

    #[test]
    fn where_times_are_estimated_the_texts_decide() {
        let before = vec![word("a", 9.0, 9.5), word("b", 9.5, 10.0), word("c", 10.0, 10.5), word("d", 10.5, 12.0)];
        let after = vec![word("b", 11.0, 11.5), word("c", 11.5, 12.0), word("d", 12.0, 12.5), word("e", 12.5, 13.0)];
        assert_eq!(joined(before, after, Overlap { is_estimated: true, ..OVERLAP }), ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn where_times_are_estimated_a_phrase_that_is_said_again_far_from_the_cut_is_no_join() {
        let words = |from: f64, texts: &[String]| -> Vec<Word> {
            let one = |(at, text): (usize, &String)| word(text, from + 0.3 * at as f64, from + 0.3 * (at + 1) as f64);
            texts.iter().enumerate().map(one).collect()
        };
        let phrase = || ["of", "the"].map(str::to_owned).to_vec();
        let many = |name: &str| (0..30).map(|at| format!("{name}{at}")).collect::<Vec<_>>();
        let (before, after) = ([phrase(), many("b")].concat(), [many("a"), phrase()].concat());
        let joined = joined(words(2.4, &before), words(10.0, &after), Overlap { is_estimated: true, ..OVERLAP });
        let left_out = before.len() + after.len() - joined.len();
        assert!(left_out <= 14, "two seconds of words at most: {joined:?}");
        assert!(joined.starts_with(&before[..24]) && joined.ends_with(&after[8..]), "{joined:?}");
    }

    /// Words with gaps, over the overlap and on both sides of it.
    fn speech() -> impl Strategy<Value = Vec<Word>> {
        prop::collection::vec((0.1..0.7_f64, 0.0..0.3_f64), 20..40).prop_map(|lengths| {
            let mut at = 4.0;
            let one = |(number, (length, gap)): (usize, (f64, f64))| {
                let start = at + gap;
                at = start + length;
                word(&format!("w{number}"), start, at)
            };
            lengths.into_iter().enumerate().map(one).collect()
        })
    }

    /// What a recogniser hears of a stretch: each word that is whole in it, a wrong one for what is cut, with times that
    /// are a little off.
    fn heard(speech: &[Word], from: f64, to: f64, off: f64) -> Vec<Word> {
        let within = speech.iter().filter(|word| word.end > from && word.start < to);
        let as_heard = |one: &Word| match one.start >= from && one.end <= to {
            true => word(&one.text, one.start + off, one.end + off),
            false => word("?", one.start.max(from), one.end.min(to)),
        };
        within.map(as_heard).collect()
    }

    proptest! {
        #[test]
        fn what_both_hear_well_inside_is_joined_as_it_was_said(speech in speech(), off in -0.03..0.03_f64) {
            let (before, after) = (heard(&speech, 0.0, 12.0, 0.0), heard(&speech, 10.0, 99.0, off));
            let said: Vec<String> = speech.iter().map(|word| word.text.clone()).collect();
            prop_assert_eq!(joined(before, after, OVERLAP), said);
        }

        #[test]
        fn nothing_outside_of_the_overlap_is_touched_and_the_order_stays(
            before in speech(), after in speech(), is_estimated in any::<bool>(),
        ) {
            let mut one: Vec<Word> = before.into_iter().filter(|word| word.end <= 12.0).collect();
            let mut other: Vec<Word> = after.into_iter().filter(|word| word.start >= 10.0).collect();
            let outside = |words: &[Word], is: &dyn Fn(&Word) -> bool| -> Vec<Word> {
                words.iter().filter(|word| is(word)).cloned().collect()
            };
            let (early, late) = (outside(&one, &|word| word.end <= 10.0), outside(&other, &|word| word.start >= 12.0));
            join(&mut one, &mut other, Overlap { is_estimated: false, ..OVERLAP });
            prop_assert_eq!(outside(&one, &|word| word.end <= 10.0), early);
            prop_assert_eq!(outside(&other, &|word| word.start >= 12.0), late);
            join(&mut one, &mut other, Overlap { is_estimated, ..OVERLAP });
        }
    }
}
