//! What can change while `scribed serve` runs: the accepted keys and the certificate. Their files are checked every few
//! seconds. SIGHUP and `scribed reload` also read the keys of the configuration again.

use crate::blocking::blocking;
use crate::cli::runtime::exit::CommandError;
use crate::clock::{Clock, SystemClock};
use crate::config::load::read::load_to_serve;
use crate::config::model;
use crate::config::sections::service_keys::{Accepted, FoundKey, KeyLocations, LastKnown, LocatedKeys, ServiceKeys};
use crate::control::transport::socket::{ListeningSocket, NAME, SocketPath};
use crate::permission_errors::describe_state_error;
use crate::server::http::auth::{ApiKey, own_key};
use crate::server::http::tls::{CertificateCheck, check_interval};
use crate::server::service::RunningService;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Returns the keys that are accepted when the service starts. If none is configured, a key is created and kept in the
/// data directory.
///
/// # Errors
/// The error of the system if the data directory cannot be read or written.
pub fn keys(serve: &model::ServeConfig) -> Result<Vec<ApiKey>, CommandError> {
    match serve.keys.is_empty() {
        true => Ok(vec![own_key(&serve.data)?]),
        false => Ok(keys_of(&serve.keys.found)),
    }
}

fn keys_of(found: &[FoundKey]) -> Vec<ApiKey> {
    let key = |found: &FoundKey| {
        let key = ApiKey::new(found.secret.expose());
        found.name.iter().fold(key, |key, name| key.with_name(name.as_str()))
    };
    found.iter().map(key).collect()
}

/// Reads the keys again while the service runs, and passes changes to the service.
pub struct KeyReload {
    config: PathBuf,
    places: KeyLocations,
    known: LastKnown,
    /// The keys that are accepted.
    accepted: Accepted,
    /// What the last check found. A change is applied only if two checks find the same, since a file may just be
    /// written.
    seen: Option<Vec<LocatedKeys>>,
    hangup: Signal,
    command_socket: Option<ListeningSocket>,
}

/// The answer to `scribed reload`.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReloadAnswer {
    /// Whether everything was applied.
    pub done: bool,
    /// The results, one per line.
    pub words: Vec<String>,
}

impl KeyReload {
    /// Starts to listen for SIGHUP and `scribed reload`.
    ///
    /// # Errors
    /// The error of the system if the signal handler cannot be installed.
    pub fn listen(config: &Path, serve: &model::ServeConfig) -> io::Result<Self> {
        let places = serve.keys.places.clone();
        let mut known = LastKnown::from_accepted(&serve.keys.found);
        known.update(places.load(&environment));
        // These are the keys with which the service was started: if a file has changed since then, that is a change.
        let ServiceKeys { found, remarks, names, .. } = serve.keys.clone();
        let accepted = Accepted { keys: found, remarks, duplicates: Vec::new(), names };
        let command_socket = ListeningSocket::at(&serve.data).map_err(|error| {
            tracing::warn!(%error, "`scribed reload` cannot reach this service; send SIGHUP instead");
        });
        Ok(Self {
            config: config.to_owned(),
            places,
            known,
            accepted,
            seen: None,
            hangup: signal(SignalKind::hangup())?,
            command_socket: command_socket.ok(),
        })
    }

