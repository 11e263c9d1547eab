//! When something is to be done again and again: a length of time, or a cron line.
//!
//! Cron lines are in UTC, so that no clock change doubles or swallows a moment. Weekdays are names: the
//! numbers mean other days here than in crontab. Day of the month and weekday together are refused:
//! crontab takes either, others both.

use crate::domain::names::Timestamp;
use chrono::{DateTime, Utc};
use std::str::FromStr;
use std::time::Duration;

/// When.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// So long after the last time was over.
    Every(Duration),
    /// At these moments.
    At(Box<cron::Schedule>),
}

/// No shorter: a scan of a large folder takes longer than that.
const SHORTEST: Duration = Duration::from_secs(1);

const MEND: &str = "write a length of time like \"15m\", or a cron line in UTC like \"0 22 * * Mon-Fri\"";

impl Schedule {
    /// Reads a length of time or a cron line of five fields, six with the seconds first, or seven with the
    /// year last.
    ///
    /// # Errors
    /// Why it is neither, and the mend.
    pub fn parse(text: &str) -> Result<Self, (String, &'static str)> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        if fields.len() >= 5 && humantime::parse_duration(text).is_err() {
            return cron_line(&fields);
        }
        match humantime::parse_duration(text) {
            Ok(every) if every >= SHORTEST => Ok(Self::Every(every)),
            Ok(_) => Err(("must be a second or more".to_owned(), MEND)),
            Err(error) => Err((format!("must be a length of time or a cron line: {error}"), MEND)),
        }
    }

    /// The next time after `now`; the far end of time where there is none.
    pub fn next(&self, now: Timestamp) -> Timestamp {
        match self {
            Self::Every(every) => now.after(*every),
            Self::At(line) => {
                let now = DateTime::<Utc>::from_timestamp_millis(now.0).unwrap_or_default();
                line.after(&now).next().map_or(Timestamp(i64::MAX), |next| Timestamp(next.timestamp_millis()))
            }
        }
    }
}

fn cron_line(fields: &[&str]) -> Result<Schedule, (String, &'static str)> {
    // A crontab's five fields have no seconds.
    let with_seconds = if fields.len() == 5 { [&["0"], fields].concat() } else { fields.to_vec() };
    let any = |field: &str| matches!(field, "*" | "?");
    if let [_, _, _, day, _, weekday, ..] = with_seconds[..] {
        let named = !weekday.contains(|c: char| c.is_ascii_digit());
        if !any(weekday) && !named {
            let why = "must name its weekdays: numbers mean other days here than in crontab";
            return Err((why.to_owned(), "write Mon, Tue, Wed, Thu, Fri, Sat, Sun, or Mon-Fri"));
        }
        if !any(day) && !any(weekday) {
            let why = "must not hold both a day of the month and a weekday: programs disagree on what that means";
            return Err((why.to_owned(), "write * for one of them"));
        }
    }
    let line = cron::Schedule::from_str(&with_seconds.join(" "))
        .map_err(|error| (format!("is no cron line: {}", error.to_string().replace('\n', ", ")), MEND))?;
    if line.after(&DateTime::<Utc>::UNIX_EPOCH).next().is_none() {
        return Err(("never comes: there is no such date".to_owned(), MEND));
    }
    Ok(Schedule::At(Box::new(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(text: &str, from: &str) -> String {
        let from = DateTime::parse_from_rfc3339(from).unwrap().timestamp_millis();
        let next = Schedule::parse(text).unwrap().next(Timestamp(from));
        DateTime::<Utc>::from_timestamp_millis(next.0).unwrap().to_rfc3339()
    }

    #[test]
    fn lengths_of_time_and_cron_lines() {
        let now = "2026-11-20T12:00:00Z"; // a Friday
        assert_eq!(next("15m", now), "2026-11-20T12:15:00+00:00");
        assert_eq!(next("1h 30m", now), "2026-11-20T13:30:00+00:00");
        assert_eq!(next("0 22 * * *", now), "2026-11-20T22:00:00+00:00");
        assert_eq!(next("30 0 22 * * *", now), "2026-11-20T22:00:30+00:00");
        assert_eq!(next("0 22 * * Mon", now), "2026-11-23T22:00:00+00:00");
        assert_eq!(next("*/10 * * * Mon-Fri", now), "2026-11-20T12:10:00+00:00");
        assert_eq!(next("0 22 1 * *", now), "2026-12-01T22:00:00+00:00");
    }

    #[test]
    fn traps_are_refused() {
        let why = |text: &str| Schedule::parse(text).unwrap_err().0;
        assert!(why("* * * * 1").contains("weekdays"));
        assert!(why("0 0 13 * Fri").contains("both"));
        assert!(why("0 0 30 2 *").contains("never"));
        assert!(why("0 0 99 * *").contains("no cron line"));
        assert!(why("soon").contains("length of time"));
        assert!(why("0s").contains("a second or more"));
        assert!(why("10ms").contains("a second or more"));
    }
}
