//! How much at once a service was found to bear: a little more after each success at the limit, much less
//! when it pushes back. Pure. (Additive increase, multiplicative decrease: Chiu and Jain, 1989.)

use crate::clock::Uptime;
use std::time::Duration;

/// What is left of the limit when the service pushes back.
const LESS: f64 = 0.7;

/// What left together with what was pushed back says nothing new for so long.
const ROUND: Duration = Duration::from_secs(5);

/// Why the service is asked less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushBack {
    /// It said so: 429.
    Said,
    /// A time-out, a 5xx, an answer that was lost. It may be too much for it, or bad luck that has nothing to do
    /// with how much is asked: of one answer in twenty that is lost, next to nothing would be left.
    Guessed,
}

/// A limit that is found by trying, at most the agreed one and at least 1.
#[derive(Debug, Clone)]
pub struct LearnedLimit {
    most: f64,
    found: f64,
    settled: Uptime,
}

impl LearnedLimit {
    /// The agreed one, until something else is heard.
    pub fn new(most: usize) -> Self {
        let most = (most as f64).max(1.0);
        Self { most, found: most, settled: Uptime(Duration::ZERO) }
    }

    /// So many at once.
    pub fn now(&self) -> usize {
        self.found as usize
    }

    /// One got through while so many, it included, were under way. The limit grows by one for each time
    /// that it was used up, and only then: what was never tried is not known to be borne.
    pub fn got_through(&mut self, under_way: usize) {
        if under_way >= self.now() {
            self.found = (self.found + 1.0 / self.found).min(self.most);
        }
    }

    /// The service pushed one back while so many, it included, were under way.
    pub fn pushed_back(&mut self, under_way: usize, push: PushBack, now: Uptime) {
        self.lower(self.found.min(under_way as f64), push, now);
    }

    /// The service takes ever longer, although it pushes nothing back: its own queue grows.
    pub fn slowed(&mut self, now: Uptime) {
        self.lower(self.found, PushBack::Guessed, now);
    }

    /// A guess never brings it below a quarter of what was agreed: a wrong one must not cost much.
    fn lower(&mut self, from: f64, push: PushBack, now: Uptime) {
        if now < self.settled {
            return;
        }
        self.settled = now.after(ROUND);
        let least = match push {
            PushBack::Said => 1.0,
            PushBack::Guessed => (self.most / 4.0).max(1.0),
        };
        self.found = self.found.min((from * LESS).max(least));
    }
}

/// Whether transcriptions take ever longer for their length. Told of each one that has ended.
#[derive(Debug, Clone, Default)]
pub struct Slowness {
    /// What is usual, in seconds for each second of audio: falls fast, rises slowly.
    usual: Option<f64>,
    /// Of the last few.
    lately: f64,
    /// How many have ended since it was last said.
    seen: u32,
}

/// So many must have ended before anything is said of them.
const ENOUGH: u32 = 20;

/// So much longer than usual is slow.
const SLOW: f64 = 3.0;

/// What every transcription takes, however short, counted as seconds of audio.
const OVERHEAD: f64 = 10.0;

impl Slowness {
    /// One of `audio` has ended after it `took` so long. `true` if they have become much slower: said at
    /// most once for each [`ENOUGH`] of them.
    pub fn ended(&mut self, took: Duration, audio: Duration) -> bool {
        let pace = took.as_secs_f64() / (audio.as_secs_f64() + OVERHEAD);
        let usual = *self.usual.get_or_insert(pace);
        self.lately = if self.seen == 0 { pace } else { self.lately + 0.2 * (pace - self.lately) };
        self.usual = Some(usual + if pace < usual { 0.1 } else { 0.002 } * (pace - usual));
        self.seen += 1;
        let slow = self.seen >= ENOUGH && self.lately > SLOW * usual;
        if slow {
            self.seen = 0;
        }
        slow
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
        /// Against a service that bears so many and pushes back the rest: it is used to most of what it
        /// bears, and few are pushed back.
        #[test]
        fn a_service_is_used_to_its_limit_and_seldom_beyond(learned_limits in 1_usize..200, most in 1_usize..300) {
            let mut limit = LearnedLimit::new(most);
            let (mut through, mut back) = (0_u64, 0_u64);
            let begun = 100;
            for second in 0..600_u64 {
                // Every ten seconds one after the other leaves until the limit is reached; then all end.
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
