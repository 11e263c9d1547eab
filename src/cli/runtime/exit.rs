//! The errors of commands and their exit codes.

use crate::config::load::diagnostics::Problems;
use crate::daemon::DaemonError;
use crate::store::contract::StoreError;

/// The exit code if some jobs failed or still wait, or a check failed.
pub const UNFINISHED: u8 = 1;

/// The exit code if a service refused scribed or could not be reached in time.
pub const SERVICE_OUT: u8 = 3;

/// The exit code of a panic.
pub const BUG: u8 = 70;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Config(#[from] Problems),
    #[error("{0}")]
    Usage(String),
    /// As `Usage`, with several lines. Foreign text in it is already escaped.
    #[error("{0}")]
    Report(String),
    /// The request does not make sense in the present state.
    #[error("{0}")]
    Declined(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Service(String),
    /// An error of standard output or of a file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl CommandError {
    /// Returns 2 for usage or configuration, 3 for a service, 4 for the store, and 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Usage(_) | Self::Report(_) => 2,
            Self::Service(_) => SERVICE_OUT,
            Self::Store(_) => 4,
            Self::Io(_) | Self::Declined(_) => UNFINISHED,
        }
    }
}

impl From<DaemonError> for CommandError {
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Store(error) => Self::Store(error),
            DaemonError::Service(_) | DaemonError::Client(_) => Self::Service(error.to_string()),
            DaemonError::Callback { .. } | DaemonError::Tls(_) | DaemonError::Names(_) => {
                Self::Usage(error.to_string())
            }
            DaemonError::Io { .. } => Self::Store(StoreError::Unwritable(error.to_string())),
        }
    }
}
