//! Accepts connections, limits them, and lets them end at a shutdown. The limits: their number, the time for a
//! request's head, and the time for which a peer may read nothing of a response.

use crate::server::http::connections::{Connections, Most};
use crate::server::http::tls::{ListenerTls, accept};
use crate::server::http::write_timeout::WriteTimeout;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use socket2::{SockRef, TcpKeepalive};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The limits of a listener.
#[derive(Debug, Clone, Copy)]
pub struct ListenerLimits {
    /// Connections at once. A further connection takes the place of an idle one, or is told that there is no room.
    pub connections: Most,
    /// How long a request's head may take, and how long a connection may be idle before the next one.
    pub head: Duration,
    /// How long the peer may read nothing of what is sent to it.
    pub write: Duration,
}

impl ListenerLimits {
    /// The limits of the service.
    pub const SERVICE: Self = Self {
        connections: Most { all: 512, loopback: 512, address: 256 },
        head: Duration::from_secs(20),
        write: Duration::from_secs(120),
    };
}

/// The most headers of a request; a request with more is answered with 431.
const HEADERS: usize = 100;

/// The most bytes of a request's head (a longer one is answered with 431), and of one chunk of a body.
const HEAD_BYTES: usize = 128 << 10;

/// How many bytes of a response the kernel buffers for a peer. A larger buffer would hide for a long time that the peer
/// reads nothing.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 64 << 10;

/// How long a connection may be silent before the kernel checks whether the peer is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// How many connections without a place are kept open at once, to be told that there is no room.
const REFUSED_CONNECTIONS: usize = 64;

/// How long to wait after a connection could not be accepted, such as for want of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// Serves connections until `closing` is cancelled, then lets requests in progress end. When dropped, it cuts off all
/// connections. `answer` gets each request and the address of its sender. The request's extensions hold the
/// connection's [`ConnectionSlot`](crate::server::http::connections::ConnectionSlot), or the reason why there is none:
/// `answer` must then refuse the request. With `tls`, connections use TLS.
pub async fn serve<A, F>(
    listener: TcpListener,
    tls: Option<Arc<ListenerTls>>,
    answer: A,
    limits: ListenerLimits,
    closing: CancellationToken,
) where
    A: Fn(Request, SocketAddr) -> F + Clone + Send + 'static,
    F: Future<Output = Response> + Send,
{
    let graceful = GracefulShutdown::new();
    let mut tasks = JoinSet::new();
    let connections = Connections::new(limits.connections);
    let refused = Connections::new(Most {
        all: REFUSED_CONNECTIONS,
        loopback: REFUSED_CONNECTIONS,
        address: REFUSED_CONNECTIONS,
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head).max_headers(HEADERS).max_buf_size(HEAD_BYTES);
    loop {
        let accepted = tokio::select! {
            () = closing.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                connections.cut_oldest_idle();
                tokio::time::sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        let place = connections.admit(peer.ip());
        // These connections are always idle, so the one that has been idle longest is closed for a new one.
        let Ok(held) = place.clone().or_else(|_| refused.admit(peer.ip())) else { continue };
        let keep_alive = place.is_ok();
        let answer = answer.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            match &place {
                Ok(place) => request.extensions_mut().insert(place.clone()).is_some(),
                Err(full) => request.extensions_mut().insert(*full).is_some(),
            };
            let answered = answer(request, peer);
            async { Ok::<_, Infallible>(answered.await) }
        });
        let (http, watcher, tls) = (http.keep_alive(keep_alive).clone(), graceful.watcher(), tls.clone());
        let closing = closing.clone();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            // A slow handshake delays neither other connections nor the shutdown.
            let secured = tokio::select! {
                () = closing.cancelled(), if tls.is_some() => None,
                () = held.wait_until_cut() => None,
                secured = accept(with_options(stream), tls.as_deref()) => secured,
            };
            let Some(stream) = secured else { return };
            let stream = TokioIo::new(WriteTimeout::new(stream, limits.write));
            let served = watcher.watch(http.serve_connection(stream, service));
            tokio::select! {
                // A sender that breaks off is not an error of the service.
                ended = served => if let Err(error) = ended {
                    tracing::debug!(%peer, %error, "a connection ended before its request was complete");
                },
                () = held.wait_until_cut() => tracing::debug!(%peer, "the service closed an idle connection to make room for others"),
            }
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

fn with_options(stream: TcpStream) -> TcpStream {
    // Responses are small and whole: waiting for more to send would only delay them.
    if let Err(error) = stream.set_nodelay(true).and_then(|()| set_options(&stream)) {
        tracing::debug!(%error, "cannot set the options of a connection");
    }
    stream
}

/// Sets the options that show early what the peer reads, and that it is gone.
fn set_options(stream: &TcpStream) -> std::io::Result<()> {
    let socket = SockRef::from(stream);
    #[cfg(target_os = "linux")]
    socket.set_tcp_notsent_lowat(UNSENT)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))
}
