//! The machine: where a job may rest, and the one function that makes a stage out of a stage.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Output, Stamp};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::missing_enrichment::MissingPart;
use crate::domain::names::{Hash, JobId, Timestamp, TranscriptionId, UploadId};
use crate::domain::request_record::RequestRecord;
use crate::domain::sent_audio::SentAudio;
use crate::domain::token::{PurchaseKey, Token};
use crate::domain::track_selection::ChannelSelection;
use serde::{Deserialize, Serialize};

/// Where a job rests, and what is known to be true of it there. Each variant holds exactly what the
/// rest of the way needs; ids, not URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Seen; may still grow.
    Found,
    /// Unchanged for the quiet time.
    Settled,
    /// Known to be worth sending, under parameters that were rendered and checked.
    Probed {
        /// The rendered parameters, kept as a file under this hash.
        params: Hash,
        /// Known already where another job may have the same content.
        content: Option<Hash>,
    },
    /// The service has the audio.
    Uploaded {
        /// What would be bought.
        order: PurchaseKey,
        /// What is known of the audio.
        audio: AudioAmount,
        /// Where the service has the audio from.
        upload: AudioAt,
    },
    /// The intent: a create may have left. Whoever finds a job here does not know whether money was
    /// spent, and asks the list.
    Submitting {
        /// What would be bought.
        order: PurchaseKey,
        /// What is known of the audio.
        audio: AudioAmount,
        /// Where the service has the audio from.
        upload: AudioAt,
        /// When and as whom.
        intent: Intent,
    },
    /// The service has accepted it.
    Submitted {
        order: PurchaseKey,
        /// The service's id of it.
        transcription: TranscriptionId,
    },
    /// The result is kept here.
    Fetched {
        order: PurchaseKey,
        /// Under which id the result is kept.
        transcription: TranscriptionId,
        audio: AudioAmount,
    },
    /// Another job is buying the same; its result will be shared.
    Following {
        /// What is being bought.
        order: PurchaseKey,
        owner: JobId,
    },
    /// The outputs lie beside the source. An end.
    Written {
        order: PurchaseKey,
        /// Under which id the result is kept.
        transcription: TranscriptionId,
        audio: AudioAmount,
    },
    /// Nothing to be done. An end, until the file changes.
    Skipped { why: Skip },
    /// Given up. An end, until a person revives it or the file changes.
    Failed {
        /// The stage it failed at, which may know of money spent.
        from: Box<Stage>,
        fault: Fault,
    },
    /// Given up by a person. An end, until a person revives it or the file becomes another.
    Cancelled {
        /// The stage it was cancelled at, which may know of money spent.
        from: Box<Stage>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AudioAmount {
    /// Milliseconds; 0 where nobody said.
    pub millis: u64,
    /// Counted; 0 where nobody said.
    pub channels: u32,
    /// Milliseconds that the service bills; `None` where it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed: Option<u64>,
}

impl AudioAmount {
    /// What is put by for it: the duration of every channel, in milliseconds. `None` where nobody knows.
    pub fn reservation_millis(&self) -> Option<u64> {
        let amount = self.millis.saturating_mul(u64::from(self.channels));
        (amount > 0).then_some(amount)
    }

    /// Where only these of its channels are sent; `None`: all.
    pub fn with_only(self, channels: Option<&ChannelSelection>) -> Self {
        let sent = channels.map_or(u32::MAX, ChannelSelection::count);
        Self { channels: self.channels.min(sent), ..self }
    }
}

/// Where the service has the audio from. Stored as an upload always was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AudioAt {
    Upload(UploadedAudio),
    /// It lies elsewhere, and the service fetches it. Its address is the job's to tell when it is created: it
    /// may hold a signature that does not last.
    Remote {
        /// When that was settled.
        remote_since: Timestamp,
    },
}

impl AudioAt {
    /// Whether it was uploaded.
    pub fn is_upload(&self) -> bool {
        matches!(self, Self::Upload(_))
    }
}

