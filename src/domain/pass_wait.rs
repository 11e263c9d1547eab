//! Decides when a pass says until when it waits for a service. Pure.

use crate::domain::names::{ServiceName, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest time that a pass waits for a service before it says so: most faults end sooner.
const MAX_NOTICE_DELAY: Duration = Duration::from_secs(30);

/// A shorter rest of a wait is not announced: the end of the pass says the same.
const MIN_ANNOUNCED_WAIT: Duration = Duration::from_secs(1);

/// An announced end that moves by less is not announced again.
const MAX_UNANNOUNCED_DELAY: Duration = Duration::from_secs(60);

/// A service that a pass waits for, because it does not answer or answers wrongly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceWait {
    pub service: ServiceName,
    /// What is wrong with the service.
    pub reason: String,
    /// How long nothing has succeeded.
    pub lasted: Duration,
    /// How much longer the pass waits.
    pub left: Duration,
}

/// What a pass is to say about a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitNotice {
    pub service: ServiceName,
    pub reason: String,
    /// When the pass gives up.
    pub until: Timestamp,
}

/// The waits that a pass has announced: each once, and again when its reason or its end changes.
#[derive(Debug)]
pub struct WaitNotices {
    delay: Duration,
    announced: BTreeMap<ServiceName, Announced>,
}

#[derive(Debug)]
struct Announced {
    at: Timestamp,
    notice: WaitNotice,
}

impl WaitNotices {
    /// Starts without announcements, for a pass that waits as long as `patience` for a service.
    pub fn new(patience: Duration) -> Self {
        Self { delay: (patience / 20).min(MAX_NOTICE_DELAY), announced: BTreeMap::new() }
    }

    /// Returns what is to be said now about the present waits.
    pub fn due(&mut self, waits: Vec<ServiceWait>, now: Timestamp) -> Vec<WaitNotice> {
        self.announced.retain(|service, _| waits.iter().any(|wait| wait.service == *service));
        waits.into_iter().filter_map(|wait| self.announce(wait, now)).collect()
    }

    fn announce(&mut self, wait: ServiceWait, now: Timestamp) -> Option<WaitNotice> {
        if wait.lasted < self.delay || wait.left < MIN_ANNOUNCED_WAIT {
            return None;
        }
        let ServiceWait { service, reason, left, .. } = wait;
        let notice = WaitNotice { service, reason, until: now.saturating_add(left) };
        if self.announced.get(&notice.service).is_some_and(|announced| !announced.is_outdated(&notice, now, self.delay))
        {
            return None;
        }
        self.announced.insert(notice.service.clone(), Announced { at: now, notice: notice.clone() });
        Some(notice)
    }
}

impl Announced {
    /// Whether another notice is worth a line. Reasons may change with every request, so the last notice stands for
    /// `delay`.
    fn is_outdated(&self, notice: &WaitNotice, now: Timestamp, delay: Duration) -> bool {
        let is_later = notice.until.duration_since(self.notice.until) > MAX_UNANNOUNCED_DELAY;
        (self.notice.reason != notice.reason || is_later) && now.duration_since(self.at) >= delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(15 * 60);

    fn wait(lasted: u64, reason: &str) -> ServiceWait {
        let lasted = Duration::from_secs(lasted);
        let left = PATIENCE.saturating_sub(lasted);
        ServiceWait { service: ServiceName::new("default"), reason: reason.to_owned(), lasted, left }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp(0).saturating_add(Duration::from_secs(seconds))
    }

    #[test]
    fn a_wait_is_announced_once_within_a_minute_and_again_when_its_reason_changes() {
        let mut notices = WaitNotices::new(PATIENCE);
        let mut told = Vec::new();
        for second in 0..PATIENCE.as_secs() {
            let reason = if second < 300 { "answers 500" } else { "answers 503" };
            told.extend(notices.due(vec![wait(second, reason)], at(second)).into_iter().map(|notice| (second, notice)));
        }
        let notice = |reason: &str| WaitNotice {
            service: ServiceName::new("default"),
            reason: reason.to_owned(),
            until: at(PATIENCE.as_secs()),
        };
        assert_eq!(told, [(30, notice("answers 500")), (300, notice("answers 503"))]);
    }

    #[test]
    fn a_wait_after_a_success_is_announced_again_and_so_is_an_end_that_moves() {
        let mut notices = WaitNotices::new(PATIENCE);
        let mut due = |waits: Vec<ServiceWait>, second: u64| notices.due(waits, at(second)).len();
        assert_eq!(due(vec![wait(40, "answers 500")], 40), 1);
        assert_eq!(due(vec![wait(60, "answers 500")], 100), 0, "the end moved by 40 s");
        assert_eq!(due(vec![wait(60, "answers 500")], 200), 1, "the end moved by more than a minute");
        assert_eq!(due(Vec::new(), 210), 0);
        assert_eq!(due(vec![wait(29, "answers 500")], 240), 0, "most faults end sooner");
        assert_eq!(due(vec![wait(30, "answers 500")], 241), 1);
    }

    #[test]
    fn reasons_that_change_with_every_request_are_not_announced_with_every_request() {
        let mut notices = WaitNotices::new(PATIENCE);
        let count: usize = (0..120)
            .map(|second| notices.due(vec![wait(second, &format!("request {second}"))], at(second)).len())
            .sum();
        assert_eq!(count, 3);
    }

    #[test]
    fn a_short_patience_is_announced_early_and_not_at_its_end() {
        let mut notices = WaitNotices::new(Duration::from_secs(20));
        let short = |lasted: u64| ServiceWait { left: Duration::from_secs(20 - lasted), ..wait(lasted, "answers 500") };
        assert_eq!(notices.due(vec![short(1)], at(1)).len(), 1);
        assert_eq!(WaitNotices::new(Duration::from_millis(300)).due(vec![short(20)], at(20)).len(), 0);
    }
}
