//! Sees to one transcription: has it heard, and writes what came of it.

use crate::clock::Clock;
use crate::crash::{self, Point};
use crate::domain::names::Timestamp;
use crate::media::decode::DecodeError;
use crate::server::desk::{Desk, Ended, Failure, Head, Taken};
use crate::server::hearing::{self, Hearing, HearingError, Wishes};
use crate::server::lazy::LazyRecogniser;
use crate::server::outcome::{self, Facts};
use crate::server::recogniser::RecogniserError;
use crate::server::records::{LOST, is_lost};
use crate::server::room::Bounded;
use crate::server::starts::{Underway, Work};
use crate::server::turn::Turn;
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
    pub desk: Arc<Desk>,
    /// What hears.
    pub recogniser: Arc<LazyRecogniser>,
    /// Paces what is tried again.
    pub clock: Arc<dyn Clock>,
    /// Whose shapes results have.
    pub shapes: Shapes,
    /// The longest recording that is heard.
    pub length_limit: Duration,
}

impl Worker {
    /// Sees it to its end. Dropped in the middle it loses nothing but the time: the desk has it queued again at
    /// the next start. What this machine cannot do now is given back: it has to wait again, once this has returned.
    #[must_use = "what is given back waits nowhere"]
    pub async fn see_to(&self, taken: Taken, turn: Turn) -> Option<Taken> {
        let done = match self.begin(&taken).await {
            Ok(underway) => {
                crash::point(Point::Recognising);
                let outcome = tokio::select! {
                    outcome = self.transcribe(&taken, turn) => outcome,
                    () = taken.cancelled.cancelled() => Ok(Outcome::Failed(cancelled())),
                };
                outcome.map(|outcome| (underway, outcome))
            }
            Err(unable) => Err(unable),
        };
        match done {
            Ok((underway, outcome)) => {
                self.end(taken, outcome).await;
                underway.survived();
                None
            }
            // Nothing is wrong with the transcription: it waits for whoever runs the machine.
            Err(Unable(words)) => {
                tracing::error!(id = %taken.id, words, "nothing can be transcribed; trying again");
                Some(taken)
            }
        }
    }

    async fn begin(&self, taken: &Taken) -> Result<Underway, Unable> {
        begin(&self.desk, taken, Work::Recognition).await.map_err(Unable::of)
    }

    async fn transcribe(&self, taken: &Taken, turn: Turn) -> Result<Outcome, Unable> {
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
        let wishes = Wishes { longest: self.length_limit, turn, ..outcome::wishes(&params) };
        let hearing = guarded(async move { hearing::transcribe(&media, recogniser, wishes).await });
        match hearing.await {
            Ok(Ok(hearing)) => Ok(self.write_up(taken, head, params, hearing).await),
            Ok(Err(error)) => failure_of(&error).map(Outcome::Failed),
            Err(Panic) => Ok(Outcome::Failed(fault())),
        }
    }

    /// Writes the result, however long the disk takes: what was heard is not thrown away.
    async fn write_up(&self, taken: &Taken, head: Head, params: Params, hearing: Hearing) -> Outcome {
        let (at, shapes) = (self.desk.ending(taken), self.shapes);
        let audio_duration = head.file.audio_duration.unwrap_or(0.0);
        let facts = Facts { audio_duration, created: head.created, ended: at, shapes };
        let made = guarded(blocking(move || Arc::new(outcome::Outcome::of(params, hearing, facts)))).await;
        let Ok(made) = made else { return Outcome::Failed(fault()) };
        let dropped = CancellationToken::new();
        let _guard = dropped.clone().drop_guard();
        loop {
            let (desk, made, clock) = (Arc::clone(&self.desk), Arc::clone(&made), Arc::clone(&self.clock));
            let (id, dropped) = (taken.id, dropped.clone());
            let written = guarded(blocking(move || write(&desk, id, &made, &*clock, &dropped)));
            match written.await {
                Ok(Ok(true)) => return Outcome::Done(at),
                Ok(Ok(false)) => return Outcome::Failed(too_large()),
                Ok(Err(error)) => tracing::error!(id = %taken.id, %error, "a result cannot be written; trying again"),
                Err(Panic) => return Outcome::Failed(fault()),
            }
            self.clock.sleep(AGAIN).await;
        }
    }

    async fn end(&self, taken: Taken, outcome: Outcome) {
        let ended = match outcome {
            Outcome::Done(at) => Ended { at, failure: None },
            Outcome::Failed(failure) => Ended { at: self.desk.ending(&taken), failure: Some(failure) },
        };
        write_end(&self.desk, &*self.clock, taken, ended).await;
    }
}

/// Notes that work begins.
///
/// # Errors
/// Those of the file system: then it must not.
pub async fn begin(desk: &Arc<Desk>, taken: &Taken, work: Work) -> io::Result<Underway> {
    let (desk, taken) = (Arc::clone(desk), taken.clone());
    guarded(blocking(move || desk.begin(&taken, work))).await.unwrap_or_else(|Panic| Err(io::Error::other("a fault")))
}

/// Bytes of the largest result that is kept: a million words with everything that can be asked for are a fifth.
const LARGEST: u64 = 1 << 30;

/// Whether the result was written; else it is too large. Stops when nobody waits for it any more.
fn write(
    desk: &Desk,
    id: Uuid,
    made: &outcome::Outcome,
    clock: &dyn Clock,
    dropped: &CancellationToken,
) -> io::Result<bool> {
    let mut is_over = false;
    let written = desk.write_result(id, |to| {
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

fn too_large() -> Failure {
    let message = format!("the result would be larger than {LARGEST} bytes; split the recording, or ask for less");
    Failure { code: 422, message }
}

/// Writes the end of a transcription, however long the disk takes: what was made is not thrown away.
pub async fn write_end(desk: &Arc<Desk>, clock: &dyn Clock, taken: Taken, ended: Ended) {
    let whole = Arc::new((taken, ended));
    loop {
        let (desk, parts) = (Arc::clone(desk), Arc::clone(&whole));
        let written = guarded(blocking(move || desk.end(&parts.0, parts.1.clone(), None)));
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
        HearingError::TooLong(_) | HearingError::TooManyWords => 422,
        HearingError::Decode(Empty | NoAudio | NotMedia { .. } | Damaged { .. } | TooManyChannels { .. }) => 422,
        HearingError::Decode(Io(_) | TimedOut { .. }) | HearingError::Stopped => 500,
        HearingError::Recogniser(RecogniserError::Recognition { .. }) => 500,
        HearingError::Decode(ToolMissing { .. }) | HearingError::Recogniser(_) => return Err(Unable::of(error)),
    };
    Ok(Failure { code, message: error.to_string() })
}

/// What is recorded of what its owner wants no more.
pub fn cancelled() -> Failure {
    Failure { code: 410, message: "cancelled by a DELETE of its key".to_owned() }
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
