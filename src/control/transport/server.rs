//! The server of the daemon's socket.

use super::protocol::{CommandRefusal, ControlRequest};
use super::socket::ListeningSocket;
use crate::control::commands::reload::LatestHandler;
use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{Router, post};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The path for requests.
pub const PATH: &str = "/v1/request";

/// The path for the same requests through the HTTP API.
pub const API_PATH: &str = "/api/v1/request";

/// The maximum size of a request in bytes: enough for the longest paths of one request, escaped.
const MAX_REQUEST: usize = 16 << 20;

/// How long running requests may take to end when the server stops.
const SHUTDOWN_TIME_OUT: Duration = Duration::from_secs(2);

/// Answers requests until `stop` is cancelled. The socket is removed then.
pub async fn serve(listening: ListeningSocket, handler: LatestHandler, stop: &CancellationToken) {
    let (listener, removal) = listening.split();
    let router =
        Router::new().route(PATH, post(carry_out)).layer(DefaultBodyLimit::max(MAX_REQUEST)).with_state(handler);
    let closing = stop.clone().cancelled_owned();
    let mut serving = tokio::spawn(axum::serve(listener, router).with_graceful_shutdown(closing).into_future());
    stop.cancelled().await;
    // The socket goes first, so that new commands open the queue themselves as soon as it is free.
    drop(removal);
    if tokio::time::timeout(SHUTDOWN_TIME_OUT, &mut serving).await.is_err() {
        serving.abort();
    }
}

async fn carry_out(State(handler): State<LatestHandler>, Json(request): Json<ControlRequest>) -> Response {
    match handler.get().carry_out(request).await {
        Ok(answer) => Json(answer).into_response(),
        Err(refusal) => (refusal_status(&refusal), Json(refusal)).into_response(),
    }
}

/// Returns the status of the answer to a request that is refused.
pub fn refusal_status(refusal: &CommandRefusal) -> StatusCode {
    match refusal {
        CommandRefusal::Usage(_) => StatusCode::NOT_FOUND,
        CommandRefusal::Declined(_) => StatusCode::CONFLICT,
        CommandRefusal::Store(_) => StatusCode::INSUFFICIENT_STORAGE,
    }
}
