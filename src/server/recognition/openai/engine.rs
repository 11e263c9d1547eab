//! Sends chunks to an engine, as many at once as it is configured for. What fails for a passing reason is sent again;
//! an engine that goes on failing is left alone for a while, and transcriptions wait for it.

use super::answer::{self, AnsweredChunk};
use super::faults::ChunkFailures;
use super::request::{self, EngineForm, EngineProtocol, EngineQuestion};
use super::spread::SpokenSpan;
use crate::backpressure::retry::retry;
use crate::clock::Clock;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::time_span::time_span;
use crate::media::decode::SAMPLE_RATE;
use crate::media::speech::SpeechSearch;
use crate::media::speech_segments::CutRule;
use crate::server::http_engine::connection::{EngineAccess, EngineAnswer, EngineConnection};
use crate::server::http_engine::failure::{EngineFailure, StatusMeaning};
use crate::server::http_engine::outage::{EngineOutage, OutageGuard, OutageTrial};
use crate::server::http_engine::persistence::EnginePersistence;
use crate::server::recognition::recogniser::{
    LearntVocabulary, RecognisedChunk, RecognisedWord, Recogniser, RecogniserError, SpeechChunk, Term,
};
use bytes::Bytes;
use reqwest::Body;
use reqwest::multipart::{Form, Part};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The settings of an engine.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Its name in the configuration.
    pub name: String,
    pub protocol: EngineProtocol,
    pub access: EngineAccess,
    /// The name of the model that is asked for.
    pub model: Option<String>,
    /// Codes of the languages that it recognises; empty for any.
    pub languages: Vec<&'static str>,
    /// How many requests it gets at once, at least 1.
    pub concurrency: usize,
    /// The longest chunk.
    pub chunk: Duration,
    pub limits: EngineLimits,
}

/// How long is waited for an engine, and how often it is tried.
#[derive(Debug, Clone, Copy)]
pub struct EngineLimits {
    /// How long a request may take, beside the time for its sound.
    pub timeout: Duration,
    /// How many seconds a request may take for each second of its sound.
    pub timeout_factor: f64,
    pub persistence: EnginePersistence,
}

impl Default for EngineLimits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { timeout: seconds(120), timeout_factor: 2.0, persistence: EnginePersistence::default() }
    }
}

impl EngineLimits {
    /// Limits each wait before another attempt to `span`.
    #[must_use]
    pub fn with_waits_up_to(mut self, span: Duration) -> Self {
        self.persistence = self.persistence.with_waits_up_to(span);
        self
    }
}

/// The most bytes that are read of a transcript: an hour of tokens takes a hundredth.
const TRANSCRIPT: usize = 64 << 20;

/// Recognises speech with an engine elsewhere.
pub struct OpenAiRecogniser {
    options: EngineOptions,
    connection: EngineConnection,
    at_once: Semaphore,
    outages: OutageGuard,
    failures: Mutex<ChunkFailures>,
    /// Set once the engine has refused answers with words, and has given one without.
    gives_text_alone: AtomicBool,
    clock: Arc<dyn Clock>,
}

impl OpenAiRecogniser {
    /// Makes the client of an engine. Nothing is sent yet.
    ///
    /// # Errors
    /// [`RecogniserError::Unusable`]: the settings, or the certificates of this machine, have to be corrected.
    pub fn open(options: EngineOptions, clock: Arc<dyn Clock>) -> Result<Self, RecogniserError> {
        let connection = EngineConnection::open(options.access.clone(), options.protocol.path(), Arc::clone(&clock))
            .map_err(|reason| RecogniserError::Unusable { name: options.name.clone(), reason })?;
        Ok(Self {
            connection,
            at_once: Semaphore::new(options.concurrency.max(1)),
            outages: OutageGuard::new(options.limits.persistence.outage),
            failures: Mutex::default(),
            gives_text_alone: AtomicBool::new(false),
            options,
            clock,
        })
    }

    /// Recognises a chunk, as the only one in its place.
    async fn recognise_in_place(&self, chunk: &SpeechChunk<'_>) -> Result<RecognisedChunk, RecogniserError> {
        // The semaphore is never closed.
        let _place = self.at_once.acquire().await;
        let _trial = self.admit()?;
        let sent = SentChunk::new(chunk, self.options.languages.as_slice());
        let answered = self.ask(&sent).await.map_err(|failure| failure.without(self.connection.secret()));
        self.conclude(&sent, answered)
    }

