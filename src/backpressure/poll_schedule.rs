//! When it is asked for what is on its way at a service, of which each has its own: when such audio usually is done, then ever more
//! rarely; and more rarely still while callbacks are seen to come. Only while the process lives: what is
//! lost with it costs a few questions more.

use super::backoff::Growth;
use crate::domain::names::{JobId, Timestamp};
use crate::domain::stage::AudioAmount;
use crate::domain::turnaround::{Load, Turnaround, UsualDuration};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// However late such audio usually is done, the first look comes after so many times `poll.max`: a service
/// may have become faster.
const FIRST_LOOK_MAXIMA: u32 = 10;

/// Where callbacks come, looks are a net below them: so many times rarer, from `poll.max` on.
const RARER: u32 = 4;

/// No look of the net comes later than so many times `poll.max`.
const NET_MAXIMA: u32 = 10;

/// A look that a hint brings comes at once; one more for the same job after so long, the next after twice
/// that. An address that leaked cannot be used to keep the service busy.
const BETWEEN_HINTED: Duration = Duration::from_secs(1);

/// And so on, up to this.
const BETWEEN_HINTED_MOST: Duration = Duration::from_secs(64);

/// With so many on their way looks are made to come together.
const MANY: usize = 40;

/// Jobs that are remembered at most. Past that all are forgotten: they are asked for as if nothing was learned.
const MOST: usize = 50_000;

/// Ends that were seen before their callback came, remembered in case that it still comes.
const MOST_MISSED: usize = 256;

/// How often a running transcription is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    /// The first wait; more than zero, at most `max`.
    pub min: Duration,
    /// No wait is longer.
    pub max: Duration,
    /// After so long it is a fault and an alarm.
    pub give_up: Duration,
}

/// What is known of everything that is on its way.
#[derive(Debug, Default)]
pub struct PollSchedule(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    turnaround: Turnaround,
    callbacks: Callbacks,
    flights: HashMap<JobId, Flight>,
    chance: fastrand::Rng,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    load: Load,
    hinted: u32,
    last_hint: Timestamp,
}

/// Whether callbacks are seen to come.
#[derive(Debug, Default)]
struct Callbacks {
    score: u32,
    missed: VecDeque<JobId>,
}

impl Callbacks {
    const WORK: u32 = 3;
    const BEST: u32 = 6;

    fn work(&self) -> bool {
        self.score >= Self::WORK
    }

    fn came(&mut self) {
        self.score = (self.score + 1).min(Self::BEST);
    }

    /// An end was seen by asking. Two in a row, and it is asked as usual again.
    fn did_not_come(&mut self, job: JobId) {
        self.score = self.score.saturating_sub(2);
        if self.missed.len() == MOST_MISSED {
            self.missed.pop_front();
        }
        self.missed.push_back(job);
    }

    /// It came after all: the question was only quicker.
    fn came_late(&mut self, job: JobId) {
        if let Some(at) = self.missed.iter().position(|missed| *missed == job) {
            self.missed.remove(at);
            self.score = (self.score + 2).min(Self::BEST);
        }
    }
}

impl PollSchedule {
    /// With this seed for its jitter.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(Known { chance: fastrand::Rng::with_seed(seed), ..Known::default() }))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job's audio was accepted by a service that had so many others of ours: how long until the first look.
    pub fn accepted(&self, job: JobId, audio: AudioAmount, beside: u64, poll: &Poll) -> Duration {
        let load =
            Load { audio: Duration::from_millis(audio.millis), concurrent: u32::try_from(beside).unwrap_or(u32::MAX) };
        let mut known = self.known();
        if known.flights.len() >= MOST {
            known.flights.clear();
        }
        known.flights.insert(job, Flight { load, hinted: 0, last_hint: Timestamp(i64::MIN) });
        known.wait(job, poll, Duration::ZERO)
    }

    /// It has not ended at this age: how long until the next look.
    pub fn pending(&self, job: JobId, poll: &Poll, age: Duration) -> Duration {
        self.known().wait(job, poll, age)
    }

    /// The moment of a look that is `wait` away. Where many are on their way it comes a little later, so that
    /// looks come together and one page of the list answers them.
    pub fn moment(&self, now: Timestamp, wait: Duration) -> Timestamp {
        let at = now.saturating_add(wait);
        if self.known().flights.len() < MANY { at } else { gathered(at, wait) }
    }

