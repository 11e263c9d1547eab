//! Estimates when a backlog is finished: a pure calculation over batches of files, the throughput of their services,
//! windows and budgets. The model is a continuous flow: the open batches of a service share it evenly. Of a budget only
//! whole files are used: those that are left, the longest first. More files never finish sooner, except by some hours of
//! the last day if services of different speeds use up one budget.

use super::budget::{BudgetLimit, Period};
use super::names::{ServiceName, SourceName, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// Files of one source that would be sent to one service.
#[derive(Debug, Clone, PartialEq)]
pub struct FileBatch {
    pub source: SourceName,
    pub service: ServiceName,
    pub files: u64,
    /// The total length of the files.
    pub audio: Duration,
    /// The length of the longest file.
    pub longest: Duration,
    /// The cost of the files: milliseconds of billed audio.
    pub billed: u64,
}

/// How many transcriptions a service runs at once, and how long one takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throughput {
    /// Transcriptions at a time, at least 1.
    pub running: u32,
    /// The limit on requests of all kinds; `None` if there is none.
    pub requests_per_second: Option<f64>,
    /// How long a transcription takes, however short its audio is.
    pub base: Duration,
    /// Seconds of processing per second of audio, in addition to `base`.
    pub each_second: f64,
}

/// Requests per file: its upload, its create, and polls.
const REQUESTS: f64 = 4.0;

impl Throughput {
    /// Returns how long a transcription of this length takes.
    pub fn duration_of(&self, audio: Duration) -> Duration {
        let proportional = Duration::try_from_secs_f64(audio.as_secs_f64() * self.each_second.max(0.0));
        self.base.saturating_add(proportional.unwrap_or(Duration::MAX))
    }

    /// Seconds that a batch takes if the service does nothing else.
    fn seconds(&self, batch: &FileBatch) -> f64 {
        let files = batch.files as f64;
        let processing = files * self.base.as_secs_f64() + batch.audio.as_secs_f64() * self.each_second.max(0.0);
        let requesting =
            self.requests_per_second.filter(|rate| *rate > 0.0).map_or(0.0, |rate| files * REQUESTS / rate);
        (processing / f64::from(self.running.max(1))).max(requesting).max(1e-3)
    }
}

/// Whether a source may submit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitOpening {
    /// It may, until the given moment; `None`: without end.
    Open(Option<Timestamp>),
    /// It may not, until the given moment; `None`: until a person does something.
    Closed(Option<Timestamp>),
}

/// What limits the progress of a backlog.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Constraint {
    /// The throughput of its service.
    Service(ServiceName),
    /// A source that does not submit: its window, a pause, or a missing folder.
    Source(SourceName),
    /// A budget, named as in `jobs.toml`.
    Budget(String),
}

/// The estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// When the backlog is finished; `None`: not by itself, or not within the time that is simulated.
    pub at: Option<Timestamp>,
    /// What takes most of the time until then, or what stops it for ever; `None` if there is nothing to do.
    pub constraint: Option<Constraint>,
}

/// What the estimate is made from.
pub struct EtaInputs<'w> {
    /// The throughput of each service.
    pub paces: &'w BTreeMap<ServiceName, Throughput>,
    /// Whether a source may submit at a moment.
    pub submit_opening: &'w dyn Fn(&SourceName, Timestamp) -> SubmitOpening,
    /// Returns every limit as it is at a moment, always in the same order.
    pub limits: &'w dyn Fn(Timestamp) -> Vec<BudgetLimit>,
    /// What is used of each limit now, in the order of [`EtaInputs::limits`].
    pub used: &'w [u64],
}

/// The most steps that are simulated: a daily budget takes two for each day.
const STEPS: usize = 50_000;

/// Estimates when all batches are finished.
pub fn finish(now: Timestamp, batches: &[FileBatch], world: &EtaInputs<'_>) -> Finish {
    let mut simulation = Simulation::new(now, batches, world);
    for _ in 0..STEPS {
        if simulation.left.iter().all(|left| *left <= 0.0) {
            return simulation.finished(batches, world);
        }
        match simulation.step(batches, world) {
            Step::On => {}
            Step::Never(constraint) => return Finish { at: None, constraint: Some(constraint) },
        }
    }
    Finish { at: None, constraint: simulation.main_constraint() }
}

enum Step {
    On,
    Never(Constraint),
}

/// The state of the simulation.
struct Simulation {
    now: Timestamp,
    /// Seconds of each batch when it was whole, if its service did nothing else.
    seconds: Vec<f64>,
    /// What is left of them.
    left: Vec<f64>,
    /// The cost of a second of each batch.
    costs: Vec<f64>,
    /// What is used of each limit.
    used: Vec<f64>,
    limits: Vec<BudgetLimit>,
    /// How much of each limit can be used, since a file is sent as a whole.
    usable: Vec<f64>,
    /// Milliseconds that each constraint took.
    constrained_millis: BTreeMap<Constraint, i64>,
}

