//! The deliveries of a store. They are part of the transcriptions' records, so that an end and its deliveries become
//! durable in one write.

use crate::domain::names::Timestamp;
use crate::server::http::streamed::{StoredResult, StreamedJson};
use crate::server::recognition::worker::AGAIN;
use crate::server::storage::index::{DeliveryKind, Due, NextCall};
use crate::server::storage::kill_count;
use crate::server::storage::kill_count::{TranscriptionWork, Underway};
use crate::server::storage::transcriptions::{
    Callee, DeliveryState, TranscriptionEnd, TranscriptionFailure, TranscriptionState, TranscriptionStore,
};
use crate::server::webhooks::policy;
use crate::wire::event;
use crate::wire::record;
use crate::wire::result::ResultBody;
use crate::wire::v1::{OutputFormat, to_v1_answer};
use std::io;
use uuid::Uuid;

/// A delivery that is to be made.
#[derive(Debug)]
pub struct Delivery {
    pub to: Callee,
    /// The id, the same at every attempt.
    pub name: String,
    pub body: StreamedJson,
}

impl TranscriptionStore {
    /// Takes the next due delivery.
    pub fn next_delivery(&self, now: Timestamp) -> NextCall {
        self.index().pop_delivery(now, self.rules.patience.longest.max(AGAIN))
    }

    /// Returns the content of a delivery; `None` if its transcription was deleted, or has ended before its creation was
    /// received.
    pub fn delivery(&self, due: Due) -> io::Result<Option<Delivery>> {
        let Some(owner) = self.index().get(due.id).map(|entry| entry.owner) else { return Ok(None) };
        let number = match due.delivery {
            DeliveryKind::Creation => return Ok(self.creation_delivery(due.id)),
            DeliveryKind::End(number) => number,
        };
        let Some(TranscriptionState { head, result, .. }) = self.read(due.id, &owner)? else { return Ok(None) };
        let (Some(ended), Some(call)) = (&head.ended, head.calls.get(number)) else { return Ok(None) };
        let body = match &call.to {
            Callee::FirstVersion { format, .. } => v1_body(due.id, ended, *format, result)?,
            to => {
                // The webhook's body does not contain the result.
                let result = result.filter(|_| *to != Callee::Webhook);
                StreamedJson::from_result(result, |result| {
                    policy::delivery_body(to, due.id, ended, result.as_deref(), head.metadata.as_deref())
                })?
            }
        };
        let name = policy::delivery_id(due.id, policy::event_name(ended));
        Ok(Some(Delivery { to: call.to.clone(), name, body }))
    }

    fn creation_delivery(&self, id: Uuid) -> Option<Delivery> {
        let mut index = self.index();
        if index.find_unfinished(id).is_none() {
            index.forget_creation(id);
            return None;
        }
        drop(index);
        let body = StreamedJson::in_memory(policy::creation_body(id));
        Some(Delivery { to: Callee::Webhook, name: policy::delivery_id(id, event::CREATED), body })
    }

    /// Records on the disk that an attempt begins. If the service is killed before the returned value is dropped, the
    /// next start counts the attempt as failed.
    ///
    /// # Errors
    /// Errors of the file system: the attempt must then not begin.
    pub fn begin_delivery(&self, due: Due) -> io::Result<Underway> {
        self.starts.start_work(kill_count::delivery_id(due), TranscriptionWork::Delivery)
    }

    /// Counts attempts during which the service was killed as failed, so that a delivery that kills the service is not
    /// repeated for ever.
    pub(crate) fn count_killed_deliveries(&self) {
        let mut kills = self.starts.kill_counts();
        kills.retain(|_, kills| kills.work == TranscriptionWork::Delivery);
        if kills.is_empty() {
            return;
        }
        let due = self.index().pending_deliveries();
        for due in due.into_iter().filter(|due| kills.contains_key(&kill_count::delivery_id(*due))) {
            self.index().remove_delivery(due);
            if due.delivery == DeliveryKind::Creation {
                // Its failures are not kept on the disk, so it could kill the service at every start.
                self.index().forget_creation(due.id);
                continue;
            }
            let killed = Err("the service was killed during the call".to_owned());
            if let Err(error) = self.record_attempt(due, killed) {
                tracing::error!(id = %due.id, %error, "cannot count a webhook call during which the service was killed; the service repeats it after the next start");
            }
        }
        kills.into_keys().for_each(|key| self.starts.clear(key));
    }

    /// Stores the outcome of an attempt; an error says why the receiver did not get it. Returns whether there will be
    /// another attempt.
    ///
    /// # Errors
    /// Errors of the file system: the delivery is then repeated.
    pub fn record_attempt(&self, due: Due, outcome: Result<(), String>) -> io::Result<bool> {
        match due.delivery {
            DeliveryKind::Creation => Ok(self.record_creation_attempt(due, outcome.is_ok())),
            DeliveryKind::End(number) => self.record_end_attempt(due, number, outcome),
        }
    }

    /// The outcome is kept in memory only: after a restart, the creation of what has not ended is reported again.
    fn record_creation_attempt(&self, due: Due, is_delivered: bool) -> bool {
        let mut index = self.index();
        let failed = if is_delivered { None } else { index.count_creation_failure(due.id) };
        let wait = failed.and_then(|failed| self.rules.patience.backoff(failed));
        match wait {
            Some(wait) => index.requeue_delivery(due, self.clock.now().saturating_add(wait)),
            None => index.forget_creation(due.id),
        }
        drop(index);
        self.calling.notify_one();
        wait.is_some()
    }

    fn record_end_attempt(&self, due: Due, number: usize, outcome: Result<(), String>) -> io::Result<bool> {
        let _settling = self.settle_lock();
        if self.index().get(due.id).is_none() {
            return Ok(false);
        }
        let mut head = self.record_meta(due.id)?;
        let Some(call) = head.calls.get_mut(number) else { return Ok(false) };
        *call = match outcome {
            Ok(()) => DeliveryState { due: None, error: None, ..call.clone() },
            Err(error) => policy::after_failure(call, &self.rules.patience, self.clock.now(), error),
        };
        let next_due = call.due;
        self.write_head(due.id, &head)?;
        if let Some(next_due) = next_due {
            self.postpone_delivery(due, next_due);
        }
        Ok(next_due.is_some())
    }

    /// Makes a delivery due at another time, without counting an attempt.
    pub fn postpone_delivery(&self, due: Due, moment: Timestamp) {
        self.index().requeue_delivery(due, moment);
        self.calling.notify_one();
    }
}

/// Largest result that a delivery of the first version carries, in bytes: each is made in memory, which takes some ten
/// times as much, and several are made at once. Some hours of speech have less.
const V1_LARGEST: u64 = 4 << 20;

fn v1_body(
    id: Uuid,
    ended: &TranscriptionEnd,
    format: OutputFormat,
    result: Option<StoredResult>,
) -> io::Result<StreamedJson> {
    let answer = match result {
        Some(stored) if stored.total_bytes() > V1_LARGEST => Err(TranscriptionFailure {
            code: 422,
            message: format!("the result is larger than {V1_LARGEST} bytes; read it with GET {}/{id}", record::PATH),
        }),
        Some(stored) => {
            let result: ResultBody = serde_json::from_str(stored.read()?.get())?;
            Ok(Some(to_v1_answer(&result, format)))
        }
        None => Ok(None),
    };
    Ok(StreamedJson::in_memory(policy::v1_delivery_body(id, ended, answer)?))
}
