//! The deliveries of a store. They are part of the transcriptions' records, so that an end and its deliveries become
//! durable in one write.

use crate::domain::names::Timestamp;
use crate::server::http::streamed::StreamedJson;
use crate::server::recognition::worker::AGAIN;
use crate::server::storage::index::{Due, NextCall};
use crate::server::storage::kill_count;
use crate::server::storage::kill_count::{TranscriptionWork, Underway};
use crate::server::storage::transcriptions::{Callee, DeliveryState, TranscriptionState, TranscriptionStore};
use crate::server::webhooks::policy;
use std::io;

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
        let Some(TranscriptionState { head, result, .. }) = self.read(due.id, &owner)? else { return Ok(None) };
        let (Some(ended), Some(call)) = (&head.ended, head.calls.get(due.number)) else { return Ok(None) };
        // The webhook's body does not contain the result.
        let result = result.filter(|_| call.to != Callee::Webhook);
        let body = StreamedJson::from_result(result, |result| {
            policy::delivery_body(&call.to, due.id, ended, result.as_deref(), head.metadata.as_deref())
        })?;
        Ok(Some(Delivery { to: call.to.clone(), name: policy::delivery_id(due.id, ended), body }))
    }

    /// Records on the disk that an attempt begins. If the service is killed before the returned value is dropped, the
    /// next start counts the attempt as failed.
    ///
    /// # Errors
    /// Errors of the file system: the attempt must then not begin.
    pub fn begin_delivery(&self, due: Due) -> io::Result<Underway> {
        self.starts.start_work(kill_count::delivery_id(due.id, due.number), TranscriptionWork::Delivery)
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
        for due in due.into_iter().filter(|due| kills.contains_key(&kill_count::delivery_id(due.id, due.number))) {
            self.index().remove_delivery(due);
            if let Err(error) = self.record_attempt(due, false) {
                tracing::error!(id = %due.id, %error, "cannot count a webhook call during which the service was killed; the service repeats it after the next start");
            }
        }
        kills.into_keys().for_each(|key| self.starts.clear(key));
    }

    /// Stores the result of an attempt. Returns whether there will be another one.
    ///
    /// # Errors
    /// Errors of the file system: the delivery is then repeated.
    pub fn record_attempt(&self, due: Due, is_delivered: bool) -> io::Result<bool> {
        let _settling = self.settle_lock();
        if self.index().get(due.id).is_none() {
            return Ok(false);
        }
        let mut head = self.record_meta(due.id)?;
        let Some(call) = head.calls.get_mut(due.number) else { return Ok(false) };
        *call = match is_delivered {
            true => DeliveryState { due: None, ..call.clone() },
            false => policy::after_failure(call, &self.rules.patience, self.clock.now()),
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
        self.index().requeue_delivery(due.id, due.number, moment);
        self.calling.notify_one();
    }
}