impl Simulation {
    fn new(now: Timestamp, batches: &[FileBatch], world: &EtaInputs<'_>) -> Self {
        let seconds = |batch: &FileBatch| world.paces.get(&batch.service).map_or(0.0, |pace| pace.seconds(batch));
        let left: Vec<f64> = batches.iter().map(|batch| if batch.files == 0 { 0.0 } else { seconds(batch) }).collect();
        let costs = batches.iter().zip(&left).map(|(batch, left)| batch.billed as f64 / left.max(1e-3)).collect();
        let used: Vec<f64> = world.used.iter().map(|used| *used as f64).collect();
        let limits = (world.limits)(now);
        let usable = limits.iter().zip(&used).map(|(limit, used)| usable(limit, *used, batches, &|_| 1.0)).collect();
        let seconds = left.clone();
        Self { now, seconds, left, costs, used, limits, usable, constrained_millis: BTreeMap::new() }
    }

    /// The last file has been submitted: the estimate ends when the longest file would be transcribed.
    fn finished(self, batches: &[FileBatch], world: &EtaInputs<'_>) -> Finish {
        let nonempty = batches.iter().filter(|batch| batch.files > 0);
        let last = nonempty.filter_map(|batch| Some(world.paces.get(&batch.service)?.duration_of(batch.longest))).max();
        let constraint = self.main_constraint();
        Finish { at: Some(self.now.saturating_add(last.unwrap_or_default())), constraint }
    }

    fn main_constraint(&self) -> Option<Constraint> {
        self.constrained_millis.iter().max_by_key(|(_, millis)| **millis).map(|(constraint, _)| constraint.clone())
    }

    /// Returns what stops a batch now, and until when.
    fn blocked_by(&self, batch: &FileBatch, world: &EtaInputs<'_>) -> Option<(Constraint, Option<Timestamp>)> {
        if let SubmitOpening::Closed(until) = (world.submit_opening)(&batch.source, self.now) {
            return Some((Constraint::Source(batch.source.clone()), until));
        }
        let spent = self.limits.iter().zip(self.used.iter().zip(&self.usable)).filter(|(limit, (used, usable))| {
            counts_against(batch, limit) && batch.billed > 0 && **used >= **usable - 0.5
        });
        let longest = spent.max_by_key(|(limit, _)| limit.resets_at().unwrap_or(Timestamp(i64::MAX)));
        longest.map(|(limit, _)| (Constraint::Budget(limit.setting()), limit.resets_at()))
    }

    fn step(&mut self, batches: &[FileBatch], world: &EtaInputs<'_>) -> Step {
        let open: Vec<usize> = (0..batches.len()).filter(|n| self.left[*n] > 0.0).collect();
        let blocked: Vec<_> = open.iter().map(|n| (*n, self.blocked_by(&batches[*n], world))).collect();
        let flowing: Vec<usize> = blocked.iter().filter(|(_, blocked)| blocked.is_none()).map(|(n, _)| *n).collect();
        let opens = blocked.iter().filter_map(|(_, blocked)| blocked.as_ref()?.1).min();
        let sharing = |service: &ServiceName| flowing.iter().filter(|n| batches[**n].service == *service).count();
        let shares: Vec<(usize, f64)> =
            flowing.iter().map(|n| (*n, 1.0 / sharing(&batches[*n].service) as f64)).collect();
        let constraint = match flowing.first() {
            Some(first) => Constraint::Service(batches[*first].service.clone()),
            None => {
                let until_of = |(_, blocked): &&(usize, Option<(Constraint, Option<Timestamp>)>)| {
                    blocked.as_ref().map(|blocked| blocked.1)
                };
                let soonest =
                    blocked.iter().min_by_key(|blocked| until_of(blocked).flatten().unwrap_or(Timestamp(i64::MAX)));
                match soonest.and_then(|(_, blocked)| blocked.clone()) {
                    Some((constraint, Some(_))) => constraint,
                    Some((constraint, None)) => return Step::Never(constraint),
                    None => return Step::On,
                }
            }
        };
        let until = self.next_change(batches, world, &shares, opens);
        let millis = until.0.saturating_sub(self.now.0);
        self.advance(batches, &shares, millis as f64 / 1e3);
        *self.constrained_millis.entry(constraint).or_default() += millis;
        self.reset_budgets(until, batches, world);
        Step::On
    }

