//! Processes one transcription: recognises it and writes its result.

use crate::blocking::elsewhere;
use crate::clock::Clock;
use crate::crash_points::{self, Point};
use crate::domain::names::Timestamp;
use crate::domain::token::LOCAL_MARK;
use crate::media::decode::DecodeError;
use crate::review::UnreadSound;
use crate::server::known_speakers::identify::identify;
use crate::server::known_speakers::voice_store::VoiceStore;
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::enrich::{self, ModelResults};
use crate::server::recognition::chunk_log::{self, ChunkLog};
use crate::server::recognition::progress::{ListedProgress, ProgressTable};
use crate::server::recognition::recogniser::{Recogniser, RecogniserError};
use crate::server::recognition::registry::{BUILT_IN, NoRecogniser, RecogniserWish, Recognisers};
use crate::server::recognition::result;
use crate::server::recognition::result::{ResultCompletion, ResultFacts, WrittenResult};
use crate::server::recognition::spare_places::SparePlaces;
use crate::server::recognition::transcribe;
use crate::server::recognition::transcribe::{RecognisedSpeech, TranscribeError, TranscribeOptions};
use crate::server::recognition::turn::TurnSignal;
use crate::server::recognition::unsupported::{LanguageModelUse, RecogniserTraits, ServiceTraits, UnsupportedParts};
use crate::server::redaction::RedactionPlan;
use crate::server::storage::disk_quota::Bounded;
use crate::server::storage::index::DeferralCause;
use crate::server::storage::kill_count::{TranscriptionWork, Underway};
use crate::server::storage::records::{LOST, is_lost};
use crate::server::storage::transcriptions::{
    RecordMeta, TakenTranscription, TranscriptionEnd, TranscriptionFailure, TranscriptionStore,
};
use crate::server::translation::apertium::Apertium;
use crate::wire::enrichment::Shapes;
use crate::wire::params::Params;
use crate::wire::published;
use crate::wire::result::ParameterWithoutEffect;
use crate::wire::result_out::KnownSpeakerOut;
use serde_json::Value;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Processes transcriptions of a store.
pub struct Worker {
    /// The store that has the records and gets the results.
    pub store: Arc<TranscriptionStore>,
    pub recognisers: Arc<Recognisers>,
    /// Makes enrichments of what was recognised.
    pub language_model: Option<Arc<LanguageModel>>,
    /// Translates what no language model translates.
    pub translator: Option<Arc<Apertium>>,
    /// The known voices, if speakers are compared with some.
    pub voices: Option<Arc<VoiceStore>>,
    /// Used for waits.
    pub clock: Arc<dyn Clock>,
    /// Which shapes results have where the interface and the public service differ.
    pub shapes: Shapes,
    /// The longest recording that is accepted.
    pub length_limit: Duration,
    /// Says how far each transcription is.
    pub progress: Arc<ProgressTable>,
    /// Places that no transcription holds, for more chunks of those in progress.
    pub spare: SparePlaces,
}

impl Worker {
    /// Processes a transcription to its end. When dropped in the middle, only time is lost: the store queues it again
    /// at the next start. If it cannot be processed now, it is returned, and the caller has to queue it again.
    #[must_use = "what is given back waits nowhere"]
    pub async fn process(&self, taken: TakenTranscription, turn: TurnSignal) -> Option<GivenBack> {
        let done = match self.begin(&taken).await {
            Ok(underway) => {
                crash_points::point(Point::Recognising);
                let outcome = tokio::select! {
                    outcome = self.transcribe(&taken, turn) => outcome,
                    () = taken.cancelled.cancelled() => Ok(Outcome::Failed(cancelled_failure())),
                };
                outcome.map(|outcome| (underway, outcome))
            }
            Err(unable) => Err(unable),
        };
        match done {
            Ok((underway, outcome)) => {
                self.end(taken, outcome).await;
                underway.complete();
                None
            }
            // Nothing is wrong with the transcription: it waits until the administrator fixes the machine, or what is
            // away comes back.
            Err(Unable { words, wait, cause: DeferralCause::Machine }) => {
                tracing::error!(id = %taken.id, words, "nothing can be transcribed; trying again");
                Some(GivenBack { taken, words, wait, cause: DeferralCause::Machine })
            }
            Err(Unable { words, wait, cause }) => {
                tracing::debug!(id = %taken.id, words, "a transcription waits");
                Some(GivenBack { taken, words, wait, cause })
            }
        }
    }

