//! When a backlog is through: a pure reckoning over piles of files, what their services do at once, windows,
//! and budgets. Work is taken to flow: what is open at a service shares it evenly. More files are never through
//! sooner, but for the hours of the last day where services of several speeds use up one budget.

use super::budget::{BudgetLimit, Period};
use super::names::{ServiceName, SourceName, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// Files of one source that would be sent to one service.
#[derive(Debug, Clone, PartialEq)]
pub struct FileBatch {
    /// Where they come from.
    pub source: SourceName,
    pub service: ServiceName,
    pub files: u64,
    /// How long all of them are.
    pub audio: Duration,
    /// How long the longest of them is.
    pub longest: Duration,
    /// What they cost: milliseconds of billed audio.
    pub billed: u64,
}

/// What a service does at once, and how long one takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throughput {
    /// Transcriptions at a time, 1 or more.
    pub running: u32,
    /// Requests of all kinds; `None` where nobody counts them.
    pub requests_per_second: Option<f64>,
    /// What one takes however short it is.
    pub base: Duration,
    /// What a second of audio takes beside it, in seconds.
    pub each_second: f64,
}

/// Requests that one file costs: its upload, its create, and looks at it.
const REQUESTS: f64 = 4.0;

impl Throughput {
    /// How long one of this length takes.
    pub fn duration_of(&self, audio: Duration) -> Duration {
        let more = Duration::try_from_secs_f64(audio.as_secs_f64() * self.each_second.max(0.0));
        self.base.saturating_add(more.unwrap_or(Duration::MAX))
    }

    /// Seconds that a pile takes where nothing else is done.
    fn seconds(&self, pile: &FileBatch) -> f64 {
        let files = pile.files as f64;
        let each = files * self.base.as_secs_f64() + pile.audio.as_secs_f64() * self.each_second.max(0.0);
        let asking = self.requests_per_second.filter(|rate| *rate > 0.0).map_or(0.0, |rate| files * REQUESTS / rate);
        (each / f64::from(self.running.max(1))).max(asking).max(1e-3)
    }
}

/// Whether something may be submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitOpening {
    /// It may, until then; `None`: for ever.
    Open(Option<Timestamp>),
    /// It may not, until then; `None`: before a person does something.
    Shut(Option<Timestamp>),
}

/// What keeps a backlog.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Constraint {
    /// What its service does at once.
    Service(ServiceName),
    /// The hours in which a source submits, a pause, or a folder that is away.
    Source(SourceName),
    /// A budget, as in `jobs.toml`.
    Budget(String),
}

/// When it is through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The moment; `None`: never by itself, or not within the years that are looked ahead.
    pub at: Option<Timestamp>,
    /// What takes most of the time until then, or what keeps it for ever; `None` of nothing to do.
    pub constraint: Option<Constraint>,
}

/// What a reckoning asks.
pub struct EtaInputs<'w> {
    /// Of each service.
    pub paces: &'w BTreeMap<ServiceName, Throughput>,
    /// Whether a source may submit at a moment.
    pub submit_opening: &'w dyn Fn(&SourceName, Timestamp) -> SubmitOpening,
    /// Every limit as it is at a moment.
    pub limits: &'w dyn Fn(Timestamp) -> Vec<BudgetLimit>,
    /// What of these limits is used now; in the order of [`EtaInputs::limits`] now.
    pub used: &'w [u64],
}

/// Steps that are looked ahead: a budget of a day takes two for each day.
const STEPS: usize = 50_000;

/// Reckons when all of these are through.
pub fn finish(now: Timestamp, batches: &[FileBatch], world: &EtaInputs<'_>) -> Finish {
    let mut flow = Flow::new(now, batches, world);
    for _ in 0..STEPS {
        if flow.left.iter().all(|left| *left <= 0.0) {
            return flow.through(batches, world);
        }
        match flow.step(batches, world) {
            Step::On => {}
            Step::Never(constraint) => return Finish { at: None, constraint: Some(constraint) },
        }
    }
    Finish { at: None, constraint: flow.heaviest() }
}