    /// Returns the next moment at which something changes, at least a millisecond from now.
    fn next_change(
        &self,
        batches: &[FileBatch],
        world: &EtaInputs<'_>,
        shares: &[(usize, f64)],
        opens: Option<Timestamp>,
    ) -> Timestamp {
        let after = |seconds: f64| {
            let span = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
            self.now.saturating_add(span.saturating_add(Duration::from_micros(999)))
        };
        let ends = shares.iter().map(|(n, share)| after(self.left[*n] / share));
        let closes = shares.iter().filter_map(|(n, _)| match (world.submit_opening)(&batches[*n].source, self.now) {
            SubmitOpening::Open(until) => until,
            SubmitOpening::Closed(_) => None,
        });
        let spent = self.limits.iter().zip(self.used.iter().zip(&self.usable)).filter_map(|(limit, (used, usable))| {
            let rate = self.rate(batches, shares, limit);
            (rate > 0.0).then(|| after((usable - used) / rate))
        });
        let resets = self.limits.iter().filter_map(BudgetLimit::resets_at);
        let changes = ends.chain(closes).chain(spent).chain(resets).chain(opens);
        changes.filter(|at| *at > self.now).min().unwrap_or_else(|| self.now.saturating_add(Duration::from_millis(1)))
    }

    /// Returns how much of this limit is used per second.
    fn rate(&self, batches: &[FileBatch], shares: &[(usize, f64)], limit: &BudgetLimit) -> f64 {
        shares
            .iter()
            .filter(|(n, _)| counts_against(&batches[*n], limit))
            .map(|(n, share)| self.costs[*n] * share)
            .sum()
    }

    fn advance(&mut self, batches: &[FileBatch], shares: &[(usize, f64)], seconds: f64) {
        let rates: Vec<f64> = self.limits.iter().map(|limit| self.rate(batches, shares, limit)).collect();
        self.used.iter_mut().zip(rates).for_each(|(used, rate)| *used += rate * seconds);
        for (n, share) in shares {
            self.left[*n] -= share * seconds;
            if self.left[*n] < 1e-6 {
                self.left[*n] = 0.0;
            }
        }
    }

    /// Moves the clock, and sets limits whose period has ended to unused.
    fn reset_budgets(&mut self, now: Timestamp, batches: &[FileBatch], world: &EtaInputs<'_>) {
        self.now = now;
        if !self.limits.iter().any(|limit| limit.resets_at().is_some_and(|opens| opens <= now)) {
            return;
        }
        let limits = (world.limits)(now);
        let left = |n: usize| self.left[n] / self.seconds[n].max(1e-3);
        for (n, limit) in limits.iter().enumerate() {
            let lasts = matches!(limit.period, Period::Run | Period::Total) || self.limits[n].span == limit.span;
            if !lasts {
                self.used[n] = 0.0;
                self.usable[n] = usable(limit, 0.0, batches, &left);
            }
        }
        self.limits = limits;
    }
}

/// Whether files of the batch use up this limit.
fn counts_against(batch: &FileBatch, limit: &BudgetLimit) -> bool {
    limit.source.as_ref().is_none_or(|source| *source == batch.source)
}

/// Returns how much of a limit can be used if `used` is used already and only whole files follow, of what is left of each
/// batch that counts against it (`left`, from 0 to 1).
fn usable(limit: &BudgetLimit, used: f64, batches: &[FileBatch], left: &dyn Fn(usize) -> f64) -> f64 {
    let allowed = limit.allowed as f64;
    let files = billed_files(limit, batches, left);
    used + fitting(allowed, (allowed - used).max(0.0), &files)
        .iter()
        .zip(&files)
        .map(|(fit, (cost, _))| fit * cost)
        .sum::<f64>()
}

/// Returns into how many periods a limit divides the files that count against it; `None` if nothing fits into one.
pub fn periods(limit: &BudgetLimit, batches: &[FileBatch]) -> Option<u64> {
    let allowed = limit.allowed as f64;
    let mut files = billed_files(limit, batches, &|_| 1.0);
    let mut periods = 0.0;
    while files.iter().any(|(_, files)| *files > 1e-6) {
        let fits = fitting(allowed, allowed, &files);
        let rounds = files.iter().zip(&fits).filter(|(_, fit)| **fit > 0.0).map(|((_, files), fit)| files / fit);
        // Periods that are alike count together.
        let alike = rounds.fold(f64::INFINITY, f64::min).max(1.0).floor();
        if !alike.is_finite() {
            return None;
        }
        files.iter_mut().zip(fits).for_each(|((_, files), fit)| *files -= fit * alike);
        periods += alike;
    }
    Some(periods as u64)
}

