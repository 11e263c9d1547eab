//! How a request is refused: a status, a message, and the body that every error has (interface, "Errors"; service
//! notes, 2).

use crate::shortage::{self, Shortage};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::io;
use std::time::Duration;

/// Why a request is refused. It becomes an [`crate::wire::error::ErrorBody`] once the path is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceError {
    /// 400 to 599.
    pub status: StatusCode,
    /// A sentence that a person can act on.
    pub message: String,
    /// Every wrong field, as "field must …"; only with 400.
    pub wrong: Vec<String>,
}

impl ServiceError {
    /// Creates an error with a message and no wrong fields.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), wrong: Vec::new() }
    }

    /// Creates a 400 that names every wrong field. The message is that of the public service.
    pub fn invalid_fields(wrong: Vec<String>) -> Self {
        let message = "Invalid parameter(s). See validation_errors for more details.";
        Self { wrong, ..Self::new(StatusCode::BAD_REQUEST, message) }
    }

    /// Creates a 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Creates a 503: the fault is on this side and may pass. The response carries `Retry-After`.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// Creates a 429: too many transcriptions of this key have not ended. The response carries `Retry-After`.
    pub fn too_many_requests(most: usize) -> Self {
        let message = format!("{most} transcriptions of this key have not ended; try again when one has");
        Self::new(StatusCode::TOO_MANY_REQUESTS, message)
    }

    /// Creates a 404.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not found")
    }

    /// Creates a 503 for a full disk, which may pass, and a 500 for any other file error. The error itself goes only to
    /// the log, because it names this machine's paths.
    pub fn from_disk(error: &io::Error) -> Self {
        tracing::error!(%error, "the service's data directory");
        if let Some(shortage) = Shortage::of(error) {
            shortage::report(&shortage.to_string(), RETRY_AFTER_SPAN);
            return Self::unavailable(
                "the machine of the service lacks file descriptors, memory or processes; try again later",
            );
        }
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::unavailable("the disk of the service is full; try again later")
            }
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the service could not reach its files"),
        }
    }
}

/// Seconds after which a refused client may try again (`Retry-After`).
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("30");

/// The same time as a span.
const RETRY_AFTER_SPAN: Duration = Duration::from_secs(30);

impl IntoResponse for ServiceError {
    /// [`crate::server::http::routes`] fills in the body, because it knows the path.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response.extensions_mut().insert(self);
        response
    }
}
