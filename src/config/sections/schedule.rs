//! A schedule: an interval or a cron line.

use crate::config::load::quantities::parse_duration;
use crate::config::load::toml_reader::refusal;
use crate::domain::cron_line::{CronError, CronLine};
use crate::domain::time_of_day::{TimeOfDay, range};
use crate::domain::zone::Zone;
use std::time::Duration;

#[derive(Debug, Clone)]
pub enum Schedule {
    /// This long after the last run has ended.
    Every(Duration),
    At(CronLine),
}

/// The shortest interval: a scan of a large folder takes longer.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

const FIX: &str = "write a length of time like \"15m\", or a cron line like \"0 22 * * Mon-Fri\"";

impl Schedule {
    /// Parses an interval, or a cron line in this time zone.
    ///
    /// # Errors
    /// Why it is neither, and the fix.
    pub fn parse(text: &str, zone: Zone) -> Result<Self, CronError> {
        match humantime::parse_duration(text) {
            Ok(every) if every >= MIN_INTERVAL => Ok(Self::Every(every)),
            Ok(_) => Err(("must be a second or more".to_owned(), FIX.to_owned())),
            Err(_) if text.trim().starts_with('@') || text.contains('*') || text.split_whitespace().count() >= 5 => {
                CronLine::parse(text, zone).map(Self::At)
            }
            Err(_) => Err(neither(text)),
        }
    }

    /// The cron line; `None` for an interval.
    pub fn line(&self) -> Option<&CronLine> {
        match self {
            Self::Every(_) => None,
            Self::At(line) => Some(line),
        }
    }
}

/// Returns the error for a text that is neither an interval nor a cron line, with what was probably meant.
fn neither(text: &str) -> CronError {
    let is_daily = TimeOfDay::parse(text).is_some() || ["daily", "hourly", "weekly", "monthly"].contains(&text.trim());
    if is_daily && let Err(wrong) = CronLine::parse(text, Zone::default()) {
        return wrong;
    }
    if let Some((from, _)) = range(text) {
        let why = format!("must be a duration or a cron line, found the times of day \"{text}\"");
        return (
            why,
            format!(
                "write \"{}\" to scan each day at the first of them; `submit` is the setting for a window",
                from.cron()
            ),
        );
    }
    let wrong = parse_duration(text, "m").err().unwrap_or_else(|| refusal("", ""));
    (or_cron_line(&wrong.why), format!("{}; a cron line is written like \"0 22 * * Mon-Fri\"", wrong.fix))
}

/// Rewrites the error of a duration for a setting that also allows a cron line.
pub(crate) fn or_cron_line(why: &str) -> String {
    [
        "must be a duration with a unit",
        "must be a duration in quotes with a unit",
        "must be a duration in quotes",
        "must be a duration",
    ]
    .iter()
    .find_map(|start| Some(format!("{start} or a cron line{}", why.strip_prefix(start)?)))
    .unwrap_or_else(|| why.to_owned())
}

impl std::fmt::Display for Schedule {
    /// `15m`, `0 22 * * * (Europe/Paris)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Every(every) => humantime::format_duration(*every).fmt(f),
            Self::At(line) => line.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::Timestamp;
    use chrono::{DateTime, Utc};

    fn next(text: &str, from: &str) -> String {
        let from = Timestamp(DateTime::parse_from_rfc3339(from).unwrap().timestamp_millis());
        let next = match Schedule::parse(text, Zone::default()).unwrap() {
            Schedule::Every(every) => from.saturating_add(every),
            Schedule::At(line) => line.next(from),
        };
        DateTime::<Utc>::from_timestamp_millis(next.0).unwrap().to_rfc3339()
    }

    #[test]
    fn lengths_of_time_and_cron_lines() {
        let now = "2026-11-20T12:00:00Z"; // a Friday
        assert_eq!(next("15m", now), "2026-11-20T12:15:00+00:00");
        assert_eq!(next("1h 30m", now), "2026-11-20T13:30:00+00:00");
        assert_eq!(next("0 22 * * *", now), "2026-11-20T22:00:00+00:00");
        assert_eq!(next("30 0 22 * * *", now), "2026-11-20T22:00:30+00:00");
        assert_eq!(next("0 22 * * 1", now), "2026-11-23T22:00:00+00:00");
        assert_eq!(next("*/10 * * * Mon-Fri", now), "2026-11-20T12:10:00+00:00");
        assert_eq!(next("@daily", now), "2026-11-21T00:00:00+00:00");
        assert_eq!(next("1h 2m 3s 4ms 5us", now), "2026-11-20T13:02:03.004+00:00");
    }

    #[test]
    fn traps_are_refused() {
        let why = |text: &str| Schedule::parse(text, Zone::default()).unwrap_err().0;
        assert!(why("0 0 30 2 *").contains("no date"));
        assert!(why("0 0 99 * *").contains("not a valid cron line"));
        assert!(why("soon").contains("a duration or a cron line"));
        assert!(why("0s").contains("a second or more"));
        assert!(why("10ms").contains("a second or more"));
    }
}
