//! The way of a command to the queue: through the daemon where one runs, else by its own hands.

use crate::cli::runtime::exit::CommandError;
use crate::config::model::Config;
use crate::control::media_address::MediaAddress;
use crate::control::transport::client::{CallError, DaemonClient};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, ControlAnswer, ControlRequest, DaemonStatus, JobSelector};
use crate::control::transport::socket::has_listener;
use crate::daemon::{self, Daemon};
use crate::domain::names::{JobId, SourceName};
use crate::domain::path::RelPath;
use crate::domain::zone::Zone;
use crate::store::contract::StoreError;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A command has the queue for a moment only, and a daemon that starts listens soon: so often a queue
/// that somebody has is asked for, each time for the second that the store itself waits.
const ATTEMPTS: u32 = 10;

/// Who carries requests out.
pub enum QueueAccess {
    Daemon(DaemonClient),
    Here(Box<CommandHandler>),
}

impl QueueAccess {
    /// The daemon where one listens; else the store is opened here.
    ///
    /// # Errors
    /// [`StoreError::Locked`] where another command has it; see [`CommandError`].
    pub async fn find(config: &Config) -> Result<Self, CommandError> {
        Ok(match daemon_or(config, async || daemon::handler(config)).await? {
            QueueHolder::Daemon(caller) => Self::Daemon(caller),
            QueueHolder::Here(handler) => Self::Here(Box::new(handler)),
        })
    }

    /// Before files are judged by the jobs of their source: that no source has another one's name. A daemon has looked
    /// at it when it took up its configuration.
    ///
    /// # Errors
    /// [`CommandError::Usage`] where one has.
    pub async fn check_no_renames(&self, config: &Config) -> Result<(), CommandError> {
        match self {
            Self::Daemon(_) => Ok(()),
            Self::Here(handler) => {
                Ok(daemon::renamed_sources(config, &*handler.store, &*handler.clock).await.map(drop)?)
            }
        }
    }

    /// Whether a daemon moves the jobs by itself.
    pub fn has_daemon(&self) -> bool {
        matches!(self, Self::Daemon(_))
    }

    /// Has a request carried out.
    ///
    /// # Errors
    /// See [`CommandError`]; a refusal is one, too.
    pub async fn request(&self, request: ControlRequest) -> Result<ControlAnswer, CommandError> {
        Ok(self.try_request(request).await??)
    }

    /// As [`QueueAccess::request`], for those who go on after a refusal.
    ///
    /// # Errors
    /// Where nobody could be asked; within, what is refused.
    pub async fn try_request(
        &self,
        request: ControlRequest,
    ) -> Result<Result<ControlAnswer, CommandRefusal>, CommandError> {
        match self {
            Self::Daemon(caller) => Ok(caller.ask(&request).await?),
            Self::Here(handler) => Ok(handler.carry_out(request).await),
        }
    }
}

/// An answer to another request than the one that was made.
pub fn protocol_mismatch() -> CommandError {
    CommandError::Service("the daemon gave an unexpected answer; restart it with this release".to_owned())
}

/// A number, the path of a recording, or what `scribed jobs` calls it.
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

/// The path of a recording.
///
/// # Errors
/// [`CommandError::Usage`] for an empty path.
pub fn parse_media_address(typed: &Path) -> Result<MediaAddress, CommandError> {
    MediaAddress::typed(typed).map_err(|error| CommandError::Usage(format!("{typed:?} is not a path: {error}")))
}

/// A source that the configuration has.
///
/// # Errors
/// [`CommandError::Usage`] where it has none of this name.
pub fn source(config: &Config, name: &str) -> Result<SourceName, CommandError> {
    let named = config.sources.iter().find(|source| source.name.as_str() == name);
    named.map(|source| source.name.clone()).ok_or_else(|| {
        let names: Vec<&str> = config.sources.iter().map(|source| source.name.as_str()).collect();
        CommandError::Usage(format!("there is no source {name:?}; the sources are: {}", names.join(", ")))
    })
}

/// Opens what the queue is needed for; while another command has that, waits for it, and says so. A
/// daemon that answers keeps it: nobody waits for that.
///
/// # Errors
/// Those of `open`.
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

/// Who answers for the queue.
pub enum QueueHolder<T> {
    Daemon(DaemonClient),
    /// What was opened here.
    Here(T),
}

/// The daemon where one listens; else what `open` opens.
///
/// # Errors
/// As [`QueueAccess::find`].
pub async fn daemon_or<T>(
    config: &Config,
    open: impl AsyncFn() -> Result<T, StoreError>,
) -> Result<QueueHolder<T>, CommandError> {
    if let Some(caller) = DaemonClient::find(&config.state)? {
        return Ok(QueueHolder::Daemon(caller));
    }
    match retry_while_locked(config, open).await {
        Ok(here) => Ok(QueueHolder::Here(here)),
        // One that was just being started listens by now.
        Err(failure @ CommandError::Store(StoreError::Locked(_))) => {
            DaemonClient::find(&config.state)?.map(QueueHolder::Daemon).ok_or(failure)
        }
        Err(failure) => Err(failure),
    }
}

/// Opens everything, for who does the work: nobody else may be doing it.
///
/// # Errors
/// See [`CommandError`]; where a daemon or a pass has the queue, which.
pub async fn open_daemon(config: &Config, rebuild: bool) -> Result<Daemon, CommandError> {
    match retry_while_locked(config, async || Daemon::open(config, rebuild).await?.claim_folders().await).await {
        Ok(house) => Ok(house),
        Err(failure) => Err(taken(config, failure).await),
    }
}

/// The daemon that runs on this state, if one answers.
pub async fn daemon_of(state: &Path) -> Option<DaemonStatus> {
    let caller = DaemonClient::find(state).ok()??;
    match caller.ask(&ControlRequest::Status).await {
        Ok(Ok(ControlAnswer::Status(status))) => status.daemon,
        _ => None,
    }
}

/// A queue that a daemon has: says which, and that the work is in good hands.
async fn taken(config: &Config, failure: CommandError) -> CommandError {
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
