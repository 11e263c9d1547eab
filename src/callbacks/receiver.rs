//! The receiver of callbacks and of the service's webhook. Both are hints: a request to a valid address brings a poll
//! forward, and nothing of what it says is believed.
//!
//! A sender without a valid address learns nothing, not even that the address was nearly right: every other request
//! gets the same 404, before a byte of its body is read. The body of a callback, which may hold a whole result, is
//! discarded: its address says all that is needed. Of a webhook's body only the event and the id are read.

use crate::blocking::elsewhere;
use crate::clock::Clock;
use crate::domain::callback_auth::AddressSeal;
use crate::domain::hint::Hint;
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::pipeline::request::callback_address::{CALLBACK_PATH, WEBHOOK_PATH};
use crate::server::http::connections::{ConnectionSlot, Full, Most};
use crate::server::http::listener;
use crate::server::http::listener::ListenerLimits;
use crate::server::http::tls::{CertificateCheck, ListenerTls};
use crate::wire::event::{CREATED, WebhookEvent};
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Most bytes of a webhook's body.
const BODY: usize = 64 << 10;

/// Most bytes of a callback's body that are read from the sender and discarded. Then the connection ends.
const DISCARD_LIMIT: u64 = 256 << 20;

/// Longest time for a body.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Limits of connections: how many there may be, and how long one may take to send its head or to take its answer. A
/// sender without a valid address keeps a connection only as long as nobody else wants it.
const LIMITS: ListenerLimits = ListenerLimits {
    connections: Most { all: 256, loopback: 256, address: 128 },
    head: Duration::from_secs(10),
    write: Duration::from_secs(30),
};

/// How long running requests may take to end.
const CLOSING: Duration = Duration::from_secs(2);

/// Counts of requests since the start.
#[derive(Debug, Default)]
pub struct ReceiverCounts {
    /// Hints that were accepted.
    pub taken: AtomicU64,
    /// Requests to addresses that are not ours.
    pub strange: AtomicU64,
    /// Requests to our addresses that were not accepted: too many hints wait, or the body cannot be read.
    pub refused: AtomicU64,
}

/// Accepts a hint; `false` if too many hints wait.
pub type HintSink = Arc<dyn Fn(Hint) -> bool + Send + Sync>;

struct Receiver {
    address_seal: AddressSeal,
    webhook: bool,
    take: HintSink,
    counts: Arc<ReceiverCounts>,
}

/// The running receiver. It stops at once when it is dropped.
pub struct CallbackListener {
    pub counts: Arc<ReceiverCounts>,
    tls: Option<Arc<ListenerTls>>,
    closing: CancellationToken,
    serving: JoinHandle<()>,
    watching: Option<JoinHandle<()>>,
}

/// Binds the socket.
///
/// # Errors
/// An error of the system: the address is in use, or does not belong to this machine.
pub async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Receives at `listener` until it is shut down, over TLS if there is a certificate. The clock decides when its files
/// are checked. `webhook`: whether the webhook's address is valid.
pub fn start(
    listener: TcpListener,
    secured: Option<(Arc<ListenerTls>, Arc<dyn Clock>)>,
    address_seal: AddressSeal,
    webhook: bool,
    take: HintSink,
) -> CallbackListener {
    let tls = secured.as_ref().map(|(tls, _)| Arc::clone(tls));
    let counts = Arc::<ReceiverCounts>::default();
    let receiver = Arc::new(Receiver { address_seal, webhook, take, counts: Arc::clone(&counts) });
    let closing = CancellationToken::new();
    let answer = move |request, _| receive(Arc::clone(&receiver), request);
    let serving = tokio::spawn(listener::serve(listener, tls.clone(), answer, LIMITS, closing.clone()));
    let watching = secured.map(|(tls, clock)| tokio::spawn(tls.watch(clock)));
    CallbackListener { counts, tls, closing, serving, watching }
}

