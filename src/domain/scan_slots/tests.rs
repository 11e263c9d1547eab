use super::*;
use crate::domain::zone::Zone;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn at(text: &str) -> Timestamp {
    Timestamp(chrono::DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis())
}

fn line(text: &str, zone: &str) -> CronLine {
    CronLine::parse(text, Zone::parse(zone).unwrap()).unwrap()
}

fn scanned(line: &CronLine, at: Timestamp) -> LastScan {
    LastScan::started(None, Some(line), at).finished(at)
}

fn later(slot: &str) -> ScanTurn {
    ScanTurn::At { slot: at(slot), left_out: None }
}

#[test]
fn a_source_that_nobody_has_looked_at_is_scanned_at_once_and_then_at_its_slots() {
    let nightly = line("0 22 * * *", "UTC");
    let now = at("2026-11-21T12:00:00Z");
    assert_eq!(next_scan(&nightly, MissedSlots::Skip, None, now), ScanTurn::Now(Cause::First));
    let last = scanned(&nightly, now);
    let of = |now: &str| next_scan(&nightly, MissedSlots::Skip, Some(&last), at(now));
    assert_eq!(of("2026-11-21T12:00:00Z"), later("2026-11-21T22:00:00Z"));
    assert_eq!(of("2026-11-21T21:59:59.999Z"), later("2026-11-21T22:00:00Z"));
    assert_eq!(of("2026-11-21T22:00:00Z"), ScanTurn::Now(Cause::Slot(at("2026-11-21T22:00:00Z"))));
    assert_eq!(of("2026-11-21T22:01:59Z"), ScanTurn::Now(Cause::Slot(at("2026-11-21T22:00:00Z"))));
}

#[test]
fn a_slot_that_was_begun_is_not_run_again_whenever_it_is_asked_for() {
    let nightly = line("0 22 * * *", "UTC");
    let slot = at("2026-11-21T22:00:00Z");
    let last = scanned(&nightly, slot);
    for missed in [MissedSlots::Once, MissedSlots::Skip] {
        for now in ["2026-11-21T22:00:00Z", "2026-11-21T22:00:01Z", "2026-11-22T06:00:00Z"] {
            assert_eq!(next_scan(&nightly, missed, Some(&last), at(now)), later("2026-11-22T22:00:00Z"));
        }
        let begun = LastScan::started(None, Some(&nightly), slot);
        assert_eq!(
            next_scan(&nightly, missed, Some(&begun), slot),
            ScanTurn::Now(Cause::CutOff),
            "it is seen to its end"
        );
    }
}

#[test]
fn what_was_missed_is_made_up_once_or_left_out() {
    let nightly = line("0 22 * * *", "UTC");
    let last = scanned(&nightly, at("2026-11-18T22:00:00Z"));
    let (now, first) = (at("2026-11-21T12:00:00Z"), at("2026-11-19T22:00:00Z"));
    assert_eq!(next_scan(&nightly, MissedSlots::Once, Some(&last), now), ScanTurn::Now(Cause::Missed(first)));
    let made_up = LastScan::started(Some(&last), Some(&nightly), now).finished(now);
    assert_eq!(next_scan(&nightly, MissedSlots::Once, Some(&made_up), now), later("2026-11-21T22:00:00Z"));
    let left = ScanTurn::At { slot: at("2026-11-21T22:00:00Z"), left_out: Some(first) };
    assert_eq!(next_scan(&nightly, MissedSlots::Skip, Some(&last), now), left);
    let slot = at("2026-11-21T22:00:00Z");
    assert_eq!(next_scan(&nightly, MissedSlots::Skip, Some(&last), slot), ScanTurn::Now(Cause::Slot(slot)));
}

#[test]
fn another_line_fires_at_its_own_next_slot_and_not_for_one_that_has_passed() {
    let (nightly, noon) = (line("0 22 * * *", "UTC"), line("0 12 * * *", "UTC"));
    let now = at("2026-11-21T15:00:00Z");
    let last = scanned(&nightly, at("2026-11-20T22:00:00Z"));
    assert_eq!(next_scan(&noon, MissedSlots::Once, Some(&last), now), later("2026-11-22T12:00:00Z"));
    let taken_up = last.under(Some(&noon), now);
    assert!(taken_up.has_line(Some(&noon)) && !taken_up.has_line(Some(&line("0 12 * * *", "Europe/Paris"))));
    assert_eq!(next_scan(&noon, MissedSlots::Once, Some(&taken_up), now), later("2026-11-22T12:00:00Z"));
    let slot = at("2026-11-22T12:00:00Z");
    assert_eq!(next_scan(&noon, MissedSlots::Once, Some(&taken_up), slot), ScanTurn::Now(Cause::Slot(slot)));
}

