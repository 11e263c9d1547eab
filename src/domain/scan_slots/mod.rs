//! Scans of a source at the slots of a cron line. Each slot is used at most once, even if the program is restarted or
//! the wall clock is set back over it. If the clock is set back over several slots, or over two days, it was wrong before,
//! and the slots that come by the new clock are used: an hourly scan does not pause for a day.

use crate::domain::cron_line::CronLine;
use crate::domain::names::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What happens with slots that passed while no process could scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedSlots {
    /// One scan replaces all of them.
    Once,
    /// They are skipped.
    Skip,
}

impl MissedSlots {
    pub fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Skip => "skip",
        }
    }
}

/// The last scan of a source. It is stored; its moments are those of the wall clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastScan {
    /// When the scan began.
    pub begun: Timestamp,
    /// When the scan ended; `None` if it is running or was interrupted.
    #[serde(default)]
    pub ended: Option<Timestamp>,
    /// The cron line that has applied since then; `None` for an interval.
    #[serde(default)]
    pub line: Option<String>,
    /// Slots up to this moment are over, whether they were used or not.
    pub through: Timestamp,
}

/// When a source is to be scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanTurn {
    Now(Cause),
    At {
        /// The next slot; [`crate::domain::cron_line::NEVER`] if there is none.
        slot: Timestamp,
        /// The first of the missed slots that are skipped.
        left_out: Option<Timestamp>,
    },
}

/// Why a source is to be scanned now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It has never been scanned.
    First,
    /// The last scan was interrupted.
    CutOff,
    Slot(Timestamp),
    /// Slots were missed; this is the first of them.
    Missed(Timestamp),
}

/// A slot counts as missed when this time has passed since it came.
const IN_TIME: Duration = Duration::from_secs(120);

/// If a stored moment lies further in the future than this, the clock was wrong when it was stored, and the moment is
/// ignored.
const SET_BACK: Duration = Duration::from_secs(48 * 3600);

impl LastScan {
    pub fn started(last: Option<&Self>, line: Option<&CronLine>, now: Timestamp) -> Self {
        let through = last.map_or(now, |last| last.through_at(line, now));
        Self { begun: now, ended: None, line: line.map(CronLine::to_string), through }
    }

    /// Ends the scan. Slots that came during it are over.
    #[must_use]
    pub fn finished(&self, now: Timestamp) -> Self {
        Self { ended: Some(now), through: self.through_at(None, now), ..self.clone() }
    }

    /// Applies another line. Slots count from now on, so that slots of the new line before now are not missed.
    #[must_use]
    pub fn under(&self, line: Option<&CronLine>, now: Timestamp) -> Self {
        Self { line: line.map(CronLine::to_string), through: self.through_at(line, now), ..self.clone() }
    }

    /// Whether this line, or no line, applied to the scan.
    pub fn has_line(&self, line: Option<&CronLine>) -> bool {
        self.line == line.map(CronLine::to_string)
    }

    /// Returns until when slots are over: now, or after a clock that was set back, where the clock was before.
    fn through_at(&self, line: Option<&CronLine>, now: Timestamp) -> Timestamp {
        if self.is_wrong(line, now) { now } else { self.through.max(now) }
    }

    /// Whether the clock was wrong when the end of the used slots was stored: it is too far ahead of now.
    fn is_wrong(&self, line: Option<&CronLine>, now: Timestamp) -> bool {
        let leaves_out_several = |line: &CronLine| line.next(line.next(now)) <= self.through;
        self.through > now.saturating_add(SET_BACK) || (self.through > now && line.is_some_and(leaves_out_several))
    }
}

/// Decides when a source is to be scanned, by its line and its last scan.
pub fn next_scan(line: &CronLine, missed: MissedSlots, last: Option<&LastScan>, now: Timestamp) -> ScanTurn {
    let later = |left_out| ScanTurn::At { slot: line.next(now), left_out };
    let Some(last) = last else { return ScanTurn::Now(Cause::First) };
    if last.ended.is_none() {
        return ScanTurn::Now(Cause::CutOff);
    }
    if !last.has_line(Some(line)) {
        return later(None);
    }
    let missed_before = now.saturating_sub(IN_TIME);
    let start = if last.is_wrong(Some(line), now) { missed_before } else { last.through };
    let slot = line.next(start);
    if slot > now {
        return ScanTurn::At { slot, left_out: None };
    }
    let in_time = line.next(start.max(missed_before));
    match missed {
        _ if in_time <= now => ScanTurn::Now(Cause::Slot(in_time)),
        MissedSlots::Once => ScanTurn::Now(Cause::Missed(slot)),
        MissedSlots::Skip => later(Some(slot)),
    }
}

/// Whether a slot has come after `since`.
pub fn has_slot_passed(line: &CronLine, since: Timestamp, now: Timestamp) -> bool {
    let last = LastScan { begun: since, ended: Some(since), line: Some(line.to_string()), through: since };
    matches!(next_scan(line, MissedSlots::Once, Some(&last), now), ScanTurn::Now(_))
}

#[cfg(test)]
mod tests;
