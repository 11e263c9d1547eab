//! Reads `[captions]`, and what a source says instead.

use crate::captions::{CaptionRules, Profile, SpeedsByLanguage};
use crate::config::load::diagnostics::nearest;
use crate::config::load::quantities::quoted;
use crate::config::load::toml_reader::{
    Section, Spot, ValueError, duration_in, integer_from, number_in, refusal, some_time_in, text,
};
use crate::domain::language_codes::LanguageCode;
use crate::wire::languages::{LANGUAGES, code_of};
use std::borrow::Cow;
use std::time::Duration;
use toml::Spanned;
use toml::de::DeValue;

/// Reads a table. `base`: what counts where it says nothing. If it names another profile, the numbers of `base` do not
/// count: they were meant for the profile beside them.
pub(crate) fn caption_rules(section: &Section<'_>, base: &CaptionRules) -> CaptionRules {
    let named = section.get("profile", profile).map(|spot| spot.value);
    let base = match named {
        Some(profile) if profile != base.profile => CaptionRules::of(profile),
        _ => base.clone(),
    };
    let count = |key| section.get(key, integer_from(1)).map(|spot| spot.value);
    let time = |key| section.get(key, duration_in("ms"));
    let durations = Durations {
        minimum: time("minimum_duration"),
        per_word: time("minimum_duration_per_word"),
        maximum: section.get("maximum_duration", some_time_in("s")),
    };
    let value = |spot: &Option<Spot<Duration>>| spot.as_ref().map(|spot| spot.value);
    let rules = CaptionRules {
        profile: base.profile,
        characters_per_line: count("characters_per_line").or(base.characters_per_line),
        lines: count("lines").or(base.lines),
        minimum_duration: value(&durations.minimum).or(base.minimum_duration),
        maximum_duration: value(&durations.maximum).or(base.maximum_duration),
        minimum_duration_per_word: value(&durations.per_word).or(base.minimum_duration_per_word),
        minimum_gap: time("minimum_gap").map(|spot| spot.value).or(base.minimum_gap),
        open_gap: time("open_gap").map(|spot| spot.value).or(base.open_gap),
        reading_speed: reading_speeds(section).unwrap_or(base.reading_speed),
    };
    durations.report_order(section, &rules);
    rules
}

/// The durations of cues, as they are written in a table.
struct Durations {
    minimum: Option<Spot<Duration>>,
    per_word: Option<Spot<Duration>>,
    maximum: Option<Spot<Duration>>,
}

impl Durations {
    /// Reports a minimum above the maximum, in the numbers for languages without numbers of their own. Where the table
    /// has neither of the two, they were reported before.
    fn report_order(&self, section: &Section<'_>, rules: &CaptionRules) {
        let layout = rules.layout("");
        let most = layout.maximum_duration;
        let minimums = [
            ("minimum_duration", &self.minimum, layout.minimum_duration, "minimum duration"),
            (
                "minimum_duration_per_word",
                &self.per_word,
                layout.minimum_duration_per_word,
                "minimum duration of a word",
            ),
        ];
        for (key, written, least, name) in minimums.into_iter().filter(|(_, _, least, _)| *least > most) {
            let of_maximum = self.maximum.as_ref().map(|spot| ("maximum_duration", spot));
            let written = written.as_ref().map(|spot| (key, spot)).or(of_maximum);
            let [least, most] = [least, most].map(humantime::format_duration);
            let why = format!("leaves no time: the {name} is {least}, the maximum {most}");
            if let Some((key, spot)) = written {
                section.report_value(key, spot.span.clone(), refusal(why, "make `maximum_duration` the longer one"));
            }
        }
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

/// Reads one number for all languages, or a table of numbers by language.
fn reading_speeds(section: &Section<'_>) -> Option<SpeedsByLanguage> {
    let table = section.section("reading_speed");
    let Some(languages) = table.table() else {
        return section.get("reading_speed", reading_speed).map(|spot| SpeedsByLanguage::of_all(spot.value));
    };
    let mut speeds = SpeedsByLanguage::default();
    for code in languages.keys() {
        add_speed(&table, code, &mut speeds);
    }
    if languages.is_empty() {
        section.report_value("reading_speed", table.span, refusal("must not be empty", "write it like { en = 20 }"));
    }
    (!speeds.is_empty()).then_some(speeds)
}

/// Reads the speed of one language, or that of the languages without one.
fn add_speed(table: &Section<'_>, code: &Spanned<Cow<'_, str>>, speeds: &mut SpeedsByLanguage) {
    let name: &str = code.get_ref();
    let Some(speed) = table.get(name, reading_speed).map(|spot| spot.value) else { return };
    if name == DEFAULT {
        speeds.default = Some(speed);
    } else if !is_language_tag(name) {
        let fix = code_of(name).map_or(CODES.to_owned(), |code| format!("did you mean `{code}`?"));
        table.report_value(name, code.span(), refusal("is not a language code", fix));
    } else if !speeds.add(name, speed) {
        table.report_value(name, code.span(), refusal("names a language that is in this table already", "remove one"));
    }
}

/// The key of the number for all other languages.
const DEFAULT: &str = "default";

const CODES: &str = "use ISO 639 codes such as en, de or pt-BR, and default for all other languages";

/// Whether a text is the code of a language, perhaps with a script or a region: `en`, `deu`, `pt-BR`. The code that the
/// service has for a language counts, too.
fn is_language_tag(tag: &str) -> bool {
    let mut parts = tag.split(['-', '_']);
    let language = parts.next().unwrap_or_default();
    let is_subtag = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (LanguageCode::parse(language).is_some() || LANGUAGES.contains(&language)) && parts.all(is_subtag)
}

/// Reads a number above 0.
fn reading_speed(value: &DeValue<'_>) -> Result<f64, ValueError> {
    let fix = "write a plain number like 17, in characters a second (for \"bbc\" words a minute)";
    number_in(value, &(0.1..=10_000.0), fix)
}
