//! Limits how long a request's body may take, and finishes a body that was not read to its end.
//!
//! A body that is not audio has one deadline, however steadily it arrives. Audio may take as long as it needs, but must
//! arrive at a minimum rate. Only the time counts for which the service waits for the sender, in small steps, so that a
//! slow disk on this side is not held against the sender.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{EXPECT, HeaderMap};
use axum::http::request::Parts;
use futures_util::StreamExt as _;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// How long bodies may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// The total time for bytes that are not audio.
    pub whole: Duration,
    /// At least this many bytes of audio must arrive …
    pub audio: u64,
    /// … in each span of this length.
    pub span: Duration,
}

impl BodyLimits {
    /// The limits of the service: two minutes, and 1 KiB a second averaged over a minute.
    pub const SERVICE: Self = Self { whole: Duration::from_secs(120), audio: 60 << 10, span: Duration::from_secs(60) };
}

/// A body came too slowly; the text says by how much.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TooSlow(String);

/// The number of steps in which waits are counted; together they are the allowed time.
const STEPS: u32 = 60;

/// What a body has used of its limits.
#[derive(Debug, Clone, Copy)]
struct Meter {
    limits: BodyLimits,
    is_audio: bool,
    steps: u32,
    received: u64,
}

impl Meter {
    fn new(limits: BodyLimits) -> Self {
        Self { limits, is_audio: false, steps: 0, received: 0 }
    }

    fn restart(&mut self, is_audio: bool) {
        *self = Self { is_audio, ..Self::new(self.limits) };
    }

    fn step(&self) -> Duration {
        let total = if self.is_audio { self.limits.span } else { self.limits.whole };
        (total / STEPS).max(Duration::from_millis(1))
    }

    /// Counts one more step of waiting for the sender.
    fn count_step(&mut self) -> Result<(), TooSlow> {
        self.steps += 1;
        if self.steps < STEPS {
            return Ok(());
        }
        let BodyLimits { whole, audio, span } = self.limits;
        if !self.is_audio {
            return Err(TooSlow(format!("the body did not come within {} s", whole.as_secs_f64())));
        }
        if self.received < audio {
            let message = format!("less than {audio} bytes of audio came within {} s", span.as_secs_f64());
            return Err(TooSlow(message));
        }
        self.restart(true);
        Ok(())
    }
}

/// A request's body, shared by the endpoint that reads it and by [`finish`](RequestBody::finish).
#[derive(Debug, Clone)]
pub struct RequestBody(Arc<Mutex<BodyState>>);

#[derive(Debug)]
struct BodyState {
    /// `None` after the body was read to its end, failed, or was given up.
    body: Option<Body>,
    meter: Meter,
    step: Option<Pin<Box<Sleep>>>,
    slow: Option<TooSlow>,
    /// Whether the sender still waits for `100 Continue`.
    is_held_back: bool,
}

impl RequestBody {
    /// Replaces the request's body by one that is measured; returns `None` if there is no body.
    pub fn wrap(request: Request, limits: BodyLimits) -> (Request, Option<Self>) {
        if HttpBody::is_end_stream(request.body()) {
            return (request, None);
        }
        let (mut parts, body) = request.into_parts();
        let is_held_back = expects_continue(&parts.headers);
        let state = BodyState { body: Some(body), meter: Meter::new(limits), step: None, slow: None, is_held_back };
        let measured = Self(Arc::new(Mutex::new(state)));
        parts.extensions.insert(BodyMeter(Some(measured.clone())));
        (Request::from_parts(parts, Body::new(measured.clone())), Some(measured))
    }

    /// Ends the reading of the body, and returns the error if it came too slowly. An unread rest is read for a while
    /// and discarded: closing the connection on a sender that is still sending would lose the response. A sender that
    /// waits for `100 Continue` is not told to continue.
    pub fn finish(&self) -> Option<TooSlow> {
        let mut state = self.state();
        let unread = state.body.take().filter(|_| !state.is_held_back && state.slow.is_none());
        if let Some(unread) = unread {
            tokio::spawn(tokio::time::timeout(DRAINING, drain(unread)));
        }
        state.slow.clone()
    }

