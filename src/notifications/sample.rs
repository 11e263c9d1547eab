//! Samples of messages, for `scribed notify test`.

use super::digest::pages;
use super::message::{Message, NoticedJob};
use crate::config::model::NotifyConfig;
use crate::control::transport::protocol::{DigestJob, DigestReport, FailureGroup};
use crate::domain::names::{JobId, Timestamp};
use crate::domain::notification::NotificationEvent;
use std::collections::BTreeMap;
use std::time::Duration;

impl Message {
    /// Returns what a target of this event might get.
    pub fn sample(event: NotificationEvent, (id, time): (&str, Timestamp), config: &NotifyConfig) -> Self {
        let job = |reason: &str| NoticedJob {
            job: JobId(1),
            source: "sample".to_owned(),
            path: b"sample.mp4".to_vec(),
            reason: reason.to_owned(),
            at: time,
        };
        let (jobs, words) = match event {
            NotificationEvent::Failed => (vec![job("this is a test of notifications; nothing has failed")], None),
            NotificationEvent::Written => (vec![job("")], None),
            NotificationEvent::Idle => (Vec::new(), Some("this is a test: all work is done")),
            NotificationEvent::Outage => (Vec::new(), Some("this is a test: a service does not answer")),
            NotificationEvent::Budget => (Vec::new(), Some("this is a test: a budget is used up")),
            NotificationEvent::Digest => (Vec::new(), None),
        };
        let mut message = Self::worded(event, (id, time), jobs, words.map(str::to_owned).into_iter().collect(), 0);
        if event == NotificationEvent::Digest {
            let pages = pages(&report(time), config);
            (message.title, message.text) = (pages.title.clone(), pages.text.clone());
            message.digest = Some(pages);
        }
        message
    }
}

fn report(to: Timestamp) -> DigestReport {
    let example = DigestJob { job: JobId(1), name: "sample/sample.mp4".to_owned(), words: String::new() };
    let reason = "this is a test of notifications; nothing has failed".to_owned();
    DigestReport {
        from: to.saturating_sub(Duration::from_secs(24 * 3600)),
        to,
        written: 12,
        audio_millis: 5 * 3_600_000,
        incomplete: 0,
        failed: 1,
        failures: vec![FailureGroup { reason, jobs: 1, examples: vec![example] }],
        unhandled_failures: 1,
        suspect: 0,
        review: Vec::new(),
        waiting: BTreeMap::new(),
        cost: BTreeMap::new(),
        budgets: Vec::new(),
        problems: Vec::new(),
    }
}
