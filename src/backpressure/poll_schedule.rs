//! Decides when transcriptions at a service are polled: first when audio of their length is usually done, then at
//! growing intervals, and less often while callbacks arrive. One schedule per service, in memory only: after a restart
//! there are a few polls more.

use super::backoff::Growth;
use crate::domain::names::{JobId, Timestamp};
use crate::domain::stage::AudioAmount;
use crate::domain::turnaround::{Load, Turnaround, UsualDuration};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The first poll comes after at most this many times `poll.max`, however late such audio is usually done: the service
/// may have become faster.
const FIRST_POLL_MAXIMA: u32 = 10;

/// While callbacks arrive, polls are only a safety net: this many times rarer, and at least `poll.max` apart.
const CALLBACK_FACTOR: u32 = 4;

/// Polls of the safety net are at most this many times `poll.max` apart.
const CALLBACK_MAXIMA: u32 = 10;

/// The first hint for a job brings a poll at once, the second one after this time, and each further one after twice the
/// time. A leaked address cannot be used to keep the service busy.
const HINT_SPACING: Duration = Duration::from_secs(1);

/// The longest time between two polls that hints bring.
const HINT_SPACING_MAX: Duration = Duration::from_secs(64);

/// From this many transcriptions on, polls are made to coincide.
const MANY: usize = 40;

/// The most jobs that are remembered. At this number all are forgotten, and polled as if nothing was known about their
/// length.
const MAX_JOBS: usize = 50_000;

/// How many ends that a poll found before the callback came are remembered, in case the callback still comes.
const MAX_MISSED: usize = 256;

/// How often a running transcription is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    /// The first wait: more than zero, at most `max`.
    pub min: Duration,
    /// The longest wait.
    pub max: Duration,
    /// After this time a transcription that has not ended is a fault.
    pub give_up: Duration,
}

/// The polls of everything that is at a service.
#[derive(Debug, Default)]
pub struct PollSchedule(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    turnaround: Turnaround,
    callbacks: Callbacks,
    flights: HashMap<JobId, Flight>,
    rng: fastrand::Rng,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    load: Load,
    hinted: u32,
    last_hint: Timestamp,
}

/// Whether callbacks arrive.
#[derive(Debug, Default)]
struct Callbacks {
    score: u32,
    missed: VecDeque<JobId>,
}

impl Callbacks {
    const WORKING: u32 = 3;
    const MAX_SCORE: u32 = 6;

    fn work(&self) -> bool {
        self.score >= Self::WORKING
    }

    fn record_arrival(&mut self) {
        self.score = (self.score + 1).min(Self::MAX_SCORE);
    }

    /// Records that a poll found an end before a callback came. Two of these in a row, and polls are as frequent as
    /// without callbacks.
    fn record_miss(&mut self, job: JobId) {
        self.score = self.score.saturating_sub(2);
        if self.missed.len() == MAX_MISSED {
            self.missed.pop_front();
        }
        self.missed.push_back(job);
    }

    /// Records that a callback came after all: the poll was only faster.
    fn record_late_arrival(&mut self, job: JobId) {
        if let Some(index) = self.missed.iter().position(|missed| *missed == job) {
            self.missed.remove(index);
            self.score = (self.score + 2).min(Self::MAX_SCORE);
        }
    }
}

impl PollSchedule {
    /// Makes an empty schedule; `seed` is for jitter.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(State { rng: fastrand::Rng::with_seed(seed), ..State::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a service accepted a job's audio while it had `beside` other transcriptions of ours. Returns how
    /// long until the first poll.
    pub fn accepted(&self, job: JobId, audio: AudioAmount, beside: u64, poll: &Poll) -> Duration {
        let load =
            Load { audio: Duration::from_millis(audio.millis), concurrent: u32::try_from(beside).unwrap_or(u32::MAX) };
        let mut state = self.state();
        if state.flights.len() >= MAX_JOBS {
            state.flights.clear();
        }
        state.flights.insert(job, Flight { load, hinted: 0, last_hint: Timestamp(i64::MIN) });
        state.wait(job, poll, Duration::ZERO)
    }