/// Audio at the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadedAudio {
    /// How a create names it.
    pub id: UploadId,
    /// When it came there: a service drops what nobody uses.
    pub at: Timestamp,
    /// Where that is, as in [`Intent::origin`]; `None`: an older release did not write it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// What is written down, durably, before a create leaves (design, section 5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// What the transcription will carry.
    pub token: Token,
    /// Where it was sent: scheme, host and port, or the embedded service's store.
    pub origin: String,
    /// Under which key, as a hash that does not tell the key.
    pub key: String,
    /// The service's own clock as last heard before.
    pub service_date: Option<Timestamp>,
    pub sent_at: Timestamp,
}

/// Why nothing is done about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// Zero bytes.
    Empty,
    /// It was taken away before it was sent.
    Vanished,
    /// A folder, pipe, socket or device now stands where the file was.
    NotAFile,
    /// A subtitle by someone else lies beside it (`existing`).
    Subtitled,
    /// An output that scribed itself has written.
    OurOutput,
    /// Its container lists no sound track (looked for only where the track is taken out).
    NoSound,
    /// Most of it is not there, and did not come within `hold`.
    Holes,
    /// A line of a `.scribedignore` takes it out.
    Ignored,
    /// The row that named it was taken out of its list before its file came.
    Unlisted,
    /// A person had the job of a file that is gone forgotten. The row stays: it knows what was bought.
    Forgotten,
}

impl Skip {
    /// Whether it ends when a scan takes a file there, just as it was before.
    pub fn ends_when_file_found(self) -> bool {
        matches!(self, Self::Vanished | Self::NotAFile | Self::Ignored | Self::Forgotten)
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Empty => "the file is empty (0 bytes)",
            Self::Vanished => "the file was removed before it was sent",
            Self::NotAFile => "the path is not a regular file",
            Self::Subtitled => {
                "subtitles that scribed did not write already exist; to transcribe anyway, set existing = \
                 \"transcribe\" for the source"
            }
            Self::OurOutput => "the file is an output that scribed wrote",
            Self::Ignored => {
                "a line of a .scribedignore excludes the file (`scribed explain` shows it); the job continues \
                 when that line is removed"
            }
            Self::Unlisted => {
                "its row was removed from the manifest before the file appeared; the job continues when a row \
                 names the file again"
            }
            Self::Forgotten => {
                "a person removed the job (`scribed forget`); its purchases stay on record, and the job continues \
                 when the file is back"
            }
            Self::NoSound => "the file has no audio track: nothing to transcribe",
            Self::Holes => {
                "most of the file are holes (it is sparse, or a copy that was never completed): nothing to \
                 transcribe"
            }
        }
    }
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEvent {
    /// The file is not as it was (back door: before the create, or long after the end).
    Grew {
        /// As it is now.
        stamp: Stamp,
    },
    /// It was quiet long enough.
    Settled,
    /// Its parameters are rendered.
    Probed {
        params: Hash,
        /// The content's, where it was taken early.
        content: Option<Hash>,
        /// What else it is made with; `None`: as it was before.
        making: Option<Box<RequestRecord>>,
    },
    /// What is said of it has changed since (back door: before the first create).
    Remade {
        /// The hash of its parameters now.
        params: Hash,
        /// What else it is made with now.
        making: Box<RequestRecord>,
        /// Whether other sound of it is to be sent: then the upload is of no use.
        is_other_sound: bool,
    },
    /// The service has the audio.
    Uploaded {
        /// What would be bought.
        order: PurchaseKey,
        /// What is known of it.
        audio: AudioAmount,
        /// It, at the service, or where the service fetches it.
        upload: AudioAt,
        /// What was sent, where that was not simply the file.
        sent: Option<SentAudio>,
    },
    /// The upload can no longer be trusted to be there (back door: before the create).
    UploadLost,
    /// The create is about to leave.
    Intended {
        /// What is written down of it.
        intent: Intent,
    },
    /// The create was answered with an id.
    Created {
        transcription: TranscriptionId,
    },
    /// The create was definitely not accepted: refused, never sent, or absent from the list.
    NotAccepted,
    /// A transcription of this order was found at the service.
    Adopted {
        order: PurchaseKey,
        transcription: TranscriptionId,
        /// The round it was bought in.
        round: u32,
        /// Where it is, as in [`Intent::origin`]; `None` where nobody knows.
        origin: Option<String>,
    },
    /// Another job is buying the same.
    Followed {
        order: PurchaseKey,
        owner: JobId,
    },
    /// The one that was followed bought nothing: this job buys.
    TookOver,
    /// The result is kept.
    Fetched {
        audio: AudioAmount,
    },
    /// The kept result is not there any more, or damaged (back door): it is read again.
    ResultLost,
    /// The transcription died; a new round begins.
    Anew,
    /// The outputs are in place.
    Written {
        /// Their names and hashes.
        outputs: Vec<Output>,
        /// The language that was heard most, where that is known.
        language: Option<String>,
        /// What was requested and is not in the result.
        missing: Vec<MissingPart>,
        /// What of the result could not be read, in words.
        unread: Option<String>,
    },
    /// Nothing to be done.
    Skipped {
        why: Skip,
    },
    Failed {
        fault: Fault,
    },
    /// A person's order to go on with what has failed or was cancelled, or to read the kept answer of what is written
    /// once more (back door).
    Revived,
    /// A person's order to buy again what may have been bought already (back door).
    PaidAgain,
    /// The row that orders it was edited: a person's order for another transcription, or for the same in
    /// another place (back door).
    Reordered {
        /// As it is now.
        row: Box<ManifestRow>,
    },
    /// A person's order to make it anew, with what is said of it now, in a new round (back door).
    Fresh,
    /// A person's order to give it up.
    Cancelled,
    /// A person's order that a job which has ended is shown and counted no more.
    Forgotten,
    /// Outputs that were missing are about to be written again (back door): their names and hashes, with those of the
    /// others.
    Restored {
        /// All of the job.
        outputs: Vec<Output>,
    },
}

