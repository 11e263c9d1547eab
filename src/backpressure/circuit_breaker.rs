//! The circuit breaker of a service: whether anything may be sent to it now. Pure; it is told what was answered.

use super::backoff::retry_wait;
use super::retry_after;
use crate::clock::Uptime;
use crate::domain::fault::{Blame, Fault, FaultKind};
use crate::domain::retry::RetryPolicy;
use std::time::Duration;

/// So many wrong answers in a row, with none right between, and the service is taken to be out.
const WRONG_IN_A_ROW: u32 = 3;

/// So many equal refusals in a row, with nothing accepted between, and a person is asked instead of
/// failing a whole archive for one wrong parameter.
const REFUSED_IN_A_ROW: u32 = 10;

/// What may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CircuitState {
    Closed,
    /// One trial (a list of one), to see whether the outage is over.
    HalfOpen,
    /// Nothing until then.
    Open(Uptime),
    /// Nothing that submits, until a person has acted and the configuration is read anew.
    Refused,
}

/// What is known of a service's health.
#[derive(Debug)]
pub struct CircuitBreaker {
    policy: RetryPolicy,
    open: Option<OpenCircuit>,
    /// Closed by a trial, and nothing has got through for a job since: a service may list well and still
    /// take nothing.
    doubted: Option<OpenCircuit>,
    /// Wrong answers since the last right one for a job.
    wrong: u32,
    refusals: u32,
    refusal: Option<(u16, String)>,
    careful: bool,
    /// Times that our key or account was refused since a create was last accepted.
    barred: u32,
}

#[derive(Debug)]
struct OpenCircuit {
    until: Uptime,
    /// Until then the service wants nothing: no good answer to what was on its way closes it before.
    firm: Uptime,
    trials: u32,
    since: Uptime,
    fault: Fault,
}

impl CircuitBreaker {
    /// Closed. Probes of an outage come after `policy`'s waits.
    pub fn new(policy: RetryPolicy) -> Self {
        Self { policy, open: None, doubted: None, wrong: 0, refusals: 0, refusal: None, careful: false, barred: 0 }
    }

    /// A person has acted: what was asked is taken to be answered, and a service that is out is tried at once, unless
    /// it said itself until when. Of another client for it (a new key, a new address) nothing is known yet, but
    /// creates go on one at a time where one is unknown.
    pub fn configured_anew(&mut self, policy: RetryPolicy, is_same_client: bool) {
        self.policy = policy;
        (self.refusals, self.refusal) = (0, None);
        let named = |open: &&mut OpenCircuit| matches!(open.fault.kind, FaultKind::Throttled { .. });
        if let Some(open) = self.open.as_mut().filter(|open| !named(open)) {
            (open.until, open.firm) = (open.since, open.since);
        }
        if !is_same_client {
            *self = Self { careful: self.careful, ..Self::new(policy) };
        }
    }

    /// What may be sent now.
    pub fn state(&self, now: Uptime) -> CircuitState {
        match &self.open {
            Some(open) if now < open.until => CircuitState::Open(open.until),
            Some(_) => CircuitState::HalfOpen,
            None if self.refusals >= REFUSED_IN_A_ROW => CircuitState::Refused,
            None => CircuitState::Closed,
        }
    }

    /// Whether creates go one at a time: one is unknown, and none has been accepted since.
    pub fn is_careful(&self) -> bool {
        self.careful
    }

    /// Whether nothing may be sent now but a trial.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Why it is open, or was until a trial closed it, and for how long nothing has got through.
    pub fn outage(&self, now: Uptime) -> Option<(&Fault, Duration)> {
        let out = self.open.as_ref().or(self.doubted.as_ref());
        out.map(|open| (&open.fault, now.since(open.since)))
    }

    /// The words of the refusal that a person is asked about.
    pub fn question(&self) -> Option<&str> {
        let asks = self.refusals >= REFUSED_IN_A_ROW;
        self.refusal.as_ref().filter(|_| asks).map(|(_, words)| words.as_str())
    }

    /// A job's request was answered as it should be. One that was on its way when the service asked us to
    /// be slower, or refused our key, does not take that back. `true` if that ends an outage: worth
    /// saying, once.
    pub fn answered(&mut self, now: Uptime) -> bool {
        self.wrong = 0;
        let closed = self.open.take_if(|open| open.firm <= now).is_some();
        let doubted = self.open.is_none() && self.doubted.take().is_some();
        // Where money is wanted, reads and uploads may go well all the while.
        (closed || doubted) && self.barred == 0
    }

    /// The list could be read: jobs may try. The outage is over only when one of them gets through, and
    /// what they meet before opens the circuit at once and for longer.
    pub fn listed(&mut self, now: Uptime) {
        if let Some(open) = self.open.take_if(|open| open.firm <= now) {
            self.doubted = Some(open);
        }
    }

