//! Parses durations and sizes, and advises what to write instead of a wrong one.

use super::toml_reader::{ValueError, refusal};
use crate::domain::time_of_day;
use std::time::Duration;
use toml::de::DeValue;

/// The units of durations that are advised.
const UNITS: [(&str, &str); 4] = [("s", "seconds"), ("m", "minutes"), ("h", "hours"), ("d", "days")];

/// Other words for units, and the unit that each means.
const OTHER_UNITS: [(&str, &str); 19] = [
    ("sek", "s"),
    ("sekunden", "s"),
    ("secondes", "s"),
    ("minuten", "m"),
    ("std", "h"),
    ("stunde", "h"),
    ("stunden", "h"),
    ("heure", "h"),
    ("heures", "h"),
    ("tag", "d"),
    ("tage", "d"),
    ("jour", "d"),
    ("jours", "d"),
    ("woche", "w"),
    ("wochen", "w"),
    ("monat", "M"),
    ("monate", "M"),
    ("jahr", "y"),
    ("jahre", "y"),
];

/// Parses a duration such as `90s`, `15m`, `1h 30m`. `unit` is advised for a number without a unit.
///
/// # Errors
/// What is wrong, and what to write.
pub fn parse_duration(text: &str, unit: &str) -> Result<Duration, ValueError> {
    humantime::parse_duration(text).map_err(|_| wrong_duration(text, unit))
}

fn wrong_duration(text: &str, unit: &str) -> ValueError {
    let found = quoted(text);
    let trimmed = text.trim();
    if let Some(range) = time_of_day::range(trimmed) {
        let length = time_of_day::length(range);
        return refusal(format!("must be a duration, found the times of day {found}"), format!("write \"{length}\""));
    }
    if let Some(length) = by_clock(trimmed) {
        return refusal(format!("must be a duration, found {found}"), format!("write \"{length}\""));
    }
    let (number, rest) = split_number(trimmed);
    if let Some(positive) = trimmed.strip_prefix(['-', '\u{2212}']).filter(|rest| split_number(rest).0.is_some()) {
        let right = if humantime::parse_duration(positive).is_ok() { positive.to_owned() } else { example(unit) };
        return refusal(format!("must be a duration, found the negative {found}"), format!("write \"{right}\""));
    }
    match number {
        Some(number) if rest.is_empty() && number.fract() == 0.0 => {
            refusal(format!("must be a duration with a unit, found {found}"), with_unit(trimmed, unit))
        }
        Some(number) => match seconds_of(rest, unit) {
            Some(factor) => {
                let comma = if trimmed.contains(',') { " with a comma" } else { "" };
                let why = format!("must be a duration, found {found}{comma}");
                if let Some(right) = known_unit(rest).filter(|_| number.fract() == 0.0 && comma.is_empty()) {
                    return refusal(why, format!("write \"{number}{right}\""));
                }
                refusal(why, format!("write \"{}\"", compact(number * factor)))
            }
            None => refusal(
                format!("must be a duration, found {found}: there is no unit `{}`", shown(rest)),
                format!("the units are s, m, h and d, as in {}", examples(unit)),
            ),
        },
        None => refusal(format!("must be a duration, found {found}"), format!("write it like {}", examples(unit))),
    }
}

/// Makes the error for a value of another type than a duration.
pub fn no_duration(value: &DeValue<'_>, unit: &str) -> ValueError {
    match value {
        DeValue::Integer(number) => {
            let number = number.as_str();
            refusal(
                format!("must be a duration in quotes with a unit, found the number {number}"),
                with_unit(number, unit),
            )
        }
        DeValue::Float(number) => {
            let advice = wrong_duration(number.as_str(), unit).fix;
            refusal(format!("must be a duration in quotes with a unit, found the number {}", number.as_str()), advice)
        }
        DeValue::Datetime(time) => {
            let advice = by_clock(&time.to_string()).map(|length| format!("write \"{length}\""));
            let advice = advice.unwrap_or_else(|| format!("write it like {}", examples(unit)));
            refusal(format!("must be a duration in quotes, found the time {time}"), advice)
        }
        other => {
            super::toml_reader::wrong_type("a duration in quotes", other, &format!("write it like {}", examples(unit)))
        }
    }
}

