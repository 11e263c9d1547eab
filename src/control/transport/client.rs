//! A command's side of the socket.

use super::protocol::{CommandRefusal, ControlAnswer, ControlRequest};
use super::server::PATH;
use super::socket::{NAME, SocketPath, has_listener};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A daemon that says nothing for so long hangs: it reads many rows of the queue …
const PATIENCE: Duration = Duration::from_secs(120);

/// … it waits for the disk, or for a folder that does not answer …
const PATIENCE_DISK: Duration = Duration::from_secs(30);

/// … it looks for a sign of life of its engine …
const PATIENCE_HEALTH: Duration = Duration::from_secs(15);

/// … or it has the answer at hand.
const PATIENCE_SHORT: Duration = Duration::from_secs(5);

fn patience(request: &ControlRequest) -> Duration {
    match request {
        ControlRequest::Health => PATIENCE_HEALTH,
        ControlRequest::Status | ControlRequest::Paused | ControlRequest::Show { .. } => PATIENCE_SHORT,
        ControlRequest::Waiting { .. }
        | ControlRequest::Jobs(_)
        | ControlRequest::Cost(_)
        | ControlRequest::LookUp { .. }
        | ControlRequest::Bought { .. }
        | ControlRequest::Delete { .. }
        | ControlRequest::Forget(_)
        | ControlRequest::Verify(_) => PATIENCE,
        _ => PATIENCE_DISK,
    }
}

/// Why a daemon could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The socket is there and cannot be used.
    #[error(
        "a daemon may listen at {}, but this user cannot connect to it: {}. Run the command as the daemon's user",
        place.display(), crate::permission_errors::describe_state_error(error, place)
    )]
    Closed { place: PathBuf, error: io::Error },
    /// It went away, hangs, or speaks otherwise.
    #[error("cannot talk to the daemon at {}: {words}", place.display())]
    Broken {
        place: PathBuf,
        /// What happened, and what to do.
        words: String,
    },
}

/// A daemon that listens.
pub struct DaemonClient {
    client: reqwest::Client,
    place: PathBuf,
    /// The client goes this way at every call.
    _reach: SocketPath,
}

impl DaemonClient {
    /// The daemon of this state directory; `None` where none listens.
    ///
    /// # Errors
    /// [`CallError::Closed`].
    pub fn find(state: &Path) -> Result<Option<Self>, CallError> {
        let place = state.join(NAME);
        let closed = |error| CallError::Closed { place: place.clone(), error };
        if !has_listener(state).map_err(closed)? {
            return Ok(None);
        }
        let reach = SocketPath::open(state, NAME).map_err(closed)?;
        let builder = reqwest::Client::builder().no_proxy().tls_certs_only(std::iter::empty());
        let client = builder.unix_socket(reach.path()).build();
        let client = client.map_err(|error| closed(io::Error::other(error)))?;
        Ok(Some(Self { client, place, _reach: reach }))
    }

    /// Has it carry out a request.
    ///
    /// # Errors
    /// [`CallError::Broken`]; within, what the daemon refuses.
    pub async fn ask(&self, request: &ControlRequest) -> Result<Result<ControlAnswer, CommandRefusal>, CallError> {
        let patience = patience(request);
        let broken = |words: String| CallError::Broken { place: self.place.clone(), words };
        // The host is nobody's: the way is the socket.
        let sent = self.client.post(format!("http://scribed{PATH}")).json(request).timeout(patience).send().await;
        let response = sent.map_err(|error| broken(went_wrong(&error, patience)))?;
        let good = response.status().is_success();
        let body = response.bytes().await.map_err(|error| broken(went_wrong(&error, patience)))?;
        let parsed = match good {
            true => serde_json::from_slice(&body).map(Ok),
            false => serde_json::from_slice(&body).map(Err),
        };
        parsed.map_err(|_| {
            broken(
                "the daemon is of another release than this command; restart it, or use the command of its release"
                    .into(),
            )
        })
    }
}

fn went_wrong(error: &reqwest::Error, patience: Duration) -> String {
    if error.is_timeout() {
        let patience = humantime::format_duration(patience);
        return format!("the daemon did not answer within {patience}; read its log, and restart it if it hangs");
    }
    "the daemon stopped during the request; check `scribed status`, then try again".to_owned()
}