#[test]
fn a_clock_that_is_set_back_runs_no_slot_twice_and_one_that_was_wrong_stops_nothing() {
    let nightly = line("0 22 * * *", "UTC");
    let last = scanned(&nightly, at("2026-11-21T22:00:00Z"));
    for now in ["2026-11-21T21:30:00Z", "2026-11-21T22:00:00Z", "2026-11-20T22:00:00Z"] {
        assert_eq!(
            next_scan(&nightly, MissedSlots::Once, Some(&last), at(now)),
            later("2026-11-22T22:00:00Z"),
            "{now}"
        );
    }
    // A scan for another reason while the clock is behind.
    let between = LastScan::started(Some(&last), Some(&nightly), at("2026-11-21T21:30:00Z"));
    let between = between.finished(at("2026-11-21T21:31:00Z"));
    assert_eq!(
        next_scan(&nightly, MissedSlots::Once, Some(&between), at("2026-11-21T22:00:00Z")),
        later("2026-11-22T22:00:00Z")
    );
    // The clock's battery was empty: the clock showed another year.
    let wrong = scanned(&nightly, at("2036-01-01T00:00:00Z"));
    assert_eq!(
        next_scan(&nightly, MissedSlots::Once, Some(&wrong), at("2026-11-21T12:00:00Z")),
        later("2026-11-21T22:00:00Z")
    );
    let slot = at("2026-11-21T22:00:00Z");
    assert_eq!(next_scan(&nightly, MissedSlots::Skip, Some(&wrong), slot), ScanTurn::Now(Cause::Slot(slot)));
    let fixed = LastScan::started(Some(&wrong), Some(&nightly), slot).finished(slot);
    assert_eq!(next_scan(&nightly, MissedSlots::Once, Some(&fixed), slot), later("2026-11-22T22:00:00Z"));
}

#[test]
fn an_hourly_scan_does_not_pause_for_a_day_because_the_clock_was_set_back_by_a_day() {
    let hourly = line("0 * * * *", "UTC");
    let mut days = Days::new(&hourly, MissedSlots::Once, at("2026-11-21T12:30:00Z"));
    days.wake(-24 * 3600);
    assert_eq!(days.scans, [], "no slot has come");
    (0..180).for_each(|_| days.wake(60));
    let slots = ["2026-11-20T13:00:00Z", "2026-11-20T14:00:00Z", "2026-11-20T15:00:00Z"].map(at);
    assert_eq!(days.slots(), slots);
    // Over one slot only: it is not used twice.
    days.wake(-3600);
    (0..60).for_each(|_| days.wake(60));
    assert_eq!(days.slots(), slots);
    days.wake(3600);
    assert_eq!(days.slots().len(), 4);
    // Manifests ask only whether a slot has come.
    let come = |now: &str| has_slot_passed(&hourly, at("2026-11-21T12:30:00Z"), at(now));
    assert_eq!(["2026-11-20T12:30:00Z", "2026-11-20T13:00:30Z"].map(come), [false, true]);
}

#[test]
fn a_slot_that_comes_while_it_is_scanned_is_over_with_it() {
    let hourly = line("0 * * * *", "UTC");
    let last = LastScan::started(None, Some(&hourly), at("2026-11-21T10:00:00Z"));
    let last = last.finished(at("2026-11-21T11:30:00Z"));
    assert_eq!(
        next_scan(&hourly, MissedSlots::Once, Some(&last), at("2026-11-21T11:30:00Z")),
        later("2026-11-21T12:00:00Z")
    );
}

#[test]
fn nights_in_which_clocks_are_changed_are_scanned_once() {
    let nightly = line("30 2 * * *", "Europe/Paris");
    for (from, until) in
        [("2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z"), ("2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z")]
    {
        let mut days = Days::new(&nightly, MissedSlots::Once, at(from));
        while days.now < at(until) {
            days.wake(60);
        }
        assert_eq!(days.scans.len(), 1, "{from} {:?}", days.scans);
    }
}

#[test]
fn lists_ask_only_whether_a_slot_has_come() {
    let nightly = line("0 22 * * *", "UTC");
    let come = |now: &str| has_slot_passed(&nightly, at("2026-11-21T12:00:00Z"), at(now));
    assert_eq!(["2026-11-21T21:59:00Z", "2026-11-21T22:00:00Z", "2026-11-25T00:00:00Z"].map(come), [false, true, true]);
}

