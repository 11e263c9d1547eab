//! The state machine of a job: its stages, and the one function that takes a job from one stage to the next.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Output, Stamp};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::missing_enrichment::{MissingPart, RequestedPart};
use crate::domain::names::{Hash, JobId, Timestamp, TranscriptionId, UploadId};
use crate::domain::output_text::{AcceptedResult, OutputChange, RenderedAs};
use crate::domain::request_record::RequestRecord;
use crate::domain::review::Review;
use crate::domain::sent_audio::SentAudio;
use crate::domain::split::{PartRange, Split};
use crate::domain::token::{PurchaseKey, Token};
use crate::domain::track_selection::ChannelSelection;
use serde::{Deserialize, Serialize};

/// The stage of a job, with what is known at it. Each variant holds exactly what the later stages need: ids, not URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The file was found and may still change.
    Found,
    /// The file has not changed for the settle time.
    Settled,
    /// The file is worth sending, and its parameters were rendered and checked.
    Probed {
        /// The hash of the rendered parameters, which are stored as a file under this hash.
        params: Hash,
        /// The hash of the content, if another job may have the same content.
        content: Option<Hash>,
    },
    /// The service has the audio, or knows its address.
    Uploaded {
        /// What would be bought.
        #[serde(rename = "order")]
        purchase_key: PurchaseKey,
        /// How much audio it is.
        audio: AudioAmount,
        /// Where the service has the audio from.
        upload: AudioAt,
    },
    /// A create may have been sent. Whether money was spent is not known until its answer comes or a list scan has
    /// ended.
    Submitting {
        /// What would be bought.
        #[serde(rename = "order")]
        purchase_key: PurchaseKey,
        /// How much audio it is.
        audio: AudioAmount,
        /// Where the service has the audio from.
        upload: AudioAt,
        /// What was recorded about the create before it was sent.
        intent: Intent,
    },
    /// The service has accepted the create.
    Submitted {
        #[serde(rename = "order")]
        purchase_key: PurchaseKey,
        transcription: TranscriptionId,
    },
    /// The result is stored in the state directory.
    Fetched {
        #[serde(rename = "order")]
        purchase_key: PurchaseKey,
        /// The id under which the result is stored.
        transcription: TranscriptionId,
        audio: AudioAmount,
    },
    /// The job waits for a duplicate that is being bought; it will use that result.
    Following {
        /// What is being bought.
        #[serde(rename = "order")]
        purchase_key: PurchaseKey,
        owner: JobId,
    },
    /// The outputs are written. An end.
    Written {
        #[serde(rename = "order")]
        purchase_key: PurchaseKey,
        /// The id under which the result is stored.
        transcription: TranscriptionId,
        audio: AudioAmount,
    },
    /// There is nothing to do. An end, until the file changes.
    Skipped { why: Skip },
    /// The job failed. An end, until a person retries it or the file changes.
    Failed {
        /// The stage at which it failed, which may hold a purchase.
        from: Box<Stage>,
        fault: Fault,
    },
    /// A person cancelled the job. An end, until a person retries it or the file's size changes.
    Cancelled {
        /// The stage at which it was cancelled, which may hold a purchase.
        from: Box<Stage>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AudioAmount {
    /// Milliseconds; 0 if not known.
    pub millis: u64,
    /// The number of channels; 0 if not known.
    pub channels: u32,
    /// The milliseconds that the service bills; `None` if it has not said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billed: Option<u64>,
}

impl AudioAmount {
    /// Returns how much to reserve: the duration times the channels, in milliseconds. `None` if one of them is not
    /// known.
    pub fn reservation_millis(&self) -> Option<u64> {
        let amount = self.millis.saturating_mul(u64::from(self.channels));
        (amount > 0).then_some(amount)
    }

    /// Limits the amount to the selected channels; `None` selects all.
    pub fn with_only(self, channels: Option<&ChannelSelection>) -> Self {
        let sent = channels.map_or(u32::MAX, ChannelSelection::count);
        Self { channels: self.channels.min(sent), ..self }
    }
}

/// Where the service has the audio from. An upload is serialized as in releases that knew nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AudioAt {
    Upload(UploadedAudio),
    /// The service fetches the audio. The address is not stored here but taken from the job for each create, because it
    /// may contain a signature that expires.
    Remote {
        /// When this stage was reached.
        remote_since: Timestamp,
    },
}

