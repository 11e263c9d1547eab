//! What a job that has not ended waits for, and whether that comes by itself.

use serde::{Deserialize, Serialize};

/// What a job waits for: the groups of `waiting_for`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// Its file has to be quiet for `settle`.
    Settle,
    /// The service transcribes it.
    Transcription,
    /// Another file with the same content is transcribed.
    Duplicate,
    /// Others come first.
    Turn,
    /// Somebody has to decide.
    Person,
    /// A settings file beside the recording cannot be understood.
    Sidecar,
    /// The file looks unfinished: it has to be quiet for `hold`.
    Hold,
    /// The file that a row of a manifest names is not there yet.
    MissingFile,
    /// A row names what jobs.toml does not allow.
    NotAllowed,
    /// More of a budget, which begins anew by itself.
    Budget,
    /// A budget that never holds it: somebody has to raise it, or to say how long the recording is.
    BudgetRaise,
    /// The window of its source.
    Window,
    /// A window that opens no more.
    WindowNever,
    /// The list of the service has to tell whether a create was accepted.
    UnknownCreate,
    /// The transcription did not end within `give_up`.
    Stuck,
    /// Its outputs cannot be written.
    Disk,
    /// Room in the spool.
    Spool,
    /// The folder of its source.
    Folder,
    /// Its file cannot be read now.
    File,
    /// The service does not answer, answers wrongly, or wants fewer requests.
    Service,
    /// The service refuses the key or the account, or one request after the other.
    ServiceRefuses,
    /// Another try after a fault.
    Retry,
    /// A pause ends by itself.
    Pause,
    /// A pause that only `scribed resume` ends.
    PauseWithoutEnd,
}

impl WaitReason {
    /// As `waiting_for` has always named it; some share a name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settle => "settle",
            Self::Transcription => "transcription",
            Self::Duplicate => "twin",
            Self::Turn => "turn",
            Self::Person => "person",
            Self::Sidecar => "sidecar",
            Self::Hold => "hold",
            Self::MissingFile => "missing file",
            Self::NotAllowed => "not allowed",
            Self::Budget | Self::BudgetRaise => "budget",
            Self::Window | Self::WindowNever => "window",
            Self::UnknownCreate => "unknown create",
            Self::Stuck => "stuck",
            Self::Disk => "disk",
            Self::Spool => "spool",
            Self::Folder => "folder",
            Self::File => "file",
            Self::Service | Self::ServiceRefuses => "service",
            Self::Retry => "retry",
            Self::Pause | Self::PauseWithoutEnd => "pause",
        }
    }

    /// Whether time, other jobs or the next pass bring it, without anybody's doing.
    pub fn resolves_itself(self) -> bool {
        match self {
            Self::Settle
            | Self::Transcription
            | Self::Duplicate
            | Self::Turn
            | Self::Hold
            | Self::MissingFile
            | Self::Budget
            | Self::Window
            | Self::Spool
            | Self::Pause => true,
            Self::Person
            | Self::Sidecar
            | Self::NotAllowed
            | Self::BudgetRaise
            | Self::WindowNever
            | Self::UnknownCreate
            | Self::Stuck
            | Self::Disk
            | Self::Folder
            | Self::File
            | Self::Service
            | Self::ServiceRefuses
            | Self::Retry
            | Self::PauseWithoutEnd => false,
        }
    }
}