/// A simulated daemon that wakes up, decides, and scans.
struct Days<'l> {
    line: &'l CronLine,
    missed: MissedSlots,
    last: LastScan,
    now: Timestamp,
    scans: Vec<Cause>,
}

impl<'l> Days<'l> {
    fn new(line: &'l CronLine, missed: MissedSlots, now: Timestamp) -> Self {
        Self { line, missed, last: scanned(line, now), now, scans: Vec::new() }
    }

    /// Moves the clock by `seconds`, which may be negative, and scans if a scan is due.
    fn wake(&mut self, seconds: i64) {
        self.now = Timestamp(self.now.0 + seconds * 1000);
        if let ScanTurn::Now(cause) = next_scan(self.line, self.missed, Some(&self.last), self.now) {
            self.scans.push(cause);
            self.last = LastScan::started(Some(&self.last), Some(self.line), self.now).finished(self.now);
        }
    }

    fn slots(&self) -> Vec<Timestamp> {
        let slot = |cause: &Cause| match cause {
            Cause::Slot(slot) | Cause::Missed(slot) => *slot,
            cause => panic!("{cause:?}"),
        };
        self.scans.iter().map(slot).collect()
    }
}

/// Lines with periods from a minute to a week.
fn lines() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..50_u32).prop_map(|step| format!("*/{step} * * * *")),
        (0..60_u32, 0..24_u32).prop_map(|(minute, hour)| format!("{minute} {hour} * * *")),
        (0..24_u32, 0..7_u32).prop_map(|(hour, weekday)| format!("0 {hour} * * {weekday}")),
    ]
}

fn zones() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()).collect::<Vec<_>>())
}

proptest! {
    /// The clock may jump ahead, or back over one slot and by up to two days.
    #[test]
    fn no_slot_is_run_twice(
        text in lines(), zone in zones(), once in any::<bool>(), start in 1_000_000_000_i64..2_000_000_000,
        steps in prop::collection::vec(prop_oneof![4 => 1_i64..7_200, 1 => 1_i64..1_000_000, 1 => -40_000_i64..0], 1..200),
    ) {
        let line = line(&text, zone);
        let missed = if once { MissedSlots::Once } else { MissedSlots::Skip };
        let mut days = Days::new(&line, missed, Timestamp(start * 1000));
        let mut highest = days.now;
        for step in steps {
            // Further back, the last scan is ignored.
            let then = Timestamp(days.now.0 + step * 1000);
            let is_far_back = then.0 < highest.0 - 47 * 3_600_000 || line.next(line.next(then)) <= highest;
            if step < 0 && is_far_back {
                continue;
            }
            days.wake(step);
            highest = highest.max(days.now);
        }
        let slots = days.slots();
        prop_assert_eq!(slots.iter().collect::<BTreeSet<_>>().len(), slots.len(), "{:?}", slots);
        prop_assert!(slots.is_sorted(), "{:?}", slots);
    }

    /// A daemon that wakes up every minute uses every slot in time.
    #[test]
    fn no_slot_is_forgotten(
        text in lines(), zone in zones(), once in any::<bool>(), start in 1_000_000_000_i64..2_000_000_000,
        steps in prop::collection::vec(1_i64..60, 1..400),
    ) {
        let line = line(&text, zone);
        let begin = Timestamp(start * 1000);
        let mut days = Days::new(&line, if once { MissedSlots::Once } else { MissedSlots::Skip }, begin);
        for step in steps {
            days.wake(step);
        }
        let expected = std::iter::successors(Some(line.next(begin)), |slot| Some(line.next(*slot)));
        prop_assert_eq!(days.slots(), expected.take_while(|slot| *slot <= days.now).collect::<Vec<_>>());
    }

    /// However many slots were missed, there is one scan at most.
    #[test]
    fn what_was_missed_costs_one_scan_at_most(
        text in lines(), zone in zones(), start in 1_000_000_000_i64..2_000_000_000, away in 200_i64..5_000_000,
    ) {
        let line = line(&text, zone);
        let begin = Timestamp(start * 1000);
        for missed in [MissedSlots::Once, MissedSlots::Skip] {
            let mut days = Days::new(&line, missed, begin);
            days.wake(away);
            days.wake(0);
            let is_due = line.next(begin) <= days.now;
            let in_time = line.next(begin.max(days.now.saturating_sub(IN_TIME))) <= days.now;
            let wanted = if missed == MissedSlots::Once { is_due } else { in_time };
            prop_assert_eq!(days.scans.len(), usize::from(wanted), "{:?}", days.scans);
        }
    }
}