    async fn begin(&self, taken: &TakenTranscription) -> Result<Underway, Unable> {
        begin_work(&self.store, taken, TranscriptionWork::Recognition).await.map_err(Unable::of)
    }

    async fn transcribe(&self, taken: &TakenTranscription, turn: TurnSignal) -> Result<Outcome, Unable> {
        let (store, recognisers, own) = (Arc::clone(&self.store), Arc::clone(&self.recognisers), taken.clone());
        let model_is_local = self.language_model.as_ref().map(|model| model.is_local());
        let translator = self.translator.clone();
        let ready = catch_panic(async move {
            let makers = (model_is_local, translator);
            elsewhere(move || prepare(&store, &recognisers, makers, &own)).await
        });
        let Ready { head, params, recogniser, options, without_effect } =
            match ready.await.map_err(|Panic| Unable::of("a fault in the service"))?? {
                Ok(ready) => ready,
                Err(failure) => return Ok(Outcome::Failed(failure)),
            };
        let media = self.store.upload_store.media_path(taken.upload);
        let listed = self.progress.begin(taken.id);
        let (progress, spare) = (listed.progress.clone(), self.spare.clone());
        let names_speakers = self.voices.is_some() && may_name_speakers(&params);
        let options =
            TranscribeOptions { longest: self.length_limit, turn, progress, spare, names_speakers, ..options };
        let speech = catch_panic(async move { transcribe::transcribe(&media, recogniser, options).await });
        let speech = tokio::select! {
            speech = speech => speech,
            () = self.report(taken, &listed) => return Err(Unable::of("a fault in the service")),
        };
        match speech {
            Ok(Ok(speech)) => Ok(self.write_result(taken, (head, without_effect), params, speech).await),
            Ok(Err(error)) => failure_of(&error).map(Outcome::Failed),
            Err(Panic) => Ok(Outcome::Failed(internal_failure())),
        }
    }

    /// Logs from time to time how far a transcription is. Never returns.
    async fn report(&self, taken: &TakenTranscription, listed: &ListedProgress) {
        let length = self.store.upload_store.file_info(taken.upload).and_then(|file| file.audio_duration);
        loop {
            self.clock.sleep(REPORTS).await;
            let recognised = listed.progress.seconds().round();
            tracing::info!(id = %taken.id, recognised, length, "seconds of a recording that are recognised so far");
        }
    }

    /// Writes the result, and repeats that until the disk accepts it, so that no recognised speech is lost.
    async fn write_result(
        &self,
        taken: &TakenTranscription,
        (head, without_effect): (RecordMeta, Vec<ParameterWithoutEffect>),
        params: Params,
        speech: RecognisedSpeech,
    ) -> Outcome {
        let voices = self.voices.clone().filter(|_| may_name_speakers(&params));
        // A header may declare less than there is, or more.
        let (shapes, audio_duration) = (self.shapes, speech.seconds);
        warn_of_unread(taken, &speech.unread);
        let facts = ResultFacts { audio_duration, created: head.created, without_effect, shapes };
        let clock = Arc::clone(&self.clock);
        let make = move || Arc::new(WrittenResult::from_speech(params, speech, facts, &*clock));
        let made = catch_panic(elsewhere(make)).await;
        let Ok(made) = made else { return Outcome::Failed(internal_failure()) };
        let model = self.enrich(taken, &made, is_local_only(&head)).await;
        let at = self.store.end_time(taken);
        let completion = Arc::new(ResultCompletion { ended: at, model });
        let dropped = CancellationToken::new();
        let _guard = dropped.clone().drop_guard();
        loop {
            let (store, made, clock) = (Arc::clone(&self.store), Arc::clone(&made), Arc::clone(&self.clock));
            let (id, dropped, completion) = (taken.id, dropped.clone(), Arc::clone(&completion));
            let voices = voices.clone();
            let written = catch_panic(elsewhere(move || {
                // Only now, so that the result has no voice that was deleted in the meantime.
                let known = voices.map(|voices| identify(&voices, made.voices()));
                write(&store, id, (&made, &completion, known), &*clock, &dropped)
            }));
            match written.await {
                Ok(Ok(true)) => return Outcome::Done(at),
                Ok(Ok(false)) => return Outcome::Failed(too_large()),
                Ok(Err(error)) => tracing::error!(id = %taken.id, %error, "a result cannot be written; trying again"),
                Err(Panic) => return Outcome::Failed(internal_failure()),
            }
            self.clock.sleep(AGAIN).await;
        }
    }