impl AudioAt {
    pub fn is_upload(&self) -> bool {
        matches!(self, Self::Upload(_))
    }
}

/// Audio that was uploaded to a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadedAudio {
    /// The id by which a create names it.
    pub id: UploadId,
    /// When it was uploaded: a service removes unused uploads after a time.
    pub at: Timestamp,
    /// The address of the service, as in [`Intent::origin`]; `None` in records of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// What is recorded durably before a create is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The token in the create's metadata.
    pub token: Token,
    /// Where the create is sent: scheme, host and port, or the embedded service's store.
    pub origin: String,
    /// A hash of the key that does not reveal the key.
    pub key: String,
    /// The service's clock as last seen.
    pub service_date: Option<Timestamp>,
    pub sent_at: Timestamp,
}

/// Why there is nothing to do for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// The file has zero bytes.
    Empty,
    /// The file was removed before it was sent.
    Vanished,
    /// The recording, and the folder of its outputs with it, was moved, renamed or removed after something was bought
    /// for it. The result is kept.
    RecordingGone,
    /// The path is now a folder, pipe, socket or device.
    NotAFile,
    /// The file has subtitles that scribed did not write (`existing`).
    Subtitled,
    /// The file contains subtitles (`existing`).
    SubtitledInside,
    /// The file is an output of scribed.
    OurOutput,
    /// The container lists no sound track. This is checked only if the track is to be extracted.
    NoSound,
    /// Most of the file is holes, and was not written within `hold`.
    Holes,
    /// A line of a `.scribedignore` excludes the file.
    Ignored,
    /// The row was removed from its manifest before its file existed.
    Unlisted,
    /// A person removed the job of a deleted file (`scribed forget`). The row stays because it records purchases.
    Forgotten,
    /// A person erased what was made of the recording (`scribed erase`). The row stays because it records purchases.
    Erased,
}

impl Skip {
    /// Whether the job continues when a scan finds the file, even unchanged.
    pub fn ends_when_file_found(self) -> bool {
        matches!(self, Self::Vanished | Self::RecordingGone | Self::NotAFile | Self::Ignored | Self::Forgotten)
    }

    /// Whether the file has subtitles, beside it or in it.
    pub fn is_for_subtitles(self) -> bool {
        matches!(self, Self::Subtitled | Self::SubtitledInside)
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Empty => "the file is empty (0 bytes)",
            Self::Vanished => "the file was removed before it was sent",
            Self::RecordingGone => {
                "the recording was moved, renamed or removed after it was sent; scribed keeps the result: the same \
                 recording at another path uses it at no cost, and the job continues when the file is back"
            }
            Self::NotAFile => "the path is not a regular file",
            Self::Subtitled => {
                "subtitles that scribed did not write already exist; to transcribe anyway, set existing = \
                 \"transcribe\" for the source"
            }
            Self::SubtitledInside => {
                "the file contains subtitles, as a track of its own; to transcribe anyway, set existing = \
                 \"transcribe\" for the source"
            }
            Self::OurOutput => "the file is an output that scribed wrote",
            Self::Ignored => {
                "a line of a .scribedignore excludes the file (`scribed explain` shows it); the job continues \
                 when that line is removed"
            }
            Self::Unlisted => {
                "its row was removed from the manifest before anything was bought for it; the job continues when a row \
                 names the file again"
            }
            Self::Forgotten => {
                "a person removed the job (`scribed forget`); its purchases stay on record, and the job continues \
                 when the file is back"
            }
            Self::Erased => {
                "a person erased what was made of the recording (`scribed erase`); the record of its purchases stays, and \
                 the job continues when the recording changes or with `scribed retry`"
            }
            Self::NoSound => "the file has no audio track: nothing to transcribe",
            Self::Holes => {
                "most of the file are holes (it is sparse, or a copy that was never completed): nothing to \
                 transcribe"
            }
        }
    }
}

