//! The laws of a target's queue.

#![allow(clippy::unwrap_used)]

use super::queue::{AfterFailure, DESCRIBED, GIVE_UP, MessageContent, Notice, QueueRules, TargetQueue};
use crate::domain::cron_line::CronLine;
use crate::domain::names::{JobId, Timestamp};
use crate::domain::window::{Window, Windows};
use crate::domain::zone::Zone;
use proptest::prelude::*;
use std::time::Duration;

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;

fn rules() -> QueueRules {
    QueueRules { window: Duration::from_secs(60), hourly: 20, quiet: None }
}

fn at(text: &str) -> Timestamp {
    Timestamp(chrono::DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis())
}

fn failure(job: u64, at: Timestamp) -> Notice {
    Notice { at, job: Some(JobId(job)), words: "no audio".to_owned() }
}

fn seal(queue: &mut TargetQueue, rules: &QueueRules, now: Timestamp) -> bool {
    queue.seal(rules, now, now, false, "id")
}

fn count(queue: &TargetQueue) -> u64 {
    match &queue.message.as_ref().unwrap().content {
        MessageContent::Batch(batch) => batch.count(),
        MessageContent::Digest { .. } => panic!("a digest"),
    }
}

#[test]
fn a_thousand_failures_within_the_window_are_one_message() {
    let (mut queue, begin) = (TargetQueue::default(), at("2026-11-20T12:00:00Z"));
    for job in 0..1_500 {
        let now = Timestamp(begin.0 + i64::try_from(job).unwrap() * 40);
        queue.add(failure(job, now), now);
        assert!(!seal(&mut queue, &rules(), Timestamp(now.0.min(begin.0 + 59_999))));
    }
    assert!(seal(&mut queue, &rules(), Timestamp(begin.0 + 60 * SECOND)));
    assert_eq!(count(&queue), 1_500);
    let MessageContent::Batch(batch) = &queue.message.as_ref().unwrap().content else { panic!() };
    assert_eq!((batch.notices.len(), batch.more), (DESCRIBED, 500));
}

#[test]
fn a_job_that_fails_again_within_the_window_is_told_once() {
    let (mut queue, now) = (TargetQueue::default(), at("2026-11-20T12:00:00Z"));
    queue.add(failure(7, now), now);
    queue.add(Notice { words: "other".into(), ..failure(7, now) }, now);
    assert!(queue.seal(&rules(), now, now, true, "id"));
    assert_eq!(count(&queue), 1);
}

#[test]
fn quiet_hours_hold_messages_to_their_end_and_then_one_is_sent() {
    let line = CronLine::parse("0 0 22 * * *", Zone::parse("Europe/Paris").unwrap()).unwrap();
    let quiet = Windows::new(vec![Window { from: line, length: Duration::from_secs(8 * 3600) }]);
    let rules = QueueRules { quiet, ..rules() };
    let (mut queue, evening) = (TargetQueue::default(), at("2026-11-20T21:30:00Z"));
    let morning = at("2026-11-21T05:00:00Z");
    for hour in 0..7 {
        let now = Timestamp(evening.0 + hour * HOUR);
        queue.add(failure(u64::try_from(hour).unwrap(), now), now);
        assert_eq!(queue.seals_at(&rules, now, now, true), Some(morning));
        assert!(!queue.seal(&rules, now, now, true, "id"));
    }
    assert!(seal(&mut queue, &rules, morning));
    assert_eq!(count(&queue), 7);
}

#[test]
fn what_happens_while_a_target_does_not_answer_is_one_batch_and_a_day_later_the_message_is_given_up() {
    let (mut queue, begin) = (TargetQueue::default(), at("2026-11-20T12:00:00Z"));
    queue.add(failure(0, begin), begin);
    assert!(queue.seal(&rules(), begin, begin, true, "first"));
    let (mut now, mut attempts) = (begin, 0);
    let given_up = loop {
        assert_eq!(queue.due(now).unwrap().id, "first");
        queue.add(failure(attempts + 1, now), now);
        assert!(!queue.seal(&rules(), now, now, true, "second"));
        match queue.note_failure(now, "refused".to_owned(), None) {
            AfterFailure::Again(at) => {
                assert!(at > now && queue.due(now).is_none());
                (now, attempts) = (at, attempts + 1);
            }
            AfterFailure::GivenUp(events) => break events,
        }
    };
    assert_eq!((given_up, queue.given_up), (1, 1));
    assert!(now.duration_since(begin) >= GIVE_UP && now.duration_since(begin) < GIVE_UP + Duration::from_secs(3_600));
    assert!((20..50).contains(&attempts), "{attempts}");
    assert!(queue.seal(&rules(), now, now, true, "second"));
    assert_eq!(count(&queue), attempts + 1);
}

