//! What the failures of an engine mean: whether a request is sent again, and whom they are blamed on. Pure.

use super::answer::refusal;
use super::request::{EngineForm, EngineProtocol};
use crate::backpressure::retry::Retryability;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::Timestamp;
use std::collections::HashMap;
use std::time::Duration;

/// Why a request got no transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineFailure {
    /// The engine, or the way to it, is at fault.
    Engine { fault: Fault, again: Retryability },
    /// The engine refuses the form of the answer that was asked for: another form may be accepted.
    Form(String),
    /// The engine refuses this request, and would refuse it again.
    Refused(String),
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
    /// even more to do.
    pub fn timed_out(limit: &str, now: Timestamp) -> Self {
        let words = format!("the engine did not answer within {limit} (`timeout` and `timeout_factor`)");
        Self::Engine { fault: Fault::new(FaultKind::Broken, words, now), again: Retryability::No }
    }

    /// Returns what an answer means that is no transcript, although its status is 2xx.
    pub fn unreadable(why: &str, now: Timestamp) -> Self {
        let words = format!("the engine answered with what is no transcript: {why}");
        Self::Engine { fault: Fault::new(FaultKind::Broken, words, now), again: Retryability::After(None) }
    }

    /// Returns what a status other than 2xx means.
    pub fn of_status(
        head: AnswerHead,
        body: &[u8],
        protocol: EngineProtocol,
        form: EngineForm,
        now: Timestamp,
    ) -> Self {
        let AnswerHead { status, retry_after } = head;
        let message = refusal(body);
        let told = if message.is_empty() { format!("{status}") } else { format!("{status}: {message}") };
        let answered = format!("the engine answered {told}");
        let retry_after_ms = retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let engine = |kind, words, again| Self::Engine { fault: Fault::new(kind, words, now), again };
        match status {
            429 => engine(FaultKind::Throttled { retry_after_ms }, answered, Retryability::After(retry_after)),
            408 | 500.. => engine(FaultKind::Broken, answered, Retryability::After(retry_after)),
            // While it loads its model, whisper.cpp answers in this way.
            404 if protocol == EngineProtocol::WhisperCpp => {
                engine(FaultKind::Broken, answered, Retryability::After(retry_after))
            }
            401..=403 => engine(FaultKind::Barred { status }, format!("{answered}; check its `key`"), Retryability::No),
            300..400 => {
                let words = format!("{answered}: it is a redirect, which is not followed; correct `url`");
                engine(FaultKind::Barred { status }, words, Retryability::No)
            }
            400 | 422 if form == EngineForm::Verbose => Self::Form(told),
            413 => Self::Refused(format!("{told}; make `chunk` shorter, or raise the limit of the engine")),
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

/// How many times a chunk fails, each time after the engine has recognised others, until the chunk is blamed.
const ALONE: u32 = 3;

/// The most chunks whose failures are remembered.
const REMEMBERED: usize = 1_000;

/// Decides whether the engine or a chunk is to blame for failures: the engine while others fail too, the chunk once
/// others succeed.
#[derive(Debug, Default)]
pub struct ChunkFailures {
    successes: u64,
    /// By the hash of a chunk: failures after successes of others, and the successes at the last one.
    failed: HashMap<[u8; 32], (u32, u64)>,
}

impl ChunkFailures {
    pub fn succeeded(&mut self, chunk: &[u8; 32]) {
        self.successes += 1;
        self.failed.remove(chunk);
    }

    /// Records that a chunk got a wrong answer, or none in time. Returns whether the chunk is to blame.
    pub fn failed(&mut self, chunk: [u8; 32]) -> bool {
        if self.failed.len() >= REMEMBERED {
            self.failed.clear();
        }
        let (alone, seen) = self.failed.entry(chunk).or_insert((0, self.successes));
        if self.successes > *seen {
            (*alone, *seen) = (*alone + 1, self.successes);
        }
        *alone >= ALONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fault::Blame;

    fn of(status: u16, body: &str) -> EngineFailure {
        let head = AnswerHead { status, retry_after: Some(Duration::from_secs(7)) };
        EngineFailure::of_status(head, body.as_bytes(), EngineProtocol::OpenAi, EngineForm::Verbose, Timestamp(0))
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
        let of_whisper = EngineFailure::of_status(
            loading,
            b"File Not Found (/inference)",
            EngineProtocol::WhisperCpp,
            EngineForm::Verbose,
            Timestamp(0),
        );
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

    #[test]
    fn a_chunk_is_blamed_once_others_succeed() {
        let (bad, good) = ([1; 32], [2; 32]);
        let mut failures = ChunkFailures::default();
        assert!((0..100).all(|_| !failures.failed(bad)), "the engine fails for all");
        for _ in 0..2 {
            failures.succeeded(&good);
            assert!(!failures.failed(bad) && !failures.failed(bad));
        }
        failures.succeeded(&good);
        assert!(failures.failed(bad) && !failures.failed(good));
        failures.succeeded(&bad);
        assert!(!failures.failed(bad));
    }
}