impl CallbackListener {
    /// Checks the files of the certificate now; `None` if there is none.
    pub async fn look(&self, now: Timestamp) -> Option<CertificateCheck> {
        let tls = Arc::clone(self.tls.as_ref()?);
        Some(elsewhere(move || tls.check_files(now, true)).await)
    }

    /// Takes no more requests, and lets running ones end.
    pub async fn shutdown(mut self) {
        self.closing.cancel();
        let _ = tokio::time::timeout(CLOSING, &mut self.serving).await;
    }
}

impl Drop for CallbackListener {
    fn drop(&mut self) {
        self.serving.abort();
        self.watching.iter().for_each(JoinHandle::abort);
    }
}

async fn receive(receiver: Arc<Receiver>, request: Request) -> Response {
    let counted = &receiver.counts;
    let has_body_method = matches!(*request.method(), Method::POST | Method::PUT);
    // A proxy may remove the beginning of the path, or put something before it.
    let mut parts = request.uri().path().rsplit('/');
    let (last, kind) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let place = request.extensions().get::<ConnectionSlot>().cloned();
    // A request to a valid address keeps the connection's place until the answer.
    let work = || place.as_ref().and_then(ConnectionSlot::start_request);
    let answer = match kind {
        _ if request.extensions().get::<Full>().is_some() => StatusCode::SERVICE_UNAVAILABLE,
        CALLBACK_PATH if has_body_method => match receiver.address_seal.open(last) {
            Some(hint) => {
                let _working = work();
                receiver.callback(hint, request.into_body()).await
            }
            None => StatusCode::NOT_FOUND,
        },
        WEBHOOK_PATH if has_body_method && receiver.webhook && receiver.address_seal.is_webhook(last) => {
            let _working = work();
            receiver.webhook(request.into_body()).await
        }
        _ => StatusCode::NOT_FOUND,
    };
    let count = match answer {
        StatusCode::NO_CONTENT => &counted.taken,
        StatusCode::NOT_FOUND => &counted.strange,
        _ => &counted.refused,
    };
    count.fetch_add(1, Ordering::Relaxed);
    match answer {
        StatusCode::SERVICE_UNAVAILABLE => (answer, [(header::RETRY_AFTER, "60")]).into_response(),
        _ => answer.into_response(),
    }
}

impl Receiver {
    /// Accepts a callback before its body has come: its address is proof enough that the sender was told to call it.
    async fn callback(&self, hint: Hint, body: Body) -> StatusCode {
        if !(self.take)(hint) {
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        // The body is read, since a sender that is cut off would call again.
        let discard = async {
            let (mut pieces, mut bytes) = (body.into_data_stream(), 0_u64);
            while let Some(Ok(piece)) = pieces.next().await {
                bytes += piece.len() as u64;
                if bytes > DISCARD_LIMIT {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(BODY_TIME, discard).await;
        StatusCode::NO_CONTENT
    }

    async fn webhook(&self, body: Body) -> StatusCode {
        let Ok(read) = tokio::time::timeout(BODY_TIME, to_bytes(body, BODY)).await else {
            return StatusCode::REQUEST_TIMEOUT;
        };
        let Ok(bytes) = read else { return StatusCode::PAYLOAD_TOO_LARGE };
        let Ok(event) = serde_json::from_slice::<WebhookEvent>(&bytes) else { return StatusCode::BAD_REQUEST };
        // That a create was accepted is no news: it was our own, or somebody else's.
        if event.event == CREATED {
            return StatusCode::NO_CONTENT;
        }
        let id = event.id().filter(|id| !id.is_empty() && id.len() <= 200);
        match id.map(|id| (self.take)(Hint::Webhook(TranscriptionId::new(id)))) {
            Some(true) => StatusCode::NO_CONTENT,
            Some(false) => StatusCode::SERVICE_UNAVAILABLE,
            None => StatusCode::BAD_REQUEST,
        }
    }
}
