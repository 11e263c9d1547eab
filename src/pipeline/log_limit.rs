//! Limits log lines: if one cause concerns thousands of files, the first few are logged one by one, the others are
//! counted and logged together.

use crate::domain::names::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lines for one cause …
const LINES: u32 = 20;

/// … within this time.
const WINDOW: Duration = Duration::from_secs(3600);

/// What was logged of each cause.
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<BTreeMap<&'static str, Logged>>);

#[derive(Debug)]
struct Logged {
    since: Timestamp,
    lines: u32,
    unlogged: u64,
}

impl LogLimit {
    /// Whether one more file has a log line of its own. If not, counts it.
    pub fn has_line(&self, cause: &'static str, now: Timestamp) -> bool {
        self.log_due(now, false);
        let mut by_cause = self.logged();
        let logged = by_cause.entry(cause).or_insert(Logged { since: now, lines: 0, unlogged: 0 });
        if logged.lines < LINES {
            logged.lines += 1;
            return true;
        }
        logged.unlogged += 1;
        false
    }

    /// Logs the counts of the causes whose window is over; of all causes if `is_last`.
    pub fn log_due(&self, now: Timestamp, is_last: bool) {
        let mut by_cause = self.logged();
        for (cause, logged) in by_cause.iter().filter(|(_, logged)| is_last || logged.is_over(now)) {
            if logged.unlogged > 0 {
                let more = logged.unlogged;
                tracing::warn!(
                    cause,
                    files = more,
                    "{more} more files have the same problem ({cause}); scribed does not log each of them. \
                     `scribed jobs` lists them with their reasons"
                );
            }
        }
        by_cause.retain(|_, logged| !is_last && !logged.is_over(now));
    }

    fn logged(&self) -> MutexGuard<'_, BTreeMap<&'static str, Logged>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Logged {
    fn is_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.since) >= WINDOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_cause_have_lines_and_the_others_are_counted_until_its_hour_is_over() {
        let limit = LogLimit::default();
        let has_line = |cause, second: i64| limit.has_line(cause, Timestamp(second * 1000));
        assert_eq!((0..1000).filter(|n| has_line("refused", *n)).count(), 20);
        assert!(has_line("dead", 5), "each cause by itself");
        assert_eq!(limit.logged()["refused"].unlogged, 980);
        assert!(has_line("refused", 3600));
    }
}
