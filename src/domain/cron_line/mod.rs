//! A crontab line, evaluated in a time zone.
//!
//! A line means what it means in a crontab: 0 and 7 are Sunday, and if both the day of the month and the weekday are
//! restricted, a day that matches either counts. The `cron` crate counts Sunday as 1 and requires both to match, so
//! both are translated before the crate sees them.
//!
//! Daylight saving time: the line is matched against the local time. A time that is skipped in spring comes once, right
//! after the gap. A time that occurs twice in autumn comes once, the first time. Lines that come every hour or more
//! often follow the elapsed time: nothing is added at a gap, and a repeated hour counts twice.

use crate::domain::names::Timestamp;
use crate::domain::time_of_day::TimeOfDay;
use crate::domain::zone::Zone;
use chrono::{LocalResult, NaiveDateTime};
use std::str::FromStr;

/// Why a text is not a cron line, and how to fix it.
pub type CronError = (String, String);

/// A parsed crontab line with its time zone.
#[derive(Debug, Clone)]
pub struct CronLine {
    text: String,
    zone: Zone,
    days: Box<cron::Schedule>,
    /// A second schedule for the weekdays, if a day may match either the day of the month or the weekday.
    weekdays: Option<Box<cron::Schedule>>,
    /// Whether the line comes every hour or more often.
    hourly: bool,
}

const FIX: &str = "write a cron line like \"0 22 * * Mon-Fri\": minute, hour, day, month, weekday";

/// The nicknames of crontab.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The names of the weekdays in the `cron` crate, in crontab's order.
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

impl CronLine {
    /// Parses a line of five fields, six with the seconds first, seven with the year last, or a nickname such as
    /// `@daily`.
    ///
    /// # Errors
    /// Why the text is not a cron line, and how to fix it.
    pub fn parse(text: &str, zone: Zone) -> Result<Self, CronError> {
        let text = text.trim();
        let fields: Vec<&str> = expand_nickname(text)?.split_whitespace().collect();
        // A line of five fields has no seconds.
        let fields = if fields.len() == 5 { [&["0"], &*fields].concat() } else { fields };
        let [seconds, minutes, hours, day, month, weekday, year @ ..] = &*fields else { return Err(miscounted(text)) };
        if year.len() > 1 {
            return Err(miscounted(text));
        }
        check_steps(&fields)?;
        check_ranges(text, &[seconds, minutes, hours, day, month])?;
        let days_of_week = weekdays(weekday, text.contains('?'))?;
        let year = year.first().unwrap_or(&"*");
        let parse_schedule = |day: &str, weekday: &str| {
            let line = [seconds, minutes, hours, day, month, weekday, year].join(" ");
            let schedule = cron::Schedule::from_str(&line).map_err(|error| no_line(text, &error))?;
            Ok::<_, CronError>(Box::new(schedule))
        };
        let either = !is_any(day) && !is_any(weekday);
        let (days, weekdays) = if either {
            (parse_schedule(day, "*")?, Some(parse_schedule("*", &days_of_week)?))
        } else {
            (parse_schedule(day, &days_of_week)?, None)
        };
        let hourly = cron::TimeUnitSpec::is_all(days.hours());
        let line = Self { text: text.to_owned(), zone, days, weekdays, hourly };
        match line.next(Timestamp(0)) {
            NEVER => Err(("has no date at which it applies".to_owned(), FIX.to_owned())),
            _ => Ok(line),
        }
    }

    /// Returns the line as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the time between two occurrences never exceeds `length`. At most 2,000 occurrences are checked: a longer
    /// pause after those is not noticed.
    pub fn always_within(&self, length: std::time::Duration) -> bool {
        const MAX_OCCURRENCES: usize = 2_000;
        // Evaluated in a zone without daylight saving time: one longer night a year does not count as a pause.
        let Ok(line) = Self::parse(&self.text, Zone::default()) else { return false };
        let first = line.next(Timestamp(0));
        let mut last = first;
        for _ in 0..MAX_OCCURRENCES {
            let next = line.next(last);
            if next == NEVER || next.duration_since(last) > length {
                return false;
            }
            if next.duration_since(first) > std::time::Duration::from_secs(370 * 24 * 3600) {
                return true;
            }
            last = next;
        }
        true
    }

