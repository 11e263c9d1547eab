//! Access of a command to the queue: through the daemon if one runs, otherwise the command opens the queue itself.

use crate::cli::runtime::exit::CommandError;
use crate::config::model::Config;
use crate::control::media_address::MediaAddress;
use crate::control::transport::client::{CallError, DaemonClient};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, ControlAnswer, ControlRequest, DaemonStatus, JobSelector};
use crate::control::transport::remote_client::RemoteClient;
use crate::control::transport::socket::has_listener;
use crate::daemon::{self, Daemon};
use crate::domain::names::{JobId, SourceName};
use crate::domain::path::RelPath;
use crate::domain::zone::Zone;
use crate::store::contract::StoreError;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How often a command tries to open a queue that another process holds. Each attempt takes the second that the store
/// itself waits. Another command holds the queue only for a moment, and a daemon that starts soon listens.
const ATTEMPTS: u32 = 10;

/// What carries out requests: the daemon, or a handler in this process.
pub enum QueueAccess {
    Daemon(DaemonClient),
    /// A daemon on another machine.
    Remote(RemoteClient),
    Here(Box<CommandHandler>),
}

impl QueueAccess {
    /// Connects to the daemon if one listens, else opens the store in this process.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process holds the store; see [`CommandError`].
    pub async fn find(config: &Config) -> Result<Self, CommandError> {
        Ok(match daemon_or(config, async || daemon::handler(config)).await? {
            QueueHolder::Daemon(client) => Self::Daemon(client),
            QueueHolder::Here(handler) => Self::Here(Box::new(handler)),
        })
    }

    /// Checks that no source has the name that another one has in the queue. Call this before files are looked for by
    /// the jobs of their source. A daemon makes this check when it applies its configuration.
    ///
    /// # Errors
    /// [`CommandError::Usage`] if a source has such a name.
    pub async fn check_no_renames(&self, config: &Config) -> Result<(), CommandError> {
        match self {
            Self::Daemon(_) | Self::Remote(_) => Ok(()),
            Self::Here(handler) => {
                Ok(daemon::renamed_sources(config, &*handler.store, &*handler.clock).await.map(drop)?)
            }
        }
    }

    /// Whether a daemon or a pass answers, which works on the jobs by itself.
    pub fn has_daemon(&self) -> bool {
        !matches!(self, Self::Here(_))
    }

    /// Has a request carried out.
    ///
    /// # Errors
    /// See [`CommandError`]; a refusal is an error, too.
    pub async fn request(&self, request: ControlRequest) -> Result<ControlAnswer, CommandError> {
        Ok(self.try_request(request).await??)
    }

    /// As [`QueueAccess::request`], for commands that go on after a refusal.
    ///
    /// # Errors
    /// The outer error if the daemon could not be asked; the inner one is a refusal.
    pub async fn try_request(
        &self,
        request: ControlRequest,
    ) -> Result<Result<ControlAnswer, CommandRefusal>, CommandError> {
        match self {
            Self::Daemon(client) => Ok(client.ask(&request).await?),
            Self::Remote(client) => Ok(client.ask(&request).await?),
            Self::Here(handler) => Ok(handler.carry_out(request).await),
        }
    }
}

/// Returns the error for an answer that does not belong to the request.
pub fn protocol_mismatch() -> CommandError {
    CommandError::Service(
        "the scribed process that has the queue gave an unexpected answer; restart it with this release".to_owned(),
    )
}

/// Parses a job number, the path of a recording, or a name as `scribed jobs` shows it.
///
/// # Errors
/// [`CommandError::Usage`] for an empty path.
pub fn parse_job_selector(typed: &Path) -> Result<JobSelector, CommandError> {
    match typed.to_str().and_then(|text| text.parse().ok()) {
        Some(number) => Ok(JobSelector::Number(JobId(number))),
        None => Ok(JobSelector::Typed {
            typed: RelPath::new(typed.as_os_str().as_bytes()),
            place: parse_media_address(typed)?,
        }),
    }
}

/// Parses the path or address of a recording.
///
/// # Errors
/// [`CommandError::Usage`] for an empty path.
pub fn parse_media_address(typed: &Path) -> Result<MediaAddress, CommandError> {
    MediaAddress::typed(typed).map_err(|error| CommandError::Usage(format!("{typed:?} is not a path: {error}")))
}

