//! Tells of states what begins and what ends: outages, used-up budgets, and that nothing is worked on. Pure.

use super::queue::{EndedJobs, Notice, TargetQueue};
use crate::domain::count::count;
use crate::domain::names::Timestamp;
use crate::domain::notification::NotificationEvent;
use crate::domain::stage::StageKind;
use crate::domain::wait_reason::WaitReason;
use crate::store::contract::HistoryEntry;
use std::collections::BTreeMap;
use std::time::Duration;

/// States that hold now, by stable names, with words for people.
pub type States = BTreeMap<String, String>;

/// What is known of the queue at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueObservation {
    /// The outages that lasted long enough to be reported.
    pub outages: States,
    /// The names of all outages, however short.
    pub all_outages: Vec<String>,
    /// The budgets that are used up.
    pub budgets: States,
    /// How many jobs that have not ended wait for what.
    pub waiting: BTreeMap<WaitReason, u64>,
}

impl QueueObservation {
    /// Whether nothing is worked on: all jobs have ended, or wait for a time or a person.
    pub fn is_idle(&self) -> bool {
        use WaitReason as W;
        let is_work = |reason: &WaitReason| {
            matches!(
                reason,
                W::Settle
                    | W::Transcription
                    | W::Duplicate
                    | W::Turn
                    | W::UnknownCreate
                    | W::Spool
                    | W::Service
                    | W::Retry
                    | W::Disk
                    | W::File
            )
        };
        !self.waiting.keys().any(is_work)
    }

    /// Says what waits: ` 3 jobs wait: 2 window, 1 person`.
    fn describe_waiting(&self) -> String {
        let total: u64 = self.waiting.values().sum();
        if total == 0 {
            return String::new();
        }
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        self.waiting.iter().for_each(|(reason, jobs)| *by_name.entry(reason.name()).or_default() += jobs);
        let list: Vec<String> = by_name.iter().map(|(name, jobs)| format!("{name} ({jobs})")).collect();
        format!("; {} still to do, waiting for: {}", count(total, "job"), list.join(", "))
    }
}

/// Adds what a line of the history means for a target.
pub fn note_line(queue: &mut TargetQueue, event: NotificationEvent, line: &HistoryEntry, now: Timestamp) {
    let notice = |words: &str| Notice { at: line.at, job: Some(line.job), words: words.to_owned() };
    match (event, line.stage) {
        (NotificationEvent::Failed, StageKind::Failed) => {
            queue.add(notice(line.words.as_deref().unwrap_or("no reason is known")), now);
        }
        (NotificationEvent::Written, StageKind::Written) => {
            queue.add(notice(line.words.as_deref().unwrap_or_default()), now);
        }
        (NotificationEvent::Idle, stage) => {
            let ended = &mut queue.ended;
            match stage {
                StageKind::Written => ended.written += 1,
                StageKind::Failed => ended.failed += 1,
                stage if stage.is_end() => ended.other += 1,
                _ => {}
            }
            ended.idle_since = None;
        }
        _ => {}
    }
}

/// Adds what began or ended for a target of outages or budgets. `may_end` is false as long as the engines have not tried
/// to reach their services.
pub fn note_states(
    queue: &mut TargetQueue,
    event: NotificationEvent,
    seen: &QueueObservation,
    may_end: bool,
    now: Timestamp,
) {
    let (states, present) = match event {
        NotificationEvent::Outage => (&seen.outages, seen.all_outages.clone()),
        NotificationEvent::Budget => (&seen.budgets, seen.budgets.keys().cloned().collect()),
        _ => return,
    };
    let notice = |words: String| Notice { at: now, job: None, words };
    for (name, words) in states {
        if !queue.reported.contains_key(name) {
            queue.reported.insert(name.clone(), words.clone());
            queue.add(notice(words.clone()), now);
        }
    }
    if !may_end {
        return;
    }
    let over: Vec<String> = queue.reported.keys().filter(|name| !present.contains(name)).cloned().collect();
    for name in over {
        queue.reported.remove(&name);
        // A budget that has a new period needs no message.
        if event == NotificationEvent::Outage {
            queue.add(notice(format!("over: {}", name.replacen(':', " ", 1))), now);
        }
    }
}