    /// Asks for words, and for the text alone if the engine refuses that form.
    async fn ask(&self, sent: &SentChunk<'_>) -> Result<RecognisedChunk, EngineFailure> {
        if self.gives_text_alone.load(Ordering::Relaxed) {
            return self.ask_for(sent, EngineForm::Json).await;
        }
        match self.ask_for(sent, EngineForm::Verbose).await {
            Err(EngineFailure::Form(words)) => match self.ask_for(sent, EngineForm::Json).await {
                Ok(read) => {
                    tracing::warn!(
                        recogniser = self.options.name,
                        words,
                        "the engine refuses `verbose_json`: it is asked for the text alone, and the times of words are estimated"
                    );
                    self.gives_text_alone.store(true, Ordering::Relaxed);
                    Ok(read)
                }
                // The form was not the reason.
                Err(EngineFailure::Refused(_) | EngineFailure::Form(_)) => Err(EngineFailure::Refused(words)),
                failed => failed,
            },
            answered => answered,
        }
    }

    async fn ask_for(&self, sent: &SentChunk<'_>, form: EngineForm) -> Result<RecognisedChunk, EngineFailure> {
        let waiting = |failure: &EngineFailure| {
            tracing::debug!(recogniser = self.options.name, failure = ?failure.clone().without(self.connection.secret()), "a chunk is sent again");
        };
        let attempt = || self.send_in_time(sent, form);
        retry(&*self.clock, self.options.limits.persistence.retries, EngineFailure::again, waiting, attempt).await
    }

    async fn send_in_time(&self, sent: &SentChunk<'_>, form: EngineForm) -> Result<RecognisedChunk, EngineFailure> {
        let EngineLimits { timeout, timeout_factor, .. } = self.options.limits;
        let limit = timeout.saturating_add(Duration::from_secs_f64((sent.seconds * timeout_factor).clamp(0.0, 1e6)));
        tokio::select! {
            answered = self.send(sent, form) => answered,
            () = self.clock.sleep(limit) => Err(EngineFailure::timed_out(&time_span(limit), "`timeout` and `timeout_factor`", self.clock.now())),
        }
    }

    async fn send(&self, sent: &SentChunk<'_>, form: EngineForm) -> Result<RecognisedChunk, EngineFailure> {
        let EngineOptions { protocol, ref model, .. } = self.options;
        let question =
            EngineQuestion { protocol, form, model: model.as_deref(), language: sent.language, prompt: &sent.prompt };
        let part = Part::stream_with_length(Body::from(sent.wav.clone()), sent.wav.len() as u64).file_name("chunk.wav");
        let part = part.mime_str("audio/wav").map_err(|error| self.connection.unanswered(error))?;
        let fields = question.fields().into_iter().fold(Form::new(), |form, (name, value)| form.text(name, value));
        let request = self.connection.post().multipart(fields.part("file", part));
        let body = match self.connection.send(request, TRANSCRIPT).await? {
            EngineAnswer::Success(body) => body,
            EngineAnswer::Refusal(head, body) => {
                return Err(EngineFailure::of_status(head, &body, meaning(protocol, form), self.clock.now()));
            }
        };
        let answered = AnsweredChunk { protocol, seconds: sent.seconds, speech: sent.speech() };
        answer::read(&body, answered).map_err(|why| {
            let why = format!("it is no transcript: {why}");
            EngineFailure::unreadable(&why, self.clock.now())
        })
    }

    fn failures(&self) -> MutexGuard<'_, ChunkFailures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks whether a chunk may be sent now. During an outage one is, from time to time: the returned value then holds
    /// the trial.
    fn admit(&self) -> Result<Option<OutageTrial<'_>>, RecogniserError> {
        self.outages.admit(self.clock.uptime()).map_err(|outage| self.down(outage))
    }

    fn down(&self, EngineOutage { reason, wait }: EngineOutage) -> RecogniserError {
        RecogniserError::Down { name: self.options.name.clone(), reason, wait }
    }

    /// Records what came of a chunk, and says what that means for its transcription.
    fn conclude(
        &self,
        sent: &SentChunk<'_>,
        answered: Result<RecognisedChunk, EngineFailure>,
    ) -> Result<RecognisedChunk, RecogniserError> {
        let refused = |reason| Err(RecogniserError::Refused { name: self.options.name.clone(), reason });
        match answered {
            Ok(read) => {
                self.failures().succeeded(&sent.hash);
                if self.outages.answered(self.clock.uptime()) {
                    tracing::info!(recogniser = self.options.name, "the recogniser can be used again");
                }
                Ok(read)
            }
            // The engine answers, whatever it says.
            Err(EngineFailure::Refused(reason) | EngineFailure::Form(reason)) => {
                self.outages.answered(self.clock.uptime());
                refused(reason)
            }
            Err(EngineFailure::Engine { fault, .. }) => self.blame(sent, &fault).map_or_else(refused, Err),
        }
    }

    /// Blames a failure on the engine, or on the chunk if others succeed: that is the other value.
    fn blame(&self, sent: &SentChunk<'_>, fault: &Fault) -> Result<RecogniserError, String> {
        if fault.kind == FaultKind::Broken && self.failures().failed(sent.hash) {
            return Err(format!("it fails on this recording, and recognises others: {}", fault.words));
        }
        let (begins, wait) = self.outages.failed(fault, self.clock.uptime());
        if begins {
            tracing::warn!(
                recogniser = self.options.name,
                words = fault.words,
                "the recogniser cannot be used; transcriptions wait for it"
            );
        }
        Ok(self.down(EngineOutage { reason: fault.words.clone(), wait }))
    }
}

