//! Dates as the interface writes them: ISO 8601, UTC, milliseconds, `Z`.

use crate::domain::names::Timestamp;
use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};

/// `2026-11-20T19:07:00.000Z`. A moment outside chrono's years is shown as the first of 1970.
pub fn write(moment: Timestamp) -> String {
    let time = DateTime::<Utc>::from_timestamp_millis(moment.0).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Any RFC 3339 date-time, or a bare date (the start of that UTC day); `None` for anything else.
pub fn read(text: &str) -> Option<Timestamp> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(Timestamp(time.timestamp_millis()));
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    Some(Timestamp(day.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis()))
}
