//! What waits for one target: pure decisions about a batch that is being collected and a message that is being sent.
//!
//! Events are collected for a while, so that a thousand failures become one message. While a message cannot be
//! delivered, the events after it go on being collected into one batch: the queue never holds more than one message and
//! one batch, whatever happens and however long a target does not answer.

use crate::backpressure::backoff::Growth;
use crate::domain::names::{JobId, Timestamp};
use crate::domain::window::Windows;
use crate::store::history_reader::HistoryPosition;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most events that a batch describes one by one; the others are counted.
pub const DESCRIBED: usize = 1_000;

/// How long a message is sent again and again before it is given up.
pub const GIVE_UP: Duration = Duration::from_secs(24 * 3600);

/// The waits between attempts.
const WAITS: Growth = Growth::doubling(Duration::from_secs(10), Duration::from_secs(3600));

const AN_HOUR: Duration = Duration::from_secs(3600);

/// When batches become messages.
#[derive(Debug, Clone)]
pub struct QueueRules {
    /// How long events are collected.
    pub window: Duration,
    /// The most messages in an hour.
    pub hourly: u32,
    /// When no message is made.
    pub quiet: Option<Windows>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub at: Timestamp,
    /// The job that it happened to. Its name is looked up when the message is sent, so that the queue has no names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// What happened, or why.
    pub words: String,
}

/// Events that become one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// When the first one was added.
    pub opened: Timestamp,
    /// The first [`DESCRIBED`] ones.
    pub notices: Vec<Notice>,
    /// How many more there are.
    pub more: u64,
}

impl Batch {
    pub fn count(&self) -> u64 {
        self.notices.len() as u64 + self.more
    }

    /// Removes what happened to a job, and returns how much that was.
    fn erase_job(&mut self, job: JobId) -> u64 {
        let before = self.notices.len();
        self.notices.retain(|notice| notice.job != Some(job));
        (before - self.notices.len()) as u64
    }
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageContent {
    Batch(Batch),
    /// The digest of a period. It is made when it is sent.
    Digest {
        from: Timestamp,
        to: Timestamp,
    },
}

/// A message that is being sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedMessage {
    /// The same at each attempt, so that a receiver recognises repetitions.
    pub id: String,
    pub sealed: Timestamp,
    pub content: MessageContent,
    /// How many attempts failed.
    pub failed: u32,
    /// When it is sent next.
    pub due: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// What came of an attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// It is repeated at this time.
    Again(Timestamp),
    /// The message was given up with this many events.
    GivenUp(u64),
}

/// The queue of one target, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetQueue {
    /// The target, for people.
    pub target: String,
    /// Up to where the history was read.
    pub position: HistoryPosition,
    pub batch: Option<Batch>,
    pub message: Option<SealedMessage>,
    /// When the messages of the last hour were delivered.
    pub sent: Vec<Timestamp>,
    /// The states that were reported and have not ended, with their words.
    pub reported: BTreeMap<String, String>,
    /// For the event `idle`: how many jobs have ended since the last time.
    pub ended: EndedJobs,
    /// For the digest: when the last one was made.
    pub digest: Option<Timestamp>,
    /// How many messages were delivered.
    pub delivered: u64,
    /// How many events were given up.
    pub given_up: u64,
}

/// How many jobs have ended since the queue was idle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndedJobs {
    pub written: u64,
    pub failed: u64,
    pub other: u64,
    /// Since when the queue is idle.
    pub idle_since: Option<Timestamp>,
}

impl EndedJobs {
    pub fn total(&self) -> u64 {
        self.written + self.failed + self.other
    }
}

impl TargetQueue {
    /// Adds an event to the batch that is being collected. A job that is in it already gets the newer words.
    pub fn add(&mut self, notice: Notice, now: Timestamp) {
        let batch = self.batch.get_or_insert_with(|| Batch { opened: now, notices: Vec::new(), more: 0 });
        let same = |known: &&mut Notice| notice.job.is_some() && known.job == notice.job;
        let is_full = batch.notices.len() >= DESCRIBED;
        match batch.notices.iter_mut().rev().find(same) {
            Some(known) => *known = notice,
            None if is_full => batch.more += 1,
            None => batch.notices.push(notice),
        }
    }

    /// Removes what happened to a job, of which a person erased everything. Returns how many events there were.
    pub fn erase_job(&mut self, job: JobId) -> u64 {
        let of_batch = self.batch.as_mut().map_or(0, |batch| batch.erase_job(job));
        self.batch.take_if(|batch| batch.count() == 0);
        let of_message = match self.message.as_mut().map(|message| &mut message.content) {
            Some(MessageContent::Batch(batch)) => batch.erase_job(job),
            Some(MessageContent::Digest { .. }) | None => 0,
        };
        self.message.take_if(|message| matches!(&message.content, MessageContent::Batch(batch) if batch.count() == 0));
        of_batch + of_message
    }

