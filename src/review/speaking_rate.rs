//! `speaking_rate`: more words in a time than anybody says, or fewer in an utterance than speech has. Languages without
//! spaces between words are measured in characters.

use super::span::{TimeSpan, total, within};
use super::spoken::SpokenWord;
use super::{Finding, Material, Thresholds};
use std::collections::BTreeMap;

/// The words, and the characters, over which a high rate is measured: over fewer, people are faster at times.
const WORDS: f64 = 20.0;
const CHARACTERS: f64 = 40.0;

/// The least of a recording that has fewer.
const LEAST_SHARE: f64 = 0.5;

/// Seconds of an utterance whose low rate counts.
const LONG_UTTERANCE: f64 = 15.0;

/// Seconds that some words take at least: services round times.
const SHORTEST: f64 = 0.05;

pub(super) fn find(material: &Material<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let mut found = Vec::new();
    for words in by(material, |word| word.voice).values() {
        for is_unspaced in [false, true] {
            let alike: Vec<&SpokenWord<'_>> =
                words.iter().copied().filter(|w| w.is_unspaced() == is_unspaced).collect();
            found.extend(too_fast(&alike, &Measure::of(is_unspaced, thresholds)));
        }
    }
    for words in by(material, |word| word.utterance).values() {
        found.extend(too_slow(words, material, thresholds));
    }
    found
}

fn by<'m, 'a, K: Ord>(
    material: &'m Material<'a>,
    key: impl Fn(&SpokenWord<'a>) -> K,
) -> BTreeMap<K, Vec<&'m SpokenWord<'a>>> {
    let mut groups: BTreeMap<K, Vec<&SpokenWord<'a>>> = BTreeMap::new();
    material.words.iter().for_each(|word| groups.entry(key(word)).or_default().push(word));
    groups
}

/// What a rate is measured in.
struct Measure {
    name: &'static str,
    /// Seconds of the unit of time in messages.
    per: f64,
    per_name: &'static str,
    /// How much is measured together.
    window: f64,
    /// The bounds, in the unit of time.
    fastest: f64,
    slowest: f64,
}

impl Measure {
    fn of(is_unspaced: bool, thresholds: &Thresholds) -> Self {
        let Thresholds { fastest_words, fastest_characters, slowest_words, slowest_characters, .. } = *thresholds;
        match is_unspaced {
            true => Self {
                name: "characters",
                per: 1.0,
                per_name: "second",
                window: CHARACTERS,
                fastest: fastest_characters,
                slowest: slowest_characters,
            },
            false => Self {
                name: "words",
                per: 60.0,
                per_name: "minute",
                window: WORDS,
                fastest: fastest_words,
                slowest: slowest_words,
            },
        }
    }

    fn detail(&self, amount: f64, seconds: f64) -> String {
        let rate = amount * self.per / seconds;
        format!("{amount:.0} {} in {seconds:.1} s: {rate:.0} a {}", self.name, self.per_name)
    }
}

fn amount(word: &SpokenWord<'_>) -> f64 {
    word.characters.max(1) as f64
}

/// Returns the passages in which each window is too fast. `words` are by their starts.
fn too_fast(words: &[&SpokenWord<'_>], measure: &Measure) -> Vec<Finding> {
    let all: f64 = words.iter().map(|word| amount(word)).sum();
    let needed = measure.window.min(all);
    if needed < measure.window * LEAST_SHARE {
        return Vec::new();
    }
    let mut fast: Vec<(usize, usize)> = Vec::new();
    let (mut first, mut sum) = (0, 0.0);
    for (last, word) in words.iter().enumerate() {
        sum += amount(word);
        while sum - amount(words[first]) >= needed {
            sum -= amount(words[first]);
            first += 1;
        }
        let is_fast = sum >= needed && sum * measure.per > measure.fastest * seconds(words, first, last);
        match fast.last_mut() {
            Some((_, end)) if is_fast && *end >= first => *end = last,
            _ if is_fast => fast.push((first, last)),
            _ => {}
        }
    }
    let finding = |(first, last): (usize, usize)| {
        let (sum, seconds) = (words[first..=last].iter().map(|word| amount(word)).sum(), seconds(words, first, last));
        Finding { span: span(&words[first..=last]), detail: measure.detail(sum, seconds) }
    };
    fast.into_iter().map(finding).collect()
}

/// Returns the time from the start of a word to the end of a later one. Words that overlap take as long as one.
fn seconds(words: &[&SpokenWord<'_>], first: usize, last: usize) -> f64 {
    (words[last].end - words[first].start).max(SHORTEST)
}

fn span(words: &[&SpokenWord<'_>]) -> TimeSpan {
    let spans = words.iter().map(|word| word.span());
    spans.reduce(TimeSpan::joined).unwrap_or(TimeSpan { start: 0.0, end: 0.0 })
}

/// Warns of a long utterance with hardly a word. Where the audio was searched, its speech counts and not its pauses.
fn too_slow(words: &[&SpokenWord<'_>], material: &Material<'_>, thresholds: &Thresholds) -> Option<Finding> {
    let (first, last) = (words.first()?, words.iter().map(|word| word.end).fold(0.0, f64::max));
    let span = TimeSpan { start: first.start, end: last };
    let seconds = material.speech.as_ref().map_or(span.seconds(), |speech| total(&within(speech, span)));
    let measure = Measure::of(words.iter().any(|word| word.is_unspaced()), thresholds);
    let sum: f64 = words.iter().map(|word| amount(word)).sum();
    let is_slow = seconds >= LONG_UTTERANCE && sum * measure.per < measure.slowest * seconds;
    is_slow.then(|| Finding { span, detail: measure.detail(sum, seconds) })
}
