//! Limits how many requests of one key are in progress at once, so that no key takes all connections. A request is in
//! progress until its response is sent.

use crate::domain::names::Hash;
use crate::server::http::connections::BusyConnection;
use crate::server::http::error::ServiceError;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// The requests in progress, by key.
#[derive(Debug)]
pub struct RequestsInProgress {
    most: usize,
    by_key: Mutex<HashMap<Hash, usize>>,
}

/// A request in progress, until it is dropped.
#[derive(Debug)]
pub struct RequestGuard {
    owner: Hash,
    requests: Arc<RequestsInProgress>,
}

impl RequestsInProgress {
    /// Allows `most` requests of one key at once, at least 1.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), by_key: Mutex::default() })
    }

    /// Starts a request of this key.
    ///
    /// # Errors
    /// 429 if too many of its requests are in progress.
    pub fn begin(self: &Arc<Self>, owner: Hash) -> Result<RequestGuard, ServiceError> {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_key.entry(owner).or_default();
        if *count >= self.most {
            let message = format!("{} requests of this key are in progress; try again when one has ended", self.most);
            return Err(ServiceError::new(StatusCode::TOO_MANY_REQUESTS, message));
        }
        *count += 1;
        Ok(RequestGuard { owner, requests: Arc::clone(self) })
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut by_key = self.requests.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_key.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                by_key.remove(&self.owner);
            }
        }
    }
}

/// What a request in progress holds: its place in its key's count, and its connection's place.
pub type RequestHold = (RequestGuard, Option<BusyConnection>);

/// Responses of up to this many bytes are handed to the connection at once.
const SMALL: u64 = 64 << 10;

/// Returns the response so that it keeps `held` until it is sent; a small one is handed over at once and releases it.
pub fn hold_until_sent(response: Response, held: RequestHold) -> Response {
    match response.body().size_hint().exact() {
        Some(..=SMALL) => response,
        _ => response.map(|body| Body::new(Sending { body, _held: held })),
    }
}

struct Sending {
    body: Body,
    _held: RequestHold,
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
