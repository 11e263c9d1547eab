//! What to do about a fault: a pure decision of policy, fault, attempts, time and jitter.

use crate::domain::fault::{Blame, Fault};
use crate::domain::names::Timestamp;
use std::time::Duration;

/// How often and how soon a job is tried again (`[retry]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries in all, at least 1.
    pub attempts: u32,
    /// The wait after the first failure; doubled after each further one.
    pub first: Duration,
    /// No wait is longer, unless the service asks for it.
    pub max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 5, first: Duration::from_secs(2), max: Duration::from_secs(600) }
    }
}

/// A service that asks for more than this is taken to be wrong (an absurd `Retry-After`).
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// What becomes of a job that met a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// It is tried again then; `attempts` is what it has used.
    Again {
        /// Not before.
        at: Timestamp,
        /// Used up so far, this one included where it counts.
        attempts: u32,
    },
    /// It has failed.
    Fail,
    /// It waits for a person.
    Ask,
}

/// Decides. `attempts` are those used before this fault; `in_a_row` is how many faults of any kind
/// this job met since it last got on, and only stretches the wait; `jitter` is from 0 to 1.
///
/// Laws: never before half of the wait; never after it, unless `Retry-After` says so, and never
/// before that; the job's own faults end after `policy.attempts`; the service's never do.
pub fn decide(
    policy: &RetryPolicy,
    fault: &Fault,
    attempts: u32,
    in_a_row: u32,
    now: Timestamp,
    jitter: f64,
) -> RetryDecision {
    let asked = fault.retry_after().unwrap_or_default().min(LONGEST_RETRY_AFTER);
    let at = now.after(wait(policy, in_a_row, jitter).max(asked));
    match fault.blame() {
        Blame::Job => RetryDecision::Fail,
        Blame::Person => RetryDecision::Ask,
        Blame::Passing if attempts + 1 >= policy.attempts => RetryDecision::Fail,
        Blame::Passing => RetryDecision::Again { at, attempts: attempts + 1 },
        Blame::Service | Blame::Key | Blame::World => RetryDecision::Again { at, attempts },
    }
}

/// The wait after `earlier` failures in a row: `first` doubled each time up to `max`, of which the
/// upper half is left to chance so that jobs that failed together do not come back together.
pub fn wait(policy: &RetryPolicy, earlier: u32, jitter: f64) -> Duration {
    let doubled = policy.first.saturating_mul(2_u32.saturating_pow(earlier.min(31)));
    let whole = doubled.min(policy.max);
    let half = whole / 2;
    half + half.mul_f64(jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fault::FaultKind;
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = FaultKind> {
        prop_oneof![
            (400_u16..500).prop_map(|status| FaultKind::Refused { status }),
            Just(FaultKind::Barred { status: 401 }),
            proptest::option::of(any::<u64>()).prop_map(|ms| FaultKind::Throttled { retry_after_ms: ms }),
            Just(FaultKind::Unreachable),
            Just(FaultKind::Broken),
            Just(FaultKind::Unknown),
            (400_u16..600).prop_map(|code| FaultKind::Dead { code }),
            Just(FaultKind::Gone),
            Just(FaultKind::Stuck),
            Just(FaultKind::Unreadable),
            Just(FaultKind::Template),
            Just(FaultKind::Unwritable),
            Just(FaultKind::FolderAway),
            Just(FaultKind::Held),
            Just(FaultKind::Budget),
            Just(FaultKind::Window),
            Just(FaultKind::Asks),
            Just(FaultKind::Bug),
        ]
    }

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
            let waited = wait(&policy, earlier, jitter);
            let whole = policy.first.saturating_mul(2_u32.saturating_pow(earlier.min(31))).min(policy.max);
            prop_assert!(waited >= whole / 2);
            prop_assert!(waited <= whole + Duration::from_nanos(1));
        }

        #[test]
        fn the_wait_never_shrinks(policy in policies(), earlier in 0_u32..60, jitter in 0.0..1.0_f64) {
            prop_assert!(wait(&policy, earlier + 1, jitter) >= wait(&policy, earlier, jitter));
        }

        #[test]
        fn a_verdict_keeps_the_laws(
            policy in policies(), kind in kinds(), attempts in 0_u32..30, row in 0_u32..30, jitter in 0.0..1.0_f64,
        ) {
            let now = Timestamp(1_000_000);
            let fault = Fault::new(kind, "words", now);
            let verdict = decide(&policy, &fault, attempts, row, now, jitter);
            match (fault.blame(), verdict) {
                (Blame::Job, verdict) => prop_assert_eq!(verdict, RetryDecision::Fail),
                (Blame::Person, verdict) => prop_assert_eq!(verdict, RetryDecision::Ask),
                (Blame::Passing, RetryDecision::Fail) => prop_assert!(attempts + 1 >= policy.attempts),
                (Blame::Passing, RetryDecision::Again { attempts: used, .. }) => {
                    prop_assert_eq!(used, attempts + 1);
                    prop_assert!(used < policy.attempts);
                }
                (_, RetryDecision::Again { at, attempts: used }) => {
                    prop_assert_eq!(used, attempts, "an outage uses no attempt");
                    let asked = fault.retry_after().unwrap_or_default().min(LONGEST_RETRY_AFTER);
                    prop_assert!(at.since(now) >= Duration::from_millis(u64::try_from(asked.as_millis()).unwrap()));
                    prop_assert!(at.since(now) <= asked.max(policy.max));
                }
                (blame, verdict) => prop_assert!(false, "{blame:?} gave {verdict:?}"),
            }
        }
    }
}