/// A stage does not know an event: a bug, never a user's doing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("internal error: a job at stage {stage:?} cannot take the event {event}")]
pub struct IllegalTransition {
    pub stage: StageKind,
    /// What it was told.
    pub event: &'static str,
}

impl Stage {
    /// The latest moment that it knows of.
    pub fn latest_moment(&self) -> Option<Timestamp> {
        let of_upload = |upload: &AudioAt| match upload {
            AudioAt::Upload(upload) => upload.at,
            AudioAt::Remote { remote_since } => *remote_since,
        };
        match self {
            Self::Uploaded { upload, .. } | Self::Submitting { upload, .. } => Some(of_upload(upload)),
            Self::Failed { fault, .. } => Some(fault.at),
            _ => None,
        }
    }

    /// The same stage with no moment of it later than `now`: one that a clock wrote which was ahead.
    #[must_use]
    pub fn clamp_timestamps(mut self, now: Timestamp) -> Self {
        let of_upload = |upload: &mut AudioAt| match upload {
            AudioAt::Upload(upload) => upload.at = upload.at.min(now),
            AudioAt::Remote { remote_since } => *remote_since = (*remote_since).min(now),
        };
        match &mut self {
            Self::Uploaded { upload, .. } | Self::Submitting { upload, .. } => of_upload(upload),
            Self::Failed { fault, .. } => fault.at = fault.at.min(now),
            _ => {}
        }
        self
    }

