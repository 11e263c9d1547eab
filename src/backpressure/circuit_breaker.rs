//! The circuit breaker of a service: decides whether anything may be sent to it. Pure; it is told of every answer.

use super::backoff::retry_wait;
use super::retry_after;
use crate::clock::Uptime;
use crate::domain::fault::{Blame, Fault, FaultKind};
use crate::domain::retry::RetryPolicy;
use std::time::Duration;

/// How many wrong answers in a row open the circuit.
const WRONG_IN_A_ROW: u32 = 3;

/// How many equal refusals in a row, without an accepted create between them, make scribed ask a person: a whole
/// archive must not fail because of one wrong parameter.
const REFUSED_IN_A_ROW: u32 = 10;

/// How many answers in a row that may be those of other recordings make scribed ask a person: what is bought at a service
/// that mixes up its records is of no use.
const MAX_MISMATCHES_IN_A_ROW: u32 = 10;

/// What may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CircuitState {
    Closed,
    /// One trial, to see whether the outage is over.
    HalfOpen,
    /// Nothing until the given moment.
    Open(Uptime),
    /// No uploads and no creates until a person has acted and the configuration is read again.
    Refused,
}

/// What is known about the state of a service.
#[derive(Debug)]
pub struct CircuitBreaker {
    policy: RetryPolicy,
    open: Option<OpenCircuit>,
    /// Set when a trial has closed the circuit, until a job's request succeeds: a service may answer lists and still
    /// refuse everything else.
    doubted: Option<OpenCircuit>,
    /// Wrong answers since a job's request last succeeded.
    wrong: u32,
    /// The newest fault since a job's request last succeeded, and when the first one came.
    failing: Option<(Fault, Uptime)>,
    refusals: u32,
    refusal: Option<(u16, String)>,
    /// Answers that may be those of other recordings, since one was that of its own.
    mismatches: u32,
    careful: bool,
    /// How many times the key or the account was refused since a create was last accepted.
    barred: u32,
}

#[derive(Debug)]
struct OpenCircuit {
    until: Uptime,
    /// Until this moment, which the service asked for, no successful answer closes the circuit.
    firm: Uptime,
    trials: u32,
    since: Uptime,
    fault: Fault,
}

impl CircuitBreaker {
    /// Makes a closed circuit breaker. Trials of an outage follow the waits of `policy`.
    pub fn new(policy: RetryPolicy) -> Self {
        Self {
            policy,
            open: None,
            doubted: None,
            wrong: 0,
            failing: None,
            refusals: 0,
            refusal: None,
            mismatches: 0,
            careful: false,
            barred: 0,
        }
    }

    /// Applies a changed configuration. Questions to a person count as answered. The next trial of an outage may be
    /// sent at once, unless the service named a time itself. For another client (a new key or address) everything
    /// starts from the beginning, except that creates still go one at a time while one is unknown.
    pub fn reconfigure(&mut self, policy: RetryPolicy, is_same_client: bool) {
        self.policy = policy;
        (self.refusals, self.refusal, self.mismatches) = (0, None, 0);
        let is_throttled = |open: &&mut OpenCircuit| matches!(open.fault.kind, FaultKind::Throttled { .. });
        if let Some(open) = self.open.as_mut().filter(|open| !is_throttled(open)) {
            (open.until, open.firm) = (open.since, open.since);
        }
        if !is_same_client {
            *self = Self { careful: self.careful, ..Self::new(policy) };
        }
    }

    /// Returns what may be sent now.
    pub fn state(&self, now: Uptime) -> CircuitState {
        match &self.open {
            Some(open) if now < open.until => CircuitState::Open(open.until),
            Some(_) => CircuitState::HalfOpen,
            None if self.question().is_some() => CircuitState::Refused,
            None => CircuitState::Closed,
        }
    }

    /// Whether creates go one at a time: after an unknown create or a refused key, until a create is accepted.
    pub fn is_careful(&self) -> bool {
        self.careful
    }

    /// Whether nothing but a trial may be sent.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns why the circuit is open, or was open until a trial closed it, and for how long nothing has succeeded.
    pub fn outage(&self, now: Uptime) -> Option<(&Fault, Duration)> {
        let out = self.open.as_ref().or(self.doubted.as_ref());
        out.map(|open| (&open.fault, now.since(open.since)))
    }

    /// Returns the newest fault since a job's request last succeeded, and how long ago the first one came. These may be
    /// too few for an outage.
    pub fn failing(&self, now: Uptime) -> Option<(&Fault, Duration)> {
        self.failing.as_ref().map(|(fault, since)| (fault, now.since(*since)))
    }

    /// Returns what a person is asked about, as text.
    pub fn question(&self) -> Option<String> {
        let refusal = self.refusal.as_ref().filter(|_| self.refusals >= REFUSED_IN_A_ROW);
        if let Some((_, words)) = refusal {
            return Some(format!("it rejects one file after the other: {words}"));
        }
        (self.mismatches >= MAX_MISMATCHES_IN_A_ROW).then(|| {
            format!(
                "its last {} answers may all be those of other recordings (`scribed jobs --stage submitted` lists them); \
                 scribed buys nothing there until `scribed reload`",
                self.mismatches
            )
        })
    }