enum Step {
    On,
    Never(Constraint),
}

/// How far it has come.
struct Flow {
    now: Timestamp,
    /// Seconds of each pile that are left, where nothing else is done at its service.
    left: Vec<f64>,
    /// What a second of a pile costs.
    costs: Vec<f64>,
    /// What is used of each limit.
    used: Vec<f64>,
    limits: Vec<BudgetLimit>,
    /// Milliseconds that went by, by what kept them.
    brakes: BTreeMap<Constraint, i64>,
}

impl Flow {
    fn new(now: Timestamp, batches: &[FileBatch], world: &EtaInputs<'_>) -> Self {
        let seconds = |pile: &FileBatch| world.paces.get(&pile.service).map_or(0.0, |pace| pace.seconds(pile));
        let left: Vec<f64> = batches.iter().map(|pile| if pile.files == 0 { 0.0 } else { seconds(pile) }).collect();
        let costs = batches.iter().zip(&left).map(|(pile, left)| pile.billed as f64 / left.max(1e-3)).collect();
        let used = world.used.iter().map(|used| *used as f64).collect();
        Self { now, left, costs, used, limits: (world.limits)(now), brakes: BTreeMap::new() }
    }

    /// The last one is submitted: it is done when the longest would be.
    fn through(self, batches: &[FileBatch], world: &EtaInputs<'_>) -> Finish {
        let ones = batches.iter().filter(|pile| pile.files > 0);
        let last = ones.filter_map(|pile| Some(world.paces.get(&pile.service)?.duration_of(pile.longest))).max();
        let constraint = self.heaviest();
        Finish { at: Some(self.now.saturating_add(last.unwrap_or_default())), constraint }
    }

    fn heaviest(&self) -> Option<Constraint> {
        self.brakes.iter().max_by_key(|(_, millis)| **millis).map(|(constraint, _)| constraint.clone())
    }

    /// What keeps a pile now, and until when.
    fn kept(&self, pile: &FileBatch, world: &EtaInputs<'_>) -> Option<(Constraint, Option<Timestamp>)> {
        if let SubmitOpening::Shut(until) = (world.submit_opening)(&pile.source, self.now) {
            return Some((Constraint::Source(pile.source.clone()), until));
        }
        let spent = self.limits.iter().zip(&self.used).filter(|(limit, used)| {
            let is_its = limit.source.as_ref().is_none_or(|source| *source == pile.source);
            is_its && pile.billed > 0 && **used >= limit.allowed as f64 - 0.5
        });
        let longest = spent.max_by_key(|(limit, _)| limit.resets_at().unwrap_or(Timestamp(i64::MAX)));
        longest.map(|(limit, _)| (Constraint::Budget(limit.setting()), limit.resets_at()))
    }

    fn step(&mut self, batches: &[FileBatch], world: &EtaInputs<'_>) -> Step {
        let open: Vec<usize> = (0..batches.len()).filter(|n| self.left[*n] > 0.0).collect();
        let kept: Vec<_> = open.iter().map(|n| (*n, self.kept(&batches[*n], world))).collect();
        let moving: Vec<usize> = kept.iter().filter(|(_, kept)| kept.is_none()).map(|(n, _)| *n).collect();
        let opens = kept.iter().filter_map(|(_, kept)| kept.as_ref()?.1).min();
        let at_work = |service: &ServiceName| moving.iter().filter(|n| batches[**n].service == *service).count();
        let shares: Vec<(usize, f64)> =
            moving.iter().map(|n| (*n, 1.0 / at_work(&batches[*n].service) as f64)).collect();
        let constraint = match moving.first() {
            Some(first) => Constraint::Service(batches[*first].service.clone()),
            None => {
                let keeps =
                    |(_, kept): &&(usize, Option<(Constraint, Option<Timestamp>)>)| kept.as_ref().map(|kept| kept.1);
                let soonest = kept.iter().min_by_key(|kept| keeps(kept).flatten().unwrap_or(Timestamp(i64::MAX)));
                match soonest.and_then(|(_, kept)| kept.clone()) {
                    Some((constraint, Some(_))) => constraint,
                    Some((constraint, None)) => return Step::Never(constraint),
                    None => return Step::On,
                }
            }
        };
        let until = self.next(batches, world, &shares, opens);
        let millis = until.0.saturating_sub(self.now.0);
        self.flow(batches, &shares, millis as f64 / 1e3);
        *self.brakes.entry(constraint).or_default() += millis;
        self.come_to(until, world);
        Step::On
    }

