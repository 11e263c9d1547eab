//! Sees to one transcription: has it heard, and writes what came of it.

use crate::blocking::elsewhere;
use crate::clock::Clock;
use crate::crash_points::{self, Point};
use crate::domain::names::Timestamp;
use crate::media::decode::DecodeError;
use crate::server::recognition::lazy::LazyRecogniser;
use crate::server::recognition::recogniser::RecogniserError;
use crate::server::recognition::result;
use crate::server::recognition::result::ResultFacts;
use crate::server::recognition::transcribe;
use crate::server::recognition::transcribe::{RecognisedSpeech, TranscribeError, TranscribeOptions};
use crate::server::recognition::turn::TurnSignal;
use crate::server::storage::disk_quota::Bounded;
use crate::server::storage::kill_count::{TranscriptionWork, Underway};
use crate::server::storage::records::{LOST, is_lost};
use crate::server::storage::transcriptions::{
    RecordMeta, TakenTranscription, TranscriptionEnd, TranscriptionFailure, TranscriptionStore,
};
use crate::wire::enrichment::Shapes;
use crate::wire::params::Params;
use crate::wire::published;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// What a worker needs.
pub struct Worker {
    /// Where it takes its work from and puts what it made.
    pub store: Arc<TranscriptionStore>,
    pub recogniser: Arc<LazyRecogniser>,
    /// Paces what is tried again.
    pub clock: Arc<dyn Clock>,
    /// Whose shapes results have.
    pub shapes: Shapes,
    /// The longest recording that is heard.
    pub length_limit: Duration,
}

impl Worker {
    /// Sees it to its end. Dropped in the middle it loses nothing but the time: the store has it queued again at
    /// the next start. What this machine cannot do now is given back: it has to wait again, once this has returned.
    #[must_use = "what is given back waits nowhere"]
    pub async fn process(&self, taken: TakenTranscription, turn: TurnSignal) -> Option<TakenTranscription> {
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
            // Nothing is wrong with the transcription: it waits for whoever runs the machine.
            Err(Unable(words)) => {
                tracing::error!(id = %taken.id, words, "nothing can be transcribed; trying again");
                Some(taken)
            }
        }
    }

    async fn begin(&self, taken: &TakenTranscription) -> Result<Underway, Unable> {
        begin_work(&self.store, taken, TranscriptionWork::Recognition).await.map_err(Unable::of)
    }

    async fn transcribe(&self, taken: &TakenTranscription, turn: TurnSignal) -> Result<Outcome, Unable> {
        let (store, lazy, id) = (Arc::clone(&self.store), Arc::clone(&self.recogniser), taken.id);
        let ready = catch_panic(async move {
            elsewhere(move || match store.record_meta(id) {
                Err(error) if is_lost(&error) => Ok(None),
                head => Ok(Some((head.map_err(Unable::of)?, lazy.get_or_open().map_err(Unable::of)?))),
            })
            .await
        });
        let ready = ready.await.map_err(|Panic| Unable("a fault in the service".to_owned()))??;
        let Some((head, recogniser)) = ready else {
            return Ok(Outcome::Failed(TranscriptionFailure { code: 500, message: LOST.to_owned() }));
        };
        let media = self.store.upload_store.media_path(taken.upload);
        let params: Params = serde_json::from_value(published::with_defaults(&head.params)).unwrap_or_default();
        let wishes = TranscribeOptions { longest: self.length_limit, turn, ..result::transcribe_options(&params) };
        let hearing = catch_panic(async move { transcribe::transcribe(&media, recogniser, wishes).await });
        match hearing.await {
            Ok(Ok(hearing)) => Ok(self.write_up(taken, head, params, hearing).await),
            Ok(Err(error)) => failure_of(&error).map(Outcome::Failed),
            Err(Panic) => Ok(Outcome::Failed(internal_failure())),
        }
    }

    /// Writes the result, however long the disk takes: what was heard is not thrown away.
    async fn write_up(
        &self,
        taken: &TakenTranscription,
        head: RecordMeta,
        params: Params,
        hearing: RecognisedSpeech,
    ) -> Outcome {
        let (at, shapes) = (self.store.end_time(taken), self.shapes);
        let audio_duration = head.file.audio_duration.unwrap_or(0.0);
        let facts = ResultFacts { audio_duration, created: head.created, ended: at, shapes };
        let made =
            catch_panic(elsewhere(move || Arc::new(result::WrittenResult::from_speech(params, hearing, facts)))).await;
        let Ok(made) = made else { return Outcome::Failed(internal_failure()) };
        let dropped = CancellationToken::new();
        let _guard = dropped.clone().drop_guard();
        loop {
            let (store, made, clock) = (Arc::clone(&self.store), Arc::clone(&made), Arc::clone(&self.clock));
            let (id, dropped) = (taken.id, dropped.clone());
            let written = catch_panic(elsewhere(move || write(&store, id, &made, &*clock, &dropped)));
            match written.await {
                Ok(Ok(true)) => return Outcome::Done(at),
                Ok(Ok(false)) => return Outcome::Failed(too_large()),
                Ok(Err(error)) => tracing::error!(id = %taken.id, %error, "a result cannot be written; trying again"),
                Err(Panic) => return Outcome::Failed(internal_failure()),
            }
            self.clock.sleep(AGAIN).await;
        }
    }

    async fn end(&self, taken: TakenTranscription, outcome: Outcome) {
        let ended = match outcome {
            Outcome::Done(at) => TranscriptionEnd { at, failure: None },
            Outcome::Failed(failure) => TranscriptionEnd { at: self.store.end_time(&taken), failure: Some(failure) },
        };
        write_end(&self.store, &*self.clock, taken, ended).await;
    }
}

