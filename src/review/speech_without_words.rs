//! `speech_without_words`: speech in a gap between words. A pause in the gap does not divide it.

use super::span::{TimeSpan, gaps, total, union, within};
use super::{Finding, Material, Thresholds};
use crate::domain::review::ReviewCheck;

/// Seconds before and after a word in which speech belongs to it: the times of words are not exact.
const TOLERANCE: f64 = 0.5;

pub(super) fn find(material: &Material<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let Some(speech) = &material.speech else { return Vec::new() };
    let least = thresholds.speech_without_words.as_secs_f64();
    let ends_elsewhere = thresholds.checks.has(ReviewCheck::EarlyEnd) && !material.words.is_empty();
    let gaps = uncovered(material);
    // What follows the last word is the matter of `early_end`.
    let gaps = gaps.into_iter().filter(|gap| !ends_elsewhere || gap.end < material.limit);
    gaps.filter_map(|gap| lost(&within(speech, gap), least)).collect()
}

/// Returns the times that no word covers.
pub(super) fn uncovered(material: &Material<'_>) -> Vec<TimeSpan> {
    let words = material.words.iter().map(|word| word.span().padded(TOLERANCE));
    gaps(&union(words, material.limit), material.limit)
}

fn lost(speech: &[TimeSpan], least: f64) -> Option<Finding> {
    let (first, last, seconds) = (speech.first()?, speech.last()?, total(speech));
    let detail = format!("{seconds:.1} s of speech without a word");
    (seconds >= least && seconds > 0.0).then(|| Finding { span: first.joined(*last), detail })
}