    /// The next moment at which something changes, at least a millisecond on.
    fn next(
        &self,
        batches: &[FileBatch],
        world: &EtaInputs<'_>,
        shares: &[(usize, f64)],
        opens: Option<Timestamp>,
    ) -> Timestamp {
        let within = |seconds: f64| {
            let span = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
            self.now.saturating_add(span.saturating_add(Duration::from_micros(999)))
        };
        let ends = shares.iter().map(|(n, share)| within(self.left[*n] / share));
        let shuts = shares.iter().filter_map(|(n, _)| match (world.submit_opening)(&batches[*n].source, self.now) {
            SubmitOpening::Open(until) => until,
            SubmitOpening::Shut(_) => None,
        });
        let spent = self.limits.iter().zip(&self.used).filter_map(|(limit, used)| {
            let rate = self.rate(batches, shares, limit);
            (rate > 0.0).then(|| within((limit.allowed as f64 - used) / rate))
        });
        let anew = self.limits.iter().filter_map(BudgetLimit::resets_at);
        let all = ends.chain(shuts).chain(spent).chain(anew).chain(opens);
        all.filter(|at| *at > self.now).min().unwrap_or_else(|| self.now.saturating_add(Duration::from_millis(1)))
    }

    /// What a second costs of this limit.
    fn rate(&self, batches: &[FileBatch], shares: &[(usize, f64)], limit: &BudgetLimit) -> f64 {
        let counts = |n: usize| limit.source.as_ref().is_none_or(|source| *source == batches[n].source);
        shares.iter().filter(|(n, _)| counts(*n)).map(|(n, share)| self.costs[*n] * share).sum()
    }

    fn flow(&mut self, batches: &[FileBatch], shares: &[(usize, f64)], seconds: f64) {
        let rates: Vec<f64> = self.limits.iter().map(|limit| self.rate(batches, shares, limit)).collect();
        self.used.iter_mut().zip(rates).for_each(|(used, rate)| *used += rate * seconds);
        for (n, share) in shares {
            self.left[*n] -= share * seconds;
            if self.left[*n] < 1e-6 {
                self.left[*n] = 0.0;
            }
        }
    }

