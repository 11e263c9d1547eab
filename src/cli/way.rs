//! The way of a command to the queue: through the daemon where one runs, else by its own hands.

use crate::cli::failure::Failure;
use crate::config::meant::Config;
use crate::control::caller::{CallError, Caller};
use crate::control::hands::Hands;
use crate::control::place::Place;
use crate::control::request::{Answer, Daemon, Refusal, Request, Wanted};
use crate::control::socket::is_answered;
use crate::daemon::{self, House};
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
pub enum Way {
    /// The daemon.
    Daemon(Caller),
    /// This process.
    Here(Box<Hands>),
}

impl Way {
    /// The daemon where one listens; else the store is opened here.
    ///
    /// # Errors
    /// [`StoreError::Locked`] where another command has it; see [`Failure`].
    pub async fn find(config: &Config) -> Result<Self, Failure> {
        Ok(match daemon_or(config, async || daemon::hands(config)).await? {
            Reached::Daemon(caller) => Self::Daemon(caller),
            Reached::Here(hands) => Self::Here(Box::new(hands)),
        })
    }

    /// Before files are judged by the jobs of their source: that no source has another one's name. A daemon has looked
    /// at it when it took up its configuration.
    ///
    /// # Errors
    /// [`Failure::Usage`] where one has.
    pub async fn names_are_clear(&self, config: &Config) -> Result<(), Failure> {
        match self {
            Self::Daemon(_) => Ok(()),
            Self::Here(hands) => Ok(daemon::renamed_sources(config, &*hands.store, &*hands.clock).await.map(drop)?),
        }
    }

    /// Whether a daemon moves the jobs by itself.
    pub fn has_daemon(&self) -> bool {
        matches!(self, Self::Daemon(_))
    }

    /// Has a request carried out.
    ///
    /// # Errors
    /// See [`Failure`]; a refusal is one, too.
    pub async fn ask(&self, request: Request) -> Result<Answer, Failure> {
        Ok(self.put(request).await??)
    }

    /// As [`Way::ask`], for those who go on after a refusal.
    ///
    /// # Errors
    /// Where nobody could be asked; within, what is refused.
    pub async fn put(&self, request: Request) -> Result<Result<Answer, Refusal>, Failure> {
        match self {
            Self::Daemon(caller) => Ok(caller.ask(&request).await?),
            Self::Here(hands) => Ok(hands.carry_out(request).await),
        }
    }
}

/// An answer to another request than the one that was made.
pub fn strange() -> Failure {
    Failure::Service("the daemon answered something else than was asked; restart it with this release".to_owned())
}

/// A number, the path of a recording, or what `scribed jobs` calls it.
///
/// # Errors
/// [`Failure::Usage`] for an empty path.
pub fn wanted(typed: &Path) -> Result<Wanted, Failure> {
    match typed.to_str().and_then(|text| text.parse().ok()) {
        Some(number) => Ok(Wanted::Number(JobId(number))),
        None => Ok(Wanted::Typed { typed: RelPath::new(typed.as_os_str().as_bytes()), place: place(typed)? }),
    }
}

/// The path of a recording.
///
/// # Errors
/// [`Failure::Usage`] for an empty path.
pub fn place(typed: &Path) -> Result<Place, Failure> {
    Place::typed(typed).map_err(|error| Failure::Usage(format!("{typed:?} is no path: {error}")))
}

/// A source that the configuration has.
///
/// # Errors
/// [`Failure::Usage`] where it has none of this name.
pub fn source(config: &Config, name: &str) -> Result<SourceName, Failure> {
    let named = config.sources.iter().find(|source| source.name.as_str() == name);
    named.map(|source| source.name.clone()).ok_or_else(|| {
        let names: Vec<&str> = config.sources.iter().map(|source| source.name.as_str()).collect();
        Failure::Usage(format!("no source is named {name:?}; there are: {}", names.join(", ")))
    })
}

/// Opens what the queue is needed for; while another command has that, waits for it, and says so. A
/// daemon that answers keeps it: nobody waits for that.
///
/// # Errors
/// Those of `open`.
pub async fn when_free<T, E: Into<Failure>>(
    config: &Config,
    open: impl AsyncFn() -> Result<T, E>,
) -> Result<T, Failure> {
    for attempt in 1..ATTEMPTS {
        match open().await.map_err(Into::into) {
            Err(Failure::Store(StoreError::Locked(words))) if !is_answered(&config.state).unwrap_or(true) => {
                if attempt == 1 {
                    tracing::warn!("{words} Waiting {ATTEMPTS} s for it, as another command may be about to end");
                }
            }
            opened => return opened,
        }
    }
    open().await.map_err(Into::into)
}

/// Who answers for the queue.
pub enum Reached<T> {
    /// The daemon.
    Daemon(Caller),
    /// What was opened here.
    Here(T),
}

/// The daemon where one listens; else what `open` opens.
///
/// # Errors
/// As [`Way::find`].
pub async fn daemon_or<T>(
    config: &Config,
    open: impl AsyncFn() -> Result<T, StoreError>,
) -> Result<Reached<T>, Failure> {
    if let Some(caller) = Caller::find(&config.state)? {
        return Ok(Reached::Daemon(caller));
    }
    match when_free(config, open).await {
        Ok(here) => Ok(Reached::Here(here)),
        // One that was just being started listens by now.
        Err(failure @ Failure::Store(StoreError::Locked(_))) => {
            Caller::find(&config.state)?.map(Reached::Daemon).ok_or(failure)
        }
        Err(failure) => Err(failure),
    }
}

/// Opens everything, for who does the work: nobody else may be doing it.
///
/// # Errors
/// See [`Failure`]; where a daemon or a pass has the queue, which.
pub async fn house(config: &Config, rebuild: bool) -> Result<House, Failure> {
    match when_free(config, async || House::open(config, rebuild).await?.owning().await).await {
        Ok(house) => Ok(house),
        Err(failure) => Err(taken(config, failure).await),
    }
}

/// The daemon that runs on this state, if one answers.
pub async fn daemon_of(state: &Path) -> Option<Daemon> {
    let caller = Caller::find(state).ok()??;
    match caller.ask(&Request::Status).await {
        Ok(Ok(Answer::Status(status))) => status.daemon,
        _ => None,
    }
}

/// A queue that a daemon has: says which, and that the work is in good hands.
async fn taken(config: &Config, failure: Failure) -> Failure {
    let Failure::Store(StoreError::Locked(_)) = &failure else { return failure };
    let Some(daemon) = daemon_of(&config.state).await else { return failure };
    let (who, since, state) = (daemon.named(), Zone::UTC.shown_to_the_second(daemon.since), config.state.display());
    let words = format!(
        "the state in {state} is in use by another scribed: {who}, runs since {since} and does the work \
         already. `scribed status` shows how far it is; nothing was begun here."
    );
    Failure::Store(StoreError::Locked(words))
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Store(StoreError::Locked(error.to_string()))
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Usage(words) => Self::Usage(words),
            Refusal::Declined(words) => Self::Declined(words),
            Refusal::Store(words) => Self::Store(StoreError::Unwritable(words)),
        }
    }
}