    /// The stage after `event`. Pure and total; nothing else makes a stage out of a stage.
    ///
    /// # Errors
    /// [`IllegalTransition`] for every pair that is not an arrow of the machine.
    pub fn apply(self, event: JobEvent) -> Result<Self, IllegalTransition> {
        use JobEvent as E;
        use Stage as S;
        let illegal = IllegalTransition { stage: self.kind(), event: event.name() };
        Ok(match (self, event) {
            (S::Found, E::Settled) => S::Settled,
            (S::Settled, E::Probed { params, content, .. }) => S::Probed { params, content },
            (S::Probed { content, .. }, E::Remade { params, .. }) => S::Probed { params, content },
            (S::Uploaded { order, .. }, E::Remade { params, is_other_sound: true, .. }) => {
                S::probed(PurchaseKey { params, ..order })
            }
            (S::Uploaded { order, audio, upload }, E::Remade { params, .. }) => {
                S::Uploaded { order: PurchaseKey { params, ..order }, audio, upload }
            }
            (S::Probed { .. }, E::Uploaded { order, audio, upload, .. }) => S::Uploaded { order, audio, upload },
            (
                S::Uploaded { order, audio, upload } | S::Submitting { order, audio, upload, .. },
                E::Intended { intent },
            ) => S::Submitting { order, audio, upload, intent },
            (S::Submitting { order, .. }, E::Created { transcription }) => S::Submitted { order, transcription },
            (S::Submitted { order, transcription }, E::Fetched { audio }) => S::Fetched { order, transcription, audio },
            (S::Fetched { order, transcription, audio }, E::Written { .. }) => {
                S::Written { order, transcription, audio }
            }

            // Twins and what was found again.
            (S::Probed { .. } | S::Uploaded { .. } | S::Following { .. }, E::Followed { order, owner }) => {
                S::Following { order, owner }
            }
            (S::Following { order, .. }, E::TookOver) => S::probed(order),
            (
                S::Probed { .. }
                | S::Uploaded { .. }
                | S::Submitting { .. }
                | S::Submitted { .. }
                | S::Following { .. },
                E::Adopted { order, transcription, .. },
            ) => S::Submitted { order, transcription },

            // Back doors.
            (S::Submitting { order, audio, upload, .. }, E::NotAccepted) => S::Uploaded { order, audio, upload },
            (S::Uploaded { order, .. }, E::UploadLost) => S::probed(order),
            (S::Submitted { order, .. }, E::Anew) => S::probed(order),
            (S::Fetched { order, transcription, .. }, E::ResultLost) => S::Submitted { order, transcription },
            (before, E::Grew { .. } | E::Reordered { .. }) if before.may_start_over() => S::Found,
            (S::Failed { from, fault }, E::Revived) => from.revived(&fault),
            (S::Cancelled { from }, E::Revived) => *from,
            (S::Written { order, transcription, audio }, E::Revived) => S::Fetched { order, transcription, audio },
            (S::Submitting { order, .. } | S::Submitted { order, .. }, E::PaidAgain) => S::probed(order),
            (before, E::Fresh) if before.may_be_made_anew() => S::Settled,
            (S::Failed { from, .. }, E::PaidAgain) if from.kind() == StageKind::Submitted => from.bought_anew(),

            // Ends.
            (S::Found | S::Settled | S::Probed { .. } | S::Uploaded { .. }, E::Skipped { why }) => S::Skipped { why },
            // What another job has bought is not written beside a subtitle by someone else.
            (S::Fetched { .. }, E::Skipped { why: Skip::Subtitled }) => S::Skipped { why: Skip::Subtitled },
            (from, E::Failed { fault }) if !from.is_end() && from.kind() != StageKind::Submitting => {
                S::Failed { from: Box::new(from), fault }
            }
            // Past the intent it is not known what would be given up.
            (from, E::Cancelled) if !from.is_end() && from.kind() != StageKind::Submitting => {
                S::Cancelled { from: Box::new(from) }
            }
            (ended, E::Forgotten) if ended.is_end() && !ended.is_forgotten() => S::Skipped { why: Skip::Forgotten },
            (S::Written { order, transcription, audio }, E::Restored { .. }) => {
                S::Written { order, transcription, audio }
            }
            _ => return Err(illegal),
        })
    }

    /// Whether a person had it forgotten.
    pub fn is_forgotten(&self) -> bool {
        matches!(self, Self::Skipped { why: Skip::Forgotten })
    }

    fn probed(order: PurchaseKey) -> Self {
        Self::Probed { params: order.params, content: Some(order.content) }
    }

