//! Dates in the interface's form: ISO 8601, UTC, milliseconds, `Z`.

use crate::domain::names::Timestamp;
use chrono::{DateTime, Datelike as _, NaiveDate, SecondsFormat, Utc};

/// Formats a moment as `2026-11-20T19:07:00.000Z`. A moment outside chrono's range is written as the start of 1970.
pub fn format(moment: Timestamp) -> String {
    let time = DateTime::<Utc>::from_timestamp_millis(moment.0).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Parses any RFC 3339 date-time, or a date alone (the start of that UTC day). `None` for anything else, and for years
/// before 0 or after 9999 in UTC, which [`format()`] could not write in a form that can be read again.
pub fn parse(text: &str) -> Option<Timestamp> {
    let time = match DateTime::parse_from_rfc3339(text) {
        Ok(time) => time.to_utc(),
        Err(_) => NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0)?.and_utc(),
    };
    (0..=9999).contains(&time.year()).then(|| Timestamp(time.timestamp_millis()))
}

#[cfg(test)]
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
}