/// An event that takes a job to another stage. An event marked "back" does not lead forward: it leads to an earlier
/// stage, or happens at an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEvent {
    /// The file has changed (back: before the create, or after an end).
    Grew {
        /// The new state of the file.
        stamp: Stamp,
    },
    /// The file has not changed for the settle time.
    Settled,
    /// The parameters were rendered.
    Probed {
        params: Hash,
        /// The hash of the content, if it was computed already.
        content: Option<Hash>,
        /// The rest of the rendered request; `None` keeps the earlier one.
        request_record: Option<Box<RequestRecord>>,
    },
    /// The request was rendered again because its sources have changed (back: before the first create).
    RequestRebuilt {
        /// The hash of the new parameters.
        params: Hash,
        /// The rest of the new request.
        request_record: Box<RequestRecord>,
        /// Whether other audio of the file is to be sent, which makes the upload useless.
        is_other_sound: bool,
    },
    /// The service has the audio, or knows its address.
    Uploaded {
        /// What would be bought.
        purchase_key: PurchaseKey,
        /// How much audio it is.
        audio: AudioAmount,
        /// Where the service has the audio from.
        upload: AudioAt,
        /// What was sent, if the source asks for the sound track alone.
        sent: Option<SentAudio>,
    },
    /// The recording is longer than the service accepts: it is sent in parts.
    Split {
        split: Box<Split>,
    },
    /// The service refused the recording, or a part of it, as too long or too large: shorter parts are sent (back).
    TooLong {
        /// What the service said.
        words: String,
    },
    /// The result of a part is kept, and the next part is bought (back).
    NextPart,
    /// The results of all parts are kept; they are joined under this id.
    PartsFetched {
        joined: TranscriptionId,
    },
    /// The kept result of a part is missing or damaged: it is fetched or, if need be, bought again (back).
    PartLost {
        lost: PartRange,
    },
    /// The upload may no longer exist (back: before the create).
    UploadLost,
    /// The create is about to be sent.
    Intended {
        /// What is recorded about the create.
        intent: Intent,
    },
    /// The service answered the create with an id.
    Created {
        transcription: TranscriptionId,
    },
    /// The create was certainly not accepted: it was refused, never sent, or is not in the list (back).
    NotAccepted,
    /// A transcription for this purchase key was found at the service.
    Adopted {
        purchase_key: PurchaseKey,
        transcription: TranscriptionId,
        /// The number of the purchase that bought it.
        purchase_number: u32,
        /// The address of the service, as in [`Intent::origin`]; `None` if it is not known.
        origin: Option<String>,
    },
    /// Another job is buying the same.
    Followed {
        purchase_key: PurchaseKey,
        owner: JobId,
    },
    /// The job that was followed bought nothing, so this job buys.
    TookOver,
    /// The result was stored.
    Fetched {
        audio: AudioAmount,
    },
    /// The kept result is missing or damaged; it is fetched again (back).
    ResultLost,
    /// The transcription failed or was lost; a new purchase begins (back).
    NewPurchase,
    /// The outputs were published.
    Written {
        /// The names and hashes of the outputs.
        outputs: Vec<Output>,
        /// Files that earlier outputs of the job left.
        earlier: Vec<Output>,
        /// What the outputs were rendered with.
        rendered_as: Option<RenderedAs>,
        /// The predominant language, if it is known.
        language: Option<String>,
        /// What was requested and is missing in the result.
        missing: Vec<MissingPart>,
        /// What became of each requested part.
        parts: Vec<RequestedPart>,
        /// What of the result could not be read, as text.
        unread: Option<String>,
        /// What the check of the result found.
        review: Option<Box<Review>>,
    },
    /// There is nothing to do.
    Skipped {
        why: Skip,
    },
    Failed {
        fault: Fault,
    },
    /// A person retries a failed or cancelled job, or has the kept result of a written job read again (back).
    Revived,
    /// A person decides to buy again what may have been bought already (back).
    PaidAgain,
    /// The manifest's row was edited: it requests another transcription, or other outputs (back).
    RowChanged {
        /// The new content of the row.
        row: Box<ManifestRow>,
    },
    /// A person has the job done again from the start, with the current settings, as a new purchase (back).
    Fresh,
    /// A person cancels the job.
    Cancelled,
    /// A person removes an ended job from lists and counts.
    Forgotten,
    /// What was made of the recording is removed by a person's command, except what prevents a second purchase.
    Erased,
    /// Missing outputs are about to be written again (back).
    Restored {
        /// The names and hashes of all outputs of the job.
        outputs: Vec<Output>,
    },
    /// Outputs are about to be rendered again, or were (back).
    Rendered {
        change: Box<OutputChange>,
    },
    /// A person accepts an output as the text of the job; or, with `result`, a text for a recording that was not
    /// transcribed.
    Accepted {
        change: Box<OutputChange>,
        result: Option<Box<AcceptedResult>>,
    },
    /// A person takes the acceptance back (back, if nothing was bought).
    Unaccepted {
        change: Box<OutputChange>,
    },
}

