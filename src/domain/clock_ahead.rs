//! Limits timestamps that were stored while the clock was ahead. Once the clock is right again they lie in the future,
//! and a job that waits for one would not move until then. When a queue is opened, each wait is therefore limited to
//! the longest that its kind allows from now.
//!
//! A clock that was ahead cannot be told from one that is behind now. What was spent, when a purchase was sent and how
//! long a person's pause lasts therefore stay as they are: a budget counts amounts that lie in the future, and during a
//! pause that is too long nothing is bought.

use super::fault::FaultKind;
use super::job::Job;
use super::names::Timestamp;
use super::stage::StageKind;
use std::time::Duration;

/// Added to each limit: some waits are lengthened so that several jobs are handled together, or so that a check does
/// not come too early.
const SLACK: Duration = Duration::from_secs(5);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// The longest time until a monthly budget resets.
const LONGEST_MONTH: Duration = Duration::from_secs(32 * 86_400);

/// The longest time between two polls of a transcription, as a multiple of `poll.max`: 10 where a callback is expected
/// or the transcription is overdue, a tenth more as jitter, and half as much again so that several are polled together.
const LONGEST_POLL_MAXIMA: u32 = 17;

/// The longest configured waits; if sources or services differ, the longest of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LongestWaits {
    /// After a fault (`[retry] max`).
    pub retry: Duration,
    /// Between two polls (`poll.max`).
    pub poll: Duration,
    /// How far a service's lists may lag behind (`lag`).
    pub lag: Duration,
    /// Until a file counts as complete (`settle`).
    pub settle: Duration,
    /// For a file that looks unfinished (`hold`).
    pub hold: Duration,
}

/// Returns how long a job may at most wait for its next step.
pub fn longest_wait(job: &Job, waits: &LongestWaits) -> Duration {
    let of_stage = match job.stage.kind() {
        StageKind::Submitting | StageKind::Uploaded => waits.retry.max(waits.lag),
        StageKind::Submitted => waits.lag.max(waits.poll.saturating_mul(LONGEST_POLL_MAXIMA)),
        StageKind::Following => HOUR,
        // Jobs of a queue that is not trusted yet are checked again within a minute.
        StageKind::Settled => waits.settle.max(MINUTE),
        _ => waits.settle,
    };
    let of_fault = job.fault.as_ref().map(|fault| match fault.kind {
        FaultKind::Throttled { .. } => fault.retry_after().unwrap_or_default(),
        FaultKind::FolderAway | FaultKind::Awaited => HOUR,
        FaultKind::Held => waits.hold.max(10 * MINUTE),
        FaultKind::Budget => LONGEST_MONTH,
        _ => Duration::ZERO,
    });
    of_fault.map_or(of_stage, |of_fault| of_stage.max(of_fault).max(waits.retry)) + SLACK
}

/// Returns the job with every stored moment limited; `None` if none lies too far ahead. No moment becomes later.
pub fn limited(job: &Job, now: Timestamp, waits: &LongestWaits) -> Option<Job> {
    let mut new = job.clone();
    new.since = new.since.min(now);
    if let Some(fault) = &mut new.fault {
        fault.at = fault.at.min(now);
    }
    new.stage = new.stage.clamp_timestamps(now);
    new.due = new.due.map(|due| due.min(now.saturating_add(longest_wait(job, waits))));
    (new != *job).then_some(new)
}