#[test]
fn no_more_messages_in_an_hour_than_allowed() {
    let (mut queue, begin) = (TargetQueue::default(), at("2026-11-20T12:00:00Z"));
    let (mut sent, mut events) = (Vec::new(), 0);
    for minute in 0..180 {
        let now = Timestamp(begin.0 + minute * 60 * SECOND);
        queue.add(failure(u64::try_from(minute).unwrap(), now), now);
        if queue.seal(&QueueRules { hourly: 5, ..rules() }, now, now, true, "id") {
            events += count(&queue);
            queue.note_delivery(now);
            sent.push(now);
        }
    }
    for from in &sent {
        let within = sent.iter().filter(|at| *at >= from && at.duration_since(*from) < Duration::from_secs(3600));
        assert!(within.count() <= 5, "{sent:?}");
    }
    assert_eq!(events + queue.waiting(), 180);
}

#[test]
fn a_digest_that_was_not_sent_is_part_of_the_next() {
    let (mut queue, begin) = (TargetQueue::default(), at("2026-11-20T08:00:00Z"));
    let day = |days: i64| Timestamp(begin.0 + days * 24 * HOUR);
    queue.seal_digest(day(0), day(1), day(1), "one");
    queue.seal_digest(day(1), day(2), day(2), "two");
    let message = queue.message.as_ref().unwrap();
    assert_eq!((&message.content, message.id.as_str()), (&MessageContent::Digest { from: day(0), to: day(2) }, "two"));
}

/// What may happen to a queue.
#[derive(Debug, Clone)]
enum Happening {
    Event,
    Pass(u32),
    Back(u32),
    Attempt(bool),
    Restart,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        4 => Just(Happening::Event),
        3 => (0_u32..7_200).prop_map(Happening::Pass),
        1 => (0_u32..100_000).prop_map(Happening::Back),
        3 => any::<bool>().prop_map(Happening::Attempt),
        1 => Just(Happening::Restart),
    ];
    proptest::collection::vec(one, 0..200)
}

proptest! {
    /// Every event is delivered, given up, or still waits; and what waits is due at some time.
    #[test]
    fn no_event_is_lost_or_doubled(happenings in happenings(), hourly in 1_u32..30, window in 0_u64..600) {
        let rules = QueueRules { window: Duration::from_secs(window), hourly, quiet: None };
        let (mut queue, mut now) = (TargetQueue::default(), at("2026-11-20T12:00:00Z"));
        let (mut added, mut delivered) = (0_u64, 0_u64);
        for (number, happening) in happenings.into_iter().enumerate() {
            match happening {
                Happening::Event => {
                    added += 1;
                    queue.add(failure(added, now), now);
                }
                Happening::Pass(seconds) => now = Timestamp(now.0 + i64::from(seconds) * SECOND),
                Happening::Back(seconds) => now = Timestamp(now.0 - i64::from(seconds) * SECOND),
                Happening::Attempt(works) => {
                    queue.seal(&rules, now, now, false, &number.to_string());
                    let Some(message) = queue.due(now) else { continue };
                    let MessageContent::Batch(batch) = &message.content else { panic!() };
                    let events = batch.count();
                    if works {
                        delivered += events;
                        queue.note_delivery(now);
                    } else {
                        queue.note_failure(now, "refused".to_owned(), None);
                    }
                }
                Happening::Restart => {
                    let stored = serde_json::to_string(&queue).unwrap();
                    prop_assert_eq!(&serde_json::from_str::<TargetQueue>(&stored).unwrap(), &queue);
                }
            }
            prop_assert_eq!(added, delivered + queue.given_up + queue.waiting());
            if queue.waiting() > 0 {
                let next = queue.next(&rules, now, now).unwrap();
                prop_assert!(next.duration_since(now) <= Duration::from_secs(3_600).max(rules.window));
            }
        }
    }
}

#[test]
fn what_waits_of_an_erased_job_is_removed_and_nothing_else() {
    let mut queue = TargetQueue::default();
    queue.add(failure(1, Timestamp(0)), Timestamp(0));
    queue.add(failure(2, Timestamp(0)), Timestamp(0));
    assert!(seal(&mut queue, &rules(), Timestamp(HOUR)));
    queue.add(failure(1, Timestamp(HOUR)), Timestamp(HOUR));
    assert_eq!(queue.erase_job(JobId(3)), 0);
    assert_eq!(queue.erase_job(JobId(1)), 2);
    assert_eq!((count(&queue), queue.batch.is_none(), queue.waiting()), (1, true, 1));
    assert_eq!(queue.erase_job(JobId(2)), 1);
    assert_eq!((queue.message, queue.batch), (None, None), "no message says nothing");
}

#[test]
fn a_batch_that_only_counts_more_stays() {
    let mut queue = TargetQueue::default();
    (0..=DESCRIBED as u64).for_each(|job| queue.add(failure(job, Timestamp(0)), Timestamp(0)));
    (0..DESCRIBED as u64).for_each(|job| assert_eq!(queue.erase_job(JobId(job)), 1));
    assert_eq!(queue.waiting(), 1);
}
