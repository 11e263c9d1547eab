//! The job: a row of the queue, for one recording of one source.

use crate::domain::audio_length::is_plausible_length;
use crate::domain::charge::Charge;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::missing_enrichment::{
    MissingPart, NOT_UNDERSTOOD, PartOutcome, RequestedPart, group_by_outcome, join_names,
};
use crate::domain::names::{Hash, JobId, SourceName, Timestamp, TranscriptionId};
use crate::domain::output_text::{AcceptedText, OutputChange, RenderedAs};
use crate::domain::path::RelPath;
use crate::domain::request_record::RequestRecord;
use crate::domain::review::{Review, ReviewWarning};
use crate::domain::sent_audio::SentAudio;
use crate::domain::split::{BoughtPart, Split, TooLong};
use crate::domain::stage::{IllegalTransition, JobEvent, Skip, Stage};
use crate::domain::token::PurchaseKey;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;

/// The key of a job, which never changes and does not depend on the machine or the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey {
    /// The source of the recording.
    pub source: SourceName,
    /// The path below the source's root.
    pub path: RelPath,
}

impl JobKey {
    /// Returns the short form of this key for tokens and indexes: 32 hexadecimal digits.
    pub fn tag(&self) -> JobTag {
        JobTag::of(&self.source, &self.path)
    }
}

/// The name for people, which commands take: the source, a slash and the path; the source in brackets if the path is
/// absolute.
impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_bytes().starts_with(b"/") {
            true => write!(f, "{} ({})", self.path, self.source),
            false => write!(f, "{}/{}", self.source, self.path),
        }
    }
}

impl JobTag {
    /// Returns the tag of the job of this path in this source.
    pub fn of(source: &SourceName, path: &RelPath) -> Self {
        let (source, path) = (source.as_str().as_bytes(), path.as_bytes());
        let mut bytes = Vec::with_capacity(source.len() + 1 + path.len());
        bytes.extend_from_slice(source);
        bytes.push(0); // a name holds no NUL, so two keys never give the same bytes
        bytes.extend_from_slice(path);
        let hash = Hash::of(&bytes);
        let mut tag = [0; 16];
        tag.copy_from_slice(&hash.0[..16]);
        Self(tag)
    }
}

/// A [`JobKey`] in 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobTag(pub [u8; 16]);

/// Written as 32 hexadecimal digits.
impl fmt::Display for JobTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// What tells one state of a file from another without reading the file. Times are nanoseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The size in bytes.
    pub size: u64,
    /// The modification time; a copying program can set it.
    pub mtime_ns: i64,
    /// The inode's change time; no program can set it on a local disk.
    pub ctime_ns: i64,
    /// The inode number.
    pub inode: u64,
}

/// An output that was written for a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its file name.
    pub name: RelPath,
    /// The hash of the bytes that were written.
    pub hash: Hash,
    /// The whole path of its folder; `None` if it lies beside the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<RelPath>,
}

impl Output {
    /// Returns its file name as the system takes it.
    pub fn file_name(&self) -> OsString {
        OsString::from_vec(self.name.as_bytes().to_vec())
    }

    /// Whether both are the same file, with whatever content.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (&self.name, &self.at) == (&other.name, &other.at)
    }

    /// Returns its name for people, with its folder if that is not the recording's.
    pub fn display_name(&self) -> String {
        match &self.at {
            Some(folder) => format!("{folder}/{}", self.name),
            None => self.name.escaped(),
        }
    }
}

