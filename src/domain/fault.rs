//! What went wrong, as data: kept with the job, shown as written.

use crate::domain::names::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest words of a fault, in bytes.
pub const LONGEST_WORDS: usize = 1_000;

/// A service that asks for more than this is taken to be wrong (an absurd `Retry-After`).
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// What went wrong with a job, or what it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What kind it is; decides what is done about it.
    pub kind: FaultKind,
    /// For the person who must act: what happened, to what, in the service's words where it said any.
    pub words: String,
    /// The service's number for its support, where it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// When it was met.
    pub at: Timestamp,
    /// Of [`FaultKind::Budget`]: milliseconds of billed audio that have to be left; `None` where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need: Option<u64>,
    /// Of [`FaultKind::Dead`]: the record has no length of any audio, and no result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unheard: bool,
    /// Of [`FaultKind::Budget`]: no time brings it, somebody has to raise the budget or to say how long the recording is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
}

/// The kinds of fault, by what has to happen next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The service refused this file or these parameters (400, 404, 413, 415, 422 …).
    Refused { status: u16 },
    /// The service refused our key, or wants money (401, 402, 403).
    Barred { status: u16 },
    /// The service asked us to be slower (429).
    Throttled {
        /// Milliseconds from its `Retry-After`, where it sent one that makes sense.
        retry_after_ms: Option<u64>,
    },
    /// The service could not be reached at all: nothing was sent.
    Unreachable,
    /// The service answered wrongly, too late or not to the end.
    Broken,
    /// A create may have been accepted; its answer never came. Nothing is bought until a list has
    /// been walked.
    Unknown,
    /// The transcription ended in `error` at the service.
    Dead {
        /// The interface's `error_code`, 500 where it gave none.
        code: u16,
    },
    /// An accepted transcription is no longer there.
    Gone,
    /// Still not ended after `give_up`.
    Stuck,
    /// The file cannot be read now.
    Unreadable,
    /// The template does not render, or not to what the interface takes.
    Template,
    /// What is said beside the recording cannot be understood: somebody has to mend it.
    Sidecar,
    /// An output cannot be written now: disk full, folder read-only or away.
    Unwritable,
    /// The source's folder is not there: a mount that is away, not a deletion.
    FolderAway,
    /// The file looks unfinished, or changed after it was written: it goes on only when it has been quiet
    /// for `hold`.
    Held,
    /// The file that a row of a manifest names is not there yet.
    Awaited,
    /// The file that its row names, or the folder of its outputs, is not one that jobs.toml allows: somebody has to
    /// change one of the two.
    NotAllowed,
    /// The file is not what its checksum says: nothing is bought for it.
    Altered,
    /// The spool has no room for its sound track now: others of ours have it, and give it back.
    NoRoom,
    /// The track or the channels that are to be sent of the file are not in it, or cannot be taken out of it.
    NotInIt,
    /// It does not fit into what is left of a budget.
    Budget,
    /// Its source's window is shut. Told, and not kept: the clock knows it.
    Window,
    /// A person has to decide; the words say what.
    Asks,
    /// A state that scribed should never be in.
    Bug,
}

impl FaultKind {
    /// As in `--json` and on the command line, without what it holds.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "refused",
            Self::Barred { .. } => "barred",
            Self::Throttled { .. } => "throttled",
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
            Self::Unknown => "unknown",
            Self::Dead { .. } => "dead",
            Self::Gone => "gone",
            Self::Stuck => "stuck",
            Self::Unreadable => "unreadable",
            Self::Template => "template",
            Self::Sidecar => "sidecar",
            Self::Unwritable => "unwritable",
            Self::FolderAway => "folder_away",
            Self::Held => "held",
            Self::Awaited => "awaited",
            Self::NotAllowed => "not_allowed",
            Self::Altered => "altered",
            Self::NoRoom => "no_room",
            Self::NotInIt => "not_in_it",
            Self::Budget => "budget",
            Self::Window => "window",
            Self::Asks => "asks",
            Self::Bug => "bug",
        }
    }

    pub const NAMES: [&str; 24] = [
        "refused",
        "barred",
        "throttled",
        "unreachable",
        "broken",
        "unknown",
        "dead",
        "gone",
        "stuck",
        "unreadable",
        "template",
        "sidecar",
        "unwritable",
        "folder_away",
        "held",
        "awaited",
        "not_allowed",
        "altered",
        "no_room",
        "not_in_it",
        "budget",
        "window",
        "asks",
        "bug",
    ];
}

impl Fault {
    /// A fault without a number of the service's. Words longer than [`LONGEST_WORDS`] are cut: a
    /// service may say anything, and a record must stay small.
    pub fn new(kind: FaultKind, words: impl Into<String>, at: Timestamp) -> Self {
        let mut words = words.into();
        if words.len() > LONGEST_WORDS {
            words.truncate(words.floor_char_boundary(LONGEST_WORDS));
            words.push('…');
        }
        Self { kind, words, request_id: None, at, need: None, unheard: false, asks: false }
    }

    /// Who is to blame for it.
    pub fn blame(&self) -> Blame {
        match self.kind {
            FaultKind::Refused { .. }
            | FaultKind::Template
            | FaultKind::Altered
            | FaultKind::NotInIt
            | FaultKind::Gone
            | FaultKind::Bug => Blame::Job,
            FaultKind::Dead { code } if code < 500 => Blame::Job,
            FaultKind::Dead { .. } | FaultKind::Unreadable => Blame::Passing,
            FaultKind::Barred { .. } => Blame::Key,
            FaultKind::Throttled { .. } | FaultKind::Unreachable | FaultKind::Broken | FaultKind::Unknown => {
                Blame::Service
            }
            FaultKind::Stuck
            | FaultKind::Unwritable
            | FaultKind::FolderAway
            | FaultKind::Held
            | FaultKind::Awaited
            | FaultKind::NoRoom
            | FaultKind::Budget
            | FaultKind::Window => Blame::World,
            FaultKind::Asks | FaultKind::Sidecar | FaultKind::NotAllowed => Blame::Person,
        }
    }

    /// How long the service asked us to wait, at most [`LONGEST_RETRY_AFTER`].
    pub fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            FaultKind::Throttled { retry_after_ms } => {
                retry_after_ms.map(|millis| Duration::from_millis(millis).min(LONGEST_RETRY_AFTER))
            }
            _ => None,
        }
    }
}

/// Who is to blame for a fault, and so whose attempts it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The file or its parameters: trying again is of no use.
    Job,
    /// The file or its transcription, but another try may help: uses an attempt.
    Passing,
    /// The service: the line stops, no attempt is used.
    Service,
    /// Our key or account: the whole service is held.
    Key,
    /// The disk, or a transcription that lasts: it waits and says so, without end.
    World,
    /// It waits for a person.
    Person,
}