/// A stage does not accept an event. This is a bug, never a user's mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("internal error: a job at stage {stage:?} cannot take the event {event}")]
pub struct IllegalTransition {
    pub stage: StageKind,
    /// The name of the event.
    pub event: &'static str,
}

impl Stage {
    /// Returns the latest moment that the stage contains.
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

    /// Returns the same stage with no moment later than `now`, for stages that were stored while the clock was ahead.
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

    /// Returns the stage after `event`. This function is pure and total, and no other code changes a stage.
    ///
    /// # Errors
    /// [`IllegalTransition`] for every pair that the state machine does not allow.
    pub fn apply(self, event: JobEvent) -> Result<Self, IllegalTransition> {
        use JobEvent as E;
        use Stage as S;
        let illegal = IllegalTransition { stage: self.kind(), event: event.name() };
        Ok(match (self, event) {
            (S::Found, E::Settled) => S::Settled,
            (S::Settled, E::Probed { params, content, .. }) => S::Probed { params, content },
            (S::Probed { content, .. }, E::RequestRebuilt { params, .. }) => S::Probed { params, content },
            (S::Uploaded { purchase_key, .. }, E::RequestRebuilt { params, is_other_sound: true, .. }) => {
                S::probed(PurchaseKey { params, ..purchase_key })
            }
            (S::Uploaded { purchase_key, audio, upload }, E::RequestRebuilt { params, .. }) => {
                S::Uploaded { purchase_key: PurchaseKey { params, ..purchase_key }, audio, upload }
            }
            (S::Probed { params, content }, E::Split { .. }) => S::Probed { params, content },
            (S::Probed { params, content }, E::TooLong { .. }) => S::Probed { params, content },
            (S::Uploaded { purchase_key, .. } | S::Submitted { purchase_key, .. }, E::TooLong { .. }) => {
                S::probed(purchase_key)
            }
            (S::Submitted { purchase_key, transcription }, E::PartLost { .. }) if transcription.is_joined() => {
                S::probed(purchase_key)
            }
            (S::Fetched { purchase_key, .. }, E::NextPart) if purchase_key.part.is_some() => S::probed(purchase_key),
            (S::Fetched { purchase_key, .. }, E::PartsFetched { joined }) if purchase_key.part.is_some() => {
                S::Submitted { purchase_key: purchase_key.whole(), transcription: joined }
            }
            (S::Probed { .. }, E::Uploaded { purchase_key, audio, upload, .. }) => {
                S::Uploaded { purchase_key, audio, upload }
            }
            (
                S::Uploaded { purchase_key, audio, upload } | S::Submitting { purchase_key, audio, upload, .. },
                E::Intended { intent },
            ) => S::Submitting { purchase_key, audio, upload, intent },
            (S::Submitting { purchase_key, .. }, E::Created { transcription }) => {
                S::Submitted { purchase_key, transcription }
            }
            (S::Submitted { purchase_key, transcription }, E::Fetched { audio }) => {
                S::Fetched { purchase_key, transcription, audio }
            }
            (S::Fetched { purchase_key, transcription, audio }, E::Written { .. }) => {
                S::Written { purchase_key, transcription, audio }
            }

            // Duplicates, and transcriptions that were found in a list.
            (S::Probed { .. } | S::Uploaded { .. } | S::Following { .. }, E::Followed { purchase_key, owner }) => {
                S::Following { purchase_key, owner }
            }
            (S::Following { purchase_key, .. }, E::TookOver) => S::probed(purchase_key),
            (
                S::Probed { .. }
                | S::Uploaded { .. }
                | S::Submitting { .. }
                | S::Submitted { .. }
                | S::Following { .. },
                E::Adopted { purchase_key, transcription, .. },
            ) => S::Submitted { purchase_key, transcription },

            // Back to an earlier stage.
            (S::Submitting { purchase_key, audio, upload, .. }, E::NotAccepted) => {
                S::Uploaded { purchase_key, audio, upload }
            }
            (S::Uploaded { purchase_key, .. }, E::UploadLost) => S::probed(purchase_key),
            (S::Submitted { purchase_key, .. }, E::NewPurchase) => S::probed(purchase_key),
            (S::Fetched { purchase_key, transcription, .. }, E::ResultLost) => {
                S::Submitted { purchase_key, transcription }
            }
            (before, E::Grew { .. } | E::RowChanged { .. }) if before.may_start_over() => S::Found,
            (S::Failed { from, fault }, E::Revived) => from.retry_stage(&fault),
            (S::Cancelled { from }, E::Revived) => *from,
            (S::Written { purchase_key, transcription, audio }, E::Revived) => {
                S::Fetched { purchase_key, transcription, audio }
            }
            (S::Submitting { purchase_key, .. } | S::Submitted { purchase_key, .. }, E::PaidAgain) => {
                S::probed(purchase_key)
            }
            (before, E::Fresh) if before.may_start_fresh() => S::Settled,
            (S::Failed { from, .. }, E::PaidAgain) if from.kind() == StageKind::Submitted => from.purchase_again(),

            // Ends.
            (S::Found | S::Settled | S::Probed { .. } | S::Uploaded { .. }, E::Skipped { why }) => S::Skipped { why },
            // The shared result of a duplicate is not written beside existing subtitles either.
            (S::Fetched { .. }, E::Skipped { why: Skip::Subtitled }) => S::Skipped { why: Skip::Subtitled },
            // There is no folder into which the result could be written.
            (S::Fetched { .. }, E::Skipped { why: Skip::RecordingGone }) => S::Skipped { why: Skip::RecordingGone },
            (from, E::Failed { fault }) if !from.is_end() && from.kind() != StageKind::Submitting => {
                S::Failed { from: Box::new(from), fault }
            }
            // After the create was recorded, it is not known whether something was bought.
            (from, E::Cancelled) if !from.is_end() && from.kind() != StageKind::Submitting => {
                S::Cancelled { from: Box::new(from) }
            }
            (ended, E::Forgotten) if ended.is_end() && !ended.is_forgotten() => S::Skipped { why: Skip::Forgotten },
            (ended, E::Erased) if ended.is_end() => S::Skipped { why: Skip::Erased },
            (S::Written { transcription, .. }, E::Unaccepted { .. }) if transcription.is_accepted() => S::Found,
            (
                S::Written { purchase_key, transcription, audio },
                E::Restored { .. } | E::Rendered { .. } | E::Accepted { result: None, .. } | E::Unaccepted { .. },
            ) => S::Written { purchase_key, transcription, audio },
            (before, E::Accepted { result: Some(result), .. }) if before.may_be_accepted() => {
                let AcceptedResult { purchase_key, transcription } = *result;
                S::Written { purchase_key, transcription, audio: AudioAmount::default() }
            }
            _ => return Err(illegal),
        })
    }