/// A job. It holds what applies to every stage; what is known only from some stage on is in the stage. Leases and
/// fences belong to the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    pub key: JobKey,
    /// The state of the file when it was last examined.
    pub seen: Stamp,
    /// The number of the purchase, from 0.
    #[serde(rename = "round")]
    pub purchase_number: u32,
    pub stage: Stage,
    /// The earliest time of the next step; `None` if there is none without a person, or the job has ended.
    pub due: Option<Timestamp>,
    /// The job's own failed attempts since it last made progress. Outages do not count.
    pub attempts: u32,
    /// What went wrong last, or what it waits for.
    pub fault: Option<Fault>,
    /// When the job reached this stage.
    pub since: Timestamp,
    /// The outputs that scribed has written.
    pub outputs: Vec<Output>,
    /// Files that earlier outputs of the job left: edited ones that newer outputs went beside, and those of formats or
    /// places that are no longer configured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Output>,
    /// What the outputs were rendered with; `None` if it was not what the source's settings said, or in records of older
    /// releases; [`RenderedAs::with_another_text`] if the text of the job has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered_as: Option<RenderedAs>,
    /// The row that placed the outputs whose folder is not stored, if another row has taken its place since; `None` if
    /// the present row did. It has no more than what makes a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed_by: Option<Box<ManifestRow>>,
    /// The output that a person accepted as the text of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Box<AcceptedText>>,
    /// The hashes of outputs that may have been published without being recorded in `outputs`: each hash is stored
    /// before its output is published.
    #[serde(rename = "placing", default, skip_serializing_if = "Vec::is_empty")]
    pub pending_outputs: Vec<Hash>,
    /// What the outputs were made from, set when the file has changed: the same content costs nothing again, even if
    /// the template has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_from: Option<PurchaseKey>,
    /// The request that the job is made with; `None` until it is determined, and for what an older release has made.
    #[serde(rename = "making", default, skip_serializing_if = "Option::is_none")]
    pub request_record: Option<Box<RequestRecord>>,
    /// The state of the file that a person confirmed to be complete: it is not held until it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vouched: Option<Stamp>,
    /// What was last sent for the job; `None` if it was the file itself, if nothing was sent yet, or if another job
    /// sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentAudio>,
    /// How long the sent audio is in milliseconds, as far as a header or the service's answer to the upload said before
    /// the create; `None` if that is not known, if another job sent it, or in records of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_millis: Option<u64>,
    /// The parts in which the recording is sent; `None` if it is sent whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Box<Split>>,
    /// That the service refused the recording, or a part of it, as too long or too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_long: Option<Box<TooLong>>,
    /// When a person gave the job priority over all others. The store keeps it, as it keeps the charges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bumped: Option<Timestamp>,
    /// The manifest's row that requests the job; `None` for a recording that was found in a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<Box<ManifestRow>>,
    /// The predominant language of the result that the outputs were made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// What was requested and is missing in the result that the outputs were made from. Also empty in records of older
    /// releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingPart>,
    /// What became of each requested part when the outputs were made. Also empty in records of older releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<RequestedPart>,
    /// What of the service's answer could not be read when the outputs were made, as text. Also `None` in records of
    /// older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// What the check of the result found when the outputs were made. Also `None` in records of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Box<Review>>,
    /// The address of the service that has the transcription, as in
    /// [`Intent::origin`](crate::domain::stage::Intent::origin): a service that has moved need not know it. `None` if
    /// nothing was bought, or in records of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bought_at: Option<String>,
    /// When a person acknowledged that the job failed, is incomplete or is suspect, or that its manifest is gone. Later
    /// events clear it, except those that change only the outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Timestamp>,
    /// The earlier names of the source, oldest first. Tokens of purchases made under an earlier name contain that name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_sources: Vec<SourceName>,
    /// Whether the present result is of a purchase that the job made before it started over: nothing was billed since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_result_reused: bool,
    /// What the job cost, oldest first. The store keeps it: a commit does not change it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charges: Vec<Charge>,
}

impl Job {
    /// Whether only the service reads the recording.
    pub fn is_remote(&self) -> bool {
        self.row.as_deref().is_some_and(ManifestRow::is_remote)
    }

    /// Makes a job for a recording that was just found, to be examined again at `due`.
    pub fn found(id: JobId, key: JobKey, seen: Stamp, now: Timestamp, due: Timestamp) -> Self {
        Self {
            id,
            key,
            seen,
            purchase_number: 0,
            stage: Stage::Found,
            due: Some(due),
            attempts: 0,
            fault: None,
            since: now,
            outputs: Vec::new(),
            earlier: Vec::new(),
            rendered_as: None,
            placed_by: None,
            accepted: None,
            pending_outputs: Vec::new(),
            made_from: None,
            request_record: None,
            vouched: None,
            sent: None,
            sent_millis: None,
            split: None,
            too_long: None,
            bumped: None,
            row: None,
            language: None,
            missing: Vec::new(),
            parts: Vec::new(),
            unread: None,
            review: None,
            bought_at: None,
            acknowledged: None,
            earlier_sources: Vec::new(),
            is_result_reused: false,
            charges: Vec::new(),
        }
    }

