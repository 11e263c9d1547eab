//! Connections: taken, bounded in number and in how long a request's head may take, and let end.

use crate::server::tls::{Stream, Tls, secured};
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What is put up with.
#[derive(Debug, Clone, Copy)]
pub struct Manners {
    /// Connections at once; further ones wait to be taken.
    pub connections: usize,
    /// How long a request's head may take, and how long a connection may be idle before the next one.
    pub head: Duration,
}

impl Manners {
    /// Those of the service.
    pub const SERVICE: Self = Self { connections: 512, head: Duration::from_secs(20) };
}

/// The most headers of a request; more are answered with 431.
const HEADERS: usize = 100;

/// The most bytes of a request's head, more are answered with 431; and of a piece of a body.
const HEAD_BYTES: usize = 128 << 10;

/// How long is waited when no connection can be taken, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves until `closing`, then lets those end that are being served. Dropped, it cuts all of them off.
/// `answer` is handed each request and who sent it. With `tls` only over that.
pub async fn serve<A, F>(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    answer: A,
    manners: Manners,
    closing: CancellationToken,
) where
    A: Fn(Request, SocketAddr) -> F + Clone + Send + 'static,
    F: Future<Output = Response> + Send,
{
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let places = Arc::new(Semaphore::new(manners.connections));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(manners.head).max_headers(HEADERS).max_buf_size(HEAD_BYTES);
    let next = async || {
        let place = Arc::clone(&places).acquire_owned().await.ok()?;
        Some((place, listener.accept().await))
    };
    loop {
        let taken = tokio::select! {
            () = closing.cancelled() => break,
            taken = next() => taken,
        };
        let Some((place, accepted)) = taken else { break };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a connection could not be taken");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let answer = answer.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let answered = answer(request.map(Body::new), peer);
            async { Ok::<_, Infallible>(answered.await) }
        });
        let (http, watcher, tls, closing) = (http.clone(), graceful.watcher(), tls.clone(), closing.clone());
        while connections.try_join_next().is_some() {}
        connections.spawn(async move {
            let _place = place;
            // Whoever takes his time with the handshake holds up neither the others nor the end.
            let secured = tokio::select! {
                () = closing.cancelled(), if tls.is_some() => None,
                secured = secured(nodelay(stream), tls.as_deref()) => secured,
            };
            let Some(stream) = secured else { return };
            let served = watcher.watch(http.serve_connection(TokioIo::<Stream>::new(stream), service));
            // Senders that break off are their own affair.
            if let Err(error) = served.await {
                tracing::debug!(%error, "a connection ended in the middle");
            }
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

fn nodelay(stream: TcpStream) -> TcpStream {
    // Answers are small and whole: waiting for more to send would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection without its option");
    }
    stream
}
