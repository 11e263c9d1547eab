//! The slots of a cron line by which a source is scanned: each is run at most once, whatever becomes of the
//! program and of the wall clock meanwhile.

use crate::domain::cron_line::CronLine;
use crate::domain::names::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is done about slots that came while nobody could scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedSlots {
    /// One scan makes up for all of them.
    Once,
    /// They are left out.
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

/// The last scan of a source. Stored; moments are those of the wall clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastScan {
    /// When it was begun.
    pub begun: Timestamp,
    /// When it came to its end; `None`: it goes on, or was cut off.
    #[serde(default)]
    pub ended: Option<Timestamp>,
    /// The cron line that holds since then; `None`: a length of time.
    #[serde(default)]
    pub line: Option<String>,
    /// Slots up to this moment are over, run or not.
    pub through: Timestamp,
}

/// When a source is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanTurn {
    Now(Cause),
    At {
        /// When; [`crate::domain::cron_line::NEVER`] if not any more.
        slot: Timestamp,
        /// The first slot that was missed and is left out.
        left_out: Option<Timestamp>,
    },
}

/// Why a source is scanned at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Nobody knows what is in it.
    First,
    /// The last scan did not come to its end.
    CutOff,
    Slot(Timestamp),
    /// This slot was the first that was missed.
    Missed(Timestamp),
}

/// A slot is run in time for so long after it has come.
const IN_TIME: Duration = Duration::from_secs(120);

/// A wall clock that is set back by more was wrong before, not now: what it showed then counts no more.
const SET_BACK: Duration = Duration::from_secs(48 * 3600);

impl LastScan {
    pub fn started(last: Option<&Self>, line: Option<&CronLine>, now: Timestamp) -> Self {
        let through = last.map_or(now, |last| last.through_at(now));
        Self { begun: now, ended: None, line: line.map(CronLine::to_string), through }
    }

    /// It comes to its end. A slot that came meanwhile is over with it.
    #[must_use]
    pub fn finished(&self, now: Timestamp) -> Self {
        Self { ended: Some(now), through: self.through_at(now), ..self.clone() }
    }

    /// Under another line than before slots count from now on: none is missed that was not one before.
    #[must_use]
    pub fn under(&self, line: Option<&CronLine>, now: Timestamp) -> Self {
        Self { line: line.map(CronLine::to_string), through: self.through_at(now), ..self.clone() }
    }

    /// Whether it was made under this line.
    pub fn has_line(&self, line: Option<&CronLine>) -> bool {
        self.line == line.map(CronLine::to_string)
    }

    /// All up to now are over, and where the clock was set back those up to where it was.
    fn through_at(&self, now: Timestamp) -> Timestamp {
        if self.is_wrong(now) { now } else { self.through.max(now) }
    }

    fn is_wrong(&self, now: Timestamp) -> bool {
        self.through > now.saturating_add(SET_BACK)
    }
}

/// When a source is scanned, by its line and by what is known of its last scan.
pub fn next_scan(line: &CronLine, missed: MissedSlots, last: Option<&LastScan>, now: Timestamp) -> ScanTurn {
    let later = |left_out| ScanTurn::At { slot: line.next(now), left_out };
    let Some(last) = last else { return ScanTurn::Now(Cause::First) };
    if last.ended.is_none() {
        return ScanTurn::Now(Cause::CutOff);
    }
    if !last.has_line(Some(line)) {
        return later(None);
    }
    let just_now = now.saturating_sub(IN_TIME);
    let from = if last.is_wrong(now) { just_now } else { last.through };
    let slot = line.next(from);
    if slot > now {
        return ScanTurn::At { slot, left_out: None };
    }
    let in_time = line.next(from.max(just_now));
    match missed {
        _ if in_time <= now => ScanTurn::Now(Cause::Slot(in_time)),
        MissedSlots::Once => ScanTurn::Now(Cause::Missed(slot)),
        MissedSlots::Skip => later(Some(slot)),
    }
}

/// Whether a slot has come since.
pub fn has_slot_passed(line: &CronLine, since: Timestamp, now: Timestamp) -> bool {
    let last = LastScan { begun: since, ended: Some(since), line: Some(line.to_string()), through: since };
    matches!(next_scan(line, MissedSlots::Once, Some(&last), now), ScanTurn::Now(_))
}

#[cfg(test)]
mod tests;