/// Whether any moment of the job lies in the future. Its charges do not count.
pub fn has_future_timestamp(job: &Job, now: Timestamp) -> bool {
    let ahead = |at: Timestamp| at > now;
    job.due.is_some_and(ahead)
        || ahead(job.since)
        || job.fault.as_ref().is_some_and(|fault| ahead(fault.at))
        || job.stage.latest_moment().is_some_and(ahead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::charge::{Charge, State};
    use crate::domain::fault::Fault;
    use crate::domain::job::{JobKey, JobTag, Stamp};
    use crate::domain::names::{Hash, JobId, ServiceName, SourceName, TranscriptionId, UploadId};
    use crate::domain::path::RelPath;
    use crate::domain::stage::{AudioAmount, AudioAt, Intent, Stage, UploadedAudio};
    use crate::domain::token::{PurchaseKey, Token};
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000);
    const DAY: i64 = 86_400_000;

    fn waits() -> LongestWaits {
        let [retry, poll, lag, settle, hold] = [600, 60, 120, 10, 86_400].map(Duration::from_secs);
        LongestWaits { retry, poll, lag, settle, hold }
    }

    fn stages() -> impl Strategy<Value = Stage> {
        let purchase_key = PurchaseKey {
            content: Hash([1; 32]),
            params: Hash([2; 32]),
            service: ServiceName::new("default"),
            part: None,
        };
        let transcription = TranscriptionId::new("t");
        let audio = AudioAmount::default();
        let uploaded = {
            let purchase_key = purchase_key.clone();
            any::<i32>().prop_map(move |at| {
                let at = Timestamp(NOW.0 + i64::from(at));
                let upload = AudioAt::Upload(UploadedAudio { id: UploadId::new("u"), at, origin: None });
                Stage::Uploaded { purchase_key: purchase_key.clone(), audio, upload }
            })
        };
        prop_oneof![
            Just(Stage::Found),
            Just(Stage::Settled),
            uploaded,
            Just(Stage::Submitted { purchase_key: purchase_key.clone(), transcription: transcription.clone() }),
            Just(Stage::Fetched { purchase_key: purchase_key.clone(), transcription, audio }),
            Just(Stage::Following { purchase_key, owner: JobId(1) }),
        ]
    }

    fn kinds() -> impl Strategy<Value = Option<FaultKind>> {
        use FaultKind as F;
        let throttled = proptest::option::of(any::<u64>()).prop_map(|ms| F::Throttled { retry_after_ms: ms });
        let plain = proptest::sample::select(vec![
            F::Unreachable,
            F::Broken,
            F::Unwritable,
            F::FolderAway,
            F::Held,
            F::Awaited,
            F::NoRoom,
            F::Shortage,
            F::Budget,
            F::Stuck,
            F::Unreadable,
        ]);
        proptest::option::of(prop_oneof![throttled, plain])
    }

    fn job(stage: Stage, kind: Option<FaultKind>, due: Option<i64>, since: i64) -> Job {
        let key = JobKey { source: SourceName::new("s"), path: RelPath::new("a.wav") };
        let at = Timestamp(NOW.0.saturating_add(since));
        let job = Job::found(JobId(1), key, Stamp::default(), at, at);
        let fault = kind.map(|kind| Fault::new(kind, "x", at));
        Job { stage, ..job }.deferred(due.map(|due| Timestamp(NOW.0.saturating_add(due))), fault)
    }

    proptest! {
        #[test]
        fn nothing_becomes_later_and_nothing_waits_for_longer_than_its_kind_allows(
            stage in stages(), kind in kinds(), due in proptest::option::of(any::<i64>()), since in any::<i64>(),
        ) {
            let old = job(stage, kind, due, since);
            let longest = longest_wait(&old, &waits());
            let new = limited(&old, NOW, &waits()).unwrap_or_else(|| old.clone());
            prop_assert_eq!(new.due.is_some(), old.due.is_some());
            if let (Some(new), Some(old)) = (new.due, old.due) {
                prop_assert!(new <= old);
                prop_assert!(new.duration_since(NOW) <= longest);
                // A due time changes only to the longest that its kind of wait allows.
                prop_assert!(new == old || new == NOW.saturating_add(longest));
            }
            prop_assert!(new.since <= old.since && new.since <= NOW);
            prop_assert_eq!(limited(&new, NOW, &waits()), None, "it is limited once");
            if old.due.is_none_or(|due| due <= NOW) && !has_future_timestamp(&old, NOW) {
                prop_assert_eq!(&new, &old, "what is not ahead stays as it is");
            }
        }
    }

    #[test]
    fn each_kind_of_wait_ends_in_its_own_time_after_a_clock_that_was_two_hours_or_a_year_ahead() {
        let purchase_key = || PurchaseKey {
            content: Hash([1; 32]),
            params: Hash([2; 32]),
            service: ServiceName::new("default"),
            part: None,
        };
        let submitted = Stage::Submitted { purchase_key: purchase_key(), transcription: TranscriptionId::new("t") };
        let throttled = |ms| FaultKind::Throttled { retry_after_ms: Some(ms) };
        let cases = [
            (Stage::Found, None, 10),
            (Stage::Found, Some(FaultKind::Held), 86_400),
            (Stage::Found, Some(FaultKind::FolderAway), 3_600),
            (Stage::Found, Some(FaultKind::Awaited), 3_600),
            (Stage::Settled, Some(FaultKind::Unreadable), 600),
            (Stage::Settled, Some(FaultKind::Unreachable), 600),
            (Stage::Settled, Some(throttled(1_800_000)), 1_800),
            (Stage::Settled, Some(throttled(u64::MAX)), 86_400),
            (submitted.clone(), None, 1_020),
            (submitted, Some(FaultKind::Stuck), 1_020),
            (Stage::Following { purchase_key: purchase_key(), owner: JobId(2) }, None, 3_600),
        ];
        for (stage, kind, seconds) in cases {
            for ahead in [365 * DAY, DAY + 7_200_000] {
                let old = job(stage.clone(), kind.clone(), Some(ahead), ahead);
                let new = limited(&old, NOW, &waits()).unwrap();
                assert_eq!(
                    new.due,
                    Some(Timestamp(NOW.0 + seconds * 1_000).saturating_add(SLACK)),
                    "{stage:?} {kind:?}"
                );
                assert_eq!(new.since, NOW);
            }
        }
        let two_hours = limited(&job(Stage::Found, None, Some(7_200_000), 7_200_000), NOW, &waits()).unwrap();
        assert_eq!(two_hours.due, Some(NOW.saturating_add(waits().settle + SLACK)));
    }

    #[test]
    fn what_was_spent_and_sent_keeps_its_dates() {
        let ahead = Timestamp(NOW.0 + 365 * DAY);
        let charge = Charge {
            at: ahead,
            service_date: None,
            fetched: false,
            rest: 0,
            limits: Vec::new(),
            run: ahead,
            purchase_number: 0,
            service: ServiceName::new("default"),
            template: None,
            state: State::Spent,
            reserved: Some(1),
            billed: None,
            transcription: None,
        };
        let purchase_key = PurchaseKey {
            content: Hash([1; 32]),
            params: Hash([2; 32]),
            service: ServiceName::new("default"),
            part: None,
        };
        let upload = AudioAt::Upload(UploadedAudio { id: UploadId::new("u"), at: NOW, origin: None });
        let token = Token::new(&purchase_key, JobTag([1; 16]), 0);
        let intent = Intent { token, origin: String::new(), key: String::new(), service_date: None, sent_at: ahead };
        let stage = Stage::Submitting { purchase_key, audio: AudioAmount::default(), upload, intent };
        let old = Job { charges: vec![charge], ..job(stage, None, Some(0), 0) };
        assert_eq!(limited(&old, NOW, &waits()), None, "the clock may be behind now");
        assert!(!has_future_timestamp(&old, NOW));
    }
}
