//! Sums of charges, by source and quarter of an hour. Midnight falls on a quarter in every time zone, so the sum of a
//! day or a month adds a few thousand numbers at most. Rebuilt by the scan when the store is opened.

use crate::domain::budget::{Account, BudgetLimit, Period, Span};
use crate::domain::charge::{Charge, Sighted, State};
use crate::domain::job::Job;
use crate::domain::names::{ServiceName, SourceName, Timestamp, TranscriptionId};
use crate::domain::stage::Stage;
use crate::store::contract::{KnownPurchase, NewestPurchase};
use crate::store::index::job_index::id_hash;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

const QUARTER: i64 = 15 * 60 * 1000;

#[derive(Debug, Default)]
pub struct Spending {
    spent: BTreeMap<SourceName, Sums>,
    reserved: BTreeMap<SourceName, Sums>,
    /// What was spent, ever.
    billed: BTreeMap<(SourceName, ServiceName), u64>,
    /// By how much bills were higher than their reservations.
    excess: BTreeMap<SourceName, Sums>,
    /// When this run began.
    run: Option<Timestamp>,
    /// The transcriptions that jobs of this queue paid for, by hash.
    paid: HashSet<[u8; 16]>,
    /// Transcriptions that were found at a service and that no job has yet: nobody knows which source they belong to.
    sighted: HashMap<[u8; 16], (Timestamp, u64)>,
    unclaimed_sums: Sums,
    /// The newest purchase at each service.
    newest: BTreeMap<ServiceName, NewestPurchase>,
}

#[derive(Debug, Default)]
struct Sums {
    quarters: BTreeMap<i64, u64>,
    /// The part of `quarters` that a clock dated that was far ahead of the service's: by the quarters of both.
    misdated: BTreeMap<Misdated, u64>,
    total: u64,
    of_run: u64,
}

/// The dates of a charge by two clocks that differed, in quarters of an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Misdated {
    own: i64,
    service: i64,
}

/// What a charge counts as.
#[derive(Debug, Clone, Copy)]
struct ChargeDates {
    at: Timestamp,
    service_date: Option<Timestamp>,
    is_of_run: bool,
}

/// How far the clock must have been ahead of the service's for a charge to count by the service's date. Clocks differ by
/// minutes, and the service's date is that of an answer before.
const FAR_AHEAD: Duration = Duration::from_secs(24 * 3600);

impl ChargeDates {
    /// Returns both dates, if the own clock was far ahead.
    fn misdated(self) -> Option<Misdated> {
        let service_date = self.service_date.filter(|date| self.at > date.saturating_add(FAR_AHEAD))?;
        Some(Misdated { own: quarter_of(self.at), service: quarter_of(service_date) })
    }
}

impl Spending {
    /// Begins a run, in which nothing is spent yet.
    pub fn begin_run(&mut self, now: Timestamp) {
        self.run = Some(now);
        let sums = self.spent.values_mut().chain(self.reserved.values_mut()).chain(self.excess.values_mut());
        sums.for_each(|sums| sums.of_run = 0);
    }

    /// When this run began.
    pub fn run(&self) -> Option<Timestamp> {
        self.run
    }

    /// Counts a job's charges.
    pub fn add(&mut self, job: &Job) {
        self.change(job, u64::saturating_add);
        self.note_newest(job);
        for id in paid(job) {
            self.paid.insert(id);
            if let Some((at, amount)) = self.sighted.remove(&id) {
                self.unclaimed_sums.change(at, amount, u64::saturating_sub);
            }
        }
    }

    /// Returns what was bought last at a service, as far as this queue knows.
    pub fn newest(&self, service: &ServiceName) -> NewestPurchase {
        self.newest.get(service).cloned().unwrap_or_default()
    }