    /// It has ended well, after `took` by the service's own dates or else at this `age`. `calls`: whether it
    /// was asked to call us.
    pub fn ended(&self, job: JobId, audio: AudioAmount, took: Duration, calls: bool) {
        let mut known = self.known();
        let flight = known.flights.remove(&job);
        let beside = u32::try_from(known.flights.len()).unwrap_or(u32::MAX);
        let known_load = flight.map(|flight| flight.load).filter(|load| !load.audio.is_zero());
        let load = known_load.unwrap_or(Load { audio: Duration::from_millis(audio.millis), concurrent: beside });
        known.turnaround.record(load, took);
        match flight {
            Some(flight) if calls && flight.hinted > 0 => known.callbacks.came(),
            Some(_) if calls => known.callbacks.did_not_come(job),
            _ => {}
        }
    }

    /// How long the service takes, as far as that was learned.
    pub fn usual(&self) -> Option<UsualDuration> {
        self.known().turnaround.usual()
    }

    /// It is not on its way any more, however it ended.
    pub fn forget(&self, job: JobId) {
        self.known().flights.remove(&job);
    }

    /// Somebody says that this job's transcription has ended: when to look.
    pub fn hinted(&self, job: JobId, now: Timestamp) -> Timestamp {
        let mut known = self.known();
        let unknown =
            Flight { load: Load { audio: Duration::ZERO, concurrent: 0 }, hinted: 0, last_hint: Timestamp(i64::MIN) };
        let flight = known.flights.entry(job).or_insert(unknown);
        if flight.last_hint > now {
            return flight.last_hint; // the look that is to come is this hint's too
        }
        let growth = Growth::doubling(BETWEEN_HINTED, BETWEEN_HINTED_MOST);
        let spacing = growth.wait(flight.hinted.saturating_sub(1));
        let at = if flight.hinted == 0 { now } else { now.max(flight.last_hint.saturating_add(spacing)) };
        flight.hinted += 1;
        flight.last_hint = at;
        at
    }

    /// A callback for something that has ended, or was never on its way.
    pub fn hinted_late(&self, job: JobId) {
        self.known().callbacks.came_late(job);
    }

    /// Whether callbacks are seen to come.
    pub fn callbacks_work(&self) -> bool {
        self.known().callbacks.work()
    }
}

impl Known {
    fn wait(&mut self, job: JobId, poll: &Poll, age: Duration) -> Duration {
        let jitter = self.chance.f64();
        // Without its length nothing is known of it.
        let flight = self.flights.get(&job).filter(|flight| !flight.load.audio.is_zero());
        let looks = flight.map(|flight| self.turnaround.poll_ages(flight.load)).unwrap_or_default();
        wait(poll, age, &looks, self.callbacks.work(), jitter)
    }
}

/// How long until the next look at something of this age. `looks`: the ages at which such things usually
/// end, in order; `called`: it is believed that somebody will call. `jitter` is from 0 to 1. Pure.
pub fn wait(poll: &Poll, age: Duration, looks: &[Duration], called: bool, jitter: f64) -> Duration {
    if age >= poll.give_up {
        return jittered(poll.max * 10, jitter);
    }
    let soonest = age + poll.min;
    let usual = match looks.iter().find(|look| **look >= soonest) {
        Some(look) if age.is_zero() => look.min(&(poll.max * FIRST_LOOK_MAXIMA)).saturating_sub(age),
        Some(look) => look.saturating_sub(age).min(poll.max),
        // Where something was learned it should have ended by now; where nothing was, who knows.
        None => jittered(age / if looks.is_empty() { 4 } else { 10 }, jitter).clamp(poll.min, poll.max),
    };
    let usual = usual.max(poll.min);
    if called { (usual * RARER).max(poll.max).min((poll.max * NET_MAXIMA).max(usual)) } else { usual }
}

/// The next of the moments at which such looks come together; at most half of the wait later.
fn gathered(at: Timestamp, wait: Duration) -> Timestamp {
    let half = i64::try_from(wait.as_millis() / 2).unwrap_or(i64::MAX).max(1);
    let grid = 1_i64 << half.ilog2();
    let rest = at.0.rem_euclid(grid);
    if rest == 0 { at } else { Timestamp(at.0.saturating_add(grid - rest)) }
}

