//! Reads `[review]`, and what a source says instead.

use crate::config::load::diagnostics::nearest;
use crate::config::load::quantities::quoted;
use crate::config::load::toml_reader::{Section, ValueError, duration_in, integer_from, number_in, refusal, text};
use crate::config::load::values::{boolean, values};
use crate::domain::review::ReviewCheck;
use crate::review::{ReviewRules, Thresholds};
use std::ops::RangeInclusive;
use toml::de::DeValue;

/// Reads a table. `base`: what counts where it says nothing.
pub(crate) fn review_rules(section: &Section<'_>, base: ReviewRules) -> ReviewRules {
    let time = |key, base| section.get(key, duration_in("s")).map_or(base, |spot| spot.value);
    let count = |key, least, base| section.get(key, integer_from(least)).map_or(base, |spot| spot.value);
    let number = |key, bounds: RangeInclusive<f64>, base| {
        let fix = format!("write a plain number from {} to {}", bounds.start(), bounds.end());
        section.get(key, |value| number_in(value, &bounds, &fix)).map_or(base, |spot| spot.value)
    };
    let checks = section.list("checks", check).map(|list| values(list.value).into_iter().collect());
    let was = base.thresholds;
    let thresholds = Thresholds {
        checks: checks.unwrap_or(was.checks),
        speech_without_words: time("speech_without_words", was.speech_without_words),
        words_without_speech: time("words_without_speech", was.words_without_speech),
        repeated_phrase: count("repeated_phrase", 2, was.repeated_phrase),
        repeated_words: count("repeated_words", 1, was.repeated_words),
        fastest_words: number("fastest_words", 1.0..=100_000.0, was.fastest_words),
        fastest_characters: number("fastest_characters", 0.1..=1_000.0, was.fastest_characters),
        slowest_words: number("slowest_words", 0.0..=1_000.0, was.slowest_words),
        slowest_characters: number("slowest_characters", 0.0..=100.0, was.slowest_characters),
        unexpected_letters: count("unexpected_letters", 1, was.unexpected_letters),
        low_confidence: number("low_confidence", 0.0..=1.0, was.low_confidence),
        low_confidence_words: count("low_confidence_words", 1, was.low_confidence_words),
        early_end: time("early_end", was.early_end),
        early_end_without_audio: time("early_end_without_audio", was.early_end_without_audio),
    };
    report_order(section, &thresholds);
    ReviewRules { audio: section.get("audio", boolean).map_or(base.audio, |spot| spot.value), thresholds }
}

/// Reports a slowest rate above the fastest one: then every rate is wrong.
fn report_order(section: &Section<'_>, thresholds: &Thresholds) {
    let Thresholds { slowest_words, fastest_words, slowest_characters, fastest_characters, .. } = *thresholds;
    let pairs = [
        ("slowest_words", "fastest_words", slowest_words, fastest_words),
        ("slowest_characters", "fastest_characters", slowest_characters, fastest_characters),
    ];
    for (slow, fast, slowest, fastest) in pairs.into_iter().filter(|(.., slowest, fastest)| slowest > fastest) {
        let written = [slow, fast].into_iter().find_map(|key| Some((key, section.get(key, plain_number)?.span)));
        if let Some((key, span)) = written {
            let why = format!("leaves no rate that is right: the slowest is {slowest}, the fastest {fastest}");
            section.report_value(key, span, refusal(why, format!("make `{fast}` the larger one")));
        }
    }
}

fn check(value: &DeValue<'_>) -> Result<ReviewCheck, ValueError> {
    let name = text(value)?;
    ReviewCheck::parse(&name).ok_or_else(|| {
        let near = nearest(&name, ReviewCheck::NAMES);
        let fix = near.map_or("without `checks` all are made".to_owned(), |near| format!("did you mean \"{near}\"?"));
        refusal(format!("must be one of: {}, found {}", ReviewCheck::NAMES.join(", "), quoted(&name)), fix)
    })
}

fn plain_number(value: &DeValue<'_>) -> Result<f64, ValueError> {
    number_in(value, &(f64::MIN..=f64::MAX), "")
}
