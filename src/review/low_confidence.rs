//! `low_confidence`: a passage that was recognised far worse than the recording as a whole. A recording that is bad from
//! start to end has no such passage: its mean is low, and services differ in what they call 0.5.

use super::span::TimeSpan;
use super::{Finding, Material, Thresholds};

/// A recording has a mean worth comparing with if it has this many passages.
const PASSAGES: usize = 3;

pub(super) fn find(material: &Material<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let known = material.words.iter().filter_map(|word| Some((word.span(), word.confidence?)));
    let known: Vec<(TimeSpan, f64)> = known.collect();
    let size = (thresholds.low_confidence_words as usize).max(1);
    if known.len() < size.saturating_mul(PASSAGES) {
        return Vec::new();
    }
    let whole = mean(&known);
    let low = |window: &&[(TimeSpan, f64)]| mean(window) < whole - thresholds.low_confidence;
    let mut passages: Vec<(usize, usize)> = Vec::new();
    for (at, _) in known.windows(size).enumerate().filter(|(_, window)| low(window)) {
        match passages.last_mut() {
            Some((_, end)) if at <= *end => *end = at + size,
            _ => passages.push((at, at + size)),
        }
    }
    passages.into_iter().filter_map(|(first, end)| finding(&known[first..end], whole)).collect()
}

fn mean(words: &[(TimeSpan, f64)]) -> f64 {
    words.iter().map(|(_, confidence)| confidence).sum::<f64>() / words.len().max(1) as f64
}

fn finding(words: &[(TimeSpan, f64)], whole: f64) -> Option<Finding> {
    let span = words.iter().map(|(span, _)| *span).reduce(TimeSpan::joined)?;
    let detail = format!("mean confidence {:.2} of {} words, {whole:.2} of all", mean(words), words.len());
    Some(Finding { span, detail })
}
