//! `early_end`: the last word comes long before the end of the speech. Where the audio was not searched, the end of the
//! audio counts, with more tolerance: music or silence may follow.

use super::span::{TimeSpan, total, within};
use super::speech_without_words::uncovered;
use super::{Finding, Material, Thresholds};
use crate::domain::review::clock_time;

/// The share of a recording that may be without words at its end where the audio was not searched.
const SHARE: f64 = 0.1;

pub(super) fn find(material: &Material<'_>, thresholds: &Thresholds) -> Vec<Finding> {
    let rest = uncovered(material).pop().filter(|gap| gap.end >= material.limit);
    let Some(rest) = rest else { return Vec::new() };
    let found = match (&material.speech, material.end) {
        // Speech without any word is the matter of `speech_without_words`.
        (Some(speech), _) if !material.words.is_empty() => {
            after_last_word(&within(speech, rest), thresholds.early_end.as_secs_f64())
        }
        (None, Some(end)) => by_length(rest, end, thresholds.early_end_without_audio.as_secs_f64()),
        _ => None,
    };
    found.into_iter().collect()
}

fn after_last_word(speech: &[TimeSpan], least: f64) -> Option<Finding> {
    let (first, last, seconds) = (speech.first()?, speech.last()?, total(speech));
    let detail = format!("no word in the last {seconds:.1} s of speech");
    (seconds >= least).then(|| Finding { span: first.joined(*last), detail })
}

fn by_length(rest: TimeSpan, end: f64, least: f64) -> Option<Finding> {
    let time = clock_time((rest.seconds() * 1e3) as u64);
    let detail = format!("no word in the last {time}; the audio was not searched for speech");
    (rest.seconds() >= least.max(end * SHARE)).then_some(Finding { span: rest, detail })
}
