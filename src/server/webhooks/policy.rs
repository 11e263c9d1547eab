//! Decides which addresses are called about an end, what is sent, and when an attempt is repeated (interface,
//! "Events"). Pure.
//!
//! Choices where the interface is silent: the webhook gets the creation and the end. The creation is tried before each
//! attempt of the end, so that it comes first; a receiver that answers the creation with an error still gets the
//! end. What was created without a webhook, or by an older release, which did not store what the webhook had received,
//! has an end and no creation. A callback gets the end, with the result; `callback_url` counts unless `callback` is
//! false, and `callback_config` takes precedence.

use crate::backpressure::backoff::Growth;
use crate::domain::names::Timestamp;
use crate::server::http::response::request_id;
use crate::server::storage::record_meta::{Callee, DeliveryState, TranscriptionEnd, TranscriptionFailure};
use crate::wire::event;
use crate::wire::params::{CallbackMethod, Params};
use crate::wire::v1::V1Answer;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::time::Duration;
use uuid::Uuid;

/// How often and how soon a failed delivery is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryRetries {
    /// Attempts in all, at least 1.
    pub attempts: u32,
    /// The wait after the first failure; three times as long after each further one.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
}

impl Default for DeliveryRetries {
    /// Twelve attempts within about 27 hours: a receiver that is down for a night still gets the delivery.
    fn default() -> Self {
        Self { attempts: 12, first: Duration::from_secs(10), longest: Duration::from_secs(6 * 3600) }
    }
}

impl DeliveryRetries {
    /// Returns the wait after this many failures; `None` if the delivery is given up.
    pub fn backoff(&self, failed: u32) -> Option<Duration> {
        if failed >= self.attempts {
            return None;
        }
        let growth = Growth { first: self.first, factor: 3.0, max: self.longest };
        Some(growth.wait(failed.saturating_sub(1)))
    }
}

/// Returns the callback that a create requests; `None` if it requests none.
pub fn callback_target(params: &Params) -> Option<Callee> {
    if params.callback == Some(false) {
        return None;
    }
    let config = params.callback_config.as_ref().filter(|_| params.callback == Some(true));
    let (url, method) = match config {
        Some(config) => (config.url.clone(), config.method.unwrap_or_default()),
        None => (params.callback_url.clone()?, CallbackMethod::Post),
    };
    Some(Callee::Callback { url, method })
}

/// Why a delivery was not received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryFailure {
    /// The receiver answered, and not with success.
    Refused(String),
    /// There was no answer.
    NoAnswer(String),
}

impl DeliveryFailure {
    /// Returns the reason, for people.
    pub fn message(&self) -> &str {
        match self {
            Self::Refused(message) | Self::NoAnswer(message) => message,
        }
    }
}

/// Returns the delivery of a creation, which is due at once; `None` without a webhook.
pub fn creation_delivery(webhook: bool, created: Timestamp) -> Option<DeliveryState> {
    webhook.then_some(DeliveryState { to: Callee::Webhook, failed: 0, due: Some(created), error: None })
}

/// Returns the deliveries for a transcription that has ended.
pub fn initial_deliveries(callback: Option<Callee>, webhook: bool, ended: &TranscriptionEnd) -> Vec<DeliveryState> {
    let callees = callback.into_iter().chain(webhook.then_some(Callee::Webhook));
    callees.map(|to| DeliveryState { to, failed: 0, due: Some(ended.at), error: None }).collect()
}

/// Returns the name of the event.
pub fn event_name(ended: &TranscriptionEnd) -> &'static str {
    if ended.failure.is_none() { "transcription.success" } else { "transcription.error" }
}

/// The body of a callback: the result, or why there is none.
#[derive(Serialize)]
struct CallbackBody<'a> {
    id: String,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<serde_json::Value>,
    custom_metadata: Option<&'a RawValue>,
}

/// Returns the body that reports a creation to the webhook.
pub fn creation_body(id: Uuid) -> Vec<u8> {
    json!({ "event": event::CREATED, "payload": { "id": id.to_string() } }).to_string().into_bytes()
}

/// Returns the body of a delivery of the second version.
pub fn delivery_body(
    to: &Callee,
    id: Uuid,
    ended: &TranscriptionEnd,
    result: Option<&RawValue>,
    metadata: Option<&RawValue>,
) -> serde_json::Result<Vec<u8>> {
    let (event, id) = (event_name(ended), id.to_string());
    match to {
        Callee::Webhook => serde_json::to_vec(&json!({ "event": event, "payload": { "id": id } })),
        Callee::Callback { .. } | Callee::FirstVersion { .. } => {
            let error = ended.failure.as_ref().map(|why| json!({ "code": why.code, "message": why.message }));
            serde_json::to_vec(&CallbackBody { id, event, payload: result, error, custom_metadata: metadata })
        }
    }
}