    /// Returns the job after `event`: the stage by [`Stage::apply`], the other fields by what the event says. The job
    /// is due now, unless it has ended.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the stage does not accept the event; the job is consumed.
    pub fn apply(mut self, event: JobEvent, now: Timestamp) -> Result<Self, IllegalTransition> {
        // A job whose outputs alone change has the same result: what a person acknowledged of it stays acknowledged.
        let acknowledged = self.acknowledged.filter(|_| keeps_result(&self.stage, &event));
        let since = if matches!(event, JobEvent::Rendered { .. }) { self.since } else { now };
        match &event {
            JobEvent::Grew { stamp } => {
                self.seen = *stamp;
                self.vouched = None;
                self.sent = None;
                (self.split, self.too_long) = (None, None);
                self.attempts = 0;
                if let Some(request_record) = &mut self.request_record {
                    request_record.described = None;
                }
                // The person's priority was for the earlier content.
                self.bumped = self.bumped.filter(|_| !self.stage.is_end());
                if let Stage::Written { purchase_key, .. } = &self.stage {
                    self.made_from = Some(purchase_key.clone());
                }
            }
            JobEvent::Skipped { why: Skip::RecordingGone } => {
                // If the same content comes back, it costs nothing, even if the template has changed.
                if let Some(bought) = self.bought_whole() {
                    let is_written = self.outputs.is_empty() || self.made_from.as_ref() == Some(&bought);
                    if !is_written {
                        self.rendered_as = Some(RenderedAs::with_another_text());
                    }
                    self.made_from = Some(bought);
                }
            }
            JobEvent::Split { split } => self.split = Some(split.clone()),
            JobEvent::TooLong { words } => {
                (self.split, self.sent, self.attempts) = (None, None, 0);
                self.too_long = Some(Box::new(TooLong { halvings: self.halvings() + 1, words: words.clone() }));
                self.purchase_number += u32::from(self.stage.transcription().is_some());
            }
            JobEvent::NextPart | JobEvent::PartsFetched { .. } => self.keep_part(),
            JobEvent::Probed { request_record: Some(request_record), .. }
            | JobEvent::RequestRebuilt { request_record, .. } => {
                self.request_record = Some(request_record.clone());
            }
            JobEvent::Intended { .. } => {
                self.is_result_reused = false;
                if let Some(request_record) = &mut self.request_record {
                    request_record.is_sent = true;
                }
            }
            JobEvent::Fresh => {
                (self.made_from, self.request_record, self.sent, self.attempts) = (None, None, None, 0);
                (self.split, self.too_long) = (None, None);
                self.purchase_number += 1;
                self.vouched = Some(self.seen); // a person has decided about this file
            }
            JobEvent::Uploaded { sent, .. } => self.sent.clone_from(sent),
            JobEvent::Followed { .. } => self.sent = None,
            JobEvent::Created { .. } => {
                if let Stage::Submitting { intent, .. } = &self.stage {
                    self.bought_at = Some(intent.origin.clone());
                }
                self.sent_millis = self.submitted_millis();
            }
            JobEvent::Adopted { purchase_number, origin, transcription, .. } => {
                self.bought_at.clone_from(origin);
                self.sent_millis = self.submitted_millis();
                // A purchase number of this job is never used twice: the tokens would be equal.
                self.purchase_number = self.purchase_number.max(*purchase_number);
                if !matches!(self.stage, Stage::Submitting { .. } | Stage::Submitted { .. }) {
                    self.sent = None; // another job bought it
                    self.is_result_reused = self.charge_for(transcription).is_some();
                }
            }
            JobEvent::NewPurchase => {
                self.purchase_number += 1;
                // The parts are bought already, or are looked for again.
                self.split = self.split.take().filter(|split| split.next().is_some());
            }
            JobEvent::PartLost { lost } => {
                let part = self.split.as_deref_mut().and_then(|split| split.part_mut(*lost));
                part.into_iter().for_each(|part| part.bought = None);
            }
            JobEvent::PaidAgain => {
                self.attempts = 0;
                self.purchase_number += 1;
            }
            JobEvent::Revived => {
                self.attempts = 0;
                self.is_result_reused |= self.is_written();
                self.purchase_number += u32::from(self.stage.retry_buys());
            }
            JobEvent::RowChanged { row } => {
                // Earlier purchases keep the tokens of their number.
                self.purchase_number += u32::from(self.stage.transcription().is_some());
                self.keep_place();
                self.row = Some(row.clone());
                // A person has requested the file as it is, so it is not held as unfinished.
                self.vouched = Some(self.seen);
                (self.sent, self.made_from, self.request_record, self.attempts) = (None, None, None, 0);
                (self.split, self.too_long) = (None, None);
            }
            JobEvent::Fetched { .. } => self.attempts = 0,
            JobEvent::Written { outputs, earlier, rendered_as, language, missing, parts, unread, review } => {
                self.outputs.clone_from(outputs);
                self.earlier.clone_from(earlier);
                self.rendered_as.clone_from(rendered_as);
                self.missing.clone_from(missing);
                self.parts.clone_from(parts);
                self.unread.clone_from(unread);
                self.review.clone_from(review);
                self.language.clone_from(language);
                self.pending_outputs.clear();
                (self.made_from, self.placed_by) = (None, None);
                let left = outputs.iter().chain(earlier);
                self.accepted = self.accepted.take().map(|accepted| Box::new(accepted.found_among(left)));
            }
            JobEvent::Restored { outputs } => self.outputs.clone_from(outputs),
            JobEvent::Rendered { change } => self.set_outputs(change),
            JobEvent::Accepted { change, result } => {
                self.set_outputs(change);
                self.attempts = 0;
                if result.is_some() {
                    (self.missing, self.unread, self.made_from, self.sent) = (Vec::new(), None, None, None);
                }
            }
            JobEvent::Unaccepted { change } => self.set_outputs(change),
            JobEvent::Forgotten => {
                // The token of a worthless transcription is never used again.
                self.purchase_number += u32::from(self.stage.retry_buys());
                // If the same content comes back, it costs nothing, even if the template has changed.
                if let Stage::Written { purchase_key, .. } = &self.stage {
                    self.made_from = Some(purchase_key.clone());
                }
                self.keep_place();
                (self.request_record, self.sent, self.row, self.vouched, self.bumped) = (None, None, None, None, None);
                (self.pending_outputs, self.attempts) = (Vec::new(), 0);
                (self.split, self.too_long) = (None, None);
            }
            JobEvent::Erased => self.erase(),
            _ => {}
        }
        self.stage = self.stage.apply(event)?;
        (self.since, self.acknowledged) = (since, acknowledged);
        self.fault = match &self.stage {
            Stage::Failed { fault, .. } => Some(fault.clone()),
            _ => None,
        };
        self.due = (!self.stage.is_end()).then_some(now);
        Ok(self)
    }