    /// Makes a message of the batch if it is time; `at_once` does not wait for more events. Returns whether one was made.
    pub fn seal(&mut self, rules: &QueueRules, now: Timestamp, wall: Timestamp, at_once: bool, id: &str) -> bool {
        if self.seals_at(rules, now, wall, at_once).is_none_or(|at| at > now) {
            return false;
        }
        let Some(batch) = self.batch.take() else { return false };
        self.put(MessageContent::Batch(batch), now, id);
        true
    }

    /// Makes a message of the digest of a period. The digest before it is dropped: this one begins where it did.
    pub fn seal_digest(&mut self, from: Timestamp, to: Timestamp, now: Timestamp, id: &str) {
        let from = match self.message.take().map(|message| message.content) {
            Some(MessageContent::Digest { from: earlier, .. }) => earlier.min(from),
            _ => from,
        };
        self.put(MessageContent::Digest { from, to }, now, id);
        self.digest = Some(to);
    }

    fn put(&mut self, content: MessageContent, now: Timestamp, id: &str) {
        let id = id.to_owned();
        self.message = Some(SealedMessage { id, sealed: now, content, failed: 0, due: now, last_error: None });
    }

    /// Returns when the batch becomes a message at the earliest; `None` if there is no batch, or a message before it.
    pub fn seals_at(&self, rules: &QueueRules, now: Timestamp, wall: Timestamp, at_once: bool) -> Option<Timestamp> {
        let batch = self.batch.as_ref().filter(|_| self.message.is_none())?;
        // A clock that was ahead must not hold the batch.
        let opened = batch.opened.min(now);
        let collected = if at_once { now } else { opened.saturating_add(rules.window) };
        let quiet = rules.quiet.as_ref().map(|quiet| quiet.at(wall)).filter(|state| state.is_open());
        let loud = quiet.map_or(now, |state| now.saturating_add(state.changes_at().duration_since(wall)));
        Some(collected.max(self.allowed_at(rules, now)).max(loud))
    }

    /// Returns when the next message is within the limit of an hour.
    fn allowed_at(&self, rules: &QueueRules, now: Timestamp) -> Timestamp {
        let mut recent: Vec<Timestamp> = self.sent.iter().copied().filter(|at| is_within_an_hour(*at, now)).collect();
        recent.sort();
        let most = rules.hourly.max(1) as usize;
        match recent.len().checked_sub(most) {
            Some(over) => recent[over].saturating_add(AN_HOUR),
            None => now,
        }
    }

    /// Returns the message, if it is time to send it.
    pub fn due(&self, now: Timestamp) -> Option<&SealedMessage> {
        self.message.as_ref().filter(|message| due_of(message, now) <= now)
    }

    /// Returns when something has to be done at the earliest; `None` if nothing waits.
    pub fn next(&self, rules: &QueueRules, now: Timestamp, wall: Timestamp) -> Option<Timestamp> {
        let sent = self.message.as_ref().map(|message| due_of(message, now));
        sent.or_else(|| self.seals_at(rules, now, wall, false))
    }

    /// Removes the message, which was delivered.
    pub fn note_delivery(&mut self, now: Timestamp) {
        if self.message.take().is_some() {
            self.delivered += 1;
            self.sent.retain(|at| is_within_an_hour(*at, now));
            self.sent.push(now);
        }
    }

    /// Notes that an attempt failed. `asked` is the wait that the receiver asked for.
    pub fn note_failure(&mut self, now: Timestamp, error: String, asked: Option<Duration>) -> AfterFailure {
        let Some(message) = &mut self.message else { return AfterFailure::GivenUp(0) };
        if now.duration_since(message.sealed) >= GIVE_UP {
            let events = match &message.content {
                MessageContent::Batch(batch) => batch.count(),
                MessageContent::Digest { .. } => 1,
            };
            self.message = None;
            self.given_up += events;
            return AfterFailure::GivenUp(events);
        }
        let wait = WAITS.wait(message.failed).max(asked.unwrap_or_default()).min(WAITS.max);
        message.failed = message.failed.saturating_add(1);
        message.due = now.saturating_add(wait);
        message.last_error = Some(error);
        AfterFailure::Again(message.due)
    }

    /// Returns how many events wait.
    pub fn waiting(&self) -> u64 {
        let of_message = match self.message.as_ref().map(|message| &message.content) {
            Some(MessageContent::Batch(batch)) => batch.count(),
            Some(MessageContent::Digest { .. }) => 1,
            None => 0,
        };
        of_message + self.batch.as_ref().map_or(0, Batch::count)
    }
}

/// Returns when a message is due. One that is due later than any wait was dated by a clock that was ahead.
fn due_of(message: &SealedMessage, now: Timestamp) -> Timestamp {
    if message.due > now.saturating_add(WAITS.max) { now } else { message.due }
}

fn is_within_an_hour(at: Timestamp, now: Timestamp) -> bool {
    at <= now && now.duration_since(at) < AN_HOUR
}