    /// Returns how long until the next poll of a job that has not ended at this age.
    pub fn pending(&self, job: JobId, poll: &Poll, age: Duration) -> Duration {
        self.state().wait(job, poll, age)
    }

    /// Returns the moment of a poll that is `wait` away. If there are many transcriptions, the moment is a little
    /// later, so that polls coincide and one page of the list answers them.
    pub fn moment(&self, now: Timestamp, wait: Duration) -> Timestamp {
        let at = now.saturating_add(wait);
        if self.state().flights.len() < MANY { at } else { align(at, wait) }
    }

    /// Records that a transcription succeeded after `took`, by the service's dates or else by its age. `calls`: whether
    /// a callback was requested.
    pub fn ended(&self, job: JobId, audio: AudioAmount, took: Duration, calls: bool) {
        let mut state = self.state();
        let flight = state.flights.remove(&job);
        let beside = u32::try_from(state.flights.len()).unwrap_or(u32::MAX);
        let known_load = flight.map(|flight| flight.load).filter(|load| !load.audio.is_zero());
        let load = known_load.unwrap_or(Load { audio: Duration::from_millis(audio.millis), concurrent: beside });
        state.turnaround.record(load, took);
        match flight {
            Some(flight) if calls && flight.hinted > 0 => state.callbacks.record_arrival(),
            Some(_) if calls => state.callbacks.record_miss(job),
            _ => {}
        }
    }

    /// Returns how long the service usually takes, once that is known.
    pub fn usual(&self) -> Option<UsualDuration> {
        self.state().turnaround.usual()
    }

    /// Forgets a job that is no longer at the service, however it ended.
    pub fn forget(&self, job: JobId) {
        self.state().flights.remove(&job);
    }

    /// Records a hint that this job's transcription has ended. Returns when to poll.
    pub fn hinted(&self, job: JobId, now: Timestamp) -> Timestamp {
        let mut state = self.state();
        let unknown =
            Flight { load: Load { audio: Duration::ZERO, concurrent: 0 }, hinted: 0, last_hint: Timestamp(i64::MIN) };
        let flight = state.flights.entry(job).or_insert(unknown);
        if flight.last_hint > now {
            return flight.last_hint; // the poll that is already planned serves this hint too
        }
        let growth = Growth::doubling(HINT_SPACING, HINT_SPACING_MAX);
        let spacing = growth.wait(flight.hinted.saturating_sub(1));
        let at = if flight.hinted == 0 { now } else { now.max(flight.last_hint.saturating_add(spacing)) };
        flight.hinted += 1;
        flight.last_hint = at;
        at
    }

    /// Records a callback for a job that has ended, or was never at the service.
    pub fn hinted_late(&self, job: JobId) {
        self.state().callbacks.record_late_arrival(job);
    }

    /// Whether callbacks arrive.
    pub fn callbacks_work(&self) -> bool {
        self.state().callbacks.work()
    }
}

impl State {
    fn wait(&mut self, job: JobId, poll: &Poll, age: Duration) -> Duration {
        let jitter = self.rng.f64();
        // Without a length, nothing can be estimated.
        let flight = self.flights.get(&job).filter(|flight| !flight.load.audio.is_zero());
        let ages = flight.map(|flight| self.turnaround.poll_ages(flight.load)).unwrap_or_default();
        wait(poll, age, &ages, self.callbacks.work(), jitter)
    }
}

/// Returns how long until the next poll of a transcription of this age. `usual_ends`: the ages at which such
/// transcriptions usually end, in order; `called`: whether a callback is expected. `jitter` is from 0 to 1. Pure.
pub fn wait(poll: &Poll, age: Duration, usual_ends: &[Duration], called: bool, jitter: f64) -> Duration {
    if age >= poll.give_up {
        return jittered(poll.max * 10, jitter);
    }
    let soonest = age + poll.min;
    let usual = match usual_ends.iter().find(|end| **end >= soonest) {
        Some(end) if age.is_zero() => end.min(&(poll.max * FIRST_POLL_MAXIMA)).saturating_sub(age),
        Some(end) => end.saturating_sub(age).min(poll.max),
        // After the usual ends, the next poll is soon; if nothing was learned, the interval grows faster.
        None => jittered(age / if usual_ends.is_empty() { 4 } else { 10 }, jitter).clamp(poll.min, poll.max),
    };
    let usual = usual.max(poll.min);
    if called { (usual * CALLBACK_FACTOR).max(poll.max).min((poll.max * CALLBACK_MAXIMA).max(usual)) } else { usual }
}

