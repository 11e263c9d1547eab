//! The client of the daemon's socket, for commands.

use super::protocol::{CommandRefusal, ControlAnswer, ControlRequest};
use super::queue_process::QueueProcess;
use super::server::PATH;
use super::socket::{NAME, SocketPath, has_listener};
use crate::domain::time_span::time_span;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time limits for answers of the daemon: after them it counts as hanging. This one is for requests that read many
/// rows of the queue …
const PATIENCE: Duration = Duration::from_secs(120);

/// … this one for a copy of all rows to a disk, or for a recording that is read, which may be slow …
const PATIENCE_COPY: Duration = Duration::from_secs(3600);

/// … this one for requests that wait for the disk, or for a folder that does not answer …
const PATIENCE_DISK: Duration = Duration::from_secs(30);

/// … this one for a request that waits for the engine's loop …
const PATIENCE_HEALTH: Duration = Duration::from_secs(15);

/// … and this one for requests that are answered at once.
const PATIENCE_SHORT: Duration = Duration::from_secs(5);

pub(super) fn patience(request: &ControlRequest) -> Duration {
    match request {
        // The content of a recording is read whole.
        ControlRequest::CopyRows { .. } | ControlRequest::Adopt(_) => PATIENCE_COPY,
        ControlRequest::Health => PATIENCE_HEALTH,
        ControlRequest::Status
        | ControlRequest::Configuration
        | ControlRequest::Paused
        | ControlRequest::Show { .. } => PATIENCE_SHORT,
        ControlRequest::Waiting { .. }
        | ControlRequest::LongWaits { .. }
        | ControlRequest::Jobs(_)
        | ControlRequest::Cost(_)
        | ControlRequest::LookUp { .. }
        | ControlRequest::Bought { .. }
        | ControlRequest::Delete { .. }
        | ControlRequest::Erase(_)
        | ControlRequest::Forget(_)
        | ControlRequest::Verify(_) => PATIENCE,
        _ => PATIENCE_DISK,
    }
}

/// Why a daemon could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The socket exists and cannot be used.
    #[error(
        "a daemon may listen at {}, but this user cannot connect to it: {}. Run the command as the daemon's user",
        place.display(), crate::permission_errors::describe_state_error(error, place)
    )]
    Closed { place: PathBuf, error: io::Error },
    /// The process ended, hangs, or has another protocol.
    #[error("cannot talk to {process} at {}: {words}", place.display())]
    Broken {
        place: PathBuf,
        process: QueueProcess,
        /// What happened, and what to do.
        words: String,
    },
}

/// A connection to a daemon that listens.
pub struct DaemonClient {
    client: reqwest::Client,
    state: PathBuf,
    place: PathBuf,
    /// The path by which the client connects for each request; it must live as long as the client.
    _socket: SocketPath,
}

impl DaemonClient {
    /// Returns the daemon of a state directory; `None` if none listens.
    ///
    /// # Errors
    /// [`CallError::Closed`] if a daemon may listen, but this user cannot connect to it.
    pub fn find(state: &Path) -> Result<Option<Self>, CallError> {
        let place = state.join(NAME);
        let closed = |error| CallError::Closed { place: place.clone(), error };
        if !has_listener(state).map_err(closed)? {
            return Ok(None);
        }
        let socket = SocketPath::open(state, NAME).map_err(closed)?;
        let builder = reqwest::Client::builder().no_proxy().tls_certs_only(std::iter::empty());
        let client = builder.unix_socket(socket.path()).build();
        let client = client.map_err(|error| closed(io::Error::other(error)))?;
        Ok(Some(Self { client, state: state.to_owned(), place, _socket: socket }))
    }

    /// Sends a request and returns the answer.
    ///
    /// # Errors
    /// [`CallError::Broken`]; the inner error is the daemon's refusal.
    pub async fn ask(&self, request: &ControlRequest) -> Result<Result<ControlAnswer, CommandRefusal>, CallError> {
        let patience = patience(request);
        let process = || QueueProcess::of(&self.state);
        let broken = |words: String| CallError::Broken { place: self.place.clone(), process: process(), words };
        let failed = |error: reqwest::Error| broken(describe_failure(&error, patience, process()));
        // The host name has no meaning: the connection goes through the socket.
        let sent = self.client.post(format!("http://scribed{PATH}")).json(request).timeout(patience).send().await;
        let response = sent.map_err(failed)?;
        let is_success = response.status().is_success();
        let body = response.bytes().await.map_err(failed)?;
        let parsed = match is_success {
            true => serde_json::from_slice(&body).map(Ok),
            false => serde_json::from_slice(&body).map(Err),
        };
        parsed.map_err(|_| {
            broken("it is of another release than this command; restart it, or use the command of its release".into())
        })
    }
}

fn describe_failure(error: &reqwest::Error, patience: Duration, process: QueueProcess) -> String {
    if error.is_timeout() {
        return format!("it did not answer within {}; {}", time_span(patience), process.remedy());
    }
    "it stopped during the request; check `scribed status`, then try again".to_owned()
}
