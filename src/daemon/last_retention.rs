//! When what is old was last removed, and the date by which it was old. It is saved, so that a clock that is ahead for
//! some passes, or for some starts, removes little too early.

use crate::domain::names::Timestamp;
use crate::domain::result_retention::retention_date;
use crate::durable_file::Durability;
use crate::source::saved_file;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How often what is old is removed.
pub(super) const REMOVAL_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// The last pass that ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct LastRetention {
    ended: Timestamp,
    /// The date by which it was decided what is old.
    date: Timestamp,
    keep: Duration,
}

impl LastRetention {
    /// Reads the record; `None` if there is none. Blocks.
    pub fn load(file: &Path) -> Option<Self> {
        saved_file::load(file)
    }

    /// Whether the next pass need not begin yet.
    pub fn suffices(&self, keep: Duration, now: Timestamp) -> bool {
        // After a clock was ahead, the last pass counts as one of the future.
        self.keep == keep && (self.ended..self.ended.saturating_add(REMOVAL_INTERVAL)).contains(&now)
    }

    /// Returns the date of a pass that begins now.
    pub fn next_date(&self, now: Timestamp) -> Timestamp {
        retention_date(now, Some(self.date), now)
    }

    /// Returns the record of a pass that ends now. After a clock that was behind the date does not go back: it would
    /// otherwise take long to come forward again.
    pub fn ended(last: Option<&Self>, date: Timestamp, keep: Duration, now: Timestamp) -> Self {
        Self { ended: now, date: last.map_or(date, |last| date.max(last.date)), keep }
    }

    /// Saves the record. Blocks.
    ///
    /// # Errors
    /// The error of the file system; the next start then begins a pass.
    pub fn save(&self, file: &Path) -> io::Result<()> {
        saved_file::save(file, "json-tmp", self, Durability::Unsynced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Duration = Duration::from_secs(90 * 24 * 3600);

    fn day(number: i64) -> Timestamp {
        Timestamp(number * 24 * 3_600_000)
    }

    #[test]
    fn a_clock_that_is_ahead_by_a_year_brings_the_date_forward_by_eight_days_a_day_whatever_is_started() {
        let mut last = LastRetention::ended(None, day(1_000), KEEP, day(1_000));
        let mut passes = 0;
        for hour in 0..48 {
            let now = Timestamp(day(1_365).0 + hour * 3_600_000);
            if !last.suffices(KEEP, now) {
                last = LastRetention::ended(Some(&last), last.next_date(now), KEEP, now);
                passes += 1;
            }
        }
        assert_eq!((passes, last.date), (2, day(1_016)));
        assert!(!last.suffices(KEEP, day(1_001)), "the clock is right again");
        assert_eq!(last.next_date(day(1_001)), day(1_001));
    }

    #[test]
    fn a_clock_that_was_behind_for_a_pass_delays_nothing() {
        let last = LastRetention::ended(None, day(9_000), KEEP, day(9_000));
        let behind = LastRetention::ended(Some(&last), last.next_date(day(0)), KEEP, day(0));
        assert_eq!((last.next_date(day(0)), behind.next_date(day(9_001))), (day(0), day(9_001)));
    }
}