    /// A create was accepted. `true` as for [`CircuitBreaker::answered`].
    pub fn created(&mut self, now: Uptime) -> bool {
        self.careful = false;
        let was_barred = std::mem::take(&mut self.barred) > 0;
        self.refusals = 0;
        self.refusal = None;
        self.answered(now) || was_barred
    }

    /// A trial failed too, or a job met this. `jitter` is from 0 to 1. `true` if that begins an outage: worth
    /// saying, once.
    pub fn failed(&mut self, fault: &Fault, now: Uptime, jitter: f64) -> bool {
        match fault.blame() {
            Blame::Service => {
                self.careful |= fault.kind == FaultKind::Unknown;
                self.wrong += 1;
                let at_once = matches!(fault.kind, FaultKind::Unreachable | FaultKind::Throttled { .. });
                let is_out = self.open.is_some() || self.doubted.is_some();
                let opens = at_once || is_out || self.wrong >= WRONG_IN_A_ROW;
                opens && self.open(fault, now, jitter)
            }
            Blame::Key => {
                // A list may be had where a create is refused for want of money: a good trial is not
                // the end of it, so one create at a time finds out, ever more rarely.
                self.careful = true;
                self.barred += 1;
                self.open(fault, now, jitter) && self.barred == 1
            }
            _ => {
                if let FaultKind::Refused { status } = fault.kind {
                    self.refused(status, &fault.words);
                }
                false
            }
        }
    }

    fn refused(&mut self, status: u16, words: &str) {
        self.wrong = 0; // it answers
        let same = self.refusal.as_ref().is_some_and(|(s, w)| *s == status && w == words);
        self.refusals = if same { self.refusals + 1 } else { 1 };
        self.refusal = Some((status, words.to_owned()));
    }