/// Notes that work begins.
///
/// # Errors
/// Those of the file system: then it must not.
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

/// Bytes of the largest result that is kept: a million words with everything that can be asked for are a fifth.
const LARGEST: u64 = 1 << 30;

/// Whether the result was written; else it is too large. Stops when nobody waits for it any more.
fn write(
    store: &TranscriptionStore,
    id: Uuid,
    made: &result::WrittenResult,
    clock: &dyn Clock,
    dropped: &CancellationToken,
) -> io::Result<bool> {
    let mut is_over = false;
    let written = store.write_result(id, |to| {
        let to = Wanted { to, dropped };
        let mut to = Bounded { to, left: LARGEST, is_over: false };
        let written = made.write(&mut to, clock);
        is_over = to.is_over;
        written
    });
    if is_over { Ok(false) } else { written.map(|()| true) }
}

/// A writer that fails when nobody wants what it writes any more.
struct Wanted<'a> {
    to: &'a mut dyn Write,
    dropped: &'a CancellationToken,
}

impl Write for Wanted<'_> {
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

/// Writes the end of a transcription, however long the disk takes: what was made is not thrown away.
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

/// How long is waited when this machine cannot do its part.
pub const AGAIN: Duration = Duration::from_secs(15);

/// How a transcription came out.
enum Outcome {
    /// The moment that its times were taken from; the result is kept.
    Done(Timestamp),
    Failed(TranscriptionFailure),
}

/// This machine lacks something; whoever runs it can mend it.
struct Unable(String);

impl Unable {
    fn of(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// What was being done panicked.
pub struct Panic;

/// The failure to be recorded: 422 when the file is to blame, 500 when the recogniser is.
fn failure_of(error: &TranscribeError) -> Result<TranscriptionFailure, Unable> {
    use DecodeError::{Damaged, Empty, Io, NoAudio, NotMedia, TimedOut, TooManyChannels, ToolMissing};
    let code = match error {
        TranscribeError::TooLong(_) | TranscribeError::TooManyWords => 422,
        TranscribeError::Decode(Empty | NoAudio | NotMedia { .. } | Damaged { .. } | TooManyChannels { .. }) => 422,
        TranscribeError::Decode(Io(_) | TimedOut { .. }) | TranscribeError::Stopped => 500,
        TranscribeError::Recogniser(RecogniserError::Recognition { .. }) => 500,
        TranscribeError::Decode(ToolMissing { .. }) | TranscribeError::Recogniser(_) => return Err(Unable::of(error)),
    };
    Ok(TranscriptionFailure { code, message: error.to_string() })
}

/// What is recorded of what its owner wants no more.
pub fn cancelled_failure() -> TranscriptionFailure {
    TranscriptionFailure { code: 410, message: "cancelled by a DELETE of its key".to_owned() }
}

/// What is recorded where this program is to blame.
pub fn internal_failure() -> TranscriptionFailure {
    TranscriptionFailure { code: 500, message: "a fault in the service; its log says more".to_owned() }
}

/// Does something in a task of its own, that ends with this future, so that a panic ends nothing else.
///
/// # Errors
/// It panicked.
pub async fn catch_panic<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, Panic> {
    let mut task = JoinSet::new();
    task.spawn(work);
    match task.join_next().await {
        Some(Ok(done)) => Ok(done),
        _ => Err(Panic),
    }
}