    /// Makes the enrichments that need a language model, or Apertium. Whatever comes of them, the transcription is done.
    async fn enrich(&self, taken: &TakenTranscription, made: &Arc<WrittenResult>, is_local_only: bool) -> ModelResults {
        if !enrich::is_requested(made.model_input()) {
            return ModelResults::default();
        }
        let is_local = self.language_model.as_ref().map(|model| model.is_local());
        match (&self.language_model, LanguageModelUse::of(is_local, is_local_only)) {
            (None, _) | (_, LanguageModelUse::Absent) => self.translated(made, ModelResults::default()).await,
            (Some(_), LanguageModelUse::NotLocal) => {
                self.translated(made, ModelResults::not_local(made.model_input())).await
            }
            (Some(model), LanguageModelUse::Used) => {
                let begun = self.clock.uptime();
                let (model, own) = (Arc::clone(model), Arc::clone(made));
                let results = catch_panic(async move { enrich::enrich(&model, own.model_input()).await }).await;
                let seconds = self.clock.uptime().since(begun).as_secs_f64();
                tracing::info!(id = %taken.id, seconds, "the language model was asked about a transcription");
                results.unwrap_or_else(|Panic| ModelResults::fault(made.model_input()))
            }
        }
    }

    /// Translates with Apertium, if it is there: it runs on this machine, and learns what no other one may.
    async fn translated(&self, made: &Arc<WrittenResult>, mut results: ModelResults) -> ModelResults {
        let Some(translator) = self.translator.clone() else { return results };
        let own = Arc::clone(made);
        let translations = catch_panic(async move {
            let input = own.model_input();
            translator.translate(input.transcript, &enrich::targets(input)).await
        });
        let fault = |Panic| ModelResults::fault(made.model_input()).translations;
        results.translations = translations.await.unwrap_or_else(fault);
        results
    }

    async fn end(&self, taken: TakenTranscription, outcome: Outcome) {
        let ended = match outcome {
            Outcome::Done(at) => TranscriptionEnd { at, failure: None },
            Outcome::Failed(failure) => TranscriptionEnd { at: self.store.end_time(&taken), failure: Some(failure) },
        };
        write_end(&self.store, &*self.clock, taken, ended).await;
    }
}

fn warn_of_unread(taken: &TakenTranscription, unread: &UnreadSound) {
    if unread.bytes > 0 {
        let UnreadSound { bytes, damage } = unread;
        tracing::warn!(id = %taken.id, bytes, %damage, "a part of a recording may be sound and cannot be decoded; its transcript is without it");
    }
}

/// How often the log says how far a transcription is.
const REPORTS: Duration = Duration::from_secs(5 * 60);

/// A transcription that cannot be processed now.
pub struct GivenBack {
    pub taken: TakenTranscription,
    /// Why, for people.
    pub words: String,
    /// How long it waits before it is tried again.
    pub wait: Duration,
    pub cause: DeferralCause,
}

/// What a transcription needs.
struct Ready {
    head: RecordMeta,
    params: Params,
    recogniser: Arc<dyn Recogniser>,
    /// What was requested, and what was recognised before.
    options: TranscribeOptions,
    /// The requested parameters that have no effect with this recogniser.
    without_effect: Vec<ParameterWithoutEffect>,
}