/// Returns what certain statuses mean. While it loads its model, whisper.cpp answers with 404.
fn meaning(protocol: EngineProtocol, form: EngineForm) -> StatusMeaning<'static> {
    StatusMeaning {
        has_other_form: form == EngineForm::Verbose,
        is_404_temporary: protocol == EngineProtocol::WhisperCpp,
        too_large: "make `chunk` shorter, or raise the limit of the engine",
    }
}

impl Recogniser for OpenAiRecogniser {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn identity(&self) -> String {
        let EngineOptions { name, protocol, access: EngineAccess { url, .. }, model, languages, .. } = &self.options;
        format!("{name} {protocol:?} {url} {model:?} {languages:?}")
    }

    fn languages(&self) -> &[&'static str] {
        &self.options.languages
    }

    fn cut_rule(&self) -> CutRule {
        CutRule::Chunks(self.options.chunk)
    }

    fn at_once(&self) -> usize {
        self.options.concurrency
    }

    fn check_ready(&self) -> Result<(), RecogniserError> {
        self.outages.check(self.clock.uptime()).map_err(|outage| self.down(outage))
    }

    fn recognise_chunk(&self, chunk: &SpeechChunk<'_>) -> Result<RecognisedChunk, RecogniserError> {
        Handle::current().block_on(async {
            tokio::select! {
                biased;
                () = chunk.cancelled.cancelled() => Err(RecogniserError::Cancelled),
                recognised = self.recognise_in_place(chunk) => recognised,
            }
        })
    }

    fn recognise(&self, samples: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let (vocabulary, cancelled) = (Arc::default(), CancellationToken::new());
        let chunk = SpeechChunk { samples, language: None, vocabulary: &vocabulary, prompt: "", cancelled: &cancelled };
        Ok(self.recognise_chunk(&chunk)?.words.into_iter().map(RecognisedWord::from).collect())
    }

    /// The vocabulary is a part of the prompt, as far as there is room.
    fn learn(&self, terms: &[Term]) -> Result<LearntVocabulary, RecogniserError> {
        Ok(LearntVocabulary::of_prompt(terms, request::room_for_terms))
    }
}

/// A chunk as it is sent.
struct SentChunk<'c> {
    wav: Bytes,
    hash: [u8; 32],
    seconds: f64,
    language: Option<&'c str>,
    prompt: String,
    samples: &'c [i16],
    speech: std::sync::OnceLock<Vec<SpokenSpan>>,
}

impl<'c> SentChunk<'c> {
    fn new(chunk: &SpeechChunk<'c>, languages: &[&'static str]) -> Self {
        let wav = Bytes::from(request::wav(chunk.samples));
        let terms: Vec<String> = chunk.vocabulary.words.iter().map(|word| word.value.clone()).collect();
        // An engine of one language need not find out which one it is.
        let only = if let [only] = languages { Some(*only) } else { None };
        Self {
            hash: *blake3::hash(&wav).as_bytes(),
            seconds: chunk.samples.len() as f64 / f64::from(SAMPLE_RATE),
            language: chunk.language.or(only),
            prompt: request::prompt(chunk.prompt, &terms),
            samples: chunk.samples,
            speech: std::sync::OnceLock::new(),
            wav,
        }
    }

    /// Returns where it has speech; searched when it is first needed.
    fn speech(&self) -> &[SpokenSpan] {
        self.speech.get_or_init(|| {
            let mut search = SpeechSearch::default();
            search.push(self.samples);
            search.finish().spans.into_iter().map(|span| (span.start, span.end)).collect()
        })
    }
}
