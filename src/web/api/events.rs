//! The stream of steps: server-sent events, from the moment of the request on.

use super::queries::HistoryLine;
use crate::store::contract::HistoryEntry;
use crate::web::server::Api;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// How often a silent stream gives a sign of life.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// A step of a job.
#[derive(Serialize)]
struct StepEvent {
    job: u64,
    #[serde(flatten)]
    step: HistoryLine,
}

/// Returns the stream. It ends when the process stops.
pub fn stream_steps(api: &Arc<Api>) -> Response {
    let steps = api.latest.get().store.steps();
    let keep_alive = KeepAlive::new().interval(SIGN_OF_LIFE);
    Sse::new(events(Arc::clone(api), steps)).keep_alive(keep_alive).into_response()
}

fn events(api: Arc<Api>, steps: Receiver<HistoryEntry>) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold((api, steps), |(api, mut steps)| async move {
        let received = tokio::select! {
            () = api.closing.cancelled() => return None,
            received = steps.recv() => received,
        };
        let event = match received {
            Ok(entry) => event("step", &StepEvent { job: entry.job.0, step: HistoryLine::of(&entry) }),
            // The receiver was too slow: it has to read the jobs again.
            Err(RecvError::Lagged(missed)) => event("missed", &json!({ "steps": missed })),
            Err(RecvError::Closed) => return None,
        };
        Some((Ok(event), (api, steps)))
    })
}

fn event(name: &str, data: &impl Serialize) -> Event {
    let text = serde_json::to_string(data).unwrap_or_default();
    Event::default().event(name).data(text)
}