    /// Records that an answer was that of its recording.
    pub fn matched(&mut self) {
        self.mismatches = 0;
    }

    /// Records that a job's request succeeded. A request that was sent before the service asked for fewer requests or
    /// refused the key does not close the circuit. Returns `true` if this ends an outage, which is logged once.
    pub fn answered(&mut self, now: Uptime) -> bool {
        (self.wrong, self.failing) = (0, None);
        let closed = self.open.take_if(|open| open.firm <= now).is_some();
        let doubted = self.open.is_none() && self.doubted.take().is_some();
        // If the account lacks money, reads and uploads may still succeed.
        (closed || doubted) && self.barred == 0
    }

    /// Records that a list could be read: jobs may be tried. The outage ends only when a job's request succeeds; a
    /// failure before that opens the circuit at once, for a longer time.
    pub fn listed(&mut self, now: Uptime) {
        if let Some(open) = self.open.take_if(|open| open.firm <= now) {
            self.doubted = Some(open);
        }
    }

    /// Records that a create was accepted. Returns `true` as [`CircuitBreaker::answered`] does.
    pub fn created(&mut self, now: Uptime) -> bool {
        self.careful = false;
        let was_barred = std::mem::take(&mut self.barred) > 0;
        self.refusals = 0;
        self.refusal = None;
        self.answered(now) || was_barred
    }

    /// Records that a trial or a job's request failed. `jitter` is from 0 to 1. Returns `true` if this begins an
    /// outage, which is logged once.
    pub fn failed(&mut self, fault: &Fault, now: Uptime, jitter: f64) -> bool {
        if matches!(fault.blame(), Blame::Service | Blame::Key) {
            let since = self.failing.take().map_or(now, |(_, since)| since);
            self.failing = Some((fault.clone(), since));
        }
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
                // Lists may work while creates are refused for lack of money, so a successful trial does not end the
                // outage. One create at a time is tried, at growing intervals.
                self.careful = true;
                self.barred += 1;
                self.open(fault, now, jitter) && self.barred == 1
            }
            _ => {
                match fault.kind {
                    FaultKind::Refused { status } => self.refused(status, &fault.words),
                    FaultKind::Mismatch => self.mismatches += 1,
                    _ => {}
                }
                false
            }
        }
    }

    fn refused(&mut self, status: u16, words: &str) {
        (self.wrong, self.failing) = (0, None); // the service answers
        let is_same = self.refusal.as_ref().is_some_and(|(s, w)| *s == status && w == words);
        self.refusals = if is_same { self.refusals + 1 } else { 1 };
        self.refusal = Some((status, words.to_owned()));
    }

    fn open(&mut self, fault: &Fault, now: Uptime, jitter: f64) -> bool {
        let outage = self.open.take().or(self.doubted.take());
        let begins = outage.is_none();
        let (trials, since, before, firm) =
            outage.map_or((0, now, now, now), |open| (open.trials + 1, open.since, open.until, open.firm));
        // Failures of requests that were sent before the circuit opened do not count as trials.
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
        barred.reconfigure(policy, true);
        assert_eq!(barred.state(at(1)), CircuitState::HalfOpen);
        let mut throttled = breaker();
        throttled.failed(&fault(FaultKind::Throttled { retry_after_ms: Some(50_000) }), at(1), 1.0);
        throttled.reconfigure(policy, true);
        assert_eq!(throttled.state(at(2)), CircuitState::Open(at(51)));
        let mut unknown = breaker();
        unknown.failed(&fault(FaultKind::Unknown), at(1), 1.0);
        unknown.failed(&fault(FaultKind::Unreachable), at(1), 1.0);
        unknown.reconfigure(policy, false);
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
        assert_eq!(breaker.question().as_deref(), Some("it rejects one file after the other: words"));
    }

    #[test]
    fn answers_of_other_recordings_again_and_again_ask_a_person() {
        let mut breaker = breaker();
        for _ in 1..MAX_MISMATCHES_IN_A_ROW {
            breaker.failed(&fault(FaultKind::Mismatch), at(0), 0.0);
            breaker.created(at(0));
        }
        breaker.matched();
        for _ in 0..MAX_MISMATCHES_IN_A_ROW {
            assert_eq!(breaker.state(at(0)), CircuitState::Closed);
            breaker.failed(&fault(FaultKind::Mismatch), at(0), 0.0);
            breaker.created(at(0));
        }
        assert_eq!(breaker.state(at(0)), CircuitState::Refused, "nothing more is bought");
        breaker.reconfigure(breaker.policy, true);
        assert_eq!(breaker.state(at(0)), CircuitState::Closed, "a person has looked");
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
