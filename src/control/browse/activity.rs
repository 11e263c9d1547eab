//! Figures of all jobs, for charts. Pure.

use super::columns::{Columns, NONE};
use crate::control::transport::protocol::{DayCost, HourActivity, NightActivity, QueueActivity};
use crate::domain::names::Timestamp;
use crate::domain::stage::StageKind;
use crate::domain::zone::Zone;
use std::collections::BTreeMap;

const HOURS: usize = 48;
const DAYS: usize = 30;
const HOUR: i64 = 3600;

/// When a night begins and ends, in hours of the day.
const EVENING: i64 = 18;
const MORNING: i64 = 8;

/// The ends of the groups of ages, in seconds.
const AGES: [i64; 4] = [HOUR, 24 * HOUR, 7 * 24 * HOUR, 30 * 24 * HOUR];

/// Returns the figures at `now`; days are those of `zone`.
pub(super) fn activity(columns: &Columns, zone: Zone, now: Timestamp) -> QueueActivity {
    let second = now.0.div_euclid(1000);
    let mut activity = QueueActivity { hours: hours(second), days: days(zone, now), ..QueueActivity::default() };
    let first_hour = seconds(activity.hours[0].begin);
    let day_begins: Vec<i64> = activity.days.iter().map(|day| seconds(day.begin)).collect();
    let mut night = Night::before(zone, now);
    for (_, kind, row) in columns.jobs() {
        match kind {
            StageKind::Written => {
                let hour = usize::try_from((row.since - first_hour).div_euclid(HOUR)).ok();
                if let Some(hour) = hour.and_then(|hour| activity.hours.get_mut(hour)) {
                    hour.files += 1;
                    hour.audio += millis(row.audio);
                }
            }
            StageKind::Failed => {
                if let Some(fault) = columns.faults.text(row.fault) {
                    *activity.failed.entry((*fault).to_owned()).or_default() += 1;
                }
            }
            kind if !kind.is_end() => {
                let age = second - row.since;
                let group = AGES.iter().position(|end| age < *end).unwrap_or(AGES.len());
                activity.ages[group] += 1;
            }
            _ => {}
        }
        night.add(kind, row);
        add_cost(&mut activity.days, &day_begins, row.bought, row.cost);
    }
    let earlier = columns.earlier_costs.values().flatten();
    earlier.for_each(|(at, amount)| add_cost(&mut activity.days, &day_begins, *at, *amount));
    activity.night = night.described(columns);
    activity
}

fn seconds(at: Timestamp) -> i64 {
    at.0.div_euclid(1000)
}

fn millis(seconds: u32) -> u64 {
    u64::from(seconds) * 1000
}

/// Returns the last hours, the present one included.
fn hours(now: i64) -> Vec<HourActivity> {
    let present = now.div_euclid(HOUR) * HOUR;
    let begin = |back: usize| Timestamp((present - back as i64 * HOUR) * 1000);
    (0..HOURS).rev().map(|back| HourActivity { begin: begin(back), ..HourActivity::default() }).collect()
}

/// Returns the last days, today included. A day may have 23 or 25 hours.
fn days(zone: Zone, now: Timestamp) -> Vec<DayCost> {
    let mut begin = zone.day(now).from;
    let mut days = vec![DayCost { begin, billed: 0 }];
    while days.len() < DAYS {
        begin = zone.day(Timestamp(begin.0 - 1)).from;
        days.push(DayCost { begin, billed: 0 });
    }
    days.reverse();
    days
}

fn add_cost(days: &mut [DayCost], begins: &[i64], at: i64, amount: u32) {
    let after = begins.partition_point(|begin| *begin <= at);
    if let Some(day) = after.checked_sub(1).and_then(|day| days.get_mut(day)) {
        day.billed += millis(amount);
    }
}

struct Night {
    from: i64,
    to: i64,
    written: u64,
    audio: u64,
    failed: u64,
    reasons: BTreeMap<u32, u64>,
}

impl Night {
    /// Returns the night to today, of which a part may be still to come.
    fn before(zone: Zone, now: Timestamp) -> Self {
        let midnight = seconds(zone.day(now).from);
        let from = midnight - (24 - EVENING) * HOUR;
        let to = (midnight + MORNING * HOUR).min(seconds(now));
        Self { from, to, written: 0, audio: 0, failed: 0, reasons: BTreeMap::new() }
    }

    fn add(&mut self, kind: StageKind, row: &super::columns::BrowseRow) {
        if !(self.from..self.to).contains(&row.since) {
            return;
        }
        match kind {
            StageKind::Written => {
                self.written += 1;
                self.audio += millis(row.audio);
            }
            StageKind::Failed => {
                self.failed += 1;
                if row.reason != NONE {
                    *self.reasons.entry(row.reason).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    fn described(self, columns: &Columns) -> NightActivity {
        let most = self.reasons.into_iter().max_by_key(|(_, jobs)| *jobs);
        NightActivity {
            from: Timestamp(self.from * 1000),
            to: Timestamp(self.to * 1000),
            written: self.written,
            audio: self.audio,
            failed: self.failed,
            reason: most.and_then(|(number, jobs)| Some((columns.reasons.text(number)?.clone(), jobs))),
        }
    }
}
