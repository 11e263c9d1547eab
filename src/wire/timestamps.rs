//! Dates in the interface's form: ISO 8601, UTC, milliseconds, `Z`.

use crate::domain::names::Timestamp;
use chrono::{DateTime, Datelike as _, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc};

/// Formats a moment as `2026-11-20T19:07:00.000Z`. A moment outside chrono's range is written as the start of 1970.
pub fn format(moment: Timestamp) -> String {
    let time = DateTime::<Utc>::from_timestamp_millis(moment.0).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Parses an ISO 8601 date-time, or a date alone (the start of that day).
///
/// Takes the forms of ISO 8601-1:2019 that name a moment: calendar, ordinal and week dates, extended or basic; times
/// with a fraction of their last part, `24:00` and leap seconds; `Z` or an offset. Choices where the interface is
/// silent: a time without an offset is UTC; a month or a year alone is refused, since it names no day. A space may stand
/// for `T` (RFC 3339, 5.6), and for the `+` of an offset: that is what an unescaped `+` becomes in a query.
///
/// `None` for anything else, and for years before 0 or after 9999 in UTC, which [`format()`] could not write in a form
/// that can be read again.
pub fn parse(text: &str) -> Option<Timestamp> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, parse_time(time)?),
        None => (text, TimeDelta::zero()),
    };
    let moment = parse_date(date)?.and_time(NaiveTime::MIN).checked_add_signed(time)?.and_utc();
    (0..=9999).contains(&moment.year()).then(|| Timestamp(moment.timestamp_millis()))
}

fn parse_date(text: &str) -> Option<NaiveDate> {
    let format = match shape(text).as_str() {
        "9999-99-99" => "%Y-%m-%d",
        "99999999" => "%Y%m%d",
        "9999-999" => "%Y-%j",
        "9999999" => "%Y%j",
        "9999-W99-9" => "%G-W%V-%u",
        "9999W999" => "%GW%V%u",
        _ => return None,
    };
    NaiveDate::parse_from_str(text, format).ok()
}

/// Replaces each digit by 9.
fn shape(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect()
}

/// Parses a time with its offset. Returns how long after the start of the UTC day it is, which may be negative.
fn parse_time(text: &str) -> Option<TimeDelta> {
    let is_time = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | ',');
    let (time, offset) = text.split_at(text.find(|c| !is_time(c)).unwrap_or(text.len()));
    let (whole, fraction) =
        time.split_once(['.', ',']).map_or((time, None), |(whole, fraction)| (whole, Some(fraction)));
    let (hours, minutes, seconds, last_part) = parse_clock(whole)?;
    let fraction = fraction.map_or(Some(0), |digits| fraction_of(digits, last_part))?;
    let is_end_of_day = (hours, minutes, seconds, fraction) == (24, 0, 0, 0);
    if minutes > 59 || seconds > 60 || (hours > 23 && !is_end_of_day) {
        return None;
    }
    let passed = TimeDelta::milliseconds(((hours * 60 + minutes) * 60 + seconds) * 1000 + fraction);
    Some(passed - parse_offset(offset)?)
}

/// Parses a time of day without a fraction. Returns hours, minutes, seconds, and how many milliseconds its last part has.
fn parse_clock(text: &str) -> Option<(i64, i64, i64, i64)> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let pair = |at: usize| digits.get(at..at + 2)?.parse::<i64>().ok();
    match shape(text).as_str() {
        "99" => Some((pair(0)?, 0, 0, 3_600_000)),
        "99:99" | "9999" => Some((pair(0)?, pair(2)?, 0, 60_000)),
        "99:99:99" | "999999" => Some((pair(0)?, pair(2)?, pair(4)?, 1000)),
        _ => None,
    }
}

/// Returns a decimal fraction of `unit`, rounded down.
fn fraction_of(digits: &str, unit: i64) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // More digits change no millisecond.
    let digits: String = digits.chars().take(9).collect();
    Some(digits.parse::<i64>().ok()? * unit / 10_i64.pow(u32::try_from(digits.len()).ok()?))
}