    /// Never goes back: a reservation that was given back since was about to be spent all the same.
    fn note_newest(&mut self, job: &Job) {
        let is_intent = matches!(job.stage, Stage::Submitting { .. });
        for charge in &job.charges {
            let is_bought = charge.state == State::Spent && charge.at != Charge::UNDATED;
            let is_sent = is_intent && charge.state == State::Held;
            if !(is_bought || is_sent) {
                continue;
            }
            let newest = self.newest.entry(charge.service.clone()).or_default();
            if newest.intent.is_none_or(|(at, _)| at <= charge.at) {
                newest.intent = Some((charge.at, charge.service_date));
            }
            if let Some(transcription) = charge.transcription.as_ref().filter(|_| is_bought)
                && newest.accepted.as_ref().is_none_or(|(at, ..)| *at <= charge.at)
            {
                newest.accepted = Some((charge.at, charge.service_date, transcription.clone()));
            }
        }
    }

    /// Removes a job's charges from the sums.
    pub fn remove(&mut self, job: &Job) {
        self.change(job, u64::saturating_sub);
        for id in paid(job) {
            self.paid.remove(&id);
        }
    }

    /// Counts a purchase that a service's list shows, unless a job has it.
    pub fn sight(&mut self, bought: &KnownPurchase) {
        let Some(Sighted { at, billed: Some(amount), is_uncounted: false }) = bought.sighted else { return };
        let id = id_hash(&bought.transcription);
        if !self.paid.contains(&id) && self.sighted.insert(id, (at, amount)).is_none() {
            self.unclaimed_sums.change(at, amount, u64::saturating_add);
        }
    }

    /// Whether a job has a charge for this transcription.
    pub fn has_paid(&self, transcription: &TranscriptionId) -> bool {
        self.paid.contains(&id_hash(transcription))
    }

    /// As [`Spending::has_paid`], by the hash of the transcription.
    pub fn has_paid_hash(&self, id: &[u8; 16]) -> bool {
        self.paid.contains(id)
    }

    fn change(&mut self, job: &Job, by: fn(u64, u64) -> u64) {
        for charge in &job.charges {
            let Some(amount) = charge.amount().filter(|amount| *amount > 0) else { continue };
            if charge.state == State::Spent {
                let billed = self.billed.entry((job.key.source.clone(), charge.service.clone())).or_default();
                *billed = by(*billed, amount);
            }
            let by_source = if charge.state == State::Held { &mut self.reserved } else { &mut self.spent };
            let is_of_run = self.run == Some(charge.run);
            let dates = ChargeDates { at: charge.at, service_date: charge.service_date, is_of_run };
            by_source.entry(job.key.source.clone()).or_default().change_charge(dates, amount, by);
            if charge.excess() > 0 {
                let excess = self.excess.entry(job.key.source.clone()).or_default();
                excess.change_charge(dates, charge.excess(), by);
            }
        }
    }

    /// Returns what was spent for the jobs of each source, at each service.
    pub fn billed(&self) -> &BTreeMap<(SourceName, ServiceName), u64> {
        &self.billed
    }

    /// Returns how much is spent or reserved of this limit.
    pub fn used(&self, limit: &BudgetLimit) -> u64 {
        self.account(limit).used()
    }

    /// Returns what is spent and what is reserved of this limit.
    pub fn account(&self, limit: &BudgetLimit) -> Account {
        let is_meant = |source: &SourceName| limit.source.as_ref().is_none_or(|own| own == source);
        let of = |by_source: &BTreeMap<SourceName, Sums>| {
            let meant = by_source.iter().filter(|(source, _)| is_meant(source));
            meant.map(|(_, sums)| sums.used(limit)).fold(0, u64::saturating_add)
        };
        let unclaimed = if limit.source.is_none() { self.unclaimed_sums.used(limit) } else { 0 };
        let (spent, reserved) = (of(&self.spent).saturating_add(unclaimed), of(&self.reserved));
        Account { limit: limit.clone(), spent, unclaimed, reserved, excess: of(&self.excess) }
    }

    /// Returns the transcriptions that were found at a service and that no job has yet: when they were bought, and
    /// what they cost.
    pub fn unclaimed(&self) -> Vec<(Timestamp, u64)> {
        self.sighted.values().copied().collect()
    }
}

impl Sums {
    fn change_charge(&mut self, dates: ChargeDates, amount: u64, by: fn(u64, u64) -> u64) {
        self.change(dates.at, amount, by);
        if let Some(misdated) = dates.misdated() {
            change_entry(&mut self.misdated, misdated, amount, by);
        }
        if dates.is_of_run {
            self.of_run = by(self.of_run, amount);
        }
    }