    /// Whether a person removed the job (`scribed forget`).
    pub fn is_forgotten(&self) -> bool {
        matches!(self, Self::Skipped { why: Skip::Forgotten })
    }

    /// Whether a person erased what was made of the recording (`scribed erase`).
    pub fn is_erased(&self) -> bool {
        matches!(self, Self::Skipped { why: Skip::Erased })
    }

    fn probed(purchase_key: PurchaseKey) -> Self {
        Self::Probed { params: purchase_key.params, content: Some(purchase_key.content) }
    }

    /// Whether a changed file takes the job back to the start: before its create or after an end, but not in between,
    /// where money is or may be spent on the earlier content.
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

    /// Whether a person may accept a text in place of a purchase: nothing is being bought, and nothing was.
    pub fn may_be_accepted(&self) -> bool {
        match self {
            Self::Skipped { why } => *why != Skip::RecordingGone,
            Self::Found | Self::Settled | Self::Probed { .. } | Self::Uploaded { .. } => true,
            Self::Written { transcription, .. } => transcription.is_accepted(),
            Self::Failed { from, .. } | Self::Cancelled { from } => {
                from.transcription().is_none() && from.kind() != StageKind::Submitting
            }
            _ => false,
        }
    }

    /// Whether `retry --fresh` applies: to every job whose request was rendered, except when its paid result is about
    /// to be written. Where this may pay twice, the caller asks the person first.
    fn may_start_fresh(&self) -> bool {
        !matches!(self, Self::Found | Self::Settled | Self::Fetched { .. } | Self::Skipped { .. })
    }

