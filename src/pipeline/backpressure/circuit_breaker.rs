//! The line to a service: whether anything may be sent to it now. Pure; it is told what was heard.

use crate::clock::Uptime;
use crate::domain::fault::{Blame, Fault, FaultKind};
use crate::domain::retry::{LONGEST_RETRY_AFTER, RetryPolicy, wait};
use std::time::Duration;

/// So many wrong answers in a row, with none right between, and the service is taken to be out.
const WRONG_IN_A_ROW: u32 = 3;

/// So many equal refusals in a row, with nothing accepted between, and a person is asked instead of
/// failing a whole archive for one wrong parameter.
const REFUSED_IN_A_ROW: u32 = 10;

/// What may be sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CircuitState {
    /// Anything.
    Open,
    /// One look (a list of one), to see whether it is over.
    Look,
    /// Nothing until then.
    Closed(Uptime),
    /// Nothing that submits, until a person has acted and the configuration is read anew.
    Asks,
}

/// What is known of a service's health.
#[derive(Debug)]
pub struct CircuitBreaker {
    policy: RetryPolicy,
    closed: Option<Closed>,
    /// Opened by a look, and nothing has got through for a job since: a service may list well and still
    /// take nothing.
    doubted: Option<Closed>,
    /// Wrong answers since the last right one for a job.
    wrong: u32,
    refusals: u32,
    refusal: Option<(u16, String)>,
    careful: bool,
    /// Times that our key or account was refused since a create was last accepted.
    barred: u32,
}

#[derive(Debug)]
struct Closed {
    until: Uptime,
    /// Until then the service wants nothing: no good answer to what was on its way opens it before.
    firm: Uptime,
    looks: u32,
    since: Uptime,
    fault: Fault,
}

impl CircuitBreaker {
    /// An open line. Looks at a closed one come after `policy`'s waits.
    pub fn new(policy: RetryPolicy) -> Self {
        Self { policy, closed: None, doubted: None, wrong: 0, refusals: 0, refusal: None, careful: false, barred: 0 }
    }

    /// A person has acted: what was asked is taken to be answered, and a closed line is looked at at once, unless
    /// the service itself said until when. Of another way to it (a new key, a new address) nothing is known yet, but
    /// creates go on one at a time where one is unknown.
    pub fn configured_anew(&mut self, policy: RetryPolicy, is_same_way: bool) {
        self.policy = policy;
        (self.refusals, self.refusal) = (0, None);
        let named = |closed: &&mut Closed| matches!(closed.fault.kind, FaultKind::Throttled { .. });
        if let Some(closed) = self.closed.as_mut().filter(|closed| !named(closed)) {
            (closed.until, closed.firm) = (closed.since, closed.since);
        }
        if !is_same_way {
            *self = Self { careful: self.careful, ..Self::new(policy) };
        }
    }

    /// What may be sent now.
    pub fn gate(&self, now: Uptime) -> CircuitState {
        match &self.closed {
            Some(closed) if now < closed.until => CircuitState::Closed(closed.until),
            Some(_) => CircuitState::Look,
            None if self.refusals >= REFUSED_IN_A_ROW => CircuitState::Asks,
            None => CircuitState::Open,
        }
    }

    /// Whether creates go one at a time: one is unknown, and none has been accepted since.
    pub fn is_careful(&self) -> bool {
        self.careful
    }

    /// Whether nothing may be sent now but a look.
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Why it is closed, or was until a look opened it, and for how long nothing has got through.
    pub fn trouble(&self, now: Uptime) -> Option<(&Fault, Duration)> {
        let out = self.closed.as_ref().or(self.doubted.as_ref());
        out.map(|closed| (&closed.fault, now.since(closed.since)))
    }

    /// The words of the refusal that made it ask.
    pub fn question(&self) -> Option<&str> {
        let asks = self.refusals >= REFUSED_IN_A_ROW;
        self.refusal.as_ref().filter(|_| asks).map(|(_, words)| words.as_str())
    }

    /// A job's request was answered as it should be. One that was on its way when the service asked us to
    /// be slower, or refused our key, does not take that back. `true` if that ends an outage: worth
    /// saying, once.
    pub fn heard_good(&mut self, now: Uptime) -> bool {
        self.wrong = 0;
        let opened = self.closed.take_if(|closed| closed.firm <= now).is_some();
        let doubted = self.closed.is_none() && self.doubted.take().is_some();
        // Where money is wanted, reads and uploads may go well all the while.
        (opened || doubted) && self.barred == 0
    }

