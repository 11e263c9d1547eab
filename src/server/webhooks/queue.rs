//! The deliveries of a store. They are part of the transcriptions' records, so that a creation or an end becomes durable
//! in one write with its deliveries.

use crate::domain::names::Timestamp;
use crate::server::http::streamed::{StoredResult, StreamedJson};
use crate::server::recognition::worker::AGAIN;
use crate::server::storage::index::{DeliveryKind, Due, NextCall};
use crate::server::storage::kill_count;
use crate::server::storage::kill_count::{TranscriptionWork, Underway};
use crate::server::storage::log::ledger::LogLine;
use crate::server::storage::transcriptions::{
    Callee, DeliveryState, RecordMeta, TranscriptionEnd, TranscriptionFailure, TranscriptionState, TranscriptionStore,
};
use crate::server::webhooks::policy;
use crate::server::webhooks::policy::DeliveryFailure;
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

    /// Returns the content of a delivery; `None` if its transcription was deleted.
    pub fn delivery(&self, due: Due) -> io::Result<Option<Delivery>> {
        let Some(owner) = self.index().get(due.id).map(|entry| entry.owner) else { return Ok(None) };
        let number = match due.delivery {
            DeliveryKind::Creation => return Ok(Some(creation_delivery(due.id))),
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
            let killed = Err(DeliveryFailure::NoAnswer("the service was killed during the call".to_owned()));
            if let Err(error) = self.record_attempt(due, &killed) {
                tracing::error!(id = %due.id, %error, "cannot count a webhook call during which the service was killed; the service repeats it after the next start");
            }
        }
        kills.into_keys().for_each(|key| self.starts.clear(key));
    }

    /// Stores the outcome of an attempt. Returns whether there will be another attempt.
    ///
    /// # Errors
    /// Errors of the file system: the delivery is then repeated.
    pub fn record_attempt(&self, due: Due, outcome: &Result<(), DeliveryFailure>) -> io::Result<bool> {
        let _settling = self.settle_lock(due.id);
        if self.index().get(due.id).is_none() {
            return Ok(false);
        }
        match due.delivery {
            DeliveryKind::Creation => self.record_creation_attempt(due, outcome),
            DeliveryKind::End(number) => self.record_end_attempt(due, number, outcome),
        }
    }

    fn record_creation_attempt(&self, due: Due, outcome: &Result<(), DeliveryFailure>) -> io::Result<bool> {
        let next_due = self.store_creation_attempt(due.id, outcome)?.and_then(|creation| creation.due);
        let mut index = self.index();
        if matches!(outcome, Err(DeliveryFailure::Refused(_))) {
            index.allow_end_before_creation(due.id);
        }
        match next_due {
            Some(next_due) => index.requeue_delivery(due, next_due),
            None => index.forget_creation(due.id),
        }
        drop(index);
        self.calling.notify_one();
        Ok(next_due.is_some())
    }

    /// Returns the new state of the delivery; `None` if the record has none, because it was damaged.
    fn store_creation_attempt(
        &self,
        id: Uuid,
        outcome: &Result<(), DeliveryFailure>,
    ) -> io::Result<Option<DeliveryState>> {
        let now = self.clock.now();
        let after = |creation: &DeliveryState| policy::after_attempt(creation, outcome, &self.rules.patience, now);
        if let Some(head) = self.ledger.read_verbatim(id)? {
            let creation = head.creation.as_ref().map(after);
            let line = LogLine::acceptance(id, &RecordMeta { creation: creation.clone(), ..head })?;
            let _in_place = self.ledger.keep_in_place();
            return self.committer.write_and_wait(&line).map(|()| creation);
        }
        let head = self.record_meta(id)?;
        let creation = head.creation.as_ref().map(after);
        self.write_head(id, &RecordMeta { creation: creation.clone(), ..head })?;
        Ok(creation)
    }

    fn record_end_attempt(&self, due: Due, number: usize, outcome: &Result<(), DeliveryFailure>) -> io::Result<bool> {
        let mut head = self.record_meta(due.id)?;
        let Some(call) = head.calls.get_mut(number) else { return Ok(false) };
        *call = policy::after_attempt(call, outcome, &self.rules.patience, self.clock.now());
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

fn creation_delivery(id: Uuid) -> Delivery {
    let body = StreamedJson::in_memory(policy::creation_body(id));
    Delivery { to: Callee::Webhook, name: policy::delivery_id(id, event::CREATED), body }
}

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