fn parse_offset(text: &str) -> Option<TimeDelta> {
    let (sign, offset) = match text.chars().next() {
        None => return Some(TimeDelta::zero()),
        Some('Z' | 'z') => return (text.len() == 1).then(TimeDelta::zero),
        Some('+' | ' ') => (1, &text[1..]),
        Some('-') => (-1, &text[1..]),
        // The minus sign that ISO 8601 prefers.
        Some('\u{2212}') => (-1, &text['\u{2212}'.len_utf8()..]),
        Some(_) => return None,
    };
    let (hours, minutes, ..) = parse_clock(offset).filter(|clock| clock.3 > 1000)?;
    (hours < 24 && minutes < 60).then(|| TimeDelta::minutes(sign * (hours * 60 + minutes)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_can_be_written_and_read_again() {
        for text in ["0000-01-01", "9999-12-31T23:59:59.999Z", "2026-11-02T10:00:00+14:00", "1969-12-31"] {
            let moment = parse(text);
            assert!(moment.is_some(), "{text}");
            assert_eq!(moment.and_then(|moment| parse(&format(moment))), moment, "{text}");
        }
        for text in
            ["-026-11-02", "+12345-01-01", "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:00-00:01", "2026-13-01"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_form_names_the_same_moment() {
        let noon = parse("2026-11-02T12:30:00.000Z").unwrap();
        for text in [
            "2026-11-02T12:30:00Z",
            "2026-11-02t12:30:00z",
            "2026-11-02 12:30:00Z",
            "2026-11-02T12:30:00",
            "2026-11-02T12:30Z",
            "2026-11-02T12.5",
            "2026-11-02T12:30,0Z",
            "20261102T123000Z",
            "20261102T1230Z",
            "20261102T143000+0200",
            "2026-11-02T14:30:00+02:00",
            "2026-11-02T14:30:00 02:00",
            "2026-11-02T14:30+02",
            "2026-11-02T10:30:00-02:00",
            "2026-11-02T10:30:00\u{2212}02:00",
            "2026-11-03T00:30:00+12:00",
            "2026-306T12:30Z",
            "2026306T1230Z",
            "2026-W45-1T12:30:00Z",
            "2026W451T123000Z",
            "2026-11-02T12:29:60Z",
        ] {
            assert_eq!(parse(text), Some(noon), "{text}");
        }
        let midnight = parse("2026-11-02").unwrap();
        for text in ["20261102", "2026-306", "2026-W45-1", "2026-11-02T00Z", "2026-11-01T24:00:00Z", "2026-11-01T24:00"]
        {
            assert_eq!(parse(text), Some(midnight), "{text}");
        }
        let fraction = |text: &str| parse(text).map(|moment| moment.0 - noon.0);
        assert_eq!(fraction("2026-11-02T12:30:00.123456789012Z"), Some(123));
        assert_eq!(fraction("2026-11-02T12:30:00,9Z"), Some(900));
        assert_eq!(fraction("2026-11-02T12:30.25Z"), Some(15_000));
    }

    #[test]
    fn what_names_no_moment_is_refused() {
        for text in [
            "",
            "2026",
            "2026-11",
            "2026-W45",
            "2026-11-02T",
            "2026-11-02Z",
            "2026-1-2",
            "2026-11-02T1:30Z",
            "2026-11-02T12:30:00.Z",
            "2026-11-02T12:61Z",
            "2026-11-02T24:01Z",
            "2026-11-02T24:00:00.5Z",
            "2026-11-02T12:30:61Z",
            "2026-11-02T12:30+2",
            "2026-11-02T12:30+24:00",
            "2026-11-02T12:30+02:60",
            "2026-11-02T12:30:00Z ",
            "2026-11-02T12:30:00+02:00:00",
            "2026-11-02T12:30:00+",
            "2026-02-29",
            "2026-366",
            "2026-W54-1",
            "2026-W45-8",
            "٢٠٢٦-11-02",
            "2026-11-02T12:30é",
            "1790000000",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest::proptest! {
        /// No input causes a panic, and what is written can be read.
        #[test]
        fn any_text_and_any_moment(text in "[0-9]{2,8}[-T :.,Z+W0-9]{0,16}|\\PC{0,12}", at in -62_167_219_200_000..253_402_300_800_000_i64) {
            let _ = parse(&text);
            proptest::prop_assert_eq!(parse(&format(Timestamp(at))), Some(Timestamp(at)));
        }
    }
}