    /// Removes what says anything about the recording's content. The charges and the purchase key stay: the same content
    /// is not bought a second time.
    fn erase(&mut self) {
        let bought =
            self.stage.purchase_key().filter(|_| self.stage.transcription().is_some() && !self.is_accepted_only());
        *self = Self {
            // The token of a worthless transcription is never used again.
            purchase_number: self.purchase_number + u32::from(self.stage.retry_buys()),
            made_from: bought.map(PurchaseKey::whole).or_else(|| self.made_from.take()),
            stage: self.stage.clone(),
            since: self.since,
            bought_at: self.bought_at.take(),
            earlier_sources: std::mem::take(&mut self.earlier_sources),
            charges: std::mem::take(&mut self.charges),
            ..Self::found(self.id, self.key.clone(), self.seen, self.since, self.since)
        };
    }

    /// Returns how long the audio of the create is whose transcription is now known: that which was just sent, or which
    /// has another id at the service.
    fn submitted_millis(&self) -> Option<u64> {
        match &self.stage {
            Stage::Submitting { audio, .. } => Some(audio.millis).filter(|millis| is_plausible_length(*millis)),
            Stage::Submitted { .. } => self.sent_millis,
            _ => None,
        }
    }

    fn has_bought_part(&self) -> bool {
        self.split.as_deref().is_some_and(|split| split.bought().next().is_some())
    }