    /// A changed file takes a job back to the start before its create, and after its end: never in
    /// between, where money is or may be spent for what it was.
    fn may_start_over(&self) -> bool {
        match self {
            Self::Found
            | Self::Settled
            | Self::Probed { .. }
            | Self::Uploaded { .. }
            | Self::Written { .. }
            | Self::Skipped { .. }
            | Self::Cancelled { .. } => true,
            Self::Failed { from, .. } => !matches!(from.kind(), StageKind::Fetched),
            Self::Submitting { .. } | Self::Submitted { .. } | Self::Fetched { .. } | Self::Following { .. } => false,
        }
    }

    /// Everything that was rendered, but what is being fetched or written: that is paid for, and comes. Where
    /// something may be paid for twice, whoever gives the order asks the person first.
    fn may_be_made_anew(&self) -> bool {
        !matches!(self, Self::Found | Self::Settled | Self::Fetched { .. } | Self::Skipped { .. })
    }

    /// What was bought is bought again only if it is worth nothing; else it is asked for again. What is sent of a
    /// file that did not have it is said anew.
    fn revived(self, fault: &Fault) -> Self {
        match self {
            Self::Probed { .. } if fault.kind == FaultKind::NotInIt => Self::Settled,
            Self::Submitted { order, .. } if is_worthless(fault) => Self::probed(order),
            other => other,
        }
    }

    /// What was bought is bought again, whatever it is worth.
    fn bought_anew(self) -> Self {
        match self {
            Self::Submitted { order, .. } => Self::probed(order),
            other => other,
        }
    }

    /// Whether reviving this failed job buys a new round: its transcription is dead or gone.
    pub fn retry_buys(&self) -> bool {
        matches!(self, Self::Failed { from, fault } if from.kind() == StageKind::Submitted && is_worthless(fault))
    }

    /// Nothing more happens by itself.
    pub fn is_end(&self) -> bool {
        self.kind().is_end()
    }

    /// What it buys or has bought, from the moment that is settled.
    pub fn purchase_key(&self) -> Option<&PurchaseKey> {
        match self {
            Self::Uploaded { order, .. }
            | Self::Submitting { order, .. }
            | Self::Submitted { order, .. }
            | Self::Fetched { order, .. }
            | Self::Following { order, .. }
            | Self::Written { order, .. } => Some(order),
            Self::Failed { from, .. } | Self::Cancelled { from } => from.purchase_key(),
            Self::Found | Self::Settled | Self::Probed { .. } | Self::Skipped { .. } => None,
        }
    }

    /// The transcription at the service, once there is one.
    pub fn transcription(&self) -> Option<&TranscriptionId> {
        match self {
            Self::Submitted { transcription, .. }
            | Self::Fetched { transcription, .. }
            | Self::Written { transcription, .. } => Some(transcription),
            Self::Failed { from, .. } | Self::Cancelled { from } => from.transcription(),
            _ => None,
        }
    }

    /// How much audio, once somebody said.
    pub fn audio(&self) -> Option<AudioAmount> {
        match self {
            Self::Uploaded { audio, .. }
            | Self::Submitting { audio, .. }
            | Self::Fetched { audio, .. }
            | Self::Written { audio, .. } => Some(*audio),
            _ => None,
        }
    }

    /// Its name without what it holds.
    pub fn kind(&self) -> StageKind {
        match self {
            Self::Found => StageKind::Found,
            Self::Settled => StageKind::Settled,
            Self::Probed { .. } => StageKind::Probed,
            Self::Uploaded { .. } => StageKind::Uploaded,
            Self::Submitting { .. } => StageKind::Submitting,
            Self::Submitted { .. } => StageKind::Submitted,
            Self::Fetched { .. } => StageKind::Fetched,
            Self::Following { .. } => StageKind::Following,
            Self::Written { .. } => StageKind::Written,
            Self::Skipped { .. } => StageKind::Skipped,
            Self::Failed { .. } => StageKind::Failed,
            Self::Cancelled { .. } => StageKind::Cancelled,
        }
    }
}

fn is_worthless(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Dead { .. } | FaultKind::Gone)
}

