//! How a command ends badly, and with which exit code (design, section 2).

use crate::config::load::diagnostics::Problems;
use crate::daemon::DaemonError;
use crate::store::contract::StoreError;

/// Some failed, or still wait.
pub const UNFINISHED: u8 = 1;

/// The service refused us or could not be reached in time.
pub const SERVICE_OUT: u8 = 3;

/// A bug of ours.
pub const BUG: u8 = 70;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Config(#[from] Problems),
    #[error("{0}")]
    Usage(String),
    /// The same, in more than one line: what others wrote in it is escaped already.
    #[error("{0}")]
    Report(String),
    /// What was asked for makes no sense as things stand.
    #[error("{0}")]
    Declined(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Service(String),
    /// Standard output, a file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl CommandError {
    /// 2 usage or configuration · 3 the service · 4 the store · 1 everything else of the world.
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
