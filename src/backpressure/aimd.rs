//! The learned limit on concurrent requests or transcriptions: it grows slowly with successes at the limit, and shrinks
//! quickly when the service pushes back. Pure. (Additive increase, multiplicative decrease: Chiu and Jain, 1989.)

use crate::clock::Uptime;
use std::time::Duration;

/// The factor by which the limit shrinks.
const DECREASE_FACTOR: f64 = 0.7;

/// How long further push-backs are ignored after one: they concern requests that were sent together.
const IGNORE_FOR: Duration = Duration::from_secs(5);

/// A sign that the service is overloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushBack {
    /// The service said so: 429.
    Said,
    /// A time-out, a 5xx or a lost answer. The load may be too high, or the failure may have nothing to do with it. A
    /// limit that believed each of these would shrink to almost nothing if one answer in twenty was lost.
    Guessed,
}

/// A learned limit: at most the configured one, at least 1.
#[derive(Debug, Clone)]
pub struct LearnedLimit {
    max: f64,
    current: f64,
    ignore_until: Uptime,
}

impl LearnedLimit {
    /// Starts at the configured limit.
    pub fn new(max: usize) -> Self {
        let max = (max as f64).max(1.0);
        Self { max, current: max, ignore_until: Uptime(Duration::ZERO) }
    }

    /// Returns the current limit.
    pub fn now(&self) -> usize {
        self.current as usize
    }

    /// Records a success while `concurrent` were in progress, this one included. The limit grows by one after it was
    /// used up about as many times as it is high; successes below the limit do not prove that it could be higher.
    pub fn got_through(&mut self, concurrent: usize) {
        if concurrent >= self.now() {
            self.current = (self.current + 1.0 / self.current).min(self.max);
        }
    }

    /// Records a push-back while `concurrent` were in progress, this one included.
    pub fn pushed_back(&mut self, concurrent: usize, push: PushBack, now: Uptime) {
        self.lower(self.current.min(concurrent as f64), push, now);
    }

    /// Records that the service takes longer and longer without pushing back, because its own queue grows.
    pub fn slowed(&mut self, now: Uptime) {
        self.lower(self.current, PushBack::Guessed, now);
    }

    /// Lowers the limit. A guess never lowers it below a quarter of the configured limit, because it may be wrong.
    fn lower(&mut self, base: f64, push: PushBack, now: Uptime) {
        if now < self.ignore_until {
            return;
        }
        self.ignore_until = now.after(IGNORE_FOR);
        let least = match push {
            PushBack::Said => 1.0,
            PushBack::Guessed => (self.max / 4.0).max(1.0),
        };
        self.current = self.current.min((base * DECREASE_FACTOR).max(least));
    }
}

/// Detects whether transcriptions take longer and longer for their length.
#[derive(Debug, Clone, Default)]
pub struct Slowness {
    /// The usual seconds per second of audio: adapts quickly downwards, slowly upwards.
    usual: Option<f64>,
    /// The moving average of the last few.
    recent: f64,
    /// How many have ended since slowness was last reported.
    seen: u32,
}

/// How many must end before slowness is reported.
const MIN_SAMPLES: u32 = 20;

/// How many times longer than usual is slow.
const SLOW_FACTOR: f64 = 3.0;

/// The fixed cost of a transcription, as seconds of audio.
const OVERHEAD_SECONDS: f64 = 10.0;

impl Slowness {
    /// Records that a transcription of `audio` ended after `took`. Returns `true` if transcriptions have become much
    /// slower, at most once per [`MIN_SAMPLES`] of them.
    pub fn ended(&mut self, took: Duration, audio: Duration) -> bool {
        let pace = took.as_secs_f64() / (audio.as_secs_f64() + OVERHEAD_SECONDS);
        let usual = *self.usual.get_or_insert(pace);
        self.recent = if self.seen == 0 { pace } else { self.recent + 0.2 * (pace - self.recent) };
        self.usual = Some(usual + if pace < usual { 0.1 } else { 0.002 } * (pace - usual));
        self.seen += 1;
        let is_slow = self.seen >= MIN_SAMPLES && self.recent > SLOW_FACTOR * usual;
        if is_slow {
            self.seen = 0;
        }
        is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Uptime {
        Uptime(Duration::from_secs(seconds))
    }

    #[test]
    fn one_push_back_for_all_that_left_together() {
        let mut limit = LearnedLimit::new(25);
        for _ in 0..10 {
            limit.pushed_back(20, PushBack::Said, at(1));
        }
        assert_eq!(limit.now(), 14, "0.7 of the 20 that were under way");
        limit.pushed_back(14, PushBack::Guessed, at(6));
        assert_eq!(limit.now(), 9);
    }

    #[test]
    fn it_grows_only_while_it_is_used_up() {
        let mut limit = LearnedLimit::new(25);
        limit.pushed_back(10, PushBack::Said, at(1));
        assert_eq!(limit.now(), 7);
        (0..1000).for_each(|_| limit.got_through(6));
        assert_eq!(limit.now(), 7);
        (0..8).for_each(|_| limit.got_through(8));
        assert_eq!(limit.now(), 8);
        (0..1000).for_each(|_| limit.got_through(25));
        assert_eq!(limit.now(), 25);
    }

    #[test]
    fn a_guess_costs_three_quarters_at_most() {
        let mut limit = LearnedLimit::new(20);
        (0..100).for_each(|n| limit.slowed(at(10 * n)));
        assert_eq!(limit.now(), 5);
        (0..100).for_each(|n| limit.pushed_back(2, PushBack::Guessed, at(1000 + 10 * n)));
        assert_eq!(limit.now(), 5, "nor does bad luck");
        limit.pushed_back(2, PushBack::Said, at(5000));
        assert_eq!(limit.now(), 1);
        limit.slowed(at(6000));
        assert_eq!(limit.now(), 1, "and never raises it");
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_growing_queue_at_the_service_is_seen_and_long_recordings_are_not_taken_for_it() {
        let mut slowness = Slowness::default();
        let steady = (0..200).map(|n| seconds(60 * (1 + n % 30)));
        assert!(steady.into_iter().all(|audio| !slowness.ended(audio / 5 + seconds(2), audio)));
        let slow = (1..=100).filter(|_| slowness.ended(seconds(400), seconds(300))).count();
        assert!((2..=5).contains(&slow), "said {slow} times of a hundred");
    }

    proptest! {
        /// Against a service with a fixed capacity that pushes back everything above it: most of the capacity is used,
        /// and few requests are pushed back.
        #[test]
        fn a_service_is_used_to_its_limit_and_seldom_beyond(learned_limits in 1_usize..200, most in 1_usize..300) {
            let mut limit = LearnedLimit::new(most);
            let (mut through, mut back) = (0_u64, 0_u64);
            let begun = 100;
            for second in 0..600_u64 {
                // Every ten seconds, requests are sent one after another until the limit is reached; then all end.
                for n in 1..=limit.now() {
                    let counts = second >= begun;
                    if n <= learned_limits {
                        limit.got_through(n);
                        through += u64::from(counts);
                    } else {
                        limit.pushed_back(n, PushBack::Said, at(second * 10));
                        back += u64::from(counts);
                        break;
                    }
                }
                prop_assert!(limit.now() >= 1 && limit.now() <= most);
            }
            let could = learned_limits.min(most) as u64 * 500;
            prop_assert!(through * 2 >= could, "{through} of {could}");
            prop_assert!(learned_limits < most || back == 0);
            prop_assert!(back <= 500);
        }
    }
}
