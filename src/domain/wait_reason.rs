//! What a job that has not ended waits for, and whether the wait ends without a person.

use serde::{Deserialize, Serialize};

/// What a job waits for; the groups of `waiting_for`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// For its file not to change for `settle`.
    Settle,
    /// For the service to transcribe it.
    Transcription,
    /// For a duplicate that is being transcribed.
    Duplicate,
    /// For its turn: other jobs come first.
    Turn,
    /// For a person's decision.
    Person,
    /// For a correction of its sidecar.
    Sidecar,
    /// For its file, which looks unfinished, not to change for `hold`.
    Hold,
    /// For the file that a row of a manifest names.
    MissingFile,
    /// For a setting in `jobs.toml` that allows what a row names.
    NotAllowed,
    /// For the next period of a budget.
    Budget,
    /// For a budget that is too small: somebody has to raise it, or to state how long the recording is.
    BudgetRaise,
    /// For the window of its source.
    Window,
    /// For a window that never opens again.
    WindowNever,
    /// For a list scan that shows whether a create was accepted.
    UnknownCreate,
    /// For a transcription that has not ended within `give_up`.
    Stuck,
    /// For an output folder that can be written.
    Disk,
    /// For room in the spool.
    Spool,
    /// For file descriptors, memory or processes of this machine.
    Machine,
    /// For the folder of its source.
    Folder,
    /// For its file to become readable.
    File,
    /// For a service that does not answer, answers wrongly, or asks for fewer requests.
    Service,
    /// For a service that refuses the key, the account, or one request after another.
    ServiceRefuses,
    /// For another attempt after a fault.
    Retry,
    /// For the end of a pause that ends by itself.
    Pause,
    /// For `scribed resume`.
    PauseWithoutEnd,
}

impl WaitReason {
    /// Returns the name in `waiting_for`, which never changes; some reasons share a name.
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
            Self::Machine => "machine",
            Self::Folder => "folder",
            Self::File => "file",
            Self::Service | Self::ServiceRefuses => "service",
            Self::Retry => "retry",
            Self::Pause | Self::PauseWithoutEnd => "pause",
        }
    }

    /// Returns what people read for a name of `waiting_for`. `is_worked_on`: whether a daemon or a pass works on the jobs.
    pub fn shown_name(name: &str, is_worked_on: bool) -> &str {
        match (name, is_worked_on) {
            ("turn", true) => "their turn, as other jobs come first",
            ("turn", false) => "the next pass of `scribed once`, or a daemon",
            ("twin", _) => "a duplicate that is being transcribed",
            ("missing file", _) => "their files, which do not exist",
            ("machine", _) => "file descriptors, memory or processes of this machine",
            _ => name,
        }
    }

    /// Whether time, other jobs or the next pass end the wait without a person.
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
            | Self::Machine
            | Self::Folder
            | Self::File
            | Self::Service
            | Self::ServiceRefuses
            | Self::Retry
            | Self::PauseWithoutEnd => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_explained_and_other_names_are_shown_as_they_are() {
        assert!(WaitReason::shown_name(WaitReason::Turn.name(), false).contains("`scribed once`"));
        assert!(WaitReason::shown_name(WaitReason::Turn.name(), true).contains("other jobs"));
        assert_eq!(WaitReason::shown_name(WaitReason::Budget.name(), false), "budget");
    }
}