/// Returns the mean cost of a file and the number of files left of each batch that costs something, by falling cost.
fn billed_files(limit: &BudgetLimit, batches: &[FileBatch], left: &dyn Fn(usize) -> f64) -> Vec<(f64, f64)> {
    let counts = |batch: &FileBatch| batch.files > 0 && batch.billed > 0 && counts_against(batch, limit);
    let all = batches.iter().enumerate().filter(|(_, batch)| counts(batch));
    let of = |(n, batch): (usize, &FileBatch)| (batch.billed as f64 / batch.files as f64, batch.files as f64 * left(n));
    let mut files: Vec<(f64, f64)> = all.map(of).collect();
    files.sort_by(|one, other| other.0.total_cmp(&one.0));
    files
}

/// Returns how many files of each kind fit into `room`, those that cost most first.
fn fitting(allowed: f64, mut room: f64, files: &[(f64, f64)]) -> Vec<f64> {
    let fits = |(cost, files): &(f64, f64)| {
        // Averages are not exact: a file that exceeds the limit by a millisecond fits. A file over the limit is never
        // sent: such an average says nothing about the files that are.
        let most = if *cost > allowed + 1.0 { room / cost } else { ((room + 1.0) / cost).floor() };
        let taken = most.min((files - 1e-6).ceil()).max(0.0);
        room = (room - taken * cost).max(0.0);
        taken
    };
    files.iter().map(fits).collect()
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

    /// A window from 22:00 to 06:00 UTC.
    fn nights(_: &SourceName, at: Timestamp) -> SubmitOpening {
        let hour = at.0.rem_euclid(DAY) / HOUR as i64;
        let day = at.0.div_euclid(DAY) * DAY;
        match hour {
            22.. => SubmitOpening::Open(Some(Timestamp(day + DAY + 6 * HOUR as i64))),
            0..6 => SubmitOpening::Open(Some(Timestamp(day + 6 * HOUR as i64))),
            _ => SubmitOpening::Closed(Some(Timestamp(day + 22 * HOUR as i64))),
        }
    }

    #[test]
    fn what_is_open_shares_its_service_and_the_longest_ends_last() {
        let batches = [pile("x", "a", 100, 60), pile("y", "a", 100, 60), pile("z", "b", 10, 60)];
        let world = EtaInputs { paces: &paces(), submit_opening: &always, limits: &none, used: &[] };
        let through = finish(Timestamp(0), &batches, &world);
        // 200 × 12 s, two at a time, and 12 s for the last one.
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
    fn a_recording_is_not_divided_between_two_days() {
        let limits = day(None, 2 * HOUR);
        let world = EtaInputs { paces: &paces(), submit_opening: &always, limits: &limits, used: &[0] };
        // Of 90 minutes each, a day takes one.
        let through = finish(Timestamp(0), &[pile("x", "a", 4, 5_400)], &world);
        assert_eq!(through.at.unwrap().0.div_euclid(DAY), 3);
        // An hour is left of today: that is too little for the first one.
        let world = EtaInputs { used: &[HOUR], ..world };
        let through = finish(Timestamp(0), &[pile("x", "a", 4, 5_400)], &world);
        assert_eq!(through.at.unwrap().0.div_euclid(DAY), 4);
        // Recordings of 20 minutes fill what the long ones leave: one a day.
        let mixed = [pile("x", "a", 2, 5_400), pile("x", "b", 3, 1_200)];
        let world = EtaInputs { used: &[0], ..world };
        assert_eq!(finish(Timestamp(0), &mixed, &world).at.unwrap().0.div_euclid(DAY), 2);
        // One of a second fills them once.
        let one_short = [pile("x", "a", 40, 5_400), pile("x", "a", 1, 1)];
        assert_eq!(finish(Timestamp(0), &one_short, &world).at.unwrap().0.div_euclid(DAY), 39);
    }

    #[test]
    fn a_budget_divides_files_into_periods() {
        let limit = |allowed| BudgetLimit { source: None, period: Period::Run, span: Span::EVER, allowed };
        let mixed = [pile("x", "a", 1_000_001, 5_400), pile("y", "a", 2, 1_800), pile("z", "a", 1, 0)];
        assert_eq!(periods(&limit(2 * HOUR), &mixed), Some(1_000_001));
        assert_eq!(periods(&limit(3 * HOUR), &mixed), Some(500_001));
        assert_eq!(periods(&limit(0), &mixed), None);
        assert_eq!(periods(&limit(HOUR), &[]), Some(0));
        // Files that are too long on average: those that are not are half as many hours as the budget allows.
        assert_eq!(periods(&limit(HOUR), &[pile("x", "a", 4, 7_200)]), Some(8));
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
        let paused = |_: &SourceName, _| SubmitOpening::Closed(None);
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
                && let SubmitOpening::Closed(Some(opens)) = nights(&SourceName::new("x"), Timestamp(begin))
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
