//! Asks a language model, as many times at once as it is configured for. What fails for a passing reason is sent again; a
//! model that goes on failing is left alone for a while.

use super::completion::{self, Completion};
use super::model_error::ModelError;
use super::prompt::{ContextSize, Prompt};
use super::request_form::{AnswerForm, RequestForm};
use crate::backpressure::retry::retry;
use crate::clock::Clock;
use crate::domain::time_span::time_span;
use crate::server::http_engine::connection::{EngineAccess, EngineAnswer, EngineConnection};
use crate::server::http_engine::failure::{EngineFailure, StatusMeaning};
use crate::server::http_engine::outage::{OutageGuard, OutageTrial};
use crate::server::http_engine::persistence::EnginePersistence;
use crate::server::http_engine::refusal::refusal;
use reqwest::Url;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The settings of a language model.
#[derive(Debug, Clone)]
pub struct LanguageModelOptions {
    /// The address of its API, with or without `/v1`.
    pub access: EngineAccess,
    /// The name of the model that the server is asked for.
    pub model: String,
    /// Whether transcripts that must not leave the site may be sent to it.
    pub is_local: bool,
    /// The form of answers that is asked for first.
    pub form: AnswerForm,
    /// How many tokens a request and its answer may have together.
    pub context: usize,
    /// How many requests it gets at once, at least 1.
    pub concurrency: usize,
    pub limits: ModelLimits,
}

/// How long is waited for a language model, and how often it is asked.
#[derive(Debug, Clone, Copy)]
pub struct ModelLimits {
    /// How long a request may take.
    pub timeout: Duration,
    pub persistence: EnginePersistence,
    /// How long a request waits for the end of an outage, before it fails.
    pub patience: Duration,
}

impl Default for ModelLimits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { timeout: seconds(300), persistence: EnginePersistence::default(), patience: seconds(60) }
    }
}

impl ModelLimits {
    /// Limits each wait before another attempt, and for the end of an outage, to `span`.
    #[must_use]
    pub fn with_waits_up_to(mut self, span: Duration) -> Self {
        self.persistence = self.persistence.with_waits_up_to(span);
        self.patience = self.patience.min(span);
        self
    }
}

/// A language model behind a chat interface.
pub struct LanguageModel {
    options: LanguageModelOptions,
    connection: EngineConnection,
    at_once: Semaphore,
    outages: OutageGuard,
    /// How requests are written: what the server refuses is left out.
    form: Mutex<RequestForm>,
    clock: Arc<dyn Clock>,
}

/// The most bytes that are read of an answer: a context of two million tokens.
const ANSWER: usize = 8 << 20;

impl LanguageModel {
    /// Makes the client of a language model. Nothing is sent yet.
    ///
    /// # Errors
    /// Why the settings, or the certificates of this machine, have to be corrected.
    pub fn open(options: LanguageModelOptions, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let connection = EngineConnection::open(options.access.clone(), path(&options.access.url), Arc::clone(&clock))?;
        Ok(Self {
            connection,
            at_once: Semaphore::new(options.concurrency.max(1)),
            outages: OutageGuard::new(options.limits.persistence.outage),
            form: Mutex::new(RequestForm::new(options.form)),
            options,
            clock,
        })
    }

    /// Whether transcripts that must not leave the site may be sent to it.
    pub fn is_local(&self) -> bool {
        self.options.is_local
    }

    pub fn context(&self) -> ContextSize {
        ContextSize(self.options.context)
    }

    /// Returns how many requests it gets at once.
    pub fn concurrency(&self) -> usize {
        self.options.concurrency.max(1)
    }

    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Asks once. `remark` says what was wrong with the answer before.
    pub async fn complete(&self, prompt: &Prompt, remark: Option<&str>) -> Result<Completion, ModelError> {
        // The semaphore is never closed.
        let _place = self.at_once.acquire().await;
        let _trial = self.admitted().await?;
        let answered = self.complete_in_some_form(prompt, remark).await;
        self.conclude(answered.map_err(|failure| failure.without(self.connection.secret())))
    }

