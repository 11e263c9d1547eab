//! Exponential backoff. This is the only file that uses the `backoff` crate, which is unmaintained.

use crate::domain::retry::RetryPolicy;
use backoff::ExponentialBackoff;
use backoff::backoff::Backoff as _;
use std::time::Duration;

/// How waits grow from one failure to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// The wait after the first failure.
    pub first: Duration,
    /// The factor from one wait to the next.
    pub factor: f64,
    /// The longest wait.
    pub max: Duration,
}

impl Growth {
    /// Each wait is twice as long as the one before it.
    pub const fn doubling(first: Duration, max: Duration) -> Self {
        Self { first, factor: 2.0, max }
    }

    /// Returns the wait after a failure that follows `earlier` others in a row, without jitter.
    pub fn wait(&self, earlier: u32) -> Duration {
        let mut waits = ExponentialBackoff {
            current_interval: self.first,
            initial_interval: self.first,
            multiplier: self.factor,
            // The crate's own jitter cannot be seeded.
            randomization_factor: 0.0,
            max_interval: self.max,
            // Otherwise the crate gives up after a time by its own clock.
            max_elapsed_time: None,
            ..ExponentialBackoff::default()
        };
        for _ in 0..earlier.min(MAX_STEPS) {
            waits.next_backoff();
        }
        waits.current_interval.min(self.max)
    }
}

/// The most steps that are computed: by then a wait of a millisecond has grown to weeks.
const MAX_STEPS: u32 = 31;

/// Returns the wait of a job or a service after a failure that follows `earlier` others in a row. `jitter` (0 to 1)
/// decides the upper half of the wait, so that jobs that failed together are not repeated together.
pub fn retry_wait(policy: &RetryPolicy, earlier: u32, jitter: f64) -> Duration {
    let half = Growth::doubling(policy.first, policy.max).wait(earlier) / 2;
    half + half.mul_f64(jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policies() -> impl Strategy<Value = RetryPolicy> {
        (1_u32..20, 0_u64..100_000, 0_u64..1_000_000).prop_map(|(attempts, first, more)| RetryPolicy {
            attempts,
            first: Duration::from_millis(first),
            max: Duration::from_millis(first + more),
        })
    }

    proptest! {
        #[test]
        fn the_wait_is_between_half_and_whole(policy in policies(), earlier in 0_u32..100, jitter in -1.0..2.0_f64) {
            let waited = retry_wait(&policy, earlier, jitter);
            let whole = policy.first.saturating_mul(2_u32.saturating_pow(earlier.min(31))).min(policy.max);
            prop_assert!(waited + Duration::from_nanos(1) >= whole / 2);
            prop_assert!(waited <= whole);
        }

        #[test]
        fn the_wait_never_shrinks(policy in policies(), earlier in 0_u32..60, jitter in 0.0..1.0_f64) {
            prop_assert!(retry_wait(&policy, earlier + 1, jitter) >= retry_wait(&policy, earlier, jitter));
        }
    }

    #[test]
    fn it_grows_by_its_factor_up_to_the_longest() {
        let seconds = Duration::from_secs;
        let doubling = Growth::doubling(seconds(1), seconds(60));
        let waits: Vec<u64> = (0..9).map(|earlier| doubling.wait(earlier).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let thrice = Growth { factor: 3.0, ..Growth::doubling(seconds(10), seconds(6 * 3600)) };
        let waits: Vec<u64> = (0..9).map(|earlier| thrice.wait(earlier).as_secs()).collect();
        assert_eq!(waits, [10, 30, 90, 270, 810, 2430, 7290, 21_600, 21_600]);
        let endless = Growth::doubling(seconds(120), Duration::MAX);
        assert!(endless.wait(u32::MAX) > Duration::from_secs(u64::from(u32::MAX)));
        assert_eq!(Growth::doubling(seconds(9), seconds(5)).wait(0), seconds(5));
    }
}