    /// What begins anew at a moment has nothing used of it.
    fn come_to(&mut self, now: Timestamp, world: &EtaInputs<'_>) {
        self.now = now;
        if !self.limits.iter().any(|limit| limit.resets_at().is_some_and(|opens| opens <= now)) {
            return;
        }
        let limits = (world.limits)(now);
        for (n, limit) in limits.iter().enumerate() {
            let lasts = matches!(limit.period, Period::Run | Period::Total) || self.limits[n].span == limit.span;
            if !lasts {
                self.used[n] = 0.0;
            }
        }
        self.limits = limits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::budget::Span;
    use proptest::prelude::*;

    const DAY: i64 = 86_400_000;
    const HOUR: u64 = 3_600_000;

    fn pile(source: &str, service: &str, files: u64, seconds: u64) -> FileBatch {
        let audio = Duration::from_secs(files * seconds);
        let longest = Duration::from_secs(if files == 0 { 0 } else { seconds });
        let (source, service) = (SourceName::new(source), ServiceName::new(service));
        FileBatch { source, service, files, audio, longest, billed: files * seconds * 1000 }
    }

    fn pace(running: u32) -> Throughput {
        Throughput { running, requests_per_second: None, base: Duration::from_secs(6), each_second: 0.1 }
    }

    fn paces() -> BTreeMap<ServiceName, Throughput> {
        [("a", pace(2)), ("b", pace(1))].map(|(name, pace)| (ServiceName::new(name), pace)).into()
    }

    fn day(source: Option<&str>, allowed: u64) -> impl Fn(Timestamp) -> Vec<BudgetLimit> {
        let source = source.map(SourceName::new);
        move |at| {
            let from = at.0.div_euclid(DAY) * DAY;
            let span = Span { from: Timestamp(from), until: Timestamp(from + DAY) };
            vec![BudgetLimit { source: source.clone(), period: Period::Day, span, allowed }]
        }
    }

    fn always(_: &SourceName, _: Timestamp) -> SubmitOpening {
        SubmitOpening::Open(None)
    }

    fn none(_: Timestamp) -> Vec<BudgetLimit> {
        Vec::new()
    }

    /// From 22 to 6, in UTC.
    fn nights(_: &SourceName, at: Timestamp) -> SubmitOpening {
        let hour = at.0.rem_euclid(DAY) / HOUR as i64;
        let day = at.0.div_euclid(DAY) * DAY;
        match hour {
            22.. => SubmitOpening::Open(Some(Timestamp(day + DAY + 6 * HOUR as i64))),
            0..6 => SubmitOpening::Open(Some(Timestamp(day + 6 * HOUR as i64))),
            _ => SubmitOpening::Shut(Some(Timestamp(day + 22 * HOUR as i64))),
        }
    }

    #[test]
    fn what_is_open_shares_its_service_and_the_longest_ends_last() {
        let batches = [pile("x", "a", 100, 60), pile("y", "a", 100, 60), pile("z", "b", 10, 60)];
        let world = EtaInputs { paces: &paces(), submit_opening: &always, limits: &none, used: &[] };
        let through = finish(Timestamp(0), &batches, &world);
        // 200 × 12 s, two at a time, and the last one's own 12 s.
        assert_eq!(through.at, Some(Timestamp(1_212_000)));
        assert_eq!(through.constraint, Some(Constraint::Service(ServiceName::new("a"))));
        assert_eq!(finish(Timestamp(5), &[], &world), Finish { at: Some(Timestamp(5)), constraint: None });
    }

    #[test]
    fn a_day_has_its_budget_and_no_more() {
        let batches = [pile("x", "a", 100, 3600)];
        let limits = day(None, 40 * HOUR);
        let world = EtaInputs { paces: &paces(), submit_opening: &always, limits: &limits, used: &[30 * HOUR] };
        let through = finish(Timestamp(0), &batches, &world);
        // 10 h today, 40 h tomorrow, 40 h on the day after, 10 h on the last.
        assert_eq!(through.at.unwrap().0.div_euclid(DAY), 3);
        assert_eq!(through.constraint, Some(Constraint::Budget("`budget.day`".to_owned())));
        let nothing = day(Some("x"), 0);
        let world = EtaInputs { limits: &nothing, used: &[0], ..world };
        assert_eq!(finish(Timestamp(0), &batches, &world).at, None);
    }

    #[test]
    fn a_total_that_is_spent_is_never_over() {
        let batches = [pile("x", "a", 100, 3600)];
        let total = |_| vec![BudgetLimit { source: None, period: Period::Total, span: Span::EVER, allowed: HOUR }];
        let world = EtaInputs { paces: &paces(), submit_opening: &always, limits: &total, used: &[0] };
        let through = finish(Timestamp(0), &batches, &world);
        assert_eq!(through, Finish { at: None, constraint: Some(Constraint::Budget("`budget.total`".to_owned())) });
    }

    #[test]
    fn a_window_is_waited_for() {
        let noon = Timestamp(12 * HOUR as i64);
        let world = EtaInputs { paces: &paces(), submit_opening: &nights, limits: &none, used: &[] };
        let through = finish(noon, &[pile("x", "a", 1, 60)], &world);
        assert_eq!(through.at, Some(Timestamp(22 * HOUR as i64 + 6_000 + 12_000)));
        assert_eq!(through.constraint, Some(Constraint::Source(SourceName::new("x"))));
        let paused = |_: &SourceName, _| SubmitOpening::Shut(None);
        let world = EtaInputs { submit_opening: &paused, ..world };
        assert_eq!(finish(noon, &[pile("x", "a", 1, 60)], &world).at, None);
        assert_eq!(finish(noon, &[pile("x", "a", 0, 60)], &world).at, Some(noon));
    }

    fn some_piles() -> impl Strategy<Value = Vec<FileBatch>> {
        let one = (0..3_usize, 0..2_usize, 0..400_u64, 1..4_000_u64);
        let pile = one.prop_map(|(source, service, files, seconds)| {
            pile(["x", "y", "z"][source], ["a", "b"][service], files, seconds)
        });
        proptest::collection::vec(pile, 1..4)
    }

    proptest! {
        #[test]
        fn more_files_are_never_done_sooner(
            batches in some_piles(), which in 0..4_usize, more in 1..100_u64, begin in 0..2 * DAY,
            allowed in proptest::option::of(4..100_u64), is_night in any::<bool>(),
        ) {
            let spent = day(None, allowed.unwrap_or(1) * HOUR);
            let limits: &dyn Fn(Timestamp) -> Vec<BudgetLimit> = if allowed.is_some() { &spent } else { &none };
            let opening: &dyn Fn(&SourceName, Timestamp) -> SubmitOpening = if is_night { &nights } else { &always };
            let used = [0_u64];
            let world = EtaInputs { paces: &paces(), submit_opening: opening, limits, used: &used[..usize::from(allowed.is_some())] };
            let before = finish(Timestamp(begin), &batches, &world).at.unwrap();
            let mut batches = batches;
            let which = which % batches.len();
            let one = batches[which].clone();
            let (source, service) = (one.source.as_str().to_owned(), one.service.as_str().to_owned());
            let added = pile(&source, &service, more, one.longest.as_secs().max(1));
            batches[which] = FileBatch {
                files: one.files + added.files, audio: one.audio + added.audio, billed: one.billed + added.billed,
                longest: one.longest.max(added.longest), ..one
            };
            let after = finish(Timestamp(begin), &batches, &world).at.unwrap();
            // Milliseconds are rounded up at every step.
            let slack = if allowed.is_some() { DAY } else { 2_000 };
            prop_assert!(after.0 + slack >= before.0, "{before:?} {after:?}");
        }

        #[test]
        fn nothing_is_done_before_now_or_before_a_window_opens(batches in some_piles(), begin in 0..2 * DAY) {
            let world = EtaInputs { paces: &paces(), submit_opening: &nights, limits: &none, used: &[] };
            let at = finish(Timestamp(begin), &batches, &world).at.unwrap();
            prop_assert!(at.0 >= begin);
            if batches.iter().any(|pile| pile.files > 0)
                && let SubmitOpening::Shut(Some(opens)) = nights(&SourceName::new("x"), Timestamp(begin))
            {
                prop_assert!(at > opens, "{at:?} {opens:?}");
            }
        }

        #[test]
        fn no_day_does_more_than_its_budget(batches in some_piles(), allowed in 1..40_u64, used in 0..60_u64) {
            let limits = day(None, allowed * HOUR);
            let world = EtaInputs { paces: &paces(), submit_opening: &always, limits: &limits, used: &[used * HOUR] };
            let at = finish(Timestamp(0), &batches, &world).at.unwrap();
            let billed: u64 = batches.iter().map(|pile| pile.billed).sum();
            let today = (allowed * HOUR).saturating_sub(used * HOUR);
            let days = billed.saturating_sub(today).saturating_sub(1_000).div_ceil(allowed * HOUR);
            prop_assert!(at.0 >= i64::try_from(days).unwrap() * DAY, "{at:?} {days}");
        }
    }
}