    /// Returns the stage of a retry. A worthless transcription is bought again, any other one is polled again. If the
    /// file lacks the selected audio, its parameters are rendered again.
    fn retry_stage(self, fault: &Fault) -> Self {
        match self {
            Self::Probed { .. } if fault.kind == FaultKind::NotInIt => Self::Settled,
            Self::Submitted { purchase_key, .. } if is_worthless(fault) => Self::probed(purchase_key),
            other => other,
        }
    }

    /// Returns the stage at which a submitted job buys again, whatever its transcription is worth.
    fn purchase_again(self) -> Self {
        match self {
            Self::Submitted { purchase_key, .. } => Self::probed(purchase_key),
            other => other,
        }
    }

    /// Whether a retry of this failed job makes a new purchase, because its transcription failed or was lost.
    pub fn retry_buys(&self) -> bool {
        matches!(self, Self::Failed { from, fault } if from.kind() == StageKind::Submitted && is_worthless(fault))
    }

    /// Whether the job has ended.
    pub fn is_end(&self) -> bool {
        self.kind().is_end()
    }

    /// Returns what the job buys or has bought, once that is known.
    pub fn purchase_key(&self) -> Option<&PurchaseKey> {
        match self {
            Self::Uploaded { purchase_key, .. }
            | Self::Submitting { purchase_key, .. }
            | Self::Submitted { purchase_key, .. }
            | Self::Fetched { purchase_key, .. }
            | Self::Following { purchase_key, .. }
            | Self::Written { purchase_key, .. } => Some(purchase_key),
            Self::Failed { from, .. } | Self::Cancelled { from } => from.purchase_key(),
            Self::Found | Self::Settled | Self::Probed { .. } | Self::Skipped { .. } => None,
        }
    }

    /// Returns the transcription at the service, if there is one.
    pub fn transcription(&self) -> Option<&TranscriptionId> {
        match self {
            Self::Submitted { transcription, .. }
            | Self::Fetched { transcription, .. }
            | Self::Written { transcription, .. } => Some(transcription),
            Self::Failed { from, .. } | Self::Cancelled { from } => from.transcription(),
            _ => None,
        }
    }

    /// Returns how much audio it is, if that is known.
    pub fn audio(&self) -> Option<AudioAmount> {
        match self {
            Self::Uploaded { audio, .. }
            | Self::Submitting { audio, .. }
            | Self::Fetched { audio, .. }
            | Self::Written { audio, .. } => Some(*audio),
            _ => None,
        }
    }