    /// Whether something was bought of the recording and nothing was written: of some of its parts, or of the whole
    /// before its file went away.
    pub fn has_unwritten_purchase(&self) -> bool {
        self.has_bought_part() || self.made_from.is_some() && self.outputs.is_empty()
    }

    /// Returns what was bought at the present stage, as that of the whole recording; `None` if nothing was.
    fn bought_whole(&self) -> Option<PurchaseKey> {
        let is_bought = self.stage.transcription().is_some() || self.has_bought_part();
        match &self.stage {
            // The next part was about to be sent.
            Stage::Probed { params, content: Some(content) } if is_bought => {
                let (service, content, params) = (self.charges.last()?.service.clone(), *content, *params);
                Some(PurchaseKey { service, content, params, part: None })
            }
            stage => stage.purchase_key().filter(|_| is_bought).map(PurchaseKey::whole),
        }
    }

    /// Returns how often the longest part that is sent was halved.
    pub fn halvings(&self) -> u32 {
        self.too_long.as_ref().map_or(0, |refused| refused.halvings)
    }

    /// Returns what comes after the result of a part was fetched; `None` if the job is not at a part.
    pub fn after_part(&self) -> Option<JobEvent> {
        let mut noted = self.clone();
        noted.keep_part();
        let split = noted.split.filter(|_| self.stage.purchase_key().is_some_and(|key| key.part.is_some()))?;
        Some(match split.next() {
            Some(_) => JobEvent::NextPart,
            None => JobEvent::PartsFetched { joined: split.joined_id() },
        })
    }

    /// Notes what was bought for the part whose result was fetched.
    fn keep_part(&mut self) {
        let Stage::Fetched { purchase_key, transcription, audio } = &self.stage else { return };
        let part = self.split.as_deref_mut().zip(purchase_key.part).and_then(|(split, range)| split.part_mut(range));
        if let Some(part) = part {
            part.bought = Some(BoughtPart {
                transcription: transcription.clone(),
                purchase_number: self.purchase_number,
                audio: *audio,
                cut: self.sent.as_ref().and_then(SentAudio::cut),
            });
        }
        self.sent = None;
    }

    /// Keeps the row that says where the outputs are, before another one takes its place.
    fn keep_place(&mut self) {
        let is_placed = |output: &Output| output.at.is_none();
        let row = self.row.as_deref().filter(|row| !row.lost);
        if self.placed_by.is_none() && self.outputs.iter().chain(&self.earlier).any(is_placed) {
            self.placed_by = row.map(|row| Box::new(row.place()));
        }
    }

    fn set_outputs(&mut self, change: &OutputChange) {
        self.placed_by = None;
        self.outputs.clone_from(&change.outputs);
        self.earlier.clone_from(&change.earlier);
        self.pending_outputs.clone_from(&change.pending_outputs);
        self.rendered_as.clone_from(&change.rendered_as);
        self.accepted.clone_from(&change.accepted);
        if change.request_record.is_some() {
            self.request_record.clone_from(&change.request_record);
        }
    }

    /// The accepted text that belongs to the job's present result.
    pub fn accepted_text(&self) -> Option<&AcceptedText> {
        let transcription = self.stage.transcription()?;
        self.accepted.as_deref().filter(|accepted| accepted.transcription == *transcription)
    }

    /// Whether the job has a text that a person accepted, and nothing was bought for it.
    pub fn is_accepted_only(&self) -> bool {
        self.stage.transcription().is_some_and(TranscriptionId::is_accepted)
    }

    /// Returns the job under the new name of its source. A job that waits for its file or folder becomes due.
    #[must_use]
    pub fn with_source_name(mut self, source: SourceName, now: Timestamp) -> Self {
        if self.awaits_file() {
            (self.due, self.fault) = (Some(now), None);
        }
        self.earlier_sources.push(std::mem::replace(&mut self.key.source, source));
        self
    }

    /// Returns the tags that its tokens may have: that of its current name, then those of its earlier names.
    pub fn tags(&self) -> impl Iterator<Item = JobTag> {
        let earlier = self.earlier_sources.iter().rev().map(|source| JobTag::of(source, &self.key.path));
        std::iter::once(self.key.tag()).chain(earlier)
    }

