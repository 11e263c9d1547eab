//! Windows: when jobs of a source may be uploaded and submitted.

use crate::domain::cron_line::{CronLine, NEVER};
use crate::domain::names::Timestamp;
use std::time::Duration;

/// A window that opens at each slot of a cron line.
#[derive(Debug, Clone)]
pub struct Window {
    pub from: CronLine,
    /// How long it is open in elapsed time: a change of daylight saving time does not alter it.
    pub length: Duration,
}

/// The windows of a source; never empty. They may overlap.
#[derive(Debug, Clone)]
pub struct Windows(Vec<Window>);

/// Whether jobs may be sent, and until when at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowState {
    /// Open until then at least. At that moment it may still be open.
    Open { until: Timestamp },
    Shut {
        /// When it opens; [`NEVER`] if it does not open again.
        until: Timestamp,
    },
}

impl WindowState {
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Returns when to look at the state again.
    pub fn changes_at(self) -> Timestamp {
        match self {
            Self::Open { until } | Self::Shut { until } => until,
        }
    }
}

/// How many windows that follow each other without a gap are reported as one. The bound is for windows that never
/// close, such as one that opens every minute: they are reported as open for a while.
const MAX_JOINED: usize = 16;

impl Windows {
    /// Makes the windows of a source; `None` if the list is empty.
    pub fn new(windows: Vec<Window>) -> Option<Self> {
        (!windows.is_empty()).then_some(Self(windows))
    }

    /// Returns the state at this moment of the wall clock.
    pub fn at(&self, now: Timestamp) -> WindowState {
        let mut end = now;
        for _ in 0..MAX_JOINED {
            match self.end_after(end) {
                Some(later) => end = later,
                None => break,
            }
        }
        if end > now {
            return WindowState::Open { until: end };
        }
        let next = self.0.iter().map(|window| window.from.next(now)).min();
        WindowState::Shut { until: next.unwrap_or(NEVER) }
    }

    /// Returns the latest end of the windows that are open at this moment.
    fn end_after(&self, now: Timestamp) -> Option<Timestamp> {
        let end = |window: &Window| {
            let opened = window.from.next(now.saturating_sub(window.length));
            (opened <= now).then(|| opened.saturating_add(window.length))
        };
        self.0.iter().filter_map(end).max()
    }
}

impl std::fmt::Display for Windows {
    /// `0 22 * * * for 8h (Europe/Paris)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, Window { from, length }) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            let length = humantime::format_duration(*length);
            write!(f, "{comma}{} for {length} ({})", from.text(), from.zone().name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::zone::Zone;
    use proptest::prelude::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(chrono::DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis())
    }

    fn hours(hours: u64) -> Duration {
        Duration::from_secs(hours * 3600)
    }

    fn windows(zone: &str, lines: &[(&str, u64)]) -> Windows {
        let zone = Zone::parse(zone).unwrap();
        let window = |(line, length): &(&str, u64)| Window {
            from: CronLine::parse(line, zone).unwrap(),
            length: hours(*length),
        };
        Windows::new(lines.iter().map(window).collect()).unwrap()
    }

    fn shut(until: &str) -> WindowState {
        WindowState::Shut { until: at(until) }
    }

    fn open(until: &str) -> WindowState {
        WindowState::Open { until: at(until) }
    }

    #[test]
    fn a_night_opens_in_the_evening_and_shuts_in_the_morning() {
        let nights = windows("Europe/Paris", &[("0 22 * * *", 8)]);
        let told = |text: &str| nights.at(at(text));
        assert_eq!(told("2026-11-21T20:59:59.999Z"), shut("2026-11-21T21:00:00Z"));
        assert_eq!(told("2026-11-21T21:00:00Z"), open("2026-11-22T05:00:00Z"));
        assert_eq!(told("2026-11-22T04:59:59.999Z"), open("2026-11-22T05:00:00Z"));
        assert_eq!(told("2026-11-22T05:00:00Z"), shut("2026-11-22T21:00:00Z"));
        // Eight hours stay eight hours when daylight saving time begins or ends.
        assert_eq!(told("2026-03-29T00:00:00Z"), open("2026-03-29T05:00:00Z"));
        assert_eq!(told("2026-10-25T00:00:00Z"), open("2026-10-25T04:00:00Z"));
        assert_eq!(nights.to_string(), "0 22 * * * for 8h (Europe/Paris)");
    }

    #[test]
    fn windows_that_meet_are_one_and_one_that_never_shuts_is_open() {
        let weekend = windows("UTC", &[("0 22 * * Mon-Fri", 8), ("0 6 * * Sat", 24), ("0 6 * * Sun", 24)]);
        assert_eq!(weekend.at(at("2026-11-20T23:00:00Z")), open("2026-11-23T06:00:00Z"));
        assert_eq!(weekend.at(at("2026-11-23T06:00:00Z")), shut("2026-11-23T22:00:00Z"));
        let always = windows("UTC", &[("* * * * *", 1)]);
        assert!(always.at(at("2026-11-20T23:00:00Z")).is_open());
    }

    proptest! {
        /// Compares with every slot: open exactly within the length after one of them.
        #[test]
        fn open_exactly_after_a_slot(
            zone in proptest::sample::select(chrono_tz::TZ_VARIANTS.to_vec()),
            hour in 0..24_u32, weekday in 0..8_u32, minutes in 1_u64..3_000, seconds in 631_152_000_i64..2_500_000_000,
        ) {
            let weekday = if weekday == 7 { "*".to_owned() } else { weekday.to_string() };
            let line = CronLine::parse(&format!("0 {hour} * * {weekday}"), Zone::parse(zone.name()).unwrap()).unwrap();
            let length = Duration::from_secs(minutes * 60);
            let windows = Windows::new(vec![Window { from: line.clone(), length }]).unwrap();
            let now = Timestamp(seconds * 1000);
            let slots = std::iter::successors(Some(line.next(now.saturating_sub(hours(24 * 12)))), |slot| Some(line.next(*slot)));
            let covered = slots.take_while(|slot| *slot <= now).any(|slot| now < slot.saturating_add(length));
            let told = windows.at(now);
            prop_assert_eq!(told.is_open(), covered, "{} {:?}", zone.name(), told);
            prop_assert!(told.changes_at() > now);
            prop_assert!(windows.at(Timestamp(told.changes_at().0 - 1)).is_open() == covered);
        }
    }
}
