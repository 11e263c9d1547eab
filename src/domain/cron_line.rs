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
use crate::domain::zone::Zone;
use chrono::{LocalResult, NaiveDateTime};
use std::str::FromStr;

/// Why a line is none, and the mend.
pub type Wrong = (String, &'static str);

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
    pub fn parse(text: &str, zone: Zone) -> Result<Self, Wrong> {
        let text = text.trim();
        let fields: Vec<&str> = spelled_out(text)?.split_whitespace().collect();
        // A crontab's five fields have no seconds.
        let fields = if fields.len() == 5 { [&["0"], &*fields].concat() } else { fields };
        let [seconds, minutes, hours, day, month, weekday, year @ ..] = &*fields else { return Err(miscounted(text)) };
        if year.len() > 1 {
            return Err(miscounted(text));
        }
        stepping(&fields)?;
        let days_of_week = weekdays(weekday, text.contains('?'))?;
        let year = year.first().unwrap_or(&"*");
        let built = |day: &str, weekday: &str| {
            let line = [seconds, minutes, hours, day, month, weekday, year].join(" ");
            let built = cron::Schedule::from_str(&line).map_err(|error| no_line(text, &error))?;
            Ok::<_, Wrong>(Box::new(built))
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
            NEVER => Err(("never comes: there is no such date".to_owned(), MEND)),
            _ => Ok(line),
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// By whose clock.
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
        let local = self.zone.clock(after);
        match self.zone.moments(local) {
            LocalResult::Ambiguous(first, again) if self.hourly && after < again => {
                local - chrono::TimeDelta::milliseconds(again.0.saturating_sub(first.0))
            }
            _ => local,
        }
    }

    /// When what the clock shows counts: the first time, and again.
    fn moments(&self, local: NaiveDateTime) -> (Option<Timestamp>, Option<Timestamp>) {
        match self.zone.moments(local) {
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

/// What never comes.
pub const NEVER: Timestamp = Timestamp(i64::MAX);

fn spelled_out(text: &str) -> Result<&str, Wrong> {
    if !text.starts_with('@') {
        return Ok(text);
    }
    let known = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    known.map(|(_, line)| *line).ok_or_else(|| {
        (format!("is no cron line: nothing is called {text}"), "there are @hourly, @daily, @weekly, @monthly, @yearly")
    })
}

fn miscounted(text: &str) -> Wrong {
    let fields = text.split_whitespace().count();
    (format!("is no cron line: it has {fields} fields, not 5, 6 with the seconds first, or 7 with the year last"), MEND)
}

fn no_line(text: &str, error: &cron::error::Error) -> Wrong {
    // Its own words go over many lines, and show the line as it was translated.
    let words = error.to_string();
    let told = words.lines().next_back().map(str::trim).filter(|words| words.starts_with(|c: char| c.is_uppercase()));
    let told = told.map_or_else(|| format!("`{text}` cannot be read"), str::to_owned);
    (format!("is no cron line: {told}"), MEND)
}

/// The crate below lets a step of nothing through.
fn stepping(fields: &[&str]) -> Result<(), Wrong> {
    let steps = fields.iter().flat_map(|field| field.split(',')).filter_map(|part| part.split_once('/'));
    let bad = steps.map(|(_, step)| step).find(|step| !step.parse::<u32>().is_ok_and(|step| step > 0));
    bad.map_or(Ok(()), |step| Err((format!("is no cron line: it steps by `{step}`"), MEND)))
}

/// As crontab takes it: a star with a step is a star.
fn is_any(field: &str) -> bool {
    field.starts_with(['*', '?'])
}

/// The weekdays of a field in the words of the crate below.
fn weekdays(field: &str, quartz: bool) -> Result<String, Wrong> {
    if matches!(field, "*" | "?") {
        return Ok("*".to_owned());
    }
    if quartz && field.contains(|c: char| c.is_ascii_digit()) {
        let why = "may mean two things: with a `?`, programs count Sunday as 1; in a crontab it is 0 or 7";
        return Err((why.to_owned(), "write Mon, Tue, Wed, Thu, Fri, Sat, Sun, or Mon-Fri"));
    }
    let mut on = [false; 7];
    for part in field.split(',') {
        let days = weekday_part(part);
        let days = days.ok_or_else(|| (format!("is no cron line: `{part}` is no weekday"), MEND))?;
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
