//! Decides what to do about a fault: a pure function of policy, fault and attempts. `backpressure/backoff.rs`
//! determines how long to wait.

use crate::domain::fault::{Blame, Fault};
use crate::domain::names::Timestamp;
use std::time::Duration;

/// How often and how soon an attempt is repeated (`[retry]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The total number of attempts, at least 1.
    pub attempts: u32,
    /// The wait after the first failure; it doubles with each further one.
    pub first: Duration,
    /// The longest wait, unless the service asks for a longer one.
    pub max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 5, first: Duration::from_secs(2), max: Duration::from_secs(600) }
    }
}

/// What happens to a job after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// The job makes another attempt.
    Again {
        /// The earliest time of the attempt.
        at: Timestamp,
        /// The attempts used so far, including this one if it counts.
        attempts: u32,
    },
    Fail,
    /// The job waits for a person.
    Ask,
}

/// Decides about a fault. `attempts` are those used before this fault, `at` is when the next attempt would be made.
///
/// Laws: faults of the job itself end after `policy.attempts`; those of the service never end it.
pub fn decide(policy: &RetryPolicy, fault: &Fault, attempts: u32, at: Timestamp) -> RetryDecision {
    match fault.blame() {
        Blame::Job => RetryDecision::Fail,
        Blame::Person => RetryDecision::Ask,
        Blame::Passing if attempts + 1 >= policy.attempts => RetryDecision::Fail,
        Blame::Passing => RetryDecision::Again { at, attempts: attempts + 1 },
        Blame::Service | Blame::Key | Blame::World => RetryDecision::Again { at, attempts },
    }
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
            Just(FaultKind::Shortage),
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
        fn a_decision_keeps_the_laws(policy in policies(), kind in kinds(), attempts in 0_u32..30) {
            let at = Timestamp(1_000_000);
            let fault = Fault::new(kind, "words", at);
            let decision = decide(&policy, &fault, attempts, at);
            match (fault.blame(), decision) {
                (Blame::Job, decision) => prop_assert_eq!(decision, RetryDecision::Fail),
                (Blame::Person, decision) => prop_assert_eq!(decision, RetryDecision::Ask),
                (Blame::Passing, RetryDecision::Fail) => prop_assert!(attempts + 1 >= policy.attempts),
                (Blame::Passing, RetryDecision::Again { attempts: used, .. }) => {
                    prop_assert_eq!(used, attempts + 1);
                    prop_assert!(used < policy.attempts);
                }
                (_, RetryDecision::Again { attempts: used, .. }) => {
                    prop_assert_eq!(used, attempts, "an outage uses no attempt");
                }
                (blame, decision) => prop_assert!(false, "{blame:?} gave {decision:?}"),
            }
        }
    }
}
