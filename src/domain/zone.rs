//! Time zones: days and months by local time, across changes of daylight saving time.

use crate::domain::budget::Span;
use crate::domain::names::Timestamp;
use crate::domain::zone_suggestion::suggested;
use chrono::{
    DateTime, Datelike, Days, LocalResult, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Timelike,
    Utc,
};
use chrono_tz::Tz;

/// A time zone of the IANA database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone(Tz);

impl Default for Zone {
    /// UTC.
    fn default() -> Self {
        Self(Tz::UTC)
    }
}

impl Zone {
    /// The zone of everything that is stored, logged or written for machines.
    pub const UTC: Self = Self(Tz::UTC);

    /// Parses a name such as `Europe/Paris`.
    ///
    /// # Errors
    /// The nearest existing name, if there is a near one.
    pub fn parse(name: &str) -> Result<Self, Option<&'static str>> {
        name.parse().map(Self).map_err(|_| suggested(name))
    }

    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Returns the day that contains a moment.
    pub fn day(&self, at: Timestamp) -> Span {
        let day = self.local(at);
        self.span(day, day.checked_add_days(Days::new(1)))
    }

    /// Returns the month that contains a moment.
    pub fn month(&self, at: Timestamp) -> Span {
        let first = self.local(at).with_day(1).unwrap_or_default();
        self.span(first, first.checked_add_months(Months::new(1)))
    }

    /// Returns the local date of a moment: `2026-11-21`.
    pub fn date(&self, at: Timestamp) -> String {
        self.local(at).to_string()
    }

    /// Returns the first moment of a date such as `2026-11-21`; `None` if it is not a date.
    pub fn start_of(&self, date: &str) -> Option<Timestamp> {
        NaiveDate::parse_from_str(date, "%Y-%m-%d").ok().map(|day| self.start(day))
    }

    /// Formats a moment for people, to the minute: `2026-11-22 00:00 (Europe/Paris)`.
    pub fn format_minute(&self, at: Timestamp) -> String {
        format!("{} ({})", self.format_local(at, "%Y-%m-%d %H:%M"), self.name())
    }

    /// Formats a moment for people, to the second: `2026-11-22 00:00:00 (Europe/Paris)`.
    pub fn format_second(&self, at: Timestamp) -> String {
        format!("{} ({})", self.format_without_zone(at), self.name())
    }

    /// Formats a moment for people without the zone, which the context names: `2026-11-22 00:00:00`.
    pub fn format_without_zone(&self, at: Timestamp) -> String {
        self.format_local(at, "%Y-%m-%d %H:%M:%S")
    }

    /// Returns the moment that [`Zone::format_minute`] or a similar function formatted. `offset` tells the two passes
    /// of a repeated hour apart.
    pub fn read(&self, shown: NaiveDateTime, offset: Option<&str>) -> Option<Timestamp> {
        let candidates = match self.to_timestamps(shown) {
            LocalResult::Single(at) => [Some(at), None],
            LocalResult::Ambiguous(first, second) => [Some(first), Some(second)],
            LocalResult::None => [None, None],
        };
        let has_offset = |at: &Timestamp| {
            offset.is_none_or(|offset| utc(*at).with_timezone(&self.0).format("%:z").to_string() == offset)
        };
        candidates.into_iter().flatten().find(has_offset)
    }

    /// Formats a moment; in a repeated hour with the offset: `2026-10-25 02:30 +02:00`.
    fn format_local(&self, at: Timestamp, format: &str) -> String {
        let local = utc(at).with_timezone(&self.0);
        let is_repeated = matches!(self.0.from_local_datetime(&local.naive_local()), LocalResult::Ambiguous(..));
        let offset = if is_repeated { local.format(" %:z").to_string() } else { String::new() };
        format!("{}{offset}", local.format(format))
    }

    /// Returns the zone of a machine in the way of its tools: from the variable `TZ`, otherwise from the target of
    /// `/etc/localtime`, otherwise from `/etc/timezone`. UTC if none of them names a zone of the database.
    pub fn from_machine(tz: Option<&str>, localtime: Option<&str>, timezone: Option<&str>) -> Self {
        let link = || localtime.and_then(Self::parse_name_or_path).or(timezone.and_then(Self::parse_name_or_path));
        let zone = match tz.map(|tz| tz.strip_prefix(':').unwrap_or(tz)) {
            None | Some("/etc/localtime") => link(),
            Some(named) => Self::parse_name_or_path(named),
        };
        zone.unwrap_or_default()
    }

    /// Finds a zone by its name, or by the path of its file.
    fn parse_name_or_path(name: &str) -> Option<Self> {
        let name = name.trim().rsplit_once("zoneinfo/").map_or(name.trim(), |(_, below)| below);
        let name = ["posix/", "right/"].into_iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
        match name {
            "Etc/UTC" | "Etc/UCT" | "Etc/Universal" | "Etc/Zulu" | "UCT" | "Universal" | "Zulu" => {
                Some(Self::default())
            }
            _ => Self::parse(name).ok(),
        }
    }

    /// Returns the local time of a moment, to the second.
    pub fn local_time(&self, at: Timestamp) -> NaiveDateTime {
        let shown = utc(at).with_timezone(&self.0).naive_local();
        shown.with_nanosecond(0).unwrap_or(shown)
    }

    /// Returns the moments of a local time: one, two or none.
    pub fn to_timestamps(&self, shown: NaiveDateTime) -> LocalResult<Timestamp> {
        self.0.from_local_datetime(&shown).map(|at| Timestamp(at.timestamp_millis()))
    }

    /// Returns the first moment after the gap that skips this local time, to the second.
    pub fn after_gap(&self, shown: NaiveDateTime) -> Timestamp {
        let as_utc = shown.and_utc().timestamp();
        // No zone differs from UTC by more, and no gap is longer.
        let (mut before, mut after) = (as_utc - 26 * 3600, as_utc + 26 * 3600);
        while after - before > 1 {
            let middle = i64::midpoint(before, after);
            let passed = self.local_time(Timestamp(middle * 1000)) >= shown;
            *(if passed { &mut after } else { &mut before }) = middle;
        }
        Timestamp(after * 1000)
    }

    fn local(&self, at: Timestamp) -> NaiveDate {
        utc(at).with_timezone(&self.0).date_naive()
    }

    fn span(&self, first: NaiveDate, after: Option<NaiveDate>) -> Span {
        let until = after.map_or(Span::EVER.until, |after| self.start(after));
        Span { from: self.start(first), until }
    }

    /// Returns the start of a day: its midnight, or the first one if midnight occurs twice, or the first moment after
    /// midnight if it is skipped.
    fn start(&self, day: NaiveDate) -> Timestamp {
        let midnight = day.and_time(NaiveTime::MIN);
        // The search also spans a whole day that a zone skipped.
        let shown = (0..=26 * 4).find_map(|quarter| {
            match self.0.from_local_datetime(&(midnight + TimeDelta::minutes(15 * quarter))) {
                LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.timestamp_millis()),
                LocalResult::None => None,
            }
        });
        Timestamp(shown.unwrap_or_else(|| midnight.and_utc().timestamp_millis()))
    }
}