/// A tenth more or less, so that what came together is not asked for together for ever.
fn jittered(span: Duration, jitter: f64) -> Duration {
    span.mul_f64(0.9 + 0.2 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLL: Poll =
        Poll { min: Duration::from_secs(2), max: Duration::from_secs(60), give_up: Duration::from_secs(6 * 3600) };

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const MINUTE: AudioAmount = AudioAmount { millis: 60_000, channels: 1, billed: None };

    #[test]
    fn the_first_look_comes_when_such_audio_usually_is_done_and_before_that_at_once() {
        let asking = PollSchedule::new(1);
        assert_eq!(asking.accepted(JobId(0), MINUTE, 0, &POLL), POLL.min);
        for job in 0..20 {
            asking.accepted(JobId(job), MINUTE, 0, &POLL);
            asking.ended(JobId(job), MINUTE, secs(30), false);
        }
        let first = asking.accepted(JobId(99), MINUTE, 0, &POLL);
        assert!((secs(29)..=secs(31)).contains(&first), "{first:?}");
        let next = asking.pending(JobId(99), &POLL, secs(31));
        assert!((secs(2)..=secs(4)).contains(&next), "a tenth of its age: {next:?}");
    }

    #[test]
    fn callbacks_that_come_make_looks_rarer_and_those_that_stay_away_undo_that() {
        let asking = PollSchedule::new(1);
        let end = |job: u64, called: bool| {
            asking.accepted(JobId(job), MINUTE, 0, &POLL);
            if called {
                asking.hinted(JobId(job), Timestamp(0));
            }
            asking.ended(JobId(job), MINUTE, secs(30), true);
        };
        (0..6).for_each(|job| end(job, true));
        assert!(asking.callbacks_work());
        let net = asking.accepted(JobId(99), MINUTE, 0, &POLL);
        assert!(net >= secs(100), "{net:?}");
        end(10, false);
        asking.hinted_late(JobId(10));
        assert!(asking.callbacks_work(), "it was only slower than the question");
        (11..14).for_each(|job| end(job, false));
        assert!(!asking.callbacks_work());
    }

    #[test]
    fn hints_for_one_job_bring_ever_fewer_looks() {
        let asking = PollSchedule::new(1);
        let mut looks = std::collections::BTreeSet::new();
        for millis in 0..600_000 {
            let at = asking.hinted(JobId(1), Timestamp(millis));
            looks.insert(at);
        }
        assert!(looks.len() < 20, "{looks:?}");
    }

    proptest! {
        /// Later, but not by more than half of the wait; and many of one wait come at few moments.
        #[test]
        fn looks_come_together(at in 0..1_000_000_000_000_i64, wait in 1..100_000_u64) {
            let wait = Duration::from_millis(wait);
            let together = gathered(Timestamp(at), wait);
            prop_assert!(together.0 >= at && together.duration_since(Timestamp(at)) <= wait / 2);
            let moments: std::collections::BTreeSet<Timestamp> =
                (0..wait.as_millis() as i64).map(|later| gathered(Timestamp(at + later), wait)).collect();
            prop_assert!(moments.len() <= 5, "{}", moments.len());
        }

        /// Whatever was learned, the next look is neither sooner than `min` nor later than what is promised.
        #[test]
        fn waits_are_bounded(
            age in 0..40_000_u64,
            mut looks in proptest::collection::vec(0..1_000_000_u64, 0..8),
            called: bool,
            jitter in 0.0..1.0_f64,
        ) {
            looks.sort_unstable();
            let looks: Vec<Duration> = looks.into_iter().map(secs).collect();
            let wait = wait(&POLL, secs(age), &looks, called, jitter);
            let most = if age == 0 { POLL.max * FIRST_LOOK_MAXIMA * RARER } else { POLL.max * 11 };
            prop_assert!((POLL.min..=most).contains(&wait), "{wait:?}");
            if !called && age > 0 && secs(age) < POLL.give_up {
                prop_assert!(wait <= POLL.max);
            }
        }
    }
}