    /// Returns the stage's kind, without its fields.
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

/// What a job that follows a duplicate should do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaderState {
    /// Wait: nothing is decided yet.
    Wait,
    /// Share what was bought.
    Share(TranscriptionId),
    /// Follow the job that the duplicate follows.
    Follow(JobId),
    /// Buy: the duplicate bought nothing, or its transcription failed.
    TakeOver,
    /// Fail as well: the fault is in the content or the parameters, which are the same.
    Inherit(Fault),
}

impl Stage {
    /// Returns what a follower with this purchase key should do, if the followed job is at this stage.
    pub fn leader_state(&self, purchase_key: &PurchaseKey) -> LeaderState {
        if let Some(own) = self.purchase_key().filter(|own| *own != purchase_key) {
            // Otherwise, its file or its parameters have changed.
            let is_of_same = own.whole() == purchase_key.whole() && !self.is_end();
            return if is_of_same { part_state(own, purchase_key) } else { LeaderState::TakeOver };
        }
        match self {
            // Its parameters have changed: it will buy something else.
            Self::Probed { params, .. } if *params != purchase_key.params => LeaderState::TakeOver,
            Self::Fetched { transcription, .. } | Self::Written { transcription, .. } => {
                LeaderState::Share(transcription.clone())
            }
            Self::Following { owner, .. } => LeaderState::Follow(*owner),
            Self::Found | Self::Settled | Self::Skipped { .. } => LeaderState::TakeOver,
            Self::Failed { from, fault } => match fault.kind {
                FaultKind::Dead { code } if code >= 500 => LeaderState::TakeOver,
                FaultKind::Refused { .. } | FaultKind::Template => LeaderState::Inherit(fault.clone()),
                // Something was bought, and it may be worth something.
                _ if from.transcription().is_some() => LeaderState::Inherit(fault.clone()),
                _ => LeaderState::TakeOver,
            },
            // The follower uses what was bought, and determines whether it is worth anything.
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

/// Returns what a follower should do while the followed job buys another part of the same recording, one after the other:
/// wait, unless the wanted part is bought already.
fn part_state(own: &PurchaseKey, wanted: &PurchaseKey) -> LeaderState {
    match (own.part, wanted.part) {
        (Some(own), Some(wanted)) if own.from_ms > wanted.from_ms => LeaderState::TakeOver,
        (Some(_), _) => LeaderState::Wait,
        (None, _) => LeaderState::TakeOver,
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
    /// All stages in order of progress, the ends last.
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

    /// Whether the job has not ended, and no service works on it or on the job that it follows.
    pub fn is_waiting(self) -> bool {
        !self.is_end() && !matches!(self, Self::Submitted | Self::Following)
    }

    /// Returns the name in `--json` and on the command line.
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
    /// Returns the event's name, without its fields.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Grew { .. } => "grew",
            Self::Settled => "settled",
            Self::Probed { .. } => "probed",
            Self::RequestRebuilt { .. } => "remade",
            Self::Uploaded { .. } => "uploaded",
            Self::Split { .. } => "split",
            Self::TooLong { .. } => "too_long",
            Self::NextPart => "next_part",
            Self::PartsFetched { .. } => "parts_fetched",
            Self::PartLost { .. } => "part_lost",
            Self::UploadLost => "upload_lost",
            Self::Intended { .. } => "intended",
            Self::Created { .. } => "created",
            Self::NotAccepted => "not_accepted",
            Self::Adopted { .. } => "adopted",
            Self::Followed { .. } => "followed",
            Self::TookOver => "took_over",
            Self::Fetched { .. } => "fetched",
            Self::ResultLost => "result_lost",
            Self::NewPurchase => "anew",
            Self::Written { .. } => "written",
            Self::Skipped { .. } => "skipped",
            Self::Failed { .. } => "failed",
            Self::Revived => "revived",
            Self::PaidAgain => "paid_again",
            Self::RowChanged { .. } => "reordered",
            Self::Fresh => "fresh",
            Self::Cancelled => "cancelled",
            Self::Forgotten => "forgotten",
            Self::Erased => "erased",
            Self::Restored { .. } => "restored",
            Self::Rendered { .. } => "rendered",
            Self::Accepted { .. } => "accepted",
            Self::Unaccepted { .. } => "unaccepted",
        }
    }
}
