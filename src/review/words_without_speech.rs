//! `words_without_speech`: words in a row, none of which lies where the audio has speech.

use super::span::{TimeSpan, union, within};
use super::spoken::SpokenWord;
use super::{Finding, Material, Thresholds};

/// Seconds around speech in which a word belongs to it.
const TOLERANCE: f64 = 0.3;

/// Seconds that a word takes at least, for services that send a start only.
const SHORTEST_WORD: f64 = 0.05;

pub(super) fn find(material: &Material<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let Some(speech) = &material.speech else { return Vec::new() };
    let speech = union(speech.iter().map(|span| span.padded(TOLERANCE)), material.limit);
    let is_lost = |word: &SpokenWord<'_>| within(&speech, touched(word)).is_empty();
    let rows = material.words.chunk_by(|word, next| is_lost(word) == is_lost(next));
    let least = thresholds.words_without_speech.as_secs_f64();
    rows.filter(|row| row.first().is_some_and(is_lost)).filter_map(|row| invented(row, least)).collect()
}

fn touched(word: &SpokenWord<'_>) -> TimeSpan {
    let span = word.span();
    TimeSpan { end: span.end.max(span.start + SHORTEST_WORD), ..span }
}

fn invented(row: &[SpokenWord<'_>], least: f64) -> Option<Finding> {
    let (first, last) = (row.first()?, row.last()?);
    let seconds: f64 = row.iter().map(|word| touched(word).seconds()).sum();
    let words = if row.len() == 1 { "1 word".to_owned() } else { format!("{} words", row.len()) };
    let detail = format!("{words} where there is no speech");
    (seconds >= least).then(|| Finding { span: first.span().joined(last.span()), detail })
}