    /// Whether `stamp` is still the state of the file that was seen. For a cancelled job, only a different size counts
    /// as a change: it must not be bought because somebody touched or moved the file.
    pub fn matches_file(&self, stamp: &Stamp) -> bool {
        match self.stage {
            Stage::Cancelled { .. } => self.seen.size == stamp.size,
            _ => self.seen == *stamp,
        }
    }

    /// Whether money is or may be spent on the job but nothing indicates that it will end: it waits for a person, or is
    /// stuck at the service. Such a job no longer counts against the limit of running transcriptions.
    pub fn is_parked(&self) -> bool {
        let is_stuck = self.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Stuck);
        let is_in_flight = matches!(self.stage, Stage::Submitting { .. } | Stage::Submitted { .. });
        is_in_flight && (self.due.is_none() || is_stuck)
    }

    /// Returns the manifest whose row requests the job, by its path below the source's folder.
    pub fn manifest(&self) -> Option<&RelPath> {
        self.row.as_deref().filter(|row| !row.is_by_command()).map(|row| &row.manifest)
    }

    /// Whether a person can acknowledge that the manifest of the job is gone.
    pub fn may_outlive_its_manifest(&self) -> bool {
        self.stage.is_end() && self.manifest().is_some()
    }

    /// Whether the job ended in a way that a person can acknowledge, or waits for a person to acknowledge its answer.
    pub fn may_be_acknowledged(&self) -> bool {
        let is_shortfall = self.is_incomplete() || !self.warnings().is_empty();
        matches!(self.stage, Stage::Failed { .. }) || is_shortfall || self.awaits_confirmation()
    }

    /// Whether the job waits for a person to say whether the service's answer is that of its recording.
    pub fn awaits_confirmation(&self) -> bool {
        let is_doubted = self.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Mismatch);
        is_doubted && matches!(self.stage, Stage::Submitted { .. })
    }

    /// Returns what the check of the result found. Empty if the outputs are not written.
    pub fn warnings(&self) -> &[ReviewWarning] {
        self.review().map_or(&[], |review| &review.warnings)
    }

    /// Returns the check of the result; `None` if it was not checked, or if the outputs are not written.
    pub fn review(&self) -> Option<&Review> {
        self.review.as_deref().filter(|_| self.is_written())
    }

    /// Whether the check of the result found something, and no person has acknowledged that or accepted a text.
    pub fn is_suspect(&self) -> bool {
        !self.warnings().is_empty() && self.acknowledged.is_none() && self.accepted_text().is_none()
    }

    /// Whether the job is incomplete and no person has acknowledged that.
    pub fn is_unhandled_shortfall(&self) -> bool {
        self.is_incomplete() && self.acknowledged.is_none()
    }

    /// Whether the job failed and no person has acknowledged that.
    pub fn is_unhandled_failure(&self) -> bool {
        matches!(self.stage, Stage::Failed { .. }) && self.acknowledged.is_none()
    }

    /// Whether the job waits for a person to say where the service with its transcription is now.
    pub fn awaits_location(&self) -> bool {
        let asks = self.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Asks);
        asks && self.due.is_none() && matches!(self.stage, Stage::Submitted { .. })
    }

    /// Whether the job waits for its file or for the file's folder. It continues when the file is found.
    pub fn awaits_file(&self) -> bool {
        let is_missing = |fault: &Fault| matches!(fault.kind, FaultKind::FolderAway | FaultKind::Awaited);
        !self.stage.is_end() && self.fault.as_ref().is_some_and(is_missing)
    }

    /// Whether the outputs are written but lack something that was requested or could not be read.
    pub fn is_incomplete(&self) -> bool {
        self.missing_parts().next().is_some() || self.unread().is_some()
    }

    /// Returns what was requested and the outputs lack. Empty if they are not written. A text that a person accepted
    /// answers that speech was not understood.
    pub fn missing_parts(&self) -> impl Iterator<Item = &MissingPart> {
        let is_answered = self.accepted_text().is_some();
        let missing = if self.is_written() { self.missing.as_slice() } else { &[] };
        missing.iter().filter(move |part| !(is_answered && part.is_recognition()))
    }

    /// Whether speech was not understood, and the outputs lack nothing that was requested.
    pub fn lacks_only_recognition(&self) -> bool {
        self.is_incomplete() && self.unread().is_none() && self.missing_parts().all(MissingPart::is_recognition)
    }

    /// Returns the names of what was requested and the outputs lack: `diarization, translation fr`. `None` if they lack
    /// nothing, or are not written.
    pub fn missing_names(&self) -> Option<String> {
        let names = join_names(self.missing_parts());
        (!names.is_empty()).then_some(names)
    }

    /// Returns what became of each requested part. Records of older releases know only what is missing. Empty if
    /// the outputs are not written.
    pub fn requested_parts(&self) -> Vec<RequestedPart> {
        match self.parts.as_slice() {
            _ if !self.is_written() => Vec::new(),
            [] => self.missing.iter().map(known_by_older_release).collect(),
            parts => parts.to_vec(),
        }
    }

    /// Groups the requested parts by what became of them: `done: diarization; failed: translation fr (no model)`.
    /// `None` if nothing was requested, or if the outputs are not written.
    pub fn outcomes(&self) -> Option<String> {
        let parts = self.requested_parts();
        (!parts.is_empty()).then(|| group_by_outcome(&parts))
    }

    /// Returns what the outputs lack because it could not be read. `None` if nothing, or if they are not written.
    pub fn unread(&self) -> Option<&str> {
        self.unread.as_deref().filter(|_| self.is_written())
    }

    /// Describes what the outputs lack: `without: diarization; not readable in the service's answer: languages`. Nobody
    /// requests that speech is understood, so that has its own words.
    pub fn shortfall(&self) -> Option<String> {
        let (unheard, requested): (Vec<_>, Vec<_>) = self.missing_parts().partition(|part| part.is_recognition());
        let without = (!requested.is_empty()).then(|| format!("without: {}", join_names(requested)));
        let unheard = (!unheard.is_empty()).then(|| NOT_UNDERSTOOD.to_owned());
        let unread = self.unread().map(|parts| format!("not readable in the service's answer: {parts}"));
        let parts: Vec<String> = without.into_iter().chain(unheard).chain(unread).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn is_written(&self) -> bool {
        matches!(self.stage, Stage::Written { .. })
    }

    /// Whether the job waits until its file has not changed for `hold`.
    pub fn is_held(&self) -> bool {
        self.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Held)
    }

    /// Whether a person has confirmed that the file in its current state is complete.
    pub fn is_confirmed_complete(&self) -> bool {
        self.vouched == Some(self.seen)
    }

    /// Returns the job with a new due time and fault.
    #[must_use]
    pub fn deferred(mut self, due: Option<Timestamp>, fault: Option<Fault>) -> Self {
        self.due = due;
        self.fault = fault;
        self
    }
}

