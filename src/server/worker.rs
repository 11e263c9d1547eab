//! Takes what is queued, in order, and has it heard.

use crate::clock::Clock;
use crate::domain::names::Timestamp;
use crate::media::decode::DecodeError;
use crate::server::desk::{Desk, Ended, Failure, Head, Taken};
use crate::server::hearing::{self, Hearing, HearingError};
use crate::server::index::Waits;
use crate::server::lazy::LazyRecogniser;
use crate::server::outcome::{self, Facts};
use crate::server::recogniser::RecogniserError;
use crate::server::records::{LOST, is_lost};
use crate::wire::enrichment::Shapes;
use crate::wire::params::Params;
use crate::wire::published;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// What a worker needs.
pub struct Worker {
    /// Where it takes its work from and puts what it made.
    pub desk: Arc<Desk>,
    /// What hears.
    pub recogniser: Arc<LazyRecogniser>,
    /// Paces what is tried again.
    pub clock: Arc<dyn Clock>,
    /// Whose shapes results have.
    pub shapes: Shapes,
}

impl Worker {
    /// Works for ever; several may work at one desk. Dropped in the middle of a transcription it
    /// loses nothing but the time: the desk has it queued again at the next start.
    pub async fn run(self: Arc<Self>) {
        loop {
            // Listening begins before looking, so that no ring in between is missed.
            let bell = self.desk.bell.notified();
            match self.desk.take() {
                Some(taken) => self.see_to(taken).await,
                None => bell.await,
            }
        }
    }

    async fn see_to(&self, taken: Taken) {
        match self.transcribe(&taken).await {
            Ok(outcome) => self.end(taken, outcome).await,
            // Nothing is wrong with the transcription: it waits for whoever runs the machine.
            Err(Unable(words)) => {
                tracing::error!(id = %taken.id, words, "nothing can be transcribed; trying again");
                self.desk.put_back(&taken, Waits::ToBeHeard);
                self.clock.sleep(AGAIN).await;
            }
        }
    }

    async fn transcribe(&self, taken: &Taken) -> Result<Outcome, Unable> {
        let (desk, lazy, id) = (Arc::clone(&self.desk), Arc::clone(&self.recogniser), taken.id);
        let ready = guarded(async move {
            blocking(move || match desk.head(id) {
                Err(error) if is_lost(&error) => Ok(None),
                head => Ok(Some((head.map_err(Unable::of)?, lazy.get().map_err(Unable::of)?))),
            })
            .await
        });
        let ready = ready.await.map_err(|Panic| Unable("a fault in the service".to_owned()))??;
        let Some((head, recogniser)) = ready else {
            return Ok(Outcome::Failed(Failure { code: 500, message: LOST.to_owned() }));
        };
        let media = self.desk.shelf.media(taken.upload);
        let params: Params = serde_json::from_value(published::filled(&head.params)).unwrap_or_default();
        let wishes = outcome::wishes(&params);
        let hearing = guarded(async move { hearing::transcribe(&media, recogniser, wishes).await });
        match hearing.await {
            Ok(Ok(hearing)) => Ok(self.write_up(taken, head, params, hearing).await),
            Ok(Err(error)) => failure_of(&error).map(Outcome::Failed),
            Err(Panic) => Ok(Outcome::Failed(fault())),
        }
    }

    async fn write_up(&self, taken: &Taken, head: Head, params: Params, hearing: Hearing) -> Outcome {
        let (at, shapes, clock) = (self.desk.ending(taken), self.shapes, Arc::clone(&self.clock));
        let audio_duration = head.file.audio_duration.unwrap_or(0.0);
        let facts = Facts { audio_duration, created: head.created, ended: at, shapes };
        let result = guarded(blocking(move || {
            serde_json::to_string(&outcome::result(&params, hearing, facts, &*clock)).unwrap_or_default()
        }));
        result.await.map_or_else(|Panic| Outcome::Failed(fault()), |result| Outcome::Done(at, result))
    }

    async fn end(&self, taken: Taken, outcome: Outcome) {
        let (ended, result) = match outcome {
            Outcome::Done(at, result) => (Ended { at, failure: None }, Some(result)),
            Outcome::Failed(failure) => (Ended { at: self.desk.ending(&taken), failure: Some(failure) }, None),
        };
        write_end(&self.desk, &*self.clock, taken, ended, result).await;
    }
}

/// Writes the end of a transcription, however long the disk takes: what was made is not thrown away.
pub async fn write_end(desk: &Arc<Desk>, clock: &dyn Clock, taken: Taken, ended: Ended, result: Option<String>) {
    let whole = Arc::new((taken, ended, result));
    loop {
        let (desk, parts) = (Arc::clone(desk), Arc::clone(&whole));
        let written = guarded(blocking(move || desk.end(&parts.0, parts.1.clone(), parts.2.as_deref())));
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
    /// The moment that its times were taken from, and the result.
    Done(Timestamp, String),
    Failed(Failure),
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
fn failure_of(error: &HearingError) -> Result<Failure, Unable> {
    use DecodeError::{Damaged, Empty, Io, NoAudio, NotMedia, TimedOut, TooManyChannels, ToolMissing};
    let code = match error {
        HearingError::Decode(Empty | NoAudio | NotMedia { .. } | Damaged { .. } | TooManyChannels { .. }) => 422,
        HearingError::Decode(Io(_) | TimedOut { .. }) | HearingError::Stopped => 500,
        HearingError::Recogniser(RecogniserError::Recognition { .. }) => 500,
        HearingError::Decode(ToolMissing { .. }) | HearingError::Recogniser(_) => return Err(Unable::of(error)),
    };
    Ok(Failure { code, message: error.to_string() })
}

/// What is recorded where this program is to blame.
pub fn fault() -> Failure {
    Failure { code: 500, message: "a fault in the service; its log says more".to_owned() }
}

/// Does something in a task of its own, that ends with this future, so that a panic ends nothing else.
///
/// # Errors
/// It panicked.
pub async fn guarded<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, Panic> {
    let mut task = JoinSet::new();
    task.spawn(work);
    match task.join_next().await {
        Some(Ok(done)) => Ok(done),
        _ => Err(Panic),
    }
}

/// Does what blocks on the disk elsewhere; a panic there is one here.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being shut down: nobody waits for this any more.
            Err(_) => std::future::pending().await,
        },
    }
}