/// Rounds a moment up to a grid on which such polls coincide; at most half of the wait later.
fn align(at: Timestamp, wait: Duration) -> Timestamp {
    let half = i64::try_from(wait.as_millis() / 2).unwrap_or(i64::MAX).max(1);
    let grid = 1_i64 << half.ilog2();
    let rest = at.0.rem_euclid(grid);
    if rest == 0 { at } else { Timestamp(at.0.saturating_add(grid - rest)) }
}

/// Varies a wait by up to a tenth, so that polls that coincided do not do so for ever.
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
        let schedule = PollSchedule::new(1);
        assert_eq!(schedule.accepted(JobId(0), MINUTE, 0, &POLL), POLL.min);
        for job in 0..20 {
            schedule.accepted(JobId(job), MINUTE, 0, &POLL);
            schedule.ended(JobId(job), MINUTE, secs(30), false);
        }
        let first = schedule.accepted(JobId(99), MINUTE, 0, &POLL);
        assert!((secs(29)..=secs(31)).contains(&first), "{first:?}");
        let next = schedule.pending(JobId(99), &POLL, secs(31));
        assert!((secs(2)..=secs(4)).contains(&next), "a tenth of its age: {next:?}");
    }

    #[test]
    fn callbacks_that_come_make_looks_rarer_and_those_that_stay_away_undo_that() {
        let schedule = PollSchedule::new(1);
        let end = |job: u64, called: bool| {
            schedule.accepted(JobId(job), MINUTE, 0, &POLL);
            if called {
                schedule.hinted(JobId(job), Timestamp(0));
            }
            schedule.ended(JobId(job), MINUTE, secs(30), true);
        };
        (0..6).for_each(|job| end(job, true));
        assert!(schedule.callbacks_work());
        let net = schedule.accepted(JobId(99), MINUTE, 0, &POLL);
        assert!(net >= secs(100), "{net:?}");
        end(10, false);
        schedule.hinted_late(JobId(10));
        assert!(schedule.callbacks_work(), "it was only slower than the question");
        (11..14).for_each(|job| end(job, false));
        assert!(!schedule.callbacks_work());
    }

    #[test]
    fn hints_for_one_job_bring_ever_fewer_looks() {
        let schedule = PollSchedule::new(1);
        let mut looks = std::collections::BTreeSet::new();
        for millis in 0..600_000 {
            let at = schedule.hinted(JobId(1), Timestamp(millis));
            looks.insert(at);
        }
        assert!(looks.len() < 20, "{looks:?}");
    }

    proptest! {
        /// The result is later by at most half of the wait, and many moments with the same wait give few results.
        #[test]
        fn looks_come_together(at in 0..1_000_000_000_000_i64, wait in 1..100_000_u64) {
            let wait = Duration::from_millis(wait);
            let together = align(Timestamp(at), wait);
            prop_assert!(together.0 >= at && together.duration_since(Timestamp(at)) <= wait / 2);
            let moments: std::collections::BTreeSet<Timestamp> =
                (0..wait.as_millis() as i64).map(|later| align(Timestamp(at + later), wait)).collect();
            prop_assert!(moments.len() <= 5, "{}", moments.len());
        }

        /// Whatever was learned, the next poll is neither sooner than `min` nor later than documented.
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
            let most = if age == 0 { POLL.max * FIRST_POLL_MAXIMA * CALLBACK_FACTOR } else { POLL.max * 11 };
            prop_assert!((POLL.min..=most).contains(&wait), "{wait:?}");
            if !called && age > 0 && secs(age) < POLL.give_up {
                prop_assert!(wait <= POLL.max);
            }
        }
    }
}
