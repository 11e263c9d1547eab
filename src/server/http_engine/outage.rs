//! Leaves an engine alone that goes on failing, and tries it with one request from time to time.

use crate::backpressure::circuit_breaker::{CircuitBreaker, CircuitState};
use crate::clock::Uptime;
use crate::domain::fault::Fault;
use crate::domain::retry::RetryPolicy;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a request waits while another one tries whether an outage is over.
const TRIAL: Duration = Duration::from_secs(5);

/// Decides whether a request may be sent to an engine.
#[derive(Debug)]
pub struct OutageGuard {
    state: Mutex<GuardState>,
    first_wait: Duration,
}

#[derive(Debug)]
struct GuardState {
    breaker: CircuitBreaker,
    /// Whether a request is being sent to see whether an outage is over.
    has_trial: bool,
}

/// Why nothing may be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOutage {
    /// What failed.
    pub reason: String,
    /// When to ask again.
    pub wait: Duration,
}

impl OutageGuard {
    /// Trials of an outage follow the waits of `policy`.
    pub fn new(policy: RetryPolicy) -> Self {
        let state = Mutex::new(GuardState { breaker: CircuitBreaker::new(policy), has_trial: false });
        Self { state, first_wait: policy.first }
    }

    /// Checks whether a request may be sent now. During an outage one is, from time to time: the returned value then
    /// holds the trial.
    ///
    /// # Errors
    /// The outage.
    pub fn admit(&self, now: Uptime) -> Result<Option<OutageTrial<'_>>, EngineOutage> {
        let mut state = self.state();
        match state.breaker.state(now) {
            CircuitState::Closed | CircuitState::Refused => Ok(None),
            CircuitState::HalfOpen if !state.has_trial => {
                state.has_trial = true;
                Ok(Some(OutageTrial(self)))
            }
            CircuitState::HalfOpen => Err(state.outage(now, TRIAL)),
            CircuitState::Open(until) => Err(state.outage(now, until.since(now))),
        }
    }

    /// Checks whether a request may be sent now, without sending one.
    ///
    /// # Errors
    /// The outage.
    pub fn check(&self, now: Uptime) -> Result<(), EngineOutage> {
        let state = self.state();
        match state.breaker.state(now) {
            CircuitState::Open(until) => Err(state.outage(now, until.since(now))),
            CircuitState::HalfOpen if state.has_trial => Err(state.outage(now, TRIAL)),
            CircuitState::Closed | CircuitState::HalfOpen | CircuitState::Refused => Ok(()),
        }
    }

    /// Records that the engine has answered, whatever it said. Returns `true` if this ends an outage.
    pub fn answered(&self, now: Uptime) -> bool {
        self.state().breaker.created(now)
    }

    /// Records that the engine, or the way to it, failed. Returns whether this begins an outage, and when to try again.
    pub fn failed(&self, fault: &Fault, now: Uptime) -> (bool, Duration) {
        let mut state = self.state();
        let begins = state.breaker.failed(fault, now, fastrand::f64());
        let wait = match state.breaker.state(now) {
            CircuitState::Open(until) => until.since(now),
            _ => self.first_wait,
        };
        (begins, wait)
    }

    fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GuardState {
    fn outage(&self, now: Uptime, wait: Duration) -> EngineOutage {
        let outage = self.breaker.outage(now);
        let reason = outage.map_or_else(String::new, |(fault, _)| fault.words.clone());
        EngineOutage { reason, wait }
    }
}

/// A request that shows whether an outage is over.
pub struct OutageTrial<'g>(&'g OutageGuard);

impl Drop for OutageTrial<'_> {
    fn drop(&mut self) {
        self.0.state().has_trial = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fault::FaultKind;
    use crate::domain::names::Timestamp;

    #[test]
    fn during_an_outage_one_request_tries_it() {
        let second = Duration::from_secs(1);
        let guard = OutageGuard::new(RetryPolicy { attempts: 1, first: second, max: second });
        let (now, later) = (Uptime(Duration::ZERO), Uptime(second * 2));
        assert!(guard.admit(now).unwrap().is_none());
        let fault = Fault::new(FaultKind::Unreachable, "no route", Timestamp(0));
        assert!(guard.failed(&fault, now).0);
        assert_eq!(guard.admit(now).err().unwrap().reason, "no route");
        let trial = guard.admit(later).unwrap();
        assert!(trial.is_some() && guard.check(later).is_err() && guard.admit(later).is_err());
        drop(trial);
        assert!(guard.check(later).is_ok());
        assert!(guard.answered(later) && !guard.answered(later));
        assert!(guard.admit(later).unwrap().is_none());
    }
}