/// Reads `1:30` or `01:30:00` as hours, minutes and seconds.
fn by_clock(text: &str) -> Option<String> {
    let parts: Vec<u32> = text.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let seconds = match parts[..] {
        [hours, minutes] => hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?,
        [hours, minutes, seconds] => {
            hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?
        }
        _ => return None,
    };
    (seconds > 0).then(|| compact(f64::from(seconds)))
}

/// Splits off a number at the start, with a decimal point or comma.
fn split_number(text: &str) -> (Option<f64>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',')).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits.replace(',', ".").parse().ok(), rest.trim())
}

fn seconds_of(unit: &str, default: &str) -> Option<f64> {
    let unit = if unit.is_empty() { default } else { unit };
    let known = known_unit(unit).unwrap_or(unit);
    humantime::parse_duration(&format!("1{known}")).ok().map(|one| one.as_secs_f64())
}

fn known_unit(unit: &str) -> Option<&'static str> {
    let lower = unit.to_lowercase();
    OTHER_UNITS.iter().find(|(other, _)| *other == lower).map(|(_, known)| *known)
}

/// Formats a duration as in settings, with hours as the largest unit: `30h`, `1h 30m`.
pub fn shown_duration(length: Duration) -> String {
    compact(length.as_secs_f64())
}

/// Formats seconds in whole numbers: `1h 30m`.
fn compact(seconds: f64) -> String {
    let millis = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_millis();
    let millis = u64::try_from(millis).unwrap_or(u64::MAX);
    // Hours are the largest unit, since budgets are written in hours.
    let (hours, rest) = (millis / 3_600_000, millis % 3_600_000);
    let parts = [(hours, "h"), (rest / 60_000, "m"), (rest % 60_000 / 1_000, "s"), (rest % 1_000, "ms")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}"));
    let shown = parts.collect::<Vec<_>>().join(" ");
    if shown.is_empty() { "1s".to_owned() } else { shown }
}

fn with_unit(number: &str, unit: &str) -> String {
    let word = |unit: &str| UNITS.iter().find(|(known, _)| *known == unit).map_or("milliseconds", |(_, word)| word);
    // 900 may be in seconds, as in other programs; 15 hardly.
    let is_large = number.parse::<u64>().is_ok_and(|number| number >= 60);
    let is_meant = |known: &str| matches!(known, "m" | "h") || known == "s" && is_large;
    let others = UNITS.iter().filter(|(known, _)| *known != unit && is_meant(known));
    let others: Vec<String> = others.map(|(other, word)| format!("\"{number}{other}\" for {word}")).collect();
    format!("write \"{number}{unit}\" for {}, {}", word(unit), others.join(", "))
}

fn example(unit: &str) -> String {
    format!("{}{unit}", if unit == "s" { 10 } else { 1 })
}

/// Returns examples, the one with this unit first.
fn examples(unit: &str) -> String {
    let all = ["10s", "15m", "6h", "30d"];
    let first = all.iter().filter(|example| example.ends_with(unit));
    let others = all.iter().filter(|example| !example.ends_with(unit));
    let all: Vec<String> = first.chain(others).map(|example| format!("\"{example}\"")).collect();
    format!("{} or {}", all[..3].join(", "), all[3])
}

/// Parses a number of bytes such as `1GB` (decimal) or `512MiB` (binary), 1 or more.
///
/// # Errors
/// What is wrong, and what to write.
pub fn parse_size(text: &str) -> Result<u64, ValueError> {
    let read = size_of(text);
    read.filter(|bytes| (1..=1 << 63).contains(bytes)).ok_or_else(|| wrong_size(text, read))
}

/// Makes the error for a value of another type than a size.
pub fn no_size(value: &DeValue<'_>) -> ValueError {
    match value {
        DeValue::Integer(number) => {
            let number = number.as_str();
            refusal(
                format!("must be a size in quotes with a unit, found the number {number}"),
                format!("write \"{number}GB\" for gigabytes, \"{number}MB\" for megabytes"),
            )
        }
        other => super::toml_reader::wrong_type("a size in quotes", other, SIZES),
    }
}

const SIZES: &str = "write it like \"500MB\", \"1GB\" or \"512MiB\"";