fn utc(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono_tz::TZ_VARIANTS;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis())
    }

    fn hours(span: Span) -> i64 {
        (span.until.0 - span.from.0) / 3_600_000
    }

    #[test]
    fn days_and_months_are_those_of_the_place() {
        let paris = Zone::parse("Europe/Paris").unwrap();
        let [plain, spring, autumn] =
            ["2026-11-21", "2026-03-29", "2026-10-25"].map(|day| at(&format!("{day}T11:00:00Z")));
        assert_eq!([plain, spring, autumn].map(|noon| hours(paris.day(noon))), [24, 23, 25]);
        assert_eq!(paris.day(plain), Span { from: at("2026-11-20T23:00:00Z"), until: at("2026-11-21T23:00:00Z") });
        assert_eq!(paris.date(at("2026-11-20T23:30:00Z")), "2026-11-21");
        assert_eq!(paris.month(plain), Span { from: at("2026-10-31T23:00:00Z"), until: at("2026-11-30T23:00:00Z") });
        assert_eq!(Zone::default().day(plain).from, at("2026-11-21T00:00:00Z"));
        assert_eq!(paris.start_of("2026-11-21"), Some(at("2026-11-20T23:00:00Z")));
        assert_eq!(paris.format_minute(at("2026-11-21T23:00:00Z")), "2026-11-22 00:00 (Europe/Paris)");
        assert_eq!(paris.format_second(at("2026-07-01T10:00:07Z")), "2026-07-01 12:00:07 (Europe/Paris)");
    }

    #[test]
    fn an_hour_that_comes_twice_is_told_with_its_offset() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        assert_eq!(berlin.format_minute(at("2026-10-25T00:30:00Z")), "2026-10-25 02:30 +02:00 (Europe/Berlin)");
        assert_eq!(berlin.format_minute(at("2026-10-25T01:30:00Z")), "2026-10-25 02:30 +01:00 (Europe/Berlin)");
        assert_eq!(berlin.format_without_zone(at("2026-10-25T02:30:00Z")), "2026-10-25 03:30:00");
    }

    #[test]
    fn the_zone_of_a_machine_is_found_as_its_tools_find_it() {
        let link = Some("/usr/share/zoneinfo/Europe/Berlin");
        let of = |tz, link, file| Zone::from_machine(tz, link, file).name();
        assert_eq!(of(None, link, None), "Europe/Berlin");
        assert_eq!(of(None, Some("../usr/share/zoneinfo/posix/Asia/Tokyo"), None), "Asia/Tokyo");
        assert_eq!(of(None, None, Some("America/New_York\n")), "America/New_York", "/etc/localtime is a copy");
        assert_eq!(of(Some("Europe/Paris"), link, None), "Europe/Paris");
        assert_eq!(of(Some(":Europe/Paris"), link, None), "Europe/Paris");
        assert_eq!(of(Some("/usr/share/zoneinfo/Europe/Paris"), link, None), "Europe/Paris");
        assert_eq!(of(Some(":/etc/localtime"), link, None), "Europe/Berlin");
        // An unknown name means UTC, as in the C library.
        assert_eq!([of(Some(""), link, None), of(Some("Mars/Base"), link, None), of(None, None, None)], ["UTC"; 3]);
        assert_eq!(of(None, Some("/usr/share/zoneinfo/Etc/UTC"), None), "UTC");
    }

    #[test]
    fn a_day_whose_clock_shows_no_midnight_begins_all_the_same() {
        let beirut = Zone::parse("Asia/Beirut").unwrap();
        let day = beirut.day(at("2024-03-31T12:00:00Z"));
        assert_eq!((day.from, hours(day)), (at("2024-03-30T22:00:00Z"), 23));
    }

    #[test]
    fn a_wrong_name_is_told_with_the_nearest() {
        assert_eq!(Zone::parse("Europe/Pariss"), Err(Some("Europe/Paris")));
        assert_eq!(Zone::parse("the office"), Err(None));
    }

    proptest! {
        #[test]
        fn every_moment_lies_in_its_day_and_its_day_in_its_month(
            zone in proptest::sample::select(TZ_VARIANTS.to_vec()), seconds in 0_i64..2_500_000_000,
        ) {
            let (zone, at) = (Zone(zone), Timestamp(seconds * 1000));
            let (day, month) = (zone.day(at), zone.month(at));
            prop_assert!(day.from <= at && at < day.until, "{} {at:?} {day:?}", zone.name());
            prop_assert!(month.from <= day.from && day.until <= month.until, "{} {at:?} {day:?} {month:?}", zone.name());
            prop_assert!(zone.day(day.until).from == day.until, "{} {at:?}: no gap", zone.name());
            // The store counts in quarters of an hour; before 1980 some offsets were not multiples of them.
            prop_assert!(at.0 < 315_532_800_000 || day.from.0 % 900_000 == 0, "{} {at:?}", zone.name());
        }
    }
}
