//! The rate limiter: spaces requests evenly, first come, first served. It slows down when the service asks for fewer
//! requests, and holds all requests until the time that the service named.

use super::{Permit, retry_after};
use crate::clock::{Clock, Uptime};
use std::sync::{Arc, Mutex as Lock, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;

/// The algorithm, without waiting: at most `rate × W + burst` requests in any `W` seconds. (The generic cell rate
/// algorithm, whose state is a single moment.)
#[derive(Debug, Clone)]
pub struct RateLimit {
    /// The configured rate, in requests per second.
    max_rate: f64,
    /// The current rate, in requests per second; at most `max_rate`.
    current: f64,
    /// No request is sent before this moment, which is from the service's `Retry-After`.
    held: Uptime,
    /// A push-back before this moment concerns requests that were sent before the last one, and does not slow down
    /// again.
    ignore_until: Uptime,
    spacing: Duration,
    allowance: Duration,
    /// When the next request would be due with even spacing. A request may be sent up to `allowance` before that.
    due: Uptime,
}

impl RateLimit {
    /// Makes a limit of `rate` requests per second, which is above 0; infinity means no limit. `None` for any other
    /// value.
    pub fn new(rate: f64) -> Option<Self> {
        let (spacing, allowance) = spaced(rate)?;
        let never = Uptime(Duration::ZERO);
        Some(Self { max_rate: rate, current: rate, held: never, ignore_until: never, spacing, allowance, due: never })
    }

    /// Returns the current rate, in requests per second.
    pub fn rate(&self) -> f64 {
        self.current
    }

    /// Returns for how long no request may be sent because the service asked for it.
    pub fn held(&self, now: Uptime) -> Duration {
        self.held.since(now)
    }

    /// Records that the service asked for fewer requests, and perhaps to wait: halves the rate.
    pub fn pushed_back(&mut self, now: Uptime, asked: Option<Duration>) {
        self.held = self.held.max(now.after(retry_after::obeyed(Duration::ZERO, asked)));
        if now >= self.ignore_until {
            self.set(self.current / 2.0);
        }
        self.ignore_until = self.held.max(now.after(ANSWER_TIME));
    }

    /// Records a success: raises the rate a little. It takes about [`RECOVERY`] seconds back to the configured rate.
    pub fn got_through(&mut self) {
        if self.current < self.max_rate {
            self.set(self.current + self.max_rate / (self.current * RECOVERY).max(1.0));
        }
    }

    fn set(&mut self, rate: f64) {
        let rate = rate.clamp(MIN_RATE.min(self.max_rate), self.max_rate);
        if let Some((spacing, allowance)) = spaced(rate) {
            (self.current, self.spacing, self.allowance) = (rate, spacing, allowance);
        }
    }

    /// Returns how many requests may be sent at once after a pause: one, and what falls due within 20 ms, because a
    /// timer is accurate to a few milliseconds only. A service that counts per second sees no more than the rate.
    pub fn burst(rate: f64) -> u32 {
        const TIMER: f64 = 0.02;
        ((rate * TIMER) as u32).saturating_add(1)
    }

    /// Takes a request: zero if one may be sent now, and is counted. Otherwise how long to wait before asking again.
    pub fn take(&mut self, now: Uptime) -> Duration {
        let wait = self.due.since(now.after(self.allowance)).max(self.held(now));
        if wait.is_zero() {
            self.due = self.due.max(now).after(self.spacing);
        }
        wait
    }
}

/// The lowest rate, in requests per second: one in ten seconds.
const MIN_RATE: f64 = 0.1;

/// Seconds until the configured rate is reached again, if all requests succeed.
const RECOVERY: f64 = 60.0;

/// The longest time that the limiter waits for a hold.
const MAX_HOLD_WAIT: Duration = Duration::from_secs(5);

/// Within this time, requests that were sent together are answered.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Returns the time between two requests, and how far before its due time one may be sent; `None` for an invalid rate.
fn spaced(rate: f64) -> Option<(Duration, Duration)> {
    let spacing = Duration::try_from_secs_f64(1.0 / rate).ok().filter(|_| rate > 0.0)?;
    Some((spacing, spacing.saturating_mul(RateLimit::burst(rate) - 1)))
}

/// A [`RateLimit`] that many tasks share.
pub struct RateLimiter {
    clock: Arc<dyn Clock>,
    /// Makes it fair: tokio's mutex serves tasks in order, and the first task holds it while it waits. A task that is
    /// cancelled costs the others nothing.
    turn: Mutex<()>,
    limit: Lock<RateLimit>,
}

/// How a request was answered, as far as it matters for the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestAnswer {
    /// Any answer that does not ask for fewer requests.
    Taken,
    /// The service asked for fewer requests.
    PushedBack {
        /// How long the service asked to wait, if it said so.
        retry_after: Option<Duration>,
    },
}

