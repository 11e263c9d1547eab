//! Repeats a failed request that may be repeated.

use super::backoff::Growth;
use super::retry_after;
use crate::clock::Clock;
use std::time::Duration;

/// How often, how soon and for how long a request is repeated.
#[derive(Debug, Clone, Copy)]
pub struct RequestRetries {
    /// The total number of attempts, at least 1.
    pub count: u32,
    /// The growth of the waits between attempts.
    pub growth: Growth,
    /// The range of the random factor for each wait.
    pub jitter: (f64, f64),
    /// The longest total time: no wait begins that would end later than this after the first attempt began.
    pub within: Duration,
}

/// Whether another attempt makes sense after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retryability {
    No,
    /// After the usual wait, or after the service's `Retry-After` if that is longer.
    After(Option<Duration>),
}

/// Runs `attempt` until it succeeds, `judge` returns [`Retryability::No`], or the limits of `tries` are reached.
/// `waiting` is called before each wait.
///
/// # Errors
/// The last failure of `attempt`.
pub async fn retry<T, E, F: Future<Output = Result<T, E>>>(
    clock: &dyn Clock,
    tries: RequestRetries,
    judge: impl Fn(&E) -> Retryability,
    waiting: impl Fn(&E),
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    let begun = clock.uptime();
    for earlier in 0..tries.count.saturating_sub(1) {
        let fault = match attempt().await {
            Ok(value) => return Ok(value),
            Err(fault) => fault,
        };
        let Retryability::After(asked) = judge(&fault) else { return Err(fault) };
        let wait = retry_after::obeyed(tries.own_wait(earlier), asked);
        if clock.uptime().since(begun).saturating_add(wait) > tries.within {
            return Err(fault);
        }
        waiting(&fault);
        clock.sleep(wait).await;
    }
    attempt().await
}

impl RequestRetries {
    fn own_wait(self, earlier: u32) -> Duration {
        let (least, most) = self.jitter;
        self.growth.wait(earlier).mul_f64(least + (most - least) * fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Uptime;
    use crate::domain::names::Timestamp;
    use std::cell::Cell;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Slept(Mutex<Vec<Duration>>);

    impl Slept {
        fn all(&self) -> Vec<Duration> {
            self.0.lock().unwrap().clone()
        }
    }

    #[async_trait::async_trait]
    impl Clock for Slept {
        fn now(&self) -> Timestamp {
            Timestamp(0)
        }
        fn uptime(&self) -> Uptime {
            Uptime(self.all().iter().sum())
        }
        async fn sleep(&self, span: Duration) {
            self.0.lock().unwrap().push(span);
        }
    }

    const TRIES: RequestRetries = RequestRetries {
        count: 4,
        growth: Growth { first: Duration::from_secs(1), factor: 1.5, max: Duration::from_secs(10) },
        jitter: (0.5, 1.5),
        within: Duration::from_secs(10),
    };

    async fn run(
        clock: &Slept,
        tries: RequestRetries,
        retryability: Retryability,
        good_at: u32,
    ) -> (u32, Result<(), u32>) {
        let done = Cell::new(0);
        let result = retry(
            clock,
            tries,
            |_: &u32| retryability,
            |_| {},
            || async {
                done.set(done.get() + 1);
                if done.get() == good_at { Ok(()) } else { Err(done.get()) }
            },
        );
        let result = result.await;
        (done.get(), result)
    }

    #[tokio::test]
    async fn until_it_succeeds() {
        let clock = Slept::default();
        assert_eq!(run(&clock, TRIES, Retryability::After(None), 3).await, (3, Ok(())));
        assert_eq!(clock.all().len(), 2);
    }

    #[tokio::test]
    async fn the_count_is_the_end_and_the_last_failure_is_given() {
        let clock = Slept::default();
        assert_eq!(run(&clock, TRIES, Retryability::After(None), 99).await, (4, Err(4)));
        for (wait, whole) in clock.all().into_iter().zip([1.0, 1.5, 2.25]) {
            assert!(wait.as_secs_f64() >= whole * 0.49 && wait.as_secs_f64() <= whole * 1.51, "{wait:?}");
        }
    }

    #[tokio::test]
    async fn no_is_no() {
        let clock = Slept::default();
        assert_eq!(run(&clock, TRIES, Retryability::No, 99).await, (1, Err(1)));
        assert!(clock.all().is_empty());
    }

    #[tokio::test]
    async fn what_the_service_asks_for_wins() {
        let clock = Slept::default();
        let asked = Retryability::After(Some(Duration::from_secs(4)));
        assert_eq!(run(&clock, TRIES, asked, 99).await, (3, Err(3)), "a third wait would end after 12 s");
        assert_eq!(clock.all(), [Duration::from_secs(4); 2]);
    }

    #[tokio::test]
    async fn a_retry_after_of_zero_takes_away_no_backoff() {
        let clock = Slept::default();
        let tries = RequestRetries { jitter: (1.0, 1.0), ..TRIES };
        run(&clock, tries, Retryability::After(Some(Duration::ZERO)), 99).await.1.unwrap_err();
        assert_eq!(clock.all(), [1_000, 1_500, 2_250].map(Duration::from_millis));
    }

    #[tokio::test]
    async fn what_does_not_fit_is_not_begun() {
        let clock = Slept::default();
        let asked = Retryability::After(Some(Duration::from_secs(11)));
        assert_eq!(run(&clock, TRIES, asked, 99).await, (1, Err(1)));
        assert!(clock.all().is_empty());
    }

    #[tokio::test]
    async fn one_try_is_one_try() {
        let one = RequestRetries { count: 1, ..TRIES };
        assert_eq!(run(&Slept::default(), one, Retryability::After(None), 99).await, (1, Err(1)));
    }
}