    fn open(&mut self, fault: &Fault, now: Uptime, jitter: f64) -> bool {
        let out = self.open.take().or(self.doubted.take());
        let begins = out.is_none();
        let (trials, since, before, firm) =
            out.map_or((0, now, now, now), |open| (open.trials + 1, open.since, open.until, open.firm));
        // Faults of requests that were on their way when it opened are no further trials.
        let trials = if now < before { trials.saturating_sub(1) } else { trials };
        let trials = if fault.blame() == Blame::Key { trials.max(self.barred.saturating_sub(1)) } else { trials };
        let wait = retry_after::obeyed(retry_wait(&self.policy, trials, jitter), fault.retry_after());
        let until = now.after(wait).max(before);
        let is_firm = matches!(fault.kind, FaultKind::Throttled { .. } | FaultKind::Barred { .. });
        let firm = if is_firm { until } else { firm };
        self.open = Some(OpenCircuit { until, firm, trials, since, fault: fault.clone() });
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::Timestamp;

    fn at(seconds: u64) -> Uptime {
        Uptime(Duration::from_secs(seconds))
    }

    fn fault(kind: FaultKind) -> Fault {
        Fault::new(kind, "words", Timestamp(0))
    }

    fn breaker() -> CircuitBreaker {
        CircuitBreaker::new(RetryPolicy { attempts: 5, first: Duration::from_secs(4), max: Duration::from_secs(60) })
    }

    #[test]
    fn an_unreachable_service_is_probed_after_growing_waits_and_one_good_answer_ends_the_outage() {
        let mut breaker = breaker();
        assert!(breaker.failed(&fault(FaultKind::Unreachable), at(0), 1.0));
        assert_eq!(breaker.state(at(0)), CircuitState::Open(at(4)));
        assert_eq!(breaker.state(at(4)), CircuitState::HalfOpen);
        assert!(!breaker.failed(&fault(FaultKind::Unreachable), at(4), 1.0), "said once");
        assert_eq!(breaker.state(at(4)), CircuitState::Open(at(12)));
        breaker.answered(at(5));
        assert_eq!(breaker.state(at(5)), CircuitState::Closed);
    }

    #[test]
    fn a_person_who_has_acted_has_it_probed_at_once_but_what_the_service_asked_for_holds() {
        let policy = RetryPolicy { attempts: 5, first: Duration::from_secs(4), max: Duration::from_secs(60) };
        let mut barred = breaker();
        barred.failed(&fault(FaultKind::Barred { status: 401 }), at(1), 1.0);
        barred.configured_anew(policy, true);
        assert_eq!(barred.state(at(1)), CircuitState::HalfOpen);
        let mut throttled = breaker();
        throttled.failed(&fault(FaultKind::Throttled { retry_after_ms: Some(50_000) }), at(1), 1.0);
        throttled.configured_anew(policy, true);
        assert_eq!(throttled.state(at(2)), CircuitState::Open(at(51)));
        let mut unknown = breaker();
        unknown.failed(&fault(FaultKind::Unknown), at(1), 1.0);
        unknown.failed(&fault(FaultKind::Unreachable), at(1), 1.0);
        unknown.configured_anew(policy, false);
        assert!(
            unknown.state(at(1)) == CircuitState::Closed && unknown.is_careful(),
            "of another client nothing is known"
        );
    }

    #[test]
    fn one_wrong_answer_is_no_outage_and_three_in_a_row_are() {
        let mut breaker = breaker();
        breaker.failed(&fault(FaultKind::Broken), at(0), 0.5);
        breaker.failed(&fault(FaultKind::Broken), at(0), 0.5);
        breaker.answered(at(0));
        breaker.failed(&fault(FaultKind::Broken), at(1), 0.5);
        breaker.failed(&fault(FaultKind::Broken), at(1), 0.5);
        assert_eq!(breaker.state(at(1)), CircuitState::Closed);
        breaker.failed(&fault(FaultKind::Broken), at(1), 0.5);
        assert!(matches!(breaker.state(at(1)), CircuitState::Open(_)));
    }

    #[test]
    fn retry_after_is_never_undercut_by_a_later_shorter_one() {
        let mut breaker = breaker();
        breaker.failed(&fault(FaultKind::Throttled { retry_after_ms: Some(100_000) }), at(0), 0.0);
        breaker.failed(&fault(FaultKind::Throttled { retry_after_ms: Some(1_000) }), at(1), 0.0);
        breaker.failed(&fault(FaultKind::Broken), at(2), 0.0);
        breaker.answered(at(3));
        assert_eq!(breaker.state(at(99)), CircuitState::Open(at(100)));
        assert_eq!(breaker.state(at(100)), CircuitState::HalfOpen);
        breaker.answered(at(100));
        assert_eq!(breaker.state(at(100)), CircuitState::Closed);
    }

    #[test]
    fn an_account_without_money_is_said_once_and_asked_ever_more_rarely_though_its_lists_can_be_had() {
        let mut breaker = breaker();
        assert!(breaker.failed(&fault(FaultKind::Barred { status: 402 }), at(0), 1.0));
        assert_eq!(breaker.state(at(0)), CircuitState::Open(at(4)));
        breaker.listed(at(4));
        assert!(breaker.is_careful());
        assert!(!breaker.failed(&fault(FaultKind::Barred { status: 402 }), at(4), 1.0), "said once");
        assert_eq!(breaker.state(at(4)), CircuitState::Open(at(12)));
        breaker.answered(at(12));
        assert!(!breaker.failed(&fault(FaultKind::Barred { status: 402 }), at(12), 1.0), "a read is no create");
        assert_eq!(breaker.state(at(12)), CircuitState::Open(at(28)));
        breaker.listed(at(28));
        breaker.created(at(28));
        assert!(breaker.failed(&fault(FaultKind::Barred { status: 402 }), at(29), 1.0));
    }

    #[test]
    fn a_service_that_lists_well_and_takes_nothing_stays_out() {
        let mut breaker = breaker();
        for _ in 0..WRONG_IN_A_ROW {
            breaker.failed(&fault(FaultKind::Broken), at(0), 1.0);
        }
        assert_eq!(breaker.state(at(0)), CircuitState::Open(at(4)));
        breaker.listed(at(4));
        assert_eq!(breaker.state(at(4)), CircuitState::Closed);
        assert_eq!(breaker.outage(at(5)).map(|(_, lasted)| lasted), Some(Duration::from_secs(5)));
        assert!(!breaker.failed(&fault(FaultKind::Broken), at(5), 1.0), "said once");
        assert_eq!(breaker.state(at(5)), CircuitState::Open(at(13)), "one is enough now, and the wait has grown");
        breaker.listed(at(13));
        assert!(breaker.answered(at(14)), "over");
        assert!(!breaker.answered(at(14)), "said once");
        assert_eq!(breaker.outage(at(14)), None);
    }

    #[test]
    fn the_same_refusal_again_and_again_asks_a_person() {
        let mut breaker = breaker();
        for _ in 0..REFUSED_IN_A_ROW {
            assert_eq!(breaker.state(at(0)), CircuitState::Closed);
            breaker.failed(&fault(FaultKind::Refused { status: 422 }), at(0), 0.0);
        }
        assert_eq!(breaker.state(at(0)), CircuitState::Refused);
        assert_eq!(breaker.question(), Some("words"));
    }

    #[test]
    fn after_an_unknown_create_they_go_one_at_a_time_until_one_is_accepted() {
        let mut breaker = breaker();
        breaker.failed(&fault(FaultKind::Unknown), at(0), 0.0);
        breaker.answered(at(0));
        assert!(breaker.is_careful());
        breaker.created(at(0));
        assert!(!breaker.is_careful());
    }

    #[test]
    fn a_retry_after_of_zero_takes_away_no_backoff() {
        let mut breaker = breaker();
        let mut now = at(0);
        for expected in [4, 8, 16, 32, 60, 60] {
            breaker.failed(&fault(FaultKind::Throttled { retry_after_ms: Some(0) }), now, 1.0);
            let until = now.after(Duration::from_secs(expected));
            assert_eq!(breaker.state(now), CircuitState::Open(until));
            now = until;
        }
    }
}