impl RateLimiter {
    /// Makes a limiter; all tasks of a client share it.
    pub fn new(clock: Arc<dyn Clock>, limit: RateLimit) -> Self {
        Self { clock, turn: Mutex::new(()), limit: Lock::new(limit) }
    }

    /// Waits until one request may be sent. If all requests are held for longer than [`MAX_HOLD_WAIT`], returns at once
    /// with the end of the hold, so that the caller can do something else.
    pub async fn permit(&self) -> Permit {
        let _first = self.turn.lock().await;
        loop {
            let now = self.clock.uptime();
            let wait = self.limit().take(now);
            if wait.is_zero() {
                return Permit::Granted;
            }
            let held = self.limit().held;
            if held.since(now) > MAX_HOLD_WAIT {
                return Permit::WaitUntil(held);
            }
            self.clock.sleep(wait).await;
        }
    }

    /// Records how a request was answered.
    pub fn observe(&self, answer: RequestAnswer) {
        match answer {
            RequestAnswer::Taken => self.limit().got_through(),
            RequestAnswer::PushedBack { retry_after } => self.limit().pushed_back(self.clock.uptime(), retry_after),
        }
    }

    /// Holds all requests for this time.
    pub fn hold(&self, span: Duration) {
        let until = self.clock.uptime().after(span);
        let mut limit = self.limit();
        limit.held = limit.held.max(until);
    }

    pub fn held(&self) -> Duration {
        self.limit().held(self.clock.uptime())
    }

    pub fn rate(&self) -> f64 {
        self.limit().rate()
    }

    fn limit(&self) -> MutexGuard<'_, RateLimit> {
        self.limit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::Timestamp;
    use proptest::prelude::*;