    pub fn zone(&self) -> Zone {
        self.zone
    }

    /// Returns the first moment after `after`; [`NEVER`] if there is none.
    pub fn next(&self, after: Timestamp) -> Timestamp {
        let next_of = |schedule: &cron::Schedule| self.next_of(schedule, after);
        self.weekdays.as_deref().map_or(NEVER, next_of).min(next_of(&self.days))
    }

    fn next_of(&self, schedule: &cron::Schedule, after: Timestamp) -> Timestamp {
        let mut next = NEVER;
        for local in schedule.after(&self.seen_from(after).and_utc()) {
            let (first, second) = self.moments(local.naive_utc());
            let coming = [first, second].into_iter().flatten().filter(|at| *at > after);
            next = coming.fold(next, Timestamp::min);
            if first.is_some_and(|first| first > after) {
                break;
            }
        }
        next
    }

    /// Returns the local time at which the search starts. Between the two passes of a repeated hour, an hourly line
    /// starts an hour earlier so that the second pass is found.
    fn seen_from(&self, after: Timestamp) -> NaiveDateTime {
        let local = self.zone.local_time(after);
        match self.zone.to_timestamps(local) {
            LocalResult::Ambiguous(first, second) if self.hourly && after < second => {
                local - chrono::TimeDelta::milliseconds(second.0.saturating_sub(first.0))
            }
            _ => local,
        }
    }

    /// Returns the moments at which the line counts when the local time is `local`: the first, and the second of a
    /// repeated hour.
    fn moments(&self, local: NaiveDateTime) -> (Option<Timestamp>, Option<Timestamp>) {
        match self.zone.to_timestamps(local) {
            LocalResult::Single(at) => (Some(at), None),
            LocalResult::Ambiguous(first, second) => (Some(first), self.hourly.then_some(second)),
            LocalResult::None if self.hourly => (None, None),
            LocalResult::None => (Some(self.zone.after_gap(local)), None),
        }
    }
}

impl std::fmt::Display for CronLine {
    /// `0 22 * * * (Europe/Paris)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.text, self.zone.name())
    }
}

pub const NEVER: Timestamp = Timestamp(i64::MAX);

fn expand_nickname(text: &str) -> Result<&str, CronError> {
    if !text.starts_with('@') {
        return Ok(text);
    }
    let known = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    known.map(|(_, line)| *line).ok_or_else(|| {
        let fix = "write @hourly, @daily, @weekly, @monthly or @yearly, or the five fields";
        (format!("is not a valid cron line: it contains {text}"), fix.to_owned())
    })
}

fn miscounted(text: &str) -> CronError {
    if let Some(time) = TimeOfDay::parse(text) {
        let line = time.cron();
        return (
            format!("must be a cron line, found the time of day \"{text}\""),
            format!("write \"{line}\": each day at that time"),
        );
    }
    let nickname = format!("@{}", text.to_lowercase());
    if NICKNAMES.iter().any(|(name, _)| *name == nickname) {
        return (format!("must be a cron line, found \"{text}\""), format!("write \"{nickname}\""));
    }
    let count = match text.split_whitespace().count() {
        1 => "1 field".to_owned(),
        fields => format!("{fields} fields"),
    };
    let why =
        format!("must be a cron line of 5 fields, 6 with the seconds first, or 7 with the year last, found {count}");
    (why, FIX.to_owned())
}