    fn state(&self) -> MutexGuard<'_, BodyState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many bytes, and for how long, a rest is read after the response.
const DRAINED: usize = 64 << 20;
const DRAINING: Duration = Duration::from_secs(10);

async fn drain(body: Body) {
    let (mut left, mut pieces) = (DRAINED, body.into_data_stream());
    while let (1.., Some(Ok(bytes))) = (left, pieces.next().await) {
        left = left.saturating_sub(bytes.len());
    }
}

fn expects_continue(headers: &HeaderMap) -> bool {
    headers.get_all(EXPECT).into_iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

impl BodyState {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.is_held_back = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(frame) = polled {
            match &frame {
                Some(Ok(frame)) => self.meter.received += frame.data_ref().map_or(0, |bytes| bytes.len() as u64),
                Some(Err(_)) | None => self.body = None,
            }
            return Poll::Ready(frame);
        }
        loop {
            let span = self.meter.step();
            let step = self.step.get_or_insert_with(|| Box::pin(sleep(span)));
            if step.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.step = None;
            if let Err(slow) = self.meter.count_step() {
                let error = io::Error::new(io::ErrorKind::TimedOut, slow.to_string());
                (self.body, self.slow) = (None, Some(slow));
                return Poll::Ready(Some(Err(axum::Error::new(error))));
            }
        }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.state().poll(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.state().body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.state().body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

/// Tells a request's body when audio begins and ends in it.
#[derive(Debug, Clone, Default)]
pub struct BodyMeter(Option<RequestBody>);

impl BodyMeter {
    /// Says whether the bytes that follow are audio. The count of bytes and waits starts again.
    pub fn set_audio(&self, is_audio: bool) {
        if let Some(body) = &self.0 {
            body.state().meter.restart(is_audio);
        }
    }
}

impl<S: Sync> FromRequestParts<S> for BodyMeter {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use futures_util::stream;

    /// Returns a body of pieces, each of which comes after a wait.
    fn slowly(pieces: Vec<(Duration, usize)>) -> (BodyMeter, Body) {
        let pieces = stream::iter(pieces).then(async |(wait, size)| {
            sleep(wait).await;
            Ok::<_, Infallible>(vec![0_u8; size])
        });
        let request = Request::new(Body::from_stream(pieces));
        let (request, body) = RequestBody::wrap(request, BodyLimits::SERVICE);
        (BodyMeter(body), request.into_body())
    }

    async fn read(body: Body) -> Result<usize, String> {
        axum::body::to_bytes(body, usize::MAX).await.map(|bytes| bytes.len()).map_err(|error| error.to_string())
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn what_is_no_audio_has_one_deadline_however_steadily_it_comes() {
        let (meter, body) = slowly(vec![(SECOND, 1); 110]);
        assert_eq!(read(body).await, Ok(110));
        assert_eq!(meter.0.unwrap().finish(), None);
        let (meter, body) = slowly(vec![(SECOND, 100_000); 200]);
        assert!(read(body).await.unwrap_err().contains("within 120 s"));
        assert!(meter.0.unwrap().finish().unwrap().to_string().contains("within 120 s"));
        let (_, body) = slowly(vec![(SECOND * 1_000_000, 1)]);
        assert!(read(body).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn audio_may_take_for_ever_at_the_least_rate_and_no_slower() {
        let (meter, body) = slowly(vec![(SECOND, 1_100); 20_000]);
        meter.set_audio(true);
        assert_eq!(read(body).await, Ok(22_000_000), "in five hours and a half");
        // A connection that stalls for half a minute, again and again.
        let (meter, body) = slowly(vec![(SECOND * 30, 100_000); 100]);
        meter.set_audio(true);
        assert_eq!(read(body).await, Ok(10_000_000));
        let (meter, body) = slowly(vec![(SECOND, 500); 20_000]);
        meter.set_audio(true);
        assert!(read(body).await.unwrap_err().contains("less than 61440 bytes of audio came within 60 s"));
        // What follows the audio has a deadline again.
        let (meter, body) = slowly(vec![(SECOND, 5_000); 20_000]);
        meter.set_audio(true);
        meter.set_audio(false);
        assert!(read(body).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_disk_on_this_side_is_not_held_against_the_sender() {
        let (meter, body) = slowly(vec![(SECOND / 2, 5_000); 200]);
        meter.set_audio(true);
        let mut pieces = body.into_data_stream();
        let mut total = 0;
        while let Some(piece) = pieces.next().await {
            total += piece.unwrap().len();
            sleep(SECOND * 100).await;
        }
        assert_eq!(total, 1_000_000);
    }
}
