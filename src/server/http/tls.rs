//! TLS of a listener: handshakes with a deadline, and a certificate that can be replaced while the listener runs.
//!
//! The content of both files is compared every few seconds, so that it does not matter how they are replaced. A new
//! pair is used if its key fits, unless it is not valid now and the pair in use is. Otherwise the pair in use stays,
//! and the log says why.

use crate::blocking;
use crate::clock::Clock;
use crate::domain::names::{Hash, Timestamp};
use crate::tls::pair::{Pair, PairError, PairFiles};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How often the files are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// A certificate that expires within this time is reported, once a day.
const EXPIRY_WARNING: Duration = Duration::from_secs(7 * 24 * 3600);

const DAY: i64 = 24 * 3600 * 1000;

/// The first byte of a TLS connection; plain HTTP begins with a letter.
const HANDSHAKE_RECORD: u8 = 0x16;

/// A connection, with TLS or without.
pub type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Whether peers that do not speak TLS are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainPeers {
    Refused,
    /// Accepts peers that connect from the very address that they connect to, or from this machine's loopback: their
    /// data is on no network.
    FromHere,
}

/// The current certificate of a listener.
#[derive(Debug)]
pub struct ListenerTls {
    files: PairFiles,
    plain: PlainPeers,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    pair: Pair,
    /// The content that was refused last (`None` if it could not be read), and whether that was logged.
    refused: Option<(Option<Hash>, bool)>,
    /// The day of the last warning about the certificate's end.
    warned: Option<i64>,
}

/// The result of a check of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateCheck {
    /// The files have not changed.
    Same,
    /// The files hold another pair, which is used from now on.
    Taken,
    /// The files cannot be used, for this reason. The pair in use stays.
    Refused(String),
}

impl ListenerTls {
    /// Reads the files. Blocks on the disk.
    ///
    /// # Errors
    /// [`PairError`].
    pub fn open(files: &PairFiles, plain: PlainPeers, now: Timestamp) -> Result<Self, PairError> {
        let pair = files.read()?;
        let tls = Self { files: files.clone(), plain, state: Mutex::new(State { pair, refused: None, warned: None }) };
        tls.warn_of_open_key();
        tls.warn_of_end(now);
        Ok(tls)
    }

    /// Checks the files. Blocks on the disk. With `at_once`, files that cannot be used are logged when they are first
    /// seen; otherwise only if they stay so, because files are replaced one after the other.
    pub fn check_files(&self, now: Timestamp, at_once: bool) -> CertificateCheck {
        let content = self.files.content();
        if content == Some(self.state().pair.content) {
            self.state().refused = None;
            self.warn_of_end(now);
            return CertificateCheck::Same;
        }
        let result = match self.files.read() {
            Ok(pair) => self.replace_pair(pair, now),
            Err(error) => CertificateCheck::Refused(error.to_string()),
        };
        let mut state = self.state();
        let cert = self.files.cert.display();
        match &result {
            CertificateCheck::Refused(reason) => {
                let (is_known, was_logged) = match state.refused {
                    Some((seen, logged)) if seen == content => (true, logged),
                    _ => (false, false),
                };
                let should_log = !was_logged && (is_known || at_once);
                state.refused = Some((content, was_logged || should_log));
                if should_log {
                    tracing::warn!(%cert, reason, "cannot use the changed certificate files; the previous certificate stays in use, and the service checks the files again");
                }
            }
            _ => {
                *state = State { refused: None, warned: None, pair: state.pair.clone() };
                let until = state.pair.validity.map(|validity| crate::wire::timestamps::format(validity.until));
                tracing::info!(%cert, until, "the service uses a new certificate from now on");
                self.warn_of_open_key();
            }
        }
        drop(state);
        self.warn_of_end(now);
        result
    }

    /// Replaces the pair in use, unless that is valid and the new one is not.
    fn replace_pair(&self, pair: Pair, now: Timestamp) -> CertificateCheck {
        let mut state = self.state();
        let is_valid = |pair: &Pair| pair.validity.is_none_or(|validity| validity.holds(now));
        if is_valid(&state.pair) && !is_valid(&pair) {
            let dates =
                pair.validity.map(|validity| [validity.from, validity.until].map(crate::wire::timestamps::format));
            let [from, until] = dates.unwrap_or_default();
            return CertificateCheck::Refused(format!("it is valid from {from} to {until} only"));
        }
        state.pair = pair;
        CertificateCheck::Taken
    }

    fn warn_of_open_key(&self) {
        if self.files.is_key_open() {
            let key = self.files.key.display();
            tracing::warn!(%key, "every user of this machine may read the private key; remove that permission: chmod o-r");
        }
    }

    fn warn_of_end(&self, now: Timestamp) {
        let mut state = self.state();
        let Some(until) = state.pair.validity.map(|validity| validity.until) else { return };
        let today = now.0.div_euclid(DAY);
        if now.saturating_add(EXPIRY_WARNING) < until || state.warned == Some(today) {
            return;
        }
        state.warned = Some(today);
        let (cert, until) = (self.files.cert.display(), crate::wire::timestamps::format(until));
        tracing::warn!(%cert, %until, "the certificate expires soon or has expired, and clients then refuse it; replace the files (no restart is needed)");
    }

    /// Checks the files regularly and never returns.
    pub async fn watch(self: Arc<Self>, clock: Arc<dyn Clock>) {
        loop {
            clock.sleep(check_interval()).await;
            let (own, now) = (Arc::clone(&self), clock.now());
            let _ = blocking::spawn(move || own.check_files(now, false)).await;
        }
    }

    async fn handshake(&self, stream: TcpStream) -> io::Result<Stream> {
        if self.plain == PlainPeers::FromHere && is_from_here(&stream) {
            let mut first = [0];
            if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE_RECORD {
                return Ok(Either::Left(stream));
            }
        }
        let acceptor = TlsAcceptor::from(Arc::clone(&self.state().pair.config));
        acceptor.accept(stream).await.map(|stream| Either::Right(Box::new(stream)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a connection that requests can be read from. Closes it and returns `None` if the peer does not speak TLS, or
/// not in time.
pub async fn accept(stream: TcpStream, tls: Option<&ListenerTls>) -> Option<Stream> {
    let Some(tls) = tls else { return Some(Either::Left(stream)) };
    match tokio::time::timeout(HANDSHAKE, tls.handshake(stream)).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!(%error, "the service closed a connection without TLS"),
        Err(_) => tracing::debug!("a TLS handshake took too long; the service closed the connection"),
    }
    None
}

fn is_from_here(stream: &TcpStream) -> bool {
    let ip = |address: io::Result<std::net::SocketAddr>| address.ok().map(|address| address.ip().to_canonical());
    let (peer, own) = (ip(stream.peer_addr()), ip(stream.local_addr()));
    peer.is_some_and(|peer: IpAddr| peer.is_loopback() || Some(peer) == own)
}

/// Returns how often files that may be replaced at any time are checked. In a debug build the environment variable
/// `SCRIBED_TEST_LOOK` (such as `50ms`) overrides it, so that a test need not wait.
pub fn check_interval() -> Duration {
    let override_value = if cfg!(debug_assertions) { std::env::var("SCRIBED_TEST_LOOK").ok() } else { None };
    override_value.and_then(|text| humantime::parse_duration(&text).ok()).unwrap_or(CHECK_INTERVAL)
}
