use super::*;
use chrono::{DateTime, Datelike, TimeDelta, TimeZone, Timelike};
use chrono_tz::Tz;
use proptest::prelude::*;
use std::fmt::Write;

fn at(text: &str) -> Timestamp {
    Timestamp(DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis())
}

fn line(text: &str, zone: &str) -> CronLine {
    CronLine::parse(text, Zone::parse(zone).unwrap()).unwrap_or_else(|wrong| panic!("{text}: {}", wrong.0))
}

fn why(text: &str) -> String {
    CronLine::parse(text, Zone::default()).map(|_| ()).unwrap_err().0
}

/// The local times of the next `n` moments.
fn coming(text: &str, zone: &str, from: &str, n: usize) -> String {
    let line = line(text, zone);
    let tz: Tz = zone.parse().unwrap();
    let moments = std::iter::successors(Some(line.next(at(from))), |at| Some(line.next(*at)));
    let shown = |at: Timestamp| match at {
        NEVER => "never".to_owned(),
        at => tz.timestamp_millis_opt(at.0).unwrap().format("%a %Y-%m-%d %H:%M:%S %z").to_string(),
    };
    let mut moments: Vec<String> = moments.take(n).map(shown).collect();
    moments.dedup();
    moments.join("\n    ")
}

#[test]
fn lines_as_a_crontab_has_them() {
    let from = "2026-11-20T12:00:00Z"; // a Friday
    let mut table = String::new();
    for text in [
        "0 22 * * *",
        "30 0 22 * * *",
        "0 0 22 24 12 * 2027",
        "*/20 * * * *",
        "0 22 * * 0",
        "0 22 * * 7",
        "0 22 * * 1",
        "0 22 * * Mon",
        "0 22 * * SUN",
        "0 22 * * 1-5",
        "0 22 * * 5-7",
        "0 22 * * Sat-Sun",
        "0 22 * * Fri-Mon",
        "0 22 * * 1-5/2",
        "0 22 * * */2",
        "0 22 * * Monday,thurs",
        "0 22 1 jan *",
        "0 22 13 * Fri",
        "0 22 1,15 * 1",
        "0 22 */10 * Mon",
        "0 22 ? * Tue",
        "@hourly",
        "@daily",
        "@Weekly",
        "@monthly",
        "@yearly",
    ] {
        writeln!(table, "{text}\n    {}", coming(text, "UTC", from, 4)).unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn nights_in_which_the_clock_is_changed() {
    let nights = [
        // 02:00 becomes 03:00, and 03:00 becomes 02:00.
        ("Europe/Paris", "2026-03-28T22:00:00Z"),
        ("Europe/Paris", "2026-10-24T21:00:00Z"),
        // At midnight: 00:00 becomes 01:00.
        ("Asia/Beirut", "2024-03-30T20:00:00Z"),
        // By half an hour: 02:00 becomes 01:30.
        ("Australia/Lord_Howe", "2026-04-04T12:45:00Z"),
        // A whole day was skipped.
        ("Pacific/Apia", "2011-12-30T08:00:00Z"),
    ];
    let mut table = String::new();
    for (zone, from) in nights {
        for text in ["30 2 * * *", "45 1 * * *", "*/30 2 * * *", "30 0 * * *", "45 * * * *"] {
            writeln!(table, "{zone} {text}\n    {}", coming(text, zone, from, 5)).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn what_is_no_line_is_told() {
    let mut table = String::new();
    for text in [
        "",
        "* * * *",
        "1 2 3 4 5 6 7 8",
        "0 22 * * 8",
        "0 22 * * Mun",
        "0 22 * * mo",
        "0 22 * * 1-",
        "0 22 * * 2/2",
        "0 22 ? * 2-6",
        "0 0 99 * *",
        "99 0 * * *",
        "*/0 * * * *",
        "*/x * * * *",
        "0 22 * * */0",
        "0 0 30 2 *",
        "0 22-6 * * *",
        "0 22 L * *",
        "0 22 * * 5#2",
        "@reboot",
        "@often",
        "0 22 * Smarch *",
        "a b c d e",
        "0 0 0 1 1 * 1850",
    ] {
        writeln!(table, "{text:?}: {}", why(text)).unwrap();
    }
    insta::assert_snapshot!(table);
}

/// The reference implementation: compares each field with the local time.
fn matches(
    minute: Option<u32>,
    hour: Option<u32>,
    day: Option<u32>,
    weekday: Option<u32>,
    shown: NaiveDateTime,
) -> bool {
    let days = match (day, weekday) {
        (Some(day), Some(weekday)) => shown.day() == day || shown.weekday().num_days_from_sunday() == weekday % 7,
        (day, weekday) => {
            day.is_none_or(|day| shown.day() == day)
                && weekday.is_none_or(|weekday| shown.weekday().num_days_from_sunday() == weekday % 7)
        }
    };
    days && shown.second() == 0
        && minute.is_none_or(|minute| shown.minute() == minute)
        && hour.is_none_or(|hour| shown.hour() == hour)
}

fn field(value: Option<u32>) -> String {
    value.map_or_else(|| "*".to_owned(), |value| value.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Over three days around any moment in any zone: each local time comes once, at the first moment that shows it; a
    /// skipped local time comes right after the gap. Hourly lines come at each minute that matches, and at no other.
    #[test]
    fn every_slot_comes_once(
        zone in proptest::sample::select(chrono_tz::TZ_VARIANTS.to_vec()),
        minute in proptest::option::of(0..60_u32), hour in proptest::option::of(0..24_u32),
        day in proptest::option::weighted(0.3, 1..29_u32), weekday in proptest::option::weighted(0.3, 0..8_u32),
        hours in 175_320_i64..600_000, // 1990 to 2038
    ) {
        let text = format!("{} {} {} * {}", field(minute), field(hour), field(day), field(weekday));
        let line = line(&text, zone.name());
        let from = Timestamp(hours * 3_600_000);
        let minutes = (1..=3 * 24 * 60).map(|n| Timestamp(from.0 + n * 60_000));
        let shown = |at: Timestamp| Zone::parse(zone.name()).unwrap().local_time(at);
        let mut expected = Vec::new();
        let before = (0..26 * 60).map(|n| Timestamp(from.0 - n * 60_000));
        let mut highest = before.map(shown).max().unwrap();
        for at in minutes {
            let now = shown(at);
            let is = |shown| matches(minute, hour, day, weekday, shown);
            if hour.is_none() {
                if is(now) { expected.push(at); }
            } else {
                // All local times that have not been shown before, including skipped ones.
                let mut missed = highest + TimeDelta::minutes(1);
                let mut any = false;
                while missed <= now {
                    any |= is(missed);
                    missed += TimeDelta::minutes(1);
                }
                if any { expected.push(at); }
            }
            highest = highest.max(now);
        }
        let last = Timestamp(from.0 + 3 * 24 * 3_600_000);
        let moments = std::iter::successors(Some(line.next(from)), |at| Some(line.next(*at)));
        let moments: Vec<Timestamp> = moments.take_while(|at| *at <= last).collect();
        prop_assert_eq!(moments, expected, "{} {} after {}", zone.name(), text, shown(from));
    }

    #[test]
    fn nothing_that_is_typed_ends_in_a_panic(text in "[0-9*/,@?LW# a-z-]{0,24}") {
        let _ = CronLine::parse(&text, Zone::default());
    }

    #[test]
    fn five_fields_of_anything_end_in_no_panic(fields in proptest::collection::vec("[0-9*/,?-]{1,6}", 5..8)) {
        if let Ok(line) = CronLine::parse(&fields.join(" "), Zone::default()) {
            prop_assert!(line.next(Timestamp(1_700_000_000_000)).0 > 1_700_000_000_000);
        }
    }
}
