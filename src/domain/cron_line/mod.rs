//! A line of a crontab, by the clock of a place.
//!
//! A line means what it means in a crontab: 0 and 7 are Sunday, and where both the day of the month and the
//! weekday are restricted, either counts. The `cron` crate below counts Sunday as 1 and wants both, so both
//! are translated before it sees them.
//!
//! Clocks that are changed: the line is matched against what the clock on the wall shows. A time that a spring
//! night leaves out comes once, right after the gap; one that an autumn night shows twice comes once, the
//! first time. Lines that come every hour or more often go on as the clock runs, without a gap and without
//! anything made up.

use crate::domain::names::Timestamp;
use crate::domain::time_of_day::TimeOfDay;
use crate::domain::zone::Zone;
use chrono::{LocalResult, NaiveDateTime};
use std::str::FromStr;

/// Why a line is none, and what to write instead.
pub type CronError = (String, String);

/// Moments that a line of a crontab names.
#[derive(Debug, Clone)]
pub struct CronLine {
    text: String,
    zone: Zone,
    days: Box<cron::Schedule>,
    /// Its weekdays where they count beside its days of the month.
    weekdays: Option<Box<cron::Schedule>>,
    /// It comes every hour or more often.
    hourly: bool,
}

const MEND: &str = "write a cron line like \"0 22 * * Mon-Fri\": minute, hour, day, month, weekday";

/// What crontabs call lines that are often used.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// As the crate below calls them, in crontab's order.
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

impl CronLine {
    /// Reads a line of five fields, six with the seconds first, or seven with the year last, or `@daily` and
    /// its like.
    ///
    /// # Errors
    /// Why it is none, and the mend.
    pub fn parse(text: &str, zone: Zone) -> Result<Self, CronError> {
        let text = text.trim();
        let fields: Vec<&str> = spelled_out(text)?.split_whitespace().collect();
        // A crontab's five fields have no seconds.
        let fields = if fields.len() == 5 { [&["0"], &*fields].concat() } else { fields };
        let [seconds, minutes, hours, day, month, weekday, year @ ..] = &*fields else { return Err(miscounted(text)) };
        if year.len() > 1 {
            return Err(miscounted(text));
        }
        stepping(&fields)?;
        in_range(text, &[seconds, minutes, hours, day, month])?;
        let days_of_week = weekdays(weekday, text.contains('?'))?;
        let year = year.first().unwrap_or(&"*");
        let built = |day: &str, weekday: &str| {
            let line = [seconds, minutes, hours, day, month, weekday, year].join(" ");
            let built = cron::Schedule::from_str(&line).map_err(|error| no_line(text, &error))?;
            Ok::<_, CronError>(Box::new(built))
        };
        let either = !is_any(day) && !is_any(weekday);
        let (days, weekdays) = if either {
            (built(day, "*")?, Some(built("*", &days_of_week)?))
        } else {
            (built(day, &days_of_week)?, None)
        };
        let hourly = cron::TimeUnitSpec::is_all(days.hours());
        let line = Self { text: text.to_owned(), zone, days, weekdays, hourly };
        match line.next(Timestamp(0)) {
            NEVER => Err(("has no date at which it applies".to_owned(), MEND.to_owned())),
            _ => Ok(line),
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it comes again, each time, before so much time has passed. Lines that come more than 2,000 times
    /// before they pause are not followed to their pause.
    pub fn always_within(&self, length: std::time::Duration) -> bool {
        const FOLLOWED: usize = 2_000;
        // Of a clock that nobody changes: one longer night a year is no pause.
        let Ok(line) = Self::parse(&self.text, Zone::default()) else { return false };
        let first = line.next(Timestamp(0));
        let mut last = first;
        for _ in 0..FOLLOWED {
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

    /// The first moment after `after`; the far end of time where there is none any more.
    pub fn next(&self, after: Timestamp) -> Timestamp {
        let of = |schedule: &cron::Schedule| self.next_of(schedule, after);
        self.weekdays.as_deref().map_or(NEVER, of).min(of(&self.days))
    }

    fn next_of(&self, schedule: &cron::Schedule, after: Timestamp) -> Timestamp {
        let mut next = NEVER;
        for local in schedule.after(&self.seen_from(after).and_utc()) {
            let (first, again) = self.moments(local.naive_utc());
            let coming = [first, again].into_iter().flatten().filter(|at| *at > after);
            next = coming.fold(next, Timestamp::min);
            if first.is_some_and(|first| first > after) {
                break;
            }
        }
        next
    }

    /// What the clock shows; in the first of two hours that it shows alike, from where the second begins to
    /// matter.
    fn seen_from(&self, after: Timestamp) -> NaiveDateTime {
        let local = self.zone.local_time(after);
        match self.zone.to_timestamps(local) {
            LocalResult::Ambiguous(first, again) if self.hourly && after < again => {
                local - chrono::TimeDelta::milliseconds(again.0.saturating_sub(first.0))
            }
            _ => local,
        }
    }

    /// When what the clock shows counts: the first time, and again.
    fn moments(&self, local: NaiveDateTime) -> (Option<Timestamp>, Option<Timestamp>) {
        match self.zone.to_timestamps(local) {
            LocalResult::Single(at) => (Some(at), None),
            LocalResult::Ambiguous(first, again) => (Some(first), self.hourly.then_some(again)),
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

fn spelled_out(text: &str) -> Result<&str, CronError> {
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
    (why, MEND.to_owned())
}

/// What the fields before the weekday may hold.
const RANGES: [(&str, u32, u32); 5] =
    [("second", 0, 59), ("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12)];

/// Numbers that no clock and no calendar shows. Words and signs are left to the crate below.
fn in_range(text: &str, fields: &[&str; 5]) -> Result<(), CronError> {
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
            return Err((why, if is_midnight { midnight() } else { MEND.to_owned() }));
        }
    }
    Ok(())
}

fn no_line(text: &str, error: &cron::error::Error) -> CronError {
    // Its own words go over many lines, and show the line as it was translated.
    let words = error.to_string();
    let told = words.lines().next_back().map(str::trim).filter(|words| words.starts_with(|c: char| c.is_uppercase()));
    let told = told.map_or_else(|| format!("cannot read `{text}`"), str::to_owned);
    (format!("is not a valid cron line: {told}"), MEND.to_owned())
}

/// The crate below lets a step of nothing through.
fn stepping(fields: &[&str]) -> Result<(), CronError> {
    let steps = fields.iter().flat_map(|field| field.split(',')).filter_map(|part| part.split_once('/'));
    let bad = steps.map(|(_, step)| step).find(|step| !step.parse::<u32>().is_ok_and(|step| step > 0));
    bad.map_or(Ok(()), |step| Err((format!("is not a valid cron line: it has the step `{step}`"), MEND.to_owned())))
}

/// As crontab takes it: a star with a step is a star.
fn is_any(field: &str) -> bool {
    field.starts_with(['*', '?'])
}

/// The weekdays of a field in the words of the crate below.
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
            days.ok_or_else(|| (format!("is not a valid cron line: `{part}` is not a weekday"), MEND.to_owned()))?;
        days.for_each(|day| on[day % 7] = true);
    }
    let names: Vec<&str> = WEEKDAYS.iter().zip(on).filter_map(|(name, on)| on.then_some(*name)).collect();
    Ok(names.join(","))
}

/// `1`, `Mon`, `1-5`, `Fri-Mon`, `*/2`, `1-5/2`; Sunday as 0 or 7.
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
