//! Trying again: the only file that names the `backoff` crate, which is unmaintained.

use crate::clock::Clock;
use backoff::ExponentialBackoff;
use backoff::backoff::Backoff;
use std::time::Duration;

/// How often, how soon and how long something is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRetries {
    /// In all, at least 1.
    pub count: u32,
    /// The wait after the first failure, grown by half after each further one; a half more or less by chance.
    pub first: Duration,
    /// No wait begins that would end later than this after the first try began.
    pub within: Duration,
}

/// What a failure says about another try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retryability {
    /// Of no use.
    No,
    /// After the usual wait.
    Soon,
    /// Not before this has gone by: the service's `Retry-After`, which wins over a shorter wait.
    After(Duration),
}

/// Runs `attempt` until it succeeds, `judge` says no, or `tries` are used up; then gives the last failure.
///
/// # Errors
/// Those of `attempt`.
pub async fn again<T, E, F: Future<Output = Result<T, E>>>(
    clock: &dyn Clock,
    tries: RequestRetries,
    judge: impl Fn(&E) -> Retryability,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    let begun = clock.uptime();
    let mut waits = waits(tries);
    for _ in 1..tries.count {
        let fault = match attempt().await {
            Ok(value) => return Ok(value),
            Err(fault) => fault,
        };
        let Some(wait) = next(&mut waits, judge(&fault)) else { return Err(fault) };
        if clock.uptime().since(begun).saturating_add(wait) > tries.within {
            return Err(fault);
        }
        clock.sleep(wait).await;
    }
    attempt().await
}

fn next(waits: &mut ExponentialBackoff, again: Retryability) -> Option<Duration> {
    match again {
        Retryability::No => None,
        Retryability::Soon => waits.next_backoff(),
        Retryability::After(asked) => waits.next_backoff().map(|wait| wait.max(asked)),
    }
}

fn waits(tries: RequestRetries) -> ExponentialBackoff {
    ExponentialBackoff {
        current_interval: tries.first,
        initial_interval: tries.first,
        max_interval: tries.within,
        // Its default would give up by a clock of its own after 15 minutes. The limit is kept above,
        // by ours.
        max_elapsed_time: None,
        ..ExponentialBackoff::default()
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

    const TRIES: RequestRetries =
        RequestRetries { count: 4, first: Duration::from_secs(1), within: Duration::from_secs(10) };

    async fn run(clock: &Slept, tries: RequestRetries, verdict: Retryability, good_at: u32) -> (u32, Result<(), u32>) {
        let done = Cell::new(0);
        let result = again(
            clock,
            tries,
            |_: &u32| verdict,
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
        assert_eq!(run(&clock, TRIES, Retryability::Soon, 3).await, (3, Ok(())));
        assert_eq!(clock.all().len(), 2);
    }

    #[tokio::test]
    async fn the_count_is_the_end_and_the_last_failure_is_given() {
        let clock = Slept::default();
        assert_eq!(run(&clock, TRIES, Retryability::Soon, 99).await, (4, Err(4)));
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
        let asked = Retryability::After(Duration::from_secs(4));
        assert_eq!(run(&clock, TRIES, asked, 99).await, (3, Err(3)), "a third wait would end after 12 s");
        assert_eq!(clock.all(), [Duration::from_secs(4); 2]);
    }

    #[tokio::test]
    async fn what_does_not_fit_is_not_begun() {
        let clock = Slept::default();
        let asked = Retryability::After(Duration::from_secs(11));
        assert_eq!(run(&clock, TRIES, asked, 99).await, (1, Err(1)));
        assert!(clock.all().is_empty());
    }

    #[tokio::test]
    async fn one_try_is_one_try() {
        let one = RequestRetries { count: 1, ..TRIES };
        assert_eq!(run(&Slept::default(), one, Retryability::Soon, 99).await, (1, Err(1)));
    }
}