    #[test]
    fn a_rate_is_a_number_above_zero() {
        for rate in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY, 1e-30] {
            assert!(RateLimit::new(rate).is_none(), "{rate}");
        }
        let mut endless = RateLimit::new(f64::INFINITY).unwrap();
        assert!((0..1000).all(|_| endless.take(Uptime(Duration::ZERO)).is_zero()));
    }

    #[test]
    fn ten_a_second_are_a_tenth_apart() {
        let mut limit = RateLimit::new(10.0).unwrap();
        assert!(limit.take(Uptime(Duration::from_secs(5))).is_zero());
        assert_eq!(limit.take(Uptime(Duration::from_secs(5))), Duration::from_millis(100));
        assert!(limit.take(Uptime(Duration::from_millis(5100))).is_zero());
    }

    proptest! {
        #[test]
        fn never_more_than_the_rate_and_the_burst_in_any_window(
            rate in 0.1..2000.0_f64,
            pauses in proptest::collection::vec(0_u64..200_000, 1..200),
            window in 1_u64..5_000_000,
        ) {
            let mut limit = RateLimit::new(rate).unwrap();
            let (mut now, mut left) = (0_u64, Vec::new());
            for pause in pauses {
                now += pause; // microseconds
                while limit.take(Uptime(Duration::from_micros(now))).is_zero() {
                    left.push(now);
                }
            }
            let most = rate * window as f64 / 1e6 + f64::from(RateLimit::burst(rate)) + 1e-6;
            for (i, first) in left.iter().enumerate() {
                let within = left[i..].iter().take_while(|at| *at - first < window).count();
                prop_assert!(within as f64 <= most, "{within} in {window} us at {rate}/s");
            }
        }

        #[test]
        fn whatever_is_heard_nothing_leaves_while_it_is_held_and_never_more_than_agreed(
            rate in 0.1..2000.0_f64,
            heard in proptest::collection::vec((0_u64..3_000, proptest::option::of(0_u64..20_000)), 1..100),
        ) {
            let mut limit = RateLimit::new(rate).unwrap();
            let (mut now, mut held) = (Uptime(Duration::ZERO), Uptime(Duration::ZERO));
            for (pause, pushed_back) in heard {
                now = now.after(Duration::from_millis(pause));
                match pushed_back {
                    Some(millis) => {
                        limit.pushed_back(now, Some(Duration::from_millis(millis)));
                        held = held.max(now.after(Duration::from_millis(millis)));
                    }
                    None => limit.got_through(),
                }
                prop_assert!(limit.rate() <= rate && limit.rate() >= rate.min(MIN_RATE));
                prop_assert!(!(limit.take(now).is_zero() && now < held), "it left {:?} too early", held.since(now));
            }
        }

        #[test]
        fn the_wait_it_names_is_enough(rate in 0.1..2000.0_f64, asks in 1..100_usize) {
            let mut limit = RateLimit::new(rate).unwrap();
            let mut now = Uptime(Duration::from_secs(1));
            for _ in 0..asks {
                now = now.after(limit.take(now));
                prop_assert!(limit.take(now) <= Duration::from_secs_f64(1.0 / rate));
            }
        }
    }

    #[test]
    fn pushed_back_it_halves_once_for_what_left_together_and_finds_back_in_a_minute() {
        let (mut limit, at) = (RateLimit::new(10.0).unwrap(), |millis| Uptime(Duration::from_millis(millis)));
        limit.pushed_back(at(0), Some(Duration::from_secs(5)));
        limit.pushed_back(at(100), Some(Duration::ZERO));
        assert_eq!(limit.rate(), 5.0);
        assert_eq!(limit.take(at(1000)), Duration::from_secs(4));
        limit.pushed_back(at(5100), None);
        assert_eq!(limit.rate(), 2.5);
        let mut now = at(5100);
        let begun = now;
        while limit.rate() < 10.0 {
            match limit.take(now) {
                Duration::ZERO => limit.got_through(),
                wait => now = now.after(wait),
            }
        }
        let seconds = now.since(begun).as_secs();
        assert!((30..=60).contains(&seconds), "{seconds} s");
    }

    /// A clock that only sleeping moves.
    struct Still(Lock<Duration>);

    #[async_trait::async_trait]
    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp(0)
        }
        fn uptime(&self) -> Uptime {
            Uptime(*self.0.lock().unwrap())
        }
        async fn sleep(&self, span: Duration) {
            tokio::task::yield_now().await;
            *self.0.lock().unwrap() += span;
        }
    }

    #[tokio::test]
    async fn first_come_first_served() {
        let clock = Arc::new(Still(Lock::new(Duration::ZERO)));
        let limiter = Arc::new(RateLimiter::new(clock.clone(), RateLimit::new(10.0).unwrap()));
        let order = Arc::new(Lock::new(Vec::new()));
        let tasks = (0..20).map(|n| {
            let (limiter, order) = (limiter.clone(), order.clone());
            tokio::spawn(async move {
                limiter.permit().await;
                order.lock().unwrap().push(n);
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
        assert_eq!(clock.uptime().0, Duration::from_millis(1900));
    }
}