/// What somebody who follows a job should do, by where that job is (design, section 5, "Twins").
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaderState {
    /// Nothing is decided yet.
    Wait,
    /// Share what was bought.
    Share(TranscriptionId),
    /// It follows somebody itself.
    Follow(JobId),
    /// It bought nothing, or what it bought is dead: buy.
    TakeOver,
    /// What was wrong with its content or parameters is wrong with ours.
    Inherit(Fault),
}

impl Stage {
    /// What a follower of a job at this stage, for this order, should do.
    pub fn leader_state(&self, order: &PurchaseKey) -> LeaderState {
        if self.purchase_key().is_some_and(|own| own != order) {
            return LeaderState::TakeOver; // its file has become another
        }
        match self {
            // What is said of it has changed: it will buy another.
            Self::Probed { params, .. } if *params != order.params => LeaderState::TakeOver,
            Self::Fetched { transcription, .. } | Self::Written { transcription, .. } => {
                LeaderState::Share(transcription.clone())
            }
            Self::Following { owner, .. } => LeaderState::Follow(*owner),
            Self::Found | Self::Settled | Self::Skipped { .. } => LeaderState::TakeOver,
            Self::Failed { from, fault } => match fault.kind {
                FaultKind::Dead { code } if code >= 500 => LeaderState::TakeOver,
                FaultKind::Refused { .. } | FaultKind::Template => LeaderState::Inherit(fault.clone()),
                // Something was bought, and nobody knows that it is worth nothing.
                _ if from.transcription().is_some() => LeaderState::Inherit(fault.clone()),
                _ => LeaderState::TakeOver,
            },
            // What it had bought is handed on; whether it is worth anything, the follower finds out.
            Self::Cancelled { from } => match (from.transcription(), &**from) {
                (Some(transcription), _) => LeaderState::Share(transcription.clone()),
                (None, Self::Following { owner, .. }) => LeaderState::Follow(*owner),
                (None, _) => LeaderState::TakeOver,
            },
            Self::Probed { .. } | Self::Uploaded { .. } | Self::Submitting { .. } | Self::Submitted { .. } => {
                LeaderState::Wait
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    Found,
    Settled,
    Probed,
    Uploaded,
    Submitting,
    Submitted,
    Fetched,
    Following,
    Written,
    Skipped,
    Failed,
    Cancelled,
}

impl StageKind {
    /// In the order of the way.
    pub const ALL: [Self; 12] = [
        Self::Found,
        Self::Settled,
        Self::Probed,
        Self::Uploaded,
        Self::Submitting,
        Self::Submitted,
        Self::Fetched,
        Self::Following,
        Self::Written,
        Self::Skipped,
        Self::Failed,
        Self::Cancelled,
    ];

    pub fn is_end(self) -> bool {
        matches!(self, Self::Written | Self::Skipped | Self::Failed | Self::Cancelled)
    }

    /// As in `--json` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Settled => "settled",
            Self::Probed => "probed",
            Self::Uploaded => "uploaded",
            Self::Submitting => "submitting",
            Self::Submitted => "submitted",
            Self::Fetched => "fetched",
            Self::Following => "following",
            Self::Written => "written",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl JobEvent {
    /// Its name without what it holds.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Grew { .. } => "grew",
            Self::Settled => "settled",
            Self::Probed { .. } => "probed",
            Self::Remade { .. } => "remade",
            Self::Uploaded { .. } => "uploaded",
            Self::UploadLost => "upload_lost",
            Self::Intended { .. } => "intended",
            Self::Created { .. } => "created",
            Self::NotAccepted => "not_accepted",
            Self::Adopted { .. } => "adopted",
            Self::Followed { .. } => "followed",
            Self::TookOver => "took_over",
            Self::Fetched { .. } => "fetched",
            Self::ResultLost => "result_lost",
            Self::Anew => "anew",
            Self::Written { .. } => "written",
            Self::Skipped { .. } => "skipped",
            Self::Failed { .. } => "failed",
            Self::Revived => "revived",
            Self::PaidAgain => "paid_again",
            Self::Reordered { .. } => "reordered",
            Self::Fresh => "fresh",
            Self::Cancelled => "cancelled",
            Self::Forgotten => "forgotten",
            Self::Restored { .. } => "restored",
        }
    }
}