    /// Applies changes until `stop` is cancelled.
    pub async fn run(mut self, running: &RunningService, stop: &CancellationToken) {
        let (listener, removal) = self.command_socket.take().map(ListeningSocket::split).unzip();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = SystemClock.sleep(check_interval()), if self.places.has_files() => self.check_files(running).await,
                _ = self.hangup.recv() => {
                    self.reload(running).await;
                }
                caller = next_caller(listener.as_ref()) => {
                    let answer = self.reload(running).await;
                    send_answer(caller, &answer).await;
                }
            }
        }
        drop(removal);
    }

    /// Reads the files of the keys, and applies them if the previous check found the same.
    async fn check_files(&mut self, running: &RunningService) {
        let places = self.places.clone();
        let slots = blocking(move || places.load(&environment)).await;
        let before = self.seen.replace(slots.clone());
        if before.as_ref() == Some(&slots) {
            // An error is in the log, and the next check tries again.
            let _ = self.apply_keys(slots, running).await;
        }
    }

    /// Makes the service accept the keys in `slots`.
    ///
    /// # Errors
    /// A message if the service cannot accept new keys, since their owners cannot be written.
    async fn apply_keys(&mut self, slots: Vec<LocatedKeys>, running: &RunningService) -> Result<(), String> {
        let new = self.known.update(slots);
        if new == self.accepted {
            return Ok(());
        }
        let warnings = [new.remarks.clone(), new.duplicates.iter().map(|(_, words)| words.clone()).collect()].concat();
        let previous_warnings =
            [self.accepted.remarks.clone(), self.accepted.duplicates.iter().map(|(_, words)| words.clone()).collect()]
                .concat();
        warnings.iter().filter(|words| !previous_warnings.contains(words)).for_each(|words| tracing::warn!("{words}"));
        if let Err(error) = running.accept_keys(keys_of(&new.keys), new.names.clone()).await {
            let words = "the service accepts no new keys: it cannot write their owners to `owners.json`. It \
                         already refuses keys that were removed or renamed. The service tries again";
            tracing::error!(%error, "{words}");
            return Err(format!("{words}: {error}"));
        }
        log_key_changes(&self.accepted.keys, &new.keys);
        self.accepted = new;
        Ok(())
    }

    /// Reads the keys of the configuration and the certificate again, and applies them. If the configuration is wrong,
    /// the files of the previous one are still read: a key that was removed is no longer accepted.
    async fn reload(&mut self, running: &RunningService) -> ReloadAnswer {
        let path = self.config.clone();
        let mut answer = ReloadAnswer { done: true, words: Vec::new() };
        match blocking(move || load_to_serve(&path)).await {
            Ok(serve) if serve.keys.is_empty() != self.places.is_empty() => {
                let words = "`[serve] keys` was added or removed as a whole: that needs a restart";
                answer = ReloadAnswer { done: false, words: vec![words.to_owned()] };
            }
            Ok(serve) => self.places = serve.keys.places,
            Err(problems) => {
                answer =
                    ReloadAnswer { done: false, words: problems.report(false).lines().map(str::to_owned).collect() };
            }
        }
        if !self.places.is_empty() {
            let places = self.places.clone();
            let slots = blocking(move || places.load(&environment)).await;
            match self.apply_keys(slots, running).await {
                Ok(()) => {
                    answer.words.push(match self.accepted.keys.len() {
                        1 => "the service accepts 1 key".to_owned(),
                        count => format!("the service accepts {count} keys"),
                    });
                    answer.words.extend(self.accepted.remarks.iter().cloned());
                }
                Err(words) => {
                    answer.done = false;
                    answer.words.push(words);
                }
            }
        }
        match running.check_certificate().await {
            Some(CertificateCheck::Refused(why)) => {
                answer.done = false;
                answer.words.push(format!("cannot use the new certificate; the previous one stays in use: {why}"));
            }
            Some(CertificateCheck::Taken) => {
                answer.words.push("the service uses a new certificate from now on".to_owned());
            }
            Some(CertificateCheck::Same) => answer.words.push("the certificate is unchanged".to_owned()),
            None => {}
        }
        answer.words.push("all other settings of [serve] apply from the next start".to_owned());
        match answer.done {
            true => answer.words.iter().for_each(|words| tracing::info!("{words}")),
            false => answer.words.iter().for_each(|words| tracing::error!("{words}")),
        }
        answer
    }
}

fn environment(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// Logs the names of added and removed keys, never a key itself.
fn log_key_changes(before: &[FoundKey], now: &[FoundKey]) {
    let only = |keys: &[FoundKey], others: &[FoundKey]| -> Vec<String> {
        let differing = keys.iter().filter(|key| !others.contains(key));
        differing.map(|key| key.name.clone().unwrap_or_else(|| "without a name".to_owned())).collect()
    };
    for key in only(now, before) {
        tracing::warn!(%key, "the service accepts a new key");
    }
    for key in only(before, now) {
        tracing::warn!(%key, "the service no longer accepts a key; transcriptions that it created continue");
    }
}

async fn next_caller(listener: Option<&UnixListener>) -> UnixStream {
    loop {
        match listener {
            None => std::future::pending().await,
            Some(listener) => match listener.accept().await {
                Ok((stream, _)) => return stream,
                Err(_) => SystemClock.sleep(Duration::from_millis(200)).await,
            },
        }
    }
}

/// How long `scribed reload` waits for the answer of the service.
const PATIENCE: Duration = Duration::from_secs(30);

async fn send_answer(mut caller: UnixStream, answer: &ReloadAnswer) {
    let bytes = serde_json::to_vec(answer).unwrap_or_default();
    // The command that asked may have ended.
    let _ = tokio::time::timeout(Duration::from_secs(2), caller.write_all(&bytes)).await;
}

/// Asks the service that runs with this data directory to reload its keys and certificate. Returns `None` if no service
/// runs there.
///
/// # Errors
/// [`CommandError::Declined`] if the service does not answer, or this user may not connect to it.
pub async fn request_reload(data: &Path) -> Result<Option<ReloadAnswer>, CommandError> {
    if !data.join(NAME).try_exists().unwrap_or(false) {
        return Ok(None);
    }
    let failed = |words: String| CommandError::Declined(format!("the service in {}: {words}", data.display()));
    let socket = SocketPath::open(data, NAME)?;
    let mut stream = match UnixStream::connect(socket.path()).await {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(describe_state_error(&error, &data.join(NAME)))),
    };
    let mut bytes = Vec::new();
    match tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(failed(error.to_string())),
        Err(_) => return Err(failed(format!("the service did not answer within {} s", PATIENCE.as_secs()))),
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|_| failed("the service stopped before it answered".to_owned()))
}