/// Reads what was requested, and opens the recogniser and the log of what it recognised before. Blocks.
fn prepare(
    store: &TranscriptionStore,
    recognisers: &Recognisers,
    (model_is_local, translator): (Option<bool>, Option<Arc<Apertium>>),
    taken: &TakenTranscription,
) -> Result<Result<Ready, TranscriptionFailure>, Unable> {
    let head = match store.record_meta(taken.id) {
        Err(error) if is_lost(&error) => return Ok(Err(TranscriptionFailure { code: 500, message: LOST.to_owned() })),
        head => head.map_err(Unable::of)?,
    };
    let params: Params = serde_json::from_value(published::with_defaults(&head.params)).unwrap_or_default();
    let wish = RecogniserWish { model: params.model.as_deref(), is_local_only: is_local_only(&head) };
    let chosen = match recognisers.choose_stored(wish) {
        Ok(chosen) => chosen,
        // It may be configured again, and is not replaced by another one that nobody asked for.
        Err(error @ NoRecogniser::Unknown { .. }) => return Err(Unable::elsewhere(error.to_string(), AGAIN)),
        Err(error) => return Ok(Err(TranscriptionFailure { code: 422, message: error.to_string() })),
    };
    let recogniser = chosen.recogniser.get_or_open().map_err(Unable::of)?;
    recogniser.check_ready().map_err(|error| Unable::of_recogniser(&error))?;
    let traits = RecogniserTraits {
        languages: recogniser.languages(),
        is_built_in: chosen.name == BUILT_IN,
        is_named: recognisers.has_choice(),
    };
    let language_model = LanguageModelUse::of(model_is_local, is_local_only(&head));
    let directions = translator.as_ref().map(|translator| translator.directions());
    let service = ServiceTraits { recogniser: traits, language_model, directions };
    let without_effect = UnsupportedParts::check(&params, service).without_effect.into_iter().map(Into::into).collect();
    let options = result::transcribe_options(&params);
    let log = open_log(store, taken, &*recogniser, &options);
    let options = TranscribeOptions { log: Some(Arc::new(log)), ..options };
    Ok(Ok(Ready { head, params, recogniser, options, without_effect }))
}

fn open_log(
    store: &TranscriptionStore,
    taken: &TakenTranscription,
    recogniser: &dyn Recogniser,
    options: &TranscribeOptions,
) -> ChunkLog {
    let settings = chunk_log::settings(recogniser, options, taken.upload);
    let log = ChunkLog::open(store, taken, &settings);
    if log.known_count() > 0 {
        tracing::info!(id = %taken.id, chunks = log.known_count(), "a transcription continues after its saved chunks");
    }
    log
}

/// Whether speakers may get names: they are told apart, and nothing of what identifies people is to be redacted.
fn may_name_speakers(params: &Params) -> bool {
    params.diarization == Some(true) && RedactionPlan::of(params).is_none()
}

/// Whether the create was marked as one whose recording must not leave the site.
fn is_local_only(head: &RecordMeta) -> bool {
    let metadata = head.metadata.as_ref().and_then(|text| serde_json::from_str::<Value>(text.get()).ok());
    metadata.is_some_and(|metadata| metadata[LOCAL_MARK] == true)
}

/// Records that work begins.
///
/// # Errors
/// Errors of the file system: the work must then not begin.
pub async fn begin_work(
    store: &Arc<TranscriptionStore>,
    taken: &TakenTranscription,
    work: TranscriptionWork,
) -> io::Result<Underway> {
    let (store, taken) = (Arc::clone(store), taken.clone());
    catch_panic(elsewhere(move || store.begin(&taken, work)))
        .await
        .unwrap_or_else(|Panic| Err(io::Error::other("a fault")))
}

/// Bytes of the largest result that is stored: a million words with everything that can be requested take a fifth of
/// it.
const LARGEST: u64 = 1 << 30;

/// Returns `true` if the result was written, `false` if it is too large. Fails if `dropped` is cancelled meanwhile.
fn write(
    store: &TranscriptionStore,
    id: Uuid,
    (made, completion, mut known): (&WrittenResult, &ResultCompletion, Option<Vec<KnownSpeakerOut>>),
    clock: &dyn Clock,
    dropped: &CancellationToken,
) -> io::Result<bool> {
    let mut is_over = false;
    let written = store.write_result(id, |to| {
        let to = CancellableWriter { to, dropped };
        let mut to = Bounded { to, left: LARGEST, is_over: false };
        let written = made.write(completion, known.take(), &mut to, clock);
        is_over = to.is_over;
        written
    });
    if is_over { Ok(false) } else { written.map(|()| true) }
}

/// A writer that fails once `dropped` is cancelled.
struct CancellableWriter<'a> {
    to: &'a mut dyn Write,
    dropped: &'a CancellationToken,
}

