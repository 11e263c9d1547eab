//! Sends an answer as server-sent events. The headers come at once, and a comment now and then while the transcription
//! lasts, so that neither the client nor a proxy gives up on a long recording. nginx is told to pass them on at once.

use crate::clock::Clock;
use crate::server::http::long_answers::LongAnswers;
use crate::server::openai::answer;
use crate::server::openai::awaited::AwaitedTranscription;
use crate::server::openai::request::AudioRequest;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use std::vec;
use tokio::sync::OwnedSemaphorePermit;

/// How often a comment is sent: clients and proxies usually wait for a minute or longer.
const COMMENTS: Duration = Duration::from_secs(15);

/// A line that clients skip.
const COMMENT: &[u8] = b": in progress\n\n";

/// The rendered events, and what is held until they are sent.
type Events = (vec::IntoIter<String>, Option<OwnedSemaphorePermit>);

enum Progress {
    /// Until the transcription ends.
    Waiting(Pin<Box<dyn Future<Output = Events> + Send>>),
    Sending(Events),
}

/// Answers with the events of a transcription. An error that comes after the headers is an event too.
pub fn respond(
    awaited: AwaitedTranscription,
    request: AudioRequest,
    long: Arc<LongAnswers>,
    clock: Arc<dyn Clock>,
) -> Response {
    let events = Box::pin(async move {
        match awaited.answer(&long, move |result| answer::render_events(&request, result)).await {
            Ok((events, held)) => (events.into_iter(), held),
            Err(error) => (Vec::from_iter(answer::event(&error.body())).into_iter(), None),
        }
    });
    let pieces = stream::unfold(Progress::Waiting(events), move |progress| next(progress, Arc::clone(&clock)));
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache"), (unbuffered, "no")];
    (headers, Body::from_stream(pieces)).into_response()
}

async fn next(progress: Progress, clock: Arc<dyn Clock>) -> Option<(Result<Bytes, Infallible>, Progress)> {
    let (mut events, held) = match progress {
        Progress::Waiting(mut waiting) => tokio::select! {
            ended = &mut waiting => ended,
            () = clock.sleep(COMMENTS) => return Some((Ok(Bytes::from_static(COMMENT)), Progress::Waiting(waiting))),
        },
        Progress::Sending(events) => events,
    };
    let event = events.next()?;
    Some((Ok(Bytes::from(event)), Progress::Sending((events, held))))
}
