//! Reads `[captions]`, and what a source says instead.

use crate::captions::{CaptionRules, Profile};
use crate::config::load::diagnostics::nearest;
use crate::config::load::quantities::quoted;
use crate::config::load::toml_reader::{
    Section, ValueError, duration_in, integer_from, number_in, refusal, some_time_in, text,
};
use toml::de::DeValue;

/// Reads a table. `base`: what counts where it says nothing. If it names another profile, the numbers of `base` do not
/// count: they were meant for the profile beside them.
pub(crate) fn caption_rules(section: &Section<'_>, base: CaptionRules) -> CaptionRules {
    let named = section.get("profile", profile).map(|spot| spot.value);
    let base = match named {
        Some(profile) if profile != base.profile => CaptionRules::of(profile),
        _ => base,
    };
    let count = |key| section.get(key, integer_from(1)).map(|spot| spot.value);
    let time = |key| section.get(key, duration_in("ms")).map(|spot| spot.value);
    let rules = CaptionRules {
        profile: base.profile,
        characters_per_line: count("characters_per_line").or(base.characters_per_line),
        lines: count("lines").or(base.lines),
        minimum_duration: time("minimum_duration").or(base.minimum_duration),
        maximum_duration: section
            .get("maximum_duration", some_time_in("s"))
            .map(|spot| spot.value)
            .or(base.maximum_duration),
        minimum_gap: time("minimum_gap").or(base.minimum_gap),
        open_gap: time("open_gap").or(base.open_gap),
        reading_speed: section.get("reading_speed", reading_speed).map(|spot| spot.value).or(base.reading_speed),
    };
    report_order(section, &rules);
    rules
}

/// Reports a minimum duration above the maximum, in the numbers for languages without numbers of their own.
fn report_order(section: &Section<'_>, rules: &CaptionRules) {
    let layout = rules.layout("");
    let (least, most) = (layout.minimum_duration, layout.maximum_duration);
    let keys = ["minimum_duration", "maximum_duration"];
    let written = keys.into_iter().find_map(|key| Some((key, section.get(key, duration_in("ms"))?.span)));
    if let Some((key, span)) = written.filter(|_| least > most) {
        let [least, most] = [least, most].map(humantime::format_duration);
        let why = format!("leaves no time: the minimum duration is {least}, the maximum {most}");
        section.report_value(key, span, refusal(why, "make `maximum_duration` the longer one"));
    }
}

fn profile(value: &DeValue<'_>) -> Result<Profile, ValueError> {
    let name = text(value)?;
    Profile::parse(&name).ok_or_else(|| {
        let near = nearest(&name, Profile::NAMES);
        let fix = near.map_or("the default is \"default\"".to_owned(), |near| format!("did you mean \"{near}\"?"));
        refusal(format!("must be one of: {}, found {}", Profile::NAMES.join(", "), quoted(&name)), fix)
    })
}

/// Reads a number above 0.
fn reading_speed(value: &DeValue<'_>) -> Result<f64, ValueError> {
    let fix = "write a plain number like 17, in characters a second (for \"bbc\" words a minute)";
    number_in(value, &(0.1..=10_000.0), fix)
}