/// Whether a written job has the same result after the event: only its outputs or its text change.
fn keeps_result(stage: &Stage, event: &JobEvent) -> bool {
    use JobEvent as E;
    let is_written = matches!(stage, Stage::Written { .. });
    // Without a purchase, a text that is no longer accepted takes the job back to the start.
    let is_accepted = stage.transcription().is_some_and(TranscriptionId::is_accepted);
    match event {
        E::Rendered { .. } | E::Restored { .. } | E::Accepted { result: None, .. } => is_written,
        E::Unaccepted { .. } => is_written && !is_accepted,
        _ => false,
    }
}

/// A part of which an older release recorded only that it is missing. A service gives words only for a failure.
fn known_by_older_release(missing: &MissingPart) -> RequestedPart {
    let MissingPart { enrichment, language, words } = missing.clone();
    let outcome = if words.is_some() { PartOutcome::Failed } else { PartOutcome::Missing };
    RequestedPart { enrichment, language, outcome, words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_job_has_its_source_before_the_path_or_in_brackets() {
        let name = |path: &str| JobKey { source: SourceName::new("lists"), path: RelPath::new(path) }.to_string();
        assert_eq!(
            (name("a/b.wav"), name("/srv/b.wav")),
            ("lists/a/b.wav".to_owned(), "/srv/b.wav (lists)".to_owned())
        );
    }
}