/// Returns the source of this name.
///
/// # Errors
/// [`CommandError::Usage`] if the configuration has no source of this name.
pub fn source(config: &Config, name: &str) -> Result<SourceName, CommandError> {
    let named = config.sources.iter().find(|source| source.name.as_str() == name);
    named.map(|source| source.name.clone()).ok_or_else(|| {
        let names: Vec<&str> = config.sources.iter().map(|source| source.name.as_str()).collect();
        CommandError::Usage(format!("there is no source {name:?}; the sources are: {}", names.join(", ")))
    })
}

/// Calls `open` until the queue is free or the attempts are used up, and logs that it waits. If a daemon or a pass
/// listens, it keeps the queue: then there is no further attempt.
pub async fn retry_while_locked<T, E: Into<CommandError>>(
    config: &Config,
    open: impl AsyncFn() -> Result<T, E>,
) -> Result<T, CommandError> {
    for attempt in 1..ATTEMPTS {
        match open().await.map_err(Into::into) {
            Err(CommandError::Store(StoreError::Locked(words))) if !has_listener(&config.state).unwrap_or(true) => {
                if attempt == 1 {
                    tracing::warn!("{words} Waiting {ATTEMPTS} s for it, since another command may be about to end");
                }
            }
            opened => return opened,
        }
    }
    open().await.map_err(Into::into)
}

/// What holds the queue: the daemon, or what this process opened.
pub enum QueueHolder<T> {
    Daemon(DaemonClient),
    /// What `open` returned.
    Here(T),
}

/// Returns the daemon if one listens, else what `open` returns.
///
/// # Errors
/// As [`QueueAccess::find`].
pub async fn daemon_or<T>(
    config: &Config,
    open: impl AsyncFn() -> Result<T, StoreError>,
) -> Result<QueueHolder<T>, CommandError> {
    if let Some(client) = DaemonClient::find(&config.state)? {
        return Ok(QueueHolder::Daemon(client));
    }
    match retry_while_locked(config, open).await {
        Ok(here) => Ok(QueueHolder::Here(here)),
        // A daemon that was just starting may listen by now.
        Err(failure @ CommandError::Store(StoreError::Locked(_))) => {
            DaemonClient::find(&config.state)?.map(QueueHolder::Daemon).ok_or(failure)
        }
        Err(failure) => Err(failure),
    }
}

/// Opens the daemon and claims the sources' folders, for a command that works on the jobs itself.
///
/// # Errors
/// See [`CommandError`]. If a daemon or a pass holds the queue, the error names it.
pub async fn open_daemon(config: &Config, rebuild: bool) -> Result<Daemon, CommandError> {
    match retry_while_locked(config, async || Daemon::open(config, rebuild).await?.claim_folders().await).await {
        Ok(daemon) => Ok(daemon),
        Err(failure) => Err(name_holder(config, failure).await),
    }
}

/// Returns the status of the daemon or pass that runs with this state directory, if one answers.
pub async fn daemon_of(state: &Path) -> Option<DaemonStatus> {
    let client = DaemonClient::find(state).ok()??;
    match client.ask(&ControlRequest::Status).await {
        Ok(Ok(ControlAnswer::Status(status))) => status.daemon,
        _ => None,
    }
}

/// Adds to the error of a locked queue which process holds it, and that this process does the work.
async fn name_holder(config: &Config, failure: CommandError) -> CommandError {
    let CommandError::Store(StoreError::Locked(_)) = &failure else { return failure };
    let Some(daemon) = daemon_of(&config.state).await else { return failure };
    let (who, since, state) = (daemon.describe(), Zone::UTC.format_second(daemon.since), config.state.display());
    let words = format!(
        "the state in {state} is in use by another scribed: {who}, running since {since}. It does the work \
         already, and nothing was started here; `scribed status` shows its progress."
    );
    CommandError::Store(StoreError::Locked(words))
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> Self {
        Self::Store(StoreError::Locked(error.to_string()))
    }
}

impl From<CommandRefusal> for CommandError {
    fn from(refusal: CommandRefusal) -> Self {
        match refusal {
            CommandRefusal::Usage(words) => Self::Usage(words),
            CommandRefusal::Declined(words) => Self::Declined(words),
            CommandRefusal::Store(words) => Self::Store(StoreError::Unwritable(words)),
        }
    }
}