/// The names and ranges of the fields before the weekday.
const RANGES: [(&str, u32, u32); 5] =
    [("second", 0, 59), ("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12)];

/// Refuses numbers outside the ranges. Everything that is not a number is left to the `cron` crate.
fn check_ranges(text: &str, fields: &[&str; 5]) -> Result<(), CronError> {
    for (field, (name, least, most)) in fields.iter().zip(RANGES) {
        let parts = field.split(',').map(|part| part.split_once('/').map_or(part, |(range, _)| range));
        let numbers = parts.flat_map(|range| range.split('-')).filter_map(|number| number.parse::<u32>().ok());
        if let Some(number) = numbers.into_iter().find(|number| !(least..=most).contains(number)) {
            let why = format!(
                "is not a valid cron line: its {name} is {number}, and the {name} must be from {least} to {most}"
            );
            let is_midnight = name == "hour" && *field == "24";
            let fields = text.split_whitespace().map(|field| if field == "24" { "0" } else { field });
            let midnight = || format!("write \"{}\": midnight is hour 0", fields.collect::<Vec<_>>().join(" "));
            return Err((why, if is_midnight { midnight() } else { FIX.to_owned() }));
        }
    }
    Ok(())
}

fn no_line(text: &str, error: &cron::error::Error) -> CronError {
    // The crate's message has several lines and shows the translated line; only its last line is used.
    let message = error.to_string();
    let reason =
        message.lines().next_back().map(str::trim).filter(|message| message.starts_with(|c: char| c.is_uppercase()));
    let reason = reason.map_or_else(|| format!("cannot read `{text}`"), str::to_owned);
    (format!("is not a valid cron line: {reason}"), FIX.to_owned())
}

/// Refuses a step of 0, which the `cron` crate accepts.
fn check_steps(fields: &[&str]) -> Result<(), CronError> {
    let steps = fields.iter().flat_map(|field| field.split(',')).filter_map(|part| part.split_once('/'));
    let bad = steps.map(|(_, step)| step).find(|step| !step.parse::<u32>().is_ok_and(|step| step > 0));
    bad.map_or(Ok(()), |step| Err((format!("is not a valid cron line: it has the step `{step}`"), FIX.to_owned())))
}

/// Whether the field is unrestricted. As in crontab, a star with a step counts as a star.
fn is_any(field: &str) -> bool {
    field.starts_with(['*', '?'])
}

/// Translates the weekday field into the names of the `cron` crate.
fn weekdays(field: &str, quartz: bool) -> Result<String, CronError> {
    if matches!(field, "*" | "?") {
        return Ok("*".to_owned());
    }
    if quartz && field.contains(|c: char| c.is_ascii_digit()) {
        let why = "is ambiguous: with a `?`, programs count Sunday as 1; in a crontab it is 0 or 7";
        return Err((why.to_owned(), "write Mon, Tue, Wed, Thu, Fri, Sat, Sun, or Mon-Fri".to_owned()));
    }
    let mut on = [false; 7];
    for part in field.split(',') {
        let days = weekday_part(part);
        let days =
            days.ok_or_else(|| (format!("is not a valid cron line: `{part}` is not a weekday"), FIX.to_owned()))?;
        days.for_each(|day| on[day % 7] = true);
    }
    let names: Vec<&str> = WEEKDAYS.iter().zip(on).filter_map(|(name, on)| on.then_some(*name)).collect();
    Ok(names.join(","))
}

/// Parses `1`, `Mon`, `1-5`, `Fri-Mon`, `*/2` or `1-5/2`; Sunday is 0 or 7.
fn weekday_part(part: &str) -> Option<std::iter::StepBy<std::ops::RangeInclusive<usize>>> {
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, step.parse().ok().filter(|step| *step > 0)?),
        None => (part, 1),
    };
    let days = match range.split_once('-') {
        _ if range == "*" => 0..=6,
        Some((first, last)) => {
            let (first, last) = (weekday(first)?, weekday(last)?);
            first..=if last < first { last + 7 } else { last }
        }
        None if step == 1 => weekday(range)?..=weekday(range)?,
        None => return None,
    };
    Some(days.step_by(step))
}

fn weekday(word: &str) -> Option<usize> {
    if word.chars().all(|c| c.is_ascii_digit()) {
        return word.parse().ok().filter(|day| *day <= 7);
    }
    let full = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let word = word.to_lowercase();
    full.iter().position(|day| word.len() >= 3 && day.starts_with(&word))
}

#[cfg(test)]
mod tests;
