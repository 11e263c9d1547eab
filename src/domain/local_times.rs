//! Converts the moments within a message to another time zone.
//!
//! Messages are made, stored and logged with times in UTC. Code that shows one to a person converts its times to the
//! configured zone; code that writes one for machines converts to UTC, because an earlier release stored times in other
//! zones. Each moment names its zone, which tells it from other text.

use crate::domain::zone::Zone;
use chrono::NaiveDateTime;
use std::borrow::Cow;
use std::ops::Range;

/// Returns a message with all its moments in this zone: `until 2026-11-22 00:00 (UTC)` becomes `until 2026-11-22 05:30
/// (Asia/Kolkata)`. All other text stays, including file names that contain a date.
pub fn convert_times(words: &str, zone: Zone) -> Cow<'_, str> {
    let mut converted = String::new();
    let mut copied = 0;
    for (opens, _) in words.match_indices(" (") {
        let Some(moment) = moment_before(words, opens) else { continue };
        let Some(text) = moment.by(zone) else { continue };
        converted.push_str(&words[copied..moment.range.start]);
        converted.push_str(&text);
        copied = moment.range.end;
    }
    if converted.is_empty() { Cow::Borrowed(words) } else { Cow::Owned(converted + &words[copied..]) }
}

struct Moment<'w> {
    range: Range<usize>,
    zone: Zone,
    clock: NaiveDateTime,
    offset: Option<&'w str>,
    has_seconds: bool,
}

impl Moment<'_> {
    fn by(&self, zone: Zone) -> Option<String> {
        if self.zone == zone {
            return None;
        }
        let at = self.zone.read(self.clock, self.offset)?;
        Some(if self.has_seconds { zone.format_second(at) } else { zone.format_minute(at) })
    }
}

const MINUTES: &str = "2026-11-22 00:00";
const SECONDS: &str = "2026-11-22 00:00:00";
const OFFSET: &str = " +01:00";

/// Parses the moment that ends at `opens`, where the parenthesis with its zone begins.
fn moment_before(words: &str, opens: usize) -> Option<Moment<'_>> {
    let (before, offset) = without_offset(&words[..opens]);
    let (start, clock, has_seconds) = [(SECONDS, true), (MINUTES, false)].into_iter().find_map(|(form, seconds)| {
        let start = before.len().checked_sub(form.len())?;
        let text = before.get(start..)?;
        let format = if seconds { "%Y-%m-%d %H:%M:%S" } else { "%Y-%m-%d %H:%M" };
        Some((start, NaiveDateTime::parse_from_str(text, format).ok()?, seconds))
    })?;
    // This comes last, because an unknown name is compared with all zones.
    let (name, after) = words[opens + 2..].split_once(')')?;
    let zone = Zone::parse(name).ok().filter(|zone| zone.name() == name)?;
    let end = opens + 2 + name.len() + 1;
    let is_name = before[..start].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.'))
        || after.strip_prefix('.').is_some_and(|rest| rest.starts_with(char::is_alphanumeric))
        || after.starts_with(['/', '_', '-']);
    (!is_name).then_some(Moment { range: start..end, zone, clock, offset, has_seconds })
}

/// Splits off the offset that follows the time of day in an hour that occurs twice.
fn without_offset(before: &str) -> (&str, Option<&str>) {
    let is_offset = |text: &&str| text.starts_with([' ']) && text[1..].starts_with(['+', '-']) && &text[4..5] == ":";
    let start = before.len().checked_sub(OFFSET.len()).filter(|start| before.is_char_boundary(*start));
    let offset = start.map(|start| &before[start..]).filter(|text| text.is_ascii()).filter(is_offset);
    match offset {
        Some(offset) => (&before[..before.len() - OFFSET.len()], Some(offset.trim())),
        None => (before, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by(zone: &str, words: &str) -> String {
        convert_times(words, Zone::parse(zone).unwrap()).into_owned()
    }

    #[test]
    fn every_moment_of_a_sentence_is_told_by_the_clock() {
        let words = "shut until 2026-11-21 22:00 (UTC); since 2026-11-21 21:59:07 (UTC), \u{fc}ber";
        let here = "shut until 2026-11-22 03:30 (Asia/Kolkata); since 2026-11-22 03:29:07 (Asia/Kolkata), \u{fc}ber";
        assert_eq!(by("Asia/Kolkata", words), here);
        assert_eq!(by("UTC", here), words, "what an earlier release stored by a clock");
        assert_eq!(by("UTC", words), words);
        let twice = "at 2026-10-25 02:30 +02:00 (Europe/Berlin) and 2026-10-25 02:30 +01:00 (Europe/Berlin)";
        assert_eq!(by("UTC", twice), "at 2026-10-25 00:30 (UTC) and 2026-10-25 01:30 (UTC)");
    }

    #[test]
    fn what_is_no_moment_stays() {
        for words in [
            "0 22 * * * for 8h (UTC)",
            "in/2026-11-21 22:00 (UTC).wav is read",
            "take 2026-11-21 22:00 (UTC).wav",
            "in/2026-11-21 22:00 (UTC)",
            "2026-13-41 22:00 (UTC)",
            "2026-11-21 22:00 (Berlin)",
            "(UTC) +01:00 (UTC) \u{1f600} +01:00 (UTC)",
            "",
        ] {
            assert_eq!(by("Asia/Kolkata", words), words);
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(words in "[-0-9 :+()UTC\u{e9}\u{1f600}]{0,60}") {
            let _ = by("Asia/Kolkata", &words);
        }

        #[test]
        fn there_and_back_is_the_same(seconds in 0_i64..2_500_000_000) {
            let at = crate::domain::names::Timestamp(seconds * 1000);
            let words = format!("at {} or soon after", Zone::UTC.format_second(at));
            for zone in ["Europe/Berlin", "America/St_Johns", "Asia/Kolkata"] {
                prop_assert_eq!(by("UTC", &by(zone, &words)), words.clone());
            }
        }
    }
}