fn wrong_size(text: &str, read: Option<u64>) -> ValueError {
    let found = quoted(text);
    if read.is_some() {
        return refusal(format!("must be a size of 1 byte or more, found {found}"), SIZES);
    }
    let (number, unit) = split_number(text.trim());
    let whole = |number: f64| number.fract() == 0.0 && number >= 0.0;
    match (number, unit.to_lowercase().as_str()) {
        (Some(number), "") if whole(number) => refusal(
            format!("must be a size with a unit, found {found}"),
            format!("write \"{number}GB\" for gigabytes, \"{number}MB\" for megabytes"),
        ),
        (Some(number), short @ ("k" | "m" | "g" | "t")) if whole(number) => {
            let right = format!("{number}{}B", short.to_uppercase());
            refusal(format!("must be a size with a unit, found {found}"), format!("write \"{right}\""))
        }
        (Some(number), unit) => match smaller(number, unit) {
            Some(right) => {
                refusal(format!("must be a size in whole numbers, found {found}"), format!("write \"{right}\""))
            }
            None => refusal(format!("must be a size, found {found}"), SIZES),
        },
        (None, _) => refusal(format!("must be a size, found {found}"), SIZES),
    }
}

/// Converts a fractional number to the next smaller unit: `1.5GB` to `1500MB`.
fn smaller(number: f64, unit: &str) -> Option<String> {
    let steps = [("tb", "GB", 1e3), ("gb", "MB", 1e3), ("mb", "KB", 1e3), ("kb", "B", 1e3), ("tib", "GiB", 1024.0)];
    let more = [("gib", "MiB", 1024.0), ("mib", "KiB", 1024.0), ("t", "GB", 1e3), ("g", "MB", 1e3), ("m", "KB", 1e3)];
    let (_, below, factor) = steps.into_iter().chain(more).find(|(name, ..)| *name == unit)?;
    let count = (number * factor).round();
    (1.0..1e15).contains(&count).then(|| format!("{count}{below}"))
}

fn size_of(text: &str) -> Option<u64> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let power = |base: u64, exponent: u32| base.checked_pow(exponent);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "b" => Some(1),
        "kb" => power(1000, 1),
        "mb" => power(1000, 2),
        "gb" => power(1000, 3),
        "tb" => power(1000, 4),
        "kib" => power(1024, 1),
        "mib" => power(1024, 2),
        "gib" => power(1024, 3),
        "tib" => power(1024, 4),
        _ => None,
    }?;
    let number: u64 = digits.replace('_', "").parse().ok()?;
    number.checked_mul(factor)
}

/// Returns the text in quotes, cut to 60 characters.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text))
}

fn shown(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let read = |text: &str| parse_size(text).ok();
        assert_eq!(read("1GB"), Some(1_000_000_000));
        assert_eq!(read("512 MiB"), Some(536_870_912));
        assert_eq!([read("0B"), read("1"), read("GB"), read("1.5GB"), read("99999999TB")], [None; 5]);
    }

    /// What is advised can be written.
    #[test]
    fn what_is_advised_can_be_read() {
        let advised = |fix: &str| fix.split('"').nth(1).unwrap_or_default().to_owned();
        for wrong in [
            "40",
            "1,5h",
            "0,5 d",
            "22:00",
            "1:30:00",
            "22:00-06:00",
            "-5m",
            "5 std",
            "2 Tage",
            "ten",
            "",
            "7.25",
            "5 x",
            "\u{663c}",
        ] {
            let advice = advised(&parse_duration(wrong, "h").unwrap_err().fix);
            assert!(humantime::parse_duration(&advice).is_ok(), "{wrong}: {advice}");
        }
        for wrong in ["5", "1.5GB", "1,5 GB", "10G", "500m", "0.5TiB", "many", "0GB", "-1GB", ""] {
            let advice = advised(&parse_size(wrong).unwrap_err().fix);
            assert!(parse_size(&advice).is_ok(), "{wrong}: {advice}");
        }
        assert_eq!(parse_duration("1,5h", "h").unwrap_err().fix, "write \"1h 30m\"");
        assert_eq!(parse_size("1.5GB").unwrap_err().fix, "write \"1500MB\"");
    }
}