    /// The list could be read: jobs may try. The outage is over only when one of them gets through, and
    /// what they meet before closes the line at once and for longer.
    pub fn looked_good(&mut self, now: Uptime) {
        if let Some(closed) = self.closed.take_if(|closed| closed.firm <= now) {
            self.doubted = Some(closed);
        }
    }

    /// A create was accepted. `true` as for [`CircuitBreaker::heard_good`].
    pub fn accepted(&mut self, now: Uptime) -> bool {
        self.careful = false;
        let was_barred = std::mem::take(&mut self.barred) > 0;
        self.refusals = 0;
        self.refusal = None;
        self.heard_good(now) || was_barred
    }

    /// A look at a closed line failed too, or a job met this. `jitter` is from 0 to 1. `true` if the
    /// line was open before and is closed now: worth saying, once.
    pub fn heard_fault(&mut self, fault: &Fault, now: Uptime, jitter: f64) -> bool {
        match fault.blame() {
            Blame::Service => {
                self.careful |= fault.kind == FaultKind::Unknown;
                self.wrong += 1;
                let at_once = matches!(fault.kind, FaultKind::Unreachable | FaultKind::Throttled { .. });
                let is_out = self.closed.is_some() || self.doubted.is_some();
                let closes = at_once || is_out || self.wrong >= WRONG_IN_A_ROW;
                closes && self.close(fault, now, jitter)
            }
            Blame::Key => {
                // A list may be had where a create is refused for want of money: a good look is not
                // the end of it, so one create at a time finds out, ever more rarely.
                self.careful = true;
                self.barred += 1;
                self.close(fault, now, jitter) && self.barred == 1
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

    fn close(&mut self, fault: &Fault, now: Uptime, jitter: f64) -> bool {
        let out = self.closed.take().or(self.doubted.take());
        let was_open = out.is_none();
        let (looks, since, before, firm) =
            out.map_or((0, now, now, now), |closed| (closed.looks + 1, closed.since, closed.until, closed.firm));
        // Faults of requests that were on their way when it closed are no further looks.
        let looks = if now < before { looks.saturating_sub(1) } else { looks };
        let looks = if fault.blame() == Blame::Key { looks.max(self.barred.saturating_sub(1)) } else { looks };
        let asked = fault.retry_after().unwrap_or_default().min(LONGEST_RETRY_AFTER);
        let until = now.after(wait(&self.policy, looks, jitter).max(asked)).max(before);
        let is_firm = matches!(fault.kind, FaultKind::Throttled { .. } | FaultKind::Barred { .. });
        let firm = if is_firm { until } else { firm };
        self.closed = Some(Closed { until, firm, looks, since, fault: fault.clone() });
        was_open
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

    fn line() -> CircuitBreaker {
        CircuitBreaker::new(RetryPolicy { attempts: 5, first: Duration::from_secs(4), max: Duration::from_secs(60) })
    }

    #[test]
    fn an_unreachable_service_is_looked_at_after_growing_waits_and_opens_by_one_good_answer() {
        let mut line = line();
        assert!(line.heard_fault(&fault(FaultKind::Unreachable), at(0), 1.0));
        assert_eq!(line.gate(at(0)), CircuitState::Closed(at(4)));
        assert_eq!(line.gate(at(4)), CircuitState::Look);
        assert!(!line.heard_fault(&fault(FaultKind::Unreachable), at(4), 1.0), "said once");
        assert_eq!(line.gate(at(4)), CircuitState::Closed(at(12)));
        line.heard_good(at(5));
        assert_eq!(line.gate(at(5)), CircuitState::Open);
    }

    #[test]
    fn a_person_who_has_acted_has_it_looked_at_at_once_but_what_the_service_asked_for_holds() {
        let policy = RetryPolicy { attempts: 5, first: Duration::from_secs(4), max: Duration::from_secs(60) };
        let mut barred = line();
        barred.heard_fault(&fault(FaultKind::Barred { status: 401 }), at(1), 1.0);
        barred.configured_anew(policy, true);
        assert_eq!(barred.gate(at(1)), CircuitState::Look);
        let mut throttled = line();
        throttled.heard_fault(&fault(FaultKind::Throttled { retry_after_ms: Some(50_000) }), at(1), 1.0);
        throttled.configured_anew(policy, true);
        assert_eq!(throttled.gate(at(2)), CircuitState::Closed(at(51)));
        let mut unknown = line();
        unknown.heard_fault(&fault(FaultKind::Unknown), at(1), 1.0);
        unknown.heard_fault(&fault(FaultKind::Unreachable), at(1), 1.0);
        unknown.configured_anew(policy, false);
        assert!(unknown.gate(at(1)) == CircuitState::Open && unknown.is_careful(), "of another way nothing is known");
    }

    #[test]
    fn one_wrong_answer_is_no_outage_and_three_in_a_row_are() {
        let mut line = line();
        line.heard_fault(&fault(FaultKind::Broken), at(0), 0.5);
        line.heard_fault(&fault(FaultKind::Broken), at(0), 0.5);
        line.heard_good(at(0));
        line.heard_fault(&fault(FaultKind::Broken), at(1), 0.5);
        line.heard_fault(&fault(FaultKind::Broken), at(1), 0.5);
        assert_eq!(line.gate(at(1)), CircuitState::Open);
        line.heard_fault(&fault(FaultKind::Broken), at(1), 0.5);
        assert!(matches!(line.gate(at(1)), CircuitState::Closed(_)));
    }

    #[test]
    fn retry_after_is_never_undercut_by_a_later_shorter_one() {
        let mut line = line();
        line.heard_fault(&fault(FaultKind::Throttled { retry_after_ms: Some(100_000) }), at(0), 0.0);
        line.heard_fault(&fault(FaultKind::Throttled { retry_after_ms: Some(1_000) }), at(1), 0.0);
        line.heard_fault(&fault(FaultKind::Broken), at(2), 0.0);
        line.heard_good(at(3));
        assert_eq!(line.gate(at(99)), CircuitState::Closed(at(100)));
        assert_eq!(line.gate(at(100)), CircuitState::Look);
        line.heard_good(at(100));
        assert_eq!(line.gate(at(100)), CircuitState::Open);
    }

    #[test]
    fn an_account_without_money_is_said_once_and_asked_ever_more_rarely_though_its_lists_can_be_had() {
        let mut line = line();
        assert!(line.heard_fault(&fault(FaultKind::Barred { status: 402 }), at(0), 1.0));
        assert_eq!(line.gate(at(0)), CircuitState::Closed(at(4)));
        line.looked_good(at(4));
        assert!(line.is_careful());
        assert!(!line.heard_fault(&fault(FaultKind::Barred { status: 402 }), at(4), 1.0), "said once");
        assert_eq!(line.gate(at(4)), CircuitState::Closed(at(12)));
        line.heard_good(at(12));
        assert!(!line.heard_fault(&fault(FaultKind::Barred { status: 402 }), at(12), 1.0), "a read is no create");
        assert_eq!(line.gate(at(12)), CircuitState::Closed(at(28)));
        line.looked_good(at(28));
        line.accepted(at(28));
        assert!(line.heard_fault(&fault(FaultKind::Barred { status: 402 }), at(29), 1.0));
    }

    #[test]
    fn a_service_that_lists_well_and_takes_nothing_stays_out() {
        let mut line = line();
        for _ in 0..WRONG_IN_A_ROW {
            line.heard_fault(&fault(FaultKind::Broken), at(0), 1.0);
        }
        assert_eq!(line.gate(at(0)), CircuitState::Closed(at(4)));
        line.looked_good(at(4));
        assert_eq!(line.gate(at(4)), CircuitState::Open);
        assert_eq!(line.trouble(at(5)).map(|(_, lasted)| lasted), Some(Duration::from_secs(5)));
        assert!(!line.heard_fault(&fault(FaultKind::Broken), at(5), 1.0), "said once");
        assert_eq!(line.gate(at(5)), CircuitState::Closed(at(13)), "one is enough now, and the wait has grown");
        line.looked_good(at(13));
        assert!(line.heard_good(at(14)), "over");
        assert!(!line.heard_good(at(14)), "said once");
        assert_eq!(line.trouble(at(14)), None);
    }

    #[test]
    fn the_same_refusal_again_and_again_asks_a_person() {
        let mut line = line();
        for _ in 0..REFUSED_IN_A_ROW {
            assert_eq!(line.gate(at(0)), CircuitState::Open);
            line.heard_fault(&fault(FaultKind::Refused { status: 422 }), at(0), 0.0);
        }
        assert_eq!(line.gate(at(0)), CircuitState::Asks);
        assert_eq!(line.question(), Some("words"));
    }

    #[test]
    fn after_an_unknown_create_they_go_one_at_a_time_until_one_is_accepted() {
        let mut line = line();
        line.heard_fault(&fault(FaultKind::Unknown), at(0), 0.0);
        line.heard_good(at(0));
        assert!(line.is_careful());
        line.accepted(at(0));
        assert!(!line.is_careful());
    }
}
