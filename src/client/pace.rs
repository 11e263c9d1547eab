//! How often requests may leave: evenly spaced, first come, first served.

use crate::clock::{Clock, Uptime};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The rule, without waiting: at most `rate × W + burst` requests in any `W` seconds. (The generic
/// cell rate algorithm: one moment is all it remembers.)
#[derive(Debug, Clone)]
pub struct Pace {
    spacing: Duration,
    allowance: Duration,
    /// When the next request would be due if all were evenly spaced. It may lie `allowance` ahead.
    due: Uptime,
}

impl Pace {
    /// `rate` in requests a second, above 0; infinity for no limit. `None` for anything else.
    pub fn new(rate: f64) -> Option<Self> {
        let spacing = Duration::try_from_secs_f64(1.0 / rate).ok().filter(|_| rate > 0.0)?;
        let allowance = spacing.saturating_mul(Self::burst(rate) - 1);
        Some(Self { spacing, allowance, due: Uptime(Duration::ZERO) })
    }

    /// How many may leave at once after a pause: one, and what falls due within 20 ms, because a
    /// timer is no finer than a few. So a service that counts by the second sees no more than agreed.
    pub fn burst(rate: f64) -> u32 {
        const TIMER: f64 = 0.02;
        ((rate * TIMER) as u32).saturating_add(1)
    }

    /// Zero: one request may leave now, and is counted. Otherwise how long to wait before asking again.
    pub fn take(&mut self, now: Uptime) -> Duration {
        let wait = self.due.since(now.after(self.allowance));
        if wait.is_zero() {
            self.due = self.due.max(now).after(self.spacing);
        }
        wait
    }
}

/// The rule for many tasks at once.
pub struct Pacer {
    clock: Arc<dyn Clock>,
    /// Fair: tokio's mutex is handed on in the order of asking, and the one whose turn is next holds
    /// it while it waits. Who goes away while waiting costs the others nothing.
    pace: Mutex<Pace>,
}

impl Pacer {
    /// A queue under this rule.
    pub fn new(clock: Arc<dyn Clock>, pace: Pace) -> Self {
        Self { clock, pace: Mutex::new(pace) }
    }

    /// Returns when one request may leave.
    pub async fn turn(&self) {
        let mut pace = self.pace.lock().await;
        loop {
            let wait = pace.take(self.clock.uptime());
            if wait.is_zero() {
                return;
            }
            self.clock.sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::Timestamp;
    use proptest::prelude::*;
    use std::sync::Mutex as Lock;

    #[test]
    fn a_rate_is_a_number_above_zero() {
        for rate in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY, 1e-30] {
            assert!(Pace::new(rate).is_none(), "{rate}");
        }
        let mut endless = Pace::new(f64::INFINITY).unwrap();
        assert!((0..1000).all(|_| endless.take(Uptime(Duration::ZERO)).is_zero()));
    }

    #[test]
    fn ten_a_second_are_a_tenth_apart() {
        let mut pace = Pace::new(10.0).unwrap();
        assert!(pace.take(Uptime(Duration::from_secs(5))).is_zero());
        assert_eq!(pace.take(Uptime(Duration::from_secs(5))), Duration::from_millis(100));
        assert!(pace.take(Uptime(Duration::from_millis(5100))).is_zero());
    }

    proptest! {
        #[test]
        fn never_more_than_the_rate_and_the_burst_in_any_window(
            rate in 0.1..2000.0_f64,
            pauses in proptest::collection::vec(0_u64..200_000, 1..200),
            window in 1_u64..5_000_000,
        ) {
            let mut pace = Pace::new(rate).unwrap();
            let (mut now, mut left) = (0_u64, Vec::new());
            for pause in pauses {
                now += pause; // microseconds
                while pace.take(Uptime(Duration::from_micros(now))).is_zero() {
                    left.push(now);
                }
            }
            let most = rate * window as f64 / 1e6 + f64::from(Pace::burst(rate)) + 1e-6;
            for (i, first) in left.iter().enumerate() {
                let within = left[i..].iter().take_while(|at| *at - first < window).count();
                prop_assert!(within as f64 <= most, "{within} in {window} us at {rate}/s");
            }
        }

        #[test]
        fn the_wait_it_names_is_enough(rate in 0.1..2000.0_f64, asks in 1..100_usize) {
            let mut pace = Pace::new(rate).unwrap();
            let mut now = Uptime(Duration::from_secs(1));
            for _ in 0..asks {
                now = now.after(pace.take(now));
                prop_assert!(pace.take(now) <= Duration::from_secs_f64(1.0 / rate));
            }
        }
    }

    /// Its time goes on by sleeping only.
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
        let pacer = Arc::new(Pacer::new(clock.clone(), Pace::new(10.0).unwrap()));
        let order = Arc::new(Lock::new(Vec::new()));
        let tasks = (0..20).map(|n| {
            let (pacer, order) = (pacer.clone(), order.clone());
            tokio::spawn(async move {
                pacer.turn().await;
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
