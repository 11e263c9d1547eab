//! Faults: what went wrong with a job, as data that is stored with the job and shown as written.

use crate::domain::names::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest text of a fault, in bytes.
pub const LONGEST_WORDS: usize = 1_000;

/// The longest `Retry-After` that is believed; a longer one is cut to this.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// What went wrong with a job, or what it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind, which decides what happens next.
    pub kind: FaultKind,
    /// A sentence for the person who must act: what happened, to what, in the service's words if it sent any.
    pub words: String,
    /// The service's request id, for its support, if it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// When the fault occurred.
    pub at: Timestamp,
    /// For [`FaultKind::Budget`]: milliseconds of billed audio that have to be left; `None` if the amount is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub need: Option<u64>,
    /// For [`FaultKind::Dead`]: the record has no audio length and no result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unheard: bool,
    /// For [`FaultKind::Budget`]: waiting does not help. Somebody has to raise the budget or state how long the
    /// recording is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
}

/// The kinds of fault, by what has to happen next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The service refused this file or these parameters (400, 404, 413, 415, 422 …).
    Refused { status: u16 },
    /// The service refused the key, or demands payment (401, 402, 403).
    Barred { status: u16 },
    /// The service asked for fewer requests (429).
    Throttled {
        /// Milliseconds from its `Retry-After`, if it sent a usable one.
        retry_after_ms: Option<u64>,
    },
    /// The service could not be reached at all: nothing was sent.
    Unreachable,
    /// The service's answer was invalid, late or incomplete.
    Broken,
    /// A create may have been accepted, but its answer never came. Nothing is bought until a list scan has ended.
    Unknown,
    /// The transcription ended in `error` at the service.
    Dead {
        /// The interface's `error_code`; 500 if there was none.
        code: u16,
    },
    /// The service no longer has an accepted transcription.
    Gone,
    /// The transcription has not ended after `give_up`.
    Stuck,
    /// The file cannot be read at the moment.
    Unreadable,
    /// The template does not render, or renders to a request that the interface does not allow.
    Template,
    /// The recording's sidecar is invalid: somebody has to correct it.
    Sidecar,
    /// An output cannot be written at the moment: the disk is full, or its folder is read-only or missing.
    Unwritable,
    /// The source's folder is missing: it is taken for an absent mount, not for a deletion.
    FolderAway,
    /// The file looks unfinished, or changed after it was written: the job continues only when the file has not changed
    /// for `hold`.
    Held,
    /// The file that a row of a manifest names does not exist yet.
    Awaited,
    /// `jobs.toml` does not allow the file or the output folder that the row names: somebody has to change one of the
    /// two.
    NotAllowed,
    /// The file does not match its checksum: nothing is bought for it.
    Altered,
    /// The spool has no room for the job's sound track at the moment: other jobs use it, and will free it.
    NoRoom,
    /// This process or machine lacks file descriptors, memory or processes at the moment.
    Shortage,
    /// The track or the channels to be sent are not in the file, or cannot be extracted.
    NotInIt,
    /// The job does not fit into what is left of a budget.
    Budget,
    /// The window of the job's source is closed. This kind is shown and not stored, because the clock decides it.
    Window,
    /// A person has to decide; the text says what.
    Asks,
    /// The answer for an accepted transcription may be that of another recording. It is kept and not written until a
    /// person decides.
    Mismatch,
    /// A state that should be impossible.
    Bug,
}

impl Fault {
    /// Whether the service refused a recording because it is too long or too large, as far as its answer says.
    pub fn is_too_long(&self) -> bool {
        const WORDS: [&str; 8] = [
            "too long",
            "too large",
            "too big",
            "longer than",
            "larger than",
            "maximum duration",
            "duration limit",
            "maximum file size",
        ];
        const OF_WHAT: [&str; 6] = ["audio", "recording", "file", "media", "video", "duration"];
        let says_so = || {
            let words = self.words.to_lowercase();
            [WORDS.as_slice(), &OF_WHAT].iter().all(|list| list.iter().any(|one| words.contains(one)))
        };
        match self.kind {
            FaultKind::Refused { status: 413 } => true,
            FaultKind::Refused { status: code } | FaultKind::Dead { code } => (400..500).contains(&code) && says_so(),
            _ => false,
        }
    }
}

impl FaultKind {
    /// Whether the fault may come of a recording, or of its folder, that is not there any more. Before such a fault
    /// counts, scribed looks whether the recording is there.
    pub fn may_come_of_missing_file(&self) -> bool {
        match self {
            Self::Unreadable | Self::Unwritable | Self::Sidecar | Self::Altered | Self::NotInIt => true,
            Self::Refused { .. }
            | Self::Barred { .. }
            | Self::Throttled { .. }
            | Self::Unreachable
            | Self::Broken
            | Self::Unknown
            | Self::Dead { .. }
            | Self::Gone
            | Self::Stuck
            | Self::Template
            | Self::FolderAway
            | Self::Held
            | Self::Awaited
            | Self::NotAllowed
            | Self::NoRoom
            | Self::Shortage
            | Self::Budget
            | Self::Window
            | Self::Asks
            | Self::Mismatch
            | Self::Bug => false,
        }
    }

    /// Returns the name in `--json` and on the command line, without the kind's fields.
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
            Self::Shortage => "shortage",
            Self::NotInIt => "not_in_it",
            Self::Budget => "budget",
            Self::Window => "window",
            Self::Asks => "asks",
            Self::Mismatch => "mismatch",
            Self::Bug => "bug",
        }
    }

    pub const NAMES: [&str; 26] = [
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
        "shortage",
        "not_in_it",
        "budget",
        "window",
        "asks",
        "mismatch",
        "bug",
    ];
}

impl Fault {
    /// Makes a fault without a request id. Text longer than [`LONGEST_WORDS`] is cut: a service may send any amount,
    /// and a record must stay small.
    pub fn new(kind: FaultKind, words: impl Into<String>, at: Timestamp) -> Self {
        let mut words = words.into();
        if words.len() > LONGEST_WORDS {
            words.truncate(words.floor_char_boundary(LONGEST_WORDS));
            words.push('…');
        }
        Self { kind, words, request_id: None, at, need: None, unheard: false, asks: false }
    }

    /// Returns what caused the fault.
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
            | FaultKind::Shortage
            | FaultKind::Budget
            | FaultKind::Window => Blame::World,
            FaultKind::Asks | FaultKind::Mismatch | FaultKind::Sidecar | FaultKind::NotAllowed => Blame::Person,
        }
    }

    /// Returns how long the service asked to wait, at most [`LONGEST_RETRY_AFTER`].
    pub fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            FaultKind::Throttled { retry_after_ms } => {
                retry_after_ms.map(|millis| Duration::from_millis(millis).min(LONGEST_RETRY_AFTER))
            }
            _ => None,
        }
    }
}

/// What caused a fault, which decides whether it uses an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The file or its parameters: another attempt does not help.
    Job,
    /// The file or its transcription, but another attempt may help: it uses one.
    Passing,
    /// The service: its circuit breaker opens, and no attempt is used.
    Service,
    /// The key or the account: nothing is sent to the service.
    Key,
    /// The environment, such as a disk or a slow transcription: the job waits without end and shows why.
    World,
    /// A person has to act.
    Person,
}
