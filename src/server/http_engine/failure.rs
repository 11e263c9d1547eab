//! What the failures of an engine mean: whether a request is sent again, and what it is blamed on. Pure.

use super::refusal::refusal;
use crate::backpressure::retry::Retryability;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::Timestamp;
use std::time::Duration;

/// Why a request got no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineFailure {
    /// The engine, or the way to it, is at fault.
    Engine { fault: Fault, again: Retryability },
    /// The engine refuses the form of the request: another form may be accepted.
    Form(String),
    /// The engine refuses this request, and would refuse it again.
    Refused(String),
}

/// What certain statuses of one engine mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusMeaning<'m> {
    /// Whether the request has another form, which may be accepted after a 400 or 422.
    pub has_other_form: bool,
    /// Whether a 404 passes: some engines answer in this way while they load their model.
    pub is_404_temporary: bool,
    /// What to do about a 413.
    pub too_large: &'m str,
}

/// The head of an answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerHead {
    pub status: u16,
    pub retry_after: Option<Duration>,
}

impl EngineFailure {
    /// Returns what a request without an answer means. `reason` says what happened.
    pub fn unanswered(reason: String, nothing_sent: bool, now: Timestamp) -> Self {
        let kind = if nothing_sent { FaultKind::Unreachable } else { FaultKind::Broken };
        Self::Engine { fault: Fault::new(kind, reason, now), again: Retryability::After(None) }
    }

    /// Returns what a request means that took too long. It is not sent again at once: an engine that is slow would have
    /// even more to do. `settings` says what the limit comes from.
    pub fn timed_out(limit: &str, settings: &str, now: Timestamp) -> Self {
        let words = format!("the engine did not answer within {limit} ({settings})");
        Self::Engine { fault: Fault::new(FaultKind::Broken, words, now), again: Retryability::No }
    }

    /// Returns what an answer means that cannot be used, although its status is 2xx.
    pub fn unreadable(why: &str, now: Timestamp) -> Self {
        let words = format!("the answer of the engine cannot be used: {why}");
        Self::Engine { fault: Fault::new(FaultKind::Broken, words, now), again: Retryability::After(None) }
    }

    /// Returns what a status other than 2xx means.
    pub fn of_status(head: AnswerHead, body: &[u8], meaning: StatusMeaning<'_>, now: Timestamp) -> Self {
        let AnswerHead { status, retry_after } = head;
        let message = refusal(body);
        let told = if message.is_empty() { format!("{status}") } else { format!("{status}: {message}") };
        let answered = format!("the engine answered {told}");
        let retry_after_ms = retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let engine = |kind, words, again| Self::Engine { fault: Fault::new(kind, words, now), again };
        match status {
            429 => engine(FaultKind::Throttled { retry_after_ms }, answered, Retryability::After(retry_after)),
            408 | 500.. => engine(FaultKind::Broken, answered, Retryability::After(retry_after)),
            404 if meaning.is_404_temporary => engine(FaultKind::Broken, answered, Retryability::After(retry_after)),
            401..=403 => engine(FaultKind::Barred { status }, format!("{answered}; check its `key`"), Retryability::No),
            300..400 => {
                let words = format!("{answered}: it is a redirect, which is not followed; correct `url`");
                engine(FaultKind::Barred { status }, words, Retryability::No)
            }
            400 | 422 if meaning.has_other_form => Self::Form(told),
            413 => Self::Refused(format!("{told}; {}", meaning.too_large)),
            400..500 => Self::Refused(told),
            _ => engine(FaultKind::Broken, answered, Retryability::No),
        }
    }

    /// Returns whether the request is sent again at once.
    pub fn again(&self) -> Retryability {
        match self {
            Self::Engine { again, .. } => *again,
            Self::Form(_) | Self::Refused(_) => Retryability::No,
        }
    }

    /// Hides a secret that an engine may repeat.
    #[must_use]
    pub fn without(self, secret: &str) -> Self {
        let hide = |text: String| if secret.is_empty() { text } else { text.replace(secret, "\u{2026}") };
        match self {
            Self::Engine { fault, again } => Self::Engine { fault: Fault { words: hide(fault.words), ..fault }, again },
            Self::Form(text) => Self::Form(hide(text)),
            Self::Refused(text) => Self::Refused(hide(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fault::Blame;

    const MEANING: StatusMeaning<'static> =
        StatusMeaning { has_other_form: true, is_404_temporary: false, too_large: "make `chunk` shorter" };

    fn of(status: u16, body: &str) -> EngineFailure {
        let head = AnswerHead { status, retry_after: Some(Duration::from_secs(7)) };
        EngineFailure::of_status(head, body.as_bytes(), MEANING, Timestamp(0))
    }

    fn blame(failure: &EngineFailure) -> (Blame, Retryability) {
        let EngineFailure::Engine { fault, again } = failure else { panic!("{failure:?}") };
        (fault.blame(), *again)
    }

    #[test]
    fn what_passes_is_sent_again_when_the_engine_says_so() {
        for status in [408, 429, 500, 502, 503, 504, 529] {
            let expected = (Blame::Service, Retryability::After(Some(Duration::from_secs(7))));
            assert_eq!(blame(&of(status, "")), expected, "{status}");
        }
        for status in [301, 307, 401, 402, 403] {
            assert_eq!(blame(&of(status, "")), (Blame::Key, Retryability::No), "{status}");
        }
        let loading = AnswerHead { status: 404, retry_after: None };
        let meaning = StatusMeaning { is_404_temporary: true, ..MEANING };
        let of_whisper = EngineFailure::of_status(loading, b"File Not Found (/inference)", meaning, Timestamp(0));
        assert_eq!(blame(&of_whisper), (Blame::Service, Retryability::After(None)));
    }

    #[test]
    fn a_refusal_has_the_message_of_the_engine() {
        let refused = |status, body| match of(status, body) {
            EngineFailure::Refused(words) => words,
            other => panic!("{other:?}"),
        };
        let openai = r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error"}}"#;
        assert_eq!(refused(404, openai), "404: The model `x` does not exist");
        assert_eq!(refused(415, r#"{"detail":"Unsupported\nfile"}"#), "415: Unsupported file");
        assert!(refused(413, "<html>").contains("make `chunk` shorter"));
        let pydantic = r#"{"detail":[{"loc":["body"],"msg":"Input should be 'json'"}]}"#;
        assert_eq!(of(422, pydantic), EngineFailure::Form("422: Input should be 'json'".to_owned()));
        assert_eq!(refused(404, &"x".repeat(10_000)).len(), 305);
    }

    #[test]
    fn a_secret_that_the_engine_repeats_is_hidden() {
        let repeated = of(401, r#"{"error":"no such key: hunter2"}"#).without("hunter2");
        assert!(!format!("{repeated:?}").contains("hunter2"), "{repeated:?}");
        let refused = of(404, "hunter2").without("hunter2");
        assert_eq!(refused, EngineFailure::Refused("404: \u{2026}".to_owned()));
    }
}