/// Adds that nothing is worked on any more, once after each time that something was. It has to stay so for `window`.
pub fn note_idle(queue: &mut TargetQueue, seen: &QueueObservation, window: Duration, now: Timestamp) {
    if !seen.is_idle() {
        queue.ended.idle_since = None;
        return;
    }
    if queue.ended.total() == 0 {
        return;
    }
    let since = *queue.ended.idle_since.get_or_insert(now);
    if now.duration_since(since.min(now)) < window {
        return;
    }
    let EndedJobs { written, failed, other, .. } = queue.ended;
    let other = if other == 0 { String::new() } else { format!(", {other} skipped or cancelled") };
    let waiting = seen.describe_waiting();
    let words = format!("all work is done: {written} written, {failed} failed{other}{waiting}");
    queue.ended = EndedJobs::default();
    queue.add(Notice { at: now, job: None, words }, now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::JobId;

    fn words(queue: &TargetQueue) -> Vec<String> {
        queue.batch.iter().flat_map(|batch| batch.notices.iter().map(|notice| notice.words.clone())).collect()
    }

    fn outage(reported: bool, present: bool) -> QueueObservation {
        let name = "service:default".to_owned();
        let outages = if reported { [(name.clone(), "no answer".to_owned())].into() } else { States::new() };
        QueueObservation {
            outages,
            all_outages: if present { vec![name] } else { Vec::new() },
            ..QueueObservation::default()
        }
    }

    #[test]
    fn an_outage_is_told_once_and_its_end_once() {
        let mut queue = TargetQueue::default();
        let mut note = |seen: QueueObservation, may_end| {
            note_states(&mut queue, NotificationEvent::Outage, &seen, may_end, Timestamp(0));
            words(&queue).len()
        };
        assert_eq!(note(outage(false, true), true), 0, "it is short");
        assert_eq!(note(outage(true, true), true), 1);
        assert_eq!(note(outage(true, true), true), 1);
        assert_eq!(note(outage(false, false), false), 1, "after a restart nothing is known yet");
        assert_eq!(note(outage(false, true), true), 1, "the outage goes on");
        assert_eq!(note(outage(false, false), true), 2);
        assert_eq!(note(outage(false, false), true), 2);
        assert_eq!(words(&queue), ["no answer", "over: service default"]);
    }

    #[test]
    fn a_budget_is_told_once_in_each_period() {
        let mut queue = TargetQueue::default();
        for day in ["mon", "mon", "tue"] {
            let budgets = [(format!("day {day}"), "budget.day is used up".to_owned())].into();
            let seen = QueueObservation { budgets, ..QueueObservation::default() };
            note_states(&mut queue, NotificationEvent::Budget, &seen, true, Timestamp(0));
        }
        note_states(&mut queue, NotificationEvent::Budget, &QueueObservation::default(), true, Timestamp(0));
        assert_eq!(words(&queue).len(), 2);
    }

    #[test]
    fn idle_is_told_once_after_work_and_when_it_lasts() {
        let mut queue = TargetQueue::default();
        let window = Duration::from_secs(60);
        let line = |stage| HistoryEntry {
            at: Timestamp(0),
            job: JobId(1),
            stage,
            purchase_number: 1,
            words: None,
            transcription: None,
        };
        let idle = QueueObservation { waiting: [(WaitReason::Window, 2)].into(), ..QueueObservation::default() };
        let busy = QueueObservation { waiting: [(WaitReason::Turn, 2)].into(), ..QueueObservation::default() };
        note_idle(&mut queue, &idle, window, Timestamp(0));
        note_line(&mut queue, NotificationEvent::Idle, &line(StageKind::Written), Timestamp(0));
        note_idle(&mut queue, &busy, window, Timestamp(100_000));
        note_idle(&mut queue, &idle, window, Timestamp(200_000));
        note_idle(&mut queue, &idle, window, Timestamp(259_999));
        assert_eq!(words(&queue).len(), 0);
        note_idle(&mut queue, &idle, window, Timestamp(260_000));
        note_idle(&mut queue, &idle, window, Timestamp(460_000));
        assert_eq!(
            words(&queue),
            ["all work is done: 1 written, 0 failed; 2 jobs still to do, waiting for: window (2)"]
        );
    }
}