impl Write for CancellableWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.dropped.is_cancelled() {
            return Err(io::Error::other("the service is being stopped"));
        }
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn too_large() -> TranscriptionFailure {
    let message = format!("the result would be larger than {LARGEST} bytes; split the recording, or ask for less");
    TranscriptionFailure { code: 422, message }
}

/// Writes the end of a transcription, and repeats that until the disk accepts it, so that no result is lost.
pub async fn write_end(
    store: &Arc<TranscriptionStore>,
    clock: &dyn Clock,
    taken: TakenTranscription,
    ended: TranscriptionEnd,
) {
    let whole = Arc::new((taken, ended));
    loop {
        let (store, parts) = (Arc::clone(store), Arc::clone(&whole));
        let written = catch_panic(elsewhere(move || store.end(&parts.0, parts.1.clone(), None)));
        match written.await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => tracing::error!(id = %whole.0.id, %error, "an end cannot be written; trying again"),
            Err(Panic) => return,
        }
        clock.sleep(AGAIN).await;
    }
}

/// How long to wait before a retry when this machine cannot do its part.
pub const AGAIN: Duration = Duration::from_secs(15);

/// The outcome of a transcription.
enum Outcome {
    /// The result is stored; its times were computed for this end time.
    Done(Timestamp),
    Failed(TranscriptionFailure),
}

/// A transcription cannot be processed now: this machine lacks something that its administrator can fix, or a recogniser
/// elsewhere is away.
struct Unable {
    words: String,
    wait: Duration,
    cause: DeferralCause,
}

impl Unable {
    fn of(error: impl std::fmt::Display) -> Self {
        Self { words: error.to_string(), wait: AGAIN, cause: DeferralCause::Machine }
    }

    fn elsewhere(words: String, wait: Duration) -> Self {
        Self { words, wait, cause: DeferralCause::Elsewhere }
    }

    fn of_recogniser(error: &RecogniserError) -> Self {
        match error {
            RecogniserError::Down { wait, .. } => Self::elsewhere(error.to_string(), *wait),
            _ => Self::of(error),
        }
    }
}

/// The work panicked.
pub struct Panic;

/// Returns the failure to record: 422 if the file is the cause, 500 if this program or the recogniser is. An error that
/// the administrator can fix is returned as [`Unable`].
fn failure_of(error: &TranscribeError) -> Result<TranscriptionFailure, Unable> {
    use DecodeError::{Damaged, Empty, Io, NoAudio, NotMedia, TimedOut, TooManyChannels, ToolMissing};
    let code = match error {
        TranscribeError::TooLong(_) | TranscribeError::TooManyWords => 422,
        TranscribeError::Decode(Empty | NoAudio | NotMedia { .. } | Damaged { .. } | TooManyChannels { .. }) => 422,
        TranscribeError::Decode(Io(_) | TimedOut { .. }) | TranscribeError::Stopped => 500,
        TranscribeError::Recogniser(RecogniserError::Recognition { .. } | RecogniserError::Cancelled) => 500,
        TranscribeError::Recogniser(RecogniserError::Refused { .. }) => 422,
        TranscribeError::Recogniser(error) => return Err(Unable::of_recogniser(error)),
        TranscribeError::Decode(ToolMissing { .. }) => return Err(Unable::of(error)),
    };
    Ok(TranscriptionFailure { code, message: error.to_string() })
}

/// Returns the failure of a transcription that its owner cancelled.
pub fn cancelled_failure() -> TranscriptionFailure {
    TranscriptionFailure { code: 410, message: "cancelled by a DELETE of its key".to_owned() }
}

/// Returns the failure for a fault of this program.
pub fn internal_failure() -> TranscriptionFailure {
    TranscriptionFailure { code: 500, message: "a fault in the service; its log says more".to_owned() }
}

/// Runs work in a task of its own, so that a panic ends nothing else. The task ends when this future is dropped.
///
/// # Errors
/// The work panicked.
pub async fn catch_panic<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, Panic> {
    let mut task = JoinSet::new();
    task.spawn(work);
    match task.join_next().await {
        Some(Ok(done)) => Ok(done),
        _ => Err(Panic),
    }
}