/// Returns the body of a delivery of the first version: the answer that a held connection would have got, or why there
/// is none. The interface does not show it; [`V1Answer`] in `payload` is what a client of the public service reads
/// (service notes, 10).
pub fn v1_delivery_body(
    id: Uuid,
    ended: &TranscriptionEnd,
    answer: Result<Option<V1Answer>, TranscriptionFailure>,
) -> serde_json::Result<Vec<u8>> {
    let request_id = request_id(id);
    let failure = match (answer, &ended.failure) {
        (Ok(Some(payload)), _) => {
            return serde_json::to_vec(&json!({ "request_id": request_id, "payload": payload }));
        }
        (Err(failure), _) => Some(failure),
        (Ok(None), failure) => failure.clone(),
    };
    let error = failure.map(|why| json!({ "code": why.code, "message": why.message }));
    serde_json::to_vec(&json!({ "request_id": request_id, "error": error }))
}

/// Returns the id of a delivery: the same at every attempt, so that a receiver recognises repetitions.
pub fn delivery_id(id: Uuid, event: &str) -> String {
    format!("{id}.{event}")
}

/// Returns the state of a delivery after one more attempt. After a failure it is due again, or not if it is given up.
pub fn after_attempt(
    call: &DeliveryState,
    outcome: &Result<(), DeliveryFailure>,
    patience: &DeliveryRetries,
    now: Timestamp,
) -> DeliveryState {
    let Err(failure) = outcome else { return DeliveryState { due: None, error: None, ..call.clone() } };
    let failed = call.failed.saturating_add(1);
    let due = patience.backoff(failed).map(|wait| now.saturating_add(wait));
    DeliveryState { to: call.to.clone(), failed, due, error: Some(failure.message().to_owned()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::server::storage::record_meta::TranscriptionFailure;

    fn params(value: serde_json::Value) -> Params {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_callback_that_is_asked_for() {
        let post = |url: &str| Some(Callee::Callback { url: url.to_owned(), method: CallbackMethod::Post });
        let put = |url: &str| Some(Callee::Callback { url: url.to_owned(), method: CallbackMethod::Put });
        let config = json!({ "url": "https://a/", "method": "PUT" });
        let asked = |value| callback_target(&params(value));
        assert_eq!(asked(json!({ "callback": true, "callback_config": config })), put("https://a/"));
        assert_eq!(asked(json!({ "callback": true, "callback_config": { "url": "https://a/" } })), post("https://a/"));
        assert_eq!(asked(json!({ "callback_config": config })), None, "the toggle is off");
        assert_eq!(asked(json!({ "callback_url": "https://b/" })), post("https://b/"));
        assert_eq!(asked(json!({ "callback": false, "callback_url": "https://b/" })), None);
        let both = json!({ "callback": true, "callback_config": config, "callback_url": "https://b/" });
        assert_eq!(asked(both), put("https://a/"));
    }

    #[test]
    fn what_is_told() {
        let id = Uuid::nil();
        let result = serde_json::value::to_raw_value(&json!({ "metadata": 1 })).unwrap();
        let well = TranscriptionEnd { at: Timestamp(0), failure: None };
        let badly = TranscriptionEnd {
            failure: Some(TranscriptionFailure { code: 422, message: "no sound".to_owned() }),
            ..well.clone()
        };
        let to = Callee::Callback { url: String::new(), method: CallbackMethod::Post };
        let told = |to: &Callee, ended: &TranscriptionEnd, result: Option<&RawValue>| {
            String::from_utf8(delivery_body(to, id, ended, result, None).unwrap()).unwrap()
        };
        let lines = [told(&to, &well, Some(&result)), told(&to, &badly, None), told(&Callee::Webhook, &well, None)];
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"id":"00000000-0000-0000-0000-000000000000","event":"transcription.success","payload":{"metadata":1},"custom_metadata":null}
        {"id":"00000000-0000-0000-0000-000000000000","event":"transcription.error","error":{"code":422,"message":"no sound"},"custom_metadata":null}
        {"event":"transcription.success","payload":{"id":"00000000-0000-0000-0000-000000000000"}}
        "#);
    }

    #[test]
    fn waits_grow_to_the_longest_and_end() {
        let patience =
            DeliveryRetries { attempts: 5, first: Duration::from_secs(10), longest: Duration::from_secs(100) };
        let waits: Vec<_> = (1..=6).map(|failed| patience.backoff(failed).map(|wait| wait.as_secs())).collect();
        assert_eq!(waits, [Some(10), Some(30), Some(90), Some(100), None, None]);
        let call = DeliveryState { to: Callee::Webhook, failed: 4, due: Some(Timestamp(0)), error: None };
        let error = Some("no answer".to_owned());
        let outcome = Err(DeliveryFailure::NoAnswer("no answer".to_owned()));
        let after = after_attempt(&call, &outcome, &patience, Timestamp(7));
        assert_eq!(after, DeliveryState { failed: 5, due: None, error, ..call.clone() });
        assert_eq!(after_attempt(&call, &Ok(()), &patience, Timestamp(7)), DeliveryState { due: None, ..call });
    }
}