    /// Waits until a request may be sent: an outage that is soon over costs no enrichment.
    async fn admitted(&self) -> Result<Option<OutageTrial<'_>>, ModelError> {
        let mut waited = Duration::ZERO;
        loop {
            match self.outages.admit(self.clock.uptime()) {
                Ok(trial) => return Ok(trial),
                Err(outage) => {
                    waited += outage.wait;
                    if waited > self.options.limits.patience {
                        return Err(ModelError::Away(outage.reason));
                    }
                    self.clock.sleep(outage.wait).await;
                }
            }
        }
    }

    /// Writes the request in the form that the server accepts, and remembers that.
    async fn complete_in_some_form(&self, prompt: &Prompt, remark: Option<&str>) -> Result<Completion, EngineFailure> {
        let known = *self.form.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut form, mut refused) = (known, None);
        loop {
            match self.complete_in(form, prompt, remark).await {
                Err(EngineFailure::Form(words)) => match form.after_refusal(&words, &prompt.shape) {
                    Some(other) => {
                        refused.get_or_insert(words);
                        form = other;
                    }
                    // The form was not the reason.
                    None => return Err(EngineFailure::Refused(refused.unwrap_or(words))),
                },
                Ok(completion) => {
                    if let Some(words) = refused {
                        let words = self.connection.without_secret(&words);
                        tracing::warn!(words, ?form, "the language model accepts requests in another form");
                        *self.form.lock().unwrap_or_else(PoisonError::into_inner) = form;
                    }
                    return Ok(completion);
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    async fn complete_in(
        &self,
        form: RequestForm,
        prompt: &Prompt,
        remark: Option<&str>,
    ) -> Result<Completion, EngineFailure> {
        let body = form.body(&self.options.model, prompt, remark, self.context().answer_tokens(prompt));
        let waiting = |failure: &EngineFailure| {
            let failure = failure.clone().without(self.connection.secret());
            tracing::debug!(?failure, "a request to the language model is sent again");
        };
        let attempt = || self.send_in_time(&body);
        retry(&*self.clock, self.options.limits.persistence.retries, EngineFailure::again, waiting, attempt).await
    }

    async fn send_in_time(&self, body: &serde_json::Value) -> Result<Completion, EngineFailure> {
        let limit = self.options.limits.timeout;
        tokio::select! {
            answered = self.send(body) => answered,
            () = self.clock.sleep(limit) => {
                Err(EngineFailure::timed_out(&time_span(limit), "`timeout`", self.clock.now()))
            }
        }
    }

    async fn send(&self, body: &serde_json::Value) -> Result<Completion, EngineFailure> {
        match self.connection.send(self.connection.post().json(body), ANSWER).await? {
            EngineAnswer::Success(body) => {
                completion::read(&body).map_err(|why| EngineFailure::unreadable(&why, self.clock.now()))
            }
            // The server of llama-cpp-python calls a form that it does not know a fault of its own.
            EngineAnswer::Refusal(head, body) if head.status >= 500 && refusal(&body).contains("response_format") => {
                Err(EngineFailure::Form(format!("{}: {}", head.status, refusal(&body))))
            }
            EngineAnswer::Refusal(head, body) => Err(EngineFailure::of_status(head, &body, MEANING, self.clock.now())),
        }
    }

    /// Records what came of a request.
    fn conclude(&self, answered: Result<Completion, EngineFailure>) -> Result<Completion, ModelError> {
        let now = self.clock.uptime();
        match answered {
            Ok(completion) => {
                if self.outages.answered(now) {
                    tracing::info!("the language model can be used again");
                }
                Ok(completion)
            }
            Err(EngineFailure::Refused(words) | EngineFailure::Form(words)) => {
                self.outages.answered(now);
                Err(ModelError::Refused(words))
            }
            Err(EngineFailure::Engine { fault, .. }) => {
                if self.outages.failed(&fault, now).0 {
                    tracing::warn!(words = fault.words, "the language model cannot be used");
                }
                Err(ModelError::Away(fault.words))
            }
        }
    }
}

const MEANING: StatusMeaning<'static> = StatusMeaning {
    has_other_form: true,
    is_404_temporary: false,
    too_large: "make `context` of [serve.language_model] smaller",
};

/// Returns the path below an address: with `/v1` if the address names no version.
fn path(url: &Url) -> &'static str {
    let is_version = |segment: &str| {
        segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
    };
    match url.path().split('/').any(is_version) {
        true => "/chat/completions",
        false => "/v1/chat/completions",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_the_interface_may_be_in_the_address() {
        for (address, expected) in [
            ("http://localhost:11434", "/v1/chat/completions"),
            ("http://localhost:11434/", "/v1/chat/completions"),
            ("http://localhost:11434/v1", "/chat/completions"),
            ("https://models.example/api/v1/", "/chat/completions"),
            ("https://models.example/v1beta/openai", "/chat/completions"),
            ("https://models.example/vision", "/v1/chat/completions"),
        ] {
            assert_eq!(path(&address.parse().unwrap()), expected, "{address}");
        }
    }
}