    fn change(&mut self, at: Timestamp, amount: u64, by: fn(u64, u64) -> u64) {
        change_entry(&mut self.quarters, quarter_of(at), amount, by);
        self.total = by(self.total, amount);
    }

    fn used(&self, limit: &BudgetLimit) -> u64 {
        match limit.period {
            Period::Run => self.of_run,
            Period::Total => self.total,
            Period::Day | Period::Month => {
                // Charges that are dated ahead count too: either the clock was ahead then, or it is behind now.
                let quarters = self.quarters.range(quarter_of(limit.span.from)..);
                let used = quarters.map(|(_, amount)| *amount).fold(0, u64::saturating_add);
                used.saturating_sub(self.over_by_the_service(limit.span))
            }
        }
    }

    /// Returns what is dated after the span although it was bought before the span by the service's clock: the own clock
    /// was ahead then. It counted in its own time, and would otherwise use up every day until the clock gets there.
    fn over_by_the_service(&self, span: Span) -> u64 {
        let is_over = |dates: &Misdated| dates.own >= quarter_of(span.until) && dates.service < quarter_of(span.from);
        let over = self.misdated.iter().filter(|(dates, _)| is_over(dates));
        over.map(|(_, amount)| *amount).fold(0, u64::saturating_add)
    }
}

/// Changes a sum; one that becomes zero is removed.
fn change_entry<K: Ord + Copy>(sums: &mut BTreeMap<K, u64>, key: K, amount: u64, by: fn(u64, u64) -> u64) {
    let sum = sums.entry(key).or_default();
    *sum = by(*sum, amount);
    if *sum == 0 {
        sums.remove(&key);
    }
}

fn paid(job: &Job) -> impl Iterator<Item = [u8; 16]> {
    job.charges.iter().filter_map(|charge| charge.transcription.as_ref()).map(id_hash)
}

fn quarter_of(at: Timestamp) -> i64 {
    at.0.div_euclid(QUARTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dated_ahead_counts_in_the_day_and_month_of_now() {
        const DAY: i64 = 86_400_000;
        let mut sums = Sums::default();
        for (day, amount) in [(9, 1), (10, 2), (400, 4)] {
            sums.change(Timestamp(day * DAY), amount, u64::saturating_add);
        }
        let used = |period, from, until| {
            let span = Span { from: Timestamp(from * DAY), until: Timestamp(until * DAY) };
            sums.used(&BudgetLimit { source: None, period, span, allowed: 0 })
        };
        assert_eq!(used(Period::Day, 10, 11), 6);
        assert_eq!(used(Period::Month, 0, 31), 7);
        assert_eq!(used(Period::Day, 0, 1), 7, "the clock is behind");
    }

    #[test]
    fn a_charge_of_a_clock_that_was_ahead_counts_on_its_day_by_the_service_and_not_for_a_year() {
        const DAY: i64 = 86_400_000;
        let at = |day: i64| Timestamp(day * DAY + 1);
        let used = |sums: &Sums, day: i64| {
            let span = Span { from: Timestamp(day * DAY), until: Timestamp((day + 1) * DAY) };
            sums.used(&BudgetLimit { source: None, period: Period::Day, span, allowed: 0 })
        };
        let mut sums = Sums::default();
        let mut charge = |day, service, by: fn(u64, u64) -> u64| {
            let dates = ChargeDates { at: at(day), service_date: Some(at(service)), is_of_run: false };
            sums.change_charge(dates, 4, by);
            [10, 11, 12, 375, 376].map(|day| used(&sums, day))
        };
        // Bought on day 10, by a clock that was a year ahead.
        assert_eq!(charge(375, 10, u64::saturating_add), [4, 0, 0, 4, 0]);
        assert_eq!(charge(375, 10, u64::saturating_sub), [0; 5]);
        // By a clock that was right, and is behind now; and by one that differs by minutes.
        assert_eq!(charge(12, 12, u64::saturating_add), [4, 4, 4, 0, 0]);
        assert_eq!(charge(12, 11, u64::saturating_add), [8, 8, 8, 0, 0]);
    }
}
